/* tt_function_apply: functions of the application with their own gradients. */
#include "support.h"

/* y = x^2 (with two outputs: x^2 and 3 x); the behaviour of its callbacks, and a record of their
   arguments. */
typedef struct Square {
  int forwards, backwards, drops;
  tt_status fail_forward, fail_backward;
  int return_input, save_result, null_grad, save_null, in_place, recorded;
  int seen_null_grad;
  tt_function* f;
} Square;

static tt_status square_forward(void* user, tt_ctx* c, tt_function* f, const tt_tensor* const* in,
                                int64_t n_in, tt_tensor** outs, int64_t n_outs) {
  Square* s = (Square*)user;
  const tt_tensor* none = NULL;
  tt_tensor* late = NULL;
  tt_status status;
  (void)n_in;
  s->forwards++;
  s->f = f;
  assert_int_equal(tt_grad_enabled(c), 0);
  FAILS(TT_INVALID_ARG, tt_function_saved(c, f, 0, &late)); /* too early */
  if (s->save_null && (status = tt_function_save(c, f, &none, 1)) != TT_OK) return status;
  if (s->return_input) {
    tt_tensor_retain((tt_tensor*)in[0]);
    outs[0] = (tt_tensor*)in[0];
    return tt_function_save(c, f, in, 1);
  }
  if ((status = tt_mul(c, in[0], in[0], &outs[0])) != TT_OK) return status;
  s->recorded |= tt_tensor_requires_grad(outs[0]);
  if (n_outs > 1 && (status = tt_mul_f64(c, in[0], 3, &outs[1])) != TT_OK) return status;
  if ((status = tt_function_save(c, f, in, 1)) != TT_OK) return status;
  if (s->save_result &&
      (status = tt_function_save(c, f, (const tt_tensor* const*)outs, 1)) != TT_OK)
    return status;
  return s->fail_forward;
}
static tt_status square_backward(void* user, tt_ctx* c, tt_function* f, tt_tensor* const* grads,
                                 int64_t n_outs, tt_tensor** input_grads, int64_t n_inputs) {
  Square* s = (Square*)user;
  tt_tensor *x = NULL, *two = NULL, *other = NULL, *sum = NULL;
  tt_status status;
  s->backwards++;
  assert_true(n_inputs >= 1);
  if (s->null_grad) return TT_OK;
  FAILS(TT_INDEX, tt_function_saved(c, f, 99, &x));
  FAILS(TT_INDEX, tt_function_saved(c, f, -1, &x));
  FAILS(TT_INVALID_ARG, tt_function_save(c, f, NULL, 0)); /* too late */
  if (s->save_null) {
    if ((status = tt_function_saved(c, f, 0, &x)) != TT_OK) return status;
    assert_null(x);
  }
  if ((status = tt_function_saved(c, f, s->save_null ? 1 : 0, &x)) != TT_OK) return status;
  if (s->save_result && !status) {
    tt_tensor* y = NULL;
    status = tt_function_saved(c, f, 1, &y);
    if (!status) assert_int_equal(tt_tensor_numel(y), tt_tensor_numel(x));
    tt_tensor_release(y);
  }
  if (!grads[0]) s->seen_null_grad++;
  if (grads[0] && !status) {
    status = tt_mul_f64(c, x, 2, &two);
    if (!status) status = tt_mul(c, grads[0], two, &input_grads[0]);
  }
  if (n_outs > 1 && grads[1] && !status) {
    status = tt_mul_f64(c, grads[1], 3, &other);
    if (!status && input_grads[0]) {
      status = tt_add(c, input_grads[0], other, &sum);
      tt_tensor_release(input_grads[0]);
      input_grads[0] = sum;
    } else if (!status) {
      input_grads[0] = other;
      other = NULL;
    }
  }
  tt_tensor_release(x);
  tt_tensor_release(two);
  tt_tensor_release(other);
  return status ? status : s->fail_backward;
}
static void square_drop(void* user) { ((Square*)user)->drops++; }
static tt_function_def square(Square* s) {
  tt_function_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.name = "square";
  d.user = s;
  d.forward = square_forward;
  d.backward = square_backward;
  d.drop = square_drop;
  return d;
}
static tt_status apply(tt_ctx* c, Square* s, tt_tensor* x, tt_tensor** outs, int64_t n) {
  tt_function_def d = square(s);
  return tt_function_apply(c, &d, (const tt_tensor* const*)&x, 1, outs, n);
}

static const double k23[] = {2, 3};

