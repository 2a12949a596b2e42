// A C++ application whose callbacks throw: exceptions of drop, deleter, free and logger are
// discarded, others become a status. It is linked with libtt.a and with libtt.so, which has an
// unwinder of its own.
#include "tt.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace {

int drops;
void throwing_drop(void*) {
  drops++;
  throw std::runtime_error("from drop");
}
tt_status on_grad(void*, tt_ctx*, const tt_tensor*, tt_tensor**) { return TT_OK; }
tt_status refuse_grad(void*, tt_ctx*, const tt_tensor*, tt_tensor**) {
  throw std::runtime_error("from a hook");
}
tt_status on_poll(void*, tt_ctx*) { return TT_OK; }
tt_status pass_on(void*, tt_ctx*, tt_module*, const tt_tensor* const* in, int64_t, tt_tensor** outs,
                  int64_t, int64_t*) {
  tt_tensor_retain(const_cast<tt_tensor*>(in[0]));
  outs[0] = const_cast<tt_tensor*>(in[0]);
  return TT_OK;
}
tt_status factor(void*, tt_ctx*, int64_t, int64_t, double* out) {
  *out = 1;
  return TT_OK;
}

class ThrowingHost : public testing::Test {
 protected:
  void SetUp() override {
    drops = 0;
    ASSERT_EQ(tt_ctx_new(nullptr, &c), TT_OK);
  }
  void TearDown() override { tt_ctx_release(c); }
  tt_tensor* leaf() {
    const int64_t size = 3;
    tt_tensor* t = nullptr;
    EXPECT_EQ(tt_ones(c, &size, 1, nullptr, &t), TT_OK);
    EXPECT_EQ(tt_requires_grad_(c, t, 1), TT_OK);
    return t;
  }
  tt_ctx* c = nullptr;
};

// The first test: no exception has passed the frames of libtt.so yet.
TEST_F(ThrowingHost, FirstExceptionOfTheProcess) {
  tt_tensor *t = leaf(), *sum = nullptr;
  int64_t id = 0;
  ASSERT_EQ(tt_register_hook(c, t, refuse_grad, nullptr, nullptr, &id), TT_OK);
  ASSERT_EQ(tt_sum(c, t, nullptr, &sum), TT_OK);
  EXPECT_EQ(tt_backward(c, sum, nullptr), TT_CALLBACK);
  tt_tensor_release(t);
  tt_tensor_release(sum);
}

TEST_F(ThrowingHost, Deleters) {
  static float memory[3];
  const int64_t size = 3, negative = -1;
  tt_tensor* t = nullptr;
  ASSERT_EQ(tt_tensor_import(c, memory, TT_F32, &size, 1, nullptr, 1, throwing_drop, nullptr, &t),
            TT_OK);
  tt_tensor_release(t);
  EXPECT_EQ(drops, 1);
  EXPECT_EQ(
      tt_tensor_import(c, memory, TT_F32, &negative, 1, nullptr, 1, throwing_drop, nullptr, &t),
      TT_SHAPE);
  EXPECT_EQ(drops, 2);
}

TEST_F(ThrowingHost, DropsOfHooksAndPolls) {
  tt_tensor* t = leaf();
  int64_t id = 0;
  ASSERT_EQ(tt_register_hook(c, t, on_grad, nullptr, throwing_drop, &id), TT_OK);
  ASSERT_EQ(tt_remove_hook(c, t, id), TT_OK);
  EXPECT_EQ(drops, 1);
  ASSERT_EQ(tt_register_hook(c, t, on_grad, nullptr, throwing_drop, &id), TT_OK);
  tt_tensor_release(t);
  EXPECT_EQ(drops, 2);
  EXPECT_EQ(tt_register_hook(c, nullptr, on_grad, nullptr, throwing_drop, &id), TT_BAD_HANDLE);
  EXPECT_EQ(drops, 3);
  ASSERT_EQ(tt_ctx_set_poll(c, on_poll, nullptr, throwing_drop), TT_OK);
  ASSERT_EQ(tt_ctx_set_poll(c, nullptr, nullptr, nullptr), TT_OK);
  EXPECT_EQ(drops, 4);
}

