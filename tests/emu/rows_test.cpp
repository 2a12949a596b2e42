// Softmax, losses and norms on the device's kernels: rows of a warp, of a block and longer than
// shared memory, columns, rows that are not aligned; float32, bfloat16 and float64.
#include "kernel_test.h"

#include "kernels/functors/philox.h"
#include "plan/loss_build.h"
#include "plan/norm_build.h"
#include "plan/random_build.h"
#include "plan/softmax_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

using Sum = long double;  // of expected values

struct Shape {
  int64_t outer, dim, inner, offset;
};
constexpr Shape kShapes[] = {
    {3, 64, 1, 0},     // a warp for each row
    {3, 37, 1, 1},     // not aligned
    {8, 768, 1, 0},    // kept rows of two arrays have 48 kB
    {1, 1104, 1, 0},   // a block for each row
    {2, 3000, 1, 0},   // a block for each row
    {1, 30011, 1, 0},  // not kept in shared memory, not aligned
    {1, 1, 1, 0},      //
    {2, 50, 3, 0},     // columns
    {1, 7, 70, 0},     // several tiles of them
};

int64_t count(const Shape& s) { return s.outer * s.dim * s.inner; }
// Calls f(row, at): at(i) is the place of element i.
template <class F> void each_row(const Shape& s, const F& f) {
  for (int64_t r = 0; r < s.outer * s.inner; r++)
    f(r, [&](int64_t i) { return (r / s.inner * s.dim + i) * s.inner + r % s.inner; });
}

// ---- softmax ----

void test_softmax(const Shape& s, int32_t dtype) {
  const int64_t n = count(s);
  Floats x(dtype, n, s.offset), y(dtype, n, s.offset), log_y(dtype, n, s.offset);
  Floats g(dtype, n, s.offset), dx(dtype, n, s.offset), log_dx(dtype, n, s.offset);
  x.fill(1, -6, 6);
  g.fill(2, -1, 1);
  if (n > 40) x.set(40, -INFINITY);
  SoftmaxPlan p;
  build_softmax(&p, dtype, s.outer, s.dim, s.inner);
  p.a = x.data();
  p.b = nullptr;
  p.out = y.data();
  run_in_orders("softmax", cuda::softmax, nullptr, &p, {&y});
  p.out = log_y.data();
  run_in_orders("log_softmax", cuda::log_softmax, nullptr, &p, {&log_y});
  p.a = g.data();
  p.b = y.data();
  p.out = dx.data();
  run_in_orders("softmax_backward", cuda::softmax_backward, nullptr, &p, {&dx});
  p.b = log_y.data();
  p.out = log_dx.data();
  run_in_orders("log_softmax_backward", cuda::log_softmax_backward, nullptr, &p, {&log_dx});

  std::vector<double> want(n), want_log(n), want_dx(n), want_log_dx(n);
  each_row(s, [&](int64_t, auto at) {
    double top = -INFINITY;
    Sum sum = 0, gy = 0, all_g = 0;
    for (int64_t i = 0; i < s.dim; i++) top = fmax(top, x[at(i)]);
    for (int64_t i = 0; i < s.dim; i++) sum += expl(x[at(i)] - top);
    for (int64_t i = 0; i < s.dim; i++) {
      gy += g[at(i)] * y[at(i)];
      all_g += g[at(i)];
    }
    for (int64_t i = 0; i < s.dim; i++) {
      const size_t k = size_t(at(i));
      want[k] = double(expl(x[at(i)] - top) / sum);
      want_log[k] = double(x[at(i)] - top - logl(sum));
      want_dx[k] = double(y[at(i)] * (g[at(i)] - gy));
      want_log_dx[k] = double(g[at(i)] - exp(log_y[at(i)]) * all_g);
    }
  });
  expect("softmax", y, want, 16);
  expect("log_softmax", log_y, want_log, 4, 1);
  expect("softmax_backward", dx, want_dx, 16, 1.0 / double(s.dim));
  expect("log_softmax_backward", log_dx, want_log_dx, 16, 1);
}

// ---- losses ----

