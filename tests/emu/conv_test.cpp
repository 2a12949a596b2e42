// Convolutions by tiles and by single results, and the sums of the weight's gradient over splits
// of the pixels, compared with sums in the order of the definition. Whole numbers make them exact.
#include "check.h"
#include "plan/conv_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Case {
  const char* name;
  int64_t n, groups, ci, co;
  int64_t x[3], k[3], stride, pad, dil;
};
constexpr Case kCases[] = {
    {"few channels", 1, 1, 2, 3, {1, 6, 7}, {1, 3, 3}, 1, 1, 1},
    {"tiles", 1, 1, 18, 35, {1, 5, 7}, {1, 2, 3}, 1, 1, 1},
    {"tiles of groups, strides", 1, 2, 5, 6, {3, 6, 5}, {2, 3, 1}, 2, 0, 1},
    {"depthwise", 1, 9, 1, 1, {1, 8, 8}, {1, 3, 3}, 2, 2, 2},
    {"splits of pixels", 5, 1, 5, 6, {1, 12, 12}, {1, 3, 3}, 1, 1, 1},
};

std::vector<float> numbers_of(int64_t n, Numbers& numbers) {
  std::vector<float> v;
  for (int64_t i = 0; i < n; i++) v.push_back(float(numbers.whole(-2, 2)));
  return v;
}

struct Conv {
  ConvShape s;
  std::vector<float> x, y, w;

  explicit Conv(const Case& t) {
    s.n = t.n;
    s.groups = t.groups;
    s.ci = t.ci;
    s.co = t.co;
    for (int d = 0; d < 3; d++) {
      const bool one = t.x[d] == 1;
      s.x[d] = t.x[d];
      s.k[d] = t.k[d];
      s.stride[d] = one ? 1 : t.stride;
      s.pad[d] = one ? 0 : t.pad;
      s.dil[d] = t.dil;
      s.y[d] = (s.x[d] + 2 * s.pad[d] - s.dil[d] * (s.k[d] - 1) - 1) / s.stride[d] + 1;
    }
    Numbers numbers;
    x = numbers_of(conv_pixels(s, s.x) * s.groups * s.ci, numbers);
    y = numbers_of(conv_pixels(s, s.y) * s.groups * s.co, numbers);
    w = numbers_of(s.groups * s.co * s.ci * s.taps(), numbers);
  }
  // Calls f(element of x, of y, of the weight) for each term.
  template <class F> void each(const F& f) const {
    const int64_t taps = s.taps();
    for (int64_t p = 0; p < conv_pixels(s, s.y); p++)
      for (int64_t k = 0; k < taps; k++) {
        const int64_t o[3] = {p / (s.y[2] * s.y[1]) % s.y[0], p / s.y[2] % s.y[1], p % s.y[2]};
        const int64_t tap[3] = {k / (s.k[2] * s.k[1]), k / s.k[2] % s.k[1], k % s.k[2]};
        int64_t at = p / (s.y[0] * s.y[1] * s.y[2]);
        bool inside = true;
        for (int d = 0; d < 3; d++) {
          const int64_t i = o[d] * s.stride[d] - s.pad[d] + tap[d] * s.dil[d];
          inside &= i >= 0 && i < s.x[d];
          at = at * s.x[d] + i;
        }
        for (int64_t g = 0; inside && g < s.groups; g++)
          for (int64_t co = 0; co < s.co; co++)
            for (int64_t ci = 0; ci < s.ci; ci++)
              f(size_t((at * s.groups + g) * s.ci + ci), size_t((p * s.groups + g) * s.co + co),
                size_t(((g * s.co + co) * s.ci + ci) * taps + k));
      }
  }
  template <class Plan> void set_weight(Plan* p) const {
    p->w_co = s.ci * s.taps();
    p->w_ci = s.taps();
    p->w_k[0] = s.k[1] * s.k[2];
    p->w_k[1] = s.k[2];
    p->w_k[2] = 1;
  }
  // x with padded rows, if the builder wants them.
  std::vector<float> source() const {
    const int64_t width = conv_merged_width(s);
    if (!width) return x;
    ConvPadPlan p;
    build_conv_pad(&p, s, width, 4);
    std::vector<float> out(size_t(p.rows * width * s.ci));
    p.src = reinterpret_cast<const char*>(x.data());
    p.dst = reinterpret_cast<char*>(out.data());
    run("conv_pad", cuda::conv_pad, nullptr, &p);
    return out;
  }
};

void test_case(const Case& t) {
  const Conv c(t);
  std::vector<float> y(c.y.size()), x(c.x.size()), w(c.w.size());
  c.each([&](size_t i, size_t o, size_t k) {
    y[o] += c.x[i] * c.w[k];
    x[i] += c.y[o] * c.w[k];
    w[k] += c.x[i] * c.y[o];
  });
  const std::vector<float> padded = c.source();
  const auto bytes = [](const std::vector<float>& v) {
    return reinterpret_cast<const char*>(v.data());
  };
  for (ConvMode mode : {kConvForward, kConvData}) {
    ConvPlan p;
    build_conv(&p, c.s, TT_F32, mode, false);
    c.set_weight(&p);
    p.src = bytes(mode == kConvForward ? padded : c.y);
    p.weight = bytes(c.w);
    p.bias = nullptr;
    std::vector<float> out(mode == kConvForward ? y.size() : x.size());
    p.dst = reinterpret_cast<char*>(out.data());
    in_orders(t.name, out, [&] { run(t.name, cuda::conv, nullptr, &p); });
    check(out == (mode == kConvForward ? y : x), t.name, int(mode));
  }
  ConvWeightPlan p;
  build_conv_weight(&p, c.s, TT_F32, 4, conv_merged_width(c.s));
  c.set_weight(&p);
  p.src = bytes(padded);
  p.y = bytes(c.y);
  std::vector<float> out(w.size());
  p.dst = reinterpret_cast<char*>(out.data());
  in_orders(t.name, out, [&] { run(t.name, cuda::conv_weight, cuda::conv_weight_workspace, &p); });
  check(out == w, t.name, 2);
}

}  // namespace

int main() {
  for (const Case& t : kCases)
    if (!EMU_TSAN || t.n == 1) test_case(t);
  return finished();
}
