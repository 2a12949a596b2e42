// Non-temporal stores, for outputs so large that the caches could not keep them anyway.
#pragma once

#include "base/cpuid.h"
#include "kernels/cpu/simd/isa.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

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
#if defined(__AVX512F__)
  for (; i + 64 <= bytes; i += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i), _mm512_loadu_si512(src + i));
#elif defined(__AVX__)
  for (; i + 32 <= bytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i)));
#elif defined(__SSE2__)
  for (; i + 16 <= bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
#endif
  if (i < bytes) __builtin_memcpy(dst + i, src + i, size_t(bytes - i));
}

// Orders streamed stores before what follows.
TT_INLINE void stream_fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

TT_ISA_END
