// attention backward. The probabilities p are recomputed from q, k and the log-sum-exp. With the
// gradient g, the dropout factors f (1 without dropout) and delta = sum(g * out):
//   z = p f,  dv = z^T g,  dz = g v^T,  ds = p (dz f - delta),  dq = ds k scale,  dk = ds^T q scale
// Either each unit owns a key head (one stage), or units own blocks of queries (stage 0: dq), then
// blocks of keys (stage 1: dk, dv): the scores are computed twice, but there are more units. Both
// ways add in the same order.
#include "kernels/cpu/attention/attention.h"

TT_ISA_BEGIN

template <class T> struct Parts {
  T *s, *ds, *q_transposed, *grad_transposed, *q, *g, *k, *v, *dk, *dv;
};

// The end of the keys that a query of the block sees.
TT_INLINE int64_t end_of_keys(const AttentionPlan& p, const AttentionBlock& block) {
  return p.causal ? min(p.keys, block.query + block.queries) : p.keys;
}
TT_INLINE bool holds_all(const AttentionPlan& p, const AttentionBlock& block) {
  return block.key == 0 && block.keys == end_of_keys(p, block);
}

// For a block that holds all keys: divides the probabilities by their sum, which the rounding of a
// large log-sum-exp moves away from 1.
template <class T> TT_INLINE void normalise(const AttentionBlock& block, T* s, T* sums) {
  for (int64_t j = 0; j < block.lanes; j++) sums[j] = sums[j] > 0 ? 1 / sums[j] : T(0);
  for (int64_t i = 0; i < block.keys; i++)
    for (int64_t j = 0; j < block.lanes; j++) s[i * block.lanes + j] *= sums[j];
}

// ds = s (ds - delta). With dropout, ds holds the gradients of the probabilities that were kept,
// and s becomes those. In a block that holds all keys delta is computed as the sum of s * ds, whose
// rounding errors cancel.
template <class T> TT_INLINE void score_gradients(const AttentionPlan& p,
                                                  const AttentionBlock& block, T* s, T* ds,
                                                  T* delta) {
  const bool whole = holds_all(p, block);
  if (p.drop) {
    for (int64_t j = 0; j < block.queries; j++) {
      alignas(64) T factor[kAttentionKeys];
      attention_dropout_factors(p, block, j, factor);
      T sum = 0;
      for (int64_t i = 0; i < block.keys; i++)
        sum += s[i * block.lanes + j] * (ds[i * block.lanes + j] *= factor[i]);
      if (whole) delta[j] = sum;
      for (int64_t i = 0; i < block.keys; i++) {
        T& probability = s[i * block.lanes + j];
        T& gradient = ds[i * block.lanes + j];
        gradient = probability * (gradient - delta[j]);
        probability *= factor[i];
      }
    }
    return;
  }
  if (whole) {
    for (int64_t j = 0; j < block.lanes; j++) delta[j] = 0;
    for (int64_t i = 0; i < block.keys; i++)
      for (int64_t j = 0; j < block.lanes; j++)
        delta[j] += s[i * block.lanes + j] * ds[i * block.lanes + j];
  }
  for (int64_t i = 0; i < block.keys; i++)
    for (int64_t j = 0; j < block.lanes; j++)
      ds[i * block.lanes + j] = s[i * block.lanes + j] * (ds[i * block.lanes + j] - delta[j]);
}

