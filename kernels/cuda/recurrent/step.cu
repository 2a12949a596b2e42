// A step of a recurrent layer and its backward (plan/recurrent_plan.h): the product of the state
// with the weight and the activations. A thread computes all gates of one hidden unit of one row;
// the threads of a warp read neighbouring columns of a panel.
#include "kernels/cuda/row.h"
#include "kernels/cuda/rows.h"
#include "plan/recurrent_plan.h"

namespace TT_NS {
namespace {

constexpr int kUnits = 32;  // of a block
constexpr int kRows = 8;

// The row and hidden unit of a thread.
struct Place {
  int64_t row, unit;
  // Blocks: [row tiles][unit tiles].
  __device__ __forceinline__ explicit Place(int64_t units) {
    const int64_t tiles = (units + kUnits - 1) / kUnits;
    row = blockIdx.x / tiles * kRows + threadIdx.y;
    unit = blockIdx.x % tiles * kUnits + threadIdx.x;
  }
};

template <class T> __device__ __forceinline__ const T* values(const char* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T> __device__ __forceinline__ T* values(char* p) { return reinterpret_cast<T*>(p); }
template <class T>
__device__ __forceinline__ const T* row_before(const RecurrentRows& r, int64_t i, int64_t width) {
  return values<T>(i < r.rows ? r.before : r.first) + i * width;
}

// sums[g] = row (depth) times columns g * lanes + lane of the panel of the unit; `lanes` hidden
// units have a panel.
template <class T, int kGates>
__device__ __forceinline__ void multiply(T (&sums)[kGates], const T* row, const char* panels,
                                         int64_t depth, int64_t unit, int64_t lanes) {
  const int64_t block = unit / lanes;
  const int64_t columns = lanes * kGates;
  const T* at = values<T>(panels) + block * depth * columns + (unit - block * lanes);
#pragma unroll
  for (int g = 0; g < kGates; g++) sums[g] = 0;
  for (int64_t k = 0; k < depth; k++, at += columns) {
#pragma unroll
    for (int g = 0; g < kGates; g++) sums[g] += row[k] * at[g * lanes];
  }
}

// Constants, since the functions are the host's.
constexpr int64_t kLstmGates = recurrent_gates(kLstm);
constexpr int64_t kGruGates = recurrent_gates(kGru);
constexpr int32_t mode_of(int gates) {
  if (gates == kLstmGates) return kLstm;
  return gates == kGruGates ? kGru : kRnnTanh;
}
template <int kGates> constexpr int64_t kForwardLanes = recurrent_lanes(mode_of(kGates));

// ---- forward ----

template <class T>
__device__ __forceinline__ void lstm_unit(const RecurrentPlan& p, const Place& w, T (&x)[4]) {
  const T* const gates = values<T>(p.gates) + w.row * 4 * p.hidden + w.unit;
#pragma unroll
  for (int g = 0; g < 4; g++) {
    x[g] += gates[g * p.hidden];
    x[g] = g == 2 ? math::tanh(x[g]) : math::sigmoid(x[g]);
  }
  const int64_t at = w.row * p.hidden + w.unit;
  const T c = x[1] * row_before<T>(p.c, w.row, p.hidden)[w.unit] + x[0] * x[2];
  values<T>(p.cells)[at] = c;
  values<T>(p.projects ? p.middle : p.output)[at] = x[3] * math::tanh(c);
  T* const saved = values<T>(p.saved) + w.row * 4 * p.hidden + w.unit;
#pragma unroll
  for (int g = 0; g < 4; g++) saved[g * p.hidden] = x[g];
}
template <class T>
__device__ __forceinline__ void gru_unit(const RecurrentPlan& p, const Place& w, T (&x)[3]) {
  const T* const gates = values<T>(p.gates) + w.row * 3 * p.hidden + w.unit;
  if (p.bias) {
    const T* const bias = values<T>(p.bias) + w.unit;
#pragma unroll
    for (int g = 0; g < 3; g++) x[g] += bias[g * p.hidden];
  }
  const T r = math::sigmoid(x[0] + gates[0]);
  const T z = math::sigmoid(x[1] + gates[p.hidden]);
  const T n = math::tanh(gates[2 * p.hidden] + r * x[2]);
  const T before = row_before<T>(p.h, w.row, p.hidden)[w.unit];
  values<T>(p.output)[w.row * p.hidden + w.unit] = (T(1) - z) * n + z * before;
  T* const saved = values<T>(p.saved) + w.row * 4 * p.hidden + w.unit;
  saved[0] = r;
  saved[p.hidden] = z;
  saved[2 * p.hidden] = n;
  saved[3 * p.hidden] = x[2];
}
template <class T>
__device__ __forceinline__ void rnn_unit(const RecurrentPlan& p, const Place& w, T (&x)[1]) {
  const int64_t at = w.row * p.hidden + w.unit;
  const T sum = x[0] + values<T>(p.gates)[at];
  const T if_relu = sum < 0 ? T(0) : sum;
  values<T>(p.output)[at] = p.mode == kRnnTanh ? math::tanh(sum) : if_relu;
}

template <class T, int kGates> __global__ void __launch_bounds__(kUnits* kRows)
    forward_step(const __grid_constant__ RecurrentPlan p) {
  const Place w(p.hidden);
  if (w.row >= p.rows || w.unit >= p.hidden) return;
  T x[kGates];
  multiply<T, kGates>(x, row_before<T>(p.h, w.row, p.state), p.weight, p.state, w.unit,
                      kForwardLanes<kGates>);
  if constexpr (kGates == 4) lstm_unit(p, w, x);
  else if constexpr (kGates == 3) gru_unit(p, w, x);
  else rnn_unit(p, w, x);
}
// h = o tanh(c) times w_hr^T.
template <class T> __global__ void __launch_bounds__(kUnits* kRows)
    project(const __grid_constant__ RecurrentPlan p) {
  const Place w(p.state);
  if (w.row >= p.rows || w.unit >= p.state) return;
  T sum[1];
  multiply<T, 1>(sum, values<T>(p.middle) + w.row * p.hidden, p.projection, p.hidden, w.unit,
                 kRecurrentProjectedLanes);
  values<T>(p.output)[w.row * p.state + w.unit] = sum[0];
}

// ---- backward ----

template <class T>
__device__ __forceinline__ void lstm_gradient(const RecurrentPlan& p, const Place& w, T dh) {
  const int64_t at = w.row * p.hidden + w.unit;
  const int64_t gates = w.row * 4 * p.hidden + w.unit;
  const T* const saved = values<T>(p.saved) + gates;
  const T i = saved[0];
  const T f = saved[p.hidden];
  const T g = saved[2 * p.hidden];
  const T o = saved[3 * p.hidden];
  const T t = math::tanh(values<T>(p.cells)[at]);
  T* const carry = values<T>(p.carry) + at;
  T dc = *carry;
  if (p.grad_cells) dc += values<T>(p.grad_cells)[at];
  dc += dh * o * (T(1) - t * t);
  T* const out = values<T>(p.dgates) + gates;
  out[0] = dc * g * (i * (T(1) - i));
  out[p.hidden] = dc * row_before<T>(p.c, w.row, p.hidden)[w.unit] * (f * (T(1) - f));
  out[2 * p.hidden] = dc * i * (T(1) - g * g);
  out[3 * p.hidden] = dh * t * (o * (T(1) - o));
  *carry = dc * f;
}
template <class T>
__device__ __forceinline__ void gru_gradient(const RecurrentPlan& p, const Place& w, T dh) {
  const T* const saved = values<T>(p.saved) + w.row * 4 * p.hidden + w.unit;
  const T r = saved[0];
  const T z = saved[p.hidden];
  const T n = saved[2 * p.hidden];
  const T h_n = saved[3 * p.hidden];
  T* const carry = values<T>(p.carry) + w.row * p.hidden + w.unit;
  const T d = dh + *carry;
  const T of_n = d * (T(1) - z) * (T(1) - n * n);
  const T of_z = d * (row_before<T>(p.h, w.row, p.hidden)[w.unit] - n) * (z * (T(1) - z));
  const T of_r = of_n * h_n * (r * (T(1) - r));
  T* const dx = values<T>(p.dgates) + w.row * 3 * p.hidden + w.unit;
  T* const of_products = values<T>(p.dhidden) + w.row * 3 * p.hidden + w.unit;
  dx[0] = of_products[0] = of_r;
  dx[p.hidden] = of_products[p.hidden] = of_z;
  dx[2 * p.hidden] = of_n;
  of_products[2 * p.hidden] = of_n * r;
  *carry = d * z;
}
template <class T>
__device__ __forceinline__ void rnn_gradient(const RecurrentPlan& p, const Place& w, T dh) {
  const int64_t at = w.row * p.hidden + w.unit;
  const T h = values<T>(p.output_read)[at];
  const T if_relu = h <= 0 ? T(0) : dh;
  values<T>(p.dgates)[at] = p.mode == kRnnTanh ? dh * (T(1) - h * h) : if_relu;
}

// dh, then the gradients of the gates or, with a projection, dh itself.
template <class T> __global__ void __launch_bounds__(kUnits* kRows)
    backward_step(const __grid_constant__ RecurrentPlan p) {
  const Place w(p.state);
  if (w.row >= p.rows || w.unit >= p.state) return;
  int64_t gates = 1;
  if (p.mode == kLstm) gates = kLstmGates;
  if (p.mode == kGru) gates = kGruGates;
  const int64_t depth = gates * p.hidden;
  T dh[1] = {0};
  if (w.row < p.later_rows)
    multiply<T, 1>(dh, values<T>(p.later) + w.row * depth, p.weight, depth, w.unit,
                   kRecurrentBackwardLanes);
  const int64_t at = w.row * p.state + w.unit;
  if (p.grad) dh[0] += values<T>(p.grad)[at];
  if (p.projects) values<T>(p.dhidden)[at] = dh[0];
  else if (p.mode == kLstm) lstm_gradient(p, w, dh[0]);
  else if (p.mode == kGru) gru_gradient(p, w, dh[0]);
  else rnn_gradient(p, w, dh[0]);
}
// The gradient of o tanh(c), which is that of the output times w_hr, then those of the gates.
template <class T> __global__ void __launch_bounds__(kUnits* kRows)
    unproject(const __grid_constant__ RecurrentPlan p) {
  const Place w(p.hidden);
  if (w.row >= p.rows || w.unit >= p.hidden) return;
  T dh[1];
  multiply<T, 1>(dh, values<T>(p.dhidden) + w.row * p.state, p.projection, p.state, w.unit,
                 kRecurrentBackwardLanes);
  lstm_gradient(p, w, dh[0]);
}

int32_t launch_units(void (*kernel)(RecurrentPlan), const RecurrentPlan& p, int64_t units,
                     void* stream) {
  if (p.rows * units == 0) return TT_OK;
  const int64_t blocks = ceil_div(p.rows, kRows) * ceil_div(units, kUnits);
  return device::launch(kernel, unsigned(blocks), dim3(kUnits, kRows), 0, stream, p);
}

template <class T> int32_t run_forward(const RecurrentPlan& p, void* stream) {
  auto kernel = forward_step<T, 1>;
  if (p.mode == kLstm) kernel = forward_step<T, 4>;
  if (p.mode == kGru) kernel = forward_step<T, 3>;
  const int32_t status = launch_units(kernel, p, p.hidden, stream);
  if (status != TT_OK || !p.projects) return status;
  return launch_units(project<T>, p, p.state, stream);
}
template <class T> int32_t run_backward(const RecurrentPlan& p, void* stream) {
  const int32_t status = launch_units(backward_step<T>, p, p.state, stream);
  if (status != TT_OK || !p.projects) return status;
  return launch_units(unproject<T>, p, p.hidden, stream);
}

}  // namespace

namespace cuda {

int32_t recurrent_step(const void* plan, void* stream, void*) {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  return p.dtype == TT_F64 ? run_forward<double>(p, stream) : run_forward<float>(p, stream);
}
int32_t recurrent_step_backward(const void* plan, void* stream, void*) {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  return p.dtype == TT_F64 ? run_backward<double>(p, stream) : run_backward<float>(p, stream);
}

}  // namespace cuda
}  // namespace TT_NS
