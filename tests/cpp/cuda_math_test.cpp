// tt_ctx_set_cuda_math: what is allowed is in the plans that libraries may serve, in those of
// backward, and in plans of captured graphs as it was in the recorded calls.
#include "tt.h"

#include "core/ctx.h"
#include "graph/plan/plan.h"
#include "plan/gen/plans.h"

#include <gtest/gtest.h>

#include <string.h>

#include <map>
#include <string>
#include <vector>

namespace TT_NS {
namespace {

// The field `math` of a plan; false if its kernel has none.
bool math_of(const char* kernel, const void* plan, uint32_t* math) {
  const std::string name = kernel;
  if (name == "matmul") *math = static_cast<const MatmulPlan*>(plan)->math;
  else if (name == "conv") *math = static_cast<const ConvPlan*>(plan)->math;
  else if (name == "conv_weight") *math = static_cast<const ConvWeightPlan*>(plan)->math;
  else if (name == "attention" || name == "attention_backward")
    *math = static_cast<const AttentionPlan*>(plan)->math;
  else if (name == "fft") *math = static_cast<const FftPlan*>(plan)->math;
  else if (name == "eigh") *math = static_cast<const MatrixPlan*>(plan)->math;
  else return false;
  return true;
}

struct Recorder : WorkObserver {
  std::map<std::string, uint32_t> math = {};  // by kernel
};
int32_t record(WorkObserver& w, const Kernel& k, const void* plan, int64_t units, int64_t grain) {
  uint32_t math = 0;
  if (math_of(k.name, plan, &math)) static_cast<Recorder&>(w).math[k.name] = math;
  return run_kernel(k, plan, units, grain);
}

Recorder recorder() {
  Recorder r = {};
  r.launch = record;
  r.read = [](WorkObserver&, const Tensor&) {};
  r.write = [](WorkObserver&, const Tensor&) {};
  r.check = [](WorkObserver&, const Tensor&, const DeviceCheck&) { return true; };
  return r;
}

tt_cuda_math_opts with(uint64_t set, int32_t tt_cuda_math_opts::*field, int32_t value) {
  tt_cuda_math_opts o = {};
  o.set = set;
  o.*field = value;
  return o;
}
const tt_cuda_math_opts kTf32 = with(TT_CUDA_MATH_MATMUL_TF32, &tt_cuda_math_opts::matmul_tf32, 1);
const tt_cuda_math_opts kOwn = with(TT_CUDA_MATH_CUBLASLT, &tt_cuda_math_opts::cublaslt, 0);

class CudaMathTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tt_ctx_new(nullptr, &c), TT_OK);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
  }
  void TearDown() override {
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
  }
  tt_tensor* ones(std::vector<int64_t> shape) {
    tt_tensor* t = nullptr;
    EXPECT_EQ(tt_ones(c, shape.data(), int64_t(shape.size()), nullptr, &t), TT_OK);
    return t;
  }
  tt_tensor* product(const tt_tensor* x) {
    tt_tensor* y = nullptr;
    EXPECT_EQ(tt_matmul(c, x, x, &y), TT_OK);
    return y;
  }
  void set(const tt_cuda_math_opts* opts) { EXPECT_EQ(tt_ctx_set_cuda_math(c, opts), TT_OK); }

  // The plans of an operator of each kind, and of their gradients.
  Recorder all_kinds() {
    Recorder r = recorder();
    Ctx& inner = *reinterpret_cast<Ctx*>(c);
    inner.work = &r;
    inner.watched |= kWatchWork;
    tt_tensor *image = ones({1, 3, 9, 9}), *weight = ones({5, 3, 3, 3}), *rows = ones({1, 2, 8, 4});
    tt_tensor *y = nullptr, *z = nullptr, *w = nullptr, *loss = nullptr;
    for (tt_tensor* t : {weight, rows}) EXPECT_EQ(tt_requires_grad_(c, t, 1), TT_OK);
    product(ones({4, 4}));
    EXPECT_EQ(tt_conv2d(c, image, weight, nullptr, nullptr, &y), TT_OK);
    EXPECT_EQ(tt_sum(c, y, nullptr, &loss), TT_OK);
    EXPECT_EQ(tt_backward(c, loss, nullptr), TT_OK);
    EXPECT_EQ(tt_scaled_dot_product_attention(c, rows, rows, rows, nullptr, nullptr, &y), TT_OK);
    EXPECT_EQ(tt_sum(c, y, nullptr, &loss), TT_OK);
    EXPECT_EQ(tt_backward(c, loss, nullptr), TT_OK);
    EXPECT_EQ(tt_fft_rfft(c, ones({8}), nullptr, &y), TT_OK);
    EXPECT_EQ(tt_linalg_eigh(c, ones({4, 4}), nullptr, &w, &z), TT_OK);
    inner.watched &= uint8_t(~kWatchWork);
    inner.work = nullptr;
    return r;
  }
  // The fields of the products of a plan, in their order.
  std::vector<uint32_t> products_of(const tt_graph* g) {
    tt_plan* plan = nullptr;
    EXPECT_EQ(tt_plan_new(c, g, nullptr, &plan), TT_OK);
    std::vector<uint32_t> found;
    for (const PlanStep& s : reinterpret_cast<Plan*>(plan)->steps)
      if (s.kernel && !strcmp(s.kernel->name, "matmul"))
        found.push_back(reinterpret_cast<const MatmulPlan*>(s.plan)->math);
    tt_plan_release(plan);
    return found;
  }
  tt_ctx* c = nullptr;
};

