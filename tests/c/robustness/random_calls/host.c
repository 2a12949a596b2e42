/* The application's side: drops, callbacks that call tt again, its operators and device. */
#include "program.h"

/* ---- callbacks in general ---- */

void count_drop(void* user) { ((Program*)user)->drops++; }
void (*counted_drop(Program* p))(void*) {
  p->registered++;
  return count_drop;
}

tt_status reenter(Program* p, tt_ctx* c) {
  tt_ctx* outer = p->c;
  int n = below(p, 3);
  if (p->nested == kMaxNested) return TT_OK;
  p->nested++;
  p->c = c;
  for (; n > 0; n--) call_operator(p);
  p->nested--;
  p->c = outer;
  return one_in(p, 25) ? (tt_status)(1 + below(p, 20)) : TT_OK;
}

/* ---- memory of the application ---- */

static void import(Program* p) {
  static float memory[64];
  int64_t shape[8], strides[8];
  const int64_t ndim = below(p, 4);
  const int32_t writable = !one_in(p, 4);
  void (*drop)(void*);
  tt_tensor* t = NULL;
  int64_t d;
  for (d = 0; d < ndim; d++) {
    shape[d] = one_in(p, 40) ? small_int(p) : 1 + below(p, 3);
    strides[d] = one_in(p, 40) ? small_int(p) : below(p, 9);
  }
  for (d = 0; d < ndim; d++) /* invalid memory would be the program's error */
    if (shape[d] > 3 || strides[d] > 8) return;
  drop = counted_drop(p);
  CALL(tt_tensor_import(p->c, memory, TT_F32, shape, ndim, one_in(p, 2) ? strides : NULL, writable,
                        drop, p, &t));
  keep_tensor(p, t);
}

/* ---- operators ---- */

static tt_status compute(void* user, tt_ctx* c, const tt_value* args, int64_t n_args,
                         tt_tensor** outs, int64_t n_outs) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  (void)n_args;
  (void)n_outs;
  return s ? s : tt_mul_f64(c, args[0].tensor, 3, &outs[0]);
}
static tt_status compute_backward(void* user, tt_ctx* c, tt_tensor* const* grads, int64_t n_outs,
                                  const tt_value* args, int64_t n_args, tt_tensor* const* results,
                                  tt_tensor** input_grads, int64_t n_inputs) {
  Program* p = user;
  const tt_status s = reenter(p, c);
  (void)n_outs;
  (void)args;
  (void)n_args;
  (void)results;
  (void)n_inputs;
  return s || !grads[0] ? s : tt_mul_f64(c, grads[0], 3, &input_grads[0]);
}
static void use_own_operator(Program* p) {
  static const char* const kSchemas[] = {"thrice(x: Tensor, k: Int = 3) -> Tensor",
                                         "triple(x: Tensor, s: Scalar) -> Tensor", "bad(",
                                         "add(x: Tensor) -> Tensor"};
  tt_op_def def = {
      sizeof def, kSchemas[below(p, 4)], p, compute, one_in(p, 3) ? NULL : compute_backward, NULL};
  tt_value args[2];
  tt_tensor* out = NULL;
  const tt_op* op = NULL;
  int64_t n = 0;
  if (one_in(p, 3)) {
    def.drop = counted_drop(p);
    CALL(tt_op_register(p->c, &def));
    return;
  }
  memset(args, 0, sizeof args);
  args[0].tag = TT_VAL_TENSOR;
  args[0].tensor = any_tensor(p);
  args[1].tag = TT_VAL_INT;
  args[1].i = small_int(p);
  CALL(tt_op_find(p->c, one_in(p, 2) ? "thrice" : "triple", &op));
  if (!op) return;
  CALL(tt_op_call(p->c, op, args, 1 + below(p, 2), &out, 1, &n));
  keep_tensor(p, out);
}

/* ---- a device ---- */

/* A sanitizer's malloc ends the process where others return NULL. */
static void* take(void* user, int64_t bytes) {
  const int64_t limit = (int64_t)1 << 32;
  (void)user;
  return bytes <= limit ? malloc((size_t)bytes) : NULL;
}
static void give(void* user, void* block, int64_t bytes) {
  (void)user;
  (void)bytes;
  free(block);
}
static tt_status move(void* user, tt_ctx* c, void* dst, const void* src, int64_t bytes,
                      int32_t kind) {
  (void)user;
  (void)c;
  (void)kind;
  memcpy(dst, src, (size_t)bytes);
  return TT_OK;
}
static tt_status run(void* user, tt_ctx* c, const tt_op* op, const tt_value* args, int64_t n_args,
                     tt_tensor** outs, int64_t n_outs) {
  Program* p = user;
  (void)op;
  (void)args;
  (void)n_args;
  (void)outs;
  (void)n_outs;
  if (one_in(p, 30)) reenter(p, c);
  return TT_NOT_IMPLEMENTED;
}
void open_backend(Program* p) {
  const tt_backend_def def = {.struct_size = sizeof def,
                              .name = "plain",
                              .user = p,
                              .alloc = take,
                              .free = give,
                              .copy = move,
                              .compute = run,
                              .drop = counted_drop(p)};
  if (tt_backend_register(p->c, &def, &p->ext)) memset(&p->ext, 0, sizeof p->ext);
}

void act_host(Program* p) {
  if (one_in(p, 3)) use_own_operator(p);
  else import(p);
}
