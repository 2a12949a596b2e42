// The gradients of attention of halves in two passes, which compute the scores twice. Serves rows
// of more than 64 numbers: a warp has registers for the sums of 16 keys only, and blocks of so few
// keys would add too often to the gradients of queries. A block has rows, which are keys for dk and
// dv or queries for dq, and goes through columns, the others: score and dz are [rows][columns]
// either way, so that z and ds of a warp, rounded to halves, are the left operands of the products
// that follow, and never leave its registers.
//
//   first, second   [kRows][kWidth]: k and v, or q and g; in shared memory (tile.h)
//   beside          [2][kColumns][kWidth] of each: q and g, or k and v; one is copied while the
//                   other is read
#pragma once

#include "kernels/cuda/attention/gradients.h"

namespace TT_NS {
namespace {

// kOfKeys: rows are keys.
template <int kWidth_, bool kOfKeys_> struct PassShape {
  static constexpr int kWidth = kWidth_;
  static constexpr bool kOfKeys = kOfKeys_;
  // Both sums of 32 rows and 128 columns would take all registers.
  static constexpr int kRowTiles = kOfKeys && kWidth == 128 ? 1 : 2;
  static constexpr int kRows = kTileThreads / kWarp * 16 * kRowTiles;
  static constexpr int kColumns = kRowTiles == 1 ? 64 : 32;
  static constexpr int kColumnTiles = kColumns / 8;
  static constexpr int kRowBytes = kRows * kWidth * 2;
  static constexpr int kColumnBytes = kColumns * kWidth * 2;
  static constexpr int kNumberBytes = kOfKeys ? kColumns * 4 : 0;  // shift or delta of columns
  static constexpr int kBufferBytes = 2 * kColumnBytes + 2 * kNumberBytes;
  static constexpr int kBytes = 2 * kRowBytes + 2 * kBufferBytes;
  using Block = float[kRowTiles][kColumnTiles][4];
  using Halves = uint32_t[kRowTiles][kColumnTiles][2];
  using Sum = float[kRowTiles][kWidth / 8][4];
};

// The thread's first row, in the block of the first column.
struct PassPlace {
  int32_t batch, head;
  int32_t row, column;
};

template <class Shape> __device__ __forceinline__ void hide_in_pass(const AttentionPlan& p,
                                                                    const PassPlace& at,
                                                                    typename Shape::Block& score) {
  const int first = at.column - at.row;
  const int left = int(p.keys) - (Shape::kOfKeys ? at.row : at.column);
  each_element<Shape>([&](int row, int column, int i, int j, int r) {
    // The key less the query.
    const int after = Shape::kOfKeys ? row - column - first : column + first - row;
    const bool attends = (Shape::kOfKeys ? row : column) < left && (!p.causal || after <= 0);
    score[i][j][r] = attends ? score[i][j][r] : kMinusInfinity<float>;
  });
}

template <class Shape> __device__ __forceinline__ void mask_pass(const AttentionPlan& p,
                                                                 const PassPlace& at,
                                                                 typename Shape::Block& score) {
  const int queries = int(p.queries) - (Shape::kOfKeys ? at.column : at.row);
  const int keys = int(p.keys) - (Shape::kOfKeys ? at.row : at.column);
  const int64_t row_step = Shape::kOfKeys ? p.mask_key : p.mask_query;
  const int64_t column_step = Shape::kOfKeys ? p.mask_query : p.mask_key;
  const char* const m = p.mask + at.batch * p.mask_batch + at.head * p.mask_head +
                        at.row * row_step + at.column * column_step;
  each_element<Shape>([&](int row, int column, int i, int j, int r) {
    const int query = Shape::kOfKeys ? column : row;
    const int key = Shape::kOfKeys ? row : column;
    if (query < queries && key < keys)
      mask_score(m + row * row_step + column * column_step, p.mask_dtype, &score[i][j][r]);
  });
}

// What dropout keeps: a bit for each of the thread's elements. Keys 16 apart, which most threads
// have, share a block of random words.
template <class Shape> struct PassDropout {
  static constexpr int kItems = Shape::kRowTiles * Shape::kColumnTiles * 4;
  static constexpr int kShared = Shape::kOfKeys ? Shape::kRowTiles : Shape::kColumnTiles / 2;
  static constexpr int kStep = Shape::kOfKeys ? kItems / kShared : 8;  // between their bits
  static_assert(kItems == 32 && kShared <= 2);
  uint32_t kept;

  __device__ __forceinline__ void draw(const AttentionPlan& p, const PassPlace& at) {
    const int64_t groups = (p.keys + kSide - 1) / kSide;
    const int64_t first = (int64_t(at.batch) * p.heads + at.head) * p.queries;
    kept = 0;
#pragma unroll 1
    for (int n = 0; n < kItems / kShared; n++) {
      const int item = kStep == 8 ? n % 8 + n / 8 * 16 : n;
      const int i = item / (4 * Shape::kColumnTiles);
      const int row = at.row + 16 * i + 8 * (item >> 1 & 1);
      const int column = at.column + item / 4 % Shape::kColumnTiles * 8 + (item & 1);
      const int64_t query = first + (Shape::kOfKeys ? column : row);
      const int key = Shape::kOfKeys ? row : column;
      const uint64_t group = uint64_t(query * groups + key / kSide);
      const uint64_t counter = p.offset + group * kPhiloxGroup + uint64_t(key % kPhiloxGroup);
      const PhiloxBlock random = philox({{uint32_t(counter), uint32_t(counter >> 32), 0, 0}},
                                        uint32_t(p.seed), uint32_t(p.seed >> 32));
#pragma unroll
      for (int e = 0; e < kShared; e++) {
        const uint32_t word = word_of(random, key / kPhiloxGroup + e);
        kept |= uint32_t(int32_t(word >> 8) < p.threshold) << (item + e * kStep);
      }
    }
  }
  __device__ __forceinline__ bool has(int i, int j, int r) const {
    return kept >> ((i * Shape::kColumnTiles + j) * 4 + r) & 1;
  }
};

// What a block goes through: for keys the queries of each head that reads them, one head after the
// other.
struct PassSteps {
  int head, last_head;
  int column, first, end, step;
  __device__ __forceinline__ bool more() const { return head <= last_head && first < end; }
  __device__ __forceinline__ void next() {
    column += step;
    if (column < end) return;
    column = first;
    head++;
  }
};

// kPlain: no mask, no dropout, not `scaled`.
template <class S, class Shape, bool kPlain> __global__ void __launch_bounds__(kTileThreads, 2)
    flash_pass(const __grid_constant__ GradientArguments a) {
  constexpr int kWidth = Shape::kWidth;
  constexpr bool kOfKeys = Shape::kOfKeys;
  constexpr int kRows = Shape::kRows, kColumns = Shape::kColumns;
  constexpr int kRowTiles = Shape::kRowTiles;
  TT_SHARED_DYNAMIC(char, memory);
  const AttentionPlan& p = a.p;
  const int heads = int(kOfKeys ? p.key_heads : p.heads);
  const int head = int(blockIdx.x) / a.blocks;
  const int group = int(p.heads) / int(p.key_heads);
  PassPlace at;
  at.batch = head / heads;
  at.head = head - at.batch * heads;
  // The blocks with most columns come first: the first keys, the last queries.
  const int block = int(blockIdx.x) - head * a.blocks;
  const int first = (kOfKeys ? block : a.blocks - 1 - block) * kRows;
  PassSteps s;
  s.head = kOfKeys ? at.head * group : at.head;
  s.last_head = kOfKeys ? s.head + group - 1 : s.head;
  s.first = kOfKeys && p.causal ? first : 0;
  s.end = int(kOfKeys ? p.queries : p.keys);
  if (!kOfKeys && p.causal) s.end = int(least(s.end, first + kRows));
  s.column = s.first;
  s.step = kColumns;

  const int key_head = kOfKeys ? at.head : at.head / group;
  char* const beside = memory + 2 * Shape::kRowBytes;
  const auto load_columns = [&](int buffer) {
    char* const to = beside + buffer * Shape::kBufferBytes;
    if constexpr (kOfKeys) {
      const TileRows q(p.q, at.batch, s.head, p.width, a.q_packed);
      const TileRows g(p.grad, at.batch, s.head, p.value_width, a.grad_packed);
      load_tile<kColumns, kWidth>(to, q, s.column, p.queries);
      load_tile<kColumns, kWidth>(to + Shape::kColumnBytes, g, s.column, p.queries);
      const int t = int(threadIdx.x);
      const int number = t % (kColumns / 4) * 4;
      if (t < kColumns / 2) {
        const int64_t from = (at.batch * p.heads + s.head) * a.padded + s.column + number;
        const bool is_shift = t < kColumns / 4;
        device::copy_async(to + 2 * Shape::kColumnBytes + t * kPackBytes,
                           (is_shift ? a.shift : a.delta) + from, true);
      }
    } else {
      const TileRows k(p.k, at.batch, key_head, p.width, a.k_packed);
      const TileRows v(p.v, at.batch, key_head, p.value_width, a.v_packed);
      load_tile<kColumns, kWidth>(to, k, s.column, p.keys);
      load_tile<kColumns, kWidth>(to + Shape::kColumnBytes, v, s.column, p.keys);
    }
    device::commit_copies();
  };
  if constexpr (kOfKeys) {
    const TileRows k(p.k, at.batch, at.head, p.width, a.k_packed);
    const TileRows v(p.v, at.batch, at.head, p.value_width, a.v_packed);
    load_tile<kRows, kWidth>(memory, k, first, p.keys);
    load_tile<kRows, kWidth>(memory + Shape::kRowBytes, v, first, p.keys);
  } else {
    const TileRows q(p.q, at.batch, at.head, p.width, a.q_packed);
    const TileRows g(p.grad, at.batch, at.head, p.value_width, a.grad_packed);
    load_tile<kRows, kWidth>(memory, q, first, p.queries);
    load_tile<kRows, kWidth>(memory + Shape::kRowBytes, g, first, p.queries);
  }
  if (s.more()) load_columns(0);

  const int lane = int(threadIdx.x) % kWarp;
  const int warp_row = int(threadIdx.x) / kWarp * 16 * kRowTiles;
  const char* const one = memory + warp_row * kWidth * 2;
  const char* const other = one + Shape::kRowBytes;
  const int warp_first = first + warp_row;
  const int warp_last = warp_first + 16 * kRowTiles - 1;
  at.row = warp_first + lane / 4;
  float row_shift[kRowTiles][2], row_delta[kRowTiles][2];  // of queries
  typename Shape::Sum d_first, d_second;                   // dk and dv, or dq and nothing
#pragma unroll
  for (int i = 0; i < kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int64_t from = (at.batch * p.heads + at.head) * a.padded + at.row + 16 * i + 8 * half;
      row_shift[i][half] = kOfKeys ? 0 : a.shift[from];
      row_delta[i][half] = kOfKeys ? 0 : a.delta[from];
    }
#pragma unroll
    for (int j = 0; j < kWidth / 8; j++) {
#pragma unroll
      for (int r = 0; r < 4; r++) {
        d_first[i][j][r] = 0;
        d_second[i][j][r] = 0;
      }
    }
  }

