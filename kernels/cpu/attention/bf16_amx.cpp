// attention forward of bf16 by the tiles of AMX: as attention.cpp, but several blocks of queries
// share the packed keys and values.
#include "kernels/cpu/attention/tiles.h"

#if TT_AMX

TT_ISA_BEGIN

// A block of queries, and the state of its online softmax.
struct QueryBlock {
  AttentionBlock at;
  int32_t* queries;  // pairs of columns
  float* acc;        // [width of the values][lanes], before the division by the sum
  alignas(64) float maximum[kAttentionQueries];
  alignas(64) float sum[kAttentionQueries];
};

struct ForwardRoom {
  int32_t *keys, *values, *weights, *low_weights;
  float *scores, *spare;
  bool finite_values;  // of the block of keys
  QueryBlock blocks[kAttentionTileQueries / kAttentionQueries];
};

// The maximum of n scores, `lanes` apart, and of `most`.
TT_INLINE Floats largest_score(const float* s, int64_t n, int64_t lanes, Floats most) {
  Floats m[4] = {most, most, most, most};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; k++) m[k] = vmax(load(s + (i + k) * lanes), m[k]);
  for (; i < n; i++) m[0] = vmax(load(s + i * lanes), m[0]);
  return vmax(vmax(m[0], m[1]), vmax(m[2], m[3]));
}

// Stores pairs of 2^(s factor + add) of n scores, each times its factor in `drop` if kDrop, and
// zeros up to `padded` keys: a term of bf16 in `out`, and what it leaves in `low`. Returns the sum
// without these factors.
template <bool kDrop> TT_INLINE Floats exp_pairs(const float* s, const float* drop, int64_t n,
                                                 int64_t padded, int64_t lanes, Floats factor,
                                                 Floats add, int32_t* out, int32_t* low) {
  Floats total[2] = {};
  const auto weight = [&](int64_t i, Floats* sum) TT_INLINE_BODY {
    const Floats e = exp2_of(fma(load(s + i * lanes), factor, add));
    *sum += e;
    return kDrop ? e * load(drop + i * lanes) : e;
  };
  const auto put = [&](int64_t i, Floats even, Floats odd) TT_INLINE_BODY {
    const Words pairs = narrow_pairs(even, odd);
    store(out + i / 2 * lanes, pairs);
    store(low + i / 2 * lanes,
          narrow_pairs(even - Floats(pairs << 16), odd - Floats(pairs & splat(kUpper))));
  };
  int64_t i = 0;
  for (; i + 2 <= n; i += 2) {
    const Floats even = weight(i, &total[0]);
    put(i, even, weight(i + 1, &total[1]));
  }
  if (i < n) {
    put(i, weight(i, &total[0]), Floats{});
    i += 2;
  }
  for (; i < padded; i += 2) put(i, Floats{}, Floats{});
  return total[0] + total[1];
}

TT_INLINE void rescale_columns(float* acc, int64_t rows, int64_t lanes, Floats factor) {
  for (int64_t i = 0; i < rows; i++) store(acc + i * lanes, load(acc + i * lanes) * factor);
}

// Adds a block of scores to the softmax, and stores its weights as pairs of keys.
template <bool kDrop>
TT_NOINLINE void add_scores(const AttentionPlan& p, QueryBlock& q, const ForwardRoom& room) {
  const AttentionBlock& b = q.at;
  const int64_t rows = round_up(p.value_width, kAmxRows);
  const Floats factor = splat(factor_of_scores(p) * kLog2e);
  for (int64_t lane = 0; lane < b.lanes; lane += kAmxRows) {
    const int64_t n = keys_seen(p, b, lane);
    const int64_t padded = round_up(keys_of_pair(p, b, lane), kStep);
    const Floats before = load(q.maximum + lane);
    const Floats most = largest_score(room.scores + lane, n, b.lanes, before);
    const Words none = Words(most == splat(kMinusInfinity<float>));
    const Floats shift = Floats(Words(most) & ~none);
    const Floats rescale = Floats(math::exp2_lanes(math::F32v((before - shift) * factor)));
    if (b.key && any_differs(before, most)) rescale_columns(q.acc + lane, rows, b.lanes, rescale);
    const Floats sum =
        exp_pairs<kDrop>(room.scores + lane, room.spare + lane, n, padded, b.lanes, factor,
                         -shift * factor, room.weights + lane, room.low_weights + lane);
    store(q.maximum + lane, most);
    store(q.sum + lane, load(q.sum + lane) * rescale + sum);
  }
}

// Adds the products of the weights and the values to acc.
TT_NOINLINE void add_values(const AttentionPlan& p, const QueryBlock& q, const ForwardRoom& room) {
  const AttentionBlock& b = q.at;
  const int64_t rows = round_up(p.value_width, kAmxRows);
  const TileProduct product = {rows,
                               b.lanes,
                               0,
                               tiles_factor(room.values, kAttentionKeys / kStep),
                               pairs_factor(room.weights, b.lanes),
                               q.acc,
                               b.lanes,
                               b.key > 0};
  multiply_pairs(p, b, product, room.low_weights, room.finite_values);
}

