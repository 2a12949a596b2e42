/* Every operator that an application can name, on every sample of its group: values against a
   reference in double precision, gradients and second derivatives against finite differences,
   in-place and into forms against the pure one, other layouts, META, the instruction set
   TT_TEST_ISA against the baseline, the device TT_TEST_DEVICE (fake, emu, ext; with
   TT_TEST_OWN_KERNELS without NVIDIA's libraries) against the CPU, two threads against one. */
#include "checks.h"

#include "ext_backend.h"
#include "share.h"

#include <dlfcn.h>

static int device_type = TT_CPU;
static ExtMemory ext_memory;
static tt_ctx* baseline_ctx; /* NULL: the instruction set under test is the baseline */
static tt_ctx* two_threads_ctx;
static int n_samples;

/* ---- layouts ---- */

/* as_strided takes strides, which fit one layout only. */
static int depends_on_layout(const Row* r) {
  for (int k = 0; k < r->n_args; k++)
    if (strcmp(r->args[k].name, "stride") == 0 && strcmp(r->args[k].type, "Size") == 0) return 1;
  return 0;
}
/* Not every layout can be viewed in another shape or dtype. */
static int may_refuse_layout(const Row* r) { return strncmp(r->name, "view", 4) == 0; }
static void check_layouts(const Sample* s, int exact) {
  static const char* const kNames[kNumLayouts] = {"columns first", "every second element",
                                                  "behind an offset"};
  const double ulps = exact && !row_samples(s->row)->summed ? 0 : 8;
  tt_tensor* want[kMaxOuts];
  tt_tensor* got[kMaxOuts];
  int n_want;
  int n;
  if (depends_on_layout(s->row)) return;
  done(s, call(s, want, &n_want));
  for (Layout layout = 0; layout < kNumLayouts; layout++) {
    const Sample t = with_layout(s, layout);
    doing = kNames[layout];
    const tt_status status = call(&t, got, &n);
    if (may_refuse_layout(s->row) && (status == TT_INVALID_ARG || status == TT_SHAPE)) continue;
    done(&t, status);
    assert_int_equal(n, n_want);
    for (int k = 0; k < n && has_values(s->row); k++) check_same(&t, got[k], want[k], ulps, ulps);
  }
}

/* ---- variants ---- */

static void check_into(const Sample* s, tt_tensor** want, int n) {
  tt_tensor* dst[kMaxOuts];
  int64_t n_outs = 0;
  doing = "into";
  for (int k = 0; k < n; k++) {
    dst[k] = clone_of(want[k]);
    OK(tt_zero_(c, dst[k]));
  }
  done(s, call_variant(s, "_into", dst, n, NULL, &n_outs));
  for (int k = 0; k < n; k++) {
    check_same(s, dst[k], want[k], 0, 0);
    if (tt_tensor_version(dst[k]) != 2) lost(s, "version", tt_tensor_version(dst[k]), 2);
  }
  doing = "into columns";
  for (int k = 0; k < n; k++) dst[k] = laid_out(dst[k], kColumnsFirst);
  done(s, call_variant(s, "_into", dst, n, NULL, &n_outs));
  for (int k = 0; k < n; k++) check_same(s, dst[k], want[k], 0, 0);
}
static void check_in_place(const Sample* s, const tt_tensor* want) {
  Sample t = *s;
  tt_tensor* self = clone_of(s->args[0].tensor);
  int64_t n_outs = 0;
  doing = "in place";
  t.args[0].tensor = self;
  const tt_status status = call_variant(&t, "_", NULL, 0, NULL, &n_outs);
  if (!have_equal_shapes(self, want)) {
    if (status != TT_SHAPE && status != TT_INVALID_ARG)
      lost(s, "status of a result of another shape", status, TT_SHAPE);
    check_same(s, self, s->args[0].tensor, 0, 0);
    return;
  }
  done(&t, status);
  check_same(s, self, cast(want, tt_tensor_dtype(self)), 0, 0);
  if (tt_tensor_version(self) == 0) lost(s, "version", 0, 1);
}
static void check_variants(const Sample* s) {
  tt_tensor* want[kMaxOuts];
  int n;
  done(s, call(s, want, &n));
  if (s->row->into) check_into(s, want, n);
  if (s->row->inplace) check_in_place(s, want[0]);
}

/* ---- META, instruction sets, threads, devices ---- */

