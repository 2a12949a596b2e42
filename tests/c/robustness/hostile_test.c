/* Every exported function with NULL, and with live handles of other types, for each pointer
   argument in turn: a status, never a crash; outs are NULL; the error names the argument. The
   calls are generated from the declarations and from tt.h. */
#define _POSIX_C_SOURCE 200809L
#include "harness.h"

#include <unistd.h>

typedef enum Kind {
  kCtx,
  kRuntime,
  kTensor,
  kGenerator,
  kCancel,
  kNode,
  kOp,
  kFunction,
  kSafetensors,
  kOptimizer,
  kScheduler,
  kModule,
  kDataset,
  kSampler,
  kLoader,
  kGraph,
  kGroup,
  kWork,
  kDdp,
  kPlan,
  kCompiled,
  kStream,
  kEvent,
  kGradScaler,
  kStateDict, /* handles */
  kMaybeTensor,
  kOptTensor,
  kOptGenerator, /* handles that may be NULL */
  kTensors,
  kSchedulers,
  kOps,
  kDatasets, /* lists of one */
  kDoubles,
  kOutTensor,
  kOutRuntime,
  kOutCtx,
  kOutGenerator,
  kOutCancel,
  kOutNode,
  kOutSafetensors,
  kOutOptimizer,
  kOutScheduler,
  kOutModule,
  kOutDataset,
  kOutSampler,
  kOutLoader,
  kOutGraph,
  kOutGroup,
  kOutWork,
  kOutDdp,
  kOutPlan,
  kOutCompiled,
  kOutStream,
  kOutEvent,
  kOutGradScaler,
  kOutStateDict,
  kScalar,
  kMaybeScalar,
  kInts,
  kMaybeInts,
  kDevice,
  kIndex,
  kValues,
  kText,
  kTexts,
  kFunctionDef,
  kOpDef,
  kModuleDef,
  kCheckpoint,
  kOpts,
  kCallback,
  kOut,
  kMemory
} Kind;
enum { kMaxPlaces = 12, kHandles = 25, kSlots = 8 };
typedef enum Result { kStatus, kFact, kVoid } Result;
typedef struct Place {
  Kind kind;
  const char* name;
} Place;
typedef struct Function {
  const char* name;
  int64_t (*call)(void** p);
  Result result;
  int n;
  Place places[kMaxPlaces];
} Function;

#include "hostile_calls.inc"

enum { kNoValue = 100000 }; /* of no enumeration */
#include "enum_calls.inc"

/* Pointers of tt.h that may be NULL: function, argument ("*": of every function). */
static const char* const kNullable[][2] = {
    {"*", "opts"},
    {"*", "user"},
    {"*", "drop"},
    {"tt_ctx_new", "rt"},
    {"tt_memory", "device"},
    {"tt_set_grad_enabled", "previous"},
    {"tt_ctx_set_cancel", "k"},
    {"tt_ddp_set_hook", "start"},
    {"tt_ddp_set_hook", "finish"},
    {"tt_load_cuda", "path"},
    {"tt_synchronize", "device"},
    {"tt_tensor_import", "strides"},
    {"tt_tensor_import", "deleter"},
    {"tt_tensor_set_grad", "grad"},
    {"tt_ctx_trace_dispatch", "fn"},
    {"tt_nn_triplet_margin_with_distance_loss", "fn"},
    {"tt_profiler_rows", "rows"},
    {"tt_profiler_events", "rows"},
    {"tt_profiler_sums", "rows"},
    {"tt_loader_new", "sampler"},
    {"tt_optim_set_state", "value"},
    {"tt_backward_all", "gradients"},
    {"tt_set_anomaly_enabled", "previous"},
    {"tt_module_to", "device"},
    {"tt_module_register_parameter", "tensor"},
    {"tt_module_register_buffer", "tensor"},
    {"tt_module_register_forward_pre_hook", "id"},
    {"tt_module_register_forward_hook", "id"},
    {"tt_module_register_full_backward_pre_hook", "id"},
    {"tt_module_register_full_backward_hook", "id"},
    {"tt_torch_save", "structure"},
    {"*", "work"},
    {"tt_group_new", "backend"},
    {"tt_group_new", "rendezvous"},
    {"tt_group_sync_batch_norm", "g"},
    {"tt_csv_load", "delimiter"},
    {"tt_device_get_properties", "device"},
    {"tt_device_memory_stats", "device"},
    {"tt_device_reset_peak", "device"},
    {"tt_stream_new", "device"},
    {"tt_stream_import", "device"},
    {"tt_stream_current", "device"},
    {"tt_stream_default", "device"},
    {"tt_event_new", "device"},
    {"tt_event_record", "s"},
    {"tt_pin_memory", "device"},
};

