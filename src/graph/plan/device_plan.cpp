#include "graph/plan/device_plan.h"

#include "base/os.h"
#include "core/ctx.h"

#include <string.h>

namespace TT_NS {

namespace {

// ---- one launch ----

int32_t start(PlanDevice& d, Plan& p, const PlanStep& s) {
  if (s.draw >= 0) {
    Rng rng = p.draws[s.draw].begin;
    rng.offset += s.offset;
    memcpy(s.plan + s.kernel->rng, &rng, sizeof rng);
  }
  EventScope event(EventKind::kKernel, s.kernel->name);
  const DeviceKernel fn = d.cuda->backend->kernels[s.kernel->id];
  return fn(d.device.index, s.plan, d.stream->handle, s.to);
}

void check(PlanDevice& d, int32_t status, const char* name) {
  if (TT_LIKELY(status == 0)) return;
  char what[96];
  const FmtArg args[] = {name, fmt(d.device)};
  format_to(what, sizeof what, "kernel {} on device {}", args);
  cuda_calls->fail(*d.cuda, status, what);
}

void launch_one(PlanDevice& d, Plan& p, const PlanStep& s) {
  poll_if_watched(false);
  check(d, start(d, p, s), s.kernel->name);
}

// The result of a check is copied to pinned memory, and nothing waits for it.
void copy_one(PlanDevice& d, const PlanStep& s) {
  const DeviceBackend& b = *d.cuda->backend;
  const auto* first = reinterpret_cast<const char*>(d.checks.places);
  const bool pinned = s.to >= first && s.to < first + d.n_checks * int64_t(sizeof(int64_t));
  const auto copy = pinned ? b.copy_pinned : b.copy;
  check(d, copy(d.device.index, s.to, s.plan, size_t(s.bytes), s.copy_kind, d.stream->handle),
        "copy");
}

// ---- recorded launches ----

// The first run computes step by step: it opens libraries, which a recording forbids.
void record(PlanDevice& d, Plan& p, DeviceSegment& segment) {
  const DeviceBackend& b = *d.cuda->backend;
  segment.is_unrecordable = true;
  if (b.capture_begin(d.device.index, d.stream->handle)) return;
  int32_t status = TT_OK;
  for (int64_t i = 0; i < segment.n && !status; i++)
    status = start(d, p, p.steps[segment.first + i]);
  void* graph = nullptr;
  const int32_t ended = b.capture_end(d.device.index, d.stream->handle, &graph);
  segment.is_unrecordable = status || ended;
  if (!segment.is_unrecordable) segment.graph = graph;
  else if (graph) b.graph_free(d.device.index, graph);
}

void run_segment(PlanDevice& d, Plan& p, DeviceSegment& segment) {
  if (d.is_warm && !segment.graph && !segment.is_unrecordable) record(d, p, segment);
  if (!segment.graph) {
    for (int64_t i = 0; i < segment.n; i++) launch_one(d, p, p.steps[segment.first + i]);
    return;
  }
  poll_if_watched(false);
  EventScope event(EventKind::kKernel, "graph");
  check(d, d.cuda->backend->graph_launch(d.device.index, segment.graph, d.stream->handle), "graph");
}

int64_t run(Plan& p, int64_t i) {
  PlanDevice& d = *p.device;
  while (d.next_segment < d.segments.size() && d.segments[d.next_segment].first < i)
    d.next_segment++;
  if (d.next_segment < d.segments.size() && d.segments[d.next_segment].first == i) {
    DeviceSegment& segment = d.segments[d.next_segment];
    run_segment(d, p, segment);
    return i + segment.n;
  }
  const PlanStep& s = p.steps[i];
  if (s.kind == StepKind::kDeviceCopy) copy_one(d, s);
  else launch_one(d, p, s);
  return i + 1;
}

// ---- a run ----

// On a stream that the ctx has set, a run is after all that the device's own stream has to do, and
// before what it gets next.
void begin(Plan& p) {
  PlanDevice& d = *p.device;
  if (TT_UNLIKELY(!is_usable(*d.cuda))) cuda_calls->fail_unusable(*d.cuda);
  d.stream = &current_stream(*d.cuda);
  if (p.next == 0) d.next_segment = 0;
  if (TT_LIKELY(!d.stream->number)) return;
  cuda_wait_stream(*d.stream, d.cuda->own);
  for (const IrStorage& s : p.graph->storages)
    if (s.tensor && s.device == d.device)
      cuda_calls->wait_for_writer(*d.stream, *s.tensor->storage);
}
void end(Plan& p) {
  PlanDevice& d = *p.device;
  d.is_warm = true;
  if (TT_LIKELY(!d.stream->number)) return;
  cuda_wait_stream(d.cuda->own, *d.stream);
  for (const IrStorage& s : p.graph->storages)
    if (s.tensor && s.device == d.device)
      cuda_calls->mark_used(*d.stream, *s.tensor->storage, s.role == IrRole::kState);
}

// Kernels that run may still write what they check.
void destroy(PlanDevice* d) noexcept {
  CudaDevice& cuda = *d->cuda;
  const DeviceBackend& b = *cuda.backend;
  const bool usable = is_usable(cuda);
  for (const DeviceSegment& s : d->segments)
    if (s.graph && usable) b.graph_free(cuda.index, s.graph);
  if (d->checks.places) {
    forget_checks(cuda, d->checks);
    if (usable) {
      b.stream_sync(cuda.index, cuda.own.handle);
      b.pinned_free(cuda.index, d->checks.places);
    }
  }
  d->arena.reset();
  d->~PlanDevice();
  mem_free(d, sizeof *d);
  device_alloc_unhold(cuda.alloc);
}

}  // namespace

PlanDevice& plan_device(Plan& p, Device device) {
  if (p.device && p.device->device == device) return *p.device;
  if (p.device)
    fail(TT_NOT_IMPLEMENTED, "the graph uses {} and {}: a plan is for one device and the CPU",
         fmt(p.device->device), fmt(device));
  CudaDevice& cuda = runtime_cuda(ctx().rt, device.index);
  auto* d = new (mem_alloc(sizeof(PlanDevice))) PlanDevice{};
  d->device = device;
  d->cuda = &cuda;
  d->begin = begin;
  d->end = end;
  d->run = run;
  d->destroy = destroy;
  device_alloc_hold(cuda.alloc);
  p.device = d;
  return *d;
}

void allocate_device(PlanDevice& d) {
  d.arena_bytes = place_greedily({d.placements.data(), d.placements.size()}, kDeviceAlign);
  if (d.arena_bytes) d.arena = new_tensor(Ints(&d.arena_bytes, 1), Dtype::kU8, d.device);
  if (!d.n_checks) return;
  const DeviceBackend& b = *d.cuda->backend;
  void* places = nullptr;
  if (!cuda_calls->checks(*d.cuda) ||
      b.pinned_alloc(d.device.index, size_t(d.n_checks) * sizeof(int64_t), &places))
    fail_oom(d.n_checks * int64_t(sizeof(int64_t)));
  d.checks.places = static_cast<int64_t*>(places);
  for (int64_t i = 0; i < d.n_checks; i++) d.checks.places[i] = kCheckPassed;
}

// What the host changes between runs: the numbers of a draw, and the factors of an optimizer.
static bool changes(const Plan& p, int64_t step) {
  const PlanStep& s = p.steps[step];
  if (s.kind != StepKind::kDeviceLaunch || s.draw >= 0) return true;
  for (int64_t i = step; i-- > 0 && p.steps[i].node == s.node;)
    if (p.steps[i].kind == StepKind::kCall || p.steps[i].kind == StepKind::kHost) return true;
  return false;
}

void finish_device(Plan& p) {
  PlanDevice& d = *p.device;
  d.checks.checks = {d.kept.data(), d.kept.size()};
  if (d.checks.places) keep_checks(*d.cuda, d.checks);
  if (!d.cuda->backend->capture_begin) return;
  constexpr int64_t kFewest = 2;
  for (int64_t i = 0; i < p.steps.size();) {
    int64_t end = i;
    while (end < p.steps.size() && !changes(p, end)) end++;
    if (end - i >= kFewest) d.segments.push_back({i, end - i, nullptr, false});
    i = max(end, i + 1);
  }
}

}  // namespace TT_NS
