// Convolution and attention of bf16 by the tiles of AMX, of the processor or emulated, against sums
// in double precision, and beside the kernels without tiles.
#include "core/half.h"

#include "amx_fixture.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace TT_NS {
namespace {

using Values = std::vector<double>;
using Sizes = std::vector<int64_t>;

// A number, and the sum of the magnitudes of its terms, to which errors are relative.
struct Sum {
  double value = 0, size = 0;
  void add(double x) { add(x, std::abs(x)); }
  void add(double x, double magnitude) {
    value += x;
    size += magnitude;
  }
};
using Sums = std::vector<Sum>;

class Bf16Amx : public AmxTest {
 protected:
  Values random(const Sizes& sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    std::normal_distribution<float> normal;
    Values v(static_cast<size_t>(n));
    for (double& x : v) x = bf16_to_float(float_to_bf16(normal(rng)));
    return v;
  }
  // last: the second dimension is the innermost one in memory.
  tt_tensor* tensor(const Values& v, const Sizes& sizes, bool last = false) {
    std::vector<uint16_t> bits(v.size());
    for (size_t i = 0; i < v.size(); i++) bits[i] = float_to_bf16(float(v[i]));
    tt_tensor* t = nullptr;
    EXPECT_EQ(tt_tensor_from_data(c, bits.data(), TT_BF16, sizes.data(), int(sizes.size()), &t),
              TT_OK);
    if (last) {
      tt_clone_opts opts = {};
      opts.set = TT_CLONE_MEMORY_FORMAT;
      opts.memory_format = TT_CHANNELS_LAST;
      EXPECT_EQ(tt_clone(c, t, &opts, &t), TT_OK);
    }
    EXPECT_EQ(tt_requires_grad_(c, t, 1), TT_OK);
    return t;
  }
  Values values_of(const tt_tensor* t) {
    tt_tensor* dense = nullptr;
    EXPECT_EQ(tt_contiguous(c, t, &dense), TT_OK);
    const auto* bits = static_cast<const uint16_t*>(tt_tensor_data(dense));
    Values v(static_cast<size_t>(tt_tensor_numel(dense)));
    for (size_t i = 0; i < v.size(); i++) v[i] = bf16_to_float(bits[i]);
    return v;
  }
  Values gradient_of(const tt_tensor* t) {
    tt_tensor* grad = nullptr;
    EXPECT_EQ(tt_tensor_grad(c, t, &grad), TT_OK);
    return values_of(grad);
  }

  // Runs `compute` with tiles and without; its results are close to `want`: within a rounding to
  // bf16 and `error` of the sum of magnitudes, and use tiles if `tiled`. The root mean square of
  // the errors is that of a few roundings.
  void check(const std::function<std::vector<Values>()>& compute, const std::vector<Sums>& want,
             double error, [[maybe_unused]] bool tiled) {
    for (const bool tiles : {false, true}) {
      if (tiles && !usable) continue;
#if TT_AMX_EMULATOR
      const int64_t before = amx_emulator::executed();
#endif
      assume_amx_products(tiles);
      const std::vector<Values> got = compute();
      assume_amx_products(of_processor);
#if TT_AMX_EMULATOR
      if (!of_processor) {
        ASSERT_EQ(amx_emulator::executed() > before, tiles && tiled);
        ASSERT_FALSE(amx_emulator::state().configured);
      }
#endif
      ASSERT_EQ(got.size(), want.size());
      for (size_t k = 0; k < got.size(); k++) {
        ASSERT_EQ(got[k].size(), want[k].size());
        double squares = 0, errors = 0;
        for (size_t i = 0; i < got[k].size(); i++) {
          const Sum& sum = want[k][i];
          ASSERT_NEAR(got[k][i], sum.value, std::abs(sum.value) / 255 + error * sum.size)
              << (tiles ? "tiles" : "no tiles") << ", result " << k << ", element " << i;
          squares += sum.value * sum.value;
          errors += (got[k][i] - sum.value) * (got[k][i] - sum.value);
        }
        ASSERT_LE(std::sqrt(errors), 0x1p-8 * std::sqrt(squares)) << tiles << ", result " << k;
      }
    }
  }

  struct ConvCase {
    int64_t n, groups, ci, co, height, width, kernel, stride, pad, dilation;
    bool last;
  };
  void check_conv(const ConvCase& t, bool bias, bool tiled);