static void check_same_facts(const Sample* s, const tt_tensor* got, const tt_tensor* want) {
  const int64_t* strides = tt_tensor_strides(got);
  const int64_t* wanted = tt_tensor_strides(want);
  if (tt_tensor_dtype(got) != tt_tensor_dtype(want))
    lost(s, "dtype", tt_tensor_dtype(got), tt_tensor_dtype(want));
  check_shape(s, got, tt_tensor_shape(want), (int)tt_tensor_ndim(want));
  for (int64_t d = 0; d < tt_tensor_ndim(want); d++)
    if (strides[d] != wanted[d]) lost(s, "stride", (double)strides[d], (double)wanted[d]);
}
static void check_device_type(const Sample* s, const tt_tensor* t, int type) {
  if (tt_tensor_device_type(t) != type) lost(s, "device", tt_tensor_device_type(t), type);
}
static void check_meta(const Sample* s) {
  const Sample t = on_device(s, TT_META);
  tt_tensor* want[kMaxOuts];
  tt_tensor* got[kMaxOuts];
  int n_want;
  int n;
  doing = "meta";
  done(s, call(s, want, &n_want));
  const tt_status status = call(&t, got, &n);
  const int is_unknown = status == TT_DEVICE || status == TT_NOT_IMPLEMENTED;
  if (is_unknown && row_samples(s->row)->shape_from_values) return;
  done(&t, status);
  assert_int_equal(n, n_want);
  for (int k = 0; k < n; k++) {
    check_device_type(s, got[k], TT_META);
    check_same_facts(s, got[k], want[k]);
  }
}

/* Compares the same call through another ctx. Both take CPU tensors. */
static void check_other_ctx(const Sample* s, tt_ctx* other, double ulps, double share) {
  tt_ctx* mine = c;
  tt_tensor* want[kMaxOuts];
  tt_tensor* got[kMaxOuts];
  int n_want;
  int n;
  done(s, call(s, got, &n));
  c = other;
  OK(tt_scope_push(c));
  done(s, call(s, want, &n_want));
  c = mine;
  assert_int_equal(n, n_want);
  for (int k = 0; k < n && has_values(s->row); k++) check_same(s, got[k], want[k], ulps, share);
  c = other;
  OK(tt_scope_pop(c, NULL, 0));
  c = mine;
}
static void check_baseline(const Sample* s, tt_dtype d, int exact) {
  const SampleGroup* group = row_samples(s->row);
  const Sample t = with_dtype(s, d);
  tt_tensor* outs[kMaxOuts];
  int n;
  doing = "against the baseline";
  if (call(&t, outs, &n)) return;
  if (group->drawn) check_other_ctx(&t, baseline_ctx, group->drawn->ulps, group->drawn->share);
  else if (exact) check_other_ctx(&t, baseline_ctx, 0, 0);
  else check_other_ctx(&t, baseline_ctx, 4, group->summed ? 16 : 0);
}
static void check_two_threads(const Sample* s) {
  OK(tt_scope_push(c));
  const Sample t = with_dtype(s, TT_F32);
  doing = "two threads";
  check_other_ctx(&t, two_threads_ctx, 0, 0);
  OK(tt_scope_pop(c, NULL, 0));
}
static double device_ulps(const Row* r, int exact) {
  if (is_random(r)) return row_samples(r)->drawn->ulps;
  return exact ? 0 : 8;
}
static int64_t (*fake_syncs)(void); /* of the fake device */

static const char* const kReadsValues[] = {
    /* the shape of the result, or what is computed, follows from values */
    "argwhere", "bincount", "histc", "histogram", "index_put", "masked_scatter", "masked_select",
    "matrix_exp", "nonzero", "nonzero_static", "one_hot", "repeat_interleave_tensor",
    "tensor_split_tensor", "unique", "unique_consecutive",
    /* tell whether a matrix could be decomposed, or how pivots exchange rows */
    "cholesky", "inverse", "linalg_cholesky", "linalg_cond", "linalg_eig", "linalg_eigh",
    "linalg_eigvals", "linalg_eigvalsh", "linalg_inv", "linalg_ldl_factor", "linalg_ldl_solve",
    "linalg_lstsq", "linalg_lu", "linalg_lu_solve", "linalg_matrix_rank", "linalg_pinv",
    "linalg_solve", "linalg_svd", "linalg_svdvals", "linalg_tensorinv", "linalg_tensorsolve",
    "lu_solve", "lu_unpack", "svd",
    /* checks arguments that decide sizes */
    "ctc_loss"};

static int reads_values(const Row* r) {
  for (size_t i = 0; i < sizeof kReadsValues / sizeof *kReadsValues; i++)
    if (strcmp(r->name, kReadsValues[i]) == 0) return 1;
  return 0;
}
/* Calls the operator and counts how often the host waited for the device. */
static void call_without_waiting(const Sample* t, tt_tensor** outs, int* n) {
  const int64_t before = fake_syncs ? fake_syncs() : 0;
  done(t, call(t, outs, n));
  if (!fake_syncs || reads_values(t->row)) return;
  if (fake_syncs() != before) lost(t, "synchronisations", (double)(fake_syncs() - before), 0);
}
static int has_own_kernels; /* the device does not run those of the CPU */
/* On the CPU LAPACK computes it, which no device has: the two results are as far apart as each may
   be from the reference. */
