// cumprod along any dimension of a contiguous array.
#include "cpu/rows.h"

#include "cpu/rows_vec.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

// Stored as V, multiplied as A: products of float32 may pass through what float32 cannot hold, as in PyTorch.
template <class V, class A> TT_INLINE A times(A a, V v) { return a * A(v); }
template <> TT_INLINE uint64_t times(uint64_t a, int64_t v) { return a * uint64_t(v); }
template <class R> TT_INLINE C128 times_complex(C128 a, Complex<R> v) {
  return {a.re * double(v.re) - a.im * double(v.im), a.re * double(v.im) + a.im * double(v.re)};
}
template <> TT_INLINE C128 times(C128 a, C64 v) { return times_complex(a, v); }
template <> TT_INLINE C128 times(C128 a, C128 v) { return times_complex(a, v); }
template <class A> constexpr A kOne = A(1);
template <> constexpr C128 kOne<C128> = {1, 0};
template <class V, class A> TT_INLINE V rounded(A a) { return V(a); }
template <> TT_INLINE C64 rounded(C128 a) { return {float(a.re), float(a.im)}; }
template <class V> TT_INLINE void store_values(char* p, const V* v, int64_t n, int32_t dtype) {
  if constexpr (sizeof(V) == 4) store_f32(p, kItemSize[dtype], v, n, dtype);
  else __builtin_memcpy(p, v, size_t(n) * sizeof(V));
}

// ---- chunks ----

// How stage 2 goes on from the product before a chunk: stage 1 has done it; the product's size does not change; every
// product on the way is a normal number.
enum How : int64_t { kDone, kStuck, kNormal };

// The factors of a chunk, and after stage 1 the product before them.
template <class A> struct Part {
  A product;
  double low, high;       // a product of 1 keeps between these sizes; low is 0 where that is not known
  double least, largest;  // sizes of the factors and of 1; largest is NaN if one of them may be
  int64_t how;
};
static_assert(sizeof(Part<double>) == kCumprodPart && sizeof(Part<uint64_t>) == kCumprodPart);

// Sizes of products that are normal numbers for certain, whatever they were rounded to on the way.
constexpr double kSmall = 0x1p-1000, kLarge = 0x1p1000;
TT_INLINE double smaller(double a, double b) { return a < b ? a : b; }
TT_INLINE double larger(double a, double b) { return a > b ? a : b; }

// A block: kDeep x kWays rows.
constexpr int64_t kWays = 16, kDeep = 8, kProductBlock = 2048;
struct Group {
  alignas(64) double product[kWays], least[kWays], largest[kWays];
};
TT_INLINE Vec<double> doubles(const double* p) { return load(p); }
TT_INLINE Vec<double> doubles(const float* p) {
  typename Halves<float, kLanes<float>>::Half v;
  __builtin_memcpy(&v, p, sizeof v);
#if defined(__AVX2__) && !defined(__AVX512F__)
  return Vec<double>(_mm256_cvtps_pd(__m128(v)));  // gcc 12 converts halves one by one
#else
  return __builtin_convertvector(v, Vec<double>);
#endif
}
TT_INLINE Vec<double> sizes(Vec<double> x) { return (Vec<double>)((Vec<int64_t>)x & INT64_MAX); }
template <class V> TT_INLINE void multiply(Group* g, const V* v, int64_t step) {
  constexpr int64_t kN = kLanes<double>;
  for (int64_t l = 0; l < kWays; l += kN) {
    Vec<double> product = doubles(v + l), least = sizes(product), largest = least;
#pragma GCC unroll 8
    for (int64_t i = 1; i < kDeep; i++) {
      const Vec<double> x = doubles(v + i * step + l), size = sizes(x);
      product *= x, least = vmin(size, least), largest = vmax(size, largest);
    }
    store(g->product + l, product), store(g->least + l, least), store(g->largest + l, largest);
  }
}
TT_INLINE void halve(Group* g, int64_t n) {
  for (int64_t l = 0; l < n; l++) {
    g->product[l] *= g->product[l + n];
    g->least[l] = smaller(g->least[l], g->least[l + n]), g->largest[l] = larger(g->largest[l], g->largest[l + n]);
  }
}

