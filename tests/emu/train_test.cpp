// Optimizers over more tensors than one launch holds, clipping, CTC and products of bytes on the
// device's kernels.
#include "kernel_test.h"

#include "plan/loss_build.h"
#include "plan/optim_plan.h"
#include "plan/quant_plan.h"

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

}  // namespace

int main() {
  test_ctc();
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
