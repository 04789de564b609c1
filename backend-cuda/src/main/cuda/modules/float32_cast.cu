#include "../kernels.cuh"

CASTS(float32, Float32)