  struct AttentionCase {
    int64_t heads, key_heads, queries, keys, width, value_width;
    bool causal;
    double scale;
  };
  void check_attention(const AttentionCase& t, bool tiled);

  std::mt19937 rng{7};
};

void Bf16Amx::check_conv(const ConvCase& t, bool with_bias, bool tiled) {
  const auto out_size = [&](int64_t in) {
    return (in + 2 * t.pad - t.dilation * (t.kernel - 1) - 1) / t.stride + 1;
  };
  const int64_t high = out_size(t.height), wide = out_size(t.width);
  const Sizes x_size = {t.n, t.groups * t.ci, t.height, t.width};
  const Sizes w_size = {t.groups * t.co, t.ci, t.kernel, t.kernel};
  const Sizes y_size = {t.n, t.groups * t.co, high, wide};
  const Values x = random(x_size), w = random(w_size), g = random(y_size);
  const Values b = random({t.groups * t.co});
  std::vector<Sums> want = {Sums(g.size()), Sums(x.size()), Sums(w.size())};
  for (size_t o = 0; o < g.size(); o++) {
    const int64_t left = int64_t(o) % wide, top = int64_t(o) / wide % high;
    const int64_t co = int64_t(o) / wide / high % (t.groups * t.co);
    const int64_t image = int64_t(o) / wide / high / (t.groups * t.co);
    if (with_bias) want[0][o].add(b[size_t(co)]);
    for (int64_t ci = 0; ci < t.ci; ci++)
      for (int64_t k = 0; k < t.kernel * t.kernel; k++) {
        const int64_t i = top * t.stride - t.pad + k / t.kernel * t.dilation;
        const int64_t j = left * t.stride - t.pad + k % t.kernel * t.dilation;
        if (i < 0 || i >= t.height || j < 0 || j >= t.width) continue;
        const int64_t channel = co / t.co * t.ci + ci;
        const size_t at =
            size_t(((image * t.groups * t.ci + channel) * t.height + i) * t.width + j);
        const size_t of = size_t((co * t.ci + ci) * t.kernel * t.kernel + k);
        want[0][o].add(x[at] * w[of]);
        want[1][at].add(g[o] * w[of]);
        want[2][of].add(g[o] * x[at]);
      }
  }
  const auto compute = [&] {
    tt_tensor* input = tensor(x, x_size, t.last);
    tt_tensor* weight = tensor(w, w_size);
    tt_tensor* bias = with_bias ? tensor(b, {t.groups * t.co}) : nullptr;
    tt_tensor* grad = tensor(g, y_size, t.last);
    const int64_t stride[2] = {t.stride, t.stride}, pad[2] = {t.pad, t.pad};
    const int64_t dilation[2] = {t.dilation, t.dilation};
    tt_conv2d_opts opts = {};
    opts.set = TT_CONV2D_STRIDE | TT_CONV2D_PADDING | TT_CONV2D_DILATION | TT_CONV2D_GROUPS;
    opts.stride = stride;
    opts.padding = pad;
    opts.dilation = dilation;
    opts.n_stride = opts.n_padding = opts.n_dilation = 2;
    opts.groups = t.groups;
    tt_tensor* y = nullptr;
    EXPECT_EQ(tt_conv2d(c, input, weight, bias, &opts, &y), TT_OK) << tt_ctx_error(c)->message;
    tt_backward_opts back = {};
    back.set = TT_BACKWARD_GRADIENT;
    back.gradient = grad;
    EXPECT_EQ(tt_backward(c, y, &back), TT_OK) << tt_ctx_error(c)->message;
    return std::vector<Values>{values_of(y), gradient_of(input), gradient_of(weight)};
  };
  check(compute, want, 0x1p-22, tiled);
}

TEST_F(Bf16Amx, Convolution) {
  //                  n  g  ci  co  h   w  k  s  p  d  last
  const ConvCase cases[] = {
      {1, 1, 16, 16, 6, 6, 3, 1, 1, 1, true},    {2, 1, 24, 33, 9, 7, 3, 1, 1, 1, false},
      {1, 2, 17, 19, 8, 9, 3, 2, 1, 1, true},    {1, 1, 40, 48, 11, 5, 3, 2, 0, 1, false},
      {1, 1, 3, 32, 19, 21, 7, 2, 3, 1, false},  {1, 1, 32, 20, 12, 12, 3, 1, 2, 2, true},
      {1, 1, 100, 300, 5, 4, 3, 1, 1, 1, false}, {3, 1, 19, 16, 17, 18, 2, 3, 1, 1, true},
      {1, 1, 800, 16, 4, 4, 3, 1, 1, 1, true},   {1, 1, 32, 32, 5, 9, 1, 2, 0, 1, true},
      {3, 1, 64, 40, 19, 23, 3, 1, 1, 1, true},  {2, 2, 32, 72, 9, 10, 3, 1, 1, 1, false},
      {2, 1, 64, 32, 13, 11, 3, 2, 1, 1, true},  {1, 2, 32, 32, 14, 17, 3, 2, 2, 3, false},
      {1, 1, 32, 48, 3, 250, 3, 1, 1, 1, true},  {1, 1, 96, 64, 30, 9, 2, 3, 1, 2, true},
  };
  for (const ConvCase& t : cases) {
    SCOPED_TRACE(&t - cases);
    ASSERT_NO_FATAL_FAILURE(check_conv(t, (&t - cases) % 2 == 0, true));
  }
  // Too few channels of the result, of the image or of its pixels.
  ASSERT_NO_FATAL_FAILURE(check_conv({1, 2, 8, 8, 6, 6, 3, 1, 1, 1, true}, false, false));
}

// Infinities and NaNs reach the results that they reach without tiles, and no others.
TEST_F(Bf16Amx, ConvolutionOfInfinity) {
  if (!usable) return;
  const Sizes x_size = {1, 16, 8, 8}, w_size = {16, 16, 3, 3};
  Values x = random(x_size);
  x[5 * 64 + 3 * 8 + 3] = std::numeric_limits<double>::infinity();
  const Values w = random(w_size);
  std::vector<Values> got;
  for (const bool tiles : {false, true}) {
    assume_amx_products(tiles);
    tt_tensor* y = nullptr;
    ASSERT_EQ(tt_conv2d(c, tensor(x, x_size), tensor(w, w_size), nullptr, nullptr, &y), TT_OK);
    got.push_back(values_of(y));
  }
  for (size_t i = 0; i < got[0].size(); i++)
    ASSERT_EQ(std::isfinite(got[0][i]), std::isfinite(got[1][i])) << i;
}

// The same for copied lines, whose zeros meet infinities, and for the weight's gradient.
TEST_F(Bf16Amx, LinesOfInfinity) {
  if (!usable) return;
  const Sizes x_size = {2, 32, 8, 9}, w_size = {32, 32, 3, 3}, y_size = {2, 32, 6, 7};
  Values x = random(x_size);
  x[3 * 72 + 8] = std::numeric_limits<double>::infinity();
  x[5 * 72 + 71] = std::numeric_limits<double>::quiet_NaN();
  const Values w = random(w_size), g = random(y_size);
  std::vector<Values> got;
  for (const bool tiles : {false, true}) {
    assume_amx_products(tiles);
    tt_tensor* weight = tensor(w, w_size);
    tt_tensor* y = nullptr;
    ASSERT_EQ(tt_conv2d(c, tensor(x, x_size), weight, nullptr, nullptr, &y), TT_OK);
    tt_backward_opts back = {};
    back.set = TT_BACKWARD_GRADIENT;
    back.gradient = tensor(g, y_size);
    ASSERT_EQ(tt_backward(c, y, &back), TT_OK);
    got.push_back(values_of(y));
    got.push_back(gradient_of(weight));
  }
  for (size_t k = 0; k < 2; k++) {
    bool all_finite = true;
    for (size_t i = 0; i < got[k].size(); i++) {
      ASSERT_EQ(std::isfinite(got[k][i]), std::isfinite(got[k + 2][i])) << k << " " << i;
      all_finite = all_finite && std::isfinite(got[k][i]);
    }
    EXPECT_FALSE(all_finite) << k;
  }
}

void Bf16Amx::check_attention(const AttentionCase& t, bool tiled) {
  const Sizes q_size = {1, t.heads, t.queries, t.width};
  const Sizes k_size = {1, t.key_heads, t.keys, t.width};
  const Sizes v_size = {1, t.key_heads, t.keys, t.value_width};
  const Sizes o_size = {1, t.heads, t.queries, t.value_width};
  const Values q = random(q_size), k = random(k_size), v = random(v_size), g = random(o_size);
  std::vector<Sums> want = {Sums(g.size()), Sums(q.size()), Sums(k.size()), Sums(v.size())};
  for (int64_t row = 0; row < t.heads * t.queries; row++) {
    const int64_t key_row = row / t.queries / (t.heads / t.key_heads) * t.keys;
    const int64_t keys = t.causal ? std::min(row % t.queries + 1, t.keys) : t.keys;
    Values p(static_cast<size_t>(keys));
    double total = 0;
    for (int64_t i = 0; i < keys; i++) {
      double score = 0;
      for (int64_t d = 0; d < t.width; d++)
        score += q[size_t(row * t.width + d)] * k[size_t((key_row + i) * t.width + d)];
      total += p[size_t(i)] = std::exp(score * t.scale);
    }
    Values dp(p.size());
    double delta = 0, size = 0;
    for (int64_t i = 0; i < keys; i++) {
      double& share = p[size_t(i)];
      share /= total;
      for (int64_t d = 0; d < t.value_width; d++) {
        const size_t at = size_t((key_row + i) * t.value_width + d);
        const size_t o = size_t(row * t.value_width + d);
        want[0][o].add(share * v[at]);
        want[3][at].add(share * g[o]);
        dp[size_t(i)] += g[o] * v[at];
        size = std::max(size, std::abs(g[o] * v[at]) * double(t.value_width));
      }
      delta += share * dp[size_t(i)];
    }
    for (int64_t i = 0; i < keys; i++) {
      const double ds = p[size_t(i)] * (dp[size_t(i)] - delta) * t.scale;
      const double magnitude = p[size_t(i)] * size * std::abs(t.scale);
      for (int64_t d = 0; d < t.width; d++) {
        const size_t of_q = size_t(row * t.width + d), of_k = size_t((key_row + i) * t.width + d);
        want[1][of_q].add(ds * k[of_k], magnitude * std::abs(k[of_k]));
        want[2][of_k].add(ds * q[of_q], magnitude * std::abs(q[of_q]));
      }
    }
  }
  const auto compute = [&] {
    tt_tensor* inputs[3] = {tensor(q, q_size), tensor(k, k_size), tensor(v, v_size)};
    tt_scaled_dot_product_attention_opts opts = {};
    opts.set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL | TT_SCALED_DOT_PRODUCT_ATTENTION_SCALE |
               TT_SCALED_DOT_PRODUCT_ATTENTION_ENABLE_GQA;
    opts.is_causal = t.causal;
    opts.scale = t.scale;
    opts.enable_gqa = 1;
    tt_tensor* out = nullptr;
    EXPECT_EQ(
        tt_scaled_dot_product_attention(c, inputs[0], inputs[1], inputs[2], nullptr, &opts, &out),
        TT_OK)
        << tt_ctx_error(c)->message;
    tt_backward_opts back = {};
    back.set = TT_BACKWARD_GRADIENT;
    back.gradient = tensor(g, o_size);
    EXPECT_EQ(tt_backward(c, out, &back), TT_OK) << tt_ctx_error(c)->message;
    return std::vector<Values>{values_of(out), gradient_of(inputs[0]), gradient_of(inputs[1]),
                               gradient_of(inputs[2])};
  };
  check(compute, want, 0x1p-13, tiled);
}

TEST_F(Bf16Amx, Attention) {
  //             heads k  q    k    w    v  causal scale
  const AttentionCase cases[] = {
      {1, 1, 16, 16, 32, 32, false, 0.25},  {2, 1, 33, 50, 40, 24, false, 0.3},
      {1, 1, 70, 150, 64, 64, true, 0.125}, {1, 1, 20, 300, 16, 17, false, 0.25},
      {2, 2, 17, 31, 140, 80, true, 0.1},   {2, 1, 300, 70, 33, 48, true, 0.2},
      {1, 1, 90, 600, 64, 32, true, 0.125}, {1, 1, 17, 40, 64, 64, false, -0.125},
  };
  for (const AttentionCase& t : cases) {
    SCOPED_TRACE(&t - cases);
    ASSERT_NO_FATAL_FAILURE(check_attention(t, true));
  }
  ASSERT_NO_FATAL_FAILURE(check_attention({1, 1, 5, 9, 8, 8, false, 0.5}, false));
}

}  // namespace
}  // namespace TT_NS