template <class T> TT_NOINLINE void block_pair(const AttentionPlan& p, const AttentionBlock& block,
                                               const Parts<T>& w, const T* k, const T* v,
                                               bool of_keys, bool of_queries) {
  const int64_t width = p.width;
  const int64_t value_width = p.value_width;
  const int64_t row = (block.batch * p.heads + block.head) * p.queries + block.query;
  alignas(64) T shift[kAttentionQueries];
  alignas(64) T delta[kAttentionQueries];
  alignas(64) T sums[kAttentionQueries] = {};
  for (int64_t j = 0; j < block.lanes; j++) {
    const T lse =
        j < block.queries ? reinterpret_cast<const T*>(p.lse)[row + j] : kMinusInfinity<T>;
    // A query without keys: the shift is infinite, so that all probabilities are 0.
    shift[j] = lse == kMinusInfinity<T> ? -kMinusInfinity<T> : lse;
    delta[j] = j < block.queries ? reinterpret_cast<const T*>(p.delta)[row + j] : T(0);
  }
  const T* q = attention_rows(rows_at(p.q, block.batch, block.head, block.query), p.q.row,
                              block.queries, width, p.dtype, w.q);
  const T* g = attention_rows(rows_at(p.grad, block.batch, block.head, block.query), p.grad.row,
                              block.queries, value_width, p.dtype, w.g);
  attention_transpose_scaled(w.q_transposed, q, block.queries, block.lanes, width, T(p.scale));
  attention_transpose_scaled(w.grad_transposed, g, block.queries, block.lanes, value_width, T(1));
  attention_scores(p, block, w.s, k, w.q_transposed, w.ds);
  exp_block(w.s, shift, sums, block.keys, block.lanes);
  if (holds_all(p, block)) normalise(block, w.s, sums);
  attention_multiply(w.ds, v, value_width, 1, w.grad_transposed, block.keys, block.lanes,
                     value_width, false);
  score_gradients(p, block, w.s, w.ds, delta);
  if (of_keys) {
    attention_multiply(w.dv, w.s, block.lanes, 1, g, block.keys, value_width, block.queries, true);
    attention_multiply(w.dk, w.ds, block.lanes, 1, q, block.keys, width, block.queries, true);
  }
  T* dq = reinterpret_cast<T*>(p.dq) + row * width;
  if (of_queries)
    attention_multiply(dq, w.ds, 1, block.lanes, k, block.queries, width, block.keys, true);
}

// Computes delta of queries [from, to) of a head and clears their dq.
template <class T> TT_INLINE void prepare_queries(const AttentionPlan& p, int64_t batch,
                                                  int64_t head, int64_t from, int64_t to,
                                                  const Parts<T>& w) {
  const int64_t row = (batch * p.heads + head) * p.queries;
  const int64_t value_width = p.value_width;
  const int64_t run = value_width * int64_t(sizeof(T));
  for (int64_t i = from; i < to; i++) {
    T sum = 0;
    const T* g = attention_rows(rows_at(p.grad, batch, head, i), run, 1, value_width, p.dtype, w.g);
    const T* o = attention_rows(rows_at(p.out, batch, head, i), run, 1, value_width, p.dtype,
                                w.grad_transposed);
    for (int64_t d = 0; d < value_width; d++) sum += g[d] * o[d];
    reinterpret_cast<T*>(p.delta)[row + i] = sum;
  }
  if (to > from && p.width)
    memset(reinterpret_cast<T*>(p.dq) + (row + from) * p.width, 0,
           size_t((to - from) * p.width) * sizeof(T));
}

template <class T> TT_INLINE void scale_to(T* out, const T* x, T factor, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * factor;
}

template <class T> TT_INLINE Parts<T> scratch_of(const AttentionPlan& p, char* memory) {
  const int64_t keys = min(kAttentionKeys, p.keys);
  const int64_t lanes = min(kAttentionQueries, attention_lanes(p.queries));
  const int64_t width = p.width;
  const int64_t value_width = p.value_width;
  Scratch<T> room = {memory};
  Parts<T> w;
  w.s = room.take(keys * lanes);
  w.ds = room.take(keys * lanes);
  w.q_transposed = room.take(width * lanes);
  w.grad_transposed = room.take(value_width * lanes);
  w.q = room.take(width * lanes);
  w.g = room.take(value_width * lanes);
  w.k = room.take(keys * width);
  w.v = room.take(keys * value_width);
  w.dk = room.take(keys * width);
  w.dv = room.take(keys * value_width);
  return w;
}

TT_INLINE void set_queries(const AttentionPlan& p, AttentionBlock& block, int64_t query) {
  block.query = query;
  block.queries = min(kAttentionQueries, p.queries - query);
  block.lanes = attention_lanes(block.queries);
}

