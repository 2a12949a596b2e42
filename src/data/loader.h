// Loader: batches of a dataset in the order of a sampler, made ahead by workers.
//
// Batches are numbered from 0 in each epoch. To claim one is to take its indices from the sampler;
// it is then made without the lock, by a worker, by a thread that calls loader_work, or by
// loader_next itself. Batch b waits in ring[b % ring.size()] until loader_next returns it.
#pragma once

#include "base/os.h"
#include "data/dataset.h"
#include "data/sampler.h"

namespace TT_NS {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool drop_last = false;
  int64_t workers = 0;   // threads of tt
  int64_t prefetch = 2;  // batches ahead, for each worker
};
constexpr int64_t kMaxWorkers = 256;

struct LoaderSlot {
  enum State : int32_t { kEmpty, kClaimed, kReady, kFailed } state = kEmpty;
  tt_status code = TT_OK;        // (kFailed)
  tt_status cause_code = TT_OK;  // (kFailed) TT_OK: no cause
  char message[256];             // (kFailed)
  char cause[256];               // (kFailed)
  TensorList batch;              // (kReady); empty: the end of a stream
};

struct Loader;
struct LoaderWorker {
  Loader* loader;
  Ctx* ctx;  // owned
  OsThread thread;
  bool started;
};

struct Loader {
  uint32_t tag;
  RefCount refs;
  Runtime* rt;  // owned
  Ref<Dataset> dataset;
  Ref<Sampler> sampler;
  LoaderOptions options;
  int32_t pid;  // of the process that has the workers
  SmallVec<LoaderWorker, 1> workers;

  Mutex mutex;       // guards the fields below
  uint32_t changed;  // incremented and woken after each change that somebody may wait for
  bool stopping;
  bool running;                // an epoch has begun and not ended
  bool exhausted;              // (running) no further batch can be claimed
  bool streaming;              // (of a stream) a batch is being made
  bool next_runs;              // loader_next is running
  bool orphaned;               // the last handle was released by a worker, which deletes the loader
  SamplerState start;          // of the epoch, or of what is left of it
  int64_t claimed, delivered;  // batches
  int64_t in_flight;           // batches being made
  SmallVec<LoaderSlot, 1> ring;
  static void destroy(Loader*) noexcept;
};

// sampler NULL: all samples in order. Fails with INVALID_ARG, OOM or, if a thread does not start,
// INTERNAL.
Ref<Loader> new_loader(Ref<Dataset> dataset, Ref<Sampler> sampler, const LoaderOptions& options);
// Returns the next batch, none at the end of an epoch. A batch of more than cap tensors is kept for
// the next call, and *n is their number. A failing sample fails the call; the next call returns the
// batch after it.
TensorList loader_next(Loader& l, int64_t cap, int64_t* n);
// Makes one batch ahead on the calling thread; returns false if none is wanted.
bool loader_work(Loader& l);
// What has been returned; prefetched batches do not count.
SamplerState loader_state(Loader& l) noexcept;
void loader_set_state(Loader& l, const SamplerState& state);  // waits for batches being made
int64_t loader_length(const Loader& l) noexcept;  // batches of an epoch; -1: unknown, of a stream

}  // namespace TT_NS
