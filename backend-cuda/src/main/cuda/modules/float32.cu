#include "../kernels.cuh"

FLOATS(float32, Float32)
