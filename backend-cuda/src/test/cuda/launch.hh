// How a kernel that is compiled for the host is run there; after those of its library.
#pragma once

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
