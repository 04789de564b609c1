#include "../kernels.cuh"

ORDERED(uint16, Uint16, u64)
