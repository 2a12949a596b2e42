// Attention forward and backward over several blocks of queries and keys, with causal order, masks,
// shared key heads and dropout, compared with the definition in double precision; also in halves,
// by tensor cores, and by cuDNN's descriptors: its argument is a cuDNN (sdpa_stub.cpp), which then
// computes in place of the kernels.
#include <dlfcn.h>
#include <math.h>

#include <iterator>

#include "kernel_test.h"
#include "kernels/cuda/attention/flash.h"
#include "kernels/cuda/attention/sdpa.h"
#include "kernels/functors/philox.h"
#include "plan/attention_build.h"

using namespace TT_NS;
using namespace TT_NS::test;

namespace {

struct Case {
  const char* name;
  int64_t heads, key_heads, queries, keys, width, value_width;
  bool causal, masked, drop;
};
constexpr Case kCases[] = {
    {"causal, dropout, shared heads", 2, 1, 70, 66, 5, 7, true, false, true},
    {"mask", 1, 1, 3, 70, 34, 3, false, true, false},
    {"wide rows, one block", 1, 1, 4, 6, 130, 140, false, true, true},
};

using Values = std::vector<double>;

struct Attention {
  const Case& t;
  Values q, k, v, g, out, lse, dq, dk, dv;
  std::vector<uint8_t> mask;
  AttentionPlan p = {};

  explicit Attention(const Case& c) : t(c) {
    Numbers numbers;
    const auto fill = [&](Values& x, int64_t n) {
      for (int64_t i = 0; i < n; i++) x.push_back(numbers.whole(-20, 20) / 16.0);
    };
    fill(q, t.heads * t.queries * t.width);
    fill(k, t.key_heads * t.keys * t.width);
    fill(v, t.key_heads * t.keys * t.value_width);
    fill(g, t.heads * t.queries * t.value_width);
    for (int64_t i = 0; i < t.queries * t.keys; i++) mask.push_back(numbers.whole(0, 3) > 0);
    out.resize(g.size());
    lse.resize(size_t(t.heads * t.queries));
    dq.resize(q.size());
    dk.resize(k.size());
    dv.resize(v.size());
    p.dtype = TT_F64;
    p.batch = 1;
    p.heads = t.heads;
    p.key_heads = t.key_heads;
    p.queries = t.queries;
    p.keys = t.keys;
    p.width = t.width;
    p.value_width = t.value_width;
    p.scale = 0.25;
    p.causal = t.causal;
    p.q = rows(q, t.queries, t.width);
    p.k = rows(k, t.keys, t.width);
    p.v = rows(v, t.keys, t.value_width);
    p.grad = rows(g, t.queries, t.value_width);
    p.out = rows(out, t.queries, t.value_width);
    if (t.masked) {
      p.mask_dtype = TT_BOOL;
      p.mask = reinterpret_cast<const char*>(mask.data());
      p.mask_query = t.keys;
      p.mask_key = 1;
    }
    p.drop = t.drop;
    p.threshold = 3 << 22;
    p.keep_scale = 4.0 / 3;
    p.seed = 7;
    p.offset = 5;
    p.lse = reinterpret_cast<char*>(lse.data());
    p.dq = reinterpret_cast<char*>(dq.data());
    p.dk = reinterpret_cast<char*>(dk.data());
    p.dv = reinterpret_cast<char*>(dv.data());
  }
  static AttentionRows rows(Values& x, int64_t n, int64_t width) {
    return {reinterpret_cast<char*>(x.data()), 0, n * width * 8, width * 8};
  }
  bool attends(int64_t i, int64_t j) const {
    if (t.causal && j > i) return false;
    return !t.masked || mask[size_t(i * t.keys + j)];
  }
  double keep(int64_t row, int64_t j) const {
    if (!t.drop) return 1;
    const int64_t word = row * attention_row_words(t.keys) + j;
    const uint32_t bits = philox_word(p.seed, p.offset, uint64_t(word));
    return int32_t(bits >> 8) < p.threshold ? p.keep_scale : 0;
  }

