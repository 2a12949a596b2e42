// Plan: a graph lowered to kernel launches in one arena, and one on a device if it uses that
// (device_plan.h). A run of it does not allocate, dispatch or check shapes.
#pragma once

#include "core/device_checks.h"
#include "graph/ir.h"

namespace TT_NS {

enum class StepKind : uint8_t {
  kLaunch,        // of a kernel
  kDraw,          // reserves random numbers
  kWrite,         // copies numbers that an implementation filled in on the host
  kCheck,         // fails if a check found something, such as an index out of range
  kHost,          // calls an operator of the application
  kCall,          // computes numbers on the host
  kDeviceLaunch,  // of a kernel on a device
  kDeviceCopy,    // within a device, or between it and the CPU
};
struct Plan;
struct PlanDevice;

struct PlanStep {
  StepKind kind;
  const Kernel* kernel = nullptr;  // kLaunch
  CpuKernel fn = nullptr;          // its build for the ctx's instruction set
  char* plan = nullptr;  // launches: in Plan::blob. kWrite: the numbers. kDeviceCopy: what is read
  int64_t units = 0;
  int64_t grain = 0;
  int32_t draw = -1;         // kDraw; launches: the draw whose numbers the kernel takes, or -1
  uint64_t offset = 0;       // (launches with a draw) counters behind its begin
  char* to = nullptr;        // kWrite, kCall, kDeviceCopy; kDeviceLaunch: scratch memory
  int64_t bytes = 0;         // kWrite, kDeviceCopy
  int32_t copy_kind = 0;     // kDeviceCopy: a CopyKind
  int32_t check = -1;        // kCheck: in Plan::checks
  HostFn call = nullptr;     // kCall
  Object* object = nullptr;  // kCall; the graph keeps it alive
  // (kHost) runs Plan::host_calls[host_call]
  void (*run_host)(Plan&, const PlanStep&) = nullptr;
  int32_t host_call = -1;
  int32_t node = -1;
};

// An operator of the application: where the values of its arguments and results are.
struct PlanHostCall {
  int32_t node = -1;
  SmallVec<char*, 4> args;  // in the order of for_each_value
  SmallVec<char*, 2> outs;  // of the results; NULL for absent ones
};

struct PlanCheck {
  const char* found;
  DeviceCheck check;  // values: of memory that the plan and the graph keep alive
};

struct PlanDraw {
  Ref<Generator> generator;  // empty: that of the ctx that runs the plan
  uint64_t counters = 0;
  Rng begin;
};

// The bytes [offset, offset + bytes) of the arena from event `birth` to `death` of a lowering.
struct Placement {
  int64_t bytes = 0;
  int64_t birth = 0;
  int64_t death = INT64_MAX;
  int64_t offset = 0;
  // It is in the memory of another placement, whose life includes its own, or at `at`.
  bool shared = false;
  char* at = nullptr;  // memory of state; NULL: in the arena
};
// Sets the offsets of those that are not shared so that placements that exist at one time do not
// overlap; the largest first. Returns the size of the arena. Beyond max_comparisons of placements
// with each other, which 16,000 that all overlap do not reach, it is larger than it had to be.
constexpr int64_t kArenaAlign = 64;
constexpr int64_t kMaxComparisons = int64_t(1) << 28;
int64_t place_greedily(Span<Placement> all, int64_t alignment = kArenaAlign,
                       int64_t max_comparisons = kMaxComparisons);

// One launch of a region (tiles.h).
struct TileStep {
  CpuKernel fn = nullptr;
  const char* plan = nullptr;         // an ElementPlan, in Plan::blob
  int8_t slot[4] = {-1, -1, -1, -1};  // of the scratch memory; -1: the operand is where plan says
};
struct TileRegion {
  int64_t first = 0, n_steps = 0;  // in Plan::tile_steps
  const TileStep* steps = nullptr;
  int64_t block = 0;  // elements of a tile
};

// One launch of a chain (bands.h).
struct BandStep {
  CpuKernel fn = nullptr;
  const char* plan = nullptr;
  int64_t units = 0;  // of a row
};
struct BandRegion {
  int64_t first = 0, n_steps = 0;  // in Plan::band_steps
  const BandStep* steps = nullptr;
  int64_t band = 0;               // rows of a band
  const char* product = nullptr;  // a MatmulPlan whose rows the steps follow, or NULL
  CpuKernel product_fn = nullptr;
};

// An arena that tt has allocated; plans and their slots share it.
struct PlanMemory {
  RefCount refs;
  char* data;
  int64_t bytes;
  static void destroy(PlanMemory*) noexcept;
};

Ref<PlanMemory> new_plan_memory(int64_t bytes);

// Weights that the plan has packed.
struct PackedMemory {
  char* data;
  int64_t bytes;
};

// An input or output whose place in the arena the caller's memory can take (bind.h).
struct SlotBinding {
  int64_t placement = -1;  // -1: it is always copied
  char* own = nullptr;     // its place
  char* now = nullptr;     // where the steps look for it
  int64_t bytes = 0;
  SmallVec<uintptr_t*, 4> words;  // of the steps: addresses in it
};

struct Plan {
  uint32_t tag;
  RefCount refs;
  Ref<Graph> graph;
  SmallVec<PlanStep, 1> steps;
  SmallVec<PlanDraw, 1> draws;
  SmallVec<int32_t, 1> draws_of_graph;  // for each of Graph::draws: which of `draws`
  bool draws_given = false;             // PlanDraw::begin is set before a run, which draws nothing
  SmallVec<PlanCheck, 1> checks;
  SmallVec<PlanHostCall, 1> host_calls;
  SmallVec<Placement, 1> placements;
  char* blob = nullptr;  // plans of kernels and numbers of kWrite
  int64_t blob_bytes = 0;
  SmallVec<PackedMemory, 1> packed;
  char* arena = nullptr;
  int64_t arena_bytes = 0;
  Ref<PlanMemory> memory;                                // of the arena; empty: the application's
  SmallVec<char*, 4> inputs, outputs;                    // addresses of the values
  SmallVec<SlotBinding, 1> bound_inputs, bound_outputs;  // (new_plan with binds) of each of them
  SmallVec<Storage*, 4> written;     // state that a run writes; the graph keeps it alive
  SmallVec<int64_t, 1> step_times;   // events of the first lowering and its end; until make_tiles
  SmallVec<TileStep, 1> tile_steps;  // of all regions
  SmallVec<TileRegion, 1> regions;   // plans of the launches that stand for several
  SmallVec<BandStep, 1> band_steps;  // of all chains
  SmallVec<BandRegion, 1> bands;     // plans of the launches that stand for chains
  PlanDevice* device = nullptr;      // (device_plan.h) owned; NULL: the CPU's alone
  int64_t next = 0;                  // step that a run goes on with
  int32_t running = 0;
  static void destroy(Plan*) noexcept;
};

// What is shorter is copied, which takes about as long as to look for what would be saved.
constexpr int64_t kLeastBoundBytes = 1 << 14;

// arena: memory of at least `arena_bytes`, aligned to 64 bytes, that must outlive the plan; NULL:
// allocated. n_bound: inputs and the first n_bound outputs of at least `least_bound` bytes can be
// bound (bind.h); -1: none.
Ref<Plan> new_plan(const Ref<Graph>& g, void* arena, int64_t arena_bytes, int64_t n_bound = -1,
                   int64_t least_bound = kLeastBoundBytes);
// The size that an arena of the application must have.
int64_t needed_arena(const Ref<Graph>& g);
// Input or output i, in the arena (or the state), whose memory it keeps alive.
TensorRef plan_slot(Plan& p, bool output, int64_t i);
// The value at its address in a run of the plan. Keeps its memory alive.
TensorRef plan_tensor(Plan& p, int32_t value, char* data);
// Runs the step of an operator of the application.
void run_host_call(Plan& p, const PlanStep& s);
// Runs the plan, or continues a run, for at most ns nanoseconds (< 0: to its end). Returns true
// when the run is complete.
bool run_plan(Plan& p, int64_t ns);

}  // namespace TT_NS
