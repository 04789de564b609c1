// All kernels, compiled for the host, and how one is run there.
#include "../../main/cuda/modules/bfloat16.cu"
#include "../../main/cuda/modules/bfloat16_cast.cu"
#include "../../main/cuda/modules/complex.cu"
#include "../../main/cuda/modules/copies.cu"
#include "../../main/cuda/modules/float16.cu"
#include "../../main/cuda/modules/float16_cast.cu"
#include "../../main/cuda/modules/float32.cu"
#include "../../main/cuda/modules/float32_cast.cu"
#include "../../main/cuda/modules/float64.cu"
#include "../../main/cuda/modules/float64_cast.cu"
#include "../../main/cuda/modules/float8_e4m3.cu"
#include "../../main/cuda/modules/float8_e4m3_cast.cu"
#include "../../main/cuda/modules/float8_e5m2.cu"
#include "../../main/cuda/modules/float8_e5m2_cast.cu"
#include "../../main/cuda/modules/int16.cu"
#include "../../main/cuda/modules/int32.cu"
#include "../../main/cuda/modules/int64.cu"
#include "../../main/cuda/modules/int8.cu"
#include "../../main/cuda/modules/logical.cu"
#include "../../main/cuda/modules/pairs.cu"
#include "../../main/cuda/modules/uint16.cu"
#include "../../main/cuda/modules/uint32.cu"
#include "../../main/cuda/modules/uint64.cu"
#include "../../main/cuda/modules/uint8.cu"

// Runs a kernel to its end.
static void launch_kernel(
    const std::string& name, u32 blocks, u32 threads, const void* parameters) {
  const Kernel& kernel = kernels().at(name);
  std::vector<std::unique_ptr<Block>> grid;
  std::vector<std::jthread> running; // joined at the end
  for (u32 index = 0; index < blocks; index++) {
    grid.push_back(std::make_unique<Block>(threads));
    for (u32 thread = 0; thread < threads; thread++) {
      running.emplace_back([&, block = grid.back().get(), index, thread] {
        place = {block, thread, threads, index, blocks};
        kernel(parameters);
      });
    }
  }
}
