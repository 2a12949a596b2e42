// Products by cuBLASLt: what its descriptors say, read by a stub of the library (lt_stub.cpp), is
// the product that the own kernels compute; descriptors are kept, and what it cannot serve is left
// to the own kernels. Argument: the stub.
#include <dlfcn.h>

#include "check.h"
#include "kernels/cuda/matmul/lt.h"
#include "plan/matmul_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

enum Addend { kNone, kMatrix, kBias };
struct Case {
  const char* name;
  int64_t batch, m, n, k;
  bool a_turned, b_turned;
  Addend addend;
  bool served;
};
constexpr Case kCases[] = {
    {"row-major", 1, 12, 13, 14, false, false, kNone, true},
    {"turned", 1, 12, 13, 14, true, true, kMatrix, true},
    {"a batch", 3, 9, 5, 6, false, true, kMatrix, true},
    {"bias", 1, 10, 7, 5, false, true, kBias, true},
    {"one column", 1, 9, 1, 6, false, false, kNone, true},
    {"one row", 1, 1, 9, 6, false, true, kMatrix, true},
    {"no terms", 1, 3, 4, 0, false, false, kNone, false},
};

template <class T>
void test_case(const Case& t, int32_t dtype, const char* stub, const int* calls) {
  Numbers numbers;
  const auto fill = [&](int64_t n) {
    std::vector<T> v;
    for (int64_t i = 0; i < n; i++) v.push_back(T(numbers.whole(-3, 3)));
    return v;
  };
  const std::vector<T> a = fill(t.batch * t.m * t.k + 1), b = fill(t.batch * t.k * t.n + 1);
  const std::vector<T> d = fill(t.batch * t.m * t.n);
  const int64_t a_size[3] = {t.batch, t.m, t.k}, b_size[3] = {t.batch, t.k, t.n};
  const int64_t c_size[3] = {t.batch, t.m, t.n}, c_stride[3] = {t.m * t.n, t.n, 1};
  const int64_t a_stride[3] = {t.m * t.k, t.a_turned ? 1 : t.k, t.a_turned ? t.m : 1};
  const int64_t b_stride[3] = {t.k * t.n, t.b_turned ? 1 : t.n, t.b_turned ? t.k : 1};
  const int64_t bias_stride[1] = {1};
  std::vector<T> out[2];
  for (int provider = 0; provider < 2; provider++) {
    out[provider].assign(size_t(t.batch * t.m * t.n), T(-99));
    const MatmulOperand x = {a.data(), 3, a_size, a_stride};
    const MatmulOperand y = {b.data(), 3, b_size, b_stride};
    const MatmulOperand result = {out[provider].data(), 3, c_size, c_stride};
    const MatmulOperand matrix = {d.data(), 3, c_size, c_stride};
    const MatmulOperand row = {d.data(), 1, &c_size[2], bias_stride};
    const MatmulScalar two = {2, 0, 2}, three = {3, 0, 3};
    MatmulPlan plan;
    if (t.addend == kMatrix) matmul_build(&plan, dtype, x, y, &matrix, result, two, three);
    else
      matmul_build(&plan, dtype, x, y, t.addend == kBias ? &row : nullptr, result, kMatmulOne,
                   kMatmulOne);
    cuda::cublas_lt::use_library(provider ? stub : nullptr);
    const int before = *calls;
    run(t.name, cuda::matmul, cuda::matmul_workspace, &plan);
    run(t.name, cuda::matmul, cuda::matmul_workspace, &plan);
    check(*calls - before == (provider && t.served ? 2 : 0), t.name, provider);
  }
  check(out[0] == out[1], t.name, 2);
}

// What a plan allows decides who computes a product, and whether in TF32.
struct Allowed {
  const char* name;
  int32_t dtype;
  uint16_t math;
  int products, tf32;
};
constexpr Allowed kAllowed[] = {
    {"nothing", TT_F32, 0, 1, 0},
    {"TF32", TT_F32, kTf32Matmul, 1, 1},
    {"TF32, f64", TT_F64, kTf32Matmul, 1, 0},
    {"TF32 in convolutions", TT_F32, kTf32Conv, 1, 0},
    {"any order", TT_F32, kNondeterministic, 1, 0},
    {"own kernels", TT_F32, kOwnMatmul, 0, 0},
    {"own kernels and TF32", TT_F32, kOwnMatmul | kTf32Matmul, 0, 0},
    {"own convolutions", TT_F32, kOwnConv, 1, 0},
    {"nothing, again", TT_F32, 0, 1, 0},
};
void test_allowed(const Allowed& t, const int* products, const int* tf32) {
  const std::vector<double> zeros(6 * 7);
  std::vector<double> out(6 * 5, -99);
  MatmulPlan plan;
  matmul_build_2d(&plan, t.dtype, 6, 5, 7, zeros.data(), 7, 1, zeros.data(), 5, 1, out.data());
  plan.math = t.math;
  const int products_before = *products;
  const int tf32_before = *tf32;
  run(t.name, cuda::matmul, cuda::matmul_workspace, &plan);
  check(*products - products_before == t.products, t.name, 0);
  check(*tf32 - tf32_before == t.tf32, t.name, 1);
  check(out[0] == 0, t.name, 2);
}

// Each of many products chooses its algorithm once.
void test_many(const int* choices) {
  constexpr int kSide = 10;
  alignas(256) static float a[64], b[64];
  alignas(256) static float out[(kSide + 2) * (kSide + 12)];
  std::vector<WorkspaceUnit> workspace(cuda::cublas_lt::kWorkspaceBytes / sizeof(WorkspaceUnit));
  const int before = *choices;
  for (int i = 0; i < 2 * kSide * kSide; i++) {
    const int64_t m = 2 + i % kSide;
    const int64_t n = 12 + i / kSide % kSide;
    MatmulPlan plan;
    matmul_build_2d(&plan, TT_F32, m, n, 3, a, 3, 1, b, n, 1, out);
    check(cuda::cublas_lt::run(plan, nullptr, workspace.data()) == TT_OK, "one of many", i);
  }
  check(*choices - before == kSide * kSide, "an algorithm for each of many", *choices - before);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const stub = argc > 1 ? argv[1] : "";
  void* const library = dlopen(stub, RTLD_NOW);
  const int* const calls =
      library ? static_cast<int*>(dlsym(library, "lt_stub_products")) : nullptr;
  const int* const choices =
      library ? static_cast<int*>(dlsym(library, "lt_stub_choices")) : nullptr;
  const int* const tf32 = library ? static_cast<int*>(dlsym(library, "lt_stub_tf32")) : nullptr;
  if (!calls || !choices || !tf32) return printf("no stub: %s\n", dlerror()), 1;
  for (const Case& t : kCases) {
    test_case<float>(t, TT_F32, stub, calls);
    test_case<double>(t, TT_F64, stub, calls);
  }
  check(*choices == 12, "an algorithm for each geometry", *choices);
  cuda::cublas_lt::use_library(stub);
  for (const Allowed& t : kAllowed) test_allowed(t, calls, tf32);
  cuda::cublas_lt::use_library(stub);
  test_many(choices);
  cuda::cublas_lt::use_library("/nowhere/libcublasLt.so");
  MatmulPlan plan = {};
  check(!cuda::cublas_lt::serves(plan), "a library that is absent", 0);
  return finished();
}