void test_losses(const Shape& s, int32_t dtype) {
  const int64_t n = count(s);
  const int64_t rows = s.outer * s.inner;
  const int32_t stat = dtype == TT_F64 ? TT_F64 : TT_F32;
  Floats x(dtype, n, s.offset), dx(dtype, n, s.offset), weight(TT_F32, s.dim);
  Floats loss(stat, rows), row_weight(stat, rows), lse(stat, rows), scale(stat, rows);
  x.fill(1, -6, 6);
  weight.fill(2, 0.5, 1.5);
  scale.fill(3, -1, 1);
  std::vector<int64_t> target(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; r++) target[size_t(r)] = r % 5 == 4 ? -100 : r * 7 % s.dim;
  ClassLossPlan p;
  build_class_loss(&p, dtype, TT_I64, TT_F32, stat, s.outer, s.dim, s.inner, -100);
  p.x = x.data();
  p.target = reinterpret_cast<const char*>(target.data());
  p.weight = weight.data();
  p.loss = loss.data();
  p.row_weight = row_weight.data();
  p.lse = lse.data();
  p.scale = scale.data();
  p.dx = dx.data();
  run_in_orders("cross_entropy", cuda::cross_entropy, nullptr, &p, {&loss, &row_weight, &lse});
  run_in_orders("cross_entropy_backward", cuda::cross_entropy_backward, nullptr, &p, {&dx});
  std::vector<double> want(rows), want_nll(rows), want_weight(rows), want_lse(rows);
  std::vector<double> want_dx(n), want_nll_dx(n);
  each_row(s, [&](int64_t r, auto at) {
    const int64_t t = target[size_t(r)];
    Sum sum = 0;
    for (int64_t i = 0; i < s.dim; i++) sum += expl(x[at(i)]);
    const double w = t < 0 ? 0 : weight[t];
    want_weight[size_t(r)] = w;
    const Sum log_sum = logl(sum);
    want_lse[size_t(r)] = double(log_sum);
    want[size_t(r)] = t < 0 ? 0 : double((log_sum - x[at(t)]) * w);
    want_nll[size_t(r)] = t < 0 ? 0 : -x[at(t)] * w;
    for (int64_t i = 0; i < s.dim; i++) {
      const double factor = t < 0 ? 0 : scale[r] * w;
      want_dx[size_t(at(i))] = double((expl(x[at(i)]) / sum - (i == t)) * factor);
      want_nll_dx[size_t(at(i))] = i == t ? -factor : 0;
    }
  });
  expect("cross_entropy", loss, want, 8, 1);
  expect("its weights", row_weight, want_weight, 0);
  expect("its lse", lse, want_lse, 8, 1);
  expect("cross_entropy_backward", dx, want_dx, 16, 1);
  if (kOnlyShared) return;
  run_in_orders("nll_loss", cuda::nll_loss, nullptr, &p, {&loss, &row_weight});
  run_in_orders("nll_loss_backward", cuda::nll_loss_backward, nullptr, &p, {&dx});
  expect("nll_loss", loss, want_nll, 4);
  expect("nll_loss_backward", dx, want_nll_dx, 4);
}

// ---- norms ----

