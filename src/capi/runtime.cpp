#include "capi/api.h"
#include "base/compiler/version.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "core/graph_hooks.h"
#include "dispatch/key.h"
#include "plan/cuda_math.h"
#include "cpu/blas.h"
#include "cpu/sleef.h"
#include "tt.h"

#include <string.h>

using namespace TT_NS;

const char* tt_version(void) { return TT_VERSION; }

#if TT_HAVE_AVX512
#define TT_ISA_LIST "baseline avx2 avx512"
#elif TT_HAVE_AVX2
#define TT_ISA_LIST "baseline avx2"
#elif TT_HAVE_SVE256
#define TT_ISA_LIST "baseline sve256"
#elif TT_HAVE_NEON
#define TT_ISA_LIST "baseline neon"
#else
#define TT_ISA_LIST "baseline"
#endif
// Rewritten after OpenBLAS or SLEEF has been opened, since only then their versions are known.
static constinit char build_info[256];
static constinit const char *build_info_core = nullptr, *build_info_sleef = nullptr;
static constinit Mutex build_info_mutex;
const char* tt_build_info(void) {
  Lock lock(build_info_mutex);
  const char* core = TT_BLAS ? blas_core() : nullptr;
  const char* sleef = sleef_state();
  if (build_info[0] && core == build_info_core && sleef == build_info_sleef) return build_info;
  const char* no_blas = TT_BLAS ? "not loaded" : "off";
  const FmtArg args[] = {TT_COMPILER, TT_ISA_LIST, core ? core : no_blas, sleef,
                         TT_CHECKED ? "on" : "off"};
  format_to(build_info, sizeof build_info,
            "tt " TT_VERSION "; {}; kernels: {}; OpenBLAS: {}; SLEEF: {}; checked: {}", args);
  build_info_core = core;
  build_info_sleef = sleef;
  return build_info;
}

const char* tt_status_name(tt_status s) { return status_name(s); }
const char* tt_dtype_name(tt_dtype d) {
  constexpr const char* kNames[] = {
      nullptr,    "bool",    "uint8",   "int8",      "int16",      "int32",  "int64",  "float16",
      "bfloat16", "float32", "float64", "complex64", "complex128", "uint16", "uint32", "uint64"};
  return valid_dtype(d) ? kNames[d] : nullptr;
}
int64_t tt_dtype_size(tt_dtype d) { return valid_dtype(d) ? kItemSize[d] : 0; }

// ---- runtime ----

static Runtime* runtime_of(tt_runtime* h) {
  auto* rt = reinterpret_cast<Runtime*>(h);
  return rt && rt->tag == kTagRuntime ? rt : nullptr;
}

// Copies the fields of a versioned struct that the caller's version has; the rest is zero.
template <class T> static bool copy_struct(T* out, const T* in, size_t min_size) {
  memset(static_cast<void*>(out), 0, sizeof *out);
  if (!in || in->struct_size < min_size) return false;
  memcpy(static_cast<void*>(out), in,
         in->struct_size < sizeof *out ? in->struct_size : sizeof *out);
  return true;
}

tt_status tt_runtime_new(const tt_runtime_opts* opts, tt_runtime** out) {
  if (!out) return TT_INVALID_ARG;
  *out = nullptr;
  tt_runtime_opts o;
  if (!copy_struct(&o, opts, sizeof(size_t)) && opts) return TT_ABI;
  if (o.allocator && (o.allocator->struct_size < sizeof(tt_allocator) || !o.allocator->alloc ||
                      !o.allocator->free))
    return TT_INVALID_ARG;
  if (o.executor && (o.executor->struct_size < sizeof(tt_executor) || !o.executor->parallel_for ||
                     !o.executor->num_threads))
    return TT_INVALID_ARG;
  if (o.logger && (o.logger->struct_size < sizeof(tt_logger) || !o.logger->log))
    return TT_INVALID_ARG;
  if (o.threads < 0 || o.threads > kMaxThreads) return TT_INVALID_ARG;
  if (o.memory_limit < 0 || o.isa < 0 || o.isa > kNumIsa) return TT_INVALID_ARG;
  Runtime* rt = runtime_new(o.allocator, o.isa - 1);
  if (!rt) return TT_OOM;
  if (is_linked(find_cuda_library)) find_cuda_library();
  if (o.logger) rt->logger = *o.logger;
  if (o.executor) pool_set_executor(rt->pool, o.executor);
  if (o.threads > 1 && pool_set_threads(rt->pool, o.threads) != TT_OK) {
    Ref<Runtime>::adopt(rt).reset();
    return TT_OOM;
  }
  arena_set_limit(rt->arena, o.memory_limit);
  arena_queue_drops(rt->arena, o.queue_drops != 0);
  log_line(rt, TT_LOG_DEBUG, "tt " TT_VERSION ": {} kernels, {} thread(s)", isa_name(rt->isa),
           pool_threads(rt->pool));
  *out = reinterpret_cast<tt_runtime*>(rt);
  return TT_OK;
}
void tt_runtime_retain(tt_runtime* h) {
  if (Runtime* rt = runtime_of(h)) ref_inc_external(&rt->refs);
}
int64_t tt_runtime_poll(tt_runtime* h) {
  Runtime* rt = runtime_of(h);
  return rt ? arena_poll(rt->arena) : 0;
}
void tt_runtime_release(tt_runtime* h) {
  if (Runtime* rt = runtime_of(h)) Ref<Runtime>::adopt(rt).reset();
}
tt_status tt_runtime_manual_seed(tt_runtime* h, uint64_t seed) {
  Runtime* rt = runtime_of(h);
  if (!rt) return TT_BAD_HANDLE;
  runtime_set_seed_state(rt, {seed, 0});
  return TT_OK;
}
tt_status tt_runtime_rng_state(tt_runtime* h, uint64_t state[2]) {
  Runtime* rt = runtime_of(h);
  if (!rt) return TT_BAD_HANDLE;
  if (!state) return TT_INVALID_ARG;
  const SeedState now = runtime_seed_state(rt);
  state[0] = now.seed;
  state[1] = now.n_ctxs;
  return TT_OK;
}
tt_status tt_runtime_set_rng_state(tt_runtime* h, const uint64_t state[2]) {
  Runtime* rt = runtime_of(h);
  if (!rt) return TT_BAD_HANDLE;
  if (!state) return TT_INVALID_ARG;
  runtime_set_seed_state(rt, {state[0], state[1]});
  return TT_OK;
}

