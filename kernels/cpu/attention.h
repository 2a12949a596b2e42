// What the kernels of attention share: rows as the compute type, products of blocks, masks. Scores of a block stand
// transposed, [key][query]: a vector holds one key's scores of 16 queries, so no maximum or sum crosses lanes, and the
// block is the left factor of its products with v as it stands.
#pragma once

#include "cpu/math.h"
#include "cpu/random_words.h"
#include "matmul_pack.h"
#include "plan/attention_plan.h"
#include "plan/matmul_plan.h"

TT_ENTRY_BEGIN
int32_t matmul_small(const void* plan, int64_t begin, int64_t end) noexcept;
TT_ENTRY_END

TT_ISA_BEGIN

template <class T>
constexpr T kMinusInfinity = T(-__builtin_inf());

TT_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Memory of a task, taken part by part.
template <class T>
struct Scratch {
  char* at;
  TT_INLINE T* take(int64_t n) {
    T* p = reinterpret_cast<T*>(at);
    at += (n * int64_t(sizeof(T)) + 63) / 64 * 64;
    return p;
  }
};

TT_INLINE void widen_row(float* out, const char* x, int64_t n, int32_t dtype) {
  if (dtype == TT_F16)
    widen_run(reinterpret_cast<const F16*>(x), n, out);
  else if (dtype == TT_BF16)
    widen_run(reinterpret_cast<const Bf16*>(x), n, out);
  else
    __builtin_memcpy(out, x, size_t(n) * 4);
}
TT_INLINE void widen_row(double* out, const char* x, int64_t n, int32_t) { __builtin_memcpy(out, x, size_t(n) * 8); }

TT_INLINE void narrow_row(char* out, const float* x, int64_t n, int32_t dtype) {
  if (dtype == TT_F32) {
    __builtin_memcpy(out, x, size_t(n) * 4);
    return;
  }
  uint16_t* to = reinterpret_cast<uint16_t*>(out);
  for (int64_t i = 0; i < n; i++) to[i] = dtype == TT_F16 ? narrow(x[i], F16{}).bits : narrow(x[i], Bf16{}).bits;
}
TT_INLINE void narrow_row(char* out, const double* x, int64_t n, int32_t) { __builtin_memcpy(out, x, size_t(n) * 8); }

// n rows of `width` elements, one after the other: in place if they lie so, else copied (distant rows share cache sets).
template <class T>
TT_NOINLINE const T* rows_of(const char* x, int64_t stride, int64_t n, int64_t width, int32_t dtype, T* buffer) {
  const bool native = dtype == (sizeof(T) == 8 ? TT_F64 : TT_F32);
  if (native && stride == width * int64_t(sizeof(T))) return reinterpret_cast<const T*>(x);
  for (int64_t i = 0; i < n; i++) widen_row(buffer + i * width, x + i * stride, width, dtype);
  return buffer;
}

// out[term * lanes + i] = rows[i][term] * factor; zeros from n to lanes.
template <class T>
TT_NOINLINE void turn(T* out, const T* rows, int64_t n, int64_t lanes, int64_t width, T factor) {
  pack_panel(rows, width, 1, int(n), int(lanes), width, out);
  for (int64_t i = 0; i < width * lanes; i++) out[i] *= factor;
}

// c (m, n) = or += a (m, k) b (k, n); b's and c's rows are contiguous, n and c_row apart.
template <class T>
TT_NOINLINE void multiply(T* c, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t m, int64_t n, int64_t k,
                          bool add) {
  MatmulPlan p;
  p.m = m, p.n = n, p.k = k;
  p.a = reinterpret_cast<const char*>(a), p.b = reinterpret_cast<const char*>(b);
  p.c = reinterpret_cast<char*>(c), p.d = add ? p.c : nullptr;
  p.a_row = a_row, p.a_col = a_col, p.b_row = n, p.b_col = 1;
  p.c_row = p.d_row = n, p.c_col = p.d_col = 1;
  p.dtype = sizeof(T) == 8 ? TT_F64 : TT_F32;
  p.path = kMatmulSmall, p.scaled = false;
  p.n_batch = 0, p.batch = 1;
  p.alpha = p.beta = {1, 0, 1};
  p.workspace = nullptr;
  matmul_small(&p, 0, p.n_units = matmul_ceil(n, kMatmulSmallCols));
}

