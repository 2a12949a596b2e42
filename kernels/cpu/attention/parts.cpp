// Conversion of rows, matmul of blocks, masks and dropout, compiled once for all attention kernels.
#include "kernels/cpu/attention/attention.h"

#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/small.h"
#include "kernels/cpu/random/random.h"
#include "kernels/functors/philox.h"

TT_ISA_BEGIN

// memcpy takes longer for rows this short.
template <class T> TT_INLINE void copy_row(T* out, const T* x, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(out + i, load(x + i));
  for (; i < n; i++) out[i] = x[i];
}

TT_INLINE void widen_row(float* out, const char* x, int64_t n, int32_t dtype) {
  if (is_dtype(dtype, TT_F16)) widen_run(reinterpret_cast<const F16*>(x), n, out);
  else if (is_dtype(dtype, TT_BF16)) widen_run(reinterpret_cast<const Bf16*>(x), n, out);
  else copy_row(out, reinterpret_cast<const float*>(x), n);
}
TT_INLINE void widen_row(double* out, const char* x, int64_t n, int32_t) {
  copy_row(out, reinterpret_cast<const double*>(x), n);
}

template <class T> TT_INLINE bool is_native(int32_t dtype) {
  return dtype == (sizeof(T) == 8 ? TT_F64 : TT_F32);
}

template <class T> TT_INLINE const T* rows_of(const char* x, int64_t stride, int64_t n,
                                              int64_t width, int32_t dtype, T* buffer) {
  if (is_native<T>(dtype) && stride == width * int64_t(sizeof(T)))
    return reinterpret_cast<const T*>(x);
  if (!width) return buffer;  // x may be NULL
  for (int64_t i = 0; i < n; i++) widen_row(buffer + i * width, x + i * stride, width, dtype);
  return buffer;  // rows far apart are copied even if native: they share cache sets
}

template <class T> TT_NOINLINE void multiply(T* c, const T* a, int64_t a_row, int64_t a_col,
                                             const T* b, int64_t m, int64_t n, int64_t k, bool add,
                                             int64_t pitch) {
  multiply_small(c, a, a_row, a_col, b, m, n, k, add, pitch);
}

// Converts n <= kMaskKeys values of the mask, `stride` bytes apart, to terms of scores.
constexpr int64_t kMaskKeys = 32;
template <class T>
TT_NOINLINE void mask_row(T* out, const char* m, int64_t stride, int64_t n, int32_t dtype) {
  alignas(64) char run[kMaskKeys * 8];
  const int64_t item = kItemSize[dtype];
  if (stride != item) {
    for (int64_t i = 0; i < n; i++) memcpy(run + i * item, m + i * stride, size_t(item));
    m = run;
  }
  if (dtype == TT_BOOL) {
    for (int64_t i = 0; i < n; i++) out[i] = m[i] ? T(0) : kMinusInfinity<T>;
  } else if (is_dtype(dtype, TT_F64)) {
    for (int64_t i = 0; i < n; i++) out[i] = T(reinterpret_cast<const double*>(m)[i]);
  } else {
    alignas(64) float f[kMaskKeys];
    widen_row(f, m, n, dtype);
    for (int64_t i = 0; i < n; i++) out[i] = T(f[i]);
  }
}

// Adds the mask to the scores. Each row of the mask belongs to one query and is transposed like the
// scores; a row that all queries share is broadcast.
template <class T>
TT_NOINLINE void add_mask(const AttentionPlan& p, const AttentionBlock& b, T* s, T* spare) {
  const char* m = p.mask + b.batch * p.mask_batch + b.head * p.mask_head + b.query * p.mask_query +
                  b.key * p.mask_key;
  alignas(64) T rows[kAttentionQueries * kMaskKeys];
  if (p.mask_query && is_native<T>(p.mask_dtype) && p.mask_key == sizeof(T)) {
    pack_panel(reinterpret_cast<const T*>(m), p.mask_query / int64_t(sizeof(T)), 1, int(b.queries),
               int(b.lanes), b.keys, spare);
  } else {
    for (int64_t i = 0; i < b.keys; i += kMaskKeys, m += kMaskKeys * p.mask_key) {
      const int64_t n = min(kMaskKeys, b.keys - i);
      const int64_t queries = p.mask_query ? b.queries : 1;
      for (int64_t j = 0; j < queries; j++)
        mask_row(rows + j * n, m + j * p.mask_query, p.mask_key, n, p.mask_dtype);
      if (p.mask_query) {
        pack_panel(rows, n, 1, int(queries), int(b.lanes), n, spare + i * b.lanes);
        continue;
      }
      for (int64_t k = 0; k < n; k++)
        for (int64_t j = 0; j < b.lanes; j++) spare[(i + k) * b.lanes + j] = rows[k];
    }
  }
  for (int64_t k = 0; k < b.keys * b.lanes; k++) s[k] += spare[k];
}

