#include "../kernels.cuh"

CASTS(bfloat16, Bfloat16)
