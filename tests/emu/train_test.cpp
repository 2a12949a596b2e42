// Optimizers over more tensors than one launch holds, clipping, CTC, products of bytes and steps of
// recurrent layers on the device's kernels.
#include "kernel_test.h"

#include "plan/loss_build.h"
#include "plan/optim_plan.h"
#include "plan/quant_plan.h"
#include "plan/recurrent_plan.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

// ---- optimizers ----

std::vector<double> copy_of(Floats& x) {
  std::vector<double> v;
  for (int64_t i = 0; i < x.size(); i++) v.push_back(x[i]);
  return v;
}

// Momentum over 500 tensors: small ones, empty ones, one of several units.
void test_sgd(int32_t dtype) {
  std::vector<Floats> params, grads, buffers;
  std::vector<OptimItem> items;
  int64_t units = 0;
  for (int64_t k = 0; k < 500; k++) {
    const int64_t n = k == 250 ? kOptimUnit + 5 : k % 4;
    params.emplace_back(dtype, n).fill(uint32_t(k + 1), -1, 1);
    grads.emplace_back(dtype, n).fill(uint32_t(k + 2), -1, 1);
    buffers.emplace_back(dtype, n).fill(uint32_t(k + 3), -1, 1);
    OptimItem item = {};
    item.n = n;
    item.first_unit = units;
    item.dtype = dtype;
    item.factors.sgd = {0.5, 0.25, 1, 0.125};
    units += optim_units(n);
    items.push_back(item);
  }
  std::vector<std::vector<double>> want_param, want_buffer;
  for (size_t k = 0; k < items.size(); k++) {
    items[k].param = params[k].data();
    items[k].grad = grads[k].data();
    items[k].state[0] = buffers[k].data();
    want_param.push_back(copy_of(params[k]));
    want_buffer.push_back(copy_of(buffers[k]));
    for (int64_t i = 0; i < items[k].n; i++) {
      double& p = want_param[k][size_t(i)];
      double& b = want_buffer[k][size_t(i)];
      b = 0.25 * b + grads[k][i] + 0.125 * p;
      p -= 0.5 * b;
    }
  }
  OptimPlan p = {};
  p.rule = kOptimSgd;
  p.n_items = int64_t(items.size());
  p.items = items.data();
  run("sgd", cuda::optim_step, nullptr, &p);
  for (size_t k = 0; k < items.size(); k++) {
    expect("a parameter", params[k], want_param[k], 2, 1);
    expect("its momentum", buffers[k], want_buffer[k], 2, 1);
  }
}

// ---- clipping ----

void test_clip(double norm_type) {
  const int64_t sizes[] = {3, EMU_TSAN ? 0 : kOptimUnit + 100, 0, EMU_TSAN ? 0 : 37};
  const int32_t dtypes[] = {TT_F32, TT_F32, TT_BF16, TT_F64};
  std::vector<Floats> grads;
  std::vector<ClipItem> items;
  std::vector<std::vector<double>> before;
  int64_t units = 0;
  long double sum = 0;
  for (size_t k = 0; k < 4; k++) {
    grads.emplace_back(dtypes[k], sizes[k]).fill(uint32_t(k + 1), -1, 1);
    before.push_back(copy_of(grads[k]));
    for (double v : before[k]) {
      const long double size = fabsl(v);
      sum = isinf(norm_type) ? fmaxl(sum, size) : sum + powl(size, norm_type);
    }
    units += optim_units(sizes[k]);
  }
  int64_t first = 0;
  for (size_t k = 0; k < 4; k++) {
    items.push_back({grads[k].data(), sizes[k], first, dtypes[k], 0});
    first += optim_units(sizes[k]);
  }
  const double norm = double(isinf(norm_type) ? sum : powl(sum, 1 / norm_type));
  Floats total(TT_F64, 1);
  ClipPlan p = {};
  p.total_dtype = TT_F64;
  p.n_items = 4;
  p.items = items.data();
  p.norm_type = norm_type;
  p.max_norm = norm / 2;
  p.n_partial = units;
  p.total = total.data();
  run_in_orders("clip_norm", cuda::clip_norm, cuda::clip_norm_workspace, &p, {&total});
  expect("the norm", total, {norm}, 8);
  if (kOnlyShared) return;
  run("clip_scale", cuda::clip_scale, nullptr, &p);
  for (size_t k = 0; k < 4; k++) {
    for (double& v : before[k]) v *= p.max_norm / (norm + 1e-6);
    expect("a clipped gradient", grads[k], before[k], 4);
  }
  Floats found(TT_F32, 1);
  p.total_dtype = TT_F32;
  p.total = found.data();
  p.max_norm = 2;
  run("clip_unscale", cuda::clip_unscale, cuda::clip_unscale_workspace, &p);
  expect("finite gradients", found, {0}, 0);
  grads[1].set(7, NAN);
  run("clip_unscale", cuda::clip_unscale, cuda::clip_unscale_workspace, &p);
  expect("a gradient of nan", found, {1}, 0);
}