TEST_F(ThrowingHost, DropsOfObjects) {
  const tt_module_def def = {sizeof def, "passing", nullptr, pass_on, nullptr, throwing_drop};
  const tt_module_def unnamed = {sizeof def, nullptr, nullptr, pass_on, nullptr, throwing_drop};
  tt_module* m = nullptr;
  tt_tensor* t = leaf();
  tt_optimizer* o = nullptr;
  tt_scheduler* s = nullptr;
  ASSERT_EQ(tt_module_new_custom(c, &def, &m), TT_OK);
  tt_module_release(m);
  EXPECT_EQ(drops, 1);
  EXPECT_NE(tt_module_new_custom(c, &unnamed, &m), TT_OK);
  EXPECT_EQ(drops, 2);
  ASSERT_EQ(tt_optim_sgd(c, &t, 1, nullptr, &o), TT_OK);
  ASSERT_EQ(tt_lr_lambda(c, o, factor, nullptr, throwing_drop, -1, &s), TT_OK);
  tt_scheduler_release(s);
  EXPECT_EQ(drops, 3);
  EXPECT_NE(tt_optim_step_closure(c, nullptr, nullptr, nullptr, throwing_drop, nullptr), TT_OK);
  EXPECT_EQ(drops, 4);
  tt_optim_release(o);
  tt_tensor_release(t);
}

TEST_F(ThrowingHost, QueuedDrops) {
  tt_runtime_opts opts = {};
  opts.struct_size = sizeof opts;
  opts.queue_drops = 1;
  static float memory[3];
  const int64_t size = 3;
  tt_runtime* rt = nullptr;
  tt_ctx* x = nullptr;
  tt_tensor* t = nullptr;
  ASSERT_EQ(tt_runtime_new(&opts, &rt), TT_OK);
  ASSERT_EQ(tt_ctx_new(rt, &x), TT_OK);
  ASSERT_EQ(tt_tensor_import(x, memory, TT_F32, &size, 1, nullptr, 1, throwing_drop, nullptr, &t),
            TT_OK);
  tt_tensor_release(t);
  EXPECT_EQ(drops, 0);
  EXPECT_EQ(tt_runtime_poll(rt), 1);
  EXPECT_EQ(drops, 1);
  tt_ctx_release(x);
  tt_runtime_release(rt);
}

TEST_F(ThrowingHost, CallbacksBecomeStatuses) {
  tt_tensor* t = leaf();
  tt_tensor* sum = nullptr;
  int64_t id = 0;
  ASSERT_EQ(tt_register_hook(c, t, refuse_grad, nullptr, nullptr, &id), TT_OK);
  ASSERT_EQ(tt_sum(c, t, nullptr, &sum), TT_OK);
  EXPECT_EQ(tt_backward(c, sum, nullptr), TT_CALLBACK);
  ASSERT_NE(tt_ctx_error(c)->cause, nullptr);
  EXPECT_EQ(tt_ctx_error(c)->cause->code, TT_CALLBACK);
  EXPECT_STREQ(tt_ctx_error(c)->cause->message, "from a hook");
  tt_tensor_release(t);
  tt_tensor_release(sum);
}

// What the forward of a module does with its ctx before it throws, or throws.
enum { kThrowText, kThrowNumber, kThrowAfterFailing, kPassOnFailure };
tt_status throw_as_told(void* user, tt_ctx* c, tt_module*, const tt_tensor* const* in, int64_t,
                        tt_tensor** outs, int64_t, int64_t*) {
  const int what = *static_cast<int*>(user);
  if (what == kThrowText) throw std::runtime_error("the level has ended");
  if (what == kThrowNumber) throw 7;
  const int64_t wrong = 5;
  EXPECT_EQ(tt_reshape(c, in[0], &wrong, 1, outs), TT_SHAPE);
  if (what == kThrowAfterFailing) throw std::runtime_error("something else");
  throw std::runtime_error(tt_ctx_error(c)->message);  // as a C++ wrapper of tt.h does
}