// ---- ctx ----

tt_status tt_ctx_new(tt_runtime* h, tt_ctx** out) {
  if (!out) return TT_INVALID_ARG;
  *out = nullptr;
  if (h && !runtime_of(h)) return TT_BAD_HANDLE;
  Runtime* rt = h ? runtime_of(h) : runtime_new(nullptr, -1);
  if (!rt) return TT_OOM;
  if (is_linked(find_cuda_library)) find_cuda_library();
  Ctx* c = ctx_new(rt);
  if (!h) Ref<Runtime>::adopt(rt).reset();
  *out = reinterpret_cast<tt_ctx*>(c);
  return c ? TT_OK : TT_OOM;
}
static Ctx* ctx_of(const tt_ctx* h) {
  auto* c = reinterpret_cast<Ctx*>(const_cast<tt_ctx*>(h));
  return c && c->tag == kTagCtx ? c : nullptr;
}
void tt_ctx_retain(tt_ctx* h) {
  if (Ctx* c = ctx_of(h)) ref_inc_external(&c->refs);
}
void tt_ctx_release(tt_ctx* h) {
  if (Ctx* c = ctx_of(h)) Ref<Ctx>::adopt(c).reset();
}
const tt_error* tt_ctx_error(const tt_ctx* h) {
  Ctx* c = ctx_of(h);
  return c ? &c->error.view : nullptr;
}
tt_status tt_ctx_runtime(tt_ctx* h, tt_runtime** out) {
  if (out) *out = nullptr;
  return api_call(h, "ctx_runtime", [&](Ctx& c) {
    out_arg(out, "out", 1);
    ref_inc_external(&c.rt->refs);
    *out = reinterpret_cast<tt_runtime*>(c.rt);
  });
}
tt_status tt_set_num_threads(tt_ctx* h, int32_t n) {
  return api_call(h, "set_num_threads", [&](Ctx& c) {
    if (n < 1 || n > kMaxThreads)
      fail_arg(TT_INVALID_ARG, "n", "n is {}: must be 1 to {}", n, kMaxThreads);
    if (tt_status s = pool_set_threads(c.rt->pool, n)) fail(s, "cannot set {} threads", n);
  });
}
int32_t tt_num_threads(const tt_ctx* h) {
  Ctx* c = ctx_of(h);
  return c ? pool_threads(c->rt->pool) : 0;
}
tt_status tt_set_memory_limit(tt_ctx* h, int64_t bytes) {
  return api_call(h, "set_memory_limit", [&](Ctx& c) {
    if (bytes < 0) fail_arg(TT_INVALID_ARG, "bytes", "bytes is {}: must not be negative", bytes);
    arena_set_limit(c.rt->arena, bytes);
    Lock lock(*c.rt->mutex);
    c.rt->device_limit = bytes;
    for (CudaDevice* d : c.rt->cuda)
      if (d) device_alloc_limit(d->alloc, bytes);
  });
}
tt_status tt_memory(tt_ctx* h, const tt_device* device, tt_memory_stats* out) {
  return api_call(h, "memory", [&](Ctx& c) {
    out_arg(out, "out", 2);
    Device d = device ? device_arg(device, "device", 1) : kCpuDevice;
    memset(out, 0, sizeof *out);
    if (d.type == TT_CPU) {
      arena_stats(c.rt->arena, out);
    } else if (d.type == TT_CUDA) {
      DeviceAllocStats s;
      device_alloc_stats(runtime_cuda(c.rt, d.index).alloc, &s);
      out->in_use = s.in_use;
      out->reserved = s.reserved;
      out->peak = s.peak_reserved;
      out->limit = s.limit;
    } else if (d.type == TT_EXT) {
      const ExtDevice& e = ext_device(d.index);
      out->in_use = out->reserved = atomic_load(&e.in_use, kRelaxed);
      out->peak = atomic_load(&e.peak, kRelaxed);
    }
  });
}
tt_status tt_trim(tt_ctx* h) {
  return api_call(h, "trim", [&](Ctx& c) {
    arena_trim(c.rt->arena);
    for (int32_t i = 0; i < kMaxDevices; i++)
      if (CudaDevice* d = atomic_load(&c.rt->cuda[i], kAcquire))
        if (*d->alive) device_alloc_trim(d->alloc);
  });
}
tt_status tt_ctx_isa(tt_ctx* h, int32_t* out) {
  return api_call(h, "ctx_isa", [&](Ctx& c) {
    out_arg(out, "out", 1);
    *out = c.isa + 1;
  });
}

