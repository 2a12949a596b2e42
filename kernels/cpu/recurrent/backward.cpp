// The gradient of a step of a recurrent layer. dh is the gradient of the step's output, plus the
// gradients of the step after times w_hh:
//   rnn   dx = dh f'(h)
//   lstm  dc += dh o (1 - tanh(c)^2), then di = dc g, df = dc c_before, dg = dc i, do = dh tanh(c),
//         each times the derivative of its gate, and dc f is passed to the step before
//   gru   dn = dh (1 - z) (1 - n^2), dz = dh (h_before - n) z (1 - z), dr = dn h_n r (1 - r); of
//         the products with w_hh: dr, dz, dn r; dh z is passed to the step before
#include "kernels/cpu/recurrent/recurrent.h"

TT_ISA_BEGIN

// Hidden units [unit, unit + count) of a row; dh has `count` values. kWhole: count is the number of
// lanes, which the compiler then knows.
struct BackwardRow {
  int64_t row, unit, count;
};

template <class T, bool kWhole>
TT_INLINE void lstm_row(const RecurrentPlan& p, const BackwardRow& b, const T* TT_RESTRICT dh) {
  const int64_t count = kWhole ? kRecurrentBackwardLanes : b.count;
  const int64_t at = b.row * p.hidden + b.unit;
  const int64_t gates = b.row * 4 * p.hidden + b.unit;
  const T* TT_RESTRICT i = as_values<T>(p.saved) + gates;
  const T* TT_RESTRICT f = i + p.hidden;
  const T* TT_RESTRICT g = f + p.hidden;
  const T* TT_RESTRICT o = g + p.hidden;
  const T* TT_RESTRICT before = row_before<T>(p.c, b.row, p.hidden) + b.unit;
  const T* TT_RESTRICT dcells = p.grad_cells ? as_values<T>(p.grad_cells) + at : nullptr;
  T* TT_RESTRICT carry = as_values<T>(p.carry) + at;
  T* TT_RESTRICT di = as_values<T>(p.dgates) + gates;
  T* TT_RESTRICT df = di + p.hidden;
  T* TT_RESTRICT dg = df + p.hidden;
  T* TT_RESTRICT d_o = dg + p.hidden;
  alignas(64) T t[kRecurrentBackwardLanes] = {};
  copy_run(t, as_values<T>(p.cells) + at, count);
  tanh_run(t, kRecurrentBackwardLanes);
  if (dcells) add_run(carry, dcells, count);
  TT_VECTORIZE
  for (int64_t l = 0; l < count; l++) {
    const T dc = carry[l] + dh[l] * o[l] * (1 - t[l] * t[l]);
    di[l] = dc * g[l] * (i[l] * (1 - i[l]));
    df[l] = dc * before[l] * (f[l] * (1 - f[l]));
    dg[l] = dc * i[l] * (1 - g[l] * g[l]);
    d_o[l] = dh[l] * t[l] * (o[l] * (1 - o[l]));
    carry[l] = dc * f[l];
  }
}

template <class T, bool kWhole>
TT_INLINE void gru_row(const RecurrentPlan& p, const BackwardRow& b, const T* TT_RESTRICT dh) {
  const int64_t count = kWhole ? kRecurrentBackwardLanes : b.count;
  const int64_t at = b.row * p.hidden + b.unit;
  const T* TT_RESTRICT r = as_values<T>(p.saved) + b.row * 4 * p.hidden + b.unit;
  const T* TT_RESTRICT z = r + p.hidden;
  const T* TT_RESTRICT n = z + p.hidden;
  const T* TT_RESTRICT h_n = n + p.hidden;
  const T* TT_RESTRICT before = row_before<T>(p.h, b.row, p.hidden) + b.unit;
  T* TT_RESTRICT carry = as_values<T>(p.carry) + at;
  T* TT_RESTRICT dr = as_values<T>(p.dgates) + b.row * 3 * p.hidden + b.unit;
  T* TT_RESTRICT dz = dr + p.hidden;
  T* TT_RESTRICT dn = dz + p.hidden;
  T* TT_RESTRICT hr = as_values<T>(p.dhidden) + b.row * 3 * p.hidden + b.unit;
  T* TT_RESTRICT hz = hr + p.hidden;
  T* TT_RESTRICT hn = hz + p.hidden;
  TT_VECTORIZE
  for (int64_t l = 0; l < count; l++) {
    const T d = dh[l] + carry[l];
    const T of_n = d * (1 - z[l]) * (1 - n[l] * n[l]);
    const T of_z = d * (before[l] - n[l]) * (z[l] * (1 - z[l]));
    const T of_r = of_n * h_n[l] * (r[l] * (1 - r[l]));
    dr[l] = hr[l] = of_r;
    dz[l] = hz[l] = of_z;
    dn[l] = of_n;
    hn[l] = of_n * r[l];
    carry[l] = d * z[l];
  }
}