// centred: else it is rms_norm.
void test_layer_norm(const Shape& s, int32_t dtype, bool centred = true) {
  const int64_t n = count(s);
  const int32_t stat = dtype == TT_F64 ? TT_F64 : TT_F32;
  Floats x(dtype, n, s.offset), y(dtype, n, s.offset), g(dtype, n, s.offset);
  Floats dx(dtype, n, s.offset), weight(TT_F32, s.dim), bias(TT_F32, s.dim);
  Floats mean(stat, s.outer), rstd(stat, s.outer), dw(TT_F32, s.dim), db(TT_F32, s.dim);
  x.fill(1, 1, 5);
  g.fill(2, -1, 1);
  weight.fill(3, 0.5, 1.5);
  bias.fill(4, -1, 1);
  LayerNormPlan p;
  build_layer_norm(&p, dtype, TT_F32, stat, s.outer, s.dim, 1e-5);
  p.x = x.data();
  p.y = y.data();
  p.weight = weight.data();
  p.bias = bias.data();
  p.mean = centred ? mean.data() : nullptr;
  p.rstd = rstd.data();
  run_in_orders("layer_norm", cuda::layer_norm, nullptr, &p, {&y, &mean, &rstd});
  LayerNormBackwardPlan b;
  build_layer_norm_backward(&b, dtype, TT_F32, stat, s.outer, s.dim, true);
  b.x = x.data();
  b.g = g.data();
  b.dx = dx.data();
  b.mean = p.mean;
  b.rstd = rstd.data();
  b.weight = weight.data();
  b.dweight = dw.data();
  b.dbias = db.data();
  run_in_orders("layer_norm_backward", cuda::layer_norm_backward,
                cuda::layer_norm_backward_workspace, &b, {&dx, &dw, &db});
  std::vector<double> want(n), want_dx(n), want_mean(s.outer), want_rstd(s.outer);
  std::vector<double> want_dw(s.dim), want_db(s.dim);
  each_row(s, [&](int64_t r, auto at) {
    Sum m = 0, v = 0, u = 0, uh = 0;
    for (int64_t i = 0; i < s.dim && centred; i++) m += x[at(i)] / Sum(s.dim);
    for (int64_t i = 0; i < s.dim; i++) v += (x[at(i)] - m) * (x[at(i)] - m) / Sum(s.dim);
    const Sum scale = 1 / sqrtl(v + 1e-5);
    want_mean[size_t(r)] = double(m);
    want_rstd[size_t(r)] = double(scale);
    for (int64_t i = 0; i < s.dim; i++) {
      const Sum h = (x[at(i)] - m) * scale;
      want[size_t(at(i))] = double(h * weight[i] + bias[i]);
      if (centred) u += g[at(i)] * weight[i] / Sum(s.dim);
      uh += g[at(i)] * weight[i] * h / Sum(s.dim);
      want_dw[size_t(i)] += double(g[at(i)] * h);
      want_db[size_t(i)] += g[at(i)];
    }
    for (int64_t i = 0; i < s.dim; i++)
      want_dx[size_t(at(i))] =
          double(scale * (g[at(i)] * weight[i] - u - (x[at(i)] - m) * scale * uh));
  });
  if (s.dim == 1) return;  // all is rounding
  expect("layer_norm", y, want, 8, 1);
  if (centred) expect("its mean", mean, want_mean, 4);
  expect("its rstd", rstd, want_rstd, 16);
  expect("layer_norm_backward", dx, want_dx, 16, 1);
  expect("its dweight", dw, want_dw, 16, double(s.outer));
  expect("its dbias", db, want_db, 16, double(s.outer));
}

struct GroupShape {
  int64_t images, groups, channels, inner;  // channels: of a group
};
constexpr GroupShape kGroups[] = {
    {2, 3, 4, 40},    // sums of chunks; packs within a channel
    {3, 2, 5, 9},     // not aligned
    {2, 4, 8, 1},     // channels of one element
    {1, 1, 3, 7001},  // one row
    {70, 4, 2, 6},    // many rows
};

