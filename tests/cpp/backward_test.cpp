// What distributed training asks of backward: gradients in places of their own, and calls at the
// end.
#include "tt.h"

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "core/ctx.h"

#include <gtest/gtest.h>

#include <string>

namespace TT_NS {
namespace {

Tensor& tensor(tt_tensor* t) { return *reinterpret_cast<Tensor*>(t); }

std::string events;
int drops;

void count_drop(void*) noexcept { drops++; }
void add_last(void*) { events += "last "; }
void add_first(void*) {
  events += "first ";
  at_end_of_backward(add_last, count_drop, nullptr);
}
tt_status queue(void*, tt_ctx*, const tt_tensor*) {
  events += "leaf ";
  at_end_of_backward(add_first, count_drop, nullptr);
  return TT_OK;
}
tt_status queue_and_fail(void* user, tt_ctx* c, const tt_tensor* leaf) {
  queue(user, c, leaf);
  return TT_INTERNAL;
}
void no_drop(void*) {}
// A backward inside a backward, as a checkpoint that recomputes runs it.
tt_status run_inner(void*, tt_ctx* c, const tt_tensor*) {
  const int64_t size = 1;
  tt_tensor *leaf = nullptr, *square = nullptr;
  int64_t id = 0;
  EXPECT_EQ(tt_ones(c, &size, 1, nullptr, &leaf), TT_OK);
  EXPECT_EQ(tt_requires_grad_(c, leaf, 1), TT_OK);
  EXPECT_EQ(tt_register_accumulate_hook(c, leaf, queue, nullptr, no_drop, &id), TT_OK);
  EXPECT_EQ(tt_mul(c, leaf, leaf, &square), TT_OK);
  EXPECT_EQ(tt_backward(c, square, nullptr), TT_OK);
  events += "inner ";
  tt_tensor_release(square);
  tt_tensor_release(leaf);
  return TT_OK;
}

class Backward : public testing::Test {
 protected:
  void SetUp() override {
    events.clear();
    drops = 0;
    ASSERT_EQ(tt_ctx_new(nullptr, &c), TT_OK);
    ASSERT_EQ(tt_scope_push(c), TT_OK);
    x = ones();
    ASSERT_EQ(tt_requires_grad_(c, x, 1), TT_OK);
  }
  void TearDown() override {
    EXPECT_EQ(tt_scope_pop(c, nullptr, 0), TT_OK);
    tt_ctx_release(c);
  }
  tt_tensor* ones() {
    const int64_t size = 3;
    tt_tensor* t = nullptr;
    EXPECT_EQ(tt_ones(c, &size, 1, nullptr, &t), TT_OK);
    return t;
  }
  // d sum(x x) / dx = 2
  tt_status run() {
    tt_tensor* y = nullptr;
    tt_tensor* total = nullptr;
    EXPECT_EQ(tt_mul(c, x, x, &y), TT_OK);
    EXPECT_EQ(tt_sum(c, y, nullptr, &total), TT_OK);
    return tt_backward(c, total, nullptr);
  }
  tt_ctx* c = nullptr;
  tt_tensor* x = nullptr;
};

TEST_F(Backward, WritesGradientsIntoTheirPlace) {
  tt_tensor* place = ones();
  const float* numbers = tensor(place).as<float>();
  set_grad_place(tensor(x), TensorRef::share(&tensor(place)));
  ASSERT_EQ(run(), TT_OK);
  EXPECT_EQ(numbers[0], 2);
  EXPECT_EQ(grad_of(tensor(x)).get(), &tensor(place));
  ASSERT_EQ(run(), TT_OK);  // is added
  EXPECT_EQ(numbers[2], 4);
  set_grad(tensor(x), {});
  ASSERT_EQ(run(), TT_OK);  // begins anew
  EXPECT_EQ(numbers[1], 2);
  set_grad(tensor(x), {});
  set_grad_place(tensor(x), {});
  ASSERT_EQ(run(), TT_OK);
  EXPECT_NE(grad_of(tensor(x)).get(), &tensor(place));
}

TEST_F(Backward, CallsAtTheEnd) {
  int64_t id = 0;
  ASSERT_EQ(tt_register_accumulate_hook(c, x, queue, nullptr, no_drop, &id), TT_OK);
  ASSERT_EQ(run(), TT_OK);
  EXPECT_EQ(events, "leaf first last ");
  EXPECT_EQ(drops, 2);
}

TEST_F(Backward, CallsAtTheEndOfTheOutermost) {
  int64_t id = 0;
  ASSERT_EQ(tt_register_accumulate_hook(c, x, run_inner, nullptr, no_drop, &id), TT_OK);
  ASSERT_EQ(run(), TT_OK);
  EXPECT_EQ(events, "leaf inner first last ");
  EXPECT_EQ(drops, 2);
}

TEST_F(Backward, DropsCallsWhenItFails) {
  int64_t id = 0;
  ASSERT_EQ(tt_register_accumulate_hook(c, x, queue_and_fail, nullptr, no_drop, &id), TT_OK);
  EXPECT_EQ(run(), TT_CALLBACK);
  EXPECT_EQ(events, "leaf ");
  EXPECT_EQ(drops, 1);
}

}  // namespace
}  // namespace TT_NS
