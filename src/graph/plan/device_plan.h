// PlanDevice: the part of a plan that is on a CUDA device: memory, checks and launches. Launches
// that are the same in each run are recorded as graphs of the device.
#pragma once

#include "core/cuda_calls.h"
#include "core/kept_checks.h"
#include "graph/plan/plan.h"

namespace TT_NS {

// Launches that follow each other and take the same numbers in each run.
struct DeviceSegment {
  int64_t first, n;      // steps of the plan
  void* graph;           // NULL: not recorded
  bool is_unrecordable;  // a kernel does what a graph cannot hold
};

struct PlanDevice {
  Device device;
  CudaDevice* cuda;
  TensorRef arena;
  int64_t arena_bytes;
  SmallVec<Placement, 1> placements;
  int64_t n_checks;
  KeptChecks checks;  // what launches check
  SmallVec<DeviceCheck, 1> kept;
  SmallVec<DeviceSegment, 1> segments;
  int64_t next_segment;
  bool is_warm;          // a run has ended: libraries are open, and what they keep is made
  DeviceStream* stream;  // of the run
  // Order a run after and before what the ctx computes on the device.
  void (*begin)(Plan& p);
  void (*end)(Plan& p);
  // Runs the steps from i that belong together; returns the one behind them.
  int64_t (*run)(Plan& p, int64_t i);
  void (*destroy)(PlanDevice*) noexcept;
};

// Makes it, or fails if the plan has another device.
PlanDevice& plan_device(Plan& p, Device device);
// After the first lowering: allocates what the second one gives addresses of.
void allocate_device(PlanDevice& d);
constexpr int64_t kDeviceAlign = 256;  // of memory in the arena: as that of the allocator
// After the second lowering.
void finish_device(Plan& p);

}  // namespace TT_NS