// After a block whose factors have the product `by` and sizes from least to largest.
TT_INLINE void add_block(Part<double>* p, double by, double least, double largest) {
  const double before = __builtin_fabs(p->product);
  p->least = smaller(p->least, least), p->largest = largest > p->largest ? largest : p->largest;
  double low = smaller(least, 1), high = larger(largest, 1);
  for (int64_t n = 1; n < kDeep * kWays; n *= 2) low *= low, high *= high;
  p->low = smaller(p->low, smaller(low, before * low));
  p->high = larger(p->high, larger(high, before * high));
  p->product *= by;
  if (by != by) p->largest = by;
  const double size = __builtin_fabs(p->product);
  if (!(size >= kSmall && size <= kLarge)) p->low = 0, p->product = __builtin_copysign(1.0, p->product);
}

// A block of n columns: n groups at a time, whose lanes belong to the columns by turns.
template <class V> TT_NOINLINE void take_block(Part<double>* parts, const V* v, int64_t n) {
  double product[kNarrowProducts], least[kNarrowProducts], largest[kNarrowProducts];
  for (int64_t j = 0; j < n; j++) product[j] = least[j] = largest[j] = 1;
  for (int64_t g = 0, j = 0; g < n; g++) {
    Group lanes;
    multiply(&lanes, v + g * kWays, n * kWays);
    int64_t live = kWays;
    for (; live > n && live / 2 % n == 0; live /= 2) halve(&lanes, live / 2);
    for (int64_t l = 0; l < live; l++) {
      product[j] *= lanes.product[l];
      least[j] = smaller(least[j], lanes.least[l]), largest[j] = larger(largest[j], lanes.largest[l]);
      j = j + 1 == n ? 0 : j + 1;
    }
  }
  for (int64_t j = 0; j < n; j++) add_block(parts + j, product[j], least[j], largest[j]);
}
TT_NOINLINE void take_block(Part<uint64_t>* parts, const int64_t* v, int64_t n) {
  for (int64_t g = 0, j = 0; g < n; g++) {
    uint64_t lane[kWays];
    for (int64_t l = 0; l < kWays; l++) lane[l] = 1;
    for (int64_t i = 0; i < kDeep; i++)
      for (int64_t l = 0; l < kWays; l++) lane[l] *= uint64_t(v[(i * n + g) * kWays + l]);
    for (int64_t l = 0; l < kWays; l++) {
      parts[j].product *= lane[l];
      j = j + 1 == n ? 0 : j + 1;
    }
  }
}

// Moves the product over a chunk: how stage 2 is to do it; kDone if it has to be seen factor by factor.
TT_INLINE How pass(const Part<uint64_t>& p, uint64_t* product) {
  *product *= p.product;
  return kNormal;
}
TT_INLINE How pass(const Part<double>& p, double* product) {
  const double size = __builtin_fabs(*product);
  if (size * p.low >= kSmall && size * p.high <= kLarge) {
    *product *= p.product;
    return kNormal;
  }
  if (size != size) return kStuck;
  if (size * p.least != size || size * p.largest != size) return kDone;
  if (__builtin_signbit(p.product)) *product = -*product;
  return kStuck;
}

// ---- factors ----

