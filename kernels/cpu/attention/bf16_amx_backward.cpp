// attention backward of bf16 by the tiles of AMX: the formulas of backward.cpp. A group of up to
// kAttentionTileKeys keys is packed once for all queries, and its gradients are sums in f32; those
// of the queries are sums over all keys, computed transposed.
#include "kernels/cpu/attention/tiles.h"

#if TT_AMX

TT_ISA_BEGIN

// Memory of a task. A group of keys is kAttentionTileKeys of them, of which kAttentionKeys make a
// block.
struct BackwardRoom {
  int64_t width, value_width;  // multiples of 32
  int64_t key_steps;           // of a group
  int32_t *keys, *turned_keys, *values;
  float *dk, *dv;                   // of a group of keys, [key][width]
  int32_t *queries, *grads;         // of a block of queries, pairs of columns
  int32_t *query_rows, *grad_rows;  // the same, pairs of rows
  float *scores, *ds, *spare;       // of a block, [key][query]
  // Terms of bf16, and what these leave.
  int32_t *weight_rows, *low_weight_rows, *ds_rows, *low_ds_rows;  // [key][query]
  int32_t *ds_pairs, *low_ds_pairs;                                // pairs of keys
  float* dq;  // [block of queries][width][lanes]
};

BackwardRoom room_of(const AttentionPlan& p, char* memory) {
  const int64_t n = kAttentionQueries;
  const int64_t keys = min(kAttentionTileKeys, round_up(p.keys, kAttentionKeys));
  BackwardRoom r;
  r.width = round_up(p.width, kStep);
  r.value_width = round_up(p.value_width, kStep);
  r.key_steps = keys / kStep;
  Scratch<float> left = {memory};
  r.keys = take_words(left, keys * r.width / 2);
  r.turned_keys = take_words(left, keys * r.width / 2);
  r.values = take_words(left, keys * r.value_width / 2);
  r.dk = left.take(keys * r.width);
  r.dv = left.take(keys * r.value_width);
  r.queries = take_words(left, n * r.width / 2);
  r.grads = take_words(left, n * r.value_width / 2);
  r.query_rows = take_words(left, n * r.width / 2);
  r.grad_rows = take_words(left, n * r.value_width / 2);
  r.scores = left.take(kAttentionKeys * n);
  r.ds = left.take(kAttentionKeys * n);
  r.spare = left.take(kAttentionKeys * n);
  r.weight_rows = take_words(left, kAttentionKeys * n / 2);
  r.low_weight_rows = take_words(left, kAttentionKeys * n / 2);
  r.ds_rows = take_words(left, kAttentionKeys * n / 2);
  r.low_ds_rows = take_words(left, kAttentionKeys * n / 2);
  r.ds_pairs = take_words(left, kAttentionKeys * n / 2);
  r.low_ds_pairs = take_words(left, kAttentionKeys * n / 2);
  r.dq = left.take(0);
  return r;
}

// [pairs of rows, whole steps][columns, `ld` of them, a multiple of 32].
TT_NOINLINE void pack_pairs_of_rows(const HalfRows& x, int64_t n, int64_t width, int64_t ld,
                                    int32_t* out) {
  for (int64_t i = 0; i < round_up(n, kStep); i += 2, out += ld)
    for (int64_t j = 0; j < ld; j += kStep) {
      const Words even = i < n ? words_of(x.row(i) + j, width - j) : Words{};
      const Words odd = i + 1 < n ? words_of(x.row(i + 1) + j, width - j) : Words{};
      store(out + j, zip_words(even, odd, 0));
      store(out + j + kRowWords, zip_words(even, odd, 16));
    }
}

// Stores n rows of acc, ld elements apart, times a factor.
TT_NOINLINE void store_rows(const HalfRows& out, const float* acc, int64_t ld, int64_t n,
                            int64_t width, float factor) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t d = 0; d < width; d += kStep) {
      const float* at = acc + i * ld + d;
      const Words halves =
          narrow_two(load(at) * splat(factor), load(at + kAmxRows) * splat(factor));
      store_words(const_cast<Bf16*>(out.row(i)) + d, halves, int(min(width - d, kStep)));
    }
}