TT_NOINLINE void store_results(const AttentionPlan& p, const QueryBlock& q) {
  const AttentionBlock& b = q.at;
  const int64_t head = b.batch * p.heads + b.head;
  float* lse = reinterpret_cast<float*>(p.lse) + head * p.queries + b.query;
  alignas(64) float share[kAttentionQueries];
  for (int64_t j = 0; j < b.lanes; j++) share[j] = q.sum[j] == 0 ? 0.0f : 1 / q.sum[j];
  for (int64_t j = 0; j < b.queries; j++)
    lse[j] = q.sum[j] == 0 ? kMinusInfinity<float>
                           : q.maximum[j] * factor_of_scores(p) + math::log(q.sum[j]);
  store_columns(half_rows(p.out, b.batch, b.head, b.query), q.acc, b.lanes, b.queries,
                p.value_width, share);
}

TT_NOINLINE void attend_key_block(const AttentionPlan& p, int64_t key, int64_t blocks,
                                  ForwardRoom& room) {
  const AttentionBlock& first = room.blocks[0].at;
  const int64_t key_head = first.head / (p.heads / p.key_heads);
  const int64_t keys = min(kAttentionKeys, p.keys - key);
  pack_rows_tiles(half_rows(p.k, first.batch, key_head, key), keys, p.width, room.keys);
  pack_turned_tiles(half_rows(p.v, first.batch, key_head, key), keys, p.value_width,
                    kAttentionKeys / kStep, room.values);
  room.finite_values = finite_rows(half_rows(p.v, first.batch, key_head, key), keys, p.value_width);
  for (int64_t i = 0; i < blocks; i++) {
    QueryBlock& q = room.blocks[i];
    if (p.causal && key >= q.at.query + q.at.queries) continue;
    q.at.key = key;
    q.at.keys = p.causal ? min(keys, q.at.query + q.at.queries - key) : keys;
    scores_by_tiles(p, q.at, tiles_factor(room.keys, ceil_div(p.width, kStep)),
                    pairs_factor(q.queries, q.at.lanes), room.scores, room.spare);
    if (p.drop) {
      dropout_columns(p, q.at, room.spare);
      add_scores<true>(p, q, room);
    } else {
      add_scores<false>(p, q, room);
    }
    add_values(p, q, room);
  }
}

TT_NOINLINE void attend_unit(const AttentionPlan& p, int64_t unit, char* memory) {
  const int64_t units = attention_query_blocks(p);
  const int64_t head = unit / units;
  const int64_t query = unit % units * kAttentionTileQueries;
  const int64_t end = min(p.queries, query + kAttentionTileQueries);
  const int64_t blocks = ceil_div(end - query, kAttentionQueries);
  Scratch<float> memory_left = {memory};
  ForwardRoom room;
  room.keys = take_words(memory_left, kAttentionKeys * round_up(p.width, kStep) / 2);
  room.values = take_words(memory_left, kAttentionKeys * round_up(p.value_width, kStep) / 2);
  room.weights = take_words(memory_left, kAttentionKeys * kAttentionQueries / 2);
  room.low_weights = take_words(memory_left, kAttentionKeys * kAttentionQueries / 2);
  room.scores = memory_left.take(kAttentionKeys * kAttentionQueries);
  room.spare = memory_left.take(kAttentionKeys * kAttentionQueries);
  for (int64_t i = 0; i < blocks; i++) {
    QueryBlock& q = room.blocks[i];
    q.at = query_block(p, head, query + i * kAttentionQueries);
    q.queries = take_words(memory_left, kAttentionQueries * round_up(p.width, kStep) / 2);
    q.acc = memory_left.take(kAttentionQueries * round_up(p.value_width, kStep));
    pack_pairs_of_columns(half_rows(p.q, q.at.batch, q.at.head, q.at.query), q.at.queries, p.width,
                          q.at.lanes, q.queries);
    for (int64_t j = 0; j < q.at.lanes; j++) {
      q.maximum[j] = kMinusInfinity<float>;
      q.sum[j] = 0;
    }
  }
  const int64_t keys = p.causal ? min(p.keys, end) : p.keys;
  for (int64_t key = 0; key < keys; key += kAttentionKeys) attend_key_block(p, key, blocks, room);
  for (int64_t i = 0; i < blocks; i++) store_results(p, room.blocks[i]);
}

TT_ISA_END

TT_ENTRY_BEGIN

void attention_bf16_amx(const AttentionPlan& p, int64_t begin, int64_t end, char* memory) noexcept {
  const AmxTiles tiles;
  for (int64_t u = begin; u < end; u++) attend_unit(p, u, memory);
}

TT_ENTRY_END

#else  // never called

TT_ENTRY_BEGIN
void attention_bf16_amx(const AttentionPlan&, int64_t, int64_t, char*) noexcept {}
TT_ENTRY_END

#endif