// The causal mask: scores of keys after the query become -inf.
template <class T> TT_INLINE void mask_future(const AttentionBlock& b, T* s) {
  for (int64_t i = b.key < b.query ? b.query - b.key : 0; i < b.keys; i++) {
    const int64_t masked = min(b.key + i - b.query, b.lanes);
    for (int64_t j = 0; j < masked; j++) s[i * b.lanes + j] = kMinusInfinity<T>;
  }
}

template <class T> TT_INLINE void transpose_scaled(T* out, const T* rows, int64_t n, int64_t lanes,
                                                   int64_t width, T factor) {
  pack_panel(rows, width, 1, int(n), int(lanes), width, out);
  for (int64_t i = 0; i < width * lanes; i++) out[i] *= factor;
}

// Leaves out the queries that the causal mask hides from a whole group of keys.
template <class T> TT_INLINE void causal_products(const AttentionPlan& p, const AttentionBlock& b,
                                                  T* s, const T* k, const T* q_transposed) {
  int64_t n = 0;
  for (int64_t i = 0; i < b.keys; i += n) {
    const int64_t behind = b.key + i - b.query;
    const int64_t hidden = behind < 0 ? 0 : behind / kCausalGroup * kCausalGroup;
    n = min(behind < 0 ? -behind : kCausalGroup, b.keys - i);
    multiply(s + i * b.lanes + hidden, k + i * p.width, p.width, 1, q_transposed + hidden, n,
             b.lanes - hidden, p.width, false, b.lanes);
  }
}

template <class T> TT_INLINE void scores(const AttentionPlan& p, const AttentionBlock& b, T* s,
                                         const T* k, const T* q_transposed, T* spare) {
  if (p.causal && !p.mask_dtype) causal_products(p, b, s, k, q_transposed);
  else attention_multiply(s, k, p.width, 1, q_transposed, b.keys, b.lanes, p.width, false);
  if (p.mask_dtype) add_mask(p, b, s, spare);
  if (p.causal) mask_future(b, s);
}

template <class T> TT_INLINE void dropout_factors(const AttentionPlan& p, const AttentionBlock& b,
                                                  int64_t j, T* factor) {
  alignas(64) uint32_t words[kAttentionKeys];
  const int64_t row = (b.batch * p.heads + b.head) * p.queries + b.query + j;
  const int64_t word = row * attention_row_words(p.keys) + b.key;
  random_words(words, p.seed, p.offset + uint64_t(word / 64 * kPhiloxGroup), ceil_div(b.keys, 64));
  for (int64_t i = 0; i < b.keys; i++)
    factor[i] = int32_t(words[i] >> 8) < p.threshold ? T(p.keep_scale) : T(0);
}

TT_ISA_END

TT_ENTRY_BEGIN

void attention_store(char* out, const float* x, int64_t n, int32_t dtype) noexcept {
  if (dtype == TT_F32) copy_row(reinterpret_cast<float*>(out), x, n);
  else if (is_dtype(dtype, TT_F16)) narrow_run(x, n, reinterpret_cast<F16*>(out));
  else narrow_run(x, n, reinterpret_cast<Bf16*>(out));
}
void attention_store(char* out, const double* x, int64_t n, int32_t) noexcept {
  copy_row(reinterpret_cast<double*>(out), x, n);
}

#define TT_DEFINE_PARTS(T)                                                                        \
  const T* attention_rows(const char* x, int64_t stride, int64_t n, int64_t width, int32_t dtype, \
                          T* buffer) noexcept {                                                   \
    return rows_of(x, stride, n, width, dtype, buffer);                                           \
  }                                                                                               \
  void attention_transpose_scaled(T* out, const T* rows, int64_t n, int64_t lanes, int64_t width, \
                                  T factor) noexcept {                                            \
    transpose_scaled(out, rows, n, lanes, width, factor);                                         \
  }                                                                                               \
  void attention_multiply(T* c, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t m,  \
                          int64_t n, int64_t k, bool add) noexcept {                              \
    multiply(c, a, a_row, a_col, b, m, n, k, add, n);                                             \
  }                                                                                               \
  void attention_add_mask(const AttentionPlan& p, const AttentionBlock& b, T* s,                  \
                          T* spare) noexcept {                                                    \
    add_mask(p, b, s, spare);                                                                     \
  }                                                                                               \
  void attention_scores(const AttentionPlan& p, const AttentionBlock& b, T* s, const T* k,        \
                        const T* q, T* spare) noexcept {                                          \
    scores(p, b, s, k, q, spare);                                                                 \
  }                                                                                               \
  void attention_dropout_factors(const AttentionPlan& p, const AttentionBlock& b, int64_t j,      \
                                 T* factor) noexcept {                                            \
    dropout_factors(p, b, j, factor);                                                             \
  }
TT_DEFINE_PARTS(float)
TT_DEFINE_PARTS(double)

TT_ENTRY_END