// ---- CTC: against the sum over all alignments ----

void test_ctc() {
  constexpr int64_t kTime = 5, kClasses = 3;
  const int64_t targets[] = {1, 1}, offsets[] = {0}, times[] = {kTime}, lengths[] = {2};
  Floats x(TT_F64, kTime * kClasses), loss(TT_F64, 1), dx(TT_F64, kTime * kClasses);
  Floats scale(TT_F64, 1);
  std::vector<double> alpha(size_t(kTime * 5)), want(size_t(kTime * kClasses));
  x.fill(1, -2, -0.5);
  scale.set(0, 0.75);
  double all = 0;
  for (int64_t path = 0; path < 243; path++) {  // 3^5 alignments
    int64_t rest = path, last = 0, labels = 0;
    double p = 1;
    bool fits = true;
    int64_t at[kTime];
    for (int64_t t = 0; t < kTime; t++, rest /= 3) {
      at[t] = rest % 3;
      p *= exp(x[t * kClasses + at[t]]);
      if (at[t] == 2) fits = false;
      labels += at[t] == 1 && last != 1;
      last = at[t];
    }
    if (!fits || labels != 2) continue;
    all += p;
    for (int64_t t = 0; t < kTime; t++) want[size_t(t * kClasses + at[t])] += p;
  }
  for (int64_t i = 0; i < kTime * kClasses; i++)
    want[size_t(i)] = (exp(x[i]) - want[size_t(i)] / all) * 0.75;
  CtcPlan p;
  build_ctc(&p, TT_F64, kTime, 1, kClasses, 2, 0, false);
  p.x = x.data();
  p.n_targets = 2;
  p.targets = targets;
  p.offsets = offsets;
  p.input_lengths = times;
  p.target_lengths = lengths;
  p.log_alpha = alpha.data();
  p.loss = loss.data();
  p.scale = scale.data();
  p.dx = dx.data();
  run_in_orders("ctc_loss", cuda::ctc_loss, nullptr, &p, {&loss});
  expect("ctc_loss", loss, {-log(all)}, 8);
  run_in_orders("ctc_loss_backward", cuda::ctc_loss_backward, cuda::ctc_loss_backward_workspace, &p,
                {&dx});
  expect("ctc_loss_backward", dx, want, 64, 1);
}

// ---- products of bytes ----

void test_int8(int64_t m, int64_t n, int64_t k, bool is_unsigned) {
  std::vector<int8_t> a(size_t(m * k)), b(size_t(k * n));
  std::vector<int32_t> zero(size_t(m), 3), out(size_t(m * n)), want(size_t(m * n));
  Numbers numbers;
  for (int8_t& v : a) v = int8_t(numbers.whole(-128, 127));
  for (int8_t& v : b) v = int8_t(numbers.whole(-128, 127));
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t l = 0; l < k; l++) {
        const int8_t x = a[size_t(i * k + l)];
        const int32_t wide = is_unsigned ? int32_t(uint8_t(x)) : x;
        want[size_t(i * n + j)] += (wide - 3) * b[size_t(l * n + j)];
      }
  Int8Plan p = {};
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = reinterpret_cast<const char*>(a.data());
  p.b = reinterpret_cast<const char*>(b.data());
  p.a_row = k;
  p.a_k = 1;
  p.b_k = n;
  p.b_col = 1;
  p.a_unsigned = is_unsigned;
  p.a_zero = zero.data();
  p.a_zero_step = 1;
  p.out = reinterpret_cast<char*>(out.data());
  in_orders("int8_matmul", out, [&] { run("int8_matmul", cuda::int8_matmul, nullptr, &p); });
  check(out == want, "int8_matmul", int(k));
}