constexpr int64_t kRowPitch = kAttentionQueries / 2;  // words of a row of weight_rows

// The factors of 32 queries of a block.
struct QueryFactors {
  Floats factor;    // of scores
  Floats shift[2];  // log-sum-exp, as an exponent of 2
  Floats delta[2];
};

// A row of a block: 32 terms of bf16, and what these leave.
struct TermRow {
  Words high, low;
  TT_INLINE TermRow() : high{}, low{} {}
  TT_INLINE explicit TermRow(const Floats (&x)[2]) {
    high = narrow_two(x[0], x[1]);
    low = narrow_two(low_term(x[0], floats_of_words(high, false)),
                     low_term(x[1], floats_of_words(high, true)));
  }
};

// weights = 2^(s factor - shift), ds = weights (dweights - delta), for n keys and 16 queries or, if
// kTwo, 32. Rows from n up to `padded` keys are 0.
template <bool kTwo, bool kDrop>
TT_INLINE void score_gradients(const BackwardRoom& r, const QueryFactors& f, int64_t lane,
                               int64_t lanes, int64_t n, int64_t padded) {
  const auto store_row = [&](int64_t i, const TermRow& weights, const TermRow& ds) TT_INLINE_BODY {
    const int64_t at = lane / 2 + i * kRowPitch;
    store(r.weight_rows + at, weights.high);
    store(r.low_weight_rows + at, weights.low);
    store(r.ds_rows + at, ds.high);
    store(r.low_ds_rows + at, ds.low);
  };
  // Stores the row of a key, and returns its gradients.
  const auto row = [&](int64_t i) TT_INLINE_BODY {
    Floats weight[2] = {}, ds[2] = {};
    if (i < n) {
      TT_UNROLL
      for (int h = 0; h < 1 + kTwo; h++) {
        const int64_t at = i * lanes + lane + h * kAmxRows;
        const Floats e = exp2_of(fma(load(r.scores + at), f.factor, -f.shift[h]));
        const Floats keep = kDrop ? load(r.spare + at) : Floats{};
        const Floats dweight = kDrop ? load(r.ds + at) * keep : load(r.ds + at);
        weight[h] = kDrop ? e * keep : e;
        ds[h] = e * (dweight - f.delta[h]);
      }
    }
    const TermRow terms(ds);
    store_row(i, TermRow(weight), terms);
    return terms;
  };
  const auto store_pairs = [&](int32_t* pairs, Words even, Words odd) TT_INLINE_BODY {
    store(pairs, zip_words(even, odd, 0));
    if (kTwo) store(pairs + kAmxRows, zip_words(even, odd, 16));
  };
  for (int64_t i = 0; i < padded; i += 2) {
    const TermRow even = row(i);
    const TermRow odd = row(i + 1);
    const int64_t at = lane + i / 2 * lanes;
    store_pairs(r.ds_pairs + at, even.high, odd.high);
    store_pairs(r.low_ds_pairs + at, even.low, odd.low);
  }
}

template <bool kDrop> TT_NOINLINE void block_gradients(const AttentionPlan& p,
                                                       const AttentionBlock& b,
                                                       const BackwardRoom& r) {
  const int64_t row = (b.batch * p.heads + b.head) * p.queries + b.query;
  alignas(64) float shift[kAttentionQueries];
  alignas(64) float delta[kAttentionQueries];
  for (int64_t j = 0; j < b.lanes; j++) {
    const bool real = j < b.queries;
    const float lse = real ? reinterpret_cast<const float*>(p.lse)[row + j] : kMinusInfinity<float>;
    // A query without keys: the shift is infinite, so that all weights are 0.
    shift[j] = lse == kMinusInfinity<float> ? -kMinusInfinity<float> : lse * kLog2e;
    delta[j] = real ? reinterpret_cast<const float*>(p.delta)[row + j] : 0.0f;
  }
  QueryFactors f;
  f.factor = splat(factor_of_scores(p) * kLog2e);
  const int64_t all = round_up(b.keys, kStep);
  for (int64_t lane = 0; lane < b.lanes; lane += kAmxBlock) {
    const bool two = lane + kAmxRows < b.lanes;
    for (int h = 0; h < 1 + two; h++) {
      f.shift[h] = load(shift + lane + h * kAmxRows);
      f.delta[h] = load(delta + lane + h * kAmxRows);
    }
    const int64_t n = keys_of_pair(p, b, lane);
    if (two) score_gradients<true, kDrop>(r, f, lane, b.lanes, n, all);
    else score_gradients<false, kDrop>(r, f, lane, b.lanes, n, all);
  }
}

