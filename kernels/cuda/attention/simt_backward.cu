// The gradients of attention of floats without tensor cores (simt.h), in one pass. A block has some
// blocks of kSide keys, one after the other, and goes through the queries of each head that reads
// them:
//   p = 2^(factor q k^T - shift),  dv += (p f)^T g,  dz = g v^T
//   ds = p (dz f - delta),         dk += ds^T q,     dq += ds k
// Warps 0 and 1 have p and dv, warps 2 and 3 dz, ds and dk, each warp half of the keys: what it
// multiplies then is its own. All warps add to dq, each its rows.
//
//   keys, values         [kSide][kWidth]; in shared memory, as all tiles
//   queries, gradients   [kSide][kWidth]
//   weights, changes     [kSide queries][kSide keys]: p, ds
//   shift, delta         [kSide], of queries; in the workspace [heads][queries padded to kPadding]
//
// dq is added to in memory: in the order of keys by the only block that has them, or in the
// workspace, [split][heads][queries][width], whose splits are then added up in their order.
#include "kernels/cuda/attention/flash.h"

#include "kernels/cuda/attention/simt.h"

namespace TT_NS {
namespace {

constexpr int kPadding = 64;

template <int kWidth_, int kSide_, int kBlocks_> struct SimtGradientShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kSide = kSide_;      // queries, and keys
  static constexpr int kBlocks = kBlocks_;  // of a multiprocessor
  static constexpr int kStrips = kWidth / kStrip;
  static constexpr int kTile = kSide * kWidth;
  static constexpr int kScores = kSide * kSide;
  static constexpr int kBytes = 4 * (4 * kTile + 2 * kScores + 2 * kSide);
  // Scores of a thread: its queries and keys.
  static constexpr int kRowsEach = kSide / 8;
  static constexpr int kKeysEach = kSide / 8;
  // dq: of a warp 16 queries, and the strips that are left.
  static constexpr int kQueryWarps = kSide / 16;
  static constexpr int kStripsEach = kStrips * kQueryWarps / 4;
};

// For a block with all keys, as score_gradients in backward.cu: divides p in `weights` by its sum,
// and replaces dz f in `changes` by ds, where delta is the sum of p dz f.
template <int kSide> __device__ __forceinline__ void finish_rows(float* weights, float* changes) {
  constexpr int kEach = kTileThreads / kSide;  // threads of a row
  const int row = int(threadIdx.x) / kEach;
  const int first = int(threadIdx.x) % kEach;
  const auto each_pack = [&](const auto& f) {
#pragma unroll 1
    for (int n = first; n < kSide / 4; n += kEach) {
      const int at = n / kStripPacks * kSide * kStrip + strip_place(row, n % kStripPacks);
      f(*reinterpret_cast<Four*>(weights + at), *reinterpret_cast<Four*>(changes + at));
    }
  };
  float sum = 0, delta = 0;
  each_pack([&](const Four& weight, const Four& change) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
      sum += weight.of[e];
      delta = multiply_add(weight.of[e], change.of[e], delta);
    }
  });
#pragma unroll
  for (int other = 1; other < kEach; other *= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, other);
    delta += __shfl_xor_sync(kAllLanes, delta, other);
  }
  const float share = sum > 0 ? 1.0f / sum : 0.0f;
  delta *= share;
  each_pack([&](Four& weight, Four& change) {
    Four p = weight, ds = change;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      p.of[e] *= share;
      ds.of[e] = p.of[e] * (ds.of[e] - delta);
    }
    weight = p;
    change = ds;
  });
}

