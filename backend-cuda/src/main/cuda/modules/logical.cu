#include "../kernels.cuh"

LOGICAL(int64, Int64)
LOGICAL(int32, Int32)
LOGICAL(int16, Int16)
LOGICAL(int8, Int8)
