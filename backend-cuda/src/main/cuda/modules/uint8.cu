#include "../kernels.cuh"

ORDERED(uint8, Uint8, u64)
