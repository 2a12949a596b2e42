// Fourier transforms of each radix, of lengths without small factors, and along an inner dimension,
// compared with the definition.
#include <dlfcn.h>
#include <math.h>

#include "check.h"
#include "kernels/cuda/fft/cufft.h"
#include "plan/fft_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Case {
  const char* name;
  FftKind kind;
  bool inverse;
  int64_t outer, n, inner;
  int64_t offset = 0;  // of real numbers
};
constexpr Case kCases[] = {
    {"8 3 5 2", kFftComplex, false, 2, 240, 1},
    {"radix 7 and 13", kFftComplex, true, 1, 91, 3},
    {"a large prime", kFftComplex, true, 2, 67, 1},
    {"real", kFftReal, false, 2, 30, 2},
    {"real, a large prime", kFftReal, false, 1, 71, 1},
    {"real, inverse, several arrays", kFftReal, true, 3, 12, 2},
    {"real, not aligned", kFftReal, false, 2, 8, 1, 1},
    {"real, odd arrays", kFftReal, false, 2, 9, 3},
    {"hermitian", kFftHermitian, true, 1, 16, 2},
    {"hermitian, forward", kFftHermitian, false, 2, 10, 3},
    {"hermitian, odd", kFftHermitian, true, 3, 9, 1},
    {"one number", kFftComplex, false, 3, 1, 2},
};

struct Number {
  double re, im;
};

void test_case(const Case& t) {
  Numbers numbers;
  FftPlan p;
  build_fft(&p, TT_F64, t.kind, t.inverse, t.outer, t.n, t.inner, 0.5);
  const int64_t inputs = fft_inputs(p), outputs = fft_outputs(p);
  std::vector<Number> x(size_t(t.outer * inputs * t.inner));
  std::vector<double> real;
  for (Number& v : x) {
    v = {numbers.whole(-9, 9) / 4.0, numbers.whole(-9, 9) / 4.0};
    real.push_back(v.re);
  }
  const bool is_real = t.kind == kFftReal;
  real.insert(real.begin(), size_t(t.offset), NAN);
  const int64_t parts = t.kind == kFftHermitian ? 1 : 2;
  std::vector<double> out(size_t(t.outer * outputs * t.inner * parts));
  p.in = is_real ? reinterpret_cast<const char*>(real.data() + t.offset)
                 : reinterpret_cast<const char*>(x.data());
  p.out = reinterpret_cast<char*>(out.data());
  in_orders(t.name, out, [&] { run(t.name, cuda::fft, cuda::fft_workspace, &p); });
  for (int64_t i = 0; i < t.outer * outputs * t.inner; i++) {
    const int64_t k = i / t.inner % outputs;
    Number sum = {0, 0};
    for (int64_t j = 0; j < t.n; j++) {
      const bool mirrored = j >= inputs;
      const int64_t from = mirrored ? t.n - j : j;
      Number v = x[size_t((i / t.inner / outputs * inputs + from) * t.inner + i % t.inner)];
      if (is_real) v.im = 0;
      if (mirrored) v.im = -v.im;
      const double angle = (t.inverse ? 2 : -2) * M_PI * double(j * k % t.n) / double(t.n);
      sum.re += 0.5 * (v.re * cos(angle) - v.im * sin(angle));
      sum.im += 0.5 * (v.re * sin(angle) + v.im * cos(angle));
    }
    const double* got = &out[size_t(i * parts)];
    const double error = fabs(got[0] - sum.re) + (parts == 2 ? fabs(got[1] - sum.im) : 0);
    check(error < 1e-11, t.name, int(i));
    if (error >= 1e-11) return;
  }
}

// A plan whose transform a graph has captured stays, whatever is planned after it.
void test_captured(const int* last, int (*has)(int)) {
  static int captured;  // a stream
  static const emu::LateStreams streams = {
      .is_later = [](void* stream) { return stream == &captured; },
      .enqueue =
          [](void*, const emu::Launch& launch, void (*drop)(void*)) {
            check(emu::run(launch) == TT_OK, "a captured launch", 0);
            drop(launch.closure);
          },
  };
  emu::late_streams = &streams;
  constexpr int64_t kMost = 300;
  std::vector<Number> x(size_t(3 * kMost)), out(size_t(3 * kMost));
  const auto transform = [&](int64_t outer, int64_t n, void* stream) {
    FftPlan p;
    build_fft(&p, TT_F64, kFftComplex, false, outer, n, 1, 0.5);
    p.in = reinterpret_cast<const char*>(x.data());
    p.out = reinterpret_cast<char*>(out.data());
    std::vector<WorkspaceUnit> workspace = workspace_of(cuda::fft_workspace, &p);
    check(cuda::fft(&p, stream, workspace.data()) == TT_OK, "a transform", int(outer));
  };
  transform(1, 3, &captured);
  const int handle = *last;
  transform(2, 3, nullptr);
  const int other = *last;
  for (int64_t outer = 1; outer <= kMost; outer++) transform(outer, 2, nullptr);
  check(has(handle), "a captured plan", handle);
  check(!has(other), "another plan", other);
  // Each of a graph finds a place, or own kernels would get the memory that cuFFT asked for.
  for (int64_t n = 3; n < 43; n++) transform(3, n, &captured);
  for (int64_t n = 3; n < 43; n++) {
    FftPlan p;
    build_fft(&p, TT_F64, kFftComplex, false, 3, n, 1, 0.5);
    check(cuda::cufft::serves(p), "one of many captured plans", int(n));
  }
  emu::late_streams = nullptr;
}

}  // namespace

// Argument: a stub of cuFFT (fft_stub.cpp), which the transforms are left to. Those that have been
// planned are not planned again.
int main(int argc, char** argv) {
  const auto test_all = [] {
    for (const Case& t : kCases)
      if (!EMU_TSAN || t.n < 40) test_case(t);
  };
  if (argc == 1) {
    test_all();
    return finished();
  }
  void* const library = dlopen(argv[1], RTLD_NOW);
  const int* const calls = library ? static_cast<int*>(dlsym(library, "fft_stub_calls")) : nullptr;
  const int* const plans = library ? static_cast<int*>(dlsym(library, "fft_stub_plans")) : nullptr;
  const int* const last = library ? static_cast<int*>(dlsym(library, "fft_stub_last")) : nullptr;
  int (*has)(int) = nullptr;
  if (library) *reinterpret_cast<void**>(&has) = dlsym(library, "fft_stub_has");
  if (!calls || !plans || !last || !has) return printf("no stub: %s\n", dlerror()), 1;
  cuda::cufft::use_library(argv[1]);
  test_all();
  const int made = *plans;
  const int n_cases = int(sizeof kCases / sizeof *kCases);
  // A transform of one number takes none, nor do real arrays of which some are not aligned.
  check(made == n_cases - 2, "plans", made);
  check(*calls >= 3 * made, "calls", *calls);
  test_all();
  check(*plans == made, "plans, again", *plans);
  FftPlan p;
  build_fft(&p, TT_F32, kFftComplex, false, 1, 8, 1, 1.0);
  check(cuda::cufft::serves(p), "a transform", 0);
  p.math = kOwnFft;
  check(!cuda::cufft::serves(p), "a transform for own kernels", 0);
  test_captured(last, has);
  return finished();
}
