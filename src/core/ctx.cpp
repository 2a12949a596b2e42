#include "core/ctx.h"

#include "base/finalizer.h"
#include "base/os.h"
#include "core/callback.h"
#include "core/graph_hooks.h"

#include <string.h>

namespace TT_NS {

// libtt.so has an unwinder of its own, which its first exception sets up. One that a callback of
// the application throws, by the application's unwinder, must not be that: its tables would be
// missing.
static void prepare_unwinder() noexcept {
  try {
    fail_again();
  } catch (...) {}
}

Runtime* runtime_new(const tt_allocator* allocator, int32_t isa) noexcept {
  prepare_unwinder();
  Arena* arena = arena_new(allocator);
  if (!arena) return nullptr;
  Heap* heap = arena_heap(arena);
  constexpr size_t kBytes = sizeof(Runtime) + sizeof(Mutex);
  auto* rt = heap ? static_cast<Runtime*>(heap_alloc(heap, kBytes)) : nullptr;
  Pool* pool = rt ? pool_new(arena) : nullptr;
  if (!pool) {
    if (rt) mem_free(rt, kBytes);
    arena_release(arena);
    return nullptr;
  }
  memset(static_cast<void*>(rt), 0, kBytes);
  rt->tag = kTagRuntime;
  rt->refs = 1;
  rt->arena = arena;
  rt->pool = pool;
  rt->mutex = new (rt + 1) Mutex;
  rt->isa = isa < 0 || isa > best_isa() ? best_isa() : Isa(isa);
  return rt;
}

void (*destroy_custom_ops)(CustomOp*) noexcept = nullptr;

const CudaCalls* cuda_calls = nullptr;

void fail_without_cuda(const char* arg) {
  fail_arg(TT_DEVICE, arg,
           "this program was linked without CUDA: a static program must call tt_load_cuda");
}

void Runtime::destroy(Runtime* rt) noexcept {
  if (rt->custom_ops && destroy_custom_ops) destroy_custom_ops(rt->custom_ops);
  for (CudaDevice* d : rt->cuda)
    if (d) cuda_calls->close(d);
  for (ExtDevice* d : rt->ext)
    if (d) Ref<ExtDevice>::adopt(d).reset();
  pool_delete(rt->pool);
  arena_queue_drops(rt->arena, false);
  Arena* arena = rt->arena;
  rt->tag = 0;
  mem_free(rt, sizeof(Runtime) + sizeof(Mutex));
  arena_release(arena);
}

// The caller holds the mutex.
static SeedState& needed_seeds(Runtime* rt) noexcept {
  if (!rt->seeded) rt->seeds.seed = os_random_seed();
  rt->seeded = true;
  return rt->seeds;
}

SeedState runtime_seed_state(Runtime* rt) noexcept {
  Lock lock(*rt->mutex);
  return needed_seeds(rt);
}

void runtime_set_seed_state(Runtime* rt, const SeedState& to) noexcept {
  Lock lock(*rt->mutex);
  rt->seeds = to;
  rt->seeded = true;
}

// Seed of the stream that the next ctx draws.
static uint64_t next_stream(Runtime* rt) noexcept {
  Lock lock(*rt->mutex);
  SeedState& seeds = needed_seeds(rt);
  seeds.n_ctxs++;
  return stream_seed(seeds.seed, seeds.n_ctxs);
}

Ctx* ctx_new(Runtime* rt) noexcept {
  Heap* heap = arena_heap(rt->arena);
  auto* c = heap ? static_cast<Ctx*>(heap_alloc(heap, sizeof(Ctx))) : nullptr;
  auto* g = c ? static_cast<Generator*>(heap_alloc(heap, sizeof(Generator))) : nullptr;
  if (!g) {
    if (c) mem_free(c, sizeof(Ctx));
    return nullptr;
  }
  memset(static_cast<void*>(c), 0, sizeof *c);
  c->tag = kTagCtx;
  c->refs = 1;
  c->heap = heap;
  c->rt = rt;
  c->isa = rt->isa;
  c->embedded_max = kEmbeddedMax;
  c->default_float = Dtype::kF32;
  c->print = PrintOptions();
  *g = Generator{kTagGenerator, 1, {}, {next_stream(rt), 0}};
  c->gen = g;
  ref_inc(&rt->refs);
  return c;
}

void Ctx::destroy(Ctx* c) noexcept {
  for (int64_t i = c->scopes.n; i-- > 0;)
    if (Tensor* t = c->scopes.items[i]) Ref<Tensor>::adopt(t).reset();
  if (c->profiler) c->profiler->destroy_fn(c->profiler);
  if (c->trace) c->trace->destroy_fn(c->trace);
  if (c->autocast) c->autocast->destroy_fn(c->autocast);
  if (c->graph) c->graph->destroy_fn(c->graph);
  if (c->saved_hooks) c->saved_hooks->destroy_fn(c->saved_hooks);
  if (c->dual_level) c->dual_level->destroy_fn(c->dual_level);
  if (c->streams) c->streams->destroy_fn(c->streams);
  if (c->scopes.items) mem_free(c->scopes.items, size_t(c->scopes.cap) * sizeof(Tensor*));
  if (c->scopes.frames) mem_free(c->scopes.frames, size_t(c->scopes.cap_frames) * sizeof(int64_t));
  Ref<Generator>::adopt(c->gen).reset();
  if (c->cancel) Ref<CancelToken>::adopt(reinterpret_cast<CancelToken*>(c->cancel)).reset();
  if (c->poll) Ref<PollCallback>::adopt(c->poll).reset();
  Runtime* rt = c->rt;
  c->tag = 0;
  mem_retire(c, sizeof *c);
  Ref<Runtime>::adopt(rt).reset();
}

void CancelToken::destroy(CancelToken* t) noexcept {
  t->tag = 0;
  mem_retire(t, sizeof *t);
}

void PollCallback::destroy(PollCallback* p) noexcept {
  drop_and_free(p, sizeof *p, p->drop, p->user);
}

void Generator::destroy(Generator* g) noexcept {
  g->tag = 0;
  mem_retire(g, sizeof *g);
}

Ref<Generator> new_generator(uint64_t seed) {
  auto* g = new (mem_alloc(sizeof(Generator))) Generator{kTagGenerator, 1, {}, {seed, 0}};
  return Ref<Generator>::adopt(g);
}

void ctx_rebind(Ctx* c) {
  Heap* heap = arena_heap(c->rt->arena);
  if (!heap) fail_oom(0);
  c->heap = heap;
}

struct LaunchBody {
  CpuKernel fn;
  const void* plan;
  int64_t first;
  int32_t status;
};
static void launch_body(void* p, int64_t begin, int64_t end) {
  auto* b = static_cast<LaunchBody*>(p);
  if (int32_t s = b->fn(b->plan, b->first + begin, b->first + end))
    atomic_store(&b->status, s, kRelaxed);
}

// Launches in ranges of `grain` units; a cancellation or poll waits for at most kRangesBetweenPolls
// of them.
static int32_t launch_ranges(CpuKernel fn, const void* plan, int64_t units, int64_t grain) {
  constexpr int64_t kRangesBetweenPolls = 1024;
  const bool in_parts = (ctx().watched & kWatchPoll) && units / grain > kRangesBetweenPolls;
  const int64_t part = in_parts ? kRangesBetweenPolls * grain : units;
  LaunchBody body{fn, plan, 0, 0};
  for (;;) {
    const int64_t rest = units - body.first;
    if (parallel_for(ctx().rt->pool, min(rest, part), grain, launch_body, &body))
      return kKernelEnded;
    if (body.status || rest <= part) return body.status;
    body.first += part;
    poll_if_watched(true);
  }
}

static DeviceKernel device_kernel(const DeviceBackend& b, const Kernel& k, Device device) {
  DeviceKernel fn = k.id < b.n_kernels ? b.kernels[k.id] : nullptr;
  if (TT_UNLIKELY(!fn))
    fail(TT_NOT_IMPLEMENTED, "kernel {} has no build for device {}", k.name, fmt(device));
  return fn;
}

DeviceWorkspace::DeviceWorkspace(const Kernel& k, Device device, const void* plan)
    : device_(device) {
  if (device.type == TT_EXT)
    fail(TT_INTERNAL, "kernel {} was sent to device {}, which has no kernels", k.name, fmt(device));
  if (device.type != TT_CUDA) return;
  cuda_ = &runtime_cuda(ctx().rt, device.index);
  device_kernel(*cuda_->backend, k, device);
  const size_t bytes = cuda_->backend->workspace_bytes(device.index, k.id, plan);
  if (TT_LIKELY(!bytes)) return;
  if (const DeviceHooks* hooks = device_hooks()) {
    hooks->workspace(*ctx().graph, device, int64_t(bytes));
    return;
  }
  memory_ = cuda_calls->block(*cuda_, int64_t(bytes));
  if (!memory_) cuda_calls->fail_memory(*cuda_, int64_t(bytes));
}
DeviceWorkspace::DeviceWorkspace(DeviceWorkspace&& o) noexcept
    : device_(o.device_), cuda_(o.cuda_), memory_(o.memory_) {
  o.memory_ = nullptr;
}
DeviceWorkspace::~DeviceWorkspace() {
  if (memory_) cuda_calls->put(memory_, 0);
}
[[noreturn]] static TT_COLD void fail_launch(CudaDevice& d, int32_t status, const Kernel& k) {
  char what[96];
  const FmtArg args[] = {k.name, fmt(Device{TT_CUDA, int8_t(d.index)})};
  format_to(what, sizeof what, "kernel {} on device {}", args);
  cuda_calls->fail(d, status, what);
  TT_UNREACHABLE();
}
void DeviceWorkspace::launch(const Kernel& k, const void* plan) {
  if (device_.type != TT_CUDA) return;
  if (TT_UNLIKELY(!is_usable(*cuda_))) cuda_calls->fail_unusable(*cuda_);
  if (const DeviceHooks* hooks = device_hooks())
    return hooks->launch(*ctx().graph, k, device_, plan);
  const DeviceKernel fn = cuda_->backend->kernels[k.id];
  int32_t status;
  {
    EventScope event(EventKind::kKernel, k.name);
    status = fn(device_.index, plan, current_stream(*cuda_).handle, memory_ ? memory_->p : nullptr);
  }
  if (TT_UNLIKELY(status != 0)) fail_launch(*cuda_, status, k);
}

static TT_INLINE int32_t compute(const Kernel& k, const void* plan, int64_t units, int64_t grain) {
  CpuKernel fn = k.cpu[ctx().isa];
  return units <= grain ? fn(plan, 0, units) : launch_ranges(fn, plan, units, grain);
}
int32_t run_kernel(const Kernel& k, const void* plan, int64_t units, int64_t grain) {
  return compute(k, plan, units, grain);
}

static int32_t run_or_observe(const Kernel& k, const void* plan, int64_t units, int64_t grain) {
  if (!(ctx().watched & kWatchWork)) return run_kernel(k, plan, units, grain);
  return ctx().work->launch(*ctx().work, k, plan, units, grain);
}

// Polls and records events if the ctx is watched.
static TT_COLD int32_t run_watched_kernel(const Kernel& k, const void* plan, int64_t units,
                                          int64_t grain) {
  poll_if_watched(units > grain);
  if (!(ctx().watched & kWatchKernels)) return run_or_observe(k, plan, units, grain);
  EventScope event(EventKind::kKernel, k.name);
  return run_or_observe(k, plan, units, grain);
}

static TT_COLD void launch_device(const Kernel& k, Device device, const void* plan) {
  poll_if_watched(false);
  DeviceWorkspace(k, device, plan).launch(k, plan);
}

[[noreturn]] static TT_COLD void fail_kernel(const Kernel& k, int32_t status) {
  if (status == kKernelEnded) fail_again();
  fail(status, "kernel {} failed", k.name);
}

void launch(const Kernel& k, Device device, const void* plan, int64_t units, int64_t grain) {
  if (device.type != TT_CPU) return launch_device(k, device, plan);
  const bool is_seen = TT_UNLIKELY(ctx().watched != 0) && (units > grain || !polls_later());
  const int32_t status = TT_UNLIKELY(is_seen) ? run_watched_kernel(k, plan, units, grain)
                                              : compute(k, plan, units, grain);
  if (TT_UNLIKELY(status != 0)) fail_kernel(k, status);
}

}  // namespace TT_NS
