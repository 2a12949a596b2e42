// Convolutions by tiles and by single results, and the sums of the weight's gradient over splits
// of the pixels, compared with sums in the order of the definition. Whole numbers make them exact;
// those that halves cannot hold are rounded as the kernels round them. Argument: a stub of cuDNN
// (dnn_stub.cpp), which then computes in place of the kernels.
#include <dlfcn.h>

#include "check.h"
#include "kernels/cuda/conv/cudnn.h"
#include "kernels/cuda/conv/few_channels.h"
#include "kernels/cuda/convert.h"
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
    {"few channels, strides", 2, 1, 3, 20, {1, 11, 9}, {1, 5, 3}, 2, 1, 1},
    {"many terms", 2, 1, 13, 10, {1, 9, 8}, {1, 3, 3}, 1, 1, 1},
    {"many channels", 2, 1, 11, 60, {1, 7, 7}, {1, 3, 3}, 1, 0, 1},
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
};

// ---- stored numbers ----

template <class S> std::vector<S> stored(const std::vector<float>& v) {
  std::vector<S> out;
  for (const float x : v) {
    if constexpr (__is_same(S, F16)) out.push_back(narrow_f16(x));
    else if constexpr (__is_same(S, BF16)) out.push_back(narrow_bf16(x));
    else out.push_back(x);
  }
  return out;
}
template <class S> bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
  return a.size() == b.size() && memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0;
}
template <class S> const char* bytes(const std::vector<S>& v) {
  return reinterpret_cast<const char*>(v.data());
}
template <class S> char* bytes(std::vector<S>& v) { return reinterpret_cast<char*>(v.data()); }

// (images, pixels, channels) as (images, channels, pixels).
std::vector<float> planes_of(const std::vector<float>& v, int64_t images, int64_t channels) {
  const int64_t pixels = int64_t(v.size()) / (images * channels);
  std::vector<float> out(v.size());
  for (int64_t n = 0; n < images; n++)
    for (int64_t p = 0; p < pixels; p++)
      for (int64_t c = 0; c < channels; c++)
        out[size_t((n * channels + c) * pixels + p)] = v[size_t((n * pixels + p) * channels + c)];
  return out;
}

int g_library_calls;  // that cuDNN should get for f32 and bf16, in three orders of threads
template <class Plan> void count_call(const Plan& p) {
  if (p.dtype != TT_F16 && !cuda::few::serves(p)) g_library_calls += 3;
}

enum Layout { kLast, kResultFirst, kFirst };  // where channels are

template <class S> void test_case(const Case& t, int32_t dtype) {
  const Conv c(t);
  std::vector<float> y(c.y.size()), x(c.x.size()), w(c.w.size());
  c.each([&](size_t i, size_t o, size_t k) {
    y[o] += c.x[i] * c.w[k];
    x[i] += c.y[o] * c.w[k];
    w[k] += c.x[i] * c.y[o];
  });
  // By whether channels are first.
  const std::vector<S> images[2] = {stored<S>(c.x),
                                    stored<S>(planes_of(c.x, c.s.n, c.s.groups * c.s.ci))};
  const std::vector<S> grads[2] = {stored<S>(c.y),
                                   stored<S>(planes_of(c.y, c.s.n, c.s.groups * c.s.co))};
  const std::vector<S> weight = stored<S>(c.w);
  for (ConvMode mode : {kConvForward, kConvData}) {
    for (const Layout layout : {kLast, kResultFirst, kFirst}) {
      const bool forward = mode == kConvForward;
      const int64_t channels = c.s.groups * (forward ? c.s.co : c.s.ci);
      ConvPlan p;
      build_conv(&p, c.s, dtype, mode, layout == kResultFirst);
      p.channels_first = layout == kFirst;
      if (p.channels_first) p.path = kConvPlanes;
      c.set_weight(&p);
      p.src = bytes((forward ? images : grads)[p.channels_first]);
      p.weight = bytes(weight);
      std::vector<float> want = forward ? y : x;
      // Results in f32 only: cuDNN rounds halves before it adds the bias.
      const std::vector<S> bias = stored<S>(std::vector<float>(size_t(channels), 5));
      p.bias = layout != kLast && sizeof(S) == 4 ? bytes(bias) : nullptr;
      for (float& v : want) v += p.bias ? 5.0f : 0.0f;
      if (p.path == kConvPlanes) want = planes_of(want, c.s.n, channels);
      std::vector<S> out(want.size());
      p.dst = bytes(out);
      in_orders(t.name, out, [&] { run(t.name, cuda::conv, cuda::conv_workspace, &p); });
      count_call(p);
      check(same_bits(out, stored<S>(want)), t.name, int(mode) * 3 + layout);
    }
  }
  for (const bool first : {false, true}) {
    ConvWeightPlan p;
    build_conv_weight(&p, c.s, dtype, sizeof(S), 0);
    p.channels_first = first;
    c.set_weight(&p);
    p.src = bytes(images[first]);
    p.y = bytes(grads[first]);
    std::vector<S> out(w.size());
    p.dst = bytes(out);
    in_orders(t.name, out,
              [&] { run(t.name, cuda::conv_weight, cuda::conv_weight_workspace, &p); });
    count_call(p);
    check(same_bits(out, stored<S>(w)), t.name, 6 + first);
  }
}

