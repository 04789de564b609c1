#include "../kernels.cuh"

MODULAR(int16, Int16)
ORDERED(int16, Int16, i64)
