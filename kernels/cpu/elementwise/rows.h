// Copies and fills of one row, for which a call of memcpy would be long. A row that does not end at
// a whole piece ends with one that overlaps the piece before.
#pragma once

#include "kernels/cpu/simd/vec.h"
#include "kernels/functors/functor.h"

TT_ISA_BEGIN

// Calls f with an element of that size.
template <class F> TT_INLINE void with_item(int64_t itemsize, const F& f) {
  switch (itemsize) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bytes16{});
  }
}

template <class Piece> TT_INLINE void copy_piece(char* dst, const char* src) {
  Piece piece;
  memcpy(&piece, src, sizeof piece);
  memcpy(dst, &piece, sizeof piece);
}

// Fewer bytes than a vector has: the first and the last piece. kSame: both are the bytes at src.
template <bool kSame> TT_INLINE void copy_few(char* dst, const char* src, int64_t n) {
  const auto ends = [&]<class Piece>(Piece) TT_INLINE_BODY {
    const int64_t last = n - int64_t(sizeof(Piece));
    copy_piece<Piece>(dst, src);
    copy_piece<Piece>(dst + last, kSame ? src : src + last);
  };
  if (TT_VEC_BYTES > 32 && n >= 32) return ends(Vector<int64_t, 4>{});
  if (TT_VEC_BYTES > 16 && n >= 16) return ends(Vector<int64_t, 2>{});
  if (n >= 8) return ends(uint64_t{});
  if (n >= 4) return ends(uint32_t{});
  if (n >= 2) return ends(uint16_t{});
  if (n == 1) *dst = *src;
}

TT_INLINE void copy_bytes(char* dst, const char* src, int64_t n) {
  using Whole = Vec<int64_t>;
  constexpr int64_t kWhole = sizeof(Whole);
  if (n < kWhole) return copy_few<false>(dst, src, n);
  if (n > 1024) {
    memcpy(dst, src, size_t(n));
    return;
  }
  int64_t i = 0;
  for (; i + kWhole <= n; i += kWhole) copy_piece<Whole>(dst + i, src + i);
  if (i < n) copy_piece<Whole>(dst + n - kWhole, src + n - kWhole);
}

// dst[i] = *value for n elements of a size.
TT_INLINE void fill_row(char* dst, const char* value, int64_t n, int64_t itemsize) {
  alignas(64) char all[TT_VEC_BYTES];
  with_item(itemsize, [&]<class T>(T one) TT_INLINE_BODY {
    memcpy(&one, value, sizeof one);
    if constexpr (sizeof(T) <= 8) {
      store(reinterpret_cast<T*>(all), splat(one));
    } else {
      for (char* each = all; each < all + sizeof all; each += sizeof one)
        memcpy(each, &one, sizeof one);
    }
  });
  const int64_t bytes = n * itemsize;
  if (bytes < TT_VEC_BYTES) return copy_few<true>(dst, all, bytes);
  int64_t i = 0;
  for (; i + TT_VEC_BYTES <= bytes; i += TT_VEC_BYTES) copy_piece<Vec<int64_t>>(dst + i, all);
  if (i < bytes) copy_piece<Vec<int64_t>>(dst + bytes - TT_VEC_BYTES, all);
}

TT_ISA_END
