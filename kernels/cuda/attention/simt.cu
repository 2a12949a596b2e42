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

template <class Shape> __global__ void __launch_bounds__(kTileThreads, Shape::kBlocks)
    simt_forward(const __grid_constant__ SimtArguments a) {
  constexpr int kQueries = Shape::kQueries, kStrips = Shape::kStrips, kChunk = Shape::kChunk;
  constexpr int kRowsEach = Shape::kRowsEach, kKeysEach = Shape::kKeysEach;
  constexpr int kChunkKeys = Shape::kChunkKeys;
  TT_SHARED_DYNAMIC(float, queries);
  float* const ring = queries + kQueries * Shape::kWidth;
  float* const weights = ring + 3 * kChunk;
  const AttentionPlan& p = a.p;
  const int heads = int(p.batch * p.heads);
  // Causal blocks with most keys come first, those of the last queries; others by head, so that the
  // keys of a head stay in the cache.
  const int block = int(blockIdx.x) / (p.causal ? heads : 1) % a.blocks;
  const int head = p.causal ? int(blockIdx.x) % heads : int(blockIdx.x) / a.blocks;
  AttentionBlock b;
  b.batch = head / int(p.heads);
  b.head = head - int(b.batch) * int(p.heads);
  b.query = (a.blocks - 1 - block) * kQueries;
  b.key = 0;
  const int key_head = int(b.head) / (int(p.heads) / int(p.key_heads));
  const int end = int(p.causal ? least(p.keys, b.query + kQueries) : p.keys);
  const TileRows q(p.q, b.batch, b.head, p.width, true);
  const TileRows k(p.k, b.batch, key_head, p.width, true);
  const TileRows v(p.v, b.batch, key_head, p.value_width, true);

  int chunk = 0, first = 0, part = 0, slot = 0;  // of the chunk that is copied next
  const auto load_chunk = [&] {
    if (first < end) {
      float* const to = ring + slot * kChunk;
      if (part < kStrips) {
        load_strip<kSide>(to, k, first, end, part * kStrip);
      } else {
#pragma unroll
        for (int s = 0; s < kStrips; s++)
          load_strip<kChunkKeys>(to + s * kChunkKeys * kStrip, v,
                                 first + (part - kStrips) * kChunkKeys, end, s * kStrip);
      }
      slot = slot == 2 ? 0 : slot + 1;
      if (++part == 2 * kStrips) {
        part = 0;
        first += kSide;
      }
    }
    device::commit_copies();
  };
  const auto next_chunk = [&] {
    device::wait_for_copies<1>();
    __syncthreads();
    load_chunk();
    const float* const at = ring + chunk * kChunk;
    chunk = chunk == 2 ? 0 : chunk + 1;
    return at;
  };
#pragma unroll
  for (int s = 0; s < kStrips; s++)
    load_strip<kQueries>(queries + s * kQueries * kStrip, q, b.query, p.queries, s * kStrip);
  load_chunk();
  load_chunk();

  const SimtLane lane = simt_lane();
  const int warp_row = (lane.warp + block_turn()) % 4 * (kQueries / 4);
  const SimtPlace<kQueries> place = {warp_row + 4 * lane.few, 16, 4 * lane.many, kStrip};
  int row_place[kRowsEach / 4], key_place[kKeysEach / 4];
#pragma unroll
  for (int g = 0; g < kRowsEach / 4; g++) row_place[g] = strip_place(place.query_of(4 * g), 0);
#pragma unroll
  for (int g = 0; g < kKeysEach / 4; g++) key_place[g] = strip_place(place.key_of(4 * g), 0);
  float acc[kRowsEach][4 * kStrips];
  float maximum[kRowsEach], sum[kRowsEach];  // the sum: the thread's part
#pragma unroll
  for (int i = 0; i < kRowsEach; i++) {
    maximum[i] = kMinusInfinity<float>;
    sum[i] = 0;
#pragma unroll
    for (int j = 0; j < 4 * kStrips; j++) acc[i][j] = 0;
  }

  for (; b.key < end; b.key += kSide) {
    // The keys of this tile that the last query of the warp attends to.
    const int keys_left = p.causal ? int(b.query - b.key) + warp_row + kQueries / 4 : int(kSide);
    const bool takes_part = keys_left > 0;
    float score[kRowsEach][kKeysEach];
#pragma unroll
    for (int i = 0; i < kRowsEach; i++) {
#pragma unroll
      for (int j = 0; j < kKeysEach; j++) score[i][j] = 0;
    }
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      const float* const keys = next_chunk();
      if (takes_part) add_dots(queries + s * kQueries * kStrip, row_place, keys, key_place, score);
    }
    if (takes_part) {
      finish_scores(a, b, place, weights, score);
#pragma unroll
      for (int i = 0; i < kRowsEach; i++) {
        float most = maximum[i];
#pragma unroll
        for (int j = 0; j < kKeysEach; j++) most = ::fmaxf(most, score[i][j]);
        most = many_max(most);
        const float shift = most == kMinusInfinity<float> ? 0.0f : most * a.factor;
        const float rescale = device::fast_exp2(multiply_add(maximum[i], a.factor, -shift));
        maximum[i] = most;
        sum[i] *= rescale;
#pragma unroll
        for (int j = 0; j < kKeysEach; j++) {
          score[i][j] = device::fast_exp2(multiply_add(score[i][j], a.factor, -shift));
          sum[i] += score[i][j];
        }
#pragma unroll
        for (int j = 0; j < 4 * kStrips; j++) acc[i][j] *= rescale;
      }
      if (p.drop)
        place.change(weights, score, [&](int row, int column, float x) {
          return x * keep_factor<float>(p, b, row, column);
        });
      else place.store(weights, score);
      __syncwarp();
    }
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      const float* const values = next_chunk();
      if (!takes_part) continue;
      const float* const these = weights + s * kChunkKeys / kStrip * kQueries * kStrip;
      const int pack = s * kChunkKeys % kStrip / 4;
      constexpr int kDepth = kChunkKeys < kStrip ? kChunkKeys : kStrip;
#pragma unroll
      for (int n = 0; n < kChunkKeys / kDepth; n++) {
        const int packs = packs_of(keys_left - s * kChunkKeys - n * kDepth, kDepth);
        add_rows(these + n * kQueries * kStrip, row_place, pack, packs,
                 values + n * kDepth * kStrip, lane.many, kChunkKeys * kStrip, acc);
      }
    }
    if (takes_part) __syncwarp();
  }
  device::wait_for_copies<0>();

#pragma unroll
  for (int i = 0; i < kRowsEach; i++) {
    const float total = many_sum(sum[i]);
    const float factor = total == 0 ? 0.0f : 1.0f / total;
    const int64_t query = b.query + place.query_of(i);
    if (query >= p.queries) continue;
    float* const out = reinterpret_cast<float*>(p.out.p + b.batch * p.out.batch +
                                                b.head * p.out.head + query * p.out.row);
#pragma unroll
    for (int s = 0; s < kStrips; s++) {
      Four item;
#pragma unroll
      for (int e = 0; e < 4; e++) item.of[e] = total == 0 ? 0.0f : acc[i][4 * s + e] * factor;
      const int column = s * kStrip + 4 * lane.many;
      if (column < p.value_width) *reinterpret_cast<Four*>(out + column) = item;
    }
    if (lane.many == 0) {
      const float lse = maximum[i] * a.factor * kLn2 + math::log(total);
      reinterpret_cast<float*>(p.lse)[int64_t(head) * p.queries + query] =
          total == 0 ? kMinusInfinity<float> : lse;
    }
  }
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