// The tiles of a block, one behind the other in shared memory.
template <class Shape> struct GradientTiles {
  float *keys, *values, *queries, *gradients, *weights, *changes, *shift, *delta;

  __device__ __forceinline__ explicit GradientTiles(float* all)
      : keys(all),
        values(keys + Shape::kTile),
        queries(values + Shape::kTile),
        gradients(queries + Shape::kTile),
        weights(gradients + Shape::kTile),
        changes(weights + Shape::kScores),
        shift(changes + Shape::kScores),
        delta(shift + Shape::kSide) {}
  __device__ __forceinline__ void load_queries(const SimtArguments& a, int64_t batch, int head,
                                               int query) const {
    constexpr int kSide = Shape::kSide, kStrips = Shape::kStrips;
    const AttentionPlan& p = a.p;
    const TileRows q(p.q, batch, head, p.width, true);
    const TileRows g(p.grad, batch, head, p.value_width, true);
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      load_strip<kSide>(queries + s * kSide * kStrip, q, query, p.queries, s * kStrip);
      load_strip<kSide>(gradients + s * kSide * kStrip, g, query, p.queries, s * kStrip);
    }
    load_numbers<kSide>(shift, a.shift, a.delta, (batch * p.heads + head) * a.padded + query);
    device::commit_copies();
  }
};

// Makes p in `weights` and ds in `changes` from the products of a thread: q k^T of the warps that
// have weights, dz of the others.
template <class Shape>
__device__ __forceinline__ void finish_block(const SimtArguments& a, const AttentionBlock& b,
                                             const GradientTiles<Shape>& tiles,
                                             const SimtPlace<Shape::kSide>& place, bool has_weights,
                                             float (&score)[Shape::kRowsEach][Shape::kKeysEach]) {
  constexpr int kSide = Shape::kSide;
  const AttentionPlan& p = a.p;
  const auto drop = [&](int row, int column, float x) {
    return x * keep_factor<float>(p, b, row, column);
  };
  if (has_weights) {
    finish_scores(a, b, place, tiles.weights, score);
#pragma unroll
    for (int i = 0; i < Shape::kRowsEach; i++) {
      const float its_shift = tiles.shift[place.query_of(i)];
#pragma unroll
      for (int j = 0; j < Shape::kKeysEach; j++)
        score[i][j] = device::fast_exp2(multiply_add(score[i][j], a.factor, -its_shift));
    }
    place.store(tiles.weights, score);
  }
  __syncthreads();
  if (!has_weights && p.drop) place.change(tiles.changes, score, drop);
  if (p.keys <= kSide) {
    if (!has_weights) place.store(tiles.changes, score);
    __syncthreads();
    finish_rows<kSide>(tiles.weights, tiles.changes);
    __syncthreads();
  } else if (!has_weights) {
#pragma unroll
    for (int i = 0; i < Shape::kRowsEach; i++) {
      const float its_delta = tiles.delta[place.query_of(i)];
#pragma unroll
      for (int j = 0; j < Shape::kKeysEach; j += 4) {
        const Four weight = four_at(tiles.weights + place.at(i, j));
#pragma unroll
        for (int e = 0; e < 4; e++) score[i][j + e] = weight.of[e] * (score[i][j + e] - its_delta);
      }
    }
    place.store(tiles.changes, score);
    __syncwarp();
  }
  if (p.drop) {
    __syncthreads();
    if (has_weights) {
      place.load(tiles.weights, score);
      place.change(tiles.weights, score, drop);
    }
    __syncwarp();
  }
}

// What a thread adds to dq: four rows from `row` on, and of some strips a pack of columns each.
template <class Shape> struct QueryPart {
  static constexpr int kStripsEach = Shape::kStripsEach;
  int warp_row, row, strip, many;

  __device__ __forceinline__ QueryPart(const SimtLane& lane, int turn)
      : warp_row(turn % Shape::kQueryWarps * 16),
        row(warp_row + 4 * lane.few),
        strip(lane.warp / Shape::kQueryWarps * kStripsEach),
        many(lane.many) {}
  // Calls f(row, strip, place) for the packs of dq, whose tile begins with query `first`.
  template <class F> __device__ __forceinline__ void each(const AttentionPlan& p, float* dq,
                                                          int64_t first, const F& f) const {
    const int width = int(p.width);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (first + row + i >= p.queries) continue;
#pragma unroll
      for (int s = 0; s < kStripsEach; s++) {
        const int column = (strip + s) * kStrip + 4 * many;
        if (column < width) f(i, s, reinterpret_cast<Four*>(dq + i * width + column));
      }
    }
  }
  // dq += ds k scale; dq is the thread's first row. keys_end: the keys that its warp attends to.
  __device__ __forceinline__ void add(const AttentionPlan& p, const GradientTiles<Shape>& tiles,
                                      float* dq, int64_t first, bool has_earlier,
                                      int keys_end) const {
    constexpr int kSide = Shape::kSide;
    // What is there already is read while the product is computed.
    Four before[4][kStripsEach] = {};
    if (has_earlier) each(p, dq, first, [&](int i, int s, const Four* at) { before[i][s] = *at; });
    float sum[4][4 * kStripsEach];
    clear(sum);
    const int places[1] = {strip_place(row, 0)};
    const float* const columns = tiles.keys + strip * kSide * kStrip;
#pragma unroll
    for (int s = 0; s < kSide / kStrip; s++) {
      const int packs = packs_of(keys_end - s * kStrip, kStrip);
      add_rows(tiles.changes + s * kSide * kStrip, places, 0, packs, columns + s * kStrip * kStrip,
               many, kSide * kStrip, sum);
    }
    each(p, dq, first, [&](int i, int s, Four* at) {
      Four item;
#pragma unroll
      for (int e = 0; e < 4; e++)
        item.of[e] = multiply_add(sum[i][4 * s + e], float(p.scale), before[i][s].of[e]);
      *at = item;
    });
  }
};

