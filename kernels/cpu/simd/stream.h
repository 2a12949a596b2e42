// Non-temporal stores, for outputs so large that the caches could not keep them anyway.
#pragma once

#include "base/cpuid.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// Outputs up to this size are never streamed, whatever the cache.
constexpr int64_t kStreamCandidate = 4 << 20;

TT_INLINE bool worth_streaming(int64_t bytes) {
  if (bytes <= kStreamCandidate) return false;
  const int64_t l3 = l3_bytes();
  return bytes > (l3 ? l3 / 3 : int64_t(8) << 20);
}

TT_INLINE bool is_line_aligned(const void* p) { return (reinterpret_cast<uintptr_t>(p) & 63) == 0; }

// dst is aligned to 64 bytes. A rest below a whole vector is stored normally.
TT_INLINE void stream_copy(char* dst, const char* src, int64_t bytes) {
  int64_t i = 0;
  if constexpr (kStreams)
    for (; i + TT_VEC_BYTES <= bytes; i += TT_VEC_BYTES) stream_vector(dst + i, src + i);
  if (i < bytes) memcpy(dst + i, src + i, size_t(bytes - i));
}

TT_ISA_END
