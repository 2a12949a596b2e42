// Runtime (shared) and Ctx (one thread at a time): all state of tt that is not part of a tensor.
#pragma once

#include "base/os.h"
#include "base/pool.h"
#include "base/tls.h"
#include "core/cuda_calls.h"
#include "core/event.h"
#include "core/ext_device.h"
#include "core/generator.h"
#include "core/object.h"

namespace TT_NS {

struct OpInfo;
struct CustomOp;
struct VmapLevel;
struct GraphHooks;
struct DeviceCheck;
struct Engine;
class UndoLog;

// The streams of new ctxs are derived from it.
struct SeedState {
  uint64_t seed;
  uint64_t n_ctxs;  // ctxs made since the seed was set; the n-th draws stream n
};

struct Runtime {
  uint32_t tag;
  RefCount refs;
  Arena* arena;
  Pool* pool;
  tt_logger logger;
  Isa isa;
  Mutex* mutex;                   // guards the fields below
  CudaDevice* cuda[kMaxDevices];  // by index; set under the mutex, never removed
  int64_t device_limit;           // bytes of each of them; 0: none
  ExtDevice* ext[kMaxExt];        // by index; set under the mutex, never removed
  CustomOp* custom_ops;           // list, newest first (ext/custom_op.h)
  SeedState seeds;
  bool seeded;           // false: seeds is filled from the system's entropy when first needed
  int64_t live_handles;  // relaxed atomic
  static void destroy(Runtime*) noexcept;
};
// Formats a line for the application's logger, if there is one; never fails.
template <class... A> TT_COLD void log_line(const Runtime* rt, int32_t level, const char* format,
                                            const A&... a) noexcept {
  if (!rt->logger.log) return;
  char text[512];
  const FmtArg args[sizeof...(A) + 1] = {FmtArg(a)..., FmtArg(0)};
  format_to(text, int64_t(sizeof text), format, {args, int64_t(sizeof...(A))});
  try {
    rt->logger.log(rt->logger.user, level, text);
  } catch (...) {  // from a C++ application; the line is lost
  }
}
// Set when the first custom operator is registered, so that core does not depend on them.
extern void (*destroy_custom_ops)(CustomOp*) noexcept;
// isa < 0: the best that the processor supports. NULL on OOM.
Runtime* runtime_new(const tt_allocator* allocator, int32_t isa) noexcept;
SeedState runtime_seed_state(Runtime*) noexcept;
void runtime_set_seed_state(Runtime*, const SeedState&) noexcept;

// Outputs of open scopes: one stack of owned tensors, with frames that mark the start of each
// scope.
struct ScopeStack {
  Tensor** items;
  int64_t n, cap;
  int64_t* frames;
  int64_t n_frames, cap_frames;
};

// The callback of tt_ctx_set_poll; a running call of fn holds a reference.
struct PollCallback {
  uint32_t tag;
  RefCount refs;
  tt_status (*fn)(void* user, tt_ctx* ctx);
  void* user;
  void (*drop)(void* user);
  int64_t next_ns;  // earliest time of the next call
  static void destroy(PollCallback*) noexcept;
};

// How tensors are printed; the values are PyTorch's.
struct PrintOptions {
  int64_t precision = 4;     // digits after the point
  int64_t threshold = 1000;  // with more elements a tensor is summarized
  int64_t edgeitems = 3;     // items at each end of a summarized dimension
  int64_t linewidth = 80;    // characters
  int32_t sci_mode = -1;     // 1: scientific notation, 0: never, -1: by the magnitudes
  // low, high: magnitudes of the nonzero finite values, 0 if there are none
  bool is_scientific(double low, double high) const {
    if (sci_mode >= 0) return sci_mode == 1;
    return low != 0 && (high / low > 1000 || high > 1e8 || low < 1e-4);
  }
};

constexpr int64_t kEmbeddedMax = 2048;  // Ctx::embedded_max, but while a graph is lowered

// What a kernel launch has to do besides the kernel.
enum Watch : uint8_t {
  kWatchPoll = 1,     // there is a cancel token or a poll callback
  kWatchKernels = 2,  // `events` records kernels
  kWatchWork = 4,     // `work` sees kernels and reads
};

// Sees what the calls of a ctx do below the operators: a capture, or a test.
struct WorkObserver {
  // Takes the place of a kernel on the CPU, which it may run with run_kernel. The plan, of
  // k.plan_bytes, is valid during the call only; k.rebase makes a copy of it good.
  int32_t (*launch)(WorkObserver&, const Kernel& k, const void* plan, int64_t units, int64_t grain);
  // The running call is about to read elements of t on the host, to decide what to do. May fail.
  void (*read)(WorkObserver&, const Tensor& t);
  // The running call has filled t, of the CPU, on the host, with numbers that follow from its
  // arguments other than tensors.
  void (*write)(WorkObserver&, const Tensor& t);
  // The running call, whose kernels have computed `found`, is about to fail if that is not what the
  // check wants. Returns false if kernels do not run, so that nothing is found. May fail.
  bool (*check)(WorkObserver&, const Tensor& found, const DeviceCheck& check);
  // Replaces a call fn(object, data of t), which each run of a captured call repeats. NULL: it is
  // called directly.
  void (*call)(WorkObserver&, Object& object, HostFn fn, const Tensor& t);
};

struct Ctx {
  uint32_t tag;
  RefCount refs;
  KeySet include, exclude;  // dispatch masks
  Heap* heap;               // of the runtime and of the thread that used the ctx last
  Runtime* rt;              // owned
  int32_t isa;              // column of Kernel::cpu
  uint32_t busy_thread;     // (TT_CHECKED) the thread that is inside a call
  Generator* gen;           // owned default generator
  ScopeStack scopes;
  tt_cancel* cancel;     // polled between kernels; may be NULL
  PollCallback* poll;    // may be NULL
  int32_t until_poll;    // small kernels left until the clock is read
  uint8_t watched;       // bits of Watch
  CtxPart* profiler;     // modes/profiler.h
  EventSink* events;     // where running work is recorded; NULL: nowhere
  WorkObserver* work;    // used if `watched` has kWatchWork
  CtxPart* trace;        // modes/trace.h
  CtxPart* autocast;     // modes/autocast.h
  GraphHooks* graph;     // of a capture or a lowering (core/graph_hooks.h); NULL: none
  VmapLevel* vmap;       // the innermost running vmap (autograd/batch.h); NULL: none
  Engine* engine;        // of the innermost running backward (autograd/engine.h)
  int64_t newest_topo;   // of nodes recorded since the last backward (autograd/node.h)
  CtxPart* saved_hooks;  // hooks on saved tensors (autograd/saved_hooks.h); NULL: none is active
  CtxPart* dual_level;   // that the application has opened (autograd/forward.h); NULL: none
  Dtype default_float;   // of floating-point numbers and tensors that are given none
  uint16_t cuda_math;    // bits of CudaMath (plan/cuda_math.h)
  PrintOptions print;
  int64_t embedded_max;  // most data bytes that share the block of a new tensor's header
  int32_t depth;         // nested calls
  UndoLog* undo;         // of the innermost call that has one (ops/undo.h)
  // Checks the gradients of a node's formula (autograd/anomaly.h); NULL: off.
  void (*anomaly)(GraphNode& node, const TensorRef* grads);
  CtxPart* streams;  // side streams that are set (core/cuda_device.h); NULL: none ever was
  ErrorRecord error;
  static void destroy(Ctx*) noexcept;
};
Ctx* ctx_new(Runtime* rt) noexcept;  // takes its own reference; NULL on OOM

struct CancelToken {
  uint32_t tag;
  RefCount refs;
  int32_t cancelled;
  static void destroy(CancelToken*) noexcept;
};

TT_INLINE Ctx& ctx() { return *tls.ctx; }
// The dtypes of floating and of complex numbers, and of tensors, that are given none.
inline Dtype default_float() { return ctx().default_float; }
inline Dtype default_complex() { return complex_of(default_float()); }
// Switches to the heap of the running thread, to which the ctx has moved. Fails with OOM.
void ctx_rebind(Ctx*);
// Polls the cancel token and, if it is time (or `now`), the application; fails with CANCELLED or
// CALLBACK.
void poll_application(bool now = false);
// Called between kernels and between parts of long ones. The clock is read before large kernels,
// and before some of the small ones.
void poll_occasionally(bool large);
inline void poll_if_watched(bool large) {
  if (TT_UNLIKELY(ctx().watched & kWatchPoll)) poll_occasionally(large);
}

// During its lifetime the call writes data that must not remain incomplete, or holds a lock: the
// application is not polled, and cancellation waits.
struct CommitGuard {
  uint8_t polled = ctx().watched & kWatchPoll;
  CommitGuard() { ctx().watched &= uint8_t(~kWatchPoll); }
  ~CommitGuard() { ctx().watched |= polled; }
  CommitGuard(const CommitGuard&) = delete;
};

// What a callback of the application does with a key of `include` (dispatch/key.h). Keys without a
// rule are cleared while it runs.
struct CallbackRule {
  int32_t key;
  // What the callback changes in it lasts. Otherwise the key is as before once it returns.
  bool lasts;
};
constexpr CallbackRule kCallbackRules[] = {
    {10, true},   // Capture: what a module of the application computes is recorded
    {24, false},  // Autocast: such a module computes under it like a layer; backward drops it
    {28, true},   // Trace
    {29, true}};  // Profile
constexpr KeySet keys_of_rules(bool lasting_only) {
  KeySet keys = 0;
  for (const CallbackRule& r : kCallbackRules)
    if (r.lasts || !lasting_only) keys |= KeySet(1) << r.key;
  return keys;
}
constexpr KeySet kKeptKeys = keys_of_rules(false);    // a callback starts with these
constexpr KeySet kLastingKeys = keys_of_rules(true);  // and leaves these as it wants
constexpr KeySet kAutocastKey = KeySet(1) << 24;

// Restores the dispatch masks at the end of a C++ scope.
struct MaskGuard {
  KeySet include, exclude;
  MaskGuard(KeySet more_excluded) : include(ctx().include), exclude(ctx().exclude) {
    ctx().exclude |= more_excluded;
  }
  ~MaskGuard() {
    ctx().include = include;
    ctx().exclude = exclude;
  }
  MaskGuard(const MaskGuard&) = delete;
};

// Sets Ctx::cuda_math in a C++ scope.
class CudaMathScope {
 public:
  explicit CudaMathScope(uint16_t math) : before_(ctx().cuda_math) { ctx().cuda_math = math; }
  ~CudaMathScope() { ctx().cuda_math = before_; }
  CudaMathScope(const CudaMathScope&) = delete;

