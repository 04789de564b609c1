#include "../kernels.cuh"

FLOATS(float16, Float16)