// ---- recurrent layers ----

struct RecurrentCase {
  int32_t mode;
  int64_t rows, old_rows;  // of this step and of the one before it, in either direction
  int64_t hidden, state;
};

// The arrays of one step; weights as matrices, and as the panels of either direction, which are
// halves or of the dtype of all.
struct RecurrentArrays {
  const RecurrentCase& c;
  int32_t dtype, weight_dtype;
  int64_t gates = recurrent_gates(c.mode);
  int64_t width = gates * c.hidden;
  bool projects = c.hidden != c.state;
  Floats w{weight_dtype, width*c.state}, w_hr{weight_dtype, c.state*c.hidden};
  Floats bias{dtype, width}, x{dtype, c.rows*width};
  Floats h_before{dtype, c.rows*c.state}, h_first{dtype, c.rows*c.state};
  Floats c_before{dtype, c.rows*c.hidden}, c_first{dtype, c.rows*c.hidden};

  RecurrentArrays(const RecurrentCase& of, int32_t t, int32_t of_weights)
      : c(of), dtype(t), weight_dtype(of_weights) {
    uint32_t seed = 1;
    for (Floats* a : {&w, &w_hr}) a->fill(seed++, -0.2, 0.2);
    for (Floats* a : {&bias, &x, &h_before, &h_first, &c_before, &c_first}) a->fill(seed++, -1, 1);
  }

  // [block][depth][columns] of a matrix whose element (k, j) is f(k, j), for `lanes` units j; of
  // halves [block][depth / 2][columns][2], with zeros up to whole units of depth.
  template <class F>
  Floats panels(int64_t depth, int64_t units, int64_t columns, int64_t lanes, const F& f) const {
    const int64_t blocks = (units + lanes - 1) / lanes;
    const int64_t pair = weight_dtype == dtype ? 1 : kRecurrentPair;
    const int64_t whole = pair == 1 ? depth : (depth + 15) / 16 * 16;
    Floats all(weight_dtype, blocks * whole * columns);
    for (int64_t i = 0; i < all.size(); i++) {
      const int64_t column = i / pair % columns;
      const int64_t unit = i / (whole * columns) * lanes + column % lanes;
      const int64_t k = i / (columns * pair) * pair % whole + i % pair;
      all.set(i, unit < units && k < depth ? f(k, column / lanes, unit) : 0);
    }
    return all;
  }
  double old_h(int64_t row, int64_t j) {
    return row < c.old_rows ? h_before[row * c.state + j] : h_first[row * c.state + j];
  }
  double old_c(int64_t row, int64_t j) {
    return row < c.old_rows ? c_before[row * c.hidden + j] : c_first[row * c.hidden + j];
  }
  RecurrentPlan plan() {
    RecurrentPlan p = {};
    p.dtype = dtype;
    p.weight_dtype = weight_dtype;
    p.mode = c.mode;
    p.projects = projects;
    p.rows = c.rows;
    p.hidden = c.hidden;
    p.state = c.state;
    p.h = {h_before.data(), h_first.data(), c.old_rows};
    p.c = {c_before.data(), c_first.data(), c.old_rows};
    return p;
  }
};

double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }

// Sums of `depth` products of numbers up to 1 and 0.2, and slopes up to 1.
void expect_sums(const char* what, Floats& got, const std::vector<double>& want, int64_t depth) {
  expect(what, got, want, 0.2 * double(depth) + 8, 1);
}