// y(co, p) = x(p) w(co, 0) + x(p + 1) w(co, 1) for side x side results: enough of them that a
// thread computes several.
void test_many_pixels(int64_t co, int64_t side) {
  Numbers numbers;
  ConvShape s = {1,         1,         1,         co,       {1, side, side + 1}, {1, side, side},
                 {1, 1, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  const std::vector<float> x = numbers_of(side * (side + 1), numbers);
  const std::vector<float> w = numbers_of(co * 2, numbers);
  ConvPlan p;
  build_conv(&p, s, TT_F32, kConvForward, true);
  p.channels_first = true;
  p.path = kConvPlanes;
  p.w_co = 2;
  p.w_ci = p.w_k[0] = p.w_k[1] = 0;
  p.w_k[2] = 1;
  p.src = bytes(x);
  p.weight = bytes(w);
  p.bias = nullptr;
  std::vector<float> y(size_t(co * side * side));
  p.dst = bytes(y);
  run("many pixels", cuda::conv, cuda::conv_workspace, &p);
  bool right = true;
  for (int64_t i = 0; i < co * side * side; i++) {
    const int64_t channel = i / (side * side), pixel = i % (side * side);
    const float* from = &x[size_t(pixel / side * (side + 1) + pixel % side)];
    const float* by = &w[size_t(channel * 2)];
    right &= y[size_t(i)] == from[0] * by[0] + from[1] * by[1];
  }
  check(right, "many pixels", int(co));
}

// Which algorithm of dnn_stub.cpp computes what a plan allows; 0: an own kernel.
struct Allowed {
  const char* name;
  int64_t channels;
  uint16_t math;
  int algorithm;
};
constexpr Allowed kAllowed[] = {
    {"nothing", 40, 0, 6},
    {"nothing, few channels", 20, 0, 0},
    {"TF32", 40, kTf32Conv, 4},
    {"TF32, few channels", 20, kTf32Conv, 4},
    {"TF32, too few channels for tensor cores", 4, kTf32Conv, 0},
    {"TF32 in products", 40, kTf32Matmul, 6},
    {"any order", 40, kNondeterministic, 2},
    {"own kernels", 40, kOwnConv, 0},
    {"own kernels and TF32", 20, kOwnConv | kTf32Conv, 0},
    {"own products", 40, kOwnMatmul, 6},
};
void test_allowed(const Allowed& t, const int* calls, int* takes) {
  const Conv c({t.name, 1, 1, t.channels, t.channels, {1, 4, 4}, {1, 2, 2}, 1, 0, 1});
  std::vector<float> y(c.y.size());
  c.each([&](size_t i, size_t o, size_t k) { y[o] += c.x[i] * c.w[k]; });
  ConvPlan p;
  build_conv(&p, c.s, TT_F32, kConvForward, false);
  p.math = t.math;
  c.set_weight(&p);
  p.src = bytes(c.x);
  p.weight = bytes(c.w);
  p.bias = nullptr;
  std::vector<float> out(y.size());
  p.dst = bytes(out);
  *takes = t.algorithm;
  const int before = *calls;
  run(t.name, cuda::conv, cuda::conv_workspace, &p);
  *takes = 0;
  check(*calls - before == (t.algorithm != 0), t.name, *calls - before);
  check(same_bits(out, y), t.name, 9);
}

}  // namespace

int main(int argc, char** argv) {
  const int *calls = nullptr, *searches = nullptr;
  if (argc > 1) {
    void* stub = dlopen(argv[1], RTLD_NOW);
    calls = static_cast<const int*>(dlsym(stub, "dnn_stub_calls"));
    searches = static_cast<const int*>(dlsym(stub, "dnn_stub_searches"));
    cuda::cudnn::use_library(argv[1]);
    test_case<float>(kCases[0], TT_F32);
    check(*calls == 0, "calls of cuDNN without its cuBLASLt", *calls);
    *static_cast<size_t*>(dlsym(stub, "dnn_stub_cudart")) = 0;
    cuda::cudnn::use_library(argv[1]);
    g_library_calls = 0;
  }
  for (const Case& t : kCases) {
    if (EMU_TSAN && t.n != 1) continue;
    test_case<float>(t, TT_F32);
    if (EMU_TSAN) continue;
    test_case<BF16>(t, TT_BF16);
    test_case<F16>(t, TT_F16);
  }
  if (!calls && !EMU_TSAN) {
    test_many_pixels(17, 256);
    test_many_pixels(9, 256);
    test_many_pixels(3, 512);
  }
  if (calls) {
    check(*calls == g_library_calls, "calls of cuDNN", *calls);
    check(*searches <= int(std::size(kCases)) * 2 * 6, "searches of cuDNN", *searches);
    int* const takes = static_cast<int*>(dlsym(dlopen(argv[1], RTLD_NOW), "dnn_stub_allowed"));
    for (const Allowed& t : kAllowed) test_allowed(t, calls, takes);
  }
  return finished();
}
