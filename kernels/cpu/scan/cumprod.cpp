// cumprod along any dimension of a contiguous array.
//   in, out: (outer, dim, inner); parts: [tiles][n_chunks][inner] ProductPart
//
// Rounding must not depend on how the work is cut, so chunks cannot simply be multiplied and
// combined: that is only right while every product on the way is a normal number. So stage 0
// multiplies each chunk and keeps bounds of the sizes of its factors and products. Stage 1 goes
// over the chunks in order; where the bounds prove that nothing overflows or underflows, it takes
// the chunk's product, else it computes the chunk's results at once (kDone). Stage 2 computes the
// rest.
#include "kernels/cpu/scan/product_lanes.h"
#include "kernels/cpu/simd/load.h"

TT_ISA_BEGIN

template <class V> TT_INLINE void store_values(char* p, const V* v, int64_t n, int32_t dtype) {
  if constexpr (sizeof(V) == 4) store_f32(p, kItemSize[dtype], v, n, dtype);
  else memcpy(p, v, size_t(n) * sizeof(V));
}

// ---- chunks ----

// What stage 2 does with a chunk, given the product before it. kDone: nothing, stage 1 has done it.
// kStuck: the absolute value stays the same (0, infinity, nan). kNormal: every product is normal.
enum How : int64_t { kDone, kStuck, kNormal };

// A column of a chunk: its product; after stage 1, the product before it.
template <class A> struct ProductPart {
  A product;
  double low, high;  // bounds of the products from 1 on; low is 0 if they are not known
  // Bounds of the absolute values of the factors and 1; largest is NaN if a factor may be.
  double smallest, largest;
  int64_t how;
};
// Complex: `how` is kDone if low and high are not known.
template <> struct ProductPart<C128> {
  C128 product;
  double low, high;
  int64_t how;
};
static_assert(sizeof(ProductPart<double>) == kCumprodPart &&
              sizeof(ProductPart<C128>) <= kCumprodPart);
template <class A> constexpr ProductPart<A> kNoFactors = {A(1), 1, 1, 1, 1, kNormal};
template <> constexpr ProductPart<C128> kNoFactors<C128> = {{1, 0}, 1, 1, kNormal};

// A product within these bounds is a normal number, however it was rounded on the way.
constexpr double kSmall = 0x1p-1000, kLarge = 0x1p1000;
TT_INLINE double smaller(double a, double b) { return a < b ? a : b; }
TT_INLINE double larger(double a, double b) { return a > b ? a : b; }
TT_INLINE bool within(double low, double high) { return low >= kSmall && high <= kLarge; }
// Bounds of |z|, within a factor of 2 of each other.
TT_INLINE double lower(C128 z) { return larger(libm::fabs(z.re), libm::fabs(z.im)); }
TT_INLINE double upper(C128 z) { return libm::fabs(z.re) + libm::fabs(z.im); }

// A block is kDeep x kWays rows.
constexpr int64_t kWays = 16;
constexpr int64_t kDeep = kCumprodBlock / kWays;
constexpr int64_t kBuffer = 2048;
struct Group {
  alignas(64) double product[kWays], smallest[kWays], largest[kWays];
};
TT_INLINE Vec<double> doubles(const double* p) { return load(p); }
TT_INLINE Vec<double> doubles(const float* p) { return load_as_double(p); }
TT_INLINE Vec<double> sizes(Vec<double> x) { return (Vec<double>)((Vec<int64_t>)x & INT64_MAX); }
template <class V> TT_INLINE void multiply(Group* g, const V* v, int64_t step) {
  constexpr int64_t kN = kLanes<double>;
  for (int64_t l = 0; l < kWays; l += kN) {
    Vec<double> product = doubles(v + l);
    Vec<double> smallest = sizes(product);
    Vec<double> largest = smallest;
    TT_UNROLL_BY(8)
    for (int64_t i = 1; i < kDeep; i++) {
      const Vec<double> x = doubles(v + i * step + l);
      const Vec<double> size = sizes(x);
      product *= x;
      smallest = vmin(size, smallest);
      largest = vmax(size, largest);
    }
    store(g->product + l, product);
    store(g->smallest + l, smallest);
    store(g->largest + l, largest);
  }
}
TT_INLINE void halve(Group* g, int64_t n) {
  for (int64_t l = 0; l < n; l++) {
    g->product[l] *= g->product[l + n];
    g->smallest[l] = smaller(g->smallest[l], g->smallest[l + n]);
    g->largest[l] = larger(g->largest[l], g->largest[l + n]);
  }
}