void test_recurrent_forward(const RecurrentCase& c, int32_t dtype, int32_t weight_dtype) {
  RecurrentArrays a(c, dtype, weight_dtype);
  const int64_t lanes = recurrent_lanes(c.mode);
  Floats weight = a.panels(c.state, c.hidden, lanes * a.gates, lanes,
                           [&](int64_t k, int64_t gate, int64_t unit) {
                             return a.w[(gate * c.hidden + unit) * c.state + k];
                           });
  constexpr int64_t kLanes = kRecurrentProjectedLanes;
  Floats projection =
      a.panels(c.hidden, c.state, kLanes, kLanes,
               [&](int64_t k, int64_t, int64_t j) { return a.w_hr[j * c.hidden + k]; });
  Floats middle(dtype, c.rows * c.hidden), output(dtype, c.rows * c.state);
  Floats cells(dtype, c.rows * c.hidden), saved(dtype, c.rows * c.hidden * 4);
  RecurrentPlan p = a.plan();
  p.weight = weight.data();
  p.projection = projection.data();
  if (c.mode == kGru) p.bias = a.bias.data();
  p.gates = a.x.data();
  p.middle = middle.data();
  p.output = output.data();
  p.cells = cells.data();
  p.saved = saved.data();
  run_in_orders("recurrent_step", cuda::recurrent_step, nullptr, &p, {&output});

  std::vector<double> want(output.size()), made(middle.size());
  for (int64_t i = 0; i < c.rows * c.hidden; i++) {
    const int64_t row = i / c.hidden;
    const int64_t unit = i % c.hidden;
    double h[4], x[4];
    for (int64_t g = 0; g < a.gates; g++) {
      const int64_t n = g * c.hidden + unit;
      x[g] = a.x[row * a.width + n];
      h[g] = c.mode == kGru ? a.bias[n] : 0;
      for (int64_t k = 0; k < c.state; k++) h[g] += a.old_h(row, k) * a.w[n * c.state + k];
    }
    double& out = made[size_t(i)];
    if (c.mode == kLstm) {
      const double cell = sigmoid_of(x[1] + h[1]) * a.old_c(row, unit) +
                          sigmoid_of(x[0] + h[0]) * tanh(x[2] + h[2]);
      out = sigmoid_of(x[3] + h[3]) * tanh(cell);
    } else if (c.mode == kGru) {
      const double z = sigmoid_of(x[1] + h[1]);
      const double n = tanh(x[2] + sigmoid_of(x[0] + h[0]) * h[2]);
      out = (1 - z) * n + z * a.old_h(row, unit);
    } else {
      out = c.mode == kRnnTanh ? tanh(x[0] + h[0]) : fmax(x[0] + h[0], 0);
    }
  }
  if (!a.projects) want = made;
  for (int64_t i = 0; a.projects && i < output.size(); i++) {
    for (int64_t k = 0; k < c.hidden; k++)
      want[size_t(i)] +=
          made[size_t(i / c.state * c.hidden + k)] * a.w_hr[i % c.state * c.hidden + k];
  }
  expect_sums("output of a recurrent step", output, want, c.state + c.hidden);
}

// What a step backward gets of the step after it, in place.
double carried(int64_t i) { return 0.3 * double(i % 7) - 1; }
int32_t backward_of_carried(const void* plan, void* stream, void* workspace) {
  const RecurrentPlan& p = *static_cast<const RecurrentPlan*>(plan);
  for (int64_t i = 0; i < p.rows * p.hidden; i++)
    store_element(p.carry + i * item_size(p.dtype), p.dtype, carried(i));
  return cuda::recurrent_step_backward(plan, stream, workspace);
}

// The gradients of the gates of one hidden unit, given that of its output, and what it carries.
struct UnitGradients {
  double gate[4], carry;
};
UnitGradients unit_gradients(int32_t mode, double d, double carry, const double (&saved)[4],
                             double cell, double output, double old_h, double old_c) {
  if (mode == kLstm) {
    const double i = saved[0], f = saved[1], g = saved[2], o = saved[3];
    const double t = tanh(cell);
    const double dc = carry + d * o * (1 - t * t);
    return {
        {dc * g * i * (1 - i), dc * old_c * f * (1 - f), dc * i * (1 - g * g), d * t * o * (1 - o)},
        dc * f};
  }
  if (mode == kGru) {
    const double r = saved[0], z = saved[1], n = saved[2], h_n = saved[3];
    const double all = d + carry;
    const double of_n = all * (1 - z) * (1 - n * n);
    return {{of_n * h_n * r * (1 - r), all * (old_h - n) * z * (1 - z), of_n, 0}, all * z};
  }
  if (mode == kRnnTanh) return {{d * (1 - output * output), 0, 0, 0}, 0};
  return {{output > 0 ? d : 0, 0, 0, 0}, 0};
}