 private:
  const uint16_t before_;
};

[[noreturn]] TT_COLD void fail_without_cuda(const char* arg);
// A device of the runtime, opened at first use (core/cuda_device.h).
inline CudaDevice& runtime_cuda(Runtime* rt, int32_t index, const char* arg = "") {
  const bool known = index >= 0 && index < kMaxDevices;
  CudaDevice* d = known ? atomic_load(&rt->cuda[index], kAcquire) : nullptr;
  if (TT_LIKELY(d != nullptr)) return *d;
  if (!cuda_calls) fail_without_cuda(arg);
  return cuda_calls->open(rt, index, arg);
}
// The stream on which the running call computes on a device.
inline DeviceStream& current_stream(CudaDevice& d) {
  return TT_UNLIKELY(ctx().streams != nullptr) ? cuda_calls->side_stream(d) : d.own;
}

// Below this number of elements a kernel stays on the calling thread.
constexpr int64_t kParallelGrain = 32768;

// Records a piece of work of the running call while it exists, if the ctx records events.
class EventScope {
 public:
  // name must stay valid while events may be read, unless the kind is one whose names are copied.
  EventScope(EventKind kind, const char* name, const void* object = nullptr) : sink_(ctx().events) {
    if (TT_UNLIKELY(sink_ != nullptr)) token_ = sink_->begin(*sink_, kind, name, object);
  }
  ~EventScope() {
    if (TT_UNLIKELY(sink_ != nullptr)) sink_->end(*sink_, token_);
  }
  EventScope(const EventScope&) = delete;

