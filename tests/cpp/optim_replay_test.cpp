// A recorded step of an optimizer, launched again: renew_items gives it the factors of each step.
#include "tt.h"

#include "core/ctx.h"
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include <vector>

namespace TT_NS {
namespace {

constexpr int64_t kSize = 3;

struct Recorder : WorkObserver {
  const Kernel* kernel = nullptr;
  OptimPlan plan;
  std::vector<OptimItem> items;
};

int32_t record(WorkObserver& w, const Kernel& k, const void* plan, int64_t units, int64_t grain) {
  auto& r = static_cast<Recorder&>(w);
  r.kernel = &k;
  r.plan = *static_cast<const OptimPlan*>(plan);
  r.items.assign(r.plan.items, r.plan.items + r.plan.n_items);
  return run_kernel(k, plan, units, grain);
}

class OptimReplay : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(tt_ctx_new(nullptr, &c), TT_OK);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
  }
  void TearDown() override {
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
  }
  // A parameter of ones whose gradient is 2.
  tt_tensor* param() {
    tt_tensor *x = nullptr, *y = nullptr, *total = nullptr;
    EXPECT_EQ(tt_ones(c, &kSize, 1, nullptr, &x), TT_OK);
    EXPECT_EQ(tt_requires_grad_(c, x, 1), TT_OK);
    EXPECT_EQ(tt_mul(c, x, x, &y), TT_OK);
    EXPECT_EQ(tt_sum(c, y, nullptr, &total), TT_OK);
    EXPECT_EQ(tt_backward(c, total, nullptr), TT_OK);
    return x;
  }
  tt_optimizer* new_adam(tt_tensor* x) {
    tt_optimizer* o = nullptr;
    EXPECT_EQ(tt_optim_adam(c, &x, 1, nullptr, &o), TT_OK);
    return o;
  }
  tt_ctx* c = nullptr;
};

TEST_F(OptimReplay, EqualsSteps) {
  tt_tensor* eager = param();
  tt_tensor* replayed = param();
  tt_optimizer* steps = new_adam(eager);
  tt_optimizer* recorded = new_adam(replayed);
  Recorder r;
  r.launch = record;
  Ctx& ctx = *reinterpret_cast<Ctx*>(c);
  ctx.work = &r;
  ctx.watched |= kWatchWork;
  ASSERT_EQ(tt_optim_step(c, recorded), TT_OK);
  ctx.watched &= uint8_t(~kWatchWork);
  ASSERT_NE(r.kernel, nullptr);
  auto& o = *reinterpret_cast<Optimizer*>(recorded);
  for (int step = 0; step < 4; step++) {
    ASSERT_TRUE(renew_items(o, r.items.data(), int64_t(r.items.size())));
    r.plan.items = r.items.data();
    ASSERT_EQ(r.kernel->cpu[0](&r.plan, 0, r.plan.run.units[0]), TT_OK);
  }
  for (int step = 0; step < 5; step++) ASSERT_EQ(tt_optim_step(c, steps), TT_OK);
  const auto* got = static_cast<const float*>(tt_tensor_data(replayed));
  const auto* want = static_cast<const float*>(tt_tensor_data(eager));
  for (int64_t i = 0; i < kSize; i++) EXPECT_EQ(got[i], want[i]);
  r.items[0].param = nullptr;
  EXPECT_FALSE(renew_items(o, r.items.data(), 1));
  ASSERT_EQ(tt_optim_step(c, recorded), TT_OK);  // counts go on
  ASSERT_EQ(tt_optim_step(c, steps), TT_OK);
  EXPECT_EQ(got[0], want[0]);
  tt_optim_release(steps);
  tt_optim_release(recorded);
}

}  // namespace
}  // namespace TT_NS
