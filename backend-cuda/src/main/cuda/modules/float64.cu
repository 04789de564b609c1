#include "../kernels.cuh"

FLOATS(float64, Float64)