 private:
  EventSink* sink_;
  int64_t token_ = 0;
};

// Runs a kernel over [0, units) on a tensor's device: on the CPU (split by `grain`), on the device
// backend, or not at all on META.
void launch(const Kernel& k, Device device, const void* plan, int64_t units,
            int64_t grain = kParallelGrain);
// The part of launch that computes on the CPU. Returns the kernel's status.
int32_t run_kernel(const Kernel& k, const void* plan, int64_t units, int64_t grain);

// Called before the host reads elements of t to decide what the running call does: such a value
// would be frozen in a captured graph.
inline void note_host_read(const Tensor& t) {
  if (TT_UNLIKELY(ctx().watched & kWatchWork)) ctx().work->read(*ctx().work, t);
}
// Called after the host has filled t, so that replays of a captured graph keep the numbers.
inline void note_host_write(const Tensor& t) {
  if (TT_UNLIKELY(ctx().watched & kWatchWork)) ctx().work->write(*ctx().work, t);
}
// Calls fn(object, data of t) in a call and in the replays of a captured one. Returns its result,
// or false where the replays call it.
inline bool run_on_host(Object& object, HostFn fn, const Tensor& t) {
  WorkObserver* const work = ctx().watched & kWatchWork ? ctx().work : nullptr;
  if (TT_LIKELY(!work || !work->call)) return fn(object, t.data);
  work->call(*work, object, fn, t);
  return false;
}

// The scratch memory of a kernel on a device, allocated before any kernel of a call runs. On the
// CPU and on META there is none.
class DeviceWorkspace {
 public:
  // Fails with OOM or NOT_IMPLEMENTED.
  DeviceWorkspace(const Kernel& k, Device device, const void* plan);
  DeviceWorkspace(DeviceWorkspace&& o) noexcept;
  ~DeviceWorkspace();
  Device device() const { return device_; }
  void launch(const Kernel& k, const void* plan);  // does nothing on a device without kernels

 private:
  Device device_;
  CudaDevice* cuda_ = nullptr;
  DeviceBlock* memory_ = nullptr;
};

}  // namespace TT_NS