template <class T, bool kWhole>
TT_INLINE void rnn_row(const RecurrentPlan& p, const BackwardRow& b, const T* TT_RESTRICT dh) {
  const int64_t count = kWhole ? kRecurrentBackwardLanes : b.count;
  const int64_t at = b.row * p.hidden + b.unit;
  const T* TT_RESTRICT h = as_values<T>(p.output_read) + at;
  T* TT_RESTRICT dx = as_values<T>(p.dgates) + at;
  if (p.mode == kRnnTanh) {
    TT_VECTORIZE
    for (int64_t l = 0; l < count; l++) dx[l] = dh[l] * (1 - h[l] * h[l]);
    return;
  }
  TT_VECTORIZE
  for (int64_t l = 0; l < count; l++) dx[l] = h[l] <= 0 ? T(0) : dh[l];
}

template <class T, bool kWhole>
TT_INLINE void gate_gradients(const RecurrentPlan& p, const BackwardRow& b, const T* dh) {
  if (p.mode == kLstm) lstm_row<T, kWhole>(p, b, dh);
  else if (p.mode == kGru) gru_row<T, kWhole>(p, b, dh);
  else rnn_row<T, kWhole>(p, b, dh);
}

// dh of a block of the state, then the gradients of the gates or, with a projection, dh itself.
template <class T> TT_NOINLINE void state_block(const RecurrentPlan& p, int64_t unit) {
  constexpr int64_t kColumns = kRecurrentBackwardLanes;
  const int64_t depth = recurrent_gates(p.mode) * p.hidden;
  const T* panel = as_values<T>(p.weight) + unit * depth * kColumns;
  alignas(64) T tile[kRecurrentRows * kColumns];
  BackwardRow b;
  b.unit = unit * kColumns;
  b.count = min(kColumns, p.state - b.unit);
  for (int64_t row = 0; row < p.rows; row += kRecurrentRows) {
    const int64_t rows = min(kRecurrentRows, p.rows - row);
    const int64_t with_later = clamp(p.later_rows - row, int64_t(0), rows);
    if (with_later > 0)
      recurrent_multiply(tile, as_values<T>(p.later) + row * depth, panel, with_later, depth,
                         kColumns);
    for (int64_t i = with_later * kColumns; i < rows * kColumns; i++) tile[i] = 0;
    for (int64_t r = 0; r < rows; r++) {
      T* dh = tile + r * kColumns;
      b.row = row + r;
      const int64_t at = b.row * p.state + b.unit;
      if (p.grad) add_run(dh, as_values<T>(p.grad) + at, b.count);
      if (p.projects) copy_run(as_values<T>(p.dhidden) + at, dh, b.count);
      else if (b.count == kColumns) gate_gradients<T, true>(p, b, dh);
      else gate_gradients<T, false>(p, b, dh);
    }
  }
}

// The gradient of o tanh(c), which is that of the output times w_hr, then those of the gates.
template <class T> TT_NOINLINE void unprojected_block(const RecurrentPlan& p, int64_t unit) {
  constexpr int64_t kColumns = kRecurrentBackwardLanes;
  const T* panel = as_values<T>(p.projection) + unit * p.state * kColumns;
  alignas(64) T tile[kRecurrentRows * kColumns];
  BackwardRow b;
  b.unit = unit * kColumns;
  b.count = min(kColumns, p.hidden - b.unit);
  for (int64_t row = 0; row < p.rows; row += kRecurrentRows) {
    const int64_t rows = min(kRecurrentRows, p.rows - row);
    recurrent_multiply(tile, as_values<T>(p.dhidden) + row * p.state, panel, rows, p.state,
                       kColumns);
    for (int64_t r = 0; r < rows; r++) {
      b.row = row + r;
      if (b.count == kColumns) lstm_row<T, true>(p, b, tile + r * kColumns);
      else lstm_row<T, false>(p, b, tile + r * kColumns);
    }
  }
}

template <class T> inline int32_t run_backward(const RecurrentPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 0) state_block<T>(p, u);
    else unprojected_block<T>(p, u);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(recurrent_step_backward)(const void* plan, int64_t begin, int64_t end) noexcept {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  return is_dtype(p.dtype, TT_F64) ? run_backward<double>(p, begin, end)
                                   : run_backward<float>(p, begin, end);
}

TT_ENTRY_END