TEST_F(CudaMathTest, IsInPlans) {
  tt_cuda_math_opts opts = {};
  opts.set = 0xff;
  opts.conv_tf32 = opts.cudnn = opts.cusolver = 1;
  constexpr uint32_t kWanted = kTf32Conv | kNondeterministic | kOwnMatmul | kOwnAttention | kOwnFft;
  set(&opts);
  const Recorder allowed = all_kinds();
  set(nullptr);
  const Recorder defaults = all_kinds();
  EXPECT_GE(allowed.math.size(), 5u);
  for (const auto& [name, math] : allowed.math) EXPECT_EQ(math, kWanted) << name;
  EXPECT_EQ(defaults.math.size(), allowed.math.size());
  for (const auto& [name, math] : defaults.math) EXPECT_EQ(math, 0u) << name;
}

// What an omitted field says is its default, not what was set before.
TEST_F(CudaMathTest, ReplacesAllFields) {
  Ctx& inner = *reinterpret_cast<Ctx*>(c);
  set(&kTf32);
  EXPECT_EQ(inner.cuda_math, uint32_t(kTf32Matmul));
  set(&kOwn);
  EXPECT_EQ(inner.cuda_math, uint32_t(kOwnMatmul));
  tt_cuda_math_opts unknown = {};
  unknown.set = 1 << 8;
  EXPECT_NE(tt_ctx_set_cuda_math(c, &unknown), TT_OK);
  EXPECT_EQ(inner.cuda_math, uint32_t(kOwnMatmul));
}

// A convolution of windows of one pixel is a product, and obeys what convolutions obey.
TEST_F(CudaMathTest, OfProductsThatAreConvolutions) {
  const tt_cuda_math_opts conv = with(TT_CUDA_MATH_CONV_TF32, &tt_cuda_math_opts::conv_tf32, 1);
  const tt_cuda_math_opts* const kAllowed[] = {&conv, &kTf32};
  for (const tt_cuda_math_opts* opts : kAllowed) {
    Recorder r = recorder();
    set(opts);
    Ctx& inner = *reinterpret_cast<Ctx*>(c);
    inner.work = &r;
    inner.watched |= kWatchWork;
    tt_tensor* y = nullptr;
    EXPECT_EQ(tt_conv2d(c, ones({2, 16, 16, 16}), ones({8, 16, 1, 1}), nullptr, nullptr, &y),
              TT_OK);
    inner.watched &= uint8_t(~kWatchWork);
    inner.work = nullptr;
    ASSERT_EQ(r.math.count("matmul"), 1u);
    EXPECT_EQ((r.math["matmul"] & kTf32Matmul) != 0, opts == &conv);
  }
}

// Each product of a graph keeps what was allowed when it was recorded: equal ones that differ in it
// stay two, and what is set later counts for none.
TEST_F(CudaMathTest, OfRecordedCalls) {
  tt_tensor *x = ones({4, 4}), *sum = nullptr;
  tt_graph *g = nullptr, *less = nullptr;
  EXPECT_EQ(tt_capture_begin(c, &x, 1, nullptr), TT_OK);
  tt_tensor* a = product(x);
  set(&kTf32);
  tt_tensor* b = product(x);
  tt_tensor* again = product(x);
  EXPECT_EQ(tt_add(c, a, b, &sum), TT_OK);
  EXPECT_EQ(tt_add_(c, sum, again), TT_OK);
  EXPECT_EQ(tt_capture_end(c, &sum, 1, &g), TT_OK);
  set(&kOwn);
  EXPECT_EQ(products_of(g), (std::vector<uint32_t>{0, kTf32Matmul, kTf32Matmul}));
  tt_graph_optimize_opts cse = {};
  cse.set = TT_GRAPH_OPTIMIZE_PASSES;
  cse.passes = TT_PASS_CSE;
  EXPECT_EQ(tt_graph_optimize(c, g, &cse, &less), TT_OK);
  EXPECT_EQ(products_of(less), (std::vector<uint32_t>{0, kTf32Matmul}));
  EXPECT_EQ(reinterpret_cast<Ctx*>(c)->cuda_math, uint32_t(kOwnMatmul));
  tt_graph_release(less);
  tt_graph_release(g);
}

}  // namespace
}  // namespace TT_NS
