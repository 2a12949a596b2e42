// RecurrentPlan: one step of a recurrent layer, forward or backward. POD, also for device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

enum RecurrentMode : int32_t {
  kRnnRelu = 0,  // h = relu(x + h w^T)
  kRnnTanh = 1,  // h = tanh(x + h w^T)
  kLstm = 2,     // gates i f g o: c = f c + i g, h = o tanh(c), or that times w_hr^T
  kGru = 3,      // gates r z n: n = tanh(x_n + r h_n), h = (1 - z) n + z h
};

TT_INLINE constexpr int64_t recurrent_gates(int32_t mode) {
  if (mode == kLstm) return 4;
  return mode == kGru ? 3 : 1;
}
// Number of values per hidden unit that forward saves: i f g o, or r z n h_n.
TT_INLINE constexpr int64_t recurrent_saved(int32_t mode) {
  return mode == kLstm || mode == kGru ? 4 : 0;
}

constexpr int64_t kRecurrentRows = 32;     // rows of a tile of products, at most
constexpr int64_t kRecurrentColumns = 96;  // its columns, at most

// Hidden units of a unit of work, forward: all gates of them are one panel of about 64 columns.
TT_INLINE constexpr int64_t recurrent_lanes(int32_t mode) {
  if (mode == kLstm) return 16;
  return mode == kGru ? 32 : 64;
}
constexpr int64_t kRecurrentBackwardLanes = 32;  // hidden units of a unit of work, backward
constexpr int64_t kRecurrentProjectedLanes = 64;
constexpr int64_t kRecurrentPair = 2;  // positions of the depth that are neighbours in half panels
constexpr int64_t kRecurrentDepthUnit = 16;  // of which their depth is a multiple

// Rows of the step before (forward: h, c; backward: the gradients that it gets) and, for rows
// that it lacks, of the initial state. Both are [rows][n]; row i is before + i * n if i < rows.
struct RecurrentRows {
  const char* before;
  const char* first;
  int64_t rows;
};

// A weight as panels [block][depth][columns], padded with zeros to whole blocks.
// Forward, panel of hidden units j0 …: columns [gate][lane], depth state. Projection: depth hidden,
// columns of the state. Backward: w_hh has depth gates * hidden and columns of the state; w_hr has
// depth state and columns of hidden units.
// T is the dtype, f32 or f64; all arrays are row-major. Panels of f16 or bf16, which devices have
// only, are [block][depth / 2][columns][2], padded with zeros to whole units of depth.
struct RecurrentPlan {
  Stages run;  // units: blocks of hidden units; with a projection, a second stage
  int32_t dtype;
  int32_t weight_dtype;  // of the panels
  int32_t mode;
  bool projects;
  int64_t rows;            // of this step
  int64_t hidden, state;   // sizes of c and of h
  const char* weight;      // panels of w_hh
  const char* projection;  // panels of w_hr
  const char* bias;        // [gates * hidden] of the products with w_hh, or NULL
  RecurrentRows h;         // [state]
  RecurrentRows c;         // [hidden]
  char* saved;             // [rows][saved * hidden]; backward reads it
  char* middle;            // with a projection: o tanh(c), backward its gradient, [rows][hidden]
  // Forward
  const char* gates;  // [rows][gates * hidden]: products of the input
  char* output;       // [rows][state]
  char* cells;        // [rows][hidden]; backward reads it
  // Backward
  const char* later;        // gradients of the products with w_hh of the step after this,
  int64_t later_rows;       //   [later_rows][gates * hidden]
  const char* grad;         // of output, [rows][state], or NULL
  const char* grad_cells;   // of cells, or NULL
  const char* output_read;  // output of this step (rnn modes)
  char* dgates;             // [rows][gates * hidden]
  char* dhidden;  // gru: gradients of the products with w_hh; with a projection, of output: [state]
  char* carry;    // [batch][hidden]: gradient of c (lstm) or the part z dh (gru), in place
};

}  // namespace TT_NS
