#include "../kernels.cuh"

CASTS(float16, Float16)
