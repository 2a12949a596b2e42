// A step of a recurrent layer: the product of the state with the weight and the activations.
#include "kernels/cpu/recurrent/recurrent.h"

TT_ISA_BEGIN

// Hidden units [unit, unit + count) of rows [row, row + rows). kWhole: count is the number of
// lanes, which the compiler then knows.
struct ForwardBlock {
  int64_t row, rows, unit, count;
};

// x_gate += the gate's products of the input.
template <class T, int kGates, int kLanes, bool kWhole>
TT_INLINE void add_gates(const RecurrentPlan& p, const ForwardBlock& b, int64_t row, T* x) {
  const int64_t n = kWhole ? kLanes : b.count;
  const T* gates = as_values<T>(p.gates) + row * kGates * p.hidden + b.unit;
  for (int g = 0; g < kGates; g++) add_run(x + g * kLanes, gates + g * p.hidden, n);
}

template <class T, bool kWhole>
TT_INLINE void finish_lstm(const RecurrentPlan& p, const ForwardBlock& b, T* tile) {
  constexpr int kL = recurrent_lanes(kLstm);
  const int64_t n = kWhole ? kL : b.count;
  T* h_out = as_values<T>(p.projects ? p.middle : p.output);
  for (int64_t r = 0; r < b.rows; r++) {
    const int64_t row = b.row + r;
    T* x = tile + r * 4 * kL;
    add_gates<T, 4, kL, kWhole>(p, b, row, x);
    sigmoid_run(x, 2 * kL);
    tanh_run(x + 2 * kL, kL);
    sigmoid_run(x + 3 * kL, kL);
    const T* c_before = row_before<T>(p.c, row, p.hidden) + b.unit;
    alignas(64) T c[kL] = {};
    TT_VECTORIZE
    for (int64_t l = 0; l < n; l++) c[l] = x[kL + l] * c_before[l] + x[l] * x[2 * kL + l];
    copy_run(as_values<T>(p.cells) + row * p.hidden + b.unit, c, n);
    tanh_run(c, kL);
    T* h = h_out + row * p.hidden + b.unit;
    TT_VECTORIZE
    for (int64_t l = 0; l < n; l++) h[l] = x[3 * kL + l] * c[l];
    T* saved = as_values<T>(p.saved) + row * 4 * p.hidden + b.unit;
    for (int g = 0; g < 4; g++) copy_run(saved + g * p.hidden, x + g * kL, n);
  }
}

template <class T, bool kWhole>
TT_INLINE void finish_gru(const RecurrentPlan& p, const ForwardBlock& b, T* tile) {
  constexpr int kL = recurrent_lanes(kGru);
  const int64_t n = kWhole ? kL : b.count;
  for (int64_t r = 0; r < b.rows; r++) {
    const int64_t row = b.row + r;
    T* x = tile + r * 3 * kL;
    if (p.bias)
      for (int g = 0; g < 3; g++)
        add_run(x + g * kL, as_values<T>(p.bias) + g * p.hidden + b.unit, n);
    alignas(64) T h_n[kL];
    copy_run(h_n, x + 2 * kL, kL);
    const T* gates = as_values<T>(p.gates) + row * 3 * p.hidden + b.unit;
    add_run(x, gates, n);
    add_run(x + kL, gates + p.hidden, n);
    sigmoid_run(x, 2 * kL);
    const T* x_n = gates + 2 * p.hidden;
    TT_VECTORIZE
    for (int64_t l = 0; l < n; l++) x[2 * kL + l] = x_n[l] + x[l] * h_n[l];
    tanh_run(x + 2 * kL, kL);
    const T* before = row_before<T>(p.h, row, p.hidden) + b.unit;
    T* h = as_values<T>(p.output) + row * p.hidden + b.unit;
    TT_VECTORIZE
    for (int64_t l = 0; l < n; l++) {
      const T z = x[kL + l];
      h[l] = (1 - z) * x[2 * kL + l] + z * before[l];
    }
    T* saved = as_values<T>(p.saved) + row * 4 * p.hidden + b.unit;
    for (int g = 0; g < 3; g++) copy_run(saved + g * p.hidden, x + g * kL, n);
    copy_run(saved + 3 * p.hidden, h_n, n);
  }
}

