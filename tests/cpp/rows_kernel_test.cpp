// Kernels over rows: every dtype and ISA against a reference in double; results must not depend on
// how units are split.
#include "kernel_harness.h"
#include "plan/loss_build.h"
#include "plan/norm_build.h"
#include "plan/softmax_build.h"

#include <functional>
#include <string>

DECLARE_KERNEL(softmax)
DECLARE_KERNEL(log_softmax)
DECLARE_KERNEL(softmax_backward)
DECLARE_KERNEL(log_softmax_backward)
DECLARE_KERNEL(layer_norm)
DECLARE_KERNEL(layer_norm_backward)
DECLARE_KERNEL(cross_entropy)
DECLARE_KERNEL(cross_entropy_backward)
DECLARE_KERNEL(nll_loss)
DECLARE_KERNEL(nll_loss_backward)

using namespace kernel_test;

namespace {

const int32_t kFloats[] = {TT_F16, TT_BF16, TT_F32, TT_F64};

// Runs a kernel on every ISA and split; out must be bit-equal for every split and near `want`
// everywhere.
template <class Plan> void check(const KernelRow& row, Plan plan, std::vector<Buffer*> outs,
                                 const std::function<double(size_t, int64_t)>& want,
                                 double tolerance, const std::string& text, double floor = 0.02) {
  for (int isa = 0; isa <= best_isa(); isa++) {
    std::vector<std::vector<char>> first;
    for (int64_t piece : {0, 1, 3}) {
      ASSERT_EQ(run_split(row.isa[isa], &plan, piece), 0) << text;
      for (size_t o = 0; o < outs.size(); o++) {
        const size_t bytes = size_t(outs[o]->n * kItemSize[outs[o]->dtype]);
        if (!piece) first.emplace_back(outs[o]->data(), outs[o]->data() + bytes);
        else
          ASSERT_EQ(std::memcmp(first[o].data(), outs[o]->data(), bytes), 0)
              << text << " piece " << piece;
        ASSERT_EQ(*(outs[o]->data() + bytes), 0x5a) << text << " wrote past its end";
      }
    }
    for (size_t o = 0; o < outs.size(); o++)
      for (int64_t i = 0; i < outs[o]->n; i++) {
        const double w = want(o, i);
        const double got = outs[o]->real(i);
        if (std::isnan(w)) {
          ASSERT_TRUE(std::isnan(got)) << text << " isa " << isa << " out " << o << " at " << i;
        } else if (std::isinf(w)) {
          ASSERT_EQ(got, w) << text << " isa " << isa << " at " << i;
        } else {
          ASSERT_NEAR(got, w,
                      tolerance * (std::fabs(w) + floor) + 1e-7 * epsilon(outs[o]->dtype) +
                          (outs[o]->dtype == TT_F16 ? 6e-8 : 0))
              << text << " isa " << isa << " out " << o << " at " << i;
        }
      }
  }
}

// ---- softmax ----

struct Shape3 {
  int64_t outer, dim, inner;
};
const Shape3 kShapes[] = {{1, 1, 1},    {3, 5, 1}, {4, 64, 1},  {2, 100, 1}, {5, 1024, 1},
                          {2, 3000, 1}, {3, 4, 5}, {2, 7, 300}, {1, 50, 256}};

struct SoftmaxReference {
  std::vector<double> y, log_y;
};
SoftmaxReference softmax_of(Buffer& x, Shape3 s) {
  SoftmaxReference r{std::vector<double>(size_t(x.n)), std::vector<double>(size_t(x.n))};
  for (int64_t o = 0; o < s.outer; o++)
    for (int64_t i = 0; i < s.inner; i++) {
      const auto at = [&](int64_t d) { return (o * s.dim + d) * s.inner + i; };
      double m = -kInf, sum = 0;
      for (int64_t d = 0; d < s.dim; d++)
        m = std::isnan(x.real(at(d))) ? kNan : std::max(m, x.real(at(d)));
      for (int64_t d = 0; d < s.dim; d++) sum += std::exp(x.real(at(d)) - m);
      for (int64_t d = 0; d < s.dim; d++) {
        r.log_y[size_t(at(d))] = x.real(at(d)) - m - std::log(sum);
        r.y[size_t(at(d))] = std::exp(r.log_y[size_t(at(d))]);
      }
    }
  return r;
}

void check_softmax(Buffer& x, Shape3 s, const std::string& text) {
  SoftmaxReference ref = softmax_of(x, s);
  Buffer y(x.dtype, x.n);
  SoftmaxPlan plan;
  build_softmax(&plan, x.dtype, s.outer, s.dim, s.inner);
  plan.a = x.data();
  plan.b = nullptr;
  plan.out = y.data();
  const double tolerance = std::max(epsilon(x.dtype), 0x1p-50) * 3;
  check(
      KERNEL_ROW(softmax), plan, {&y}, [&](size_t, int64_t i) { return ref.y[size_t(i)]; },
      tolerance, "softmax " + text);
  // A relative error of the sum is an absolute one of its logarithm.
  check(
      KERNEL_ROW(log_softmax), plan, {&y}, [&](size_t, int64_t i) { return ref.log_y[size_t(i)]; },
      tolerance, "log_softmax " + text, 1);
}

TEST(Rows, Softmax) {
  for (int32_t dtype : kFloats)
    for (const Shape3& s : kShapes) {
      Buffer x(dtype, s.outer * s.dim * s.inner);
      fill_random(&x, 1);
      check_softmax(x, s, dtype_text(dtype));
      x.fill([&](int64_t i) { return x[i] * 30.0; });
      check_softmax(x, s, std::string("wide ") + dtype_text(dtype));
      if (HasFatalFailure()) return;
    }
}

TEST(Rows, SoftmaxSpecialValues) {
  for (int32_t dtype : kFloats)
    for (const Shape3& s : {Shape3{3, 70, 1}, Shape3{1, 70, 3}}) {
      Buffer x(dtype, 210);
      fill_random(&x, 2);
      for (int64_t i = 0; i < 60; i++) x.put(i, -kInf);
      x.put(200, -kInf);
      x.put(150, 1000);
      check_softmax(x, s, "-inf");
      x.fill([](int64_t) { return -kInf; });
      check_softmax(x, s, "all -inf");  // nan, as in PyTorch
      fill_random(&x, 2);
      x.put(75, kNan);
      check_softmax(x, s, "nan");
      fill_random(&x, 2);
      x.put(100, kInf);
      check_softmax(x, s, "inf");
    }
}

TEST(Rows, SoftmaxBackward) {
  for (int32_t dtype : kFloats)
    for (const Shape3& s : kShapes) {
      Buffer g(dtype, s.outer * s.dim * s.inner);
      Buffer y(dtype, g.n);
      Buffer dx(dtype, g.n);
      fill_random(&g, 3);
      fill_random(&y, 4);
      for (const bool log : {false, true}) {
        if (log) y.fill([&](int64_t i) { return -std::fabs(y.real(i)); });
        std::vector<double> want(size_t(g.n));
        std::vector<double> scale(size_t(g.n));
        double largest = 1;
        for (int64_t o = 0; o < s.outer; o++)
          for (int64_t i = 0; i < s.inner; i++) {
            const auto at = [&](int64_t d) { return (o * s.dim + d) * s.inner + i; };
            double sum = 0;
            for (int64_t d = 0; d < s.dim; d++)
              sum += log ? g.real(at(d)) : g.real(at(d)) * y.real(at(d));
            for (int64_t d = 0; d < s.dim; d++) {
              const double gv = g.real(at(d));
              const double yv = y.real(at(d));
              want[size_t(at(d))] = log ? gv - std::exp(yv) * sum : yv * (gv - sum);
            }
            largest = std::max(largest, std::fabs(sum));
          }
        SoftmaxPlan plan;
        build_softmax(&plan, dtype, s.outer, s.dim, s.inner);
        plan.a = g.data();
        plan.b = y.data();
        plan.out = dx.data();
        const double tolerance =
            epsilon(dtype) * 4 + epsilon(dtype == TT_F64 ? TT_F64 : TT_F32) * 200 * largest;
        check(
            log ? KERNEL_ROW(log_softmax_backward) : KERNEL_ROW(softmax_backward), plan, {&dx},
            [&](size_t, int64_t i) { return want[size_t(i)]; }, tolerance,
            std::string("backward ") + dtype_text(dtype));
        if (HasFatalFailure()) return;
      }
    }
}

// ---- layer norm ----

struct NormCase {
  int32_t dtype, weight_dtype, stat_dtype;
};
const NormCase kNorms[] = {{TT_F32, TT_F32, TT_F32},
                           {TT_F64, TT_F64, TT_F64},
                           {TT_F16, TT_F16, TT_F16},
                           {TT_BF16, TT_F32, TT_F32},
                           {TT_BF16, TT_BF16, TT_F32}};

TEST(Rows, LayerNorm) {
  for (const NormCase& c : kNorms)
    for (int64_t n : {1, 7, 64, 100, 1024, 2500})
      for (int parts = 0; parts < 4; parts++) {
        const int64_t rows = 5;
        Buffer x(c.dtype, rows * n);
        Buffer w(c.weight_dtype, n);
        Buffer b(c.weight_dtype, n);
        Buffer y(c.dtype, rows * n);
        Buffer mean(c.stat_dtype, rows);
        Buffer rstd(c.stat_dtype, rows);
        fill_random(&x, 5);
        fill_random(&w, 6);
        fill_random(&b, 7);
        x.fill([&](int64_t i) { return x[i] * 2.0 + 30.0; });
        LayerNormPlan plan;
        build_layer_norm(&plan, c.dtype, c.weight_dtype, c.stat_dtype, rows, n, 1e-3);
        plan.x = x.data();
        plan.y = y.data();
        plan.mean = mean.data();
        plan.rstd = rstd.data();
        plan.weight = parts & 1 ? w.data() : nullptr;
        plan.bias = parts & 2 ? b.data() : nullptr;
        std::vector<long double> m(size_t(rows), 0);
        std::vector<long double> v(size_t(rows), 0);
        for (int64_t i = 0; i < x.n; i++)
          m[size_t(i / n)] += x.real(i) / static_cast<long double>(n);
        for (int64_t i = 0; i < x.n; i++)
          v[size_t(i / n)] += (x.real(i) - m[size_t(i / n)]) * (x.real(i) - m[size_t(i / n)]) /
                              static_cast<long double>(n);
        const double narrow = std::max(epsilon(c.dtype), epsilon(c.stat_dtype));
        const double compute = epsilon(c.dtype == TT_F64 ? TT_F64 : TT_F32);
        const double rounding = n == 1 ? 0 : 3000 * compute;
        check(
            KERNEL_ROW(layer_norm), plan, {&y, &mean, &rstd},
            [&](size_t o, int64_t i) {
              if (o == 1) return double(m[size_t(i)]);
              if (o == 2) return double(1 / std::sqrt(v[size_t(i)] + 1e-3));
              const double h =
                  double((x.real(i) - m[size_t(i / n)]) / std::sqrt(v[size_t(i / n)] + 1e-3));
              const double scaled = parts & 1 ? h * w.real(i % n) : h;
              return parts & 2 ? scaled + b.real(i % n) : scaled;
            },
            narrow * 2 + rounding, std::string("layer_norm ") + dtype_text(c.dtype));
        if (HasFatalFailure()) return;
      }
}

TEST(Rows, LayerNormBackward) {
  for (const NormCase& c : kNorms)
    for (int64_t n : {1, 7, 100, 1024, 2500})
      for (int64_t rows : {1, 40, 130})
        for (int parts = 0; parts < 2; parts++) {
          if (rows * n > 150000) continue;
          Buffer x(c.dtype, rows * n);
          Buffer g(c.dtype, rows * n);
          Buffer w(c.weight_dtype, n);
          Buffer dx(c.dtype, rows * n);
          Buffer mean(c.stat_dtype, rows);
          Buffer rstd(c.stat_dtype, rows);
          Buffer dw(c.weight_dtype, n);
          Buffer db(c.weight_dtype, n);
          fill_random(&x, 5);
          fill_random(&w, 6);
          fill_random(&g, 7);
          fill_random(&mean, 8);
          rstd.fill([](int64_t i) { return 0.5 + 0.125 * double(i % 5); });
          LayerNormBackwardPlan plan;
          build_layer_norm_backward(&plan, c.dtype, c.weight_dtype, c.stat_dtype, rows, n, true);
          std::vector<char> workspace(size_t(layer_norm_backward_workspace_bytes(&plan)));
          plan.g = g.data();
          plan.x = x.data();
          plan.mean = mean.data();
          plan.rstd = rstd.data();
          plan.dx = dx.data();
          plan.weight = parts ? w.data() : nullptr;
          plan.dweight = dw.data();
          plan.dbias = db.data();
          plan.workspace = workspace.data();
          const size_t columns = size_t(n);
          std::vector<double> wdx(size_t(x.n));
          std::vector<double> wdw(columns);
          std::vector<double> wdb(columns);
          for (int64_t r = 0; r < rows; r++) {
            double su = 0, suh = 0;
            const auto h = [&](int64_t j) {
              return (x.real(r * n + j) - mean.real(r)) * rstd.real(r);
            };
            const auto u = [&](int64_t j) { return g.real(r * n + j) * (parts ? w.real(j) : 1); };
            for (int64_t j = 0; j < n; j++) {
              su += u(j);
              suh += u(j) * h(j);
              wdw[size_t(j)] += g.real(r * n + j) * h(j);
              wdb[size_t(j)] += g.real(r * n + j);
            }
            for (int64_t j = 0; j < n; j++)
              wdx[size_t(r * n + j)] =
                  rstd.real(r) * (u(j) - su / double(n) - h(j) * suh / double(n));
          }
          const double tolerance = std::max(epsilon(c.dtype), epsilon(c.weight_dtype)) * 2 +
                                   epsilon(c.dtype == TT_F64 ? TT_F64 : TT_F32) * 2000;
          const auto want = [&](size_t o, int64_t i) {
            if (o == 0) return wdx[size_t(i)];
            return o == 1 ? wdw[size_t(i)] : wdb[size_t(i)];
          };
          check(KERNEL_ROW(layer_norm_backward), plan, {&dx, &dw, &db}, want, tolerance,
                std::string("backward ") + dtype_text(c.dtype));
          if (HasFatalFailure()) return;
          build_layer_norm_backward(&plan, c.dtype, c.weight_dtype, c.stat_dtype, rows, n, false);
          plan.dweight = plan.dbias = nullptr;
          plan.workspace = nullptr;
          check(KERNEL_ROW(layer_norm_backward), plan, {&dx}, want, tolerance, "dx only");
          build_layer_norm_backward(&plan, c.dtype, c.weight_dtype, c.stat_dtype, rows, n, true);
          plan.dx = nullptr;
          plan.dbias = db.data();
          plan.workspace = workspace.data();
          check(
              KERNEL_ROW(layer_norm_backward), plan, {&db},
              [&](size_t, int64_t i) { return wdb[size_t(i)]; }, tolerance, "dbias only");
          if (HasFatalFailure()) return;
        }
}

// ---- losses of class indices ----

TEST(Rows, ClassLosses) {
  const Shape3 shapes[] = {{1, 1, 1},    {6, 10, 1}, {3, 1024, 1},
                           {4, 3001, 1}, {3, 7, 5},  {2, 9, 300}};
  for (int32_t dtype : kFloats)
    for (const Shape3& s : shapes)
      for (int variant = 0; variant < 4; variant++) {
        const bool weighted = variant & 1;
        const bool one_scale = variant & 2;
        const int32_t target_dtype = variant & 1 ? TT_I32 : TT_I64;
        const int32_t loss_dtype = dtype == TT_F64 || variant & 2 ? dtype : int32_t(TT_F32);
        const int64_t rows = s.outer * s.inner;
        Buffer x(dtype, rows * s.dim);
        Buffer target(target_dtype, rows);
        Buffer weight(dtype, s.dim);
        Buffer dx(dtype, x.n);
        Buffer loss(loss_dtype, rows);
        Buffer row_weight(loss_dtype, rows);
        Buffer lse(dtype == TT_F64 ? TT_F64 : TT_F32, rows);
        Buffer scale(loss_dtype, rows);
        fill_random(&x, 1);
        fill_random(&scale, 2);
        weight.fill([](int64_t i) { return 0.5 + double(i % 4) / 4; });
        target.fill([&](int64_t i) { return i == 2 ? -100.0 : double((i * 7919) % s.dim); });
        std::vector<double> want_lse(static_cast<size_t>(rows));
        const auto place = [&](int64_t r, int64_t c) {
          return (r / s.inner * s.dim + c) * s.inner + r % s.inner;
        };
        for (int64_t r = 0; r < rows; r++) {
          double m = -kInf, sum = 0;
          for (int64_t c = 0; c < s.dim; c++) m = std::max(m, x.real(place(r, c)));
          for (int64_t c = 0; c < s.dim; c++) sum += std::exp(x.real(place(r, c)) - m);
          want_lse[size_t(r)] = m + std::log(sum);
        }
        const auto ignored = [&](int64_t r) { return r == 2; };
        const auto t = [&](int64_t r) { return int64_t(target.real(r)); };
        const auto w = [&](int64_t r) -> double {
          if (ignored(r)) return 0;
          return weighted ? weight.real(t(r)) : 1;
        };
        ClassLossPlan p;
        build_class_loss(&p, dtype, target_dtype, dtype, loss_dtype, s.outer, s.dim, s.inner, -100);
        p.x = x.data();
        p.target = target.data();
        p.weight = weighted ? weight.data() : nullptr;
        p.loss = loss.data();
        p.row_weight = row_weight.data();
        p.lse = lse.data();
        const double narrow = std::max(epsilon(dtype), epsilon(loss_dtype));
        const double tolerance = narrow * 2 + epsilon(dtype == TT_F64 ? TT_F64 : TT_F32) * 8;
        const std::string text =
            std::string(dtype_text(dtype)) + " variant " + std::to_string(variant);
        check(
            KERNEL_ROW(cross_entropy), p, {&loss, &row_weight, &lse},
            [&](size_t o, int64_t r) {
              if (o == 1) return w(r);
              if (o == 2) return want_lse[size_t(r)];
              return ignored(r) ? 0.0 : (want_lse[size_t(r)] - x.real(place(r, t(r)))) * w(r);
            },
            tolerance, "cross_entropy " + text, 1);
        const int64_t step = one_scale ? 0 : 1;
        p.scale = scale.data();
        p.scale_stride = step;
        p.dx = dx.data();
        check(
            KERNEL_ROW(cross_entropy_backward), p, {&dx},
            [&](size_t, int64_t i) {
              const int64_t r = i / (s.dim * s.inner) * s.inner + i % s.inner;
              const int64_t c = i / s.inner % s.dim;
              if (ignored(r)) return 0.0;
              return (std::exp(x.real(i) - want_lse[size_t(r)]) - double(t(r) == c)) *
                     scale.real(r * step) * w(r);
            },
            tolerance * 2, "cross_entropy_backward " + text);
        p.lse = nullptr;
        check(
            KERNEL_ROW(nll_loss), p, {&loss, &row_weight},
            [&](size_t o, int64_t r) {
              if (o == 1) return w(r);
              return ignored(r) ? 0.0 : -x.real(place(r, t(r))) * w(r);
            },
            tolerance, "nll_loss " + text);
        p.x = nullptr;
        check(
            KERNEL_ROW(nll_loss_backward), p, {&dx},
            [&](size_t, int64_t i) {
              const int64_t r = i / (s.dim * s.inner) * s.inner + i % s.inner;
              const int64_t c = i / s.inner % s.dim;
              return ignored(r) || t(r) != c ? 0.0 : -scale.real(r * step) * w(r);
            },
            tolerance, "nll_loss_backward " + text);
        if (HasFatalFailure()) return;
      }
}

TEST(Rows, CrossEntropySpecialValues) {
  for (const Shape3& s : {Shape3{4, 2000, 1}, Shape3{1, 2000, 4}}) {
    Buffer x(TT_F32, 8000);
    Buffer target(TT_I64, 4);
    Buffer loss(TT_F32, 4);
    Buffer lse(TT_F32, 4);
    const auto put = [&](int64_t r, int64_t c, double v) {
      x.put(s.inner == 1 ? r * 2000 + c : c * 4 + r, v);
    };
    for (int64_t c = 0; c < 2000; c++) {
      put(0, c, c < 1500 ? -kInf : 0);  // a first block without a finite value
      put(1, c, c == 1999 ? 500 : -500);
      put(2, c, c == 700 ? kNan : 1);
      put(3, c, -kInf);
    }
    target.fill([](int64_t) { return 1999.0; });
    ClassLossPlan p;
    build_class_loss(&p, TT_F32, TT_I64, TT_F32, TT_F32, s.outer, s.dim, s.inner, -100);
    p.x = x.data();
    p.target = target.data();
    p.loss = loss.data();
    p.lse = lse.data();
    check(
        KERNEL_ROW(cross_entropy), p, {&loss},
        [&](size_t, int64_t r) {
          if (r == 0) return std::log(500.0);
          return r == 1 ? 0 : kNan;
        },
        4e-7, "special");
  }
}

TEST(Rows, Empty) {
  SoftmaxPlan s;
  build_softmax(&s, TT_F32, 0, 5, 1);
  EXPECT_EQ(s.run.units[0], 0);
  build_softmax(&s, TT_F32, 5, 0, 3);
  EXPECT_EQ(s.run.units[0], 0);
  build_softmax(&s, TT_F32, 5, 3, 0);
  EXPECT_EQ(s.run.units[0], 0);
  // No row: the sums are zero.
  Buffer dw(TT_F32, 10);
  Buffer db(TT_F32, 10);
  LayerNormBackwardPlan p;
  build_layer_norm_backward(&p, TT_F32, TT_F32, TT_F32, 0, 10, true);
  p.g = p.x = p.mean = p.rstd = p.weight = nullptr;
  p.dx = nullptr;
  p.dweight = dw.data();
  p.dbias = db.data();
  p.workspace = nullptr;
  check(
      KERNEL_ROW(layer_norm_backward), p, {&dw, &db}, [](size_t, int64_t) { return 0.0; }, 0,
      "no rows");
}

}  // namespace
