#include "../kernels.cuh"

MODULAR(int32, Int32)
ORDERED(int32, Int32, i64)
