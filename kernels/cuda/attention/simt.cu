// Attention of floats without tensor cores (simt.h), by blocks of queries with a running maximum
// and sum, as flash.cu.
//
//   queries  [kQueries][kWidth], each warp a quarter; in shared memory, as all tiles
//   ring     three chunks of 8 kB: while one is multiplied, the two that follow are copied. A chunk
//            is a strip of kSide keys, or kChunkKeys values
//   weights  [kQueries][kSide], each warp its rows
//   score    a thread's rows and eight keys, in registers
//   acc      its rows and four columns of each strip of the values
#include "kernels/cuda/attention/simt.h"

#include "kernels/cuda/attention/flash.h"

namespace TT_NS {
namespace {

template <int kWidth_, int kBlocks_> struct SimtShape {
  static constexpr int kWidth = kWidth_;
  static constexpr int kQueries = kSide;
  static constexpr int kBlocks = kBlocks_;  // of a multiprocessor
  static constexpr int kStrips = kWidth / kStrip;
  static constexpr int kRowsEach = kQueries / 16;
  static constexpr int kKeysEach = kSide / kStripPacks;
  static constexpr int kChunkKeys = kSide / kStrips;
  static constexpr int kChunk = kSide * kStrip;
  static constexpr int kBytes = 4 * (kQueries * (kWidth + kSide) + 3 * kChunk);
};

// The chunks of the keys [0, end) in the order in which a block multiplies them: for each kSide
// keys the strips of the keys, then those of kChunkKeys values.
template <class Shape> struct ChunkRing {
  static constexpr int kParts = 2 * Shape::kStrips;
  float* const ring;
  const TileRows keys, values;
  const int end;
  int chunk = 0;                      // in the ring: the next one to multiply
  int first = 0, part = 0, slot = 0;  // of the next one to copy

  __device__ __forceinline__ void load() {
    if (first < end) {
      float* const to = ring + slot * Shape::kChunk;
      if (part < Shape::kStrips) load_strip<kSide>(to, keys, first, end, part * kStrip);
      else
        load_strips<Shape::kChunkKeys, Shape::kStrips>(
            to, values, first + (part - Shape::kStrips) * Shape::kChunkKeys, end);
      slot = slot == 2 ? 0 : slot + 1;
      if (++part == kParts) {
        part = 0;
        first += kSide;
      }
    }
    device::commit_copies();
  }
  __device__ __forceinline__ const float* next() {
    device::wait_for_copies<1>();
    __syncthreads();
    load();
    const float* const at = ring + chunk * Shape::kChunk;
    chunk = chunk == 2 ? 0 : chunk + 1;
    return at;
  }
};

// A thread's rows of results: the maximum of the scores so far, its part of the sum of the weights,
// and the weighted sums of the values.
template <class Shape> struct SimtResults {
  static constexpr int kRowsEach = Shape::kRowsEach, kColumns = 4 * Shape::kStrips;
  float acc[kRowsEach][kColumns];
  float maximum[kRowsEach], sum[kRowsEach];

  __device__ __forceinline__ void begin() {
    clear(acc);
#pragma unroll
    for (int i = 0; i < kRowsEach; i++) {
      maximum[i] = kMinusInfinity<float>;
      sum[i] = 0;
    }
  }
  // Replaces scores by weights, 2^(factor score - shift).
  __device__ __forceinline__ void weigh(float factor, float (&score)[kRowsEach][Shape::kKeysEach]) {
#pragma unroll
    for (int i = 0; i < kRowsEach; i++) {
      float most = maximum[i];
#pragma unroll
      for (int j = 0; j < Shape::kKeysEach; j++) most = ::fmaxf(most, score[i][j]);
      most = many_max(most);
      const float shift = most == kMinusInfinity<float> ? 0.0f : most * factor;
      const float rescale = device::fast_exp2(multiply_add(maximum[i], factor, -shift));
      maximum[i] = most;
      sum[i] *= rescale;
#pragma unroll
      for (int j = 0; j < Shape::kKeysEach; j++) {
        score[i][j] = device::fast_exp2(multiply_add(score[i][j], factor, -shift));
        sum[i] += score[i][j];
      }
#pragma unroll
      for (int j = 0; j < kColumns; j++) acc[i][j] *= rescale;
    }
  }
  __device__ __forceinline__ void store(const SimtArguments& a, const AttentionBlock& b,
                                        const SimtPlace<Shape::kQueries>& place, int many) const {
    const AttentionPlan& p = a.p;
#pragma unroll
    for (int i = 0; i < kRowsEach; i++) {
      const float total = many_sum(sum[i]);
      const float factor = total == 0 ? 0.0f : 1.0f / total;
      const int64_t query = b.query + place.query_of(i);
      if (query >= p.queries) continue;
      float* const out = reinterpret_cast<float*>(p.out.p + b.batch * p.out.batch +
                                                  b.head * p.out.head + query * p.out.row);
      store_strips<Shape::kStrips>(out, many, p.value_width, [&](int s, int e) {
        return total == 0 ? 0.0f : acc[i][4 * s + e] * factor;
      });
      if (many) continue;
      const int64_t head = b.batch * p.heads + b.head;
      const float lse = maximum[i] * a.factor * kLn2 + math::log(total);
      reinterpret_cast<float*>(p.lse)[head * p.queries + query] =
          total == 0 ? kMinusInfinity<float> : lse;
    }
  }
};

// Which queries a block has. Causal blocks with most keys come first, those of the last queries;
// others by head, so that the keys of a head stay in the cache.
template <class Shape>
__device__ __forceinline__ AttentionBlock simt_block(const SimtArguments& a) {
  const AttentionPlan& p = a.p;
  const int heads = int(p.batch * p.heads);
  const int block = int(blockIdx.x) / (p.causal ? heads : 1) % a.blocks;
  const int head = p.causal ? int(blockIdx.x) % heads : int(blockIdx.x) / a.blocks;
  AttentionBlock b;
  b.batch = head / int(p.heads);
  b.head = head - int(b.batch) * int(p.heads);
  b.query = (a.blocks - 1 - block) * Shape::kQueries;
  b.key = 0;
  return b;
}

template <class Shape> __global__ void __launch_bounds__(kTileThreads, Shape::kBlocks)
    simt_forward(const __grid_constant__ SimtArguments a) {
  constexpr int kQueries = Shape::kQueries, kStrips = Shape::kStrips;
  constexpr int kRowsEach = Shape::kRowsEach, kKeysEach = Shape::kKeysEach;
  constexpr int kChunkKeys = Shape::kChunkKeys;
  TT_SHARED_DYNAMIC(float, queries);
  float* const ring = queries + kQueries * Shape::kWidth;
  float* const weights = ring + 3 * Shape::kChunk;
  const AttentionPlan& p = a.p;
  AttentionBlock b = simt_block<Shape>(a);
  const int key_head = int(b.head) / (int(p.heads) / int(p.key_heads));
  const int end = int(p.causal ? least(p.keys, b.query + kQueries) : p.keys);
  load_strips<kQueries, kStrips>(queries, TileRows(p.q, b.batch, b.head, p.width, true), b.query,
                                 p.queries);
  ChunkRing<Shape> chunks = {ring, TileRows(p.k, b.batch, key_head, p.width, true),
                             TileRows(p.v, b.batch, key_head, p.value_width, true), end};
  chunks.load();
  chunks.load();

  const SimtLane lane = simt_lane();
  const int warp_row = (lane.warp + block_turn()) % 4 * (kQueries / 4);
  const SimtPlace<kQueries> place = {warp_row + 4 * lane.few, 16, 4 * lane.many, kStrip};
  int row_place[kRowsEach / 4], key_place[kKeysEach / 4];
  query_places(place, row_place);
  key_places(place, key_place);
  SimtResults<Shape> results;
  results.begin();

  for (; b.key < end; b.key += kSide) {
    // The keys of this tile that the last query of the warp attends to.
    const int keys_left = p.causal ? int(b.query - b.key) + warp_row + kQueries / 4 : int(kSide);
    const bool takes_part = keys_left > 0;
    float score[kRowsEach][kKeysEach];
    clear(score);
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      const float* const keys = chunks.next();
      if (takes_part) add_dots(queries + s * kQueries * kStrip, row_place, keys, key_place, score);
    }
    if (takes_part) {
      finish_scores(a, b, place, weights, score);
      results.weigh(a.factor, score);
      if (p.drop)
        place.change(weights, score, [&](int row, int column, float x) {
          return x * keep_factor<float>(p, b, row, column);
        });
      else place.store(weights, score);
      __syncwarp();
    }
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      const float* const values = chunks.next();
      if (!takes_part) continue;
      const float* const these = weights + s * kChunkKeys / kStrip * kQueries * kStrip;
      const int pack = s * kChunkKeys % kStrip / 4;
      constexpr int kDepth = kChunkKeys < kStrip ? kChunkKeys : kStrip;
#pragma unroll
      for (int n = 0; n < kChunkKeys / kDepth; n++) {
        const int packs = packs_of(keys_left - s * kChunkKeys - n * kDepth, kDepth);
        add_rows(these + n * kQueries * kStrip, row_place, pack, packs,
                 values + n * kDepth * kStrip, lane.many, kChunkKeys * kStrip, results.acc);
      }
    }
    if (takes_part) __syncwarp();
  }
  device::wait_for_copies<0>();
  results.store(a, b, place, lane.many);
}

