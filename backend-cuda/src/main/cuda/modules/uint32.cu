#include "../kernels.cuh"

ORDERED(uint32, Uint32, u64)