// Products of n factors, `step` apart, in place.
template <class V, class A> TT_INLINE A go_on(A product, V* v, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    product = times(product, v[i * step]);
    v[i * step] = rounded<V>(product);
  }
  return product;
}
// The same if all are normal numbers: runs by themselves first, so that they do not wait for each other.
template <class V, class A> TT_INLINE A go_on_in_runs(A product, V* v, int64_t step, int64_t n) {
  int64_t i = 0;
  for (; i + kWays <= n; i += kWays) {
    A run[kWays], part = kOne<A>;
#pragma GCC unroll 16
    for (int64_t k = 0; k < kWays; k++) run[k] = part = times(part, v[(i + k) * step]);
#pragma GCC unroll 16
    for (int64_t k = 0; k < kWays; k++) v[(i + k) * step] = rounded<V>(product * run[k]);
    product *= part;
  }
  return go_on(product, v + i * step, step, n - i);
}
// Side by side: in runs of four, each a vector.
typedef double D4 __attribute__((vector_size(32)));
TT_INLINE D4 four(const double* p) {
  D4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
TT_INLINE void put_four(double* p, D4 v) { __builtin_memcpy(p, &v, sizeof v); }
TT_INLINE D4 four(const float* p) {
#if defined(__AVX2__)
  return D4(_mm256_cvtps_pd(_mm_loadu_ps(p)));
#else
  return D4{p[0], p[1], p[2], p[3]};
#endif
}
TT_INLINE void put_four(float* p, D4 v) {
#if defined(__AVX2__)
  _mm_storeu_ps(p, _mm256_cvtpd_ps(__m256d(v)));
#else
  for (int k = 0; k < 4; k++) p[k] = float(v[k]);
#endif
}
template <class V> TT_INLINE double go_on_in_fours(double product, V* v, int64_t n) {
  const D4 one = {1, 1, 1, 1};
  D4 before = one * product;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    D4 run = four(v + i);
    run *= __builtin_shufflevector(run, one, 4, 0, 1, 2);
    run *= __builtin_shufflevector(run, one, 4, 5, 0, 1);
    put_four(v + i, run * before);
    before *= __builtin_shufflevector(run, run, 3, 3, 3, 3);
  }
  return go_on(before[0], v + i, 1, n - i);
}
// The same if the size does not change.
TT_INLINE uint32_t bits_of(float x) { return bit_cast<uint32_t>(x); }
TT_INLINE uint64_t bits_of(double x) { return bit_cast<uint64_t>(x); }
template <class V> TT_INLINE double go_on_stuck(double product, V* v, int64_t step, int64_t n) {
  const V size = V(__builtin_fabs(product));
  const auto sign = decltype(bits_of(size))(size == size ? bits_of(V(-0.0)) : 0);
  auto minus = bits_of(V(product)) & bits_of(V(-0.0));
  for (int64_t i = 0; i < n; i++) {
    minus ^= bits_of(v[i * step]) & sign;
    v[i * step] = bit_cast<V>(bits_of(size) | minus);
  }
  return minus ? -__builtin_fabs(product) : __builtin_fabs(product);
}

