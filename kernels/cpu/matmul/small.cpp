// The small path: m, n and k up to kMatmulSmallMax, straight from the operands; only a b whose rows
// are not contiguous is packed.
#include "kernels/cpu/matmul/epilogue.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/walk.h"
#include "kernels/cpu/simd/tile_sums.h"

TT_ISA_BEGIN

constexpr int kMaxMr = kSmallTileRows;
constexpr bool kAlwaysPart = kCheapParts;
constexpr int kNv = 2;

// A micro-kernel call, strides in bytes. a: (kMr, k), b: (k, columns), out: (kMr, columns).
struct SmallArgs {
  int64_t k;
  const char* a;
  int64_t a_row, a_col;
  const char* b;
  int64_t b_row;
  char* out;
  int64_t ld;
  int last;  // columns in the last vector
};

// acc = a·b for kMr rows and kVecs vectors of columns, of which the last is `part` if kPart.
template <class Unit, bool kPart, class T, int kMr, int kVecs>
TT_INLINE void small_sums(const SmallArgs& s, const Part<T>& part, Vec<T> (&acc)[kMr][kVecs]) {
  constexpr int kL = kLanes<T>;
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) acc[i][v] = Vec<T>{};
  }
  const char *a = s.a, *b = s.b;
  const int64_t a_row = s.a_row, a_col = s.a_col, b_row = s.b_row;
  for (int64_t p = s.k; p > 0; p--, a += a_col, b += b_row) {
    const T* b_at = reinterpret_cast<const T*>(b);
    Vec<T> row[kVecs];
    TT_UNROLL
    for (int v = 0; v < kVecs; v++)
      row[v] = kPart && v == kVecs - 1 ? load(b_at + v * kL, part) : load(b_at + v * kL);
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      const auto x = Unit::factor_at(reinterpret_cast<const T*>(a + i * a_row));
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = Unit::add_product(x, row[v], acc[i][v]);
    }
  }
}

// out = a·b for kMr rows and kVecs vectors of columns, of which the last has s.last columns if
// kPart.
template <class T, int kMr, int kVecs, bool kPart> void small_micro(const SmallArgs& s) {
  constexpr int kL = kLanes<T>;
  const Part<T> part(s.last);
  const int64_t ld = s.ld;
  char* out = s.out;
  Vec<T> acc[kMr][kVecs];
  sum_tile(acc, [&s, part](auto unit, auto& sums) TT_INLINE_BODY {
    small_sums<decltype(unit), kPart>(s, part, sums);
    return true;
  });
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    T* to = reinterpret_cast<T*>(out + i * ld);
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      if (kPart && v == kVecs - 1) store(to + v * kL, acc[i][v], part);
      else store(to + v * kL, acc[i][v]);
    }
  }
}

#if TT_VEC_BYTES == 64
// The same for at most half a vector of columns, in half vectors: twice as fast on cores that
// execute a whole vector as two halves.
template <class T, int kMr> void small_micro_half(const SmallArgs& s) {
  const Part<T> part(s.last);
  HalfVec<T> acc[kMr];
  TT_UNROLL
  for (int i = 0; i < kMr; i++) acc[i] = HalfVec<T>{};
  const char *a = s.a, *b = s.b;
  const int64_t a_row = s.a_row, a_col = s.a_col, b_row = s.b_row, ld = s.ld;
  char* out = s.out;
  for (int64_t p = s.k; p > 0; p--, a += a_col, b += b_row) {
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      const T x = *reinterpret_cast<const T*>(a + i * a_row);
      acc[i] = fma_half(x, load_half(reinterpret_cast<const T*>(b), part), acc[i]);
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) store_half(reinterpret_cast<T*>(out + i * ld), acc[i], part);
}
#endif

using SmallMicro = void (*)(const SmallArgs&);

// The micro-kernel for `rows` rows and `vecs` vectors, of which the last has `last` columns.
template <class T> TT_INLINE SmallMicro small_micro_of(int rows, int vecs, int last) {
#if TT_VEC_BYTES == 64
  static constexpr SmallMicro kHalf[kMaxMr] = {small_micro_half<T, 1>, small_micro_half<T, 2>,
                                               small_micro_half<T, 3>, small_micro_half<T, 4>,
                                               small_micro_half<T, 5>, small_micro_half<T, 6>,
                                               small_micro_half<T, 7>, small_micro_half<T, 8>};
  if (vecs == 1 && last <= kLanes<T> / 2) return kHalf[rows - 1];
#endif
#define TT_ROW(r)                                                 \
  {                                                               \
    {small_micro<T, (r <= kMaxMr ? r : kMaxMr), 1, kAlwaysPart>,  \
     small_micro<T, (r <= kMaxMr ? r : kMaxMr), 1, true>},        \
    {                                                             \
      small_micro<T, (r <= kMaxMr ? r : kMaxMr), 2, kAlwaysPart>, \
          small_micro<T, (r <= kMaxMr ? r : kMaxMr), 2, true>     \
    }                                                             \
  }
  static constexpr SmallMicro kTable[8][kNv][2] = {TT_ROW(1), TT_ROW(2), TT_ROW(3), TT_ROW(4),
                                                   TT_ROW(5), TT_ROW(6), TT_ROW(7), TT_ROW(8)};
#undef TT_ROW
  return kTable[rows - 1][vecs - 1][last != kLanes<T>];
}

