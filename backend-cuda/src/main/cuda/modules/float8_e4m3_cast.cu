#include "../kernels.cuh"

CASTS(float8_e4m3, Float8E4M3)