// Adds a block to a part: `by` is the product of its factors, whose sizes are in [smallest,
// largest].
TT_INLINE void add_block(ProductPart<double>* p, double by, double smallest, double largest) {
  const double before = libm::fabs(p->product);
  p->smallest = smaller(p->smallest, smallest);
  p->largest = max(largest, p->largest);
  double low = smaller(smallest, 1);
  double high = larger(largest, 1);
  for (int64_t n = 1; n < kDeep * kWays; n *= 2) {
    low *= low;
    high *= high;
  }
  p->low = smaller(p->low, smaller(low, before * low));
  p->high = larger(p->high, larger(high, before * high));
  p->product *= by;
  if (by != by) p->largest = by;
  const double size = libm::fabs(p->product);
  if (!(size >= kSmall && size <= kLarge)) {
    p->low = 0;
    p->product = libm::copysign(1.0, p->product);
  }
}

// Adds a block of n columns to their parts. Lane l of group g belongs to column (g * kWays + l) %
// n.
template <class V> TT_NOINLINE void add_columns(ProductPart<double>* parts, const V* v, int64_t n) {
  double product[kNarrowProducts], smallest[kNarrowProducts], largest[kNarrowProducts];
  for (int64_t j = 0; j < n; j++) product[j] = smallest[j] = largest[j] = 1;
  for (int64_t g = 0, j = 0; g < n; g++) {
    Group lanes;
    multiply(&lanes, v + g * kWays, n * kWays);
    int64_t lanes_left = kWays;
    for (; lanes_left > n && lanes_left / 2 % n == 0; lanes_left /= 2)
      halve(&lanes, lanes_left / 2);
    for (int64_t l = 0; l < lanes_left; l++) {
      product[j] *= lanes.product[l];
      smallest[j] = smaller(smallest[j], lanes.smallest[l]);
      largest[j] = larger(largest[j], lanes.largest[l]);
      j = j + 1 == n ? 0 : j + 1;
    }
  }
  for (int64_t j = 0; j < n; j++) add_block(parts + j, product[j], smallest[j], largest[j]);
}
TT_NOINLINE void add_columns(ProductPart<uint64_t>* parts, const int64_t* v, int64_t n) {
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

// Four products of kDeep complex factors; products of any of the factors are in [low, high].
struct Group4 {
  Z4 product;
  D4 low, high;
};
TT_INLINE Group4 operator*(const Group4& a, const Group4& b) {
  return {a.product * b.product, a.low * b.low, a.high * b.high};
}
template <class R> TT_INLINE Group4 multiply(const Complex<R>* v, int64_t step) {
  Group4 g = {{all(1), all(0)}, all(1), all(1)};
  TT_UNROLL_BY(8)
  for (int64_t i = 0; i < kDeep; i++) {
    const Z4 x = four(v + i * step);
    const D4 re = positive(x.re);
    const D4 im = positive(x.im);
    g.product = i ? g.product * x : x;
    g.low = smaller(larger(re, im), g.low);
    g.high = larger(re + im, g.high);
  }
  for (int64_t k = 1; k < kDeep; k *= 2) {
    g.low *= g.low;
    g.high *= g.high;
  }
  return g;
}
// If a factor is nan, `by` is.
TT_INLINE void add_block(ProductPart<C128>* p, C128 by, double low, double high) {
  p->low = smaller(p->low, lower(p->product) * low);
  p->high = larger(p->high, upper(p->product) * high);
  p->product = times(p->product, by);
  if (!within(low, high) || !within(lower(p->product), upper(p->product))) p->how = kDone;
}
template <class R>
TT_NOINLINE void add_columns(ProductPart<C128>* parts, const Complex<R>* v, int64_t n) {
  C128 product[kNarrowProducts];
  double low[kNarrowProducts], high[kNarrowProducts];
  for (int64_t j = 0; j < n; j++) {
    product[j] = kOne<C128>;
    low[j] = high[j] = 1;
  }
  Group4 lanes[kWays / 4 * kNarrowProducts];  // kWays rows, halved until four are left
  int64_t lanes_left = kWays / 4 * n;
  for (int64_t k = 0; k < lanes_left; k++) lanes[k] = multiply(v + 4 * k, kWays * n);
  for (lanes_left /= 2; lanes_left >= n; lanes_left /= 2)
    for (int64_t k = 0; k < lanes_left; k++) lanes[k] = lanes[k] * lanes[k + lanes_left];
  for (int64_t l = 0, j = 0; l < 4 * n; l++) {
    const Group4& x = lanes[l / 4];
    product[j] = times(product[j], C128{x.product.re[l % 4], x.product.im[l % 4]});
    low[j] *= x.low[l % 4];
    high[j] *= x.high[l % 4];
    j = j + 1 == n ? 0 : j + 1;
  }
  for (int64_t j = 0; j < n; j++) add_block(parts + j, product[j], low[j], high[j]);
}

// What is known without the factors: kStuck if products stay nan, kDone if the factors must be
// multiplied one by one.
template <class A> TT_INLINE How outlook(A) { return kNormal; }
TT_INLINE How outlook(C128 product) {
  if (product.re != product.re && product.im != product.im) return kStuck;
  return within(lower(product), upper(product)) ? kNormal : kDone;
}

// Multiplies *product by a chunk, and returns what stage 2 does with it; kDone: the bounds prove
// nothing, and the chunk must be computed factor by factor.
TT_INLINE How pass(const ProductPart<uint64_t>& p, uint64_t* product) {
  *product *= p.product;
  return kNormal;
}
TT_INLINE How pass(const ProductPart<double>& p, double* product) {
  const double size = libm::fabs(*product);
  if (size * p.low >= kSmall && size * p.high <= kLarge) {
    *product *= p.product;
    return kNormal;
  }
  if (size != size) return kStuck;
  if (size * p.smallest != size || size * p.largest != size) return kDone;
  if (libm::has_sign(p.product)) *product = -*product;
  return kStuck;
}
TT_INLINE How pass(const ProductPart<C128>& p, C128* product) {
  const How how = outlook(*product);
  if (how != kNormal) return how;
  if (p.how == kDone || !within(lower(*product) * p.low, upper(*product) * p.high)) return kDone;
  *product = times(*product, p.product);
  return kNormal;
}

// ---- runs ----

// go_on() for normal products: runs are multiplied by themselves first, so that they do not wait
// for each other.
template <class V, class A> TT_INLINE A go_on_in_runs(A product, V* v, int64_t step, int64_t n) {
  int64_t i = 0;
  for (; i + kWays <= n; i += kWays) {
    A run[kWays], part = kOne<A>;
    TT_UNROLL_BY(16)
    for (int64_t k = 0; k < kWays; k++) {
      part = times(part, v[(i + k) * step]);
      run[k] = part;
    }
    TT_UNROLL_BY(16)
    for (int64_t k = 0; k < kWays; k++) v[(i + k) * step] = rounded<V>(product * run[k]);
    product *= part;
  }
  return go_on(product, v + i * step, step, n - i);
}
// The same in runs of four, each in a vector.
template <class V> TT_INLINE double go_on_in_fours(double product, V* v, int64_t n) {
  D4 before = all(product);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    D4 run = four(v + i);
    run *= up(run);
    run *= up_two(run);
    put_four(v + i, run * before);
    before *= last(run);
  }
  return go_on(before[0], v + i, 1, n - i);
}
// go_on() if the absolute value does not change: only signs are computed.
template <class V> TT_INLINE double go_on_stuck(double product, V* v, int64_t step, int64_t n) {
  const V size = V(libm::fabs(product));
  const auto sign = decltype(bits_of(size))(size == size ? bits_of(V(-0.0)) : 0);
  auto minus = bits_of(V(product)) & bits_of(V(-0.0));
  for (int64_t i = 0; i < n; i++) {
    minus ^= bits_of(v[i * step]) & sign;
    v[i * step] = bit_cast<V>(bits_of(size) | minus);
  }
  return minus ? -libm::fabs(product) : libm::fabs(product);
}

