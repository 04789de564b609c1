#include "../kernels.cuh"

MODULAR(int8, Int8)
ORDERED(int8, Int8, i64)
