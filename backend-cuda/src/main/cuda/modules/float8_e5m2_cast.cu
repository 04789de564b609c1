#include "../kernels.cuh"

CASTS(float8_e5m2, Float8E5M2)