static int nullable(const Function* f, const Place* p) {
  size_t i;
  if (p->kind == kMaybeTensor || p->kind == kOptTensor || p->kind == kOptGenerator ||
      p->kind == kMaybeScalar || p->kind == kMaybeInts)
    return 1;
  for (i = 0; i < sizeof kNullable / sizeof *kNullable; i++)
    if ((kNullable[i][0][0] == '*' || strcmp(kNullable[i][0], f->name) == 0) &&
        strcmp(kNullable[i][1], p->name) == 0)
      return 1;
  return 0;
}

/* ---- live objects, one per kind ---- */

static tt_status nothing(void) { return TT_OK; }
static tt_status forward(void* user, tt_ctx* x, tt_function* f, const tt_tensor* const* in,
                         int64_t n_in, tt_tensor** outs, int64_t n_outs) {
  (void)user;
  (void)x;
  (void)f;
  (void)in;
  (void)n_in;
  (void)outs;
  (void)n_outs;
  return TT_IO;
}
static tt_status backward(void* user, tt_ctx* x, tt_function* f, tt_tensor* const* grads, int64_t n,
                          tt_tensor** out, int64_t n_in) {
  (void)user;
  (void)x;
  (void)f;
  (void)grads;
  (void)n;
  (void)out;
  (void)n_in;
  return TT_IO;
}
static tt_status module_forward(void* user, tt_ctx* x, tt_module* m, const tt_tensor* const* in,
                                int64_t n_in, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)x;
  (void)m;
  (void)in;
  (void)n_in;
  (void)outs;
  (void)cap;
  (void)n_outs;
  return TT_IO;
}
static struct {
  tt_runtime* rt;
  tt_tensor *tensor, *product;
  tt_generator* generator;
  tt_cancel* cancel;
  tt_node* node;
  const tt_op* op;
  tt_safetensors* file; /* opened once */
  tt_optimizer* optimizer;
  tt_scheduler* scheduler;
  tt_module* module; /* a MultiheadAttention, which has a function of its own */
  tt_dataset* dataset;
  tt_sampler* sampler;
  tt_loader* loader;
  tt_graph* graph;
  tt_group* group; /* of one process */
  tt_work* work;
  tt_ddp* ddp;
  tt_plan* plan;
  tt_compiled* compiled;
  tt_stream* stream; /* of the fake device */
  tt_event* event;
  tt_grad_scaler* grad_scaler;
  tt_state_dict* state;
} live;
static const int64_t kShape[1] = {4};
static const double kReals[1] = {0.5};
static const char* const kTextList[1] = {"a"};
static const float kFour[4] = {1, 2, 3, 4};
static tt_status no_results(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                            tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  (void)user;
  (void)x;
  (void)in;
  (void)n;
  (void)outs;
  (void)cap;
  *n_outs = 0;
  return TT_OK;
}
static void make_live(void) {
  const char* fake = getenv("TT_TEST_FAKE_LIBRARY");
  OK(tt_ctx_runtime(c, &live.rt));
  OK(tt_tensor_from_data(c, kFour, TT_F32, kShape, 1, &live.tensor));
  OK(tt_requires_grad_(c, live.tensor, 1));
  OK(tt_mul(c, live.tensor, live.tensor, &live.product));
  OK(tt_tensor_grad_fn(c, live.product, &live.node));
  OK(tt_generator_new(c, 1, &live.generator));
  OK(tt_cancel_new(c, &live.cancel));
  OK(tt_op_find(c, "neg", &live.op));
  OK(tt_optim_sgd(c, &live.tensor, 1, NULL, &live.optimizer));
  OK(tt_lr_exponential(c, live.optimizer, 0.9, NULL, &live.scheduler));
  OK(tt_nn_multihead_attention(c, 4, 2, NULL, &live.module));
  OK(tt_module_state_dict(c, live.module, &live.state));
  OK(tt_dataset_tensors(c, (const tt_tensor* const*)&live.product, 1, &live.dataset));
  OK(tt_sampler_sequential(c, 4, &live.sampler));
  OK(tt_loader_new(c, live.dataset, live.sampler, NULL, &live.loader));
  OK(tt_capture_begin(c, NULL, 0, NULL));
  OK(tt_capture_end(c, NULL, 0, &live.graph));
  OK(tt_group_new(c, NULL, 0, 1, NULL, NULL, &live.group));
  OK(tt_group_barrier(c, live.group, &live.work));
  OK(tt_ddp_new(c, live.module, live.group, NULL, &live.ddp));
  OK(tt_plan_new(c, live.graph, NULL, &live.plan));
  OK(tt_compile(c, no_results, NULL, NULL, NULL, &live.compiled));
  OK(tt_grad_scaler_new(c, NULL, &live.grad_scaler));
  if (fake && *fake) {
    OK(tt_load_cuda(c, fake));
    OK(tt_stream_new(c, NULL, 0, &live.stream));
    OK(tt_event_new(c, NULL, 1, &live.event));
  }
}
static void drop_live(void) {
  tt_runtime_release(live.rt);
  tt_tensor_release(live.tensor);
  tt_tensor_release(live.product);
  tt_node_release(live.node);
  tt_generator_release(live.generator);
  tt_cancel_release(live.cancel);
  tt_optim_release(live.optimizer);
  tt_scheduler_release(live.scheduler);
  tt_module_release(live.module);
  tt_state_dict_release(live.state);
  tt_dataset_release(live.dataset);
  tt_sampler_release(live.sampler);
  tt_loader_release(live.loader);
  tt_graph_release(live.graph);
  tt_ddp_release(live.ddp);
  tt_work_release(live.work);
  tt_group_release(live.group);
  tt_plan_release(live.plan);
  tt_compiled_release(live.compiled);
  tt_stream_release(live.stream);
  tt_event_release(live.event);
  tt_grad_scaler_release(live.grad_scaler);
}
static void open_file(void) {
  char path[64];
  tt_tensor* t;
  snprintf(path, sizeof path, "/tmp/tt_hostile_%ld.safetensors", (long)getpid());
  OK(tt_tensor_from_data(c, kFour, TT_F32, kShape, 1, &t));
  OK(tt_safetensors_save(c, path, kTextList, &t, 1, NULL));
  OK(tt_safetensors_open(c, path, &live.file));
  unlink(path);
  tt_tensor_release(t);
}
static void* handle_of(int kind) {
  void* const all[kHandles] = {c,
                               live.rt,
                               live.tensor,
                               live.generator,
                               live.cancel,
                               live.node,
                               (void*)live.op,
                               NULL,
                               live.file,
                               live.optimizer,
                               live.scheduler,
                               live.module,
                               live.dataset,
                               live.sampler,
                               live.loader,
                               live.graph,
                               live.group,
                               live.work,
                               live.ddp,
                               live.plan,
                               live.compiled,
                               live.stream,
                               live.event,
                               live.grad_scaler,
                               live.state};
  return all[kind];
}
static int handle_kind(Kind k) { /* the handle that an argument takes; -1: none */
  if (k <= kStateDict) return (int)k;
  if (k == kMaybeTensor || k == kOptTensor) return (int)kTensor;
  return k == kOptGenerator ? (int)kGenerator : -1;
}