  // The results by the definition: of one query after the other.
  struct Expected {
    Values out, dq, dk, dv, lse;
    // What the gradients may differ by, in units of the rounding of halves: z and ds are rounded,
    // and delta is computed from a rounded `out`.
    Values dq_error, dk_error, dv_error;
  };
  Expected expected() const {
    Expected e = {Values(out.size()), Values(q.size()), Values(k.size()), Values(v.size()),
                  Values(lse.size()), Values(q.size()), Values(k.size()), Values(v.size())};
    for (int64_t row = 0; row < t.heads * t.queries; row++) {
      const int64_t i = row % t.queries;
      const int64_t key = row / t.queries / (t.heads / t.key_heads) * t.keys;
      const double* x = &q[size_t(row * t.width)];
      const double* gradient = &g[size_t(row * t.value_width)];
      Values w(size_t(t.keys)), dw(size_t(t.keys));
      double sum = 0, delta = 0, delta_error = 0;
      for (int64_t j = 0; j < t.keys; j++) {
        double score = 0;
        for (int64_t d = 0; d < t.width; d++) score += x[d] * k[size_t((key + j) * t.width + d)];
        w[size_t(j)] = attends(i, j) ? exp(score * p.scale) : 0;
        sum += w[size_t(j)];
      }
      e.lse[size_t(row)] = log(sum);
      for (int64_t j = 0; j < t.keys; j++) {
        w[size_t(j)] /= sum > 0 ? sum : 1;
        const double factor = keep(row, j);
        for (int64_t d = 0; d < t.value_width; d++) {
          const size_t at = size_t((key + j) * t.value_width + d);
          e.out[size_t(row * t.value_width + d)] += w[size_t(j)] * factor * v[at];
          e.dv[at] += w[size_t(j)] * factor * gradient[d];
          e.dv_error[at] += w[size_t(j)] * factor * fabs(gradient[d]);
          dw[size_t(j)] += gradient[d] * v[at] * factor;
        }
        delta += w[size_t(j)] * dw[size_t(j)];
      }
      for (int64_t d = 0; d < t.value_width; d++)
        delta_error += fabs(gradient[d] * e.out[size_t(row * t.value_width + d)]);
      for (int64_t j = 0; j < t.keys; j++)
        for (int64_t d = 0; d < t.width; d++) {
          const double ds = w[size_t(j)] * (dw[size_t(j)] - delta) * p.scale;
          const size_t at = size_t((key + j) * t.width + d);
          e.dq[size_t(row * t.width + d)] += ds * k[at];
          e.dk[at] += ds * x[d];
          const double error = fabs(ds) + w[size_t(j)] * delta_error * p.scale;
          e.dq_error[size_t(row * t.width + d)] += error * fabs(k[at]);
          e.dk_error[at] += error * fabs(x[d]);
        }
    }
    return e;
  }
};

void check_close(const char* name, const Values& got, const Values& want, int which) {
  for (size_t i = 0; i < got.size(); i++) {
    const bool right = fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]));
    check(right, name, which);
    if (!right) return;
  }
}

void test_case(const Case& t) {
  Attention a(t);
  const Attention::Expected want = a.expected();
  in_orders(t.name, a.out, [&] { run(t.name, cuda::attention, cuda::attention_workspace, &a.p); });
  check_close(t.name, a.out, want.out, 0);
  const auto backward = [&] {
    run(t.name, cuda::attention_backward, cuda::attention_backward_workspace, &a.p);
  };
  in_orders(t.name, a.dq, backward);
  if (!EMU_TSAN) {
    in_orders(t.name, a.dk, backward);
    in_orders(t.name, a.dv, backward);
  }
  check_close(t.name, a.dq, want.dq, 1);
  check_close(t.name, a.dk, want.dk, 2);
  check_close(t.name, a.dv, want.dv, 3);
}