TEST_F(ThrowingHost, TextsOfExceptionsAreCauses) {
  int what = kThrowText;
  tt_module_def def = {};
  def.struct_size = sizeof def;
  def.name = "Throwing";
  def.user = &what;
  def.forward = throw_as_told;
  tt_module* m = nullptr;
  tt_tensor *x = leaf(), *y = nullptr;
  ASSERT_EQ(tt_module_new_custom(c, &def, &m), TT_OK);
  EXPECT_EQ(tt_module_call(c, m, x, &y), TT_CALLBACK);
  ASSERT_NE(tt_ctx_error(c)->cause, nullptr);
  EXPECT_STREQ(tt_ctx_error(c)->cause->message, "the level has ended");
  what = kThrowNumber;
  EXPECT_EQ(tt_module_call(c, m, x, &y), TT_CALLBACK);
  EXPECT_EQ(tt_ctx_error(c)->cause, nullptr);
  what = kThrowAfterFailing;
  EXPECT_EQ(tt_module_call(c, m, x, &y), TT_CALLBACK);
  ASSERT_NE(tt_ctx_error(c)->cause, nullptr);
  EXPECT_STREQ(tt_ctx_error(c)->cause->message, "something else");
  what = kPassOnFailure;
  EXPECT_EQ(tt_module_call(c, m, x, &y), TT_CALLBACK);
  ASSERT_NE(tt_ctx_error(c)->cause, nullptr);
  EXPECT_EQ(tt_ctx_error(c)->cause->code, TT_SHAPE);
  EXPECT_STREQ(tt_ctx_error(c)->cause->op, "reshape");
  tt_module_release(m);
  tt_tensor_release(x);
}

bool throwing;
void* alloc(void*, size_t size, size_t align) {
  if (throwing) throw std::bad_alloc();
  return std::aligned_alloc(align < 64 ? 64 : align, (size + 63) / 64 * 64);
}
void give(void*, void* p, size_t, size_t) {
  std::free(p);
  throw std::runtime_error("from free");
}
void log_line(void*, int32_t, const char*) { throw std::runtime_error("from the logger"); }
int32_t two_threads(void*) { return 2; }
int32_t no_loop(void*, int64_t, int64_t, tt_range_fn, void*) {
  throw std::runtime_error("from the executor");
}

TEST(ThrowingRuntime, AllocatorLoggerExecutor) {
  const tt_allocator allocator = {sizeof allocator, nullptr, alloc, give};
  const tt_logger logger = {sizeof logger, nullptr, log_line};
  const tt_executor executor = {sizeof executor, nullptr, two_threads, no_loop};
  tt_runtime_opts opts = {};
  opts.struct_size = sizeof opts;
  opts.allocator = &allocator;
  opts.executor = &executor;
  opts.logger = &logger;
  const int64_t size = 1000000;
  tt_runtime* rt = nullptr;
  tt_ctx* c = nullptr;
  tt_tensor *t = nullptr, *y = nullptr;
  ASSERT_EQ(tt_runtime_new(&opts, &rt), TT_OK);
  ASSERT_EQ(tt_ctx_new(rt, &c), TT_OK);
  const tt_empty_opts none = {};
  ASSERT_EQ(tt_empty(c, &size, 1, &none, &t), TT_OK);
  throwing = true;
  EXPECT_EQ(tt_empty(c, &size, 1, &none, &y), TT_OOM);
  throwing = false;
  EXPECT_EQ(tt_neg(c, t, &y), TT_CALLBACK);
  EXPECT_EQ(y, nullptr);
  tt_tensor_release(t);
  tt_ctx_release(c);
  tt_runtime_release(rt);
}

}  // namespace