/* ---- one call ---- */

typedef struct Call {
  void* p[kMaxPlaces];
  void* outs[kMaxPlaces][kSlots];
  char memory[kMaxPlaces][512];
  void* list[kMaxPlaces][1];
  tt_value value;
  tt_scalar scalar;
  tt_device device;
  tt_index index;
  tt_function_def function;
  tt_op_def op;
  tt_module_def module;
  tt_checkpoint checkpoint;
} Call;

/* Destructors of what functions take over. */
static int dropped;
static void drop(void* user) {
  (void)user;
  dropped++;
}
static int is_drop(const Place* p) {
  return strcmp(p->name, "drop") == 0 || strcmp(p->name, "deleter") == 0;
}
/* The number of them in a call whose argument `bad` is replaced. */
static int drops(const Function* f, int bad) {
  int i, n = 0;
  for (i = 0; i < f->n; i++) {
    const Kind kind = f->places[i].kind;
    const int definition = kind == kFunctionDef || kind == kOpDef || kind == kModuleDef;
    n += i != bad && (definition || is_drop(&f->places[i]));
  }
  return n;
}

static void* valid(Call* k, const Place* p, int i) {
  switch (p->kind) {
    case kTensors:
    case kDatasets:
    case kOps:
    case kSchedulers: return k->list[i];
    case kOutTensor:
    case kOutRuntime:
    case kOutCtx:
    case kOutGenerator:
    case kOutCancel:
    case kOutNode:
    case kOutSafetensors:
    case kOutOptimizer:
    case kOutScheduler:
    case kOutModule:
    case kOutDataset:
    case kOutSampler:
    case kOutLoader:
    case kOutGraph:
    case kOutGroup:
    case kOutWork:
    case kOutDdp:
    case kOutPlan:
    case kOutCompiled:
    case kOutStream:
    case kOutEvent:
    case kOutGradScaler:
    case kOutStateDict: return k->outs[i];
    case kScalar:
    case kMaybeScalar: return &k->scalar;
    case kInts:
    case kMaybeInts: return (void*)kShape;
    case kDoubles: return (void*)kReals;
    case kDevice: return &k->device;
    case kIndex: return &k->index;
    case kValues: return &k->value;
    case kText:
      if (strcmp(p->name, "delimiter") == 0) return ",";
      return strcmp(p->name, "path") == 0 ? "/nonexistent/tt" : "cpu";
    case kTexts: return (void*)kTextList;
    case kFunctionDef: return &k->function;
    case kOpDef: return &k->op;
    case kModuleDef: return &k->module;
    case kCheckpoint: return &k->checkpoint;
    case kOpts: return NULL;
    case kCallback:
      if (strcmp(p->name, "fn") == 0) return (void*)nothing;
      return is_drop(p) ? (void*)drop : NULL;
    case kOut:
    case kMemory: return k->memory[i];
    default: return handle_of(handle_kind(p->kind));
  }
}