// Halves: width and value width up to 128, in kernels for 32, 64 and 128; the last one is too wide
// for them.
constexpr Case kHalfCases[] = {
    {"halves, causal, dropout, shared heads", 2, 1, 70, 66, 5, 7, true, false, true},
    {"halves, mask", 1, 1, 3, 70, 34, 3, false, true, false},
    {"halves, whole blocks", 1, 1, 64, 192, 32, 32, false, false, false},
    {"halves, 64", 2, 2, 65, 130, 64, 64, true, false, false},
    {"halves, 128", 1, 1, 66, 65, 128, 120, true, true, true},
    {"halves, several blocks", 2, 1, 140, 136, 64, 64, true, false, false},
    {"halves, 128, all keys", 1, 1, 34, 72, 128, 128, false, false, false},
    {"halves, shared heads", 4, 2, 21, 35, 16, 24, true, false, false},
    {"halves, wide", 1, 1, 4, 6, 130, 140, false, true, true},
};

// Floats, in kernels for 32, 64 and 128; rows that are not whole packs of four are left to those of
// doubles.
constexpr Case kFloatCases[] = {
    {"floats, causal, dropout, shared heads", 2, 1, 70, 130, 8, 12, true, false, true},
    {"floats, mask", 1, 1, 3, 70, 36, 4, false, true, false},
    {"floats, 64", 2, 1, 140, 136, 64, 64, true, false, false},
    {"floats, 128", 1, 1, 66, 70, 128, 120, true, false, true},
    {"floats, 32, all keys", 1, 1, 34, 72, 32, 32, false, false, false},
    {"floats, more keys than splits", 1, 1, 3, 2120, 8, 8, false, false, false},
    {"floats, one block of keys", 2, 1, 70, 40, 12, 8, true, true, true},
    {"floats, no keys", 1, 1, 3, 0, 8, 8, false, false, false},
    {"floats, odd rows", 1, 1, 5, 70, 33, 35, true, false, false},
};

AttentionRows rows_of(Floats& x, int64_t n, int64_t width) {
  const int64_t item = x.dtype() == TT_F32 ? 4 : 2;
  return {x.data(), 0, n * width * item, width * item};
}
bool g_library = false;   // whether a cuDNN is there
bool g_backward = false;  // also for gradients
int32_t g_math = 0;
// Whether it has the case.
bool is_served(const Case& t, int32_t dtype) {
  return g_library && dtype == TT_BF16 && !t.masked && !t.drop && t.width % 8 == 0;
}
// Weights and results are rounded to halves, each to a relative error of `unit`; sums of floats are
// some 16 roundings.
double unit_of(int32_t dtype) {
  if (dtype == TT_F32) return 0x1p-20;
  return dtype == TT_F16 ? 0x1p-11 : 0x1p-8;
}
void test_rounded(const Case& t, int32_t dtype, bool by_groups = false) {
  Attention a(t);
  const Attention::Expected want = a.expected();
  const auto rounded = [&](const Values& x) {
    // Some are not aligned.
    Floats h(dtype, int64_t(x.size()), dtype == TT_F32 ? 0 : int64_t(x.size() % 2));
    for (size_t i = 0; i < x.size(); i++) h.set(int64_t(i), x[i]);
    return h;
  };
  Floats q = rounded(a.q), k = rounded(a.k), v = rounded(a.v), out = rounded(a.out);
  Floats lse(TT_F32, int64_t(a.lse.size()));
  a.p.dtype = dtype;
  a.p.math = g_math;
  a.p.q = rows_of(q, t.queries, t.width);
  a.p.k = rows_of(k, t.keys, t.width);
  a.p.v = rows_of(v, t.keys, t.value_width);
  a.p.out = rows_of(out, t.queries, t.value_width);
  a.p.lse = lse.data();
  run_in_orders(t.name, cuda::attention, cuda::attention_workspace, &a.p, {&out, &lse});
  const double unit = unit_of(dtype);
  const double largest = 1.25 * (t.drop ? a.p.keep_scale : 1);  // of a weight times a value
  for (int64_t i = 0; i < out.size(); i++)
    check(fabs(out[i] - want.out[size_t(i)]) <= 2.01 * unit * largest, t.name, int(i));
  for (int64_t i = 0; i < lse.size(); i++)
    check(fabs(lse[i] - want.lse[size_t(i)]) <= 1e-5 || lse[i] == want.lse[size_t(i)], t.name, -1);

  Floats g = rounded(a.g);
  Floats dq(dtype, int64_t(a.dq.size())), dk(dtype, int64_t(a.dk.size()));
  Floats dv(dtype, int64_t(a.dv.size()));
  a.p.grad = rows_of(g, t.queries, t.value_width);
  a.p.dq = dq.data();
  a.p.dk = dk.data();
  a.p.dv = dv.data();
  check(cuda::flash::serves_wgmma(a.p) == by_groups, t.name, -5);
  run_in_orders(t.name, cuda::attention_backward, cuda::attention_backward_workspace, &a.p,
                {&dq, &dk, &dv});
  // z, ds and the sums are rounded to halves.
  const double least = dtype == TT_F32 ? 1e-6 : 1e-5;
  const double roundings = dtype == TT_F32 ? 1.01 : 2.02;
  const auto near = [&](Floats& got, const Values& wanted, const Values& error, int which) {
    for (int64_t i = 0; i < got.size(); i++)
      check(fabs(got[i] - wanted[size_t(i)]) <= roundings * unit * error[size_t(i)] + least, t.name,
            which);
  };
  near(dq, want.dq, want.dq_error, -2);
  near(dk, want.dk, want.dk_error, -3);
  near(dv, want.dv, want.dv_error, -4);
}

