// The micro-kernel of convolutions: rows that are read through addresses, times packed panels of
// the weight.
#pragma once

#include "kernels/cpu/conv/indirection.h"
#include "kernels/cpu/simd/tile_sums.h"

TT_ISA_BEGIN

template <class T> struct GatherTile {
  const T* const* rows;  // [taps][pitch]: kMr addresses of each tap
  int64_t pitch;
  const T* const* panels;  // [taps]: [terms from `from` on][kConvNr] of the weight
  int64_t taps, from, to;  // adds terms [from, to) of each tap
  T* const* out;           // [kMr]: rows of kVecs vectors
  const T* start;          // what the sums of each row start with; NULL: they are added to out
  uint32_t tap_mask;       // bit k: a row of tap k is no padding
  int64_t ahead;  // elements from a row of the source to that of the following tile, a prefetch
};

// acc = start + rows · panels over taps and terms.
template <class Unit, class T, int kMr, int kVecs>
TT_INLINE void gather_sums(const GatherTile<T>& t, Vec<T> (&acc)[kMr][kVecs]) {
  constexpr int kL = kLanes<T>;
  // A row of out is prefetched every fourth term: all at once would fill the miss buffers.
  T* const* fetch = t.out;
  TT_UNROLL
  for (int v = 0; v < kVecs; v++) {
    const Vec<T> s = t.start ? load(t.start + v * kL) : Vec<T>{};
    TT_UNROLL
    for (int i = 0; i < kMr; i++) acc[i][v] = s;
  }
  const T* const* rows = t.rows;
  for (int64_t tap = 0; tap < t.taps; tap++, rows += t.pitch) {
    if (!(t.tap_mask >> tap & 1)) continue;
    const T* b = t.panels[tap];
    const T* a[kMr];
    TT_UNROLL
    for (int i = 0; i < kMr; i++) a[i] = rows[i];
    const char* next = reinterpret_cast<const char*>(a[0] + t.from + t.ahead);
    for (int64_t k = t.from; k < t.to; k++, b += kConvNr<T>) {
      if (k % 4 == 0) {
        TT_UNROLL
        for (int v = 0; v < kVecs * TT_VEC_BYTES; v += 64)
          TT_PREFETCH_WRITE(reinterpret_cast<char*>(*fetch) + v);
        fetch += fetch != t.out + kMr - 1;
        TT_UNROLL
        for (size_t at = 0; at < 4 * kMr * sizeof(T); at += 64) TT_PREFETCH_L2(next + at);
        next += 4 * kMr * sizeof(T);
      }
      Vec<T> y[kVecs];
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) y[v] = load(b + v * kL);
      TT_UNROLL
      for (int i = 0; i < kMr; i++) {
        const auto x = Unit::factor_at(a[i] + k);
        TT_UNROLL
        for (int v = 0; v < kVecs; v++) acc[i][v] = Unit::add_product(x, y[v], acc[i][v]);
      }
    }
  }
}

// out = start + sum, or out += sum, of rows · panels.
template <class T, int kMr, int kVecs> TT_NOINLINE void gather_tile(const GatherTile<T>& t) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kMr][kVecs];
  sum_tile(acc, [&t](auto unit, auto& sums) TT_INLINE_BODY {
    gather_sums<decltype(unit)>(t, sums);
    return true;
  });
  if (!t.start) {
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = load(t.out[i] + v * kL) + acc[i][v];
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) store(t.out[i] + v * kL, acc[i][v]);
  }
}

TT_ISA_END
