// A block of scores of a warp in the gradients of attention of halves, and what it adds to the sums
// of the warp. Rows are keys and columns queries if Shape::kOfKeys, else the other way round. score
// and dz are [rows][columns] either way, so that z and ds, rounded to halves, are the left operands
// of the products that follow and never leave the registers of the warp.
#pragma once

#include "kernels/cuda/attention/gradients.h"

namespace TT_NS {
namespace {

// Which rows and columns a warp has.
struct ScorePlace {
  int32_t batch, head;
  int32_t first_row, first_column;

  // The first ones of the thread.
  __device__ __forceinline__ int row() const { return first_row + int(threadIdx.x) % kWarp / 4; }
  __device__ __forceinline__ int column() const { return first_column + int(threadIdx.x) % 4 * 2; }
};

// Hides keys that are not there or come after the query.
template <class Shape> __device__ __forceinline__ void hide_scores(const AttentionPlan& p,
                                                                   const ScorePlace& at,
                                                                   typename Shape::Block& score) {
  const int first = at.column() - at.row();
  const int left = int(p.keys) - (Shape::kOfKeys ? at.row() : at.column());
  each_element<Shape>([&](int row, int column, int i, int j, int r) {
    // The key less the query.
    const int after = Shape::kOfKeys ? row - column - first : column + first - row;
    const bool attends = (Shape::kOfKeys ? row : column) < left && (!p.causal || after <= 0);
    score[i][j][r] = attends ? score[i][j][r] : kMinusInfinity<float>;
  });
}

template <class Shape> __device__ __forceinline__ void mask_scores(const AttentionPlan& p,
                                                                   const ScorePlace& at,
                                                                   typename Shape::Block& score) {
  const int queries = int(p.queries) - (Shape::kOfKeys ? at.column() : at.row());
  const int keys = int(p.keys) - (Shape::kOfKeys ? at.row() : at.column());
  const int64_t row_step = Shape::kOfKeys ? p.mask_key : p.mask_query;
  const int64_t column_step = Shape::kOfKeys ? p.mask_query : p.mask_key;
  const char* const m = p.mask + at.batch * p.mask_batch + at.head * p.mask_head +
                        at.row() * row_step + at.column() * column_step;
  each_element<Shape>([&](int row, int column, int i, int j, int r) {
    const int query = Shape::kOfKeys ? column : row;
    const int key = Shape::kOfKeys ? row : column;
    if (query < queries && key < keys)
      mask_score(m + row * row_step + column * column_step, p.mask_dtype, &score[i][j][r]);
  });
}

// What dropout keeps: a bit for each of the thread's elements. Keys 16 apart, which most threads
// have, share a block of random words.
template <class Shape> struct Dropout {
  static constexpr int kItems = Shape::kRowTiles * Shape::kColumnTiles * 4;
  static constexpr int kShared = Shape::kOfKeys ? Shape::kRowTiles : Shape::kColumnTiles / 2;
  static constexpr int kStep = Shape::kOfKeys ? kItems / kShared : 8;  // between their bits
  static_assert(kItems == 32 && kShared <= 2);
  uint32_t kept;

  __device__ __forceinline__ void draw(const AttentionPlan& p, const ScorePlace& at) {
    const int64_t groups = (p.keys + kSide - 1) / kSide;
    const int64_t first = (int64_t(at.batch) * p.heads + at.head) * p.queries;
    kept = 0;
#pragma unroll 1
    for (int n = 0; n < kItems / kShared; n++) {
      const int item = kStep == 8 ? n % 8 + n / 8 * 16 : n;
      const int i = item / (4 * Shape::kColumnTiles);
      const int row = at.row() + 16 * i + 8 * (item >> 1 & 1);
      const int column = at.column() + item / 4 % Shape::kColumnTiles * 8 + (item & 1);
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
  // Whether an element is kept.
  __device__ __forceinline__ bool has(int i, int j, int r) const {
    return kept >> ((i * Shape::kColumnTiles + j) * 4 + r) & 1;
  }
};

// Tiles in shared memory: k and v if rows are keys, else q and g; columns are the others. shift and
// delta are those of the columns, in shared memory, if these are queries.
struct ScoreOperands {
  const char *rows, *other_rows;
  const char *columns, *other_columns;
  const float *shift, *delta;
};
// shift and delta of the thread's rows, if these are queries.
template <class Shape> struct RowNumbers {
  float shift[Shape::kRowTiles][2], delta[Shape::kRowTiles][2];
};

// Adds the product of ds and columns to d_rows, dk or dq. Of keys, adds that of z and other_columns
// to d_others, which is dv. Sets ds, rounded to halves. kPlain: there is no mask and no dropout,
// and a.scaled is false.
template <class S, class Shape, bool kPlain>
__device__ __forceinline__ void add_block(const GradientArguments& a, const ScorePlace& at,
                                          const ScoreOperands& x, const RowNumbers<Shape>& numbers,
                                          typename Shape::Sum& d_rows,
                                          typename Shape::Sum& d_others,
                                          typename Shape::Halves& ds) {
  constexpr bool kOfKeys = Shape::kOfKeys;
  const AttentionPlan& p = a.p;
  const int pair = int(threadIdx.x) % 4 * 2;
  const int last_row = at.first_row + 16 * Shape::kRowTiles - 1;
  const int end_column = at.first_column + Shape::kColumns;
  typename Shape::Block weight, change;
  multiply_rows<S, Shape>(x.rows, x.columns, weight);
  if (!kPlain && a.scaled)
    each_element<Shape>([&](int, int, int i, int j, int r) { weight[i][j][r] *= float(p.scale); });
  const bool is_edge = kOfKeys ? last_row >= p.keys : end_column > p.keys;
  const bool is_diagonal =
      p.causal && (kOfKeys ? at.first_column < last_row : end_column - 1 > at.first_row);
  if (is_edge || is_diagonal) hide_scores<Shape>(p, at, weight);
  if (!kPlain && p.mask_dtype) mask_scores<Shape>(p, at, weight);
  each_element<Shape>([&](int, int column, int i, int j, int r) {
    const float shift = kOfKeys ? x.shift[pair + column] : numbers.shift[i][r >> 1];
    weight[i][j][r] = device::fast_exp2(multiply_add(weight[i][j][r], a.factor, -shift));
  });
  Dropout<Shape> dropout = {};
  const bool drops = !kPlain && p.drop;
  if (drops) dropout.draw(p, at);
  if constexpr (kOfKeys) {
    if (drops) {
      each_element<Shape>([&](int, int, int i, int j, int r) {
        change[i][j][r] = dropout.has(i, j, r) ? weight[i][j][r] * float(p.keep_scale) : 0.0f;
      });
      round_block<S, Shape>(change, ds);
    } else {
      round_block<S, Shape>(weight, ds);
    }
    add_rows<S, Shape>(ds, x.other_columns, d_others);
  }
  multiply_rows<S, Shape>(x.other_rows, x.other_columns, change);
  if (drops)
    each_element<Shape>([&](int, int, int i, int j, int r) {
      change[i][j][r] *= dropout.has(i, j, r) ? float(p.keep_scale) : 0.0f;
    });
  each_element<Shape>([&](int, int column, int i, int j, int r) {
    const float delta = kOfKeys ? x.delta[pair + column] : numbers.delta[i][r >> 1];
    change[i][j][r] = weight[i][j][r] * (change[i][j][r] - delta);
  });
  round_block<S, Shape>(change, ds);
  add_rows<S, Shape>(ds, x.columns, d_rows);
}

}  // namespace
}  // namespace TT_NS