void test_group_norm(const GroupShape& s, int32_t dtype) {
  const int64_t rows = s.images * s.groups;
  const int64_t size = s.channels * s.inner;
  const int64_t channels = s.groups * s.channels;
  const int64_t n = rows * size;
  const int32_t stat = dtype == TT_F64 ? TT_F64 : TT_F32;
  Floats x(dtype, n), y(dtype, n), g(dtype, n), dx(dtype, n);
  Floats weight(TT_F32, channels), bias(TT_F32, channels), dw(TT_F32, channels);
  Floats db(TT_F32, channels), mean(stat, rows), rstd(stat, rows);
  x.fill(1, 1, 5);
  g.fill(2, -1, 1);
  weight.fill(3, 0.5, 1.5);
  bias.fill(4, -1, 1);
  LayerNormPlan p;
  build_layer_norm(&p, dtype, TT_F32, stat, rows, size, 1e-5);
  p.groups = s.groups;
  p.inner = s.inner;
  p.x = x.data();
  p.y = y.data();
  p.weight = weight.data();
  p.bias = bias.data();
  p.mean = mean.data();
  p.rstd = rstd.data();
  run_in_orders("group_norm", cuda::layer_norm, cuda::layer_norm_workspace, &p, {&y, &mean, &rstd});
  GroupNormBackwardPlan b;
  build_group_norm_backward(&b, dtype, TT_F32, rows, s.groups, s.channels, s.inner, true, true);
  b.x = x.data();
  b.g = g.data();
  b.dx = dx.data();
  b.mean = mean.data();
  b.rstd = rstd.data();
  b.weight = weight.data();
  b.dweight = dw.data();
  b.dbias = db.data();
  run_in_orders("group_norm_backward", cuda::group_norm_backward,
                cuda::group_norm_backward_workspace, &b, {&dx, &dw, &db});
  std::vector<double> want(n), want_dx(n), want_dw(channels), want_db(channels);
  for (int64_t r = 0; r < rows; r++) {
    const auto channel = [&](int64_t i) { return size_t(r % s.groups * s.channels + i / s.inner); };
    const int64_t first = r * size;
    Sum m = 0, v = 0, u = 0, uh = 0;
    for (int64_t i = 0; i < size; i++) m += x[first + i] / Sum(size);
    for (int64_t i = 0; i < size; i++) v += (x[first + i] - m) * (x[first + i] - m) / Sum(size);
    const Sum scale = 1 / sqrtl(v + 1e-5);
    for (int64_t i = 0; i < size; i++) {
      const Sum h = (x[first + i] - m) * scale;
      const double w = weight[int64_t(channel(i))];
      want[size_t(first + i)] = double(h * w + bias[int64_t(channel(i))]);
      u += g[first + i] * w / Sum(size);
      uh += g[first + i] * w * h / Sum(size);
      want_dw[channel(i)] += double(g[first + i] * h);
      want_db[channel(i)] += g[first + i];
    }
    for (int64_t i = 0; i < size; i++) {
      const Sum h = (x[first + i] - m) * scale;
      const double w = weight[int64_t(channel(i))];
      want_dx[size_t(first + i)] = double(scale * (g[first + i] * w - u - h * uh));
    }
  }
  expect("group_norm", y, want, 8, 1);
  expect("group_norm_backward", dx, want_dx, 16, 1);
  expect("its dweight", dw, want_dw, 16, double(s.images * s.inner));
  expect("its dbias", db, want_db, 16, double(s.images * s.inner));
}

struct ChannelShape {
  int64_t outer, channels, inner;
};
constexpr ChannelShape kChannels[] = {{4, 3, 64},   {3, 5, 49},    {16, 40, 1}, {130, 40, 1},
                                      {3000, 2, 1}, {2, 2, 20011}, {700, 8, 1}};

void test_batch_norm(const ChannelShape& s, int32_t dtype) {
  const int64_t n = s.outer * s.channels * s.inner;
  const int32_t stat = dtype == TT_F64 ? TT_F64 : TT_F32;
  const double m = double(s.outer * s.inner);
  Floats x(dtype, n), y(dtype, n), g(dtype, n), dx(dtype, n);
  Floats weight(TT_F32, s.channels), bias(TT_F32, s.channels);
  Floats stats(stat, 3 * s.channels), sums(stat, 2 * s.channels);
  x.fill(1, 1, 5);
  g.fill(2, -1, 1);
  weight.fill(3, 0.5, 1.5);
  bias.fill(4, -1, 1);
  const int64_t row = s.channels * item_size(stat);
  ChannelSumPlan p;
  build_channel_sums(&p, dtype, s.outer, s.channels, s.inner, 1e-5);
  p.x = x.data();
  p.out = stats.data();
  run_in_orders("channel_sums", cuda::channel_sums, cuda::channel_sums_workspace, &p, {&stats});
  p.g = g.data();
  p.mean = stats.data();
  p.rstd = stats.data() + row;
  p.out = sums.data();
  run_in_orders("channel_sums of a gradient", cuda::channel_sums, cuda::channel_sums_workspace, &p,
                {&sums});
  if (kOnlyShared) return;
  ChannelAffinePlan a;
  build_channel_affine(&a, dtype, TT_F32, s.outer, s.channels, s.inner);
  a.x = x.data();
  a.mean = stats.data();
  a.rstd = stats.data() + row;
  a.weight = weight.data();
  a.bias = bias.data();
  a.y = y.data();
  run_in_orders("channel_affine", cuda::channel_affine, nullptr, &a, {&y});
  a.g = g.data();
  a.sums = sums.data();
  a.y = dx.data();
  run_in_orders("channel_affine of a gradient", cuda::channel_affine, nullptr, &a, {&dx});

  std::vector<double> want_stats(size_t(3 * s.channels)), want_sums(size_t(2 * s.channels));
  std::vector<double> want(n), want_dx(n);
  for (int64_t c = 0; c < s.channels; c++) {
    const auto at = [&](int64_t q) {
      return (q / s.inner * s.channels + c) * s.inner + q % s.inner;
    };
    Sum mean = 0, variance = 0, of_g = 0, of_gh = 0;
    const int64_t count = s.outer * s.inner;
    for (int64_t q = 0; q < count; q++) mean += x[at(q)] / m;
    for (int64_t q = 0; q < count; q++) variance += (x[at(q)] - mean) * (x[at(q)] - mean) / m;
    const Sum rstd = 1 / sqrtl(variance + 1e-5);
    for (int64_t q = 0; q < count; q++) {
      of_g += g[at(q)];
      of_gh += g[at(q)] * (x[at(q)] - mean) * rstd;
    }
    want_stats[size_t(c)] = double(mean);
    want_stats[size_t(s.channels + c)] = double(rstd);
    want_stats[size_t(2 * s.channels + c)] = double(variance);
    want_sums[size_t(c)] = double(of_g);
    want_sums[size_t(s.channels + c)] = double(of_gh);
    for (int64_t q = 0; q < count; q++) {
      const Sum h = (x[at(q)] - mean) * rstd;
      want[size_t(at(q))] = double(h * weight[c] + bias[c]);
      want_dx[size_t(at(q))] = double(rstd * weight[c] * (g[at(q)] - of_g / m - h * of_gh / m));
    }
  }
  expect("channel_sums", stats, want_stats, 16);
  expect("channel_sums of a gradient", sums, want_sums, 1, m / 2);
  expect("channel_affine", y, want, 8, 1);
  expect("channel_affine of a gradient", dx, want_dx, 16, 1);
}