static int computed_by_lapack(const Row* r) { return strcmp(r->name, "nuclear_norm") == 0; }
/* The same, and vectors may have other signs or phases, and so may what follows from them. */
static int has_vectors_of_lapack(const Row* r) {
  static const char* const kRows[] = {"linalg_eig", "linalg_svd", "svd"};
  for (size_t i = 0; i < sizeof kRows / sizeof *kRows; i++)
    if (strcmp(r->name, kRows[i]) == 0) return 1;
  return 0;
}
static tt_tensor* magnitudes(const tt_tensor* t) {
  tt_tensor* out = NULL;
  OK(tt_abs(c, t, &out));
  return out;
}
static void check_device(const Sample* s, int exact) {
  const Sample t = on_device(s, device_type);
  const double ulps = device_ulps(s->row, exact);
  const int free_signs = has_vectors_of_lapack(s->row);
  const int other_way = has_own_kernels || free_signs || computed_by_lapack(s->row);
  const double share = other_way && row_samples(s->row)->summed ? 16 : ulps;
  tt_tensor* want[kMaxOuts];
  tt_tensor* got[kMaxOuts];
  int n_want;
  int n;
  doing = "device";
  done(s, call(s, want, &n_want));
  call_without_waiting(&t, got, &n);
  assert_int_equal(n, n_want);
  for (int k = 0; k < n && has_values(s->row); k++) {
    check_device_type(s, got[k], device_type);
    if (free_signs) {
      got[k] = magnitudes(on_cpu(got[k]));
      want[k] = magnitudes(want[k]);
    }
    if (exact == kExactSum && has_own_kernels) check_sums(s, on_cpu(got[k]), want[k]);
    else check_same(s, on_cpu(got[k]), want[k], ulps, exact ? ulps : share);
  }
}

/* ---- one row ---- */

static int has_float64(const Sample* s) {
  Sample copy = *s;
  tt_tensor** places[kMaxTensors];
  const int n = tensor_places(&copy, places);
  for (int i = 0; i < n; i++)
    if (tt_tensor_dtype(*places[i]) == TT_F64) return 1;
  return 0;
}
/* Float32 and bfloat16, which kernels of a device compute in their own ways. */
static void check_device_floats(const Sample* s, int exact) {
  const Sample single = with_dtype(s, TT_F32);
  check_device(&single, exact);
  if (row_samples(s->row)->no_half) return;
  const Sample half = with_dtype(s, TT_BF16);
  check_device(&half, exact == kExactWide ? 0 : exact);
}
/* Returns whether the results are bit-equal on every ISA and device. */
static int check_dtypes(const Sample* s) {
  static const tt_dtype kDtypes[] = {TT_F64, TT_F32, TT_F16, TT_BF16, TT_I32, TT_I64};
  const size_t n_dtypes = has_float64(s) ? sizeof kDtypes / sizeof *kDtypes : 1;
  const int no_half = row_samples(s->row)->no_half;
  int exact = 1;
  for (size_t i = 0; i < n_dtypes; i++) {
    if (no_half && (kDtypes[i] == TT_F16 || kDtypes[i] == TT_BF16)) continue;
    if (s->special && is_integer(kDtypes[i])) break;
    OK(tt_scope_push(c));
    check_values(s, kDtypes[i], &exact);
    if (baseline_ctx && kDtypes[i] != TT_F16) check_baseline(s, kDtypes[i], exact);
    OK(tt_scope_pop(c, NULL, 0));
  }
  return exact;
}
static void check_sample(const Sample* s, void* user) {
  const int has_derivatives = s->smooth && s->row->differentiable;
  int* const left = user;
  if (*left == 0) return;
  --*left;
  n_samples++;
  if (s->big) {
    if (device_type == TT_CPU) check_two_threads(s);
    return;
  }
  OK(tt_scope_push(c));
  const int exact = check_dtypes(s);
  if (device_type == TT_CPU) {
    check_layouts(s, exact);
    check_variants(s);
    check_meta(s);
    if (has_derivatives) check_derivatives(s);
  } else {
    check_device(s, exact);
    if (has_float64(s)) check_device_floats(s, exact);
    if (has_derivatives && !has_vectors_of_lapack(s->row)) check_device_gradients(s, device_type);
  }
  OK(tt_scope_pop(c, NULL, 0));
  scratch_clear();
}
static void test_row(void** state) {
  const int before = n_samples;
  const Row* r = *state;
  const char* most = getenv("TT_TEST_SAMPLES"); /* of each operator, for slow tools */
  int left = most ? atoi(most) : -1;
  each_sample(r, check_sample, &left);
  if (n_samples == before) fail_msg("%s has no sample", r->name);
}

