// attention: one block of queries after the other, keys by blocks with a running maximum and sum
// (online softmax).
#include "kernels/cpu/attention/attention.h"

TT_ISA_BEGIN

template <class T> struct Running {
  alignas(64) T top[kAttentionQueries], sum[kAttentionQueries], shift[kAttentionQueries],
      fade[kAttentionQueries];
};

// Takes in a block of scores, which become exp(score - shift); fade: what the earlier sums are
// worth now.
template <class T> TT_INLINE void take_in(Running<T>& r, T* s, int64_t keys, int64_t lanes) {
  alignas(64) T top[kAttentionQueries];
  for (int64_t j = 0; j < lanes; j++) top[j] = r.top[j];
  for (int64_t i = 0; i < keys; i++)
    for (int64_t j = 0; j < lanes; j++)
      top[j] = s[i * lanes + j] > top[j] ? s[i * lanes + j] : top[j];
  for (int64_t j = 0; j < lanes; j++) {
    r.shift[j] = top[j] == kMinusInfinity<T> ? T(0) : top[j];
    r.fade[j] = math::exp(r.top[j] - r.shift[j]);
    r.top[j] = top[j];
    r.sum[j] *= r.fade[j];
  }
  exp_block(s, r.shift, r.sum, keys, lanes);
}

template <class T>
TT_INLINE void fade_in(T* acc, const T* fresh, const T* fade, int64_t rows, int64_t width) {
  for (int64_t j = 0; j < rows; j++)
    for (int64_t d = 0; d < width; d++)
      acc[j * width + d] = acc[j * width + d] * fade[j] + fresh[j * width + d];
}

template <class T>
TT_NOINLINE void block_of_queries(const AttentionPlan& p, int64_t unit, char* memory) {
  const int64_t blocks = attention_query_blocks(p);
  const int64_t head = unit / blocks;
  AttentionBlock b;
  b.batch = head / p.heads;
  b.head = head % p.heads;
  b.query = unit % blocks * kAttentionQueries;
  b.queries = least(kAttentionQueries, p.queries - b.query);
  b.lanes = attention_lanes(b.queries);
  const int64_t key_head = b.head / (p.heads / p.key_heads);
  const int64_t e = p.width;
  const int64_t f = p.value_width;
  const int64_t keys = least(kAttentionKeys, p.keys);
  const int64_t end = p.causal ? least(p.keys, b.query + b.queries) : p.keys;
  Scratch<T> room = {memory};
  T* s = room.take(keys * b.lanes);
  T* spare = room.take(keys * b.lanes);
  T* q = room.take(e * b.lanes);
  T* k = room.take(keys * e);
  T* v = room.take(keys * f);
  T* acc = room.take(b.lanes * (e > f ? e : f));
  T* fresh = room.take(b.lanes * (e > f ? e : f));
  Running<T> r;
  for (int64_t j = 0; j < b.lanes; j++) {
    r.top[j] = kMinusInfinity<T>;
    r.sum[j] = 0;
  }
  attention_turn(
      q,
      attention_rows(rows_at(p.q, b.batch, b.head, b.query), p.q.row, b.queries, e, p.dtype, acc),
      b.queries, b.lanes, e, T(p.scale));
  for (b.key = 0; b.key < end; b.key += kAttentionKeys) {
    b.keys = least(kAttentionKeys, end - b.key);
    const T* keys_here =
        attention_rows(rows_at(p.k, b.batch, key_head, b.key), p.k.row, b.keys, e, p.dtype, k);
    attention_scores(p, b, s, keys_here, q, spare);
    take_in(r, s, b.keys, b.lanes);
    for (int64_t j = 0; p.drop && j < b.queries; j++) {
      alignas(64) T factor[kAttentionKeys];
      attention_kept(p, b, j, factor);
      for (int64_t i = 0; i < b.keys; i++) s[i * b.lanes + j] *= factor[i];
    }
    const T* values =
        attention_rows(rows_at(p.v, b.batch, key_head, b.key), p.v.row, b.keys, f, p.dtype, v);
    attention_multiply(b.key ? fresh : acc, s, 1, b.lanes, values, b.queries, f, b.keys, false);
    if (b.key) fade_in(acc, fresh, r.fade, b.queries, f);
  }
  T* lse = reinterpret_cast<T*>(p.lse) + head * p.queries + b.query;
  for (int64_t j = 0; j < b.queries; j++) {
    const T share = r.sum[j] == 0 ? T(0) : T(1) / r.sum[j];
    for (int64_t d = 0; d < f; d++) acc[j * f + d] = end > 0 ? acc[j * f + d] * share : T(0);
    attention_store(rows_at(p.out, b.batch, b.head, b.query + j), acc + j * f, f, p.dtype);
    lse[j] = r.sum[j] == 0 ? kMinusInfinity<T> : r.top[j] + math::log(r.sum[j]);
  }
}

template <class T>
inline int32_t run_attention(const AttentionPlan& p, int64_t begin, int64_t end) {
  char* memory = p.workspace + begin / p.run.grain[0] * p.slot_bytes;
  for (int64_t u = begin; u < end; u++) block_of_queries<T>(p, u, memory);
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(attention)(const void* plan, int64_t begin, int64_t end) noexcept {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  return p.dtype == TT_F64 ? run_attention<double>(p, begin, end)
                           : run_attention<float>(p, begin, end);
}

TT_ENTRY_END
