/* tt_op_register: operators of the application, with gradients, wherever built-in ones can be
   used. */
#include "support.h"

/* scale(x: Tensor, k: Float = 2) -> Tensor, and how its callbacks behave. */
typedef struct Scale {
  int computes, backwards, drops;
  tt_status fail_compute, fail_backward;
  int forget_out, return_input, wrong_shape, bad_handle, reenter, push_scope;
} Scale;

static tt_value tensor_value(tt_tensor* t) {
  tt_value v;
  memset(&v, 0, sizeof v);
  v.tag = TT_VAL_TENSOR;
  v.tensor = t;
  return v;
}
static tt_value float_value(double f) {
  tt_value v;
  memset(&v, 0, sizeof v);
  v.tag = TT_VAL_FLOAT;
  v.f = f;
  return v;
}

static tt_status scale_compute(void* user, tt_ctx* c, const tt_value* args, int64_t n_args,
                               tt_tensor** outs, int64_t n_outs) {
  Scale* s = (Scale*)user;
  tt_status status;
  s->computes++;
  assert_int_equal(n_args, 2);
  assert_int_equal(n_outs, 1);
  assert_int_equal(args[0].tag, TT_VAL_TENSOR);
  assert_int_equal(args[1].tag, TT_VAL_FLOAT);
  assert_null(outs[0]);
  if (s->push_scope) OK(tt_scope_push(c)); /* left open: the boundary closes it */
  if (s->push_scope) {
    tt_tensor* lost = NULL;
    OK(tt_mul_f64(c, args[0].tensor, 3, &lost));
    OK(tt_scope_pop(c, NULL, 0));
    OK(tt_scope_push(c));
    OK(tt_mul_f64(c, args[0].tensor, 3, &lost));
    tt_tensor_retain(lost);
    outs[0] = lost;
    return TT_OK;
  }
  if (s->forget_out) return TT_OK;
  if (s->return_input) {
    tt_tensor_retain(args[0].tensor);
    outs[0] = args[0].tensor;
    return TT_OK;
  }
  if (s->bad_handle) {
    outs[0] = (tt_tensor*)c;
    return TT_OK;
  }
  if ((status = tt_mul_f64(c, args[0].tensor, args[1].f, &outs[0])) != TT_OK) return status;
  if (s->reenter) { /* a failing call inside the callback becomes the cause */
    tt_tensor* none = NULL;
    return tt_add(c, NULL, args[0].tensor, &none);
  }
  return s->fail_compute;
}

static tt_status scale_backward(void* user, tt_ctx* c, tt_tensor* const* grads, int64_t n_outs,
                                const tt_value* args, int64_t n_args, tt_tensor* const* results,
                                tt_tensor** input_grads, int64_t n_inputs) {
  Scale* s = (Scale*)user;
  tt_status status;
  s->backwards++;
  assert_int_equal(n_outs, 1);
  assert_int_equal(n_args, 2);
  assert_int_equal(n_inputs, 1);
  assert_non_null(results[0]);
  assert_int_equal(tt_tensor_numel(results[0]), tt_tensor_numel(args[0].tensor));
  if (s->wrong_shape) return tt_zeros(c, (const int64_t[]){3}, 1, NULL, &input_grads[0]);
  status = tt_mul_f64(c, grads[0], args[1].f, &input_grads[0]);
  return status ? status : s->fail_backward;
}
static void scale_drop(void* user) { ((Scale*)user)->drops++; }

static tt_op_def scale_def(Scale* s, const char* schema) {
  tt_op_def d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.schema = schema;
  d.user = s;
  d.compute = scale_compute;
  d.backward = scale_backward;
  d.drop = scale_drop;
  return d;
}
static const char* const kSchema = "scale(x: Tensor, k: Float = 2) -> Tensor";
static const tt_op* register_scale(tt_ctx* c, Scale* s) {
  tt_op_def d = scale_def(s, kSchema);
  const tt_op* op = NULL;
  memset(s, 0, sizeof *s);
  OK(tt_op_register(c, &d));
  OK(tt_op_find(c, "scale", &op));
  return op;
}
static tt_status call_scale(tt_ctx* c, const tt_op* op, tt_tensor* x, double k, tt_tensor** out) {
  tt_value args[2];
  int64_t n;
  args[0] = tensor_value(x);
  args[1] = float_value(k);
  return tt_op_call(c, op, args, 2, out, 1, &n);
}

