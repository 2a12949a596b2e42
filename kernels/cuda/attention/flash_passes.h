// The gradients of attention of halves in two passes, which compute the scores twice. Serves rows
// of more than 64 numbers: a warp has registers for the sums of 16 keys only, and blocks of so few
// keys would add too often to the gradients of queries. A block has rows, which are keys for dk and
// dv or queries for dq, and goes through columns, the others (score_block.h).
//
//   first, second   [kRows][kWidth]: k and v, or q and g; in shared memory (tile.h)
//   beside          [2][kColumns][kWidth] of each: q and g, or k and v; one is copied while the
//                   other is read
#pragma once

#include "kernels/cuda/attention/score_block.h"

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

// The tiles of a block, in shared memory.
template <class Shape> struct PassTiles {
  const GradientArguments& a;
  char* memory;
  int batch, key_head;

  __device__ __forceinline__ TileRows q(int head) const {
    return TileRows(a.p.q, batch, head, a.p.width, a.q_packed);
  }
  __device__ __forceinline__ TileRows g(int head) const {
    return TileRows(a.p.grad, batch, head, a.p.value_width, a.grad_packed);
  }
  __device__ __forceinline__ TileRows k() const {
    return TileRows(a.p.k, batch, key_head, a.p.width, a.k_packed);
  }
  __device__ __forceinline__ TileRows v() const {
    return TileRows(a.p.v, batch, key_head, a.p.value_width, a.v_packed);
  }
  __device__ __forceinline__ char* columns(int buffer) const {
    return memory + 2 * Shape::kRowBytes + buffer * Shape::kBufferBytes;
  }
  // Starts to copy the rows from `first` on: k and v, or q and g of a head.
  __device__ __forceinline__ void load_rows(int head, int first) const {
    constexpr int kRows = Shape::kRows, kWidth = Shape::kWidth;
    char* const other = memory + Shape::kRowBytes;
    if constexpr (Shape::kOfKeys) {
      load_tile<kRows, kWidth>(memory, k(), first, a.p.keys);
      load_tile<kRows, kWidth>(other, v(), first, a.p.keys);
    } else {
      load_tile<kRows, kWidth>(memory, q(head), first, a.p.queries);
      load_tile<kRows, kWidth>(other, g(head), first, a.p.queries);
    }
  }
  // The columns of a step: q, g, shift and delta, or k and v.
  __device__ __forceinline__ void load_columns(const PassSteps& s, int buffer) const {
    constexpr int kColumns = Shape::kColumns, kWidth = Shape::kWidth;
    char* const to = columns(buffer);
    char* const other = to + Shape::kColumnBytes;
    if constexpr (Shape::kOfKeys) {
      load_tile<kColumns, kWidth>(to, q(s.head), s.column, a.p.queries);
      load_tile<kColumns, kWidth>(other, g(s.head), s.column, a.p.queries);
      load_numbers<kColumns>(other + Shape::kColumnBytes, a.shift, a.delta,
                             (batch * a.p.heads + s.head) * a.padded + s.column);
    } else {
      load_tile<kColumns, kWidth>(to, k(), s.column, a.p.keys);
      load_tile<kColumns, kWidth>(other, v(), s.column, a.p.keys);
    }
    device::commit_copies();
  }
};

// shift and delta of the thread's queries.
template <class Shape> __device__ __forceinline__ void read_numbers(const GradientArguments& a,
                                                                    const ScorePlace& at,
                                                                    RowNumbers<Shape>& numbers) {
#pragma unroll
  for (int i = 0; i < Shape::kRowTiles; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int64_t from =
          (at.batch * a.p.heads + at.head) * a.padded + at.row() + 16 * i + 8 * half;
      numbers.shift[i][half] = Shape::kOfKeys ? 0 : a.shift[from];
      numbers.delta[i][half] = Shape::kOfKeys ? 0 : a.delta[from];
    }
  }
}

template <class S, class Shape, bool kPlain> __global__ void __launch_bounds__(kTileThreads, 2)
    flash_pass(const __grid_constant__ GradientArguments a) {
  constexpr bool kOfKeys = Shape::kOfKeys;
  TT_SHARED_DYNAMIC(char, memory);
  const AttentionPlan& p = a.p;
  const int heads = int(kOfKeys ? p.key_heads : p.heads);
  const int head = int(blockIdx.x) / a.blocks;
  const int group = int(p.heads) / int(p.key_heads);
  ScorePlace at;
  at.batch = head / heads;
  at.head = head - at.batch * heads;
  // The blocks with most columns come first: the first keys, the last queries.
  const int block = int(blockIdx.x) - head * a.blocks;
  const int first = (kOfKeys ? block : a.blocks - 1 - block) * Shape::kRows;
  PassSteps s;
  s.head = kOfKeys ? at.head * group : at.head;
  s.last_head = kOfKeys ? s.head + group - 1 : s.head;
  s.first = kOfKeys && p.causal ? first : 0;
  s.end = int(kOfKeys ? p.queries : p.keys);
  if (!kOfKeys && p.causal) s.end = int(least(s.end, first + Shape::kRows));
  s.column = s.first;
  s.step = Shape::kColumns;
  const int key_head = kOfKeys ? at.head : at.head / group;
  const PassTiles<Shape> tiles = {a, memory, at.batch, key_head};
  tiles.load_rows(at.head, first);
  if (s.more()) tiles.load_columns(s, 0);

  const int warp_row = int(threadIdx.x) / kWarp * 16 * Shape::kRowTiles;
  at.first_row = first + warp_row;
  ScoreOperands x;
  x.rows = memory + warp_row * Shape::kWidth * 2;
  x.other_rows = x.rows + Shape::kRowBytes;
  RowNumbers<Shape> numbers;
  read_numbers<Shape>(a, at, numbers);
  typename Shape::Sum d_rows, d_others;  // dk and dv, or dq and nothing
  clear(d_rows);
  clear(d_others);

  for (int buffer = 0; s.more(); buffer ^= 1) {
    device::wait_for_copies<0>();
    __syncthreads();
    at.head = s.head;
    at.first_column = s.column;
    s.next();
    if (s.more()) tiles.load_columns(s, buffer ^ 1);
    const int last_row = at.first_row + 16 * Shape::kRowTiles - 1;
    const bool is_after =
        kOfKeys ? at.first_column + Shape::kColumns <= at.first_row : at.first_column > last_row;
    if (p.causal && is_after) continue;
    x.columns = tiles.columns(buffer);
    x.other_columns = x.columns + Shape::kColumnBytes;
    x.shift = reinterpret_cast<const float*>(x.other_columns + Shape::kColumnBytes);
    x.delta = x.shift + Shape::kColumns;
    typename Shape::Halves ds;
    add_block<S, Shape, kPlain>(a, at, x, numbers, d_rows, d_others, ds);
  }
  device::wait_for_copies<0>();

  const int64_t rows = kOfKeys ? p.keys : p.queries;
  char* const to = (kOfKeys ? p.dk : p.dq) + head * rows * p.width * 2;
  store_sum<S, Shape>(d_rows, to, at.row(), rows, int(p.width), float(p.scale));
  if constexpr (kOfKeys)
    store_sum<S, Shape>(d_others, p.dv + head * rows * p.value_width * 2, at.row(), rows,
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
