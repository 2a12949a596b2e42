// Elements as 64-bit keys of the same order, and a stable sort of keys.
#pragma once

#include "kernels/cpu/simd/load.h"
#include "plan/sort_plan.h"

TT_ISA_BEGIN

constexpr int64_t kKeyBlock = 512;  // largest n of make_keys
constexpr uint64_t kNanKey = 0xfff8000000000000u;

// Maps the bits of a double to an unsigned integer of the same order. Both zeros have one key, all
// NaNs the last, which has few bits set: radix_sort takes as many passes as the varying bits need.
TT_INLINE uint64_t float_key(uint64_t bits) {
  const uint64_t sign = uint64_t(1) << 63;
  const uint64_t infinity = 0x7ff0000000000000u;
  const uint64_t size = bits & ~sign;
  if (size > infinity) return kNanKey;
  if (size == 0) return sign;
  return bits & sign ? ~bits : bits | sign;
}

// The keys of n elements, `stride` bytes apart. Narrower floats are converted to double first.
TT_NOINLINE void make_keys(int32_t dtype, uint64_t* key, const char* x, int64_t stride, int64_t n) {
  alignas(64) double wide[kKeyBlock];
  alignas(64) float f[kKeyBlock];
  if (dtype <= TT_I64) {
    load_i64(reinterpret_cast<int64_t*>(key), x, stride, n, dtype);
    for (int64_t i = 0; i < n; i++) key[i] ^= uint64_t(1) << 63;
  } else {
    if (dtype == TT_F64) {
      load_raw8(wide, x, stride, n, dtype);
    } else {
      load_f32(f, x, stride, n, dtype);
      for (int64_t i = 0; i < n; i++) wide[i] = double(f[i]);
    }
    for (int64_t i = 0; i < n; i++) key[i] = float_key(bit_cast<uint64_t>(wide[i]));
  }
}

// Keeps the first `room` of the items taken so far, in order.
struct Insertion {
  SortItem item[kSortFew];
  int64_t n = 0;
  TT_INLINE void take(uint64_t key, int64_t index, int64_t room) {
    if (n == room && key >= item[n - 1].key) return;
    int64_t i = n < room ? n++ : n - 1;
    for (; i > 0 && item[i - 1].key > key; i--) item[i] = item[i - 1];
    item[i] = {key, index};
  }
};

constexpr int32_t kMaxDigitBits = 11;

// One stable counting sort of a into b by bits [shift, shift + bits) of the keys.
TT_NOINLINE void radix_pass(const SortItem* a, SortItem* b, int64_t n, int32_t shift,
                            int32_t bits) {
  int64_t count[1 << kMaxDigitBits], at = 0;
  const int64_t digits = int64_t(1) << bits;
  memset(count, 0, size_t(digits) * sizeof *count);
  for (int64_t i = 0; i < n; i++) count[a[i].key >> shift & uint64_t(digits - 1)]++;
  for (int64_t v = 0; v < digits; v++) {
    const int64_t here = count[v];
    count[v] = at;
    at += here;
  }
  for (int64_t i = 0; i < n; i++) b[count[a[i].key >> shift & uint64_t(digits - 1)]++] = a[i];
}

// Sorts a, with b as a second buffer, and returns the one that holds the result. Only bits that
// differ between keys are sorted by.
TT_NOINLINE const SortItem* radix_sort(SortItem* a, SortItem* b, int64_t n) {
  uint64_t varies = 0;
  for (int64_t i = 1; i < n; i++) varies |= a[i].key ^ a[0].key;
  if (!varies) return a;
  int32_t shift = trailing_zeros(varies);
  int32_t width = 64 - leading_zeros(varies) - shift;
  const int32_t max_bits = n < 1024 ? 8 : kMaxDigitBits;
  const int32_t passes = ceil_div(width, max_bits);
  for (int32_t left = passes; left > 0; left--) {
    const int32_t bits = ceil_div(width, left);
    radix_pass(a, b, n, shift, bits);
    shift += bits;
    width -= bits;
    SortItem* const t = a;
    a = b;
    b = t;
  }
  return a;
}

// Makes keys of integers start at 0: those of both signs would differ in all bits.
TT_NOINLINE void lower_keys(SortItem* item, int64_t n) {
  uint64_t lowest = ~uint64_t(0);
  for (int64_t i = 0; i < n; i++) {
    lowest = item[i].key < lowest ? item[i].key : lowest;
    TT_SCALAR_LOOP;
  }
  for (int64_t i = 0; i < n; i++) {
    item[i].key -= lowest;
    TT_SCALAR_LOOP;
  }
}

TT_ISA_END
