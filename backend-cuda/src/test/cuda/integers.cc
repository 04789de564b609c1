// The kernels of integers that are compiled beforehand, for the host: apart from those of kernels.cc, so that
// both are compiled at the same time.
#include "../../main/cuda/modules/int16.cu"
#include "../../main/cuda/modules/int32.cu"
#include "../../main/cuda/modules/int64.cu"
#include "../../main/cuda/modules/int8.cu"
#include "../../main/cuda/modules/logical.cu"
#include "../../main/cuda/modules/uint16.cu"
#include "../../main/cuda/modules/uint32.cu"
#include "../../main/cuda/modules/uint64.cu"
#include "../../main/cuda/modules/uint8.cu"