// Computes dk and dv of a block of keys from all queries of the heads that read it and, if
// of_queries, adds to their dq.
template <class T> TT_NOINLINE void key_block_gradients(const AttentionPlan& p, int64_t batch,
                                                        int64_t key_head, int64_t key,
                                                        const Parts<T>& w, bool of_queries) {
  const int64_t group = p.heads / p.key_heads;
  const int64_t width = p.width;
  const int64_t value_width = p.value_width;
  AttentionBlock block;
  block.batch = batch;
  block.key = key;
  const int64_t keys = min(kAttentionKeys, p.keys - key);
  const T* k =
      attention_rows(rows_at(p.k, batch, key_head, key), p.k.row, keys, width, p.dtype, w.k);
  const T* v =
      attention_rows(rows_at(p.v, batch, key_head, key), p.v.row, keys, value_width, p.dtype, w.v);
  memset(w.dk, 0, size_t(keys * width) * sizeof(T));
  memset(w.dv, 0, size_t(keys * value_width) * sizeof(T));
  const int64_t first = p.causal ? key / kAttentionQueries * kAttentionQueries : 0;
  for (block.head = key_head * group; block.head < (key_head + 1) * group; block.head++)
    for (int64_t query = first; query < p.queries; query += kAttentionQueries) {
      set_queries(p, block, query);
      block.keys = min(keys, end_of_keys(p, block) - key);
      block_pair(p, block, w, k, v, true, of_queries);
    }
  const int64_t at = (batch * p.key_heads + key_head) * p.keys + key;
  scale_to(reinterpret_cast<T*>(p.dk) + at * width, w.dk, T(p.scale), keys * width);
  scale_to(reinterpret_cast<T*>(p.dv) + at * value_width, w.dv, T(1), keys * value_width);
}

template <class T>
TT_NOINLINE void key_head_gradients(const AttentionPlan& p, int64_t unit, const Parts<T>& w) {
  const int64_t group = p.heads / p.key_heads;
  const int64_t batch = unit / p.key_heads;
  const int64_t head = unit % p.key_heads;
  for (int64_t h = head * group; h < (head + 1) * group; h++)
    prepare_queries(p, batch, h, 0, p.queries, w);
  for (int64_t key = 0; key < p.keys; key += kAttentionKeys)
    key_block_gradients(p, batch, head, key, w, true);
  T* dq = reinterpret_cast<T*>(p.dq) + unit * group * p.queries * p.width;
  scale_to(dq, dq, T(p.scale), group * p.queries * p.width);
}

// Computes dq of a block of queries.
template <class T>
TT_NOINLINE void query_block_gradients(const AttentionPlan& p, int64_t unit, const Parts<T>& w) {
  const int64_t blocks = attention_query_blocks(p);
  const int64_t head = unit / blocks;
  const int64_t width = p.width;
  const int64_t value_width = p.value_width;
  AttentionBlock block;
  block.batch = head / p.heads;
  block.head = head % p.heads;
  set_queries(p, block, unit % blocks * kAttentionQueries);
  prepare_queries(p, block.batch, block.head, block.query, block.query + block.queries, w);
  const int64_t key_head = block.head / (p.heads / p.key_heads);
  const int64_t end = end_of_keys(p, block);
  for (block.key = 0; block.key < end; block.key += kAttentionKeys) {
    block.keys = min(kAttentionKeys, end - block.key);
    const T* k = attention_rows(rows_at(p.k, block.batch, key_head, block.key), p.k.row, block.keys,
                                width, p.dtype, w.k);
    const T* v = attention_rows(rows_at(p.v, block.batch, key_head, block.key), p.v.row, block.keys,
                                value_width, p.dtype, w.v);
    block_pair(p, block, w, k, v, false, true);
  }
  T* dq = reinterpret_cast<T*>(p.dq) + (head * p.queries + block.query) * width;
  scale_to(dq, dq, T(p.scale), block.queries * width);
}

template <class T> inline int32_t run_backward(const AttentionPlan& p, int64_t begin, int64_t end) {
  char* memory = p.workspace + begin / p.run.grain[p.run.stage] * p.slot_bytes;
  if (p.tiles) {
    attention_backward_bf16_amx(p, begin, end, memory);
    return TT_OK;
  }
  const Parts<T> w = scratch_of<T>(p, memory);
  const int64_t blocks = attention_key_blocks(p);
  for (int64_t u = begin; u < end; u++) {
    if (p.run.n == 1) key_head_gradients(p, u, w);
    else if (p.run.stage == 0) query_block_gradients(p, u, w);
    else
      key_block_gradients(p, u / blocks / p.key_heads, u / blocks % p.key_heads,
                          u % blocks * kAttentionKeys, w, false);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(attention_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? run_backward<double>(p, begin, end)
                                   : run_backward<float>(p, begin, end);
}

TT_ENTRY_END
