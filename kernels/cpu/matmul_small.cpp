// Products up to kMatmulSmallMax, straight from the operands: one unit is one product of the batch.
#include "matmul_finish.h"
#include "matmul_walk.h"

TT_ISA_BEGIN

#if defined(__AVX512F__)
constexpr int kMaxMr = 8;
constexpr bool kAlwaysPart = true;  // a masked load costs no more than a whole one
#elif defined(__AVX2__)
constexpr int kMaxMr = 6;
constexpr bool kAlwaysPart = false;
#else
constexpr int kMaxMr = 4;
constexpr bool kAlwaysPart = false;
#endif
constexpr int kNv = 2;

template <class T>
struct SmallArgs {
  int64_t k;
  const T* a;
  int64_t a_row, a_col;
  const T* b;
  int64_t b_row;
  T* out;
  int64_t ld;
  int last;  // lanes of the last vector
};

// out = a (kMr rows) times b (kVecs vectors of columns, the last one of s.last lanes).
template <class T, int kMr, int kVecs, bool kPart>
void small_micro(const SmallArgs<T>& s) {
  constexpr int kL = kLanes<T>;
  const Part<T> part(s.last);
  Vec<T> acc[kMr][kVecs];
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) acc[i][v] = Vec<T>{};
  }
  const T *a = s.a, *b = s.b;
  const int64_t a_row = s.a_row, a_col = s.a_col, b_row = s.b_row;
  for (int64_t p = s.k; p > 0; p--, a += a_col, b += b_row) {
    Vec<T> row[kVecs];
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) row[v] = kPart && v == kVecs - 1 ? load(b + v * kL, part) : load(b + v * kL);
    TT_UNROLL
    for (int i = 0; i < kMr; i++) {
      const Vec<T> x = splat(a[i * a_row]);
      TT_UNROLL
      for (int v = 0; v < kVecs; v++) acc[i][v] = fma(x, row[v], acc[i][v]);
    }
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) {
      T* to = s.out + i * s.ld + v * kL;
      if (kPart && v == kVecs - 1)
        store(to, acc[i][v], part);
      else
        store(to, acc[i][v]);
    }
  }
}

template <class T>
using SmallMicro = void (*)(const SmallArgs<T>&);

template <class T>
TT_INLINE SmallMicro<T> small_micro_of(int rows, int vecs, bool part) {
#define TT_ROW(r)                                                                                                     \
  {{small_micro<T, (r <= kMaxMr ? r : kMaxMr), 1, kAlwaysPart>, small_micro<T, (r <= kMaxMr ? r : kMaxMr), 1, true>}, \
   {small_micro<T, (r <= kMaxMr ? r : kMaxMr), 2, kAlwaysPart>, small_micro<T, (r <= kMaxMr ? r : kMaxMr), 2, true>}}
  static constexpr SmallMicro<T> kTable[8][kNv][2] = {TT_ROW(1), TT_ROW(2), TT_ROW(3), TT_ROW(4),
                                                      TT_ROW(5), TT_ROW(6), TT_ROW(7), TT_ROW(8)};
#undef TT_ROW
  return kTable[rows - 1][vecs - 1][part];
}

template <class T>
void small_product(const MatmulPlan& p, const char* a, const char* b, char* c, const char* d) {
  constexpr int kL = kLanes<T>, kNr = kNv * kL;
  alignas(64) T packed[kMatmulSmallMax * kNr];
  alignas(64) T tile[kMaxMr * kNr];
  const bool direct = !p.scaled && !p.d;
  const int m = int(p.m), n = int(p.n), panels = (m + kMaxMr - 1) / kMaxMr, low = m / panels, high = m - low * panels;
  SmallArgs<T> s;
  s.k = p.k, s.a_row = p.a_row, s.a_col = p.a_col;
  s.ld = direct ? p.c_row : kNr;
  for (int j = 0; j < n; j += kNr) {
    const int w = n - j < kNr ? n - j : kNr, vecs = (w + kL - 1) / kL;
    s.b = reinterpret_cast<const T*>(b) + j * p.b_col, s.b_row = p.b_row;
    s.last = w - (vecs - 1) * kL;
    bool part = s.last != kL;
    if (p.b_col != 1) {
      pack_panel(s.b, p.b_col, p.b_row, w, vecs * kL, p.k, packed);
      s.b = packed, s.b_row = vecs * kL;
    }
    for (int at = 0, i = 0; at < panels; at++) {
      const int h = at < high ? low + 1 : low;
      s.a = reinterpret_cast<const T*>(a) + i * p.a_row;
      s.out = direct ? reinterpret_cast<T*>(c) + i * p.c_row + j : tile;
      small_micro_of<T>(h, vecs, part)(s);
      if (!direct) finish<T, T>(p, c, d, i, j, h, w, tile, kNr, true);
      i += h;
    }
  }
}

template <class T>
void small_units(const MatmulPlan& p, int64_t begin, int64_t end) {
  BatchWalk w(p, begin);
  for (;;) {
    small_product<T>(p, w.a, w.b, w.c, w.d);
    if (++begin >= end) return;
    w.next();
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(matmul_small)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  if (begin >= end) return TT_OK;
  if (p.dtype == TT_F32)
    small_units<float>(p, begin, end);
  else
    small_units<double>(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