static void test_gradient(void** state) {
  CTX;
  Square s = {0};
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* grad = NULL;
  tt_node* node = NULL;
  s.save_null = 1;
  OK(tt_requires_grad_(c, x, 1));
  OK(apply(c, &s, x, &y, 1));
  HOLDS(y, 4, 9);
  assert_int_equal(s.recorded, 0);
  OK(tt_tensor_grad_fn(c, y, &node));
  assert_string_equal(tt_node_name(node), "square");
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_tensor_grad(c, x, &grad));
  HOLDS(grad, 4, 6);
  FAILS(TT_AUTOGRAD, tt_backward(c, loss, NULL)); /* the graph is gone */
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
  tt_tensor_release(grad);
  assert_int_equal(s.drops, 0);
  assert_string_equal(tt_node_name(node), "square");
  tt_node_release(node);
  assert_int_equal(s.drops, 1);
}

static void test_second_derivative(void** state) {
  CTX;
  Square s = {0};
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* y = NULL;
  tt_tensor* cube = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* g = NULL;
  tt_tensor* sum = NULL;
  tt_tensor* gg = NULL;
  tt_grad_opts opts;
  memset(&opts, 0, sizeof opts);
  opts.set = TT_GRAD_CREATE_GRAPH;
  opts.create_graph = 1;
  s.save_result = 1;
  OK(tt_requires_grad_(c, x, 1));
  OK(apply(c, &s, x, &y, 1));
  OK(tt_mul(c, y, x, &cube));
  OK(tt_sum(c, cube, NULL, &loss));
  OK(tt_grad(c, (const tt_tensor* const*)&loss, 1, (const tt_tensor* const*)&x, 1, &opts, &g));
  HOLDS(g, 12, 27); /* 3 x^2 */
  OK(tt_sum(c, g, NULL, &sum));
  OK(tt_grad(c, (const tt_tensor* const*)&sum, 1, (const tt_tensor* const*)&x, 1, NULL, &gg));
  HOLDS(gg, 12, 18); /* 6 x */
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(cube);
  tt_tensor_release(loss);
  tt_tensor_release(g);
  tt_tensor_release(sum);
  tt_tensor_release(gg);
  assert_int_equal(s.drops, 1);
}

static void test_two_outputs_and_undefined_gradients(void** state) {
  CTX;
  Square s = {0};
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* outs[2];
  tt_tensor* loss = NULL;
  tt_tensor* g = NULL;
  tt_grad_opts opts;
  memset(&opts, 0, sizeof opts);
  opts.set = TT_GRAD_RETAIN_GRAPH | TT_GRAD_ALLOW_UNUSED;
  opts.retain_graph = 1;
  opts.allow_unused = 1;
  OK(tt_requires_grad_(c, x, 1));
  OK(apply(c, &s, x, outs, 2));
  OK(tt_sum(c, outs[1], NULL, &loss));
  OK(tt_grad(c, (const tt_tensor* const*)&loss, 1, (const tt_tensor* const*)&x, 1, &opts, &g));
  HOLDS(g, 3, 3);
  assert_int_equal(s.seen_null_grad, 1);
  tt_tensor_release(g);
  s.null_grad = 1; /* the function gives no gradient for its input */
  OK(tt_grad(c, (const tt_tensor* const*)&loss, 1, (const tt_tensor* const*)&x, 1, &opts, &g));
  assert_null(g);
  tt_tensor_release(x);
  tt_tensor_release(outs[0]);
  tt_tensor_release(outs[1]);
  tt_tensor_release(loss);
  assert_int_equal(s.drops, 1);
}

static void test_not_recorded(void** state) {
  CTX;
  Square s = {0};
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* y = NULL;
  OK(apply(c, &s, x, &y, 1));
  assert_int_equal(s.drops, 1);
  assert_int_equal(tt_tensor_requires_grad(y), 0);
  tt_tensor_release(y);
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(apply(c, &s, x, &y, 1));
  assert_int_equal(s.drops, 2);
  assert_int_equal(tt_tensor_requires_grad(y), 0);
  OK(tt_set_grad_enabled(c, 1, NULL));
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_input_as_output(void** state) {
  CTX;
  Square s = {0};
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* grad = NULL;
  s.return_input = 1;
  OK(tt_requires_grad_(c, x, 1));
  OK(apply(c, &s, x, &y, 1));
  assert_true(y != x);
  assert_int_equal(tt_tensor_is_leaf(x), 1);
  assert_int_equal(tt_tensor_is_leaf(y), 0);
  assert_ptr_equal(tt_tensor_data(y), tt_tensor_data(x));
  FAILS(TT_AUTOGRAD, tt_mul_f64_(c, y, 10)); /* the history of x would not see it */
  HOLDS(x, 2, 3);
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_tensor_grad(c, x, &grad));
  HOLDS(grad, 4, 6);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
  tt_tensor_release(grad);
  assert_int_equal(s.drops, 1);
}