template <class Shape> int32_t launch_simt(const AttentionPlan& p, void* stream) {
  SimtArguments a = simt_arguments(p);
  a.blocks = int32_t(ceil_div(p.queries, Shape::kQueries));
  const unsigned grid = unsigned(p.batch * p.heads * a.blocks);
  return device::launch(simt_forward<Shape>, grid, kTileThreads, Shape::kBytes, stream, a);
}

}  // namespace

namespace cuda::simt {
namespace {

constexpr int64_t kItem = sizeof(float);

}  // namespace

bool serves(const AttentionPlan& p) {
  if (p.dtype != TT_F32 || !flash::fits(p)) return false;
  return is_packed(p.q, p.width, kItem) && is_packed(p.k, p.width, kItem) &&
         is_packed(p.v, p.value_width, kItem) && is_packed(p.out, p.value_width, kItem);
}
int32_t forward(const AttentionPlan& p, void* stream) {
  const int64_t width = max(p.width, p.value_width);
  if (width <= 32) return launch_simt<SimtShape<32, 4>>(p, stream);
  if (width <= 64) return launch_simt<SimtShape<64, 3>>(p, stream);
  return launch_simt<SimtShape<128, 2>>(p, stream);
}

}  // namespace cuda::simt
}  // namespace TT_NS
