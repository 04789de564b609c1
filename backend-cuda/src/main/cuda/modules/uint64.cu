#include "../kernels.cuh"

ORDERED(uint64, Uint64, u64)
