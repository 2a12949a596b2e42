// attention_backward: probabilities are made again from q, k and the log-sum-exp. With p the probabilities, z the kept
// and scaled ones and g the gradient: dv = z^T g, dz = g v^T, ds = p (dz kept - delta), dq = ds k scale, dk = ds^T q
// scale. One unit owns a key head, so that every sum has one order.
#include "cpu/attention.h"

TT_ISA_BEGIN

template <class T>
struct Parts {
  T *s, *ds, *turned_q, *turned_g, *q, *g, *k, *v, *dk, *dv;
};

// ds = s (ds - delta); with dropout ds are the gradients of what was kept, and s becomes that.
template <class T>
TT_INLINE void score_gradients(const AttentionPlan& p, const AttentionBlock& b, T* s, T* ds, const T* delta) {
  if (p.drop) {
    for (int64_t j = 0; j < b.queries; j++) {
      alignas(64) T factor[kAttentionKeys];
      attention_kept(p, b, j, factor);
      for (int64_t i = 0; i < b.keys; i++) {
        T &probability = s[i * b.lanes + j], &gradient = ds[i * b.lanes + j];
        gradient = probability * (gradient * factor[i] - delta[j]);
        probability *= factor[i];
      }
    }
    return;
  }
  for (int64_t i = 0; i < b.keys; i++)
    for (int64_t j = 0; j < b.lanes; j++) ds[i * b.lanes + j] = s[i * b.lanes + j] * (ds[i * b.lanes + j] - delta[j]);
}

template <class T>
TT_NOINLINE void block_pair(const AttentionPlan& p, const AttentionBlock& b, const Parts<T>& w, const T* k, const T* v) {
  const int64_t e = p.width, f = p.value_width, row = (b.batch * p.heads + b.head) * p.queries + b.query;
  alignas(64) T shift[kAttentionQueries], delta[kAttentionQueries], sums[kAttentionQueries] = {};
  for (int64_t j = 0; j < b.lanes; j++) {
    const T lse = j < b.queries ? reinterpret_cast<const T*>(p.lse)[row + j] : kMinusInfinity<T>;
    shift[j] = lse == kMinusInfinity<T> ? -kMinusInfinity<T> : lse;  // no key took part: every probability is 0
    delta[j] = j < b.queries ? reinterpret_cast<const T*>(p.delta)[row + j] : T(0);
  }
  const T* q = attention_rows(rows_at(p.q, b.batch, b.head, b.query), p.q.row, b.queries, e, p.dtype, w.q);
  const T* g = attention_rows(rows_at(p.grad, b.batch, b.head, b.query), p.grad.row, b.queries, f, p.dtype, w.g);
  attention_turn(w.turned_q, q, b.queries, b.lanes, e, T(p.scale));
  attention_turn(w.turned_g, g, b.queries, b.lanes, f, T(1));
  attention_scores(p, b, w.s, k, w.turned_q, w.ds);
  exp_block(w.s, shift, sums, b.keys, b.lanes);
  attention_multiply(w.ds, v, f, 1, w.turned_g, b.keys, b.lanes, f, false);
  score_gradients(p, b, w.s, w.ds, delta);
  attention_multiply(w.dv, w.s, b.lanes, 1, g, b.keys, f, b.queries, true);
  attention_multiply(w.dk, w.ds, b.lanes, 1, q, b.keys, e, b.queries, true);
  attention_multiply(reinterpret_cast<T*>(p.dq) + row * e, w.ds, 1, b.lanes, k, b.queries, e, b.keys, true);
}

template <class T>
TT_INLINE void make_deltas(const AttentionPlan& p, int64_t batch, int64_t head, T* g, T* o) {
  T* delta = reinterpret_cast<T*>(p.delta) + (batch * p.heads + head) * p.queries;
  for (int64_t i = 0; i < p.queries; i++) {
    T sum = 0;
    const T* a = attention_rows(rows_at(p.grad, batch, head, i), p.value_width * int64_t(sizeof(T)), 1, p.value_width, p.dtype, g);
    const T* b = attention_rows(rows_at(p.out, batch, head, i), p.value_width * int64_t(sizeof(T)), 1, p.value_width, p.dtype, o);
    for (int64_t d = 0; d < p.value_width; d++) sum += a[d] * b[d];
    delta[i] = sum;
  }
}

template <class T>
TT_INLINE void scale_to(T* out, const T* x, T factor, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * factor;
}

template <class T>
TT_NOINLINE void key_head(const AttentionPlan& p, int64_t unit, char* memory) {
  const int64_t group = p.heads / p.key_heads, e = p.width, f = p.value_width, head = unit % p.key_heads;
  const int64_t keys = least(kAttentionKeys, p.keys), lanes = least(kAttentionQueries, attention_lanes(p.queries));
  Scratch<T> room = {memory};
  Parts<T> w;
  w.s = room.take(keys * lanes), w.ds = room.take(keys * lanes), w.turned_q = room.take(e * lanes);
  w.turned_g = room.take(f * lanes), w.q = room.take(e * lanes), w.g = room.take(f * lanes);
  w.k = room.take(keys * e), w.v = room.take(keys * f), w.dk = room.take(keys * e), w.dv = room.take(keys * f);
  AttentionBlock b;
  b.batch = unit / p.key_heads;
  T* dq = reinterpret_cast<T*>(p.dq) + (b.batch * p.heads + head * group) * p.queries * e;
  __builtin_memset(dq, 0, size_t(group * p.queries * e) * sizeof(T));
  for (int64_t h = 0; h < group; h++) make_deltas(p, b.batch, head * group + h, w.g, w.turned_g);
  for (b.key = 0; b.key < p.keys; b.key += kAttentionKeys) {
    b.keys = least(kAttentionKeys, p.keys - b.key);
    const T* k = attention_rows(rows_at(p.k, b.batch, head, b.key), p.k.row, b.keys, e, p.dtype, w.k);
    const T* v = attention_rows(rows_at(p.v, b.batch, head, b.key), p.v.row, b.keys, f, p.dtype, w.v);
    __builtin_memset(w.dk, 0, size_t(b.keys * e) * sizeof(T));
    __builtin_memset(w.dv, 0, size_t(b.keys * f) * sizeof(T));
    for (b.head = head * group; b.head < (head + 1) * group; b.head++)
      for (b.query = p.causal ? b.key / kAttentionQueries * kAttentionQueries : 0; b.query < p.queries;
           b.query += kAttentionQueries) {
        b.queries = least(kAttentionQueries, p.queries - b.query), b.lanes = attention_lanes(b.queries);
        block_pair(p, b, w, k, v);
      }
    const int64_t at = unit * p.keys + b.key;
    scale_to(reinterpret_cast<T*>(p.dk) + at * e, w.dk, T(p.scale), b.keys * e);
    scale_to(reinterpret_cast<T*>(p.dv) + at * f, w.dv, T(1), b.keys * f);
  }
  scale_to(dq, dq, T(p.scale), group * p.queries * e);
}

template <class T>
inline int32_t run_backward(const AttentionPlan& p, int64_t begin, int64_t end) {
  char* memory = p.workspace + begin / p.run.grain[0] * p.slot_bytes;
  for (int64_t u = begin; u < end; u++) key_head<T>(p, u, memory);
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(attention_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const AttentionPlan& p = *static_cast<const AttentionPlan*>(plan);
  return p.dtype == TT_F64 ? run_backward<double>(p, begin, end) : run_backward<float>(p, begin, end);
}

TT_ENTRY_END
