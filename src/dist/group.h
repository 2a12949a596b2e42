// Group: processes that communicate. Work: one collective or transfer of a group.
//
// Each group has up to three lanes, threads that run its work in order: one for collectives, one
// for sends, one for receives. Groups made by a split share the connection of their parent; their
// messages differ in the channel. A failed transfer breaks the connection: the processes no longer
// agree on what comes next, so that whatever else uses it fails at once.
#pragma once

#include "base/os_thread.h"
#include "core/ctx.h"
#include "core/cuda_device.h"
#include "core/tensor.h"
#include "dist/engine.h"
#include "dist/nccl_library.h"
#include "dist/reduce.h"

namespace TT_NS {

struct Group;
struct NcclComm;
struct Agreement;

struct Connection {
  RefCount refs;
  const DistEngine* engine;
  void* handle;
  int32_t rank, size;
  int32_t pid;           // of the process that connected
  NcclLibrary nccl;      // of the backend "nccl": moves what is on CUDA devices
  int32_t last_channel;  // largest channel of a group of this process; atomic
  Mutex mutex;           // guards the fields below
  bool broken;
  char reason[400];
  static void destroy(Connection*) noexcept;
};

enum class DistCall : int32_t {
  kBarrier = 1,
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kReceive,
  kStop,  // of a data-parallel backward: every other call of other ranks fails
};
// Why a backward stops: Job::tag of kStop.
enum StopReason : int32_t { kStopMissing, kStopHook };
const char* call_name(DistCall call) noexcept;

constexpr int32_t kAnyRank = -1;

// What a Work has to do. input and output may be the same tensor.
struct Job {
  DistCall call;
  ReduceOp op = ReduceOp::kSum;
  int32_t root = 0;  // or the other process of a transfer; kAnyRank: the one that sends first
  int32_t tag = 0;   // of a transfer; the number of a bucket, from 1
  TensorRef input, output;
  int64_t run = 0;  // the backward that it belongs to; 0: none. See Group::failed_run
};

using WorkFn = void (*)(void* user, tt_status status);

struct Work {
  uint32_t tag;
  RefCount refs;
  Job job;
  SmallVec<TensorRef, 4> scratch;  // memory of messages
  Agreement* agreement;            // owned; while the work runs (collectives.cpp)
  Ctx* caller;                     // of the thread that runs the work itself; NULL: its lane does
  bool interrupted;                // the caller has been cancelled
  Ref<DeviceEvent> ready;          // (tensors on CUDA) after which the job may read and write them
  Work* next;                      // in the queue of a lane
  uint32_t changed;                // incremented and woken now and then, and at the end
  Mutex mutex;                     // guards the fields below
  bool done;
  bool reported;  // to a profiler
  tt_status status;
  int32_t source;            // of a receive that is done: the rank that has sent
  int64_t begin_ns, end_ns;  // when the job ran
  int64_t bytes;             // of its tensors
  Ref<DeviceEvent> result;   // (tensors on CUDA) after which the result is there
  WorkFn fn;                 // called at the end; NULL: none
  void* user;
  void (*drop)(void*);
  char message[512];
  static void destroy(Work*) noexcept;
};

struct Lane {
  Group* group;
  Ctx* ctx;  // owned
  OsThread thread;
  SmallVec<NcclComm*, 1> comms;  // owned; used by the lane only
  bool started;
  const void* self;  // identifies the thread while it runs
  Mutex mutex;       // guards the fields below
  uint32_t changed;
  Work *first, *last;  // owned; running and waiting
  bool busy;           // a thread runs the first work
  bool stopping;
  bool orphaned;  // the last handle was released by this lane, which deletes the group
};

constexpr int kLanes = 3;
// Whether the call concerns two ranks only.
inline bool is_transfer(DistCall call) {
  return call == DistCall::kSend || call == DistCall::kReceive;
}
int lane_of(DistCall call) noexcept;

struct Group {
  uint32_t tag;
  RefCount refs;
  Runtime* rt;                 // owned
  Ref<Connection> connection;  // empty for a single process without an engine
  int32_t rank, size;
  SmallVec<int32_t, 8> members;  // their ranks in the connection
  int32_t channel;
  int64_t timeout_ns;
  uint64_t sequence;  // of collectives, used by their lane
  // Backwards that reduce gradients over the group. When a collective of one fails, all ranks skip
  // the rest of them, so that the next call of all is the same again.
  int64_t last_run;     // atomic
  int64_t failed_run;   // used by the lane of collectives
  const Ctx* hook_ctx;  // runs a hook of hook_run, which its collectives belong to; atomic
  int64_t hook_run;
  Lane lanes[kLanes];
  int32_t peer(int32_t r) const { return members[r]; }
  static void destroy(Group*) noexcept;
};

struct GroupOptions {
  int64_t timeout_ns = int64_t(1800) * 1000000000;
  const char* library = nullptr;  // path of the engine; NULL: libtt_<backend>.so
};

// rank and size may be -1 where the engine knows them.
Ref<Group> new_group(const char* backend, int32_t rank, int32_t size, const char* rendezvous,
                     const GroupOptions& options);
// A collective call: a group for each color, its ranks ordered by key. Empty for negative colors.
Ref<Group> split_group(Group& parent, int64_t color, int64_t key);
const char* backend_name(const Group& g) noexcept;  // "" without an engine
bool can_use_cuda(const Group& g) noexcept;

// Checks the job and starts it.
Ref<Work> start_work(Group& g, Job job);
// Waits until the work is done, and fails as it failed. timeout_ns < 0: no limit but that of the
// group. The host does not wait for devices: the current stream does.
void wait_work(Work& w, int64_t timeout_ns);
void wait_end(Work& w, int64_t timeout_ns);  // the same, but the work may have failed
bool work_done(Work& w) noexcept;
// Calls fn at the end, on a thread of tt, or at once if the work is done. A work has one callback.
void call_when_done(Work& w, WorkFn fn, void* user, void (*drop)(void*));
// The same as start_work for a work that is waited for at once: where its lane has nothing else to
// do, this thread runs it, which saves two changes of thread.
Ref<Work> start_here(Group& g, Job job);
inline void run_work(Group& g, Job job) { wait_work(*start_here(g, std::move(job)), -1); }

}  // namespace TT_NS
