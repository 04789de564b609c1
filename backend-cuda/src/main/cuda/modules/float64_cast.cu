#include "../kernels.cuh"

CASTS(float64, Float64)
