#include "../kernels.cuh"

KERNEL(fetch, Copy, fetch_parts(call))
KERNEL(meet, Call, meet_all(call))
