// Products of a warpgroup on a device, one line for each layout of operands. The emulation reads
// descriptors by the same page as the kernels: whether the page is understood is seen here.
//   nvcc -std=c++20 -arch=sm_90a -I. -Isrc -Iinclude tests/gpu/wgmma_check.cu
#include <stdio.h>

#include "tests/emu/group_product.h"

using namespace TT_NS;

template <Left kLeft, bool kRightAcross, int n> int check(const char* left, const char* right) {
  GroupProduct<n>* p = nullptr;
  if (cudaMallocManaged(&p, sizeof *p) != cudaSuccess) {
    puts("no device");
    return 3;
  }
  fill_product<kLeft, kRightAcross>(p);
  const int32_t status = device::launch(multiply_group<kLeft, kRightAcross, n>, 1, kGroupThreads,
                                        GroupProduct<n>::kBytes, nullptr, p, kNone);
  const cudaError_t e = cudaDeviceSynchronize();
  int n_right = 0;
  for (int t = 0; t < kGroupThreads && e == cudaSuccess; t++) n_right += p->out[t] == t + 1;
  const bool is_right = status == TT_OK && n_right == kGroupThreads;
  printf("left %s, right %s, %d columns: %s (%d of %d threads; %s)\n", left, right, n,
         is_right ? "right" : "WRONG", n_right, kGroupThreads, cudaGetErrorString(e));
  cudaFree(p);
  return is_right ? 0 : 1;
}

int main() {
  const int failed =
      check<kAlong, false, 64>("along", "along") | check<kAlong, false, 128>("along", "along") |
      check<kRegisters, true, 64>("registers", "across") |
      check<kRegisters, true, 128>("registers", "across") |
      check<kAcross, true, 64>("across", "across") | check<kAcross, false, 128>("across", "along");
  puts(failed ? "FAILED" : "ok");
  return failed;
}