template <class Shape> __global__ void __launch_bounds__(kTileThreads, Shape::kBlocks)
    simt_gradients(const __grid_constant__ SimtArguments a) {
  constexpr int kSide = Shape::kSide, kStrips = Shape::kStrips;
  constexpr int kRowsEach = Shape::kRowsEach, kKeysEach = Shape::kKeysEach;
  TT_SHARED_DYNAMIC(float, memory);
  const GradientTiles<Shape> tiles(memory);
  const AttentionPlan& p = a.p;
  // The splits with most queries come first.
  const int key_heads = int(p.batch * p.key_heads);
  const int split = int(blockIdx.x) / key_heads;
  const int key_head = int(blockIdx.x) - split * key_heads;  // of all batches
  const int group = int(p.heads) / int(p.key_heads);
  AttentionBlock b;
  b.batch = key_head / int(p.key_heads);
  const int its_key_head = key_head - int(b.batch) * int(p.key_heads);
  const TileRows k(p.k, b.batch, its_key_head, p.width, true);
  const TileRows v(p.v, b.batch, its_key_head, p.value_width, true);
  const int width = int(p.width);

  const SimtLane lane = simt_lane();
  const bool has_weights = lane.warp < 2;
  const int turn = block_turn() + lane.warp;
  const int half = turn % 2;
  // Rows 4 many, keys of the warp's half.
  const SimtPlace<kSide> place = {4 * lane.many, kStrip, half * (kSide / 2) + 4 * lane.few, 16};
  int row_place[kRowsEach / 4], key_place[kKeysEach / 4];
  query_places(place, row_place);
  key_places(place, key_place);
  const int key_pack = place.key % kStrip / 4;
  const int key_strip = place.key / kStrip * kSide * kStrip;  // of weights and changes
  const QueryPart<Shape> part(lane, turn);
  float* const dq_split = a.dq + int64_t(split) * p.batch * p.heads * p.queries * width;

  for (int key = split * kSide; key < p.keys; key += a.splits * kSide) {
    b.key = key;
    const int first = p.causal ? key : 0;
    float sum[kKeysEach][4 * kStrips];  // dv or dk
    clear(sum);
    int head = its_key_head * group;
    const int last_head = head + group - 1;
    int query = first;
    if (first < p.queries) {
#pragma unroll
      for (int s = 0; s < kStrips; s++) {
        load_strip<kSide>(tiles.keys + s * kSide * kStrip, k, key, p.keys, s * kStrip);
        load_strip<kSide>(tiles.values + s * kSide * kStrip, v, key, p.keys, s * kStrip);
      }
      tiles.load_queries(a, b.batch, head, query);
    }
    while (first < p.queries && head <= last_head) {
      device::wait_for_copies<0>();
      __syncthreads();
      b.query = query;
      b.head = head;
      float score[kRowsEach][kKeysEach];
      clear(score);
      const float* const left = has_weights ? tiles.queries : tiles.gradients;
      const float* const right = has_weights ? tiles.keys : tiles.values;
#pragma unroll
      for (int s = 0; s < kStrips; s++)
        add_dots(left + s * kSide * kStrip, row_place, right + s * kSide * kStrip, key_place,
                 score);
      finish_block<Shape>(a, b, tiles, place, has_weights, score);
      const bool is_diagonal = p.causal && query == key;
      add_columns<kSide>((has_weights ? tiles.weights : tiles.changes) + key_strip, key_pack,
                         has_weights ? tiles.gradients : tiles.queries, lane.many,
                         is_diagonal ? half * (kSide / 8) : 0, sum);
      __syncthreads();
      query += kSide;
      if (query >= p.queries) {
        query = first;
        head++;
      }
      if (head <= last_head) tiles.load_queries(a, b.batch, head, query);
      const int64_t row = (b.batch * p.heads + b.head) * p.queries + b.query + part.row;
      part.add(p, tiles, dq_split + row * width, b.query, key != split * kSide,
               is_diagonal ? part.warp_row + 16 : kSide);
    }
    const int its_width = has_weights ? int(p.value_width) : width;
    float* const to = reinterpret_cast<float*>(has_weights ? p.dv : p.dk);
    const float scale = has_weights ? 1.0f : float(p.scale);
#pragma unroll
    for (int i = 0; i < kKeysEach; i++) {
      const int64_t row = key + place.key_of(i);
      if (row >= p.keys) continue;
      store_strips<kStrips>(to + (int64_t(key_head) * p.keys + row) * its_width, lane.many,
                            its_width, [&](int s, int e) { return sum[i][4 * s + e] * scale; });
    }
    __syncthreads();
  }
}

