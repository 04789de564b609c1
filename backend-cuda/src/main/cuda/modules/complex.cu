#include "../kernels.cuh"

COMPLEX(REDUCTIONS, complex64, Float32)
COMPLEX(REDUCTION, complex128, Float64)
