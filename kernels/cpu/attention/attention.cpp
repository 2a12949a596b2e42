// attention forward: for each block of queries, blocks of keys with a running maximum and sum
// (online softmax, Milakov and Gimelshein, arXiv:1805.02867).
#include "kernels/cpu/attention/attention.h"

TT_ISA_BEGIN

// The state of the online softmax, per query of the block.
template <class T> struct OnlineSoftmax {
  alignas(64) T maximum[kAttentionQueries];
  alignas(64) T sum[kAttentionQueries];      // of exp(score - shift) so far
  alignas(64) T shift[kAttentionQueries];    // the maximum, or 0 if no key takes part
  alignas(64) T rescale[kAttentionQueries];  // exp(previous maximum - maximum)
};

// Adds a block of scores to the state; the scores become exp(score - shift).
template <class T>
TT_INLINE void add_scores(OnlineSoftmax<T>& r, T* s, int64_t keys, int64_t lanes) {
  alignas(64) T maximum[kAttentionQueries];
  for (int64_t j = 0; j < lanes; j++) maximum[j] = r.maximum[j];
  for (int64_t i = 0; i < keys; i++)
    for (int64_t j = 0; j < lanes; j++)
      maximum[j] = s[i * lanes + j] > maximum[j] ? s[i * lanes + j] : maximum[j];
  for (int64_t j = 0; j < lanes; j++) {
    r.shift[j] = maximum[j] == kMinusInfinity<T> ? T(0) : maximum[j];
    r.rescale[j] = math::exp(r.maximum[j] - r.shift[j]);
    r.maximum[j] = maximum[j];
    r.sum[j] *= r.rescale[j];
  }
  exp_block(s, r.shift, r.sum, keys, lanes);
}

template <class T> TT_INLINE void rescale_and_add(T* acc, const T* fresh, const T* rescale,
                                                  int64_t rows, int64_t width) {
  for (int64_t j = 0; j < rows; j++)
    for (int64_t d = 0; d < width; d++)
      acc[j * width + d] = acc[j * width + d] * rescale[j] + fresh[j * width + d];
}

template <class T>
TT_NOINLINE void attend_query_block(const AttentionPlan& p, int64_t unit, char* memory) {
  const int64_t blocks = attention_query_blocks(p);
  const int64_t head = unit / blocks;
  AttentionBlock b;
  b.batch = head / p.heads;
  b.head = head % p.heads;
  b.query = unit % blocks * kAttentionQueries;
  b.queries = min(kAttentionQueries, p.queries - b.query);
  b.lanes = attention_lanes(b.queries);
  const int64_t key_head = b.head / (p.heads / p.key_heads);
  const int64_t e = p.width;
  const int64_t f = p.value_width;
  const int64_t keys = min(kAttentionKeys, p.keys);
  const int64_t end = p.causal ? min(p.keys, b.query + b.queries) : p.keys;
  Scratch<T> room = {memory};
  T* s = room.take(keys * b.lanes);
  T* spare = room.take(keys * b.lanes);
  T* q = room.take(e * b.lanes);
  T* k = room.take(keys * e);
  T* v = room.take(keys * f);
  T* acc = room.take(b.lanes * max(e, f));
  T* fresh = room.take(b.lanes * max(e, f));
  OnlineSoftmax<T> r;
  for (int64_t j = 0; j < b.lanes; j++) {
    r.maximum[j] = kMinusInfinity<T>;
    r.sum[j] = 0;
  }
  attention_transpose_scaled(
      q,
      attention_rows(rows_at(p.q, b.batch, b.head, b.query), p.q.row, b.queries, e, p.dtype, acc),
      b.queries, b.lanes, e, T(p.scale));
  for (b.key = 0; b.key < end; b.key += kAttentionKeys) {
    b.keys = min(kAttentionKeys, end - b.key);
    const T* keys_here =
        attention_rows(rows_at(p.k, b.batch, key_head, b.key), p.k.row, b.keys, e, p.dtype, k);
    attention_scores(p, b, s, keys_here, q, spare);
    add_scores(r, s, b.keys, b.lanes);
    for (int64_t j = 0; p.drop && j < b.queries; j++) {
      alignas(64) T factor[kAttentionKeys];
      attention_dropout_factors(p, b, j, factor);
      for (int64_t i = 0; i < b.keys; i++) s[i * b.lanes + j] *= factor[i];
    }
    const T* values =
        attention_rows(rows_at(p.v, b.batch, key_head, b.key), p.v.row, b.keys, f, p.dtype, v);
    attention_multiply(b.key ? fresh : acc, s, 1, b.lanes, values, b.queries, f, b.keys, false);
    if (b.key) rescale_and_add(acc, fresh, r.rescale, b.queries, f);
  }
  T* lse = reinterpret_cast<T*>(p.lse) + head * p.queries + b.query;
  for (int64_t j = 0; j < b.queries; j++) {
    const T share = r.sum[j] == 0 ? T(0) : T(1) / r.sum[j];
    for (int64_t d = 0; d < f; d++) acc[j * f + d] = end > 0 ? acc[j * f + d] * share : T(0);
    attention_store(rows_at(p.out, b.batch, b.head, b.query + j), acc + j * f, f, p.dtype);
    lse[j] = r.sum[j] == 0 ? kMinusInfinity<T> : r.maximum[j] + math::log(r.sum[j]);
  }
}

template <class T>
inline int32_t run_attention(const AttentionPlan& p, int64_t begin, int64_t end) {
  char* memory = p.workspace + begin / p.run.grain[0] * p.slot_bytes;
  for (int64_t u = begin; u < end; u++) attend_query_block<T>(p, u, memory);
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(attention)(const void* plan, int64_t begin, int64_t end) noexcept {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? run_attention<double>(p, begin, end)
                                   : run_attention<float>(p, begin, end);
}

TT_ENTRY_END
