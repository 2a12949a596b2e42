// Shared by the kernels of attention.
//
//              queries (lanes) ->
//         +----------------------+     Scores of a block are stored transposed, [key][query]. A
//   keys  | s[key * lanes + j]   |     vector holds the scores of one key for 16 queries, so no
//    |    |                      |     maximum or sum crosses lanes, and the block is the left
//    v    +----------------------+     factor of its product with v without a transposition.
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
  /* n contiguous rows of `width` elements: x itself if it has this layout, else a copy. */       \
  const T* attention_rows(const char* x, int64_t stride, int64_t n, int64_t width, int32_t dtype, \
                          T* buffer) noexcept;                                                    \
  void attention_store(char* out, const T* x, int64_t n, int32_t dtype) noexcept;                 \
  /* out[k * lanes + i] = rows[i][k] * factor; zeros for i in [n, lanes). */                      \
  void attention_transpose_scaled(T* out, const T* rows, int64_t n, int64_t lanes, int64_t width, \
                                  T factor) noexcept;                                             \
  /* c (m, n) = a (m, k) b (k, n), or += if add; b and c are contiguous. */                       \
  void attention_multiply(T* c, const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t m,  \
                          int64_t n, int64_t k, bool add) noexcept;                               \
  /* s += mask; spare is as large as s. */                                                        \
  void attention_add_mask(const AttentionPlan& p, const AttentionBlock& b, T* s,                  \
                          T* spare) noexcept;                                                     \
  /* s = k (q scale)^T + mask; q_transposed holds q scale; spare is as large as s. */             \
  void attention_scores(const AttentionPlan& p, const AttentionBlock& b, T* s, const T* k,        \
                        const T* q_transposed, T* spare) noexcept;                                \
  /* factor[key] of query j of the block: 0 if dropped, else keep_scale. */                       \
  void attention_dropout_factors(const AttentionPlan& p, const AttentionBlock& b, int64_t j,      \
                                 T* factor) noexcept;
TT_ATTENTION_PARTS(float)
TT_ATTENTION_PARTS(double)

// The kernels of plans with tiles of AMX, for units [begin, end); memory is a task's.
void attention_bf16_amx(const AttentionPlan& p, int64_t begin, int64_t end, char* memory) noexcept;
void attention_backward_bf16_amx(const AttentionPlan& p, int64_t begin, int64_t end,
                                 char* memory) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

// The number of queries or keys in a group, for each of which the causal mask is applied at once.
// What the mask hides from a whole group is not computed.
constexpr int64_t kCausalGroup = 16;

// The scratch memory of a task; take() returns its parts, each aligned to a cache line.
template <class T> struct Scratch {
  char* at;
  TT_INLINE T* take(int64_t n) {
    T* p = reinterpret_cast<T*>(at);
    at += round_up(n * int64_t(sizeof(T)), 64);
    return p;
  }
};

TT_INLINE char* rows_at(const AttentionRows& r, int64_t batch, int64_t head, int64_t row) {
  return r.p + batch * r.batch + head * r.head + row * r.row;
}

// s = exp(s - shift); adds the results to the sum of each query.
#if TT_VECTOR_MATH
TT_INLINE void exp_block(float* s, const float* shift, float* sum, int64_t keys, int64_t lanes) {
  for (int64_t j = 0; j < lanes; j += 16) {
    const Vec<float> low = load(shift + j);
    Vec<float> total = {};
    for (int64_t i = 0; i < keys; i++) {
      const Vec<float> e = Vec<float>(math::exp(math::F32v(load(s + i * lanes + j) - low)));
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