static void prepare(const Function* f, Call* k) {
  int i;
  memset(k, 0, sizeof *k);
  memset(k->outs, 0x5a, sizeof k->outs);
  k->value.tag = TT_VAL_TENSOR;
  k->value.tensor = live.tensor;
  k->scalar = real_scalar(1);
  k->device.type = TT_CPU;
  k->index.kind = TT_IDX_INT;
  k->function.struct_size = sizeof k->function;
  k->function.forward = forward;
  k->function.backward = backward;
  k->op.struct_size = sizeof k->op;
  k->function.drop = k->op.drop = k->module.drop = drop;
  k->module.struct_size = sizeof k->module;
  k->module.name = "M";
  k->module.forward = module_forward;
  k->checkpoint.struct_size = sizeof k->checkpoint;
  k->checkpoint.module = live.module;
  for (i = 0; i < f->n; i++) {
    k->list[i][0] = live.tensor;
    if (f->places[i].kind == kSchedulers) k->list[i][0] = live.scheduler;
    if (f->places[i].kind == kDatasets) k->list[i][0] = live.dataset;
    if (f->places[i].kind == kOps) k->list[i][0] = (void*)live.op;
    k->p[i] = valid(k, &f->places[i], i);
  }
}

static int needs_function(const Function* f,
                          int but) { /* a live tt_function exists inside callbacks only */
  int i;
  for (i = 0; i < f->n; i++)
    if (i != but && f->places[i].kind == kFunction) return 1;
  return 0;
}