template <class V, class A> struct Cumprod {
  static constexpr bool kInteger = kIsSame<A, uint64_t>, kComplex = kIsSame<A, C128>;
  const CumprodPlan& p;
  const int64_t item, narrow;  // narrow: the number of columns if they are few, else 0
  int64_t tile, chunk, at, steps, n;
  alignas(64) V v[kBuffer];

  explicit Cumprod(const CumprodPlan& plan)
      : p(plan),
        item(kItemSize[plan.dtype]),
        narrow(plan.inner < kNarrowProducts ? plan.inner : 0) {}

  // Enters chunk c of tile t: n columns from byte `at` on.
  void enter(int64_t t, int64_t c) {
    const int64_t column = t % p.n_tiles * p.width;
    const int64_t first = c * p.chunk;
    tile = t;
    chunk = c;
    n = min(p.inner - column, p.width);
    steps = min(p.dim - first, p.chunk);
    at = ((t / p.n_tiles * p.dim + first) * p.inner + column) * item;
  }
  ProductPart<A>* parts() const {
    return reinterpret_cast<ProductPart<A>*>(p.parts) + (tile * p.n_chunks + chunk) * p.inner;
  }

  // Complex: [blocks][n], the product of the blocks before each block of the chunk.
  C128* blocks() const {
    C128* const first =
        reinterpret_cast<C128*>(p.parts + p.outer * p.n_chunks * p.inner * kCumprodPart);
    return first + (tile * p.n_chunks + chunk) * cumprod_blocks(p.chunk) * p.inner;
  }
  // Whether rows are stored as V and need no conversion.
  bool native() const { return p.dtype == Loads<V>::native; }
  const V* in(int64_t row) const {
    return reinterpret_cast<const V*>(p.in + at + row * p.inner * item);
  }
  V* out(int64_t row) const { return reinterpret_cast<V*>(p.out + at + row * p.inner * item); }

  // Loads narrow rows to v, calls f(rows), stores them. Runs of kWays rows are within blocks of
  // take().
  template <class F> TT_INLINE void for_rows(const F& f) {
    const int64_t block_rows = kBuffer / 2 / narrow / kWays * kWays;
    for (int64_t i = 0; i < steps; i += block_rows) {
      const int64_t rows = min(steps - i, block_rows);
      const int64_t byte = at + i * narrow * item;
      load_run(v, p.in + byte, item, rows * narrow, p.dtype);
      f(rows);
      store_values(p.out + byte, v, rows * narrow, p.dtype);
    }
  }

  // Computes the chunk factor by factor.
  TT_NOINLINE void walk(A* product) {
    if (narrow == 1) return for_rows([&](int64_t rows) { *product = go_on(*product, v, 1, rows); });
    if (narrow)
      return for_rows(
          [&](int64_t rows) { go_on_columns(product, v, v, narrow, rows, narrow, true); });
    const int64_t block_rows = kBuffer / n;
    const int64_t pitch = p.inner * item;
    const bool strips = pitch <= 1024;
    for (int64_t i = 0; i < steps; i += block_rows) {
      const int64_t rows = min(steps - i, block_rows);
      const int64_t byte = at + i * pitch;
      if (native()) {
        go_on_columns(product, in(i), out(i), p.inner, rows, n, strips);
        continue;
      }
      for (int64_t k = 0; k < rows; k++)
        load_run(v + k * n, p.in + byte + k * pitch, item, n, p.dtype);
      go_on_columns(product, v, v, n, rows, n, strips);
      for (int64_t k = 0; k < rows; k++)
        store_values(p.out + byte + k * pitch, v + k * n, n, p.dtype);
    }
  }

  // Stage 0 of a chunk. Complex: stops as soon as a column must be computed factor by factor.
  TT_NOINLINE void take() {
    ProductPart<A>* const part = parts();
    for (int64_t j = 0; j < n; j++) part[j] = kNoFactors<A>;
    const int64_t block_rows = kBuffer / n / kCumprodBlock * kCumprodBlock;
    for (int64_t i = 0; i < steps; i += block_rows) {
      const int64_t rows = min(steps - i, block_rows);
      const V* x = in(i);
      if (!native() || rows < block_rows) {
        load_run(v, p.in + at + i * n * item, item, rows * n, p.dtype);
        for (int64_t k = rows * n; k < block_rows * n; k++) v[k] = rounded<V>(kOne<A>);
        x = v;
      }
      for (int64_t k = 0; k < rows; k += kCumprodBlock) {
        if constexpr (kComplex)
          for (int64_t j = 0; j < n; j++)
            blocks()[(i + k) / kCumprodBlock * n + j] = part[j].product;
        add_columns(part, x + k * n, n);
      }
      for (int64_t j = 0; kComplex && j < n; j++)
        if (part[j].how == kDone) return;
    }
  }

  // Stage 1 of the chunk, given the product before it: leaves the starts for stage 2, or computes
  // the chunk. If the plan has one unit (alone), it first does stage 0, unless that proves nothing.
  TT_INLINE void find_start(A* product) {
    ProductPart<A>* const part = parts();
    A next[kNarrowProducts];
    How how = outlook(product[0]);
    for (int64_t j = 1; j < n; j++)
      if (outlook(product[j]) != how) how = kDone;
    if (how == kNormal && p.alone) take();
    for (int64_t j = 0; how != kDone && j < n; j++) {
      next[j] = product[j];
      const How column = how == kStuck ? how : pass(part[j], &next[j]);
      part[j].how = column;
      part[j].product = product[j];
      if (column == kDone) how = kDone;
    }
    if (how != kDone) {
      for (int64_t j = 0; j < n; j++) product[j] = next[j];
      return;
    }
    walk(product);
    for (int64_t j = 0; j < n; j++) part[j].how = kDone;
  }
  // Stage 1 of a tile; alone: all three stages, chunk by chunk. Integers do not round.
  TT_NOINLINE void find_starts(int64_t t) {
    A product[kNarrowProducts];
    for (int64_t j = 0; j < kNarrowProducts; j++) product[j] = kOne<A>;
    for (int64_t c = 0; c < p.n_chunks; c++) {
      enter(t, c);
      if (kInteger && p.alone) {
        walk(product);
        continue;
      }
      find_start(product);
      if (p.alone) multiply_on();
    }
  }

  // Stage 2 of a chunk, or a tile that is not cut.
  TT_NOINLINE void multiply_on() {
    A product[kRowTile];
    const ProductPart<A>* part = p.n_chunks > 1 ? parts() : nullptr;
    if (part && part[0].how == kDone) return;
    for (int64_t j = 0; j < n; j++) product[j] = part ? part[j].product : kOne<A>;
    if (!part) return walk(product);
    if constexpr (kComplex) {
      if (part[0].how == kNormal) return multiply_blocks(product);
      for (int64_t i = 0; i < steps * n; i++) out(0)[i] = rounded<V>(product[i % n]);
    } else {
      for_rows([&](int64_t rows) {
        for (int64_t j = 0; j < n; j++) product[j] = leap(part[j].how, product[j], v + j, rows);
      });
    }
  }
  TT_INLINE A leap(int64_t how, A product, V* column, int64_t rows) {
    if constexpr (!kInteger) {
      if (how == kStuck) return go_on_stuck(product, column, narrow, rows);
      if (narrow == 1) return go_on_in_fours(product, column, rows);
    }
    return go_on_in_runs(product, column, narrow, rows);
  }
  // Blocks start from products known before, so they do not wait for each other.
  TT_INLINE void multiply_blocks(const C128* product) {
    constexpr int64_t kQuads = 2;
    C128 before[4 * kQuads * kNarrowProducts];
    for (int64_t i = 0, rows; i < steps; i += rows) {
      const int64_t all = (steps - i) / kCumprodBlock;
      int64_t at_once = 1;
      if (all >= 4) at_once = all >= 4 * kQuads ? 4 * kQuads : 4;
      rows = all ? at_once * kCumprodBlock : steps - i;
      for (int64_t k = 0; k < at_once * n; k++)
        before[k] = times(product[k % n], blocks()[i / kCumprodBlock * n + k]);
      if (at_once == 1) go_on_columns(before, in(i), out(i), n, rows, n, true);
      else if (at_once == 4) go_on_blocks<1, 0>(before, in(i), out(i), n);
      else if (n == 1) go_on_blocks<kQuads, 1>(before, in(i), out(i), n);
      else go_on_blocks<kQuads, 0>(before, in(i), out(i), n);
    }
  }
};