static const double k12[] = {1, 2};

static void test_compute(void** state) {
  static Scale s; /* outlives the runtime */
  CTX;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_value arg = tensor_value(x);
  int64_t n;
  assert_string_equal(tt_op_name(op), "scale");
  assert_string_equal(tt_op_schema(op), kSchema);
  OK(call_scale(c, op, x, 5, &y));
  HOLDS(y, 5, 10);
  assert_int_equal(tt_tensor_requires_grad(y), 0);
  tt_tensor_release(y);
  OK(tt_op_call(c, op, &arg, 1, &y, 1, &n)); /* the default of k */
  HOLDS(y, 2, 4);
  tt_tensor_release(y);
  tt_tensor_release(x);
  assert_int_equal(s.computes, 2);
  assert_int_equal(s.drops, 0);
}

static void test_gradients(void** state) {
  static Scale s;
  CTX;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_tensor* z = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* g = NULL;
  tt_tensor* sum = NULL;
  tt_tensor* gg = NULL;
  tt_grad_opts opts;
  tt_node* node = NULL;
  OK(tt_requires_grad_(c, x, 1));
  OK(call_scale(c, op, x, 5, &y));
  assert_int_equal(tt_tensor_requires_grad(y), 1);
  OK(tt_tensor_grad_fn(c, y, &node));
  assert_string_equal(tt_node_name(node), "scale");
  tt_node_release(node);
  OK(tt_mul(c, y, y, &z)); /* 25 x^2 */
  OK(tt_sum(c, z, NULL, &loss));
  memset(&opts, 0, sizeof opts);
  opts.set = TT_GRAD_CREATE_GRAPH;
  opts.create_graph = 1;
  OK(tt_grad(c, (const tt_tensor* const*)&loss, 1, (const tt_tensor* const*)&x, 1, &opts, &g));
  HOLDS(g, 50, 100);
  OK(tt_sum(c, g, NULL, &sum));
  OK(tt_grad(c, (const tt_tensor* const*)&sum, 1, (const tt_tensor* const*)&x, 1, NULL, &gg));
  HOLDS(gg, 50, 50); /* the second derivative uses the operators of the callback */
  assert_true(s.backwards >= 2);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(z);
  tt_tensor_release(loss);
  tt_tensor_release(g);
  tt_tensor_release(sum);
  tt_tensor_release(gg);
}

static void test_version_check(void** state) {
  static Scale s;
  CTX;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* m = NULL;
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* grad = NULL;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_mul_f64(c, x, 1, &m));
  OK(call_scale(c, op, m, 5, &y));
  OK(tt_mul_f64_(c, m, 2));
  OK(tt_sum(c, y, NULL, &loss));
  FAILS(TT_AUTOGRAD, tt_backward(c, loss, NULL));
  SAYS("scale saved a tensor");
  assert_int_equal(s.backwards, 0);
  OK(tt_tensor_grad(c, x, &grad));
  assert_null(grad);
  tt_tensor_release(x);
  tt_tensor_release(m);
  tt_tensor_release(y);
  tt_tensor_release(loss);
}

