// What the kernels of attention share. Scores of a block stand transposed, [key][query]: a vector
// holds one key's scores of 16 queries, so no maximum or sum crosses lanes, and the block is the
// left factor of its products with v as it stands.
#pragma once

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/simd/vec.h"
#include "plan/attention_plan.h"

TT_ENTRY_BEGIN

// A block of scores; batch, head, query and key are those of its first element.
struct AttentionBlock {
  int64_t batch, head, query, key;
  int64_t queries, lanes, keys;
};

#define TT_ATTENTION_PARTS(T)                                                                     \
  /* n rows of `width` elements, one after the other: in place if they lie so, else copied. */    \
  const T* attention_rows(const char* x, int64_t stride, int64_t n, int64_t width, int32_t dtype, \
                          T* buffer) noexcept;                                                    \
  void attention_store(char* out, const T* x, int64_t n, int32_t dtype) noexcept;                 \
  /* out[term * lanes + i] = rows[i][term] * factor; zeros from n to lanes. */                    \
  void attention_turn(T* out, const T* rows, int64_t n, int64_t lanes, int64_t width,             \
                      T factor) noexcept;                                                         \
  /* c (m, n) = or += a (m, k) b (k, n); the rows of b and c lie one after the other. */          \
  void attention_multiply(T* c, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t m,  \
                          int64_t n, int64_t k, bool add) noexcept;                               \
  /* s = k (q scale)^T + mask, where turned_q holds q scale; spare: as large as s. */             \
  void attention_scores(const AttentionPlan& p, const AttentionBlock& b, T* s, const T* k,        \
                        const T* turned_q, T* spare) noexcept;                                    \
  /* factor[key] = 0 or keep_scale, of query j of the block. */                                   \
  void attention_kept(const AttentionPlan& p, const AttentionBlock& b, int64_t j,                 \
                      T* factor) noexcept;
TT_ATTENTION_PARTS(float)
TT_ATTENTION_PARTS(double)

TT_ENTRY_END

TT_ISA_BEGIN

TT_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Memory of a task, taken part by part.
template <class T> struct Scratch {
  char* at;
  TT_INLINE T* take(int64_t n) {
    T* p = reinterpret_cast<T*>(at);
    at += (n * int64_t(sizeof(T)) + 63) / 64 * 64;
    return p;
  }
};

TT_INLINE char* rows_at(const AttentionRows& r, int64_t batch, int64_t head, int64_t row) {
  return r.p + batch * r.batch + head * r.head + row * r.row;
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

TT_ISA_END