// ---- a block of scores ----

struct Block {
  int64_t batch, head, query, key;  // of its first element
  int64_t queries, lanes, keys;
};

TT_INLINE double mask_value(const char* m, int32_t dtype) {
  if (dtype == TT_BOOL) return *m ? 0 : -__builtin_inf();
  if (dtype == TT_F64) return *reinterpret_cast<const double*>(m);
  float f;
  widen_row(&f, m, 1, dtype);
  return f;
}

template <class T>
TT_NOINLINE void add_mask(const AttentionPlan& p, const Block& b, T* s) {
  const char* m = p.mask + b.batch * p.mask_batch + b.head * p.mask_head + b.query * p.mask_query + b.key * p.mask_key;
  if (p.mask_query == 0) {
    for (int64_t i = 0; i < b.keys; i++) {
      const T v = T(mask_value(m + i * p.mask_key, p.mask_dtype));
      for (int64_t j = 0; j < b.lanes; j++) s[i * b.lanes + j] += v;
    }
    return;
  }
  for (int64_t j = 0; j < b.queries; j++)
    for (int64_t i = 0; i < b.keys; i++)
      s[i * b.lanes + j] += T(mask_value(m + j * p.mask_query + i * p.mask_key, p.mask_dtype));
}

// Scores of keys behind the query become -inf.
template <class T>
TT_INLINE void hide_later(const Block& b, T* s) {
  for (int64_t i = b.key < b.query ? b.query - b.key : 0; i < b.keys; i++) {
    const int64_t hidden = least(b.key + i - b.query, b.lanes);
    for (int64_t j = 0; j < hidden; j++) s[i * b.lanes + j] = kMinusInfinity<T>;
  }
}

// s = k (q scale)^T + mask
template <class T>
TT_INLINE void make_scores(const AttentionPlan& p, const Block& b, T* s, const T* k, const T* turned_q) {
  multiply(s, k, p.width, 1, turned_q, b.keys, b.lanes, p.width, false);
  if (p.mask_dtype) add_mask(p, b, s);
  if (p.causal) hide_later(b, s);
}

// s = exp(s - shift), added to the sums of each query.
#if defined(__AVX512F__)
TT_INLINE void exp_block(float* s, const float* shift, float* sum, int64_t keys, int64_t lanes) {
  for (int64_t j = 0; j < lanes; j += 16) {
    const Vec<float> low = load(shift + j);
    Vec<float> total = {};
    for (int64_t i = 0; i < keys; i++) {
      const Vec<float> e = Vec<float>(math::exp(__m512(load(s + i * lanes + j) - low)));
      store(s + i * lanes + j, e);
      total += e;
    }
    store(sum + j, load(sum + j) + total);
  }
}
#endif
template <class T>
TT_INLINE void exp_block(T* s, const T* shift, T* sum, int64_t keys, int64_t lanes) {
  alignas(64) T total[kAttentionQueries] = {};
  for (int64_t i = 0; i < keys; i++, s += lanes) {
    for (int64_t j = 0; j < lanes; j++) s[j] = math::exp(s[j] - shift[j]);
    for (int64_t j = 0; j < lanes; j++) total[j] += s[j];
  }
  for (int64_t j = 0; j < lanes; j++) sum[j] += total[j];
}

// f(key, factor) of the keys of query j: 0 or keep_scale.
template <class T, class F>
TT_INLINE void for_kept(const AttentionPlan& p, const Block& b, int64_t j, const F& f) {
  alignas(64) uint32_t words[kAttentionKeys];
  const int64_t row = (b.batch * p.heads + b.head) * p.queries + b.query + j;
  const int64_t word = row * attention_row_words(p.keys) + b.key;
  philox_words(words, p.seed, p.offset + uint64_t(word / 64 * kPhiloxGroup), (b.keys + 63) / 64);
  for (int64_t i = 0; i < b.keys; i++) f(i, int32_t(words[i] >> 8) < p.threshold ? T(p.keep_scale) : T(0));
}

TT_INLINE char* rows_at(const AttentionRows& r, int64_t batch, int64_t head, int64_t row) {
  return r.p + batch * r.batch + head * r.head + row * r.row;
}

TT_ISA_END
