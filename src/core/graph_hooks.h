// What a capture or the lowering of a graph (src/graph) does in place of parts of core.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

struct Module;
struct DeviceCheck;

// Sees what a captured call depends on besides the tensors that its operators read.
struct CaptureVisitor {
  // The gradient of a leaf is about to be read or added to; replaces: it is set or dropped.
  void (*grad)(CaptureVisitor&, const Tensor& leaf, bool replaces);
  // An operator uses t, which is from outside: at least once for each such tensor.
  void (*outside)(CaptureVisitor&, const Tensor& t);
  // A module is about to be called.
  void (*module)(CaptureVisitor&, Module& m);
  // A backward is about to run a node.
  void (*node)(CaptureVisitor&, const GraphNode& n);
};

// A condition on elements of t that a composite relies on.
struct CheckCall {
  enum Kind : uint8_t {
    kIndices,  // all are in [low, size), or equal to `allowed`
    kHolds,    // one bool, which is true
    kInfo,     // int32 of a factorization, all 0; `low` says what another one means
  } kind;
  const Tensor& t;
  const char* arg;
  int64_t low = 0, size = 0, allowed = 0;
  tt_status status = TT_OK;  // (kHolds) of the failure, and its message
  const char* text = "";
};

struct GraphHooks;

// Called in place of allocations and launches on CUDA devices.
struct DeviceHooks {
  // Scratch memory for the kernel that `launch` gets next; bytes > 0.
  void (*workspace)(GraphHooks&, Device device, int64_t bytes);
  void (*launch)(GraphHooks&, const Kernel& k, Device device, const void* plan);
  void (*copy)(GraphHooks&, char* dst, Device to, const char* src, Device from, int64_t bytes);
  // Memory for what the kernel of a check finds, and the check.
  int64_t* (*check_place)(GraphHooks&, Device device);
  void (*check)(GraphHooks&, Device device, int64_t* place, DeviceCheck&& check);
};

struct GraphHooks : CtxPart {
  // Reserves counters of a generator; reserve(g, counters) does so without a capture.
  Rng (*draw)(GraphHooks&, Generator& g, uint64_t counters, Rng (*reserve)(Generator&, uint64_t));
  // Sets data and release of a new storage of s.bytes > 0 on the CPU; may fail. NULL: the heaps
  // allocate it.
  void (*place)(GraphHooks&, Storage& s);
  void (*place_on_device)(GraphHooks&, Storage& s);  // the same on a CUDA device
  const DeviceHooks* device;                         // NULL: devices compute at once
  // Makes the check as an operator, which is recorded; returns false if a recorded one is running.
  // NULL: checks run directly.
  bool (*check_call)(GraphHooks&, const CheckCall&);
  // The application changes what runs of the graph would not change again. NULL: it may.
  void (*change)(GraphHooks&, const char* what);
  // A step of this class comes next, which cannot be recorded. NULL: nothing is.
  void (*uncaptured_step)(GraphHooks&, const char* of);
  CaptureVisitor* visitor;  // NULL: none
};

// Who takes the place of devices in the running call; NULL: nobody.
inline const DeviceHooks* device_hooks() {
  const GraphHooks* hooks = ctx().graph;
  return TT_UNLIKELY(hooks != nullptr) ? hooks->device : nullptr;
}

// DeviceChecks::place and start, or what takes their place.
inline int64_t* check_place(DeviceChecks& checks, CudaDevice& d) {
  const DeviceHooks* hooks = device_hooks();
  if (TT_LIKELY(!hooks)) return cuda_calls->place(checks, d);
  return hooks->check_place(*ctx().graph, {TT_CUDA, int8_t(d.index)});
}
inline void start_check(DeviceChecks& checks, CudaDevice& d, int64_t* place, DeviceCheck&& check) {
  const DeviceHooks* hooks = device_hooks();
  if (TT_LIKELY(!hooks))
    return cuda_calls->start(checks, d, place, static_cast<DeviceCheck&&>(check));
  hooks->check(*ctx().graph, {TT_CUDA, int8_t(d.index)}, place, static_cast<DeviceCheck&&>(check));
}

// Returns true if the check was made.
inline bool recorded_check(const CheckCall& check) {
  GraphHooks* hooks = ctx().graph;
  return TT_UNLIKELY(hooks && hooks->check_call) && hooks->check_call(*hooks, check);
}

// Called before the application changes an object that captured steps use, by other means than
// those that a capture records.
inline void note_change(const char* what) {
  GraphHooks* hooks = ctx().graph;
  if (TT_UNLIKELY(hooks && hooks->change)) hooks->change(*hooks, what);
}

// Called before a step of an optimizer or scheduler whose numbers, which a graph would keep, change
// with each step.
inline void note_uncaptured_step(const char* of) {
  GraphHooks* hooks = ctx().graph;
  if (TT_UNLIKELY(hooks && hooks->uncaptured_step)) hooks->uncaptured_step(*hooks, of);
}

inline void note_grad(const Tensor& leaf, bool replaces) {
  if (!tls.ctx) return;  // outside of calls, gradients are only looked at
  const GraphHooks* hooks = ctx().graph;
  if (TT_UNLIKELY(hooks && hooks->visitor)) hooks->visitor->grad(*hooks->visitor, leaf, replaces);
}
// NULL: none.
inline CaptureVisitor* visitor_of_capture() {
  const GraphHooks* hooks = ctx().graph;
  return hooks ? hooks->visitor : nullptr;
}
inline void note_module(Module& m) {
  const GraphHooks* hooks = ctx().graph;
  if (TT_UNLIKELY(hooks && hooks->visitor)) hooks->visitor->module(*hooks->visitor, m);
}

}  // namespace TT_NS