// shift and delta of each query, eight threads for each; of the padding such that weights are 0.
__global__ void __launch_bounds__(kTileThreads)
    simt_delta(const __grid_constant__ SimtArguments a, int64_t n) {
  device::wait_for_previous();
  constexpr int kAtOnce = kTileThreads / kStripPacks;
  const AttentionPlan& p = a.p;
  const int pack = int(threadIdx.x) % kStripPacks;
  const int64_t i = int64_t(blockIdx.x) * kAtOnce + int(threadIdx.x) / kStripPacks;
  const int64_t head = quotient(i, a.padded);
  const int64_t query = i - head * a.padded;
  const int64_t batch = quotient(head, p.heads);
  const bool present = i < n && query < p.queries;
  const auto row_of = [&](const AttentionRows& r) {
    return reinterpret_cast<const float*>(r.p + batch * r.batch +
                                          (head - batch * p.heads) * r.head + query * r.row);
  };
  float sum = 0;
  if (present) {
    const float* const g = row_of(p.grad);
    const float* const o = row_of(p.out);
    for (int d = 4 * pack; d < p.value_width; d += kStrip) {
      const Four x = four_at(g + d);
      const Four y = four_at(o + d);
#pragma unroll
      for (int e = 0; e < 4; e++) sum = multiply_add(x.of[e], y.of[e], sum);
    }
  }
#pragma unroll
  for (int other = 1; other < kStripPacks; other *= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, other);
  if (pack || i >= n) return;
  float lse = kMinusInfinity<float>;
  if (present) lse = reinterpret_cast<const float*>(p.lse)[head * p.queries + query];
  a.shift[i] = lse == kMinusInfinity<float> ? kHighest<float> : lse * kLog2E;
  a.delta[i] = sum;
}

// dq = the sum of its splits. A query has those of the keys up to its own if order is causal.
__global__ void __launch_bounds__(kTileThreads)
    simt_sum(const __grid_constant__ SimtArguments a, Four* dq, int64_t n, int side) {
  device::wait_for_previous();
  const AttentionPlan& p = a.p;
  const Four* const splits = reinterpret_cast<const Four*>(a.dq);
  for (int64_t i = int64_t(blockIdx.x) * kTileThreads + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * kTileThreads) {
    const int64_t row = quotient(4 * i, p.width);
    const int64_t query = row - quotient(row, p.queries) * p.queries;
    const int64_t present = p.causal ? least(a.splits, query / side + 1) : a.splits;
    Four sum = splits[i];
#pragma unroll 4
    for (int64_t s = 1; s < present; s++) {
      const Four item = splits[s * n + i];
#pragma unroll
      for (int e = 0; e < 4; e++) sum.of[e] += item.of[e];
    }
    dq[i] = sum;
  }
}