template <class V, class A> struct Cumprod {
  static constexpr bool kInteger = V(0.5) == V(0);
  const CumprodPlan& p;
  const int64_t item, narrow;  // narrow: 0, or that many columns, which lie side by side
  int64_t tile, chunk, at, steps, n;
  alignas(64) V v[kProductBlock];

  explicit Cumprod(const CumprodPlan& plan)
      : p(plan), item(kItemSize[plan.dtype]), narrow(plan.inner < kNarrowProducts ? plan.inner : 0) {}

  // A tile's chunk: n columns from byte `at` on.
  void enter(int64_t t, int64_t c) {
    const int64_t column = t % p.n_tiles * kRowTile, first = c * p.chunk;
    tile = t, chunk = c;
    n = p.inner - column < kRowTile ? p.inner - column : kRowTile;
    steps = p.dim - first < p.chunk ? p.dim - first : p.chunk;
    at = ((t / p.n_tiles * p.dim + first) * p.inner + column) * item;
  }
  Part<A>* parts() const { return reinterpret_cast<Part<A>*>(p.parts) + (tile * p.n_chunks + chunk) * p.inner; }

  // Narrow rows block by block: f(rows). Runs of kWays rows lie within the blocks of take().
  template <class F> TT_INLINE void for_rows(const F& f) {
    const int64_t most = kProductBlock / 2 / narrow / kWays * kWays;
    for (int64_t i = 0; i < steps; i += most) {
      const int64_t rows = steps - i < most ? steps - i : most;
      const int64_t byte = at + i * narrow * item;
      load_run(v, p.in + byte, item, rows * narrow, p.dtype);
      f(rows);
      store_values(p.out + byte, v, rows * narrow, p.dtype);
    }
  }

  // Factor by factor.
  TT_NOINLINE void walk(A* product) {
    if (narrow)
      return for_rows([&](int64_t rows) {
        for (int64_t j = 0; j < narrow; j++) product[j] = go_on(product[j], v + j, narrow, rows);
      });
    for (int64_t i = 0; i < steps; i++) {
      const int64_t byte = at + i * p.inner * item;
      load_run(v, p.in + byte, item, n, p.dtype);
      for (int64_t j = 0; j < n; j++) {
        product[j] = times(product[j], v[j]);
        v[j] = rounded<V>(product[j]);
      }
      store_values(p.out + byte, v, n, p.dtype);
    }
  }

  // Stage 0 of a chunk.
  TT_NOINLINE void take() {
    Part<A>* const part = parts();
    for (int64_t j = 0; j < n; j++) part[j] = {kOne<A>, 1, 1, 1, 1, kNormal};
    constexpr int64_t kBlock = kDeep * kWays;
    const int64_t most = kProductBlock / n / kBlock * kBlock;
    for (int64_t i = 0; i < steps; i += most) {
      const int64_t rows = steps - i < most ? steps - i : most;
      load_run(v, p.in + at + i * n * item, item, rows * n, p.dtype);
      for (int64_t k = rows * n; k < most * n; k++) v[k] = V(1);
      for (int64_t k = 0; k < rows; k += kBlock) take_block(part, v + k * n, n);
    }
  }

  // Of the chunk that was entered, from the product before it on: leaves the starts for stage 2, or does it.
  TT_INLINE void find_start(A* product) {
    Part<A>* const part = parts();
    A next[kNarrowProducts];
    bool known = true;
    for (int64_t j = 0; j < n; j++) {
      next[j] = product[j];
      part[j].how = pass(part[j], &next[j]), part[j].product = product[j];
      known &= part[j].how != kDone;
    }
    if (known) {
      for (int64_t j = 0; j < n; j++) product[j] = next[j];
      return;
    }
    walk(product);
    for (int64_t j = 0; j < n; j++) part[j].how = kDone;
  }
  // Stage 1; alone: all three stages, chunk by chunk. Products of integers are the same anyway.
  TT_NOINLINE void find_starts(int64_t t) {
    A product[kNarrowProducts];
    for (int64_t j = 0; j < kNarrowProducts; j++) product[j] = kOne<A>;
    for (int64_t c = 0; c < p.n_chunks; c++) {
      enter(t, c);
      if (kInteger && p.alone) {
        walk(product);
        continue;
      }
      if (p.alone) take();
      find_start(product);
      if (p.alone) multiply_on();
    }
  }

  // Stage 2 of a chunk, or a unit that is not cut.
  TT_NOINLINE void multiply_on() {
    A product[kRowTile];
    const Part<A>* part = p.n_chunks > 1 ? parts() : nullptr;
    if (part && part[0].how == kDone) return;
    for (int64_t j = 0; j < n; j++) product[j] = part ? part[j].product : kOne<A>;
    if (!part) return walk(product);
    if constexpr (sizeof(A) == 8)
      for_rows([&](int64_t rows) {
        for (int64_t j = 0; j < n; j++) product[j] = leap(part[j].how, product[j], v + j, rows);
      });
  }
  TT_INLINE A leap(int64_t how, A product, V* column, int64_t rows) {
    if constexpr (!kInteger) {
      if (how == kStuck) return go_on_stuck(product, column, narrow, rows);
      if (narrow == 1) return go_on_in_fours(product, column, rows);
    }
    return go_on_in_runs(product, column, narrow, rows);
  }
};

template <class V, class A> TT_NOINLINE int32_t cumprods(const CumprodPlan& p, int64_t begin, int64_t end) {
  Cumprod<V, A> scan(p);
  for (int64_t u = begin; u < end; u++) {
    if constexpr (sizeof(A) == 8) {
      if (p.run.stage == 1 || p.alone) {
        scan.find_starts(u);
        continue;
      }
    }
    scan.enter(u / p.n_chunks, u % p.n_chunks);
    if constexpr (sizeof(A) == 8) {
      if (p.run.stage == 0) {
        scan.take();
        continue;
      }
    }
    scan.multiply_on();
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cumprod)(const void* plan, int64_t begin, int64_t end) noexcept {
  const CumprodPlan& p = *static_cast<const CumprodPlan*>(plan);
  switch (p.dtype) {
    case TT_F64: return cumprods<double, double>(p, begin, end);
    case TT_I64: return cumprods<int64_t, uint64_t>(p, begin, end);
    case TT_C64: return cumprods<C64, C128>(p, begin, end);
    case TT_C128: return cumprods<C128, C128>(p, begin, end);
    default: return cumprods<float, double>(p, begin, end);
  }
}

TT_ENTRY_END