// dk or dv of a block of keys: sum += left [key][query] times the rows of the queries.
TT_INLINE void add_key_sums(const AttentionPlan& p, const AttentionBlock& b, const int32_t* left,
                            const int32_t* right, int64_t width, float* sum) {
  const int64_t row = kRowPitch * int64_t(sizeof(int32_t));
  for (int64_t i = 0; i < b.keys; i += kAmxBlock) {
    // The first step whose queries see these keys.
    const int64_t ahead = p.causal ? max<int64_t>(b.key + i - b.query, 0) : 0;
    const int64_t step = ahead / kStep;
    const TileFactor rows = {left + step * kRowWords, row, kAmxRows * row, kAmxRowBytes};
    const TileProduct product = {b.keys,
                                 width,
                                 ceil_div(b.lanes, kStep) - step,
                                 rows,
                                 pairs_factor(right + step * kRowWords * width, width),
                                 sum,
                                 width,
                                 true};
    for (int64_t j = 0; j < width; j += kAmxBlock) multiply_block(product, i, j, product.steps);
  }
}

// Which factors of the low terms are finite.
struct FiniteFactors {
  bool keys, queries, grads;
};

// A block of keys of the group that begins at `group`, and a block of queries.
TT_NOINLINE void block_pair(const AttentionPlan& p, const AttentionBlock& b, const BackwardRoom& r,
                            int64_t group, float* dq, bool of_keys, const FiniteFactors& finite) {
  const int64_t at = b.key - group;
  const int64_t steps = r.width / kStep;
  const int64_t value_steps = r.value_width / kStep;
  scores_by_tiles(p, b, tiles_factor(r.keys + at * r.width / 2, steps),
                  pairs_factor(r.queries, b.lanes), r.scores, r.spare);
  const TileProduct dweights = {b.keys,
                                b.lanes,
                                value_steps,
                                tiles_factor(r.values + at * r.value_width / 2, value_steps),
                                pairs_factor(r.grads, b.lanes),
                                r.ds,
                                b.lanes,
                                false};
  multiply_seen(p, b, dweights);
  if (p.drop) {
    dropout_columns(p, b, r.spare);
    block_gradients<true>(p, b, r);
  } else {
    block_gradients<false>(p, b, r);
  }
  if (of_keys) {
    float* const dv = r.dv + at * r.value_width;
    float* const dk = r.dk + at * r.width;
    add_key_sums(p, b, r.weight_rows, r.grad_rows, r.value_width, dv);
    add_key_sums(p, b, r.ds_rows, r.query_rows, r.width, dk);
    if (finite.grads) add_key_sums(p, b, r.low_weight_rows, r.grad_rows, r.value_width, dv);
    if (finite.queries) add_key_sums(p, b, r.low_ds_rows, r.query_rows, r.width, dk);
  }
  if (!dq) return;
  const TileProduct product = {r.width,
                               b.lanes,
                               0,
                               tiles_factor(r.turned_keys + at / kStep * kTileWords, r.key_steps),
                               pairs_factor(r.ds_pairs, b.lanes),
                               dq,
                               b.lanes,
                               b.key > 0};
  multiply_pairs(p, b, product, r.low_ds_pairs, finite.keys);
}