// Gradients by the products of a warpgroup: several blocks of keys and of queries, shared heads,
// rows that fill no panel. The first cases are for ThreadSanitizer, too.
constexpr Case kGroupCases[] = {
    {"groups, 64", 1, 1, 130, 130, 64, 64, true, false, false},
    {"groups, 128", 1, 1, 66, 130, 128, 128, false, false, false},
    {"groups, 64, causal, shared heads", 2, 1, 270, 260, 64, 64, true, false, false},
    {"groups, 64, more queries", 2, 1, 384, 128, 64, 48, false, false, false},
    {"groups, 128, causal", 1, 1, 200, 300, 128, 120, true, false, false},
    {"groups, 128, narrow values", 1, 1, 65, 257, 104, 16, false, false, false},
};
void test_groups() {
  cuda::flash::use_wgmma(true);
  int n = 0;
  for (const Case& t : kGroupCases) {
    if (EMU_TSAN && n == 2) break;
    test_rounded(t, n++ % 2 ? TT_F16 : TT_BF16, true);
  }
  // Others are left to the kernels that serve them.
  Attention a(kGroupCases[0]);
  a.p.dtype = TT_BF16;
  check(cuda::flash::serves_wgmma(a.p), "a pass for groups", 0);
  a.p.drop = true;
  check(!cuda::flash::serves_wgmma(a.p), "dropout", 0);
  a.p.drop = false;
  a.p.mask_dtype = TT_BOOL;
  check(!cuda::flash::serves_wgmma(a.p), "a mask", 0);
  a.p.mask_dtype = 0;
  a.p.scale = -1;
  check(!cuda::flash::serves_wgmma(a.p), "scores that are scaled first", 0);
  a.p.scale = 1;
  a.p.q.row += 2;
  check(!cuda::flash::serves_wgmma(a.p), "rows that are not of packs", 0);
  a.p.q.row -= 2;
  cuda::flash::use_wgmma(false);
  check(!cuda::flash::serves_wgmma(a.p), "a pass before it is asked for", 0);
}