// ---- rows that are not cut ----

// Rows wait for their own products only: several are multiplied at once. out may be in.
constexpr int64_t kRowsAtOnce = 4;
template <class V, class A>
TT_NOINLINE void multiply_rows(const V* in, V* out, int64_t dim, int64_t rows) {
  int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    const V* const x = in + r * dim;
    V* const y = out + r * dim;
    A product[kRowsAtOnce];
    for (int64_t k = 0; k < kRowsAtOnce; k++) product[k] = kOne<A>;
    for (int64_t i = 0; i < dim; i++) {
      TT_UNROLL_BY(4)
      for (int64_t k = 0; k < kRowsAtOnce; k++) product[k] = times(product[k], x[k * dim + i]);
      TT_UNROLL_BY(4)
      for (int64_t k = 0; k < kRowsAtOnce; k++) y[k * dim + i] = rounded<V>(product[k]);
    }
  }
  for (; r < rows; r++) {
    A product = kOne<A>;
    for (int64_t i = r * dim; i < (r + 1) * dim; i++) {
      product = times(product, in[i]);
      out[i] = rounded<V>(product);
    }
  }
}
template <class V, class A>
TT_NOINLINE int32_t multiply_whole_rows(const CumprodPlan& p, int64_t begin, int64_t end) {
  const int64_t row = p.dim * kItemSize[p.dtype];
  if (p.dtype == Loads<V>::native) {
    multiply_rows<V, A>(reinterpret_cast<const V*>(p.in + begin * row),
                        reinterpret_cast<V*>(p.out + begin * row), p.dim, end - begin);
    return TT_OK;
  }
  alignas(64) V v[kBuffer];
  for (int64_t r = begin, n; r < end; r += n) {
    n = min(end - r, kBuffer / p.dim);
    load_run(v, p.in + r * row, kItemSize[p.dtype], n * p.dim, p.dtype);
    multiply_rows<V, A>(v, v, p.dim, n);
    store_values(p.out + r * row, v, n * p.dim, p.dtype);
  }
  return TT_OK;
}

template <class V, class A>
TT_NOINLINE int32_t cumprods(const CumprodPlan& p, int64_t begin, int64_t end) {
  if constexpr (!kIsSame<A, C128>) {
    const bool fits = p.dtype == Loads<V>::native || p.dim <= kBuffer / kRowsAtOnce;
    if (p.inner == 1 && p.n_chunks == 1 && fits) return multiply_whole_rows<V, A>(p, begin, end);
  }
  Cumprod<V, A> scan(p);
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 1 || p.alone) {
      scan.find_starts(u);
      continue;
    }
    scan.enter(u / p.n_chunks, u % p.n_chunks);
    if (p.run.stage == 0) scan.take();
    else scan.multiply_on();
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