template <class T, bool kWhole>
TT_INLINE void finish_rnn(const RecurrentPlan& p, const ForwardBlock& b, T* tile) {
  constexpr int kL = recurrent_lanes(kRnnTanh);
  const int64_t n = kWhole ? kL : b.count;
  for (int64_t r = 0; r < b.rows; r++) {
    const int64_t row = b.row + r;
    T* x = tile + r * kL;
    add_gates<T, 1, kL, kWhole>(p, b, row, x);
    T* h = as_values<T>(p.output) + row * p.hidden + b.unit;
    if (p.mode == kRnnTanh) {
      tanh_run(x, kL);
      copy_run(h, x, n);
      continue;
    }
    TT_VECTORIZE
    for (int64_t l = 0; l < n; l++) h[l] = x[l] < 0 ? T(0) : x[l];
  }
}

template <class T, bool kWhole>
TT_INLINE void finish(const RecurrentPlan& p, const ForwardBlock& b, T* tile) {
  if (p.mode == kLstm) finish_lstm<T, kWhole>(p, b, tile);
  else if (p.mode == kGru) finish_gru<T, kWhole>(p, b, tile);
  else finish_rnn<T, kWhole>(p, b, tile);
}

// tile = the state before of rows [row, row + rows) times a panel. Rows that the step before lacks
// come from the initial state.
template <class T> TT_INLINE void multiply_state(const RecurrentPlan& p, const ForwardBlock& b,
                                                 const T* panel, int64_t columns, T* tile) {
  const int64_t old = clamp(p.h.rows - b.row, int64_t(0), b.rows);
  const int64_t at = b.row * p.state;
  if (old > 0)
    recurrent_multiply(tile, as_values<T>(p.h.before) + at, panel, old, p.state, columns);
  if (old < b.rows)
    recurrent_multiply(tile + old * columns, as_values<T>(p.h.first) + at + old * p.state, panel,
                       b.rows - old, p.state, columns);
}

template <class T> TT_NOINLINE void hidden_block(const RecurrentPlan& p, int64_t unit) {
  const int64_t lanes = recurrent_lanes(p.mode);
  const int64_t columns = lanes * recurrent_gates(p.mode);
  const T* panel = as_values<T>(p.weight) + unit * p.state * columns;
  alignas(64) T tile[kRecurrentRows * kRecurrentColumns];
  ForwardBlock b;
  b.unit = unit * lanes;
  b.count = min(lanes, p.hidden - b.unit);
  for (b.row = 0; b.row < p.rows; b.row += kRecurrentRows) {
    b.rows = min(kRecurrentRows, p.rows - b.row);
    multiply_state(p, b, panel, columns, tile);
    if (b.count == lanes) finish<T, true>(p, b, tile);
    else finish<T, false>(p, b, tile);
  }
}

// h = o tanh(c) times w_hr^T.
template <class T> TT_NOINLINE void projected_block(const RecurrentPlan& p, int64_t unit) {
  constexpr int64_t kColumns = kRecurrentProjectedLanes;
  const T* panel = as_values<T>(p.projection) + unit * p.hidden * kColumns;
  alignas(64) T tile[kRecurrentRows * kColumns];
  const int64_t first = unit * kColumns;
  const int64_t n = min(kColumns, p.state - first);
  for (int64_t row = 0; row < p.rows; row += kRecurrentRows) {
    const int64_t rows = min(kRecurrentRows, p.rows - row);
    recurrent_multiply(tile, as_values<T>(p.middle) + row * p.hidden, panel, rows, p.hidden,
                       kColumns);
    for (int64_t r = 0; r < rows; r++)
      copy_run(as_values<T>(p.output) + (row + r) * p.state + first, tile + r * kColumns, n);
  }
}

template <class T> inline int32_t run_forward(const RecurrentPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 0) hidden_block<T>(p, u);
    else projected_block<T>(p, u);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(recurrent_step)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? run_forward<double>(p, begin, end)
                                   : run_forward<float>(p, begin, end);
}

TT_ENTRY_END
