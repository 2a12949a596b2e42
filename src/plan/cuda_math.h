// What an application lets CUDA devices compute with. The CPU ignores it.
#pragma once

#include <stdint.h>

namespace TT_NS {

// Bits of Ctx::cuda_math, which plans that a library may serve take along: so a plan that was
// recorded keeps what was allowed then. None is set at first: libraries serve, float32 is computed
// in float32, and results have the same bits in every run.
enum CudaMath : uint16_t {
  kTf32Matmul = 1,        // libraries may round the factors of products of f32 to TF32
  kTf32Conv = 2,          // and those of convolutions
  kNondeterministic = 4,  // sums may have another order in each run
  kOwnMatmul = 8,         // own kernels serve in place of cuBLASLt
  kOwnConv = 16,          // of cuDNN, in convolutions
  kOwnAttention = 32,     // of cuDNN, in attention
  kOwnLinalg = 64,        // of cuSOLVER, and of cuBLAS's functions for batches
  kOwnFft = 128,          // of cuFFT
};

}  // namespace TT_NS