/* Releases the results of a call that succeeded in spite of a NULL. */
static void give_back(const Function* f, Call* k, int bad) {
  int i;
  OK(tt_capture_drop(c)); /* of a tt_capture_begin */
  for (i = 0; i < f->n; i++) {
    void* out = k->outs[i][0];
    if (i == bad) continue;
    if (f->places[i].kind == kOutRuntime) tt_runtime_release(out);
    if (f->places[i].kind == kOutCtx) tt_ctx_release(out);
    if (f->places[i].kind == kOutGenerator) tt_generator_release(out);
    if (f->places[i].kind == kOutCancel) tt_cancel_release(out);
    if (f->places[i].kind == kOutNode) tt_node_release(out);
    if (f->places[i].kind == kOutSafetensors) tt_safetensors_release(out);
    if (f->places[i].kind == kOutOptimizer) tt_optim_release(out);
    if (f->places[i].kind == kOutScheduler) tt_scheduler_release(out);
    if (f->places[i].kind == kOutModule) tt_module_release(out);
    if (f->places[i].kind == kOutDataset) tt_dataset_release(out);
    if (f->places[i].kind == kOutSampler) tt_sampler_release(out);
    if (f->places[i].kind == kOutLoader) tt_loader_release(out);
    if (f->places[i].kind == kOutGraph) tt_graph_release(out);
    if (f->places[i].kind == kOutGroup) tt_group_release(out);
    if (f->places[i].kind == kOutWork) tt_work_release(out);
    if (f->places[i].kind == kOutDdp) tt_ddp_release(out);
    if (f->places[i].kind == kOutPlan) tt_plan_release(out);
    if (f->places[i].kind == kOutCompiled) tt_compiled_release(out);
    if (f->places[i].kind == kOutStream) tt_stream_release(out);
    if (f->places[i].kind == kOutEvent) tt_event_release(out);
    if (f->places[i].kind == kOutGradScaler) tt_grad_scaler_release(out);
    if (f->places[i].kind == kOutStateDict) tt_state_dict_release(out);
  }
}

static int check_call(const Function* f, int bad, void* value, int other_type) {
  const Place* p = &f->places[bad];
  const char* what = other_type ? "another handle" : "NULL";
  Call k;
  tt_status s;
  int i, wrong = 0;
  prepare(f, &k);
  if (p->kind >= kTensors && p->kind <= kDatasets && other_type) k.list[bad][0] = value;
  else k.p[bad] = value;
  OK(tt_scope_push(c));
  dropped = 0;
  s = (tt_status)f->call(k.p);
  if (f->result == kStatus && s && dropped != drops(f, bad)) {
    wrong = 1;
    print_error("%s: %s as %s fails and runs %d of %d destructors\n", f->name, what, p->name,
                dropped, drops(f, bad));
  }
  if (f->result == kStatus) {
    const tt_error* e = tt_ctx_error(c);
    const int may_pass = !other_type && nullable(f, p);
    if (!s && !may_pass) {
      wrong = 1;
      print_error("%s: %s as %s is accepted\n", f->name, what, p->name);
    }
    if (s && other_type && s != TT_BAD_HANDLE) {
      wrong = 1;
      print_error("%s: %s as %s gives %s\n", f->name, what, p->name, tt_status_name(s));
    }
    if (s && !may_pass && s != TT_BAD_HANDLE && s != TT_INVALID_ARG && s != TT_BUFFER_TOO_SMALL) {
      wrong = 1;
      print_error("%s: %s as %s gives %s\n", f->name, what, p->name, tt_status_name(s));
    }
    if (s && !may_pass && p->kind != kCtx && p->kind != kRuntime && f->places[0].kind == kCtx &&
        !needs_function(f, bad) && s != TT_BUFFER_TOO_SMALL && strcmp(e->arg, p->name)) {
      wrong = 1;
      print_error("%s: %s as %s: the error names \"%s\": %s\n", f->name, what, p->name, e->arg,
                  e->message);
    }
    for (i = 0; s && i < f->n; i++)
      if (f->places[i].kind >= kOutTensor && f->places[i].kind <= kOutStateDict && i != bad &&
          k.outs[i][0]) {
        wrong = 1;
        print_error("%s: %s as %s fails and leaves %s as it was\n", f->name, what, p->name,
                    f->places[i].name);
      }
    if (!s) give_back(f, &k, bad);
  } else if (f->result == kFact && s) {
    wrong = 1;
    print_error("%s: %s gives %d\n", f->name, what, (int)s);
  }
  while (!tt_scope_pop(c, NULL, 0)) {}
  return wrong;
}