// Few heads share their keys among blocks; the number depends on the shape alone, as sums do.
constexpr int64_t kSplitBlocks = 256;
constexpr int64_t kMostSplits = 32;
constexpr int64_t kSplitItems = int64_t(1) << 26;  // of dq
template <class Shape> int64_t splits_of(const AttentionPlan& p) {
  const int64_t heads = max<int64_t>(p.batch * p.key_heads, 1);
  const int64_t items = max<int64_t>(p.batch * p.heads * p.queries * p.width, 1);
  const int64_t room = min(kMostSplits, kSplitItems / items);
  const int64_t most = min(ceil_div(p.keys, Shape::kSide), room);
  return max<int64_t>(min(ceil_div(kSplitBlocks, heads), most), 1);
}
int64_t padded_queries(const AttentionPlan& p) { return round_up(p.queries, kPadding); }

template <class Shape>
int32_t launch_gradients(const AttentionPlan& p, void* stream, void* workspace) {
  SimtArguments a = simt_arguments(p);
  a.padded = int32_t(padded_queries(p));
  a.splits = int32_t(splits_of<Shape>(p));
  const int64_t n = p.batch * p.heads * a.padded;
  const int64_t items = p.batch * p.heads * p.queries * p.width;
  a.shift = static_cast<float*>(workspace);
  a.delta = a.shift + n;
  a.dq = a.splits > 1 ? a.delta + n : reinterpret_cast<float*>(p.dq);
  if (n) {
    const unsigned grid = unsigned(ceil_div(n, kTileThreads / kStripPacks));
    const int32_t status = device::launch_early(simt_delta, grid, kTileThreads, stream, a, n);
    if (status != TT_OK) return status;
  }
  const unsigned grid = unsigned(p.batch * p.key_heads * a.splits);
  if (grid == 0) return TT_OK;
  const int32_t status =
      device::launch(simt_gradients<Shape>, grid, kTileThreads, Shape::kBytes, stream, a);
  if (status != TT_OK || a.splits == 1 || items == 0) return status;
  return device::launch_early(simt_sum, grid_of(items / 4, kTileThreads), kTileThreads, stream, a,
                              reinterpret_cast<Four*>(p.dq), items / 4, Shape::kSide);
}
template <class Shape> size_t gradient_bytes(const AttentionPlan& p) {
  const int64_t splits = splits_of<Shape>(p);
  const int64_t items = splits > 1 ? splits * p.batch * p.heads * p.queries * p.width : 0;
  return size_t(2 * p.batch * p.heads * padded_queries(p) + items) * sizeof(float);
}

using Shape32 = SimtGradientShape<32, 64, 3>;
using Shape64 = SimtGradientShape<64, 64, 2>;
using Shape128 = SimtGradientShape<128, 32, 3>;

}  // namespace

namespace cuda::simt {

bool serves_backward(const AttentionPlan& p) {
  const auto is_aligned = [](const char* x) {
    return reinterpret_cast<uintptr_t>(x) % sizeof(Four) == 0;
  };
  return serves(p) && p.keys > 0 && is_packed(p.grad, p.value_width, sizeof(float)) &&
         is_aligned(p.dq) && is_aligned(p.dk) && is_aligned(p.dv);
}
int32_t backward(const AttentionPlan& p, void* stream, void* workspace) {
  const int64_t width = max(p.width, p.value_width);
  if (width <= 32) return launch_gradients<Shape32>(p, stream, workspace);
  if (width <= 64) return launch_gradients<Shape64>(p, stream, workspace);
  return launch_gradients<Shape128>(p, stream, workspace);
}
size_t backward_workspace(const AttentionPlan& p) {
  const int64_t width = max(p.width, p.value_width);
  if (width <= 32) return gradient_bytes<Shape32>(p);
  if (width <= 64) return gradient_bytes<Shape64>(p);
  return gradient_bytes<Shape128>(p);
}

}  // namespace cuda::simt
}  // namespace TT_NS
