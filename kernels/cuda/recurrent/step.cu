// A step of a recurrent layer and its backward (plan/recurrent_plan.h): the product of the state
// with the weight and the activations, in one kernel, since steps are many and short.
//
//   block     kRows rows and kUnits hidden units with all their gates
//   warp      a lane for each unit; it adds the products of every kWarps-th chunk of the depth, of
//             all rows: a block reads each weight once, neighbouring lanes neighbouring weights
//   state     [kChunk][kRows] of each warp in shared memory, so that one load has several rows
//   sums      the warps add theirs through shared memory, in order; then warp y has row y
//
// What a step takes is the time of reads from the L2 cache that wait for each other: the chunks
// divide it by the number of warps.
//
// Weights that are halves are multiplied by tensor cores (multiply_halves): half the bytes to wait
// for, and no multiplications by the threads. The state stays float32, whose numbers are the sums
// of three of bfloat16.
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/row.h"
#include "kernels/cuda/rows.h"
#include "plan/recurrent_plan.h"

namespace TT_NS {
namespace {

constexpr int kUnits = kWarp;  // of a block
constexpr int kRows = 8;
constexpr int kChunk = kWarp;
// The sums of several gates take registers, those of one have the longest depths.
template <int kGates> constexpr int kWarps = kGates == 1 ? 16 : 8;
// Bytes of a gate's weights that a thread waits for at once.
template <int kGates> constexpr int kBytes = kGates == 1 ? 64 : 16;

// The row and hidden unit of a thread, of `units`.
struct Place {
  int64_t first_row, unit, units;
  // Blocks: [row tiles][unit tiles].
  __device__ __forceinline__ explicit Place(int64_t n) {
    const int64_t tiles = (n + kUnits - 1) / kUnits;
    first_row = blockIdx.x / tiles * kRows;
    unit = blockIdx.x % tiles * kUnits + threadIdx.x;
    units = n;
  }
  __device__ __forceinline__ int64_t row() const { return first_row + threadIdx.y; }
  __device__ __forceinline__ bool is_inside(int64_t rows) const {
    return threadIdx.y < kRows && row() < rows && unit < units;
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

// One position of the depth.
template <class T> struct alignas(16) StateRows { T v[kRows]; };

// The weights of a step: `lanes` hidden units have a panel.
struct Panels {
  const char* p;
  int64_t depth, lanes;
};

// sums[g] = the thread's row (depth) times columns g * lanes + lane of the panel of its unit.
// row_at(i) is row i of the block, NULL for one of zeros. All threads of the block call it.
template <int kGates, class T, class RowAt>
__device__ __forceinline__ void multiply(T (&sums)[kGates], const Place& w, const Panels& weight,
                                         const RowAt& row_at) {
  constexpr int kN = kWarps<kGates>;
  TT_SHARED(StateRows<T>, shared, kN * kChunk);
  const int lane = int(threadIdx.x);
  const int warp = int(threadIdx.y);
  StateRows<T>* const state = shared + warp * kChunk;
  const int64_t columns = weight.lanes * kGates;
  const int64_t unit = least(w.unit, w.units - 1);
  const int64_t panel = unit / weight.lanes;
  const T* const weights =
      values<T>(weight.p) + panel * weight.depth * columns + (unit - panel * weight.lanes);
  T all[kGates][kRows] = {};
  for (int64_t k0 = warp * kChunk; k0 < weight.depth; k0 += kN * kChunk) {
    const int n = int(least(weight.depth - k0, int64_t(kChunk)));
    StateRows<T> mine;
#pragma unroll
    for (int i = 0; i < kRows; i++) {
      const T* const row = row_at(i);
      mine.v[i] = row && lane < n ? row[k0 + lane] : T(0);
    }
    __syncwarp();  // the chunk before is read
    state[lane] = mine;
    __syncwarp();
    const T* at = weights + k0 * columns;
#pragma unroll(kBytes <kGates> / int(sizeof(T)))
    for (int k = 0; k < n; k++) {
      const StateRows<T> x = state[k];
#pragma unroll
      for (int g = 0; g < kGates; g++) {
        const T y = at[k * columns + g * weight.lanes];
#pragma unroll
        for (int i = 0; i < kRows; i++) all[g][i] = multiply_add(x.v[i], y, all[g][i]);
      }
    }
  }
  T* const partial = shared[0].v;  // [kN][kRows][kUnits]
#pragma unroll
  for (int g = 0; g < kGates; g++) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRows; i++) partial[(warp * kRows + i) * kUnits + lane] = all[g][i];
    __syncthreads();
    sums[g] = 0;
    if (warp >= kRows) continue;
#pragma unroll
    for (int other = 0; other < kN; other++)
      sums[g] += partial[(other * kRows + warp) * kUnits + lane];
  }
}

// ---- weights that are halves ----

// x[0] and x[1] as the sums of kTerms numbers of bfloat16, the largest first; pairs in a word.
template <int kTerms>
__device__ __forceinline__ void split(float x0, float x1, uint32_t (&terms)[kTerms]) {
#pragma unroll
  for (int i = 0; i < kTerms; i++) {
    const BF16 y0 = narrow_bf16(x0);
    const BF16 y1 = narrow_bf16(x1);
    terms[i] = uint32_t(y1.bits) << 16 | y0.bits;
    const float left0 = x0 - widen(y0);
    const float left1 = x1 - widen(y1);
    x0 = left0 == left0 ? left0 : 0;  // of an infinite one
    x1 = left1 == left1 ? left1 : 0;
  }
}
constexpr int kStateTerms = 3;  // 24 bits
template <class W> constexpr int kWeightTerms = __is_same(W, BF16) ? 1 : 2;
template <class W>
__device__ __forceinline__ void split_weights(uint32_t pair, uint32_t (&terms)[kWeightTerms<W>]) {
  if constexpr (kWeightTerms<W> == 1) {
    terms[0] = pair;
  } else {
    split(widen(W{uint16_t(pair & 0xffff)}), widen(W{uint16_t(pair >> 16)}), terms);
  }
}

// The same as multiply by m16n8k16: rows of a tile are 16 hidden units, its columns the rows of the
// state. A warp adds the products of every kWarps-th kDeep positions of the depth.
constexpr int kDeep = int(kRecurrentDepthUnit);
constexpr int kTileUnits = 16;
constexpr int kTiles = kUnits / kTileUnits;
template <int kGates, class W, class RowAt>
__device__ __forceinline__ void multiply_halves(float (&sums)[kGates], const Place& w,
                                                const Panels& weight, const RowAt& row_at) {
  constexpr int kN = kWarps<kGates>;
  constexpr int kPitch = kUnits + 4;  // what a warp stores at once is in all banks
  TT_SHARED(float, partial, kN* kRows* kPitch);
  const int lane = int(threadIdx.x);
  const int warp = int(threadIdx.y);
  const int group = lane / 4;  // unit of a tile, and row of the state
  const int pair = lane % 4;   // of positions
  const int64_t columns = weight.lanes * kGates;
  const int64_t pairs = (weight.depth + kDeep - 1) / kDeep * kDeep / kRecurrentPair;
  const uint32_t* weights[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; tile++) {
    // a tile behind the last panel computes what nobody reads
    const int64_t unit = w.unit - lane + tile * kTileUnits;
    const int64_t panel = least(unit, w.units - 1) / weight.lanes;
    const int64_t within = unit - panel * weight.lanes;
    weights[tile] = values<uint32_t>(weight.p) + (panel * pairs + pair) * columns + group +
                    (within < weight.lanes ? within : 0);
  }
  const float* const x = row_at(group);
  float all[kGates][kTiles][4] = {};
#pragma unroll 2
  for (int64_t k0 = warp * kDeep; k0 < weight.depth; k0 += kN * kDeep) {
    uint32_t state[kStateTerms][2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int64_t k = k0 + half * kDeep / 2 + pair * kRecurrentPair;
      const float x0 = x && k < weight.depth ? x[k] : 0;
      const float x1 = x && k + 1 < weight.depth ? x[k + 1] : 0;
      uint32_t terms[kStateTerms];
      split(x0, x1, terms);
#pragma unroll
      for (int i = 0; i < kStateTerms; i++) state[i][half] = terms[i];
    }
    const int64_t first = k0 / kRecurrentPair * columns;
    const int64_t second = first + kDeep / 2 / kRecurrentPair * columns;
#pragma unroll
    for (int g = 0; g < kGates; g++)
#pragma unroll
      for (int tile = 0; tile < kTiles; tile++) {
        const uint32_t* const at = weights[tile] + g * weight.lanes;
        const uint32_t read[4] = {at[first], at[first + 8], at[second], at[second + 8]};
        uint32_t a[kWeightTerms<W>][4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          uint32_t terms[kWeightTerms<W>];
          split_weights<W>(read[i], terms);
#pragma unroll
          for (int j = 0; j < kWeightTerms<W>; j++) a[j][i] = terms[j];
        }
        // the smallest products first; those below the last bit of the others are left out
#pragma unroll
        for (int order = kStateTerms - 1; order >= 0; order--)
#pragma unroll
          for (int j = 0; j < kWeightTerms<W>; j++)
            if (order >= j) device::mma_bf16(all[g][tile], a[j], state[order - j]);
      }
  }
#pragma unroll
  for (int g = 0; g < kGates; g++) {
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int row = 2 * pair + i % 2;
        const int unit = tile * kTileUnits + group + i / 2 * 8;
        partial[(warp * kRows + row) * kPitch + unit] = all[g][tile][i];
      }
    __syncthreads();
    sums[g] = 0;
    if (warp >= kRows) continue;
#pragma unroll
    for (int other = 0; other < kN; other++)
      sums[g] += partial[(other * kRows + warp) * kPitch + lane];
  }
}
// W: of the weights, T or halves.
template <class W, int kGates, class T, class RowAt>
__device__ __forceinline__ void multiply_by(T (&sums)[kGates], const Place& w, const Panels& weight,
                                            const RowAt& row_at) {
  if constexpr (__is_same(W, T)) multiply(sums, w, weight, row_at);
  else multiply_halves<kGates, W>(sums, w, weight, row_at);
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
  const T* const gates = values<T>(p.gates) + w.row() * 4 * p.hidden + w.unit;
#pragma unroll
  for (int g = 0; g < 4; g++) {
    x[g] += gates[g * p.hidden];
    x[g] = g == 2 ? math::tanh(x[g]) : math::sigmoid(x[g]);
  }
  const int64_t at = w.row() * p.hidden + w.unit;
  const T c = x[1] * row_before<T>(p.c, w.row(), p.hidden)[w.unit] + x[0] * x[2];
  values<T>(p.cells)[at] = c;
  values<T>(p.projects ? p.middle : p.output)[at] = x[3] * math::tanh(c);
  T* const saved = values<T>(p.saved) + w.row() * 4 * p.hidden + w.unit;
#pragma unroll
  for (int g = 0; g < 4; g++) saved[g * p.hidden] = x[g];
}
template <class T>
__device__ __forceinline__ void gru_unit(const RecurrentPlan& p, const Place& w, T (&x)[3]) {
  const T* const gates = values<T>(p.gates) + w.row() * 3 * p.hidden + w.unit;
  if (p.bias) {
    const T* const bias = values<T>(p.bias) + w.unit;
#pragma unroll
    for (int g = 0; g < 3; g++) x[g] += bias[g * p.hidden];
  }
  const T r = math::sigmoid(x[0] + gates[0]);
  const T z = math::sigmoid(x[1] + gates[p.hidden]);
  const T n = math::tanh(gates[2 * p.hidden] + r * x[2]);
  const T before = row_before<T>(p.h, w.row(), p.hidden)[w.unit];
  values<T>(p.output)[w.row() * p.hidden + w.unit] = (T(1) - z) * n + z * before;
  T* const saved = values<T>(p.saved) + w.row() * 4 * p.hidden + w.unit;
  saved[0] = r;
  saved[p.hidden] = z;
  saved[2 * p.hidden] = n;
  saved[3 * p.hidden] = x[2];
}
template <class T>
__device__ __forceinline__ void rnn_unit(const RecurrentPlan& p, const Place& w, T (&x)[1]) {
  const int64_t at = w.row() * p.hidden + w.unit;
  const T sum = x[0] + values<T>(p.gates)[at];
  const T if_relu = sum < 0 ? T(0) : sum;
  values<T>(p.output)[at] = p.mode == kRnnTanh ? math::tanh(sum) : if_relu;
}

template <class T, class W, int kGates> __global__ void __launch_bounds__(kUnits* kWarps<kGates>, 1)
    forward_step(const __grid_constant__ RecurrentPlan p) {
  device::wait_for_previous();
  const Place w(p.hidden);
  T x[kGates];
  multiply_by<W>(x, w, {p.weight, p.state, kForwardLanes<kGates>}, [&](int i) -> const T* {
    const int64_t row = w.first_row + i;
    return row < p.rows ? row_before<T>(p.h, row, p.state) : nullptr;
  });
  if (!w.is_inside(p.rows)) return;
  if constexpr (kGates == 4) lstm_unit(p, w, x);
  else if constexpr (kGates == 3) gru_unit(p, w, x);
  else rnn_unit(p, w, x);
}
// h = o tanh(c) times w_hr^T.
template <class T, class W> __global__ void __launch_bounds__(kUnits* kWarps<1>)
    project(const __grid_constant__ RecurrentPlan p) {
  device::wait_for_previous();
  const Place w(p.state);
  T sum[1];
  multiply_by<W>(sum, w, {p.projection, p.hidden, kRecurrentProjectedLanes},
                 [&](int i) -> const T* {
                   const int64_t row = w.first_row + i;
                   return row < p.rows ? values<T>(p.middle) + row * p.hidden : nullptr;
                 });
  if (w.is_inside(p.rows)) values<T>(p.output)[w.row() * p.state + w.unit] = sum[0];
}

// ---- backward ----

template <class T>
__device__ __forceinline__ void lstm_gradient(const RecurrentPlan& p, const Place& w, T dh) {
  const int64_t at = w.row() * p.hidden + w.unit;
  const int64_t gates = w.row() * 4 * p.hidden + w.unit;
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
  out[p.hidden] = dc * row_before<T>(p.c, w.row(), p.hidden)[w.unit] * (f * (T(1) - f));
  out[2 * p.hidden] = dc * i * (T(1) - g * g);
  out[3 * p.hidden] = dh * t * (o * (T(1) - o));
  *carry = dc * f;
}
template <class T>
__device__ __forceinline__ void gru_gradient(const RecurrentPlan& p, const Place& w, T dh) {
  const T* const saved = values<T>(p.saved) + w.row() * 4 * p.hidden + w.unit;
  const T r = saved[0];
  const T z = saved[p.hidden];
  const T n = saved[2 * p.hidden];
  const T h_n = saved[3 * p.hidden];
  T* const carry = values<T>(p.carry) + w.row() * p.hidden + w.unit;
  const T d = dh + *carry;
  const T of_n = d * (T(1) - z) * (T(1) - n * n);
  const T of_z = d * (row_before<T>(p.h, w.row(), p.hidden)[w.unit] - n) * (z * (T(1) - z));
  const T of_r = of_n * h_n * (r * (T(1) - r));
  T* const dx = values<T>(p.dgates) + w.row() * 3 * p.hidden + w.unit;
  T* const of_products = values<T>(p.dhidden) + w.row() * 3 * p.hidden + w.unit;
  dx[0] = of_products[0] = of_r;
  dx[p.hidden] = of_products[p.hidden] = of_z;
  dx[2 * p.hidden] = of_n;
  of_products[2 * p.hidden] = of_n * r;
  *carry = d * z;
}
template <class T>
__device__ __forceinline__ void rnn_gradient(const RecurrentPlan& p, const Place& w, T dh) {
  const int64_t at = w.row() * p.hidden + w.unit;
  const T h = values<T>(p.output_read)[at];
  const T if_relu = h <= 0 ? T(0) : dh;
  values<T>(p.dgates)[at] = p.mode == kRnnTanh ? dh * (T(1) - h * h) : if_relu;
}

// dh, then the gradients of the gates or, with a projection, dh itself.
template <class T, class W> __global__ void __launch_bounds__(kUnits* kWarps<1>)
    backward_step(const __grid_constant__ RecurrentPlan p) {
  device::wait_for_previous();
  const Place w(p.state);
  int64_t gates = 1;
  if (p.mode == kLstm) gates = kLstmGates;
  if (p.mode == kGru) gates = kGruGates;
  const int64_t depth = gates * p.hidden;
  T dh[1];
  multiply_by<W>(dh, w, {p.weight, depth, kRecurrentBackwardLanes}, [&](int i) -> const T* {
    const int64_t row = w.first_row + i;
    return row < p.later_rows ? values<T>(p.later) + row * depth : nullptr;
  });
  if (!w.is_inside(p.rows)) return;
  const int64_t at = w.row() * p.state + w.unit;
  if (p.grad) dh[0] += values<T>(p.grad)[at];
  if (p.projects) values<T>(p.dhidden)[at] = dh[0];
  else if (p.mode == kLstm) lstm_gradient(p, w, dh[0]);
  else if (p.mode == kGru) gru_gradient(p, w, dh[0]);
  else rnn_gradient(p, w, dh[0]);
}
// The gradient of o tanh(c), which is that of the output times w_hr, then those of the gates.
template <class T, class W> __global__ void __launch_bounds__(kUnits* kWarps<1>)
    unproject(const __grid_constant__ RecurrentPlan p) {
  device::wait_for_previous();
  const Place w(p.hidden);
  T dh[1];
  multiply_by<W>(dh, w, {p.projection, p.state, kRecurrentBackwardLanes}, [&](int i) -> const T* {
    const int64_t row = w.first_row + i;
    return row < p.rows ? values<T>(p.dhidden) + row * p.state : nullptr;
  });
  if (w.is_inside(p.rows)) lstm_gradient(p, w, dh[0]);
}

int32_t launch_units(void (*kernel)(RecurrentPlan), int warps, const RecurrentPlan& p,
                     int64_t units, void* stream) {
  if (p.rows * units == 0) return TT_OK;
  const int64_t blocks = ceil_div(p.rows, kRows) * ceil_div(units, kUnits);
  return device::launch_early(kernel, unsigned(blocks), dim3(kUnits, unsigned(warps)), stream, p);
}

template <class T, class W, int kGates>
int32_t launch_forward(const RecurrentPlan& p, void* stream) {
  return launch_units(forward_step<T, W, kGates>, kWarps<kGates>, p, p.hidden, stream);
}
template <class T, class W> int32_t run_forward(const RecurrentPlan& p, void* stream) {
  int32_t status;
  if (p.mode == kLstm) status = launch_forward<T, W, 4>(p, stream);
  else if (p.mode == kGru) status = launch_forward<T, W, 3>(p, stream);
  else status = launch_forward<T, W, 1>(p, stream);
  if (status != TT_OK || !p.projects) return status;
  return launch_units(project<T, W>, kWarps<1>, p, p.state, stream);
}
template <class T, class W> int32_t run_backward(const RecurrentPlan& p, void* stream) {
  const int32_t status = launch_units(backward_step<T, W>, kWarps<1>, p, p.state, stream);
  if (status != TT_OK || !p.projects) return status;
  return launch_units(unproject<T, W>, kWarps<1>, p, p.hidden, stream);
}

}  // namespace

namespace cuda {

int32_t recurrent_step(const void* plan, void* stream, void*) {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  if (p.dtype == TT_F64) return run_forward<double, double>(p, stream);
  if (p.weight_dtype == TT_BF16) return run_forward<float, BF16>(p, stream);
  if (p.weight_dtype == TT_F16) return run_forward<float, F16>(p, stream);
  return run_forward<float, float>(p, stream);
}
int32_t recurrent_step_backward(const void* plan, void* stream, void*) {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  if (p.dtype == TT_F64) return run_backward<double, double>(p, stream);
  if (p.weight_dtype == TT_BF16) return run_backward<float, BF16>(p, stream);
  if (p.weight_dtype == TT_F16) return run_backward<float, F16>(p, stream);
  return run_backward<float, float>(p, stream);
}

}  // namespace cuda
}  // namespace TT_NS