tt_status tt_ctx_set_default_dtype(tt_ctx* h, tt_dtype dtype) {
  return api_call(h, "ctx_set_default_dtype", [&](Ctx& c) {
    const Dtype d = valid_dtype(dtype) ? Dtype(dtype) : Dtype::kNone;
    if (!is_float(d))
      fail_arg(TT_DTYPE, "dtype", "dtype is {}: must be floating", fmt_dtype(dtype));
    c.default_float = d;
  });
}
tt_status tt_ctx_default_dtype(tt_ctx* h, tt_dtype* out) {
  return api_call(h, "ctx_default_dtype", [&](Ctx& c) {
    out_arg(out, "out", 1);
    *out = int32_t(c.default_float);
  });
}

static void check_not_negative(int64_t v, const char* arg) {
  if (v < 0) fail_arg(TT_INVALID_ARG, arg, "{} is {}: must not be negative", arg, v);
}
tt_status tt_ctx_set_print_options(tt_ctx* h, int64_t precision, int64_t threshold,
                                   int64_t edgeitems, int64_t linewidth, int32_t sci_mode) {
  return api_call(h, "ctx_set_print_options", [&](Ctx& c) {
    if (precision < 0 || precision > 17)
      fail_arg(TT_INVALID_ARG, "precision", "precision is {}: must be in [0, 17]", precision);
    check_not_negative(threshold, "threshold");
    check_not_negative(edgeitems, "edgeitems");
    check_not_negative(linewidth, "linewidth");
    if (sci_mode < -1 || sci_mode > 1)
      fail_arg(TT_INVALID_ARG, "sci_mode", "sci_mode is {}: must be -1, 0 or 1", sci_mode);
    c.print = {precision, threshold, TT_NS::min<int64_t>(edgeitems, INT64_MAX / 2), linewidth,
               sci_mode};
  });
}

tt_status tt_ctx_set_cuda_math(tt_ctx* h, const tt_cuda_math_opts* opts) {
  return api_call(h, "ctx_set_cuda_math", [&](Ctx& c) {
    check_opts(opts, 8);
    uint32_t math = 0;
    if (opts_has(opts, 0) && opts->matmul_tf32) math |= kTf32Matmul;
    if (opts_has(opts, 1) && opts->conv_tf32) math |= kTf32Conv;
    if (opts_has(opts, 2) && !opts->deterministic) math |= kNondeterministic;
    if (opts_has(opts, 3) && !opts->cublaslt) math |= kOwnMatmul;
    if (opts_has(opts, 4) && !opts->cudnn) math |= kOwnConv;
    if (opts_has(opts, 5) && !opts->cudnn_attention) math |= kOwnAttention;
    if (opts_has(opts, 6) && !opts->cusolver) math |= kOwnLinalg;
    if (opts_has(opts, 7) && !opts->cufft) math |= kOwnFft;
    c.cuda_math = uint16_t(math);
  });
}

tt_status tt_set_grad_enabled(tt_ctx* h, int32_t enabled, int32_t* previous) {
  return api_call(h, "set_grad_enabled", [&](Ctx& c) {
    if (previous) *previous = !(c.exclude & bit(kKeyAutograd));
    c.exclude = enabled ? c.exclude & ~bit(kKeyAutograd) : c.exclude | bit(kKeyAutograd);
  });
}
int32_t tt_grad_enabled(const tt_ctx* h) {
  Ctx* c = ctx_of(h);
  return c && !(c->exclude & bit(kKeyAutograd));
}