  for (int buffer = 0; s.more(); buffer ^= 1) {
    device::wait_for_copies<0>();
    __syncthreads();
    at.head = s.head;
    const int column = s.column;
    s.next();
    if (s.more()) load_columns(buffer ^ 1);
    const bool is_after = kOfKeys ? column + kColumns <= warp_first : column > warp_last;
    if (p.causal && is_after) continue;
    at.column = column + lane % 4 * 2;
    const char* const column_one = beside + buffer * Shape::kBufferBytes;
    const char* const column_other = column_one + Shape::kColumnBytes;
    const float* const numbers =
        reinterpret_cast<const float*>(column_other + Shape::kColumnBytes) + lane % 4 * 2;

    typename Shape::Block weight, change;
    typename Shape::Halves halves;
    multiply_rows<S, Shape>(one, column_one, weight);
    if (!kPlain && a.scaled)
      each_element<Shape>(
          [&](int, int, int i, int j, int r) { weight[i][j][r] *= float(p.scale); });
    const bool is_edge = kOfKeys ? warp_last >= p.keys : column + kColumns > p.keys;
    const bool is_diagonal =
        p.causal && (kOfKeys ? column < warp_last : column + kColumns - 1 > warp_first);
    if (is_edge || is_diagonal) hide_in_pass<Shape>(p, at, weight);
    if (!kPlain && p.mask_dtype) mask_pass<Shape>(p, at, weight);
    each_element<Shape>([&](int, int column_at, int i, int j, int r) {
      const float shift = kOfKeys ? numbers[column_at] : row_shift[i][r >> 1];
      weight[i][j][r] = device::fast_exp2(multiply_add(weight[i][j][r], a.factor, -shift));
    });
    PassDropout<Shape> dropout = {};
    const bool drops = !kPlain && p.drop;
    if (drops) dropout.draw(p, at);
    if constexpr (kOfKeys) {
      if (drops) {
        each_element<Shape>([&](int, int, int i, int j, int r) {
          change[i][j][r] = dropout.has(i, j, r) ? weight[i][j][r] * float(p.keep_scale) : 0.0f;
        });
        round_block<S, Shape>(change, halves);
      } else {
        round_block<S, Shape>(weight, halves);
      }
      add_rows<S, Shape>(halves, column_other, d_second);
    }
    multiply_rows<S, Shape>(other, column_other, change);
    if (drops)
      each_element<Shape>([&](int, int, int i, int j, int r) {
        change[i][j][r] *= dropout.has(i, j, r) ? float(p.keep_scale) : 0.0f;
      });
    each_element<Shape>([&](int, int column_at, int i, int j, int r) {
      const float delta = kOfKeys ? numbers[kColumns + column_at] : row_delta[i][r >> 1];
      change[i][j][r] = weight[i][j][r] * (change[i][j][r] - delta);
    });
    round_block<S, Shape>(change, halves);
    add_rows<S, Shape>(halves, column_one, d_first);
  }
  device::wait_for_copies<0>();

