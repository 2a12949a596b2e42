// Runtime (shared) and Ctx (one thread at a time): all state of tt that is not a tensor's.
#pragma once

#include "base/os.h"
#include "base/pool.h"
#include "base/tls.h"
#include "core/device_alloc.h"
#include "core/ext_device.h"
#include "core/generator.h"

namespace TT_NS {

struct OpInfo;
struct CustomOp;
class UndoLog;

// What a mode keeps on a ctx.
struct CtxPart {
  void (*destroy_fn)(CtxPart*) noexcept;
};

// What the streams of new ctxs are derived from.
struct SeedState {
  uint64_t seed;
  uint64_t n_ctxs;  // made since the seed was set; the n-th draws stream n
};

struct Runtime {
  uint32_t tag;
  RefCount refs;
  Arena* arena;
  Pool* pool;
  tt_logger logger;
  Isa isa;
  Mutex* mutex;  // guards what is below
  DeviceAlloc* device_alloc[kMaxDevices];
  ExtDevice* ext[kMaxExt];  // by index; set under the mutex, never taken away
  CustomOp* custom_ops;     // list, newest first (ext/custom_op.h)
  SeedState seeds;
  bool seeded;           // false: seeds is filled from the system's entropy when it is first needed
  int64_t live_handles;  // relaxed atomic
  static void destroy(Runtime*) noexcept;
};
// Formats a line for the host's logger, if there is one; never fails.
template <class... A> TT_COLD void log_line(const Runtime* rt, int32_t level, const char* format,
                                            const A&... a) noexcept {
  if (!rt->logger.log) return;
  char text[512];
  const FmtArg args[sizeof...(A) + 1] = {FmtArg(a)..., FmtArg(0)};
  format_to(text, int64_t(sizeof text), format, {args, int64_t(sizeof...(A))});
  try {
    rt->logger.log(rt->logger.user, level, text);
  } catch (...) {  // a host in C++; the line is lost
  }
}
// Set when the first custom operator is registered, so that core need not know them.
extern void (*destroy_custom_ops)(CustomOp*) noexcept;
// isa < 0: the best that the processor has. NULL on OOM.
Runtime* runtime_new(const tt_allocator* host, int32_t isa) noexcept;
// Fails with DEVICE or OOM; arg: the argument that names the device.
DeviceAlloc* runtime_device_alloc(Runtime*, int32_t device, const char* arg = "");
SeedState runtime_seed_state(Runtime*) noexcept;
void runtime_set_seed_state(Runtime*, const SeedState&) noexcept;

// Outs of open scopes: one stack of owned tensors, frames mark where each scope begins.
struct ScopeStack {
  Tensor** items;
  int64_t n, cap;
  int64_t* frames;
  int64_t n_frames, cap_frames;
};

// What tt_ctx_set_poll has registered; a call of fn holds a reference.
struct HostPoll {
  uint32_t tag;
  RefCount refs;
  tt_status (*fn)(void* user, tt_ctx* ctx);
  void* user;
  void (*drop)(void* user);
  int64_t next_ns;  // not before
  static void destroy(HostPoll*) noexcept;
};

struct Ctx {
  uint32_t tag;
  RefCount refs;
  uint64_t include, exclude;  // dispatch masks
  Heap* heap;                 // of the runtime and the thread that used the ctx last
  Runtime* rt;                // owned
  int32_t isa;                // column of Kernel::cpu
  uint32_t busy_thread;       // (TT_CHECKED) which thread is inside a call
  Generator* gen;             // owned default generator
  ScopeStack scopes;
  tt_cancel* cancel;   // polled between kernels; may be NULL
  HostPoll* poll;      // the same
  int32_t until_poll;  // small kernels until the clock is read
  bool watched;        // there is a cancel token or a poll
  CtxPart* profiler;   // modes/profiler.h
  CtxPart* trace;      // modes/trace.h
  int32_t depth;       // nested calls
  UndoLog* undo;       // of the innermost call that has one (ops/undo.h)
  void (*anomaly)(GraphNode& node,
                  const TensorRef* grads);  // looks at what a node's formula gave
                                            // (autograd/anomaly.h); NULL: off
  ErrorRecord error;
  static void destroy(Ctx*) noexcept;
};
Ctx* ctx_new(Runtime* rt) noexcept;  // takes a reference of its own; NULL on OOM

struct CancelToken {
  uint32_t tag;
  RefCount refs;
  int32_t cancelled;
  static void destroy(CancelToken*) noexcept;
};

TT_INLINE Ctx& ctx() { return *tls.ctx; }
void ctx_rebind(Ctx*);  // after a move to another thread: picks that thread's heap; fails with OOM
// Asks the cancel token and, if it is time (or `now`), the host; fails with CANCELLED or CALLBACK.
void ask_host(bool now = false);
// Between kernels and parts of long ones. The clock is read before large ones, and before one in
// some of the small ones.
void ask_in_passing(bool large);
inline void poll_host(bool large) {
  if (TT_UNLIKELY(ctx().watched)) ask_in_passing(large);
}

// While it lives the call writes what must not stay in part, or holds a lock: the host is not
// asked, a cancellation waits.
struct CommitGuard {
  bool watched = ctx().watched;
  CommitGuard() { ctx().watched = false; }
  ~CommitGuard() { ctx().watched |= watched; }
  CommitGuard(const CommitGuard&) = delete;
};

// Keys in `include` that only watch (dispatch/key.h: Trace, Profile): callbacks of the host keep
// them.
constexpr uint64_t kWatchKeys = uint64_t(3) << 13;

// Masks of a scope in C++: restores them on exit.
struct MaskGuard {
  uint64_t include, exclude;
  MaskGuard(uint64_t more_excluded) : include(ctx().include), exclude(ctx().exclude) {
    ctx().exclude |= more_excluded;
  }
  ~MaskGuard() {
    ctx().include = include;
    ctx().exclude = exclude;
  }
  MaskGuard(const MaskGuard&) = delete;
};

constexpr int64_t kParallelGrain =
    32768;  // elements below which a kernel stays on the calling thread

// Runs a kernel over [0, units) on a tensor's device: CPU (split by `grain`), the device backend,
// or not at all on META.
void launch(const Kernel& k, Device device, const void* plan, int64_t units,
            int64_t grain = kParallelGrain);

// The scratch memory of a kernel on a device, had before any kernel of a call runs. On the CPU, and
// on META, there is none.
class DeviceWorkspace {
 public:
  DeviceWorkspace(const Kernel& k, Device device,
                  const void* plan);  // fails with OOM or NOT_IMPLEMENTED
  DeviceWorkspace(DeviceWorkspace&& o) noexcept;
  ~DeviceWorkspace();
  Device device() const { return device_; }
  void launch(const Kernel& k, const void* plan);  // nothing where a device has no kernels

 private:
  Device device_;
  DeviceAlloc* alloc_ = nullptr;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace TT_NS
