// attention forward: for each block of queries, blocks of keys with a running maximum and sum
// (online softmax, Milakov and Gimelshein, arXiv:1805.02867). A single query, as of a decoder with
// a cache of keys, has scores in a row instead of lanes of queries.
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

// Divides acc by the sums of probabilities; stores the results of a block and log-sum-exps.
// any_keys: whether acc was computed at all.
template <class T> TT_INLINE void store_block(const AttentionPlan& p, const AttentionBlock& block,
                                              const OnlineSoftmax<T>& r, T* acc, bool any_keys) {
  const int64_t width = p.value_width;
  const int64_t head = block.batch * p.heads + block.head;
  T* lse = reinterpret_cast<T*>(p.lse) + head * p.queries + block.query;
  for (int64_t j = 0; j < block.queries; j++) {
    T* y = acc + j * width;
    const T share = r.sum[j] == 0 ? T(0) : T(1) / r.sum[j];
    for (int64_t d = 0; d < width; d++) y[d] = any_keys ? y[d] * share : T(0);
    attention_store(rows_at(p.out, block.batch, block.head, block.query + j), y, width, p.dtype);
    lse[j] = r.sum[j] == 0 ? kMinusInfinity<T> : r.maximum[j] + math::log(r.sum[j]);
  }
}

// out = the values weighted by the probabilities s. Groups of queries leave out the keys that the
// causal mask hides from all of them.
template <class T> TT_INLINE void weight_values(const AttentionPlan& p, const AttentionBlock& block,
                                                T* out, const T* s, const T* values) {
  const int64_t width = p.value_width;
  const int64_t group = p.causal ? kCausalGroup : block.queries;
  for (int64_t j = 0; j < block.queries; j += group) {
    const int64_t n = min(group, block.queries - j);
    const int64_t seen = block.query + j + n - block.key;
    const int64_t keys = p.causal ? min(seen, block.keys) : block.keys;
    attention_multiply(out + j * width, s + j, 1, block.lanes, values, n, width, keys, false);
  }
}

template <class T>
TT_NOINLINE void attend_query_block(const AttentionPlan& p, int64_t unit, char* memory) {
  const int64_t blocks = attention_query_blocks(p);
  const int64_t head = unit / blocks;
  AttentionBlock block;
  block.batch = head / p.heads;
  block.head = head % p.heads;
  block.query = unit % blocks * kAttentionQueries;
  block.queries = min(kAttentionQueries, p.queries - block.query);
  block.lanes = attention_lanes(block.queries);
  const int64_t key_head = block.head / (p.heads / p.key_heads);
  const int64_t width = p.width;
  const int64_t value_width = p.value_width;
  const int64_t keys = min(kAttentionKeys, p.keys);
  const int64_t end = p.causal ? min(p.keys, block.query + block.queries) : p.keys;
  Scratch<T> room = {memory};
  T* s = room.take(keys * block.lanes);
  T* spare = room.take(keys * block.lanes);
  T* q = room.take(width * block.lanes);
  T* k = room.take(keys * width);
  T* v = room.take(keys * value_width);
  T* acc = room.take(block.lanes * max(width, value_width));
  T* fresh = room.take(block.lanes * max(width, value_width));
  OnlineSoftmax<T> r;
  for (int64_t j = 0; j < block.lanes; j++) {
    r.maximum[j] = kMinusInfinity<T>;
    r.sum[j] = 0;
  }
  attention_transpose_scaled(q,
                             attention_rows(rows_at(p.q, block.batch, block.head, block.query),
                                            p.q.row, block.queries, width, p.dtype, acc),
                             block.queries, block.lanes, width, T(p.scale));
  for (block.key = 0; block.key < end; block.key += kAttentionKeys) {
    block.keys = min(kAttentionKeys, end - block.key);
    const T* keys_here = attention_rows(rows_at(p.k, block.batch, key_head, block.key), p.k.row,
                                        block.keys, width, p.dtype, k);
    attention_scores(p, block, s, keys_here, q, spare);
    add_scores(r, s, block.keys, block.lanes);
    for (int64_t j = 0; p.drop && j < block.queries; j++) {
      alignas(64) T factor[kAttentionKeys];
      attention_dropout_factors(p, block, j, factor);
      for (int64_t i = 0; i < block.keys; i++) s[i * block.lanes + j] *= factor[i];
    }
    const T* values = attention_rows(rows_at(p.v, block.batch, key_head, block.key), p.v.row,
                                     block.keys, value_width, p.dtype, v);
    weight_values(p, block, block.key ? fresh : acc, s, values);
    if (block.key) rescale_and_add(acc, fresh, r.rescale, block.queries, value_width);
  }
  store_block(p, block, r, acc, end > 0);
}

// ---- a single query ----

template <class T> TT_INLINE T sum_of_lanes(Vec<T> v) {
  T two[2];
  fold_lanes<T, kLanes<T>>(v, two, [](auto x, auto y) { return x + y; });
  return two[0] + two[1];
}