  const int64_t rows = kOfKeys ? p.keys : p.queries;
  char* const to = (kOfKeys ? p.dk : p.dq) + head * rows * p.width * 2;
  store_sum<S, Shape>(d_first, to, at.row, rows, int(p.width), float(p.scale));
  if constexpr (kOfKeys)
    store_sum<S, Shape>(d_second, p.dv + head * rows * p.value_width * 2, at.row, rows,
                        int(p.value_width), 1.0f);
}

template <class S, class Shape> int32_t launch_pass(GradientArguments& a, void* stream) {
  const AttentionPlan& p = a.p;
  a.blocks = int32_t(ceil_div(Shape::kOfKeys ? p.keys : p.queries, Shape::kRows));
  const int64_t heads = Shape::kOfKeys ? p.key_heads : p.heads;
  const unsigned grid = unsigned(p.batch * heads * a.blocks);
  if (grid == 0) return TT_OK;
  const bool plain = !p.mask_dtype && !p.drop && !a.scaled;
  const auto kernel = plain ? flash_pass<S, Shape, true> : flash_pass<S, Shape, false>;
  return device::launch(kernel, grid, kTileThreads, Shape::kBytes, stream, a);
}
template <class S, int kWidth> int32_t launch_passes(GradientArguments& a, void* stream) {
  const int32_t status = launch_pass<S, PassShape<kWidth, false>>(a, stream);
  if (status != TT_OK) return status;
  return launch_pass<S, PassShape<kWidth, true>>(a, stream);
}

}  // namespace
}  // namespace TT_NS
