#include "../kernels.cuh"

MODULAR(int64, Int64)
ORDERED(int64, Int64, i64)