// s[i] = (q, key i), with keys `stride` bytes apart.
template <class T> TT_NOINLINE void score_keys(T* s, const T* q, const char* keys, int64_t stride,
                                               int64_t n, int64_t width) {
  constexpr int kL = kLanes<T>;
  for (int64_t i = 0; i < n; i++, keys += stride) {
    const T* k = reinterpret_cast<const T*>(keys);
    Vec<T> sum[2] = {};
    int64_t d = 0;
    for (; d + 2 * kL <= width; d += 2 * kL)
      for (int h = 0; h < 2; h++) sum[h] += load(k + d + h * kL) * load(q + d + h * kL);
    for (; d < width; d += kL) {
      const Part<T> part(int(min<int64_t>(width - d, kL)));
      sum[0] += load(k + d, part) * load(q + d, part);
    }
    s[i] = sum_of_lanes<T>(sum[0] + sum[1]);
  }
}

// acc = acc rescale + the sum of s[i] times value i; values are `stride` bytes apart.
template <class T> TT_NOINLINE void add_values(T* acc, T rescale, const T* s, const char* values,
                                               int64_t stride, int64_t n, int64_t width) {
  constexpr int kL = kLanes<T>;
  constexpr int kG = 4;
  int64_t d = 0;
  for (; d + kG * kL <= width; d += kG * kL) {
    Vec<T> sum[kG];
    for (int g = 0; g < kG; g++) sum[g] = load(acc + d + g * kL) * splat(rescale);
    for (int64_t i = 0; i < n; i++) {
      const T* v = reinterpret_cast<const T*>(values + i * stride) + d;
      for (int g = 0; g < kG; g++) sum[g] += load(v + g * kL) * splat(s[i]);
    }
    for (int g = 0; g < kG; g++) store(acc + d + g * kL, sum[g]);
  }
  for (; d < width; d += kL) {
    const Part<T> part(int(min<int64_t>(width - d, kL)));
    Vec<T> sum = load(acc + d, part) * splat(rescale);
    for (int64_t i = 0; i < n; i++)
      sum += load(reinterpret_cast<const T*>(values + i * stride) + d, part) * splat(s[i]);
    store(acc + d, sum, part);
  }
}

template <class T> bool takes_one_query(const AttentionPlan& p) {
  const bool native = p.dtype == (sizeof(T) == 8 ? TT_F64 : TT_F32);
  return native && p.queries == 1 && !p.mask_dtype && !p.causal && !p.drop && p.keys > 0;
}

// Unit: a head. memory has room for the query and the result.
template <class T>
TT_NOINLINE void attend_one_query(const AttentionPlan& p, int64_t head, char* memory) {
  const int64_t batch = head / p.heads;
  const int64_t key_head = head % p.heads / (p.heads / p.key_heads);
  Scratch<T> room = {memory};
  T* q = room.take(p.width);
  T* acc = room.take(p.value_width);
  alignas(64) T s[kAttentionKeys], shift[kAttentionKeys], sum[kAttentionKeys];
  const T* given = reinterpret_cast<const T*>(rows_at(p.q, batch, head % p.heads, 0));
  for (int64_t d = 0; d < p.width; d++) q[d] = given[d] * T(p.scale);
  for (int64_t d = 0; d < p.value_width; d++) acc[d] = 0;
  for (T& part : sum) part = 0;
  T maximum = kMinusInfinity<T>;
  for (int64_t key = 0; key < p.keys; key += kAttentionKeys) {
    const int64_t n = min(kAttentionKeys, p.keys - key);
    score_keys(s, q, rows_at(p.k, batch, key_head, key), p.k.row, n, p.width);
    const int64_t lanes = attention_lanes(n);
    for (int64_t i = n; i < lanes; i++) s[i] = kMinusInfinity<T>;
    T largest = maximum;
    for (int64_t i = 0; i < n; i++) largest = s[i] > largest ? s[i] : largest;
    const T at = largest == kMinusInfinity<T> ? T(0) : largest;
    const T rescale = math::exp(maximum - at);
    maximum = largest;
    for (T& part : sum) part *= rescale;
    for (T& each : shift) each = at;
    for (int64_t i = 0; i < lanes; i += kAttentionQueries)
      exp_block(s + i, shift + i, sum + i, 1, min(kAttentionQueries, lanes - i));
    add_values(acc, rescale, s, rows_at(p.v, batch, key_head, key), p.v.row, n, p.value_width);
  }
  T total = 0;
  for (T part : sum) total += part;
  const T share = total == 0 ? T(0) : T(1) / total;
  for (int64_t d = 0; d < p.value_width; d++) acc[d] *= share;
  attention_store(rows_at(p.out, batch, head % p.heads, 0), acc, p.value_width, p.dtype);
  reinterpret_cast<T*>(p.lse)[head] = total == 0 ? kMinusInfinity<T> : maximum + math::log(total);
}

template <class T>
inline int32_t run_attention(const AttentionPlan& p, int64_t begin, int64_t end) {
  char* memory = p.workspace + begin / p.run.grain[0] * p.slot_bytes;
  if (p.tiles) {
    attention_bf16_amx(p, begin, end, memory);
    return TT_OK;
  }
  const bool one = takes_one_query<T>(p);
  for (int64_t u = begin; u < end; u++) {
    if (one) attend_one_query<T>(p, u, memory);
    else attend_query_block<T>(p, u, memory);
  }
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