static void test_version_check(void** state) {
  CTX;
  Square s = {0};
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* m = NULL;
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_mul_f64(c, x, 1, &m));
  OK(apply(c, &s, m, &y, 1));
  OK(tt_mul_f64_(c, m, 2));
  OK(tt_sum(c, y, NULL, &loss));
  FAILS(TT_CALLBACK, tt_backward(c, loss, NULL)); /* tt_function_saved failed inside the callback */
  assert_int_equal(tt_ctx_error(c)->cause->code, TT_AUTOGRAD);
  tt_tensor_release(x);
  tt_tensor_release(m);
  tt_tensor_release(y);
  tt_tensor_release(loss);
  assert_int_equal(s.drops, 1);
}

/* The tangent is 10 times too large, and a vmap adds 100, so that the rules show. */
static tt_status square_jvp(void* user, tt_ctx* c, tt_function* f, tt_tensor* const* tangents,
                            int64_t n_inputs, tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)f;
  assert_int_equal(n_inputs, 1);
  return n_outs > 1 ? TT_OK : tt_mul_f64(c, tangents[0], 10, &outs[0]);
}
static tt_status square_vmap(void* user, tt_ctx* c, tt_function* f, int64_t size,
                             tt_tensor* const* samples, int64_t n_inputs, tt_tensor* const* shared,
                             tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)f;
  (void)n_outs;
  assert_int_equal(n_inputs, 1);
  assert_null(shared[0]);
  assert_int_equal(tt_tensor_size(samples[0], 0), size);
  return tt_add_f64(c, samples[0], 100, &outs[0]);
}
static tt_status call_square(void* user, tt_ctx* c, const tt_tensor* const* in, int64_t n,
                             tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)cap;
  *n_outs = 1;
  return tt_function_apply(c, (const tt_function_def*)user, in, n, outs, 1);
}

static void test_rules_of_transforms(void** state) {
  CTX;
  Square s = {0};
  tt_function_def d = square(&s);
  tt_tensor *x = vec(c, k23, 2), *y = NULL, *tangent = NULL, *dual = NULL;
  const tt_tensor* in[1];
  int64_t n = 0;
  in[0] = x;
  d.jvp = square_jvp;
  d.vmap = square_vmap;
  OK(tt_jvp(c, call_square, &d, NULL, in, in, 1, &y, &tangent, 1, &n));
  HOLDS(y, 4, 9);
  HOLDS(tangent, 20, 30);
  tt_tensor_release(y);
  tt_tensor_release(tangent);
  assert_int_equal(s.drops, 1);
  OK(tt_vmap(c, call_square, &d, NULL, in, 1, NULL, &y, 1, &n));
  HOLDS(y, 102, 103);
  tt_tensor_release(y);
  assert_int_equal(s.drops, 2);
  assert_int_equal(s.forwards, 1);

  d.struct_size = offsetof(tt_function_def, jvp); /* as of a program that is older than they */
  OK(tt_dual_level_push(c));
  OK(tt_make_dual(c, x, x, &dual));
  OK(tt_function_apply(c, &d, (const tt_tensor* const*)&dual, 1, &y, 1));
  tt_tensor_release(dual);
  OK(tt_unpack_dual(c, y, &dual, &tangent));
  HOLDS(tangent, 8, 18);
  OK(tt_dual_level_pop(c));
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(dual);
  tt_tensor_release(tangent);
  assert_int_equal(s.drops, 3);
}