// ---- dropout ----

void test_dropout(int64_t n, int64_t offset, int32_t dtype) {
  Floats x(dtype, n, offset), y(dtype, n, offset);
  std::vector<uint8_t> mask(size_t(n) + 4, 0xff);
  x.fill(3, -2, 2);
  RandomPlan p;
  build_random(&p, dtype, n, 0x123456789abcdefull, uint64_t(1) << 33, y.data());
  p.x = x.data();
  p.mask = mask.data() + offset;
  p.threshold = 11000000;
  p.scale = 1.25;
  run_in_orders("dropout", cuda::random_dropout, nullptr, &p, {&y});
  std::vector<double> want(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; i++) {
    const uint32_t word = philox_word(p.seed, p.offset, uint64_t(i));
    const bool kept = int32_t(word >> 8) < p.threshold;
    want[size_t(i)] = kept ? x[i] * p.scale : 0;
    check(p.mask[i] == kept, "the mask of dropout", int(i));
  }
  check(mask[size_t(n + offset)] == 0xff, "a mask behind the end of dropout", int(n));
  expect("dropout", y, want, 1);
}

}  // namespace

int main() {
  for (int32_t dtype : kDtypes) {
    for (int64_t n : {1, 3, 64, 65, 1150, 5003})
      for (int64_t offset : {0, 1})
        if (n <= kMostElements) test_dropout(n, offset, dtype);
    for (const Shape& s : kShapes) {
      if (count(s) > kMostElements) continue;
      test_softmax(s, dtype);
      test_losses(s, dtype);
      if (s.inner == 1) test_layer_norm(s, dtype);
      if (s.inner == 1 && dtype != TT_F64) test_layer_norm(s, dtype, false);
    }
    for (const GroupShape& s : kGroups)
      if (s.images * s.groups * s.channels * s.inner <= kMostElements) test_group_norm(s, dtype);
    const Shape chunked = {1500, 24, 1, 0};  // chunks of rows
    if (count(chunked) <= kMostElements) test_layer_norm(chunked, dtype);
    const Shape walked = {2120, 260, 1, 0};  // more rows than blocks
    if (dtype == TT_F32 && count(walked) <= kMostElements) test_layer_norm(walked, dtype);
    const Shape wide = {10, 4096, 1, 0};  // two rows arrive in shared memory at once
    if (dtype == TT_F32 && count(wide) <= kMostElements) test_layer_norm(wide, dtype);
    const Shape held = {1, 8192, 1, 0};  // in the registers of 256 threads
    if (dtype == TT_BF16 && count(held) <= kMostElements) test_softmax(held, dtype);
    for (const ChannelShape& s : kChannels)
      if (s.outer * s.channels * s.inner <= kMostElements) test_batch_norm(s, dtype);
  }
  return finished();
}