static void test_hostile_arguments(void** state) {
  const size_t n = sizeof kFunctions / sizeof *kFunctions;
  size_t i;
  int place, h, calls = 0, wrong = 0;
  (void)state;
  open_file();
  for (i = 0; i < n; i++) {
    const Function* f = &kFunctions[i];
    make_live();
    for (place = 0; place < f->n; place++) {
      const Kind kind = f->places[place].kind;
      int want = handle_kind(kind);
      if (kind == kTensors) want = (int)kTensor;
      if (kind == kSchedulers) want = (int)kScheduler;
      if (kind == kDatasets) want = (int)kDataset;
      if (kind == kOps) want = (int)kOp;
      wrong += check_call(f, place, NULL, 0);
      calls++;
      for (h = 0; want >= 0 && h < kHandles; h++)
        if (h != want && handle_of(h)) {
          wrong += check_call(f, place, handle_of(h), 1);
          calls++;
        }
    }
    OK(tt_set_grad_enabled(c, 1, NULL));
    drop_live();
  }
  tt_safetensors_release(live.file);
  print_message("%d functions, %d calls\n", (int)n, calls);
  assert_int_equal(wrong, 0);
}

/* A number outside its enumeration is refused by the argument's name, in every function that takes
 * one. */
static void test_enumerations(void** state) {
  size_t i;
  int wrong = 0;
  (void)state;
  make_live();
  for (i = 0; i < sizeof kEnumCalls / sizeof *kEnumCalls; i++) {
    const Function* f = &kEnumCalls[i];
    const tt_error* e = tt_ctx_error(c);
    Call k;
    tt_status s;
    prepare(f, &k);
    s = (tt_status)f->call(k.p);
    if (s == TT_INVALID_ARG && strstr(e->message, "is 100000: must be ")) continue;
    wrong++;
    print_error("%s: %s: %s\n", f->name, tt_status_name(s), s ? e->message : "");
  }
  drop_live();
  assert_int_equal(wrong, 0);
}

/* Afterwards the ctx still works. */
static void test_still_working(void** state) {
  tt_tensor* t;
  (void)state;
  test_hostile_arguments(state);
  OK(tt_scope_push(c));
  OK(tt_ones(c, kShape, 1, NULL, &t));
  assert_true(value_of(sum_of(t)) == 4);
  OK(tt_scope_pop(c, NULL, 0));
}

/* An item of a list that is no tensor is named by its position. */
static void test_items(void** state) {
  const tt_tensor* list[2];
  tt_tensor *t, *out;
  (void)state;
  OK(tt_ones(c, kShape, 1, NULL, &t));
  list[0] = t;
  list[1] = NULL;
  assert_int_equal(tt_cat(c, list, 2, NULL, &out), TT_BAD_HANDLE);
  assert_string_equal(tt_ctx_error(c)->message,
                      "cat: tensors[1] is NULL: must be a live tensor handle");
  list[1] = (const tt_tensor*)c;
  assert_int_equal(tt_cat(c, list, 2, NULL, &out), TT_BAD_HANDLE);
  assert_string_equal(tt_ctx_error(c)->message, "cat: tensors[1] is not a live tensor handle");
  assert_string_equal(tt_ctx_error(c)->arg, "tensors");
  tt_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {PLAIN(test_still_working), PLAIN(test_enumerations),
                                     PLAIN(test_items)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