// The first positions of k, whose products are one chain; those of the rest are another one, since
// the rounding errors of two are smaller.
template <class T> TT_INLINE int64_t small_chain(int64_t k) {
  return sizeof(T) == 4 && k > kMatmulSmallChain ? k / 2 : k;
}

// Columns [begin, end) of one matrix.
template <class T> void small_matmul(const MatmulPlan& p, const char* a, const char* b, char* c,
                                     const char* d, int begin, int end) {
  constexpr int kL = kLanes<T>;
  constexpr int kNr = kNv * kL;
  alignas(64) T packed[kMatmulSmallDepth * kNr];
  alignas(64) T tile[kMaxMr * kNr];
  const bool direct = !p.scaled && !p.d;
  const int m = int(p.m);
  const int panels = ceil_div(m, kMaxMr);
  const int low = m / panels;
  const int high = m - low * panels;
  constexpr int64_t kSize = sizeof(T);
  const int64_t chain = small_chain<T>(p.k);
  SmallArgs s;
  s.a_row = p.a_row * kSize;
  s.a_col = p.a_col * kSize;
  for (int j = begin; j < end; j += kNr) {
    const int w = min(end - j, kNr);
    const int vecs = ceil_div(w, kL);
    s.b = b + j * p.b_col * kSize;
    s.b_row = p.b_row * kSize;
    s.last = w - (vecs - 1) * kL;
    if (p.b_col != 1) {
      pack_panel(reinterpret_cast<const T*>(s.b), p.b_col, p.b_row, w, vecs * kL, p.k, packed);
      s.b = reinterpret_cast<const char*>(packed);
      s.b_row = vecs * kL * kSize;
    }
    const char* const b_panel = s.b;
    for (int at = 0, i = 0; at < panels; at++) {
      const int h = at < high ? low + 1 : low;
      const SmallMicro micro = small_micro_of<T>(h, vecs, s.last);
      s.k = chain;
      s.a = a + i * s.a_row;
      s.b = b_panel;
      s.out = direct ? c + i * p.c_row * kSize + j * kSize : reinterpret_cast<char*>(tile);
      s.ld = direct ? p.c_row * kSize : kNr * kSize;
      micro(s);
      if (!direct) matmul_finish(p, c, d, i, j, h, w, tile, kNr, true);
      if (chain < p.k) {
        s.k = p.k - chain;
        s.a += chain * s.a_col;
        s.b += chain * s.b_row;
        s.out = reinterpret_cast<char*>(tile);
        s.ld = kNr * kSize;
        micro(s);
        matmul_finish(p, c, d, i, j, h, w, tile, kNr, false);
      }
      i += h;
    }
  }
}

// Matrices of one tile each.
template <class T> void tiny_units(const MatmulPlan& p, int64_t begin, int64_t end) {
  constexpr int kL = kLanes<T>;
  constexpr int64_t kSize = sizeof(T);
  const int n = int(p.n);
  const int vecs = ceil_div(n, kL);
  SmallArgs s = {
      p.k,     nullptr,         p.a_row * kSize,    p.a_col * kSize, nullptr, p.b_row * kSize,
      nullptr, p.c_row * kSize, n - (vecs - 1) * kL};
  const SmallMicro micro = small_micro_of<T>(int(p.m), vecs, s.last);
  for (BatchWalk w(p, begin);; w.next()) {
    s.a = w.a;
    s.b = w.b;
    s.out = w.c;
    micro(s);
    if (++begin >= end) return;
  }
}

template <class T> void small_units(const MatmulPlan& p, int64_t begin, int64_t end) {
  constexpr int kCols = kMatmulSmallCols;
  const int n = int(p.n);
  const bool one_chain = small_chain<T>(p.k) == p.k;
  if (p.m <= kMaxMr && n <= kNv * kLanes<T> && p.b_col == 1 && !p.scaled && !p.d && one_chain)
    return tiny_units<T>(p, begin, end);
  if (n <= kCols) {
    for (BatchWalk w(p, begin);; w.next()) {
      small_matmul<T>(p, w.a, w.b, w.c, w.d, 0, n);
      if (++begin >= end) return;
    }
  }
  const int64_t units_per_matrix = matmul_ceil(n, kCols);
  BatchWalk w(p, begin / units_per_matrix);
  for (int j = int(begin % units_per_matrix) * kCols; begin < end; begin++) {
    small_matmul<T>(p, w.a, w.b, w.c, w.d, j, min(j + kCols, n));
    if ((j += kCols) >= n) {
      j = 0;
      w.next();
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(matmul_small)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  if (begin >= end) return TT_OK;
  if (is_dtype(p.dtype, TT_F64)) small_units<double>(p, begin, end);
  else small_units<float>(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
