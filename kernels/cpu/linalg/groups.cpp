#include "kernels/cpu/simd/isa.h"

#include "kernels/cpu/linalg/groups.h"
#include "kernels/cpu/simd/transpose.h"

TT_ENTRY_BEGIN

#if TT_VEC_BYTES > 16
void read_group(void* room, const double* from, int64_t count) noexcept {
  transpose<uint64_t>(static_cast<char*>(room), int64_t(sizeof(F)),
                      reinterpret_cast<const char*>(from), count * 8, count, L);
}
void write_group(double* to, const void* room, int64_t count) noexcept {
  transpose<uint64_t>(reinterpret_cast<char*>(to), count * 8, static_cast<const char*>(room),
                      int64_t(sizeof(F)), L, count);
}
void read_group(void* room, const float* from, int64_t count) noexcept {
  F* const numbers = static_cast<F*>(room);
  float tile[L * L];
  int64_t at = 0;
  for (; at + L <= count; at += L) {
    transpose_tile<uint32_t, L>(reinterpret_cast<char*>(tile), L * 4,
                                reinterpret_cast<const char*>(from + at), count * 4);
    for (int64_t i = 0; i < L; i++) numbers[at + i] = load_as_double(tile + i * L);
  }
  for (; at < count; at++) {
    for (int64_t lane = 0; lane < L; lane++) tile[lane] = from[lane * count + at];
    numbers[at] = load_as_double(tile);
  }
}
void write_group(float* to, const void* room, int64_t count) noexcept {
  const F* const numbers = static_cast<const F*>(room);
  float tile[L * L];
  int64_t at = 0;
  for (; at + L <= count; at += L) {
    for (int64_t i = 0; i < L; i++) store_as_float(tile + i * L, numbers[at + i]);
    transpose_tile<uint32_t, L>(reinterpret_cast<char*>(to + at), count * 4,
                                reinterpret_cast<const char*>(tile), L * 4);
  }
  for (; at < count; at++) {
    store_as_float(tile, numbers[at]);
    for (int64_t lane = 0; lane < L; lane++) to[lane * count + at] = tile[lane];
  }
}
#endif

void convert_floats(double* to, const float* from, int64_t n) noexcept {
  for (int64_t i = 0; i < n; i++) to[i] = double(from[i]);
}
void convert_doubles(float* to, const double* from, int64_t n) noexcept {
  for (int64_t i = 0; i < n; i++) to[i] = float(from[i]);
}

TT_ENTRY_END