/* ---- set-up ---- */

static int isa_wanted(void) {
  static const char* const kNames[] = {"best", "baseline", "avx2", "avx512"};
  const char* wanted = getenv("TT_TEST_ISA");
  for (int isa = 0; wanted && isa < 4; isa++)
    if (strcmp(wanted, kNames[isa]) == 0) return isa;
  return 0;
}
static tt_ctx* new_ctx(const tt_allocator* a, int isa, int threads) {
  const tt_runtime_opts opts = {
      .struct_size = sizeof opts, .allocator = a, .isa = isa, .threads = threads};
  tt_runtime* rt;
  tt_ctx* ctx;
  if (tt_runtime_new(&opts, &rt)) return NULL;
  if (tt_ctx_new(rt, &ctx)) ctx = NULL;
  tt_runtime_release(rt);
  tt_manual_seed(ctx, 0);
  return ctx;
}
/* Leaves NVIDIA's libraries out, if the environment says so. */
static int choose_kernels(void) {
  const tt_cuda_math_opts own = {.set = TT_CUDA_MATH_CUBLASLT | TT_CUDA_MATH_CUDNN |
                                        TT_CUDA_MATH_CUDNN_ATTENTION | TT_CUDA_MATH_CUSOLVER |
                                        TT_CUDA_MATH_CUFFT};
  return getenv("TT_TEST_OWN_KERNELS") ? (int)tt_ctx_set_cuda_math(c, &own) : 0;
}
/* Opens the device that the environment names, if any. */
static int open_device(void) {
  const char* name = getenv("TT_TEST_DEVICE");
  if (!name || strcmp(name, "cpu") == 0) return 0;
  if (strcmp(name, "ext") == 0) {
    const tt_backend_def def = ext_def(&ext_memory, "closed");
    tt_device device;
    device_type = TT_EXT;
    return tt_backend_register(c, &def, &device);
  }
  device_type = TT_CUDA;
  has_own_kernels = strcmp(name, "fake") != 0;
  void* library = dlopen(device_library(name), RTLD_NOW | RTLD_LOCAL);
  if (library) *(void**)&fake_syncs = dlsym(library, "tt_fake_syncs");
  return tt_load_cuda(c, device_library(name));
}
static int open_row(void** state) {
  const tt_allocator a = host_allocator(&host);
  int32_t isa = 0;
  (void)state;
  c = new_ctx(&a, isa_wanted(), 1);
  two_threads_ctx = new_ctx(&a, isa_wanted(), 2);
  if (!c || !two_threads_ctx || tt_ctx_isa(c, &isa)) return -1;
  baseline_ctx = isa > 1 ? new_ctx(&a, 1, 1) : NULL;
  if (!open_device() && !choose_kernels()) return 0;
  print_error("%s\n", tt_ctx_error(c)->message);
  return -1;
}
static int close_row(void** state) {
  scratch_clear();
  tt_ctx_release(two_threads_ctx);
  tt_ctx_release(baseline_ctx);
  return close_ctx(state);
}

/* op_table_test [OPERATOR…|--names]: all operators or those named; --names prints them. */
static int is_named(const Row* r, int argc, char** argv) {
  if (argc < 2) return 1;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], r->name) == 0) return 1;
  return 0;
}

/* AddressSanitizer sees every operator on the CPU. On devices, which add copies, and in other slow
   builds a share of the operators runs. */
#ifdef __SANITIZE_ADDRESS__
enum { kSharesOnCpu = 0 };
#else
enum { kSharesOnCpu = SLOW_BUILD };
#endif
static int not_now(int i) {
  const int shares = getenv("TT_TEST_DEVICE") ? SLOW_BUILD : kSharesOnCpu;
  return shares && left_out_in_turn(i);
}

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows, sizeof *tests);
  size_t n = 0;
  if (argc > 1 && strcmp(argv[1], "--names") == 0) {
    for (int i = 0; i < kNumRows; i++) printf("%s\n", kRows[i].name);
    free(tests);
    return 0;
  }
  for (int i = 0; i < kNumRows; i++) {
    if (!is_named(&kRows[i], argc, argv) || not_now(i)) continue;
    tests[n++] = (struct CMUnitTest){.name = kRows[i].name,
                                     .test_func = test_row,
                                     .setup_func = open_row,
                                     .teardown_func = close_row,
                                     .initial_state = (void*)&kRows[i]};
  }
  const int failed = _cmocka_run_group_tests("op_table", tests, n, NULL, NULL);
  print_message("%d operators, %d samples, %d derivatives\n", (int)n, n_samples,
                count_derivatives());
  free(tests);
  return failed;
}