// The queries and keys of a task: heads [head, head_end) read the key head.
struct GradientRange {
  int64_t batch, key_head;
  int64_t head, head_end;
  int64_t query, query_end;
  int64_t key, key_end;
  bool of_keys, of_queries;
};

// dq of the block of queries that begins at `query`, in the room.
TT_INLINE float* dq_of(const AttentionPlan& p, const BackwardRoom& r, const GradientRange& g,
                       int64_t head, int64_t query) {
  const int64_t blocks = ceil_div(g.query_end - g.query, kAttentionQueries);
  const int64_t at = (head - g.head) * blocks + (query - g.query) / kAttentionQueries;
  (void)p;
  return r.dq + at * r.width * kAttentionQueries;
}

TT_NOINLINE void pack_queries(const AttentionPlan& p, const AttentionBlock& b,
                              const BackwardRoom& r, bool of_keys) {
  const HalfRows q = half_rows(p.q, b.batch, b.head, b.query);
  const HalfRows g = half_rows(p.grad, b.batch, b.head, b.query);
  pack_pairs_of_columns(q, b.queries, p.width, b.lanes, r.queries);
  pack_pairs_of_columns(g, b.queries, p.value_width, b.lanes, r.grads);
  if (!of_keys) return;
  pack_pairs_of_rows(q, b.queries, p.width, r.width, r.query_rows);
  pack_pairs_of_rows(g, b.queries, p.value_width, r.value_width, r.grad_rows);
}

// A group of keys from `group` on.
TT_NOINLINE void key_group_gradients(const AttentionPlan& p, const GradientRange& g, int64_t group,
                                     const BackwardRoom& r) {
  const int64_t n = min(g.key_end - group, kAttentionTileKeys);
  const HalfRows keys = half_rows(p.k, g.batch, g.key_head, group);
  pack_rows_tiles(keys, n, p.width, r.keys);
  pack_rows_tiles(half_rows(p.v, g.batch, g.key_head, group), n, p.value_width, r.values);
  if (g.of_queries) pack_turned_tiles(keys, n, p.width, r.key_steps, r.turned_keys);
  if (g.of_keys) {
    memset(r.dk, 0, size_t(n * r.width) * sizeof(float));
    memset(r.dv, 0, size_t(n * r.value_width) * sizeof(float));
  }
  FiniteFactors finite = {.keys = finite_rows(keys, n, p.width), .queries = true, .grads = true};
  const int64_t hidden = p.causal ? group / kAttentionQueries * kAttentionQueries : 0;
  for (int64_t head = g.head; head < g.head_end; head++)
    for (int64_t query = max(g.query, hidden); query < g.query_end; query += kAttentionQueries) {
      AttentionBlock b = query_block(p, g.batch * p.heads + head, query);
      pack_queries(p, b, r, g.of_keys);
      finite.queries = finite_rows(half_rows(p.q, b.batch, b.head, b.query), b.queries, p.width);
      finite.grads =
          finite_rows(half_rows(p.grad, b.batch, b.head, b.query), b.queries, p.value_width);
      float* const dq = g.of_queries ? dq_of(p, r, g, head, query) : nullptr;
      const int64_t end = p.causal ? min(group + n, query + b.queries) : group + n;
      for (b.key = group; b.key < end; b.key += kAttentionKeys) {
        b.keys = min(kAttentionKeys, end - b.key);
        block_pair(p, b, r, group, dq, g.of_keys, finite);
      }
    }
  if (!g.of_keys) return;
  const int64_t row = (g.batch * p.key_heads + g.key_head) * p.keys + group;
  const int64_t pitch = p.width * int64_t(sizeof(Bf16));
  const int64_t value_pitch = p.value_width * int64_t(sizeof(Bf16));
  store_rows({p.dk + row * pitch, pitch}, r.dk, r.width, n, p.width, float(p.scale));
  store_rows({p.dv + row * value_pitch, value_pitch}, r.dv, r.value_width, n, p.value_width, 1);
}