void test_recurrent_backward(const RecurrentCase& c, int32_t dtype, int32_t weight_dtype) {
  RecurrentArrays a(c, dtype, weight_dtype);
  constexpr int64_t kLanes = kRecurrentBackwardLanes;
  Floats weight = a.panels(a.width, c.state, kLanes, kLanes,
                           [&](int64_t k, int64_t, int64_t j) { return a.w[k * c.state + j]; });
  Floats projection =
      a.panels(c.state, c.hidden, kLanes, kLanes,
               [&](int64_t k, int64_t, int64_t unit) { return a.w_hr[k * c.hidden + unit]; });
  const int64_t n = c.rows * c.hidden;
  Floats later(dtype, c.rows * a.width), grad(dtype, c.rows * c.state);
  Floats saved(dtype, n * 4), cells(dtype, n), output(dtype, n), carry(dtype, n);
  Floats dgates(dtype, c.rows * a.width);
  Floats dhidden(dtype, c.rows * (c.mode == kGru ? a.width : c.state));
  uint32_t seed = 11;
  for (Floats* x : {&later, &grad, &cells, &output}) x->fill(seed++, -1, 1);
  saved.fill(seed, 0, 1);
  RecurrentPlan p = a.plan();
  p.weight = weight.data();
  p.projection = projection.data();
  p.later = later.data();
  p.later_rows = c.old_rows;
  p.grad = grad.data();
  p.output_read = output.data();
  p.cells = cells.data();
  p.saved = saved.data();
  p.dgates = dgates.data();
  p.dhidden = dhidden.data();
  p.carry = carry.data();
  run_in_orders("recurrent_step_backward", backward_of_carried, nullptr, &p, {&dgates});

  std::vector<double> dh(grad.size());
  for (int64_t i = 0; i < grad.size(); i++) {
    const int64_t row = i / c.state;
    dh[size_t(i)] = grad[i];
    for (int64_t k = 0; row < c.old_rows && k < a.width; k++)
      dh[size_t(i)] += later[row * a.width + k] * a.w[k * c.state + i % c.state];
  }
  std::vector<double> want(dgates.size()), want_carry(n);
  for (int64_t i = 0; i < n; i++) {
    const int64_t row = i / c.hidden;
    const int64_t unit = i % c.hidden;
    double d = 0;
    for (int64_t k = 0; a.projects && k < c.state; k++)
      d += dh[size_t(row * c.state + k)] * a.w_hr[k * c.hidden + unit];
    if (!a.projects) d = dh[size_t(i)];
    double kept[4];
    for (int64_t g = 0; g < 4; g++) kept[g] = saved[(row * 4 + g) * c.hidden + unit];
    const UnitGradients of = unit_gradients(c.mode, d, carried(i), kept, cells[i], output[i],
                                            a.old_h(row, unit % c.state), a.old_c(row, unit));
    for (int64_t g = 0; g < a.gates; g++)
      want[size_t(row * a.width + g * c.hidden + unit)] = of.gate[g];
    want_carry[size_t(i)] = of.carry;
  }
  // a projection multiplies the errors of dh
  const int64_t depth = a.projects ? a.width * c.state : a.width;
  expect_sums("gradients of the gates", dgates, want, depth);
  if (recurrent_saved(c.mode)) expect_sums("what is carried", carry, want_carry, depth);
}

void test_recurrent() {
  constexpr RecurrentCase kCases[] = {
      {kLstm, 5, 3, 20, 20},     //
      {kLstm, 9, 9, 12, 290},    // warps take several chunks of the state,
      {kLstm, 3, 2, 140, 20},    // of the gates' gradients
      {kGru, 1, 0, 33, 33},      //
      {kGru, 9, 8, 40, 40},      //
      {kRnnTanh, 9, 8, 31, 31},  //
      {kRnnRelu, 8, 8, 32, 32},
  };
  for (const RecurrentCase& c : kCases) {
    for (int32_t weights : {TT_F32, TT_F64, TT_BF16, TT_F16}) {
      const int32_t dtype = weights == TT_F64 ? TT_F64 : TT_F32;
      if (EMU_TSAN && (c.rows * c.state > 100 || weights == TT_F64)) continue;
      test_recurrent_forward(c, dtype, weights);
      test_recurrent_backward(c, dtype, weights);
    }
  }
}

}  // namespace

int main() {
  test_ctc();
  test_recurrent();
  test_int8(5, 33, 40, false);
  if (!EMU_TSAN) {
    test_int8(70, 50, 130, true);
    for (int32_t dtype : kDtypes) test_sgd(dtype);
  }
  for (double norm_type : {2.0, 1.0, 3.0, double(INFINITY)}) {
    if (EMU_TSAN && norm_type != 2) continue;
    test_clip(norm_type);
  }
  return finished();
}
