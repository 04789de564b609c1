#include "../kernels.cuh"

FLOATS(bfloat16, Bfloat16)