// delta of the queries: the products of grad and out.
TT_NOINLINE void set_delta(const AttentionPlan& p, const GradientRange& g) {
  for (int64_t head = g.head; head < g.head_end; head++) {
    const HalfRows grad = half_rows(p.grad, g.batch, head, 0);
    const HalfRows out = half_rows(p.out, g.batch, head, 0);
    float* delta = reinterpret_cast<float*>(p.delta) + (g.batch * p.heads + head) * p.queries;
    for (int64_t i = g.query; i < g.query_end; i++) {
      Floats sum[2] = {};
      for (int64_t d = 0; d < p.value_width; d += kStep) {
        const Words x = words_of(grad.row(i) + d, p.value_width - d);
        const Words y = words_of(out.row(i) + d, p.value_width - d);
        sum[0] += Floats(x & splat(kUpper)) * Floats(y & splat(kUpper));
        sum[1] += Floats(x << 16) * Floats(y << 16);
      }
      float two[2];
      fold_lanes<float, kLanes<float>>(sum[0] + sum[1], two, [](auto x, auto y) { return x + y; });
      delta[i] = two[0] + two[1];
    }
  }
}

TT_NOINLINE void range_gradients(const AttentionPlan& p, const GradientRange& g, char* memory) {
  const BackwardRoom r = room_of(p, memory);
  if (g.of_queries) set_delta(p, g);
  const int64_t end = g.of_keys || !p.causal ? g.key_end : min(g.key_end, g.query_end);
  for (int64_t group = g.key; group < end; group += kAttentionTileKeys)
    key_group_gradients(p, g, group, r);
  if (!g.of_queries) return;
  alignas(64) float scale[kAttentionQueries];
  for (float& each : scale) each = float(p.scale);
  const int64_t pitch = p.width * int64_t(sizeof(Bf16));
  for (int64_t head = g.head; head < g.head_end; head++)
    for (int64_t query = g.query; query < g.query_end; query += kAttentionQueries) {
      const AttentionBlock b = query_block(p, g.batch * p.heads + head, query);
      const int64_t row = (g.batch * p.heads + head) * p.queries + query;
      store_columns({p.dq + row * pitch, pitch}, dq_of(p, r, g, head, query), b.lanes, b.queries,
                    p.width, scale);
    }
}

GradientRange range_of(const AttentionPlan& p, int64_t unit) {
  const int64_t group = p.heads / p.key_heads;
  GradientRange g = {};
  g.query_end = p.queries;
  g.key_end = p.keys;
  g.of_keys = p.run.n == 1 || p.run.stage == 1;
  g.of_queries = p.run.n == 1 || p.run.stage == 0;
  if (g.of_keys) {
    const int64_t blocks = p.run.n == 1 ? 1 : attention_key_blocks(p);
    g.batch = unit / blocks / p.key_heads;
    g.key_head = unit / blocks % p.key_heads;
    g.head = g.key_head * group;
    g.head_end = g.head + group;
    if (p.run.n == 1) return g;
    g.key = unit % blocks * kAttentionTileKeys;
    g.key_end = min(p.keys, g.key + kAttentionTileKeys);
    return g;
  }
  const int64_t blocks = attention_query_blocks(p);
  const int64_t head = unit / blocks;
  g.batch = head / p.heads;
  g.head = head % p.heads;
  g.head_end = g.head + 1;
  g.key_head = g.head / group;
  g.query = unit % blocks * kAttentionTileQueries;
  g.query_end = min(p.queries, g.query + kAttentionTileQueries);
  return g;
}

TT_ISA_END

TT_ENTRY_BEGIN

void attention_backward_bf16_amx(const AttentionPlan& p, int64_t begin, int64_t end,
                                 char* memory) noexcept {
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) range_gradients(p, range_of(p, u), memory);
}

TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void attention_backward_bf16_amx(const AttentionPlan&, int64_t, int64_t, char*) noexcept {}
TT_ENTRY_END

#endif