/* 10 x dx of the saved x: 5 times the tangent of x^2. */
static tt_status jvp_of_saved(void* user, tt_ctx* c, tt_function* f, tt_tensor* const* tangents,
                              int64_t n_inputs, tt_tensor** outs, int64_t n_outs) {
  Square* s = (Square*)user;
  tt_tensor *x = NULL, *y = NULL, *ten = NULL, *none = NULL;
  tt_status status;
  assert_true(n_inputs == 1 && n_outs == 1);
  FAILS(TT_INVALID_ARG, tt_function_save(c, f, NULL, 0)); /* too late */
  FAILS(TT_INDEX, tt_function_saved(c, f, 3, &x));
  OK(tt_function_saved(c, f, 0, &none));
  assert_null(none);
  if (s->in_place) {
    OK(tt_mul_f64_(c, tangents[0], 2)); /* which is the input, too */
    FAILS(TT_AUTOGRAD, tt_function_saved(c, f, 1, &x));
    return TT_OK;
  }
  OK(tt_function_saved(c, f, 1, &x));
  OK(tt_function_saved(c, f, 2, &y));
  assert_int_equal(tt_tensor_numel(y), tt_tensor_numel(x));
  s->recorded = tt_tensor_requires_grad(x) && tt_tensor_requires_grad(y);
  OK(tt_mul_f64(c, x, 10, &ten));
  status = tt_mul(c, ten, tangents[0], &outs[0]);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(ten);
  return status;
}
/* The tangent of the function at x, for the direction 1. */
static tt_status tangent_of(void* def, tt_ctx* c, const tt_tensor* const* in, int64_t n,
                            tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  tt_tensor *y = NULL, *ones = NULL;
  int64_t results = 0;
  tt_status status;
  assert_true(n == 1 && cap >= 1);
  *n_outs = 1;
  OK(tt_ones_like(c, in[0], NULL, &ones));
  status = tt_jvp(c, call_square, def, NULL, in, (const tt_tensor* const*)&ones, 1, &y, outs, 1,
                  &results);
  tt_tensor_release(y);
  tt_tensor_release(ones);
  return status;
}

static void test_saved_tensors_in_jvp(void** state) {
  CTX;
  Square s = {0};
  tt_function_def d = square(&s);
  tt_tensor *x = vec(c, k23, 2), *y = NULL, *tangent = NULL, *loss = NULL, *grad = NULL;
  const tt_tensor* in[1];
  int64_t n = 0;
  in[0] = x;
  s.save_null = s.save_result = 1;
  d.jvp = jvp_of_saved;
  OK(tt_jvp(c, call_square, &d, NULL, in, in, 1, &y, &tangent, 1, &n));
  HOLDS(tangent, 40, 90);
  assert_int_equal(s.recorded, 0);
  tt_tensor_release(y);
  tt_tensor_release(tangent);
  /* the saved x has the tangent of the outer transform */
  OK(tt_jvp(c, tangent_of, &d, NULL, in, in, 1, &y, &tangent, 1, &n));
  HOLDS(y, 20, 30);
  HOLDS(tangent, 20, 30);
  tt_tensor_release(y);
  tt_tensor_release(tangent);
  OK(tt_vmap(c, tangent_of, &d, NULL, in, 1, NULL, &tangent, 1, &n));
  HOLDS(tangent, 20, 30);
  tt_tensor_release(tangent);
  /* and its history */
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_jvp(c, tangent_of, &d, NULL, in, in, 1, &y, &tangent, 1, &n));
  assert_int_equal(s.recorded, 1);
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_tensor_grad(c, x, &grad));
  HOLDS(grad, 10, 10);
  tt_tensor_release(y);
  tt_tensor_release(tangent);
  tt_tensor_release(loss);
  tt_tensor_release(grad);
  tt_tensor_release(x);
  /* a tensor that was overwritten is refused */
  in[0] = x = vec(c, k23, 2);
  s.in_place = 1;
  OK(tt_jvp(c, call_square, &d, NULL, in, in, 1, &y, &tangent, 1, &n));
  HOLDS(tangent, 0, 0);
  tt_tensor_release(y);
  tt_tensor_release(tangent);
  tt_tensor_release(x);
}