static void test_no_backward(void** state) {
  static Scale s;
  CTX;
  tt_op_def d = scale_def(&s, kSchema);
  const tt_op* op = NULL;
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  memset(&s, 0, sizeof s);
  d.backward = NULL;
  OK(tt_op_register(c, &d));
  OK(tt_op_find(c, "scale", &op));
  OK(tt_requires_grad_(c, x, 1));
  OK(call_scale(c, op, x, 5, &y));
  assert_int_equal(tt_tensor_requires_grad(y), 0);
  tt_tensor_release(y);
  s.return_input = 1;
  OK(call_scale(c, op, x, 5, &y));
  assert_int_equal(tt_tensor_requires_grad(y), 0);
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_failing_callbacks(void** state) {
  static Scale s;
  CTX;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  int on;
  for (on = 0; on < 2; on++) { /* without and with a gradient to record */
    OK(tt_requires_grad_(c, x, on));
    s.fail_compute = TT_IO;
    FAILS(TT_CALLBACK, call_scale(c, op, x, 5, &y));
    assert_null(y);
    SAYS("the compute callback of scale failed with status 7 (IO)");
    assert_string_equal(tt_ctx_error(c)->op, "scale");
    assert_null(tt_ctx_error(c)->cause);
    s.fail_compute = TT_CANCELLED;
    FAILS(TT_CANCELLED, call_scale(c, op, x, 5, &y));
    s.fail_compute = TT_OK;
    s.reenter = 1;
    FAILS(TT_CALLBACK, call_scale(c, op, x, 5, &y));
    assert_non_null(tt_ctx_error(c)->cause);
    assert_int_equal(tt_ctx_error(c)->cause->code, TT_BAD_HANDLE);
    assert_true(strstr(tt_ctx_error(c)->cause->message, "self") != NULL);
    s.reenter = 0;
    s.forget_out = 1;
    FAILS(TT_CALLBACK, call_scale(c, op, x, 5, &y));
    s.forget_out = 0;
    s.bad_handle = 1;
    FAILS(TT_CALLBACK, call_scale(c, op, x, 5, &y));
    s.bad_handle = 0;
  }
  OK(call_scale(c, op, x, 5, &y));
  static const tt_status kWant[] = {TT_CALLBACK, TT_AUTOGRAD, TT_OK};
  for (on = 0; on < 3; on++) { /* a node whose formula failed can run again */
    s.fail_backward = on == 0 ? TT_INTERNAL : TT_OK;
    s.wrong_shape = on == 1;
    OK(tt_sum(c, y, NULL, &loss));
    FAILS(kWant[on], tt_backward(c, loss, NULL));
    if (on == 0) SAYS("the backward callback of scale");
    if (on == 1) SAYS("[3]");
    tt_tensor_release(loss);
    loss = NULL;
  }
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
}

static void test_input_as_output(void** state) {
  static Scale s;
  CTX;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  tt_tensor* loss = NULL;
  tt_tensor* grad = NULL;
  s.return_input = 1;
  OK(tt_requires_grad_(c, x, 1));
  OK(call_scale(c, op, x, 5, &y));
  assert_true(y != x);
  assert_int_equal(tt_tensor_is_leaf(x), 1);
  OK(tt_sum(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_tensor_grad(c, x, &grad));
  HOLDS(grad, 5, 5);
  tt_tensor_release(x);
  tt_tensor_release(y);
  tt_tensor_release(loss);
  tt_tensor_release(grad);
}

static void test_scopes(void** state) {
  static Scale s;
  CTX;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  s.push_scope = 1;
  OK(tt_scope_push(c));
  OK(call_scale(c, op, x, 5, &y));
  HOLDS(y, 3, 6);
  OK(tt_scope_pop(c, &y, 1));
  HOLDS(y, 3, 6);
  FAILS(TT_INVALID_ARG, tt_scope_pop(c, NULL, 0)); /* the callback's scope is gone */
  tt_tensor_release(x);
  tt_tensor_release(y);
}

static void test_bad_registration(void** state) {
  static const char* const good[] = {"g1() -> ()",
                                     ("g2(a: Float = 1, b: Scalar = true, c: Dims = [], d: DType? "
                                      "= None, e: MemoryFormat = preserve) -> (Tensor)"),
                                     " g3 ( a : Tensor ) -> ( Tensor , y : BoolTensor ) "};
  static const char* const bad[] = {"",
                                    "scale",
                                    "scale(",
                                    "scale()",
                                    "scale() ->",
                                    "scale() -> Int",
                                    "1x() -> Tensor",
                                    "f(x) -> Tensor",
                                    "f(x: Foo) -> Tensor",
                                    "f(x: Tensor!) -> Tensor",
                                    "f(x: Tensor, x: Int) -> Tensor",
                                    "f(x: Tensor = 1) -> Tensor",
                                    "f(k: Int = 1.5) -> Tensor",
                                    "f(k: Int = ) -> Tensor",
                                    "f(d: DType = 1) -> Tensor",
                                    "f(l: Tensor[] = None) -> Tensor",
                                    "f(k: Bool = 1) -> Tensor",
                                    "f(k: Float = 1e) -> Tensor",
                                    "f(k: Int = 9999999999999999999) -> Tensor",
                                    "f(x: Tensor,) -> Tensor",
                                    "f(x: Tensor) -> Tensor[]",
                                    "f(x: Tensor) -> (Tensor, Int)",
                                    "f(x: Tensor) -> Tensor trailing",
                                    "f(x: Tensor)",
                                    "f(x: Enum<R>) -> Tensor"};
  CTX;
  Scale s;
  const tt_op* op;
  size_t i;
  memset(&s, 0, sizeof s);
  for (i = 0; i < sizeof bad / sizeof *bad; i++) {
    tt_op_def d = scale_def(&s, bad[i]);
    FAILS(TT_INVALID_ARG, tt_op_register(c, &d));
    assert_int_equal(s.drops, i + 1);
    assert_string_equal(tt_ctx_error(c)->arg, "schema");
  }
  for (i = 0; i < sizeof good / sizeof *good; i++) {
    tt_op_def d = scale_def(&s, good[i]);
    d.drop = NULL;
    OK(tt_op_register(c, &d));
  }
  s.drops = 0;
  {
    tt_op_def d = scale_def(&s, "add(x: Tensor) -> Tensor");
    FAILS(TT_INVALID_ARG, tt_op_register(c, &d));
    SAYS("\"add\"");
    assert_int_equal(s.drops, 1);
    d.schema = NULL;
    FAILS(TT_INVALID_ARG, tt_op_register(c, &d));
    assert_int_equal(s.drops, 2);
    d = scale_def(&s, kSchema);
    d.compute = NULL;
    FAILS(TT_INVALID_ARG, tt_op_register(c, &d));
    assert_int_equal(s.drops, 3);
    d = scale_def(&s, kSchema);
    assert_int_equal(tt_op_register(NULL, &d), TT_BAD_HANDLE);
    assert_int_equal(s.drops, 4);
    d.struct_size = 8;
    FAILS(TT_ABI, tt_op_register(c, &d));
    FAILS(TT_INVALID_ARG, tt_op_register(c, NULL));
  }
  FAILS(TT_NOT_IMPLEMENTED, tt_op_find(c, "scale", &op));
  s.drops = 0;
  {
    tt_ctx* other = NULL;
    tt_op_def d = scale_def(&s, kSchema);
    OK(tt_op_register(c, &d));
    FAILS(TT_INVALID_ARG, tt_op_register(c, &d)); /* the name is taken */
    assert_int_equal(s.drops, 1);
    assert_int_equal(tt_ctx_new(NULL, &other), TT_OK); /* another runtime does not have it */
    assert_int_equal(tt_op_find(other, "scale", &op), TT_NOT_IMPLEMENTED);
    assert_int_equal(tt_op_register(other, &d), TT_OK);
    tt_ctx_release(other);
    assert_int_equal(s.drops, 2);
  }
  /* s lives on the stack: end the runtime before it */
  tt_ctx_release(e->c);
  tt_runtime_release(e->rt);
  assert_int_equal(s.drops, 3);
  assert_int_equal(e->live, 0);
  e->c = NULL;
  e->rt = NULL;
}

/* A graph outlives the runtime that the operator was registered with. */
static void test_drop_after_the_last_node(void** state) {
  CTX;
  Scale s;
  const tt_op* op = register_scale(c, &s);
  tt_tensor* x = vec(c, k12, 2);
  tt_tensor* y = NULL;
  OK(tt_requires_grad_(c, x, 1));
  OK(call_scale(c, op, x, 5, &y));
  tt_ctx_release(e->c);
  tt_runtime_release(e->rt);
  e->c = NULL;
  e->rt = NULL;
  assert_int_equal(s.drops, 0);
  assert_int_equal(tt_ctx_new(NULL, &c), TT_OK);
  {
    tt_tensor *loss = NULL, *grad = NULL;
    OK(tt_sum(c, y, NULL, &loss));
    OK(tt_backward(c, loss, NULL));
    OK(tt_tensor_grad(c, x, &grad));
    HOLDS(grad, 5, 5);
    tt_tensor_release(loss);
    tt_tensor_release(grad);
  }
  tt_tensor_release(x);
  tt_tensor_release(y);
  assert_int_equal(s.drops, 1);
  tt_ctx_release(c);
}

/* Every kind of argument reaches both callbacks. */
static int kinds_seen;
static void check_kinds(const tt_value* a, int64_t n) {
  assert_int_equal(n, 13);
  assert_int_equal(a[0].tag, TT_VAL_TENSORS);
  assert_int_equal(a[0].n, 2);
  assert_int_equal(a[1].tag, TT_VAL_NONE);
  assert_int_equal(a[2].tag, TT_VAL_SCALAR);
  assert_int_equal(a[2].scalar.kind, TT_SCALAR_COMPLEX);
  assert_true(a[2].scalar.im == 4);
  assert_int_equal(a[3].tag, TT_VAL_INT);
  assert_int_equal(a[3].i, -7);
  assert_int_equal(a[4].tag, TT_VAL_BOOL);
  assert_int_equal(a[4].i, 1);
  assert_int_equal(a[5].tag, TT_VAL_INTS);
  assert_int_equal(a[5].n, 2);
  assert_int_equal(a[5].ints[1], 9);
  assert_int_equal(a[6].tag, TT_VAL_INT);
  assert_int_equal(a[6].i, TT_F32);
  assert_int_equal(a[7].tag, TT_VAL_DEVICE);
  assert_int_equal(a[7].device.type, TT_CPU);
  assert_int_equal(a[8].tag, TT_VAL_STR);
  assert_int_equal(a[8].n, 3);
  assert_memory_equal(a[8].str, "abc", 3);
  assert_int_equal(a[9].tag, TT_VAL_GENERATOR);
  assert_non_null(a[9].generator);
  assert_int_equal(a[10].tag, TT_VAL_INDEX);
  assert_int_equal(a[10].n, 1);
  assert_int_equal(a[10].index[0].kind, TT_IDX_TENSOR);
  assert_int_equal(tt_tensor_numel(a[10].index[0].tensor), 2);
  assert_int_equal(a[11].tag, TT_VAL_FLOAT);
  assert_true(a[11].f == -1.5e-3);
  assert_int_equal(a[12].tag, TT_VAL_NONE);
  kinds_seen++;
}
static tt_status kinds_compute(void* user, tt_ctx* c, const tt_value* args, int64_t n,
                               tt_tensor** outs, int64_t n_outs) {
  (void)user;
  check_kinds(args, n);
  assert_int_equal(n_outs, 2);
  OK(tt_mul(c, args[0].tensors[0], args[0].tensors[1], &outs[0]));
  return tt_argmax(c, outs[0], NULL, &outs[1]);
}
static tt_status kinds_backward(void* user, tt_ctx* c, tt_tensor* const* grads, int64_t n_outs,
                                const tt_value* args, int64_t n, tt_tensor* const* results,
                                tt_tensor** input_grads, int64_t n_inputs) {
  (void)user;
  (void)results;
  check_kinds(args, n);
  assert_int_equal(n_outs, 2);
  assert_int_equal(n_inputs, 3); /* the two tensors of the list, and the absent one */
  assert_non_null(grads[0]);
  assert_null(grads[1]);
  OK(tt_mul(c, grads[0], args[0].tensors[1], &input_grads[0]));
  return tt_mul(c, grads[0], args[0].tensors[0], &input_grads[1]);
}
static void test_every_kind(void** state) {
  CTX;
  tt_op_def d;
  const tt_op* op = NULL;
  tt_tensor* list[2];
  tt_tensor* outs[2];
  tt_tensor* loss = NULL;
  tt_tensor* grad = NULL;
  tt_tensor* picked = NULL;
  tt_index index;
  int64_t dims[2] = {8, 9}, n;
  char text[] = "abc";
  tt_value a[13];
  kinds_seen = 0;
  memset(&d, 0, sizeof d);
  memset(a, 0, sizeof a);
  memset(&index, 0, sizeof index);
  d.struct_size = sizeof d;
  d.compute = kinds_compute;
  d.backward = kinds_backward;
  d.schema =
      "my.kinds( l: Tensor[], t: Tensor? = None, s: Scalar, i: Int = -7, b: Bool = true, d: Dims, "
      "y: DType, dev: "
      "Device, str: Str, "
      "g: Generator, ix: Index[], f: Float = -1.5e-3, o: Int? = None) -> (value: Tensor, place: "
      "IndexTensor)";
  OK(tt_op_register(c, &d));
  OK(tt_op_find(c, "my.kinds", &op));
  list[0] = vec(c, k12, 2);
  list[1] = vec(c, k12, 2);
  picked = vec(c, k12, 2);
  OK(tt_requires_grad_(c, list[0], 1));
  index.kind = TT_IDX_TENSOR;
  index.tensor = picked;
  a[0].tag = TT_VAL_TENSORS;
  a[0].tensors = list;
  a[0].n = 2;
  a[2].tag = TT_VAL_SCALAR;
  a[2].scalar.kind = TT_SCALAR_COMPLEX;
  a[2].scalar.re = 3;
  a[2].scalar.im = 4;
  a[5].tag = TT_VAL_INTS;
  a[5].ints = dims;
  a[5].n = 2;
  a[6].tag = TT_VAL_INT;
  a[6].i = TT_F32;
  a[7].tag = TT_VAL_DEVICE;
  a[7].device.type = TT_CPU;
  a[8].tag = TT_VAL_STR;
  a[8].str = text;
  a[8].n = 3;
  a[9].tag = TT_VAL_GENERATOR;
  OK(tt_generator_new(c, 3, &a[9].generator));
  a[10].tag = TT_VAL_INDEX;
  a[10].index = &index;
  a[10].n = 1;
  OK(tt_op_call(c, op, a, 11, outs, 2, &n));
  assert_int_equal(n, 2);
  assert_int_equal(tt_tensor_requires_grad(outs[0]), 1);
  assert_int_equal(tt_tensor_requires_grad(outs[1]), 0);
  /* the node's saved tensors are its own */
  tt_generator_release(a[9].generator);
  tt_tensor_release(picked);
  dims[1] = 0;
  text[0] = 'X';
  index.kind = 0;
  OK(tt_sum(c, outs[0], NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_tensor_grad(c, list[0], &grad));
  HOLDS(grad, 1, 2);
  assert_int_equal(kinds_seen, 2);
  tt_tensor_release(list[0]);
  tt_tensor_release(list[1]);
  tt_tensor_release(outs[0]);
  tt_tensor_release(outs[1]);
  tt_tensor_release(loss);
  tt_tensor_release(grad);
}

/* Each allocation of a registration, a call and a backward fails once: no crash, no leak, and
   drop runs exactly once. */
static void test_out_of_memory(void** state) {
  static Scale s;
  CTX;
  int64_t k;
  int done = 0;
  for (k = 0; !done; k++) {
    Env inner;
    tt_allocator alloc;
    tt_runtime_opts o;
    tt_op_def d = scale_def(&s, kSchema);
    tt_tensor *x = NULL, *y = NULL, *loss = NULL;
    const tt_op* op = NULL;
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
    inner.allow = k;
    if (tt_runtime_new(&o, &inner.rt)) continue;
    if (tt_ctx_new(inner.rt, &c)) {
      tt_runtime_release(inner.rt);
      continue;
    }
    if (tt_op_register(c, &d) == TT_OK && tt_op_find(c, "scale", &op) == TT_OK &&
        tt_tensor_from_data(c, k12, TT_F64, (const int64_t[]){2}, 1, &x) == TT_OK &&
        tt_requires_grad_(c, x, 1) == TT_OK && call_scale(c, op, x, 5, &y) == TT_OK &&
        tt_sum(c, y, NULL, &loss) == TT_OK)
      done = tt_backward(c, loss, NULL) == TT_OK;
    tt_tensor_release(x);
    tt_tensor_release(y);
    tt_tensor_release(loss);
    tt_ctx_release(c);
    tt_runtime_release(inner.rt);
    assert_int_equal(s.drops, 1);
    assert_int_equal(inner.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_compute),     TEST(test_gradients),         TEST(test_version_check),
      TEST(test_no_backward), TEST(test_failing_callbacks), TEST(test_input_as_output),
      TEST(test_scopes),      TEST(test_bad_registration),  TEST(test_drop_after_the_last_node),
      TEST(test_every_kind),  TEST(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