// The graphs of the stub at argv[1].
void test_library(const char* path) {
  void* const stub = dlopen(path, RTLD_NOW);
  int& calls = *static_cast<int*>(dlsym(stub, "sdpa_stub_calls"));
  int& plans = *static_cast<int*>(dlsym(stub, "sdpa_stub_plans"));
  bool& refuses = *static_cast<bool*>(dlsym(stub, "sdpa_stub_refuses"));
  g_library = true;
  // Everything by the library, gradients by each of their graphs; the forward pass alone, whose lse
  // own kernels read; nothing, because it makes plans and refuses to run them.
  enum { kAll, kVarying, kForward, kRefuses, kWays };
  for (int way = 0; way < kWays; way++) {
    g_backward = way == kAll || way == kVarying;
    g_math = way == kVarying ? kNondeterministic : 0;
    refuses = way == kRefuses;
    calls = plans = 0;
    cuda::sdpa::use_library(path, {0, way == kAll});
    int served = 0;
    for (const Case& t : kHalfCases) {
      if (t.queries * t.keys > (g_backward ? 5000 : 1000)) continue;  // the stub takes its time
      const bool is_here = is_served(t, TT_BF16);
      served += is_here;
      const bool others = way == kAll && t.key_heads > 1;  // that it does not have
      if (others && (EMU_TSAN ? t.queries == 3 : t.width < 40)) test_rounded(t, TT_F16);
      if (!EMU_TSAN && is_here) test_rounded(t, TT_BF16);
    }
    // Forward and backward, each in three orders of threads; who refuses is asked once.
    const int tasks = g_backward ? 2 : 1;
    check(served == (g_backward ? 2 : 1), "cases for cuDNN", served);
    check(calls == served * tasks * (refuses ? 1 : 3), "calls of cuDNN", calls);
    check(plans == served * tasks, "plans of cuDNN", plans);
  }
  refuses = false;
  g_math = 0;

  // By default only large forward passes are left to it.
  Attention a({"large", 64, 64, 16, 16, 16, 16, true, false, false});
  a.p.dtype = TT_BF16;
  cuda::sdpa::use_library(path, cuda::sdpa::kWhereFaster);
  check(!cuda::sdpa::serves(a.p, cuda::sdpa::kForward), "a small pass", 0);
  check(cuda::attention_workspace(&a.p) == 0, "its workspace", 0);
  a.p.keys = 16384;
  a.p.queries = 1024;
  check(cuda::sdpa::serves(a.p, cuda::sdpa::kForward), "a large pass", 0);
  check(cuda::attention_workspace(&a.p) > 0, "its workspace", 1);
  check(!cuda::sdpa::serves(a.p, cuda::sdpa::kBackward), "its gradients", 0);
  a.p.math = kNondeterministic;
  check(cuda::sdpa::serves(a.p, cuda::sdpa::kBackward), "its gradients of varying bits", 0);
  const size_t sums = size_t(a.p.batch * a.p.heads * a.p.queries * a.p.width) * 4;
  check(cuda::sdpa::workspace_bytes(a.p, cuda::sdpa::kBackward) > sums, "their workspace", 0);
  a.p.math = kOwnAttention;
  check(!cuda::sdpa::serves(a.p, cuda::sdpa::kForward), "a pass for own kernels", 0);
  a.p.math = kOwnConv;
  check(cuda::sdpa::serves(a.p, cuda::sdpa::kForward), "a pass beside own convolutions", 0);
  a.p.mask_dtype = TT_BOOL;
  check(!cuda::sdpa::serves(a.p, cuda::sdpa::kForward), "a masked pass", 0);
  cuda::sdpa::use_library(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    test_library(argv[1]);
    return finished();
  }
  for (const Case& t : kCases)
    if (!EMU_TSAN || t.heads == 1) test_case(t);
  for (const Case& t : kHalfCases) {
    if (EMU_TSAN ? t.queries == 3 : t.width < 40) test_rounded(t, TT_F16);
    if (!EMU_TSAN) test_rounded(t, TT_BF16);
  }
  test_groups();
  for (const Case& t : kFloatCases)
    if (!EMU_TSAN || t.masked) test_rounded(t, TT_F32);
  return finished();
}