static void test_failures(void** state) {
  CTX;
  Square s = {0};
  tt_function_def d;
  tt_tensor* x = vec(c, k23, 2);
  tt_tensor* y = x;
  tt_tensor* loss = NULL;
  int on;
  for (on = 0; on < 2; on++) {
    OK(tt_requires_grad_(c, x, on));
    s.fail_forward = TT_IO;
    s.drops = 0;
    FAILS(TT_CALLBACK, apply(c, &s, x, &y, 1));
    SAYS("the forward callback of square failed with status 7 (IO)");
    assert_null(y);
    assert_int_equal(s.drops, 1);
  }
  s.fail_forward = TT_OK;
  s.drops = 0;
  OK(apply(c, &s, x, &y, 1));
  OK(tt_sum(c, y, NULL, &loss));
  s.fail_backward = TT_IO;
  FAILS(TT_CALLBACK, tt_backward(c, loss, NULL));
  s.fail_backward = TT_OK;
  tt_tensor_release(loss);
  OK(tt_sum(c, y, NULL, &loss)); /* a failed backward can run again */
  OK(tt_backward(c, loss, NULL));
  tt_tensor_release(y);
  tt_tensor_release(loss);
  assert_int_equal(s.drops, 1);

  FAILS(TT_BAD_HANDLE, tt_function_save(c, NULL, NULL, 0));
  FAILS(TT_BAD_HANDLE, tt_function_saved(c, (tt_function*)x, 0, &y));
  d = square(&s);
  s.drops = 0;
  FAILS(TT_INVALID_ARG, tt_function_apply(c, &d, (const tt_tensor* const*)&x, 1, &y, 0));
  FAILS(TT_INVALID_ARG, tt_function_apply(c, &d, (const tt_tensor* const*)&x, 1, NULL, 1));
  FAILS(TT_INVALID_ARG, tt_function_apply(c, &d, NULL, 1, &y, 1));
  FAILS(TT_INVALID_ARG, tt_function_apply(c, &d, (const tt_tensor* const*)&x, -1, &y, 1));
  {
    tt_tensor** many = (tt_tensor**)calloc(100000, sizeof *many);
    FAILS(TT_INVALID_ARG, tt_function_apply(c, &d, (const tt_tensor* const*)&x, 1, many, 100000));
    free(many);
  }
  assert_int_equal(tt_function_apply(NULL, &d, (const tt_tensor* const*)&x, 1, &y, 1),
                   TT_BAD_HANDLE);
  assert_int_equal(s.drops, 6);
  d.backward = NULL;
  FAILS(TT_INVALID_ARG, tt_function_apply(c, &d, (const tt_tensor* const*)&x, 1, &y, 1));
  assert_int_equal(s.drops, 7);
  d.struct_size = 0;
  FAILS(TT_ABI, tt_function_apply(c, &d, (const tt_tensor* const*)&x, 1, &y, 1));
  FAILS(TT_INVALID_ARG, tt_function_apply(c, NULL, (const tt_tensor* const*)&x, 1, &y, 1));
  assert_int_equal(s.drops, 7);
  tt_tensor_release(x);
}

static void test_out_of_memory(void** state) {
  CTX;
  Square s;
  int64_t k;
  int done = 0;
  for (k = 0; !done; k++) {
    Env inner;
    tt_allocator alloc;
    tt_runtime_opts o;
    tt_tensor* x = NULL;
    tt_tensor* outs[2] = {NULL, NULL};
    tt_tensor* loss = NULL;
    int64_t shape = 2;
    int applied = 0;
    assert_true(k < 400);
    memset(&s, 0, sizeof s);
    memset(&inner, 0, sizeof inner);
    memset(&alloc, 0, sizeof alloc);
    memset(&o, 0, sizeof o);
    alloc.struct_size = sizeof alloc;
    alloc.user = &inner;
    alloc.alloc = env_alloc;
    alloc.free = env_free;
    o.struct_size = sizeof o;
    o.allocator = &alloc;
    s.save_result = 1;
    inner.allow = k;
    if (tt_runtime_new(&o, &inner.rt)) continue;
    if (tt_ctx_new(inner.rt, &c)) {
      tt_runtime_release(inner.rt);
      continue;
    }
    if (tt_tensor_from_data(c, k23, TT_F64, &shape, 1, &x) == TT_OK &&
        tt_requires_grad_(c, x, 1) == TT_OK) {
      applied = 1;
      if (apply(c, &s, x, outs, 2) == TT_OK && tt_sum(c, outs[0], NULL, &loss) == TT_OK)
        done = tt_backward(c, loss, NULL) == TT_OK;
    }
    tt_tensor_release(x);
    tt_tensor_release(outs[0]);
    tt_tensor_release(outs[1]);
    tt_tensor_release(loss);
    tt_ctx_release(c);
    tt_runtime_release(inner.rt);
    assert_int_equal(s.drops, applied);
    assert_int_equal(inner.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_gradient),
                                     TEST(test_second_derivative),
                                     TEST(test_two_outputs_and_undefined_gradients),
                                     TEST(test_not_recorded),
                                     TEST(test_input_as_output),
                                     TEST(test_version_check),
                                     TEST(test_rules_of_transforms),
                                     TEST(test_saved_tensors_in_jvp),
                                     TEST(test_failures),
                                     TEST(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
