// Reducer: data-parallel training. Gradients of a module are views of buckets; as soon as a
// backward has filled a bucket, a lane of the group reduces it to the mean over all ranks.
#pragma once

#include "core/state_dict.h"
#include "dist/group.h"

namespace TT_NS {

struct ReducerOptions {
  int64_t bucket_bytes = int64_t(25) << 20;
  bool broadcast_buffers = true;
  bool find_unused = false;          // parameters may be left out of a backward
  Dtype compression = Dtype::kNone;  // of the messages; kNone: that of the gradients
};

struct Reducer;

// A bucket for a hook of the application; the handles are borrowed.
struct HookBucket {
  int64_t index, num_buckets;
  bool failed;
  tt_tensor* buffer;
  SmallVec<tt_tensor*, 16> gradients, parameters;
};
enum class HookStage { kStart, kFinish };
struct ReducerHook {
  // NULL: no hook
  tt_status (*call)(void* user, tt_ctx* c, HookStage stage, const HookBucket& bucket);
  void* user;
  void (*drop)(void*);
};

// A collective call: compares the models of all ranks, gives all the parameters and buffers of rank
// 0, and watches backward from then on, until it is detached.
Ref<Reducer> new_reducer(Group& g, const StateDict& parameters, const StateDict& buffers,
                         const ReducerOptions& options);
// Leaves the parameters to themselves, with their gradients.
void detach_reducer(Reducer& r) noexcept;
// Before a forward that a backward follows: the buffers become those of rank 0.
void prepare_forward(Reducer& r);
// Reduces the gradients that the parameters have now, outside a backward; they must have gradients
// unless find_unused is on.
void reduce_gradients(Reducer& r);
// Off: gradients add up in each process.
void set_reducer_sync(Reducer& r, bool on) noexcept;
// A collective call. From then on the hook reduces the buckets. It owns hook.user unless it fails.
void set_reducer_hook(Reducer& r, const ReducerHook& hook);

struct Reducer {
  struct Parameter {
    Text name;
    TensorRef leaf;
    TensorRef view;  // of its bucket
    int64_t bucket;
    int64_t hook;  // id in the leaf's list
    bool ready;    // its gradient of the running backward is in the bucket
    bool unused;   // it has no gradient on this rank
  };
  struct Bucket {
    TensorRef flat;
    TensorRef message;             // a copy in the dtype of messages; empty: flat itself
    Ref<Work> work;                // while it is being reduced
    SmallVec<int64_t, 8> members;  // parameters
    int64_t missing;               // those without a gradient yet
    bool started;                  // by the hook, which has not finished it
  };
  // Buffers of one dtype and device, one behind the other.
  struct BufferGroup {
    TensorRef flat;
    TensorList tensors, views;
  };
  RefCount refs;
  Ref<Group> group;
  ReducerOptions options;
  SmallVec<Parameter, 8> parameters;  // in the order of the module
  SmallVec<Bucket, 4> buckets;        // none: the group has one process, and there is no hook
  SmallVec<BufferGroup, 1> buffers;
  int64_t launched;    // buckets of the running backward that are on their way
  int64_t run;         // Job::run of the running backward
  const void* runner;  // the ctx whose backward runs; atomic
  bool sync;
  ReducerHook hook;
  static void destroy(Reducer*) noexcept;
};

}  // namespace TT_NS