// ---- cancel tokens ----

static CancelToken* token_of(tt_cancel* h) {
  auto* t = reinterpret_cast<CancelToken*>(h);
  return t && t->tag == kTagCancel ? t : nullptr;
}
tt_status tt_cancel_new(tt_ctx* h, tt_cancel** out) {
  if (out) *out = nullptr;
  return api_call(h, "cancel_new", [&](Ctx&) {
    out_arg(out, "out", 1);
    *out = reinterpret_cast<tt_cancel*>(new (mem_alloc(sizeof(CancelToken)))
                                            CancelToken{kTagCancel, 1, 0});
  });
}
void tt_cancel_retain(tt_cancel* h) {
  if (CancelToken* t = token_of(h)) ref_inc_external(&t->refs);
}
void tt_cancel_release(tt_cancel* h) {
  if (CancelToken* t = token_of(h)) Ref<CancelToken>::adopt(t).reset();
}
void tt_cancel_request(tt_cancel* h) {
  if (CancelToken* t = token_of(h)) atomic_store(&t->cancelled, 1, kRelaxed);
}
static void set_polled(Ctx& c, bool on) {
  c.watched = uint8_t((c.watched & ~kWatchPoll) | (on ? kWatchPoll : 0));
}
tt_status tt_ctx_set_cancel(tt_ctx* h, tt_cancel* k) {
  return api_call(h, "ctx_set_cancel", [&](Ctx& c) {
    if (k && !token_of(k)) fail_handle(k, "k", 1, "cancel");
    tt_cancel_retain(k);
    tt_cancel_release(c.cancel);
    c.cancel = k;
    set_polled(c, k || c.poll);
    c.until_poll = 0;
  });
}
tt_status tt_ctx_set_poll(tt_ctx* h, tt_poll_fn fn, void* user, void (*drop)(void*)) {
  bool passed_on = false;
  tt_status status = api_call(h, "ctx_set_poll", [&](Ctx& c) {
    PollCallback* made = fn ? new (mem_alloc(sizeof(PollCallback)))
                                  PollCallback{kTagPoll, 1, fn, user, drop, 0}
                            : nullptr;
    passed_on = made != nullptr;
    Ref<PollCallback> before = Ref<PollCallback>::adopt(c.poll);
    c.poll = made;
    set_polled(c, made || c.cancel);
    c.until_poll = 0;
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}

// ---- generators ----

tt_status tt_generator_new(tt_ctx* h, uint64_t seed, tt_generator** out) {
  if (out) *out = nullptr;
  return api_call(h, "generator_new", [&](Ctx&) {
    out_arg(out, "out", 2);
    *out = reinterpret_cast<tt_generator*>(new_generator(seed).leak());
  });
}
static Generator* live_generator(const tt_generator* h) {
  auto* g = reinterpret_cast<Generator*>(const_cast<tt_generator*>(h));
  return g && g->tag == kTagGenerator ? g : nullptr;
}
void tt_generator_retain(tt_generator* h) {
  if (Generator* g = live_generator(h)) ref_inc_external(&g->refs);
}
void tt_generator_release(tt_generator* h) {
  if (Generator* g = live_generator(h)) Ref<Generator>::adopt(g).reset();
}
tt_status tt_ctx_generator(tt_ctx* h, tt_generator** out) {
  if (out) *out = nullptr;
  return api_call(h, "ctx_generator", [&](Ctx& c) {
    out_arg(out, "out", 1);
    *out = reinterpret_cast<tt_generator*>(Ref<Generator>::share(c.gen).leak());
  });
}
static void set_generator(Generator& g, const Rng& to) {
  const Rng now = g.state();
  if (now.seed != to.seed || now.offset != to.offset) note_change("the state of a generator");
  g.set(to);
}
tt_status tt_manual_seed(tt_ctx* h, uint64_t seed) {
  return api_call(h, "manual_seed", [&](Ctx& c) { set_generator(*c.gen, {seed, 0}); });
}
static Generator& needed_generator(const tt_generator* g) {
  if (!live_generator(g)) fail_handle(g, "g", 1, "generator");
  return *live_generator(g);
}
tt_status tt_generator_state(tt_ctx* h, const tt_generator* g, uint64_t state[2]) {
  return api_call(h, "generator_state", [&](Ctx&) {
    out_arg(state, "state", 2);
    const Rng r = needed_generator(g).state();
    state[0] = r.seed;
    state[1] = r.offset;
  });
}
tt_status tt_generator_set_state(tt_ctx* h, tt_generator* g, const uint64_t state[2]) {
  return api_call(h, "generator_set_state", [&](Ctx&) {
    out_arg(state, "state", 2);
    set_generator(needed_generator(g), {state[0], state[1]});
  });
}
