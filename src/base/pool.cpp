#include "base/pool.h"

#include "base/memory/arena.h"

#include <limits.h>
#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kSpinNs = 20000;  // how long a worker spins for the next region
// How long the caller spins for workers that are still in its region: sleeping would cost 45 µs.
constexpr int64_t kTailNs = 100000;
constexpr int64_t kWakeNs = 100000;  // work that justifies waking a sleeping worker

// Gate of a region: number of workers inside, and flags. Workers enter only while the gate is open,
// so nobody waits for a worker that wakes up late.
constexpr uint32_t kOpen = 1u << 31;
constexpr uint32_t kAwaited = 1u << 30;  // the caller sleeps until the last worker leaves
constexpr uint32_t kInside = kAwaited - 1;

struct Region {
  tt_range_fn body;
  void* ctx;
  int64_t n, grain;

  int64_t ranges() const { return n / grain + (n % grain != 0); }
  void run(int64_t i) const {
    const int64_t begin = i * grain;
    body(ctx, begin, n - begin < grain ? n : begin + grain);
  }
};

// A thread and its share of the ranges. Each thread starts with its own share (the data may still
// be in its cache), then helps the others. Share 0 is the caller's.
struct alignas(64) Share {
  int64_t next, end;
  Pool* pool;
  OsThread thread;
  uint32_t seen;  // epoch before the thread's first region
  int32_t index;
};

}  // namespace

struct Pool {
  Arena* arena;
  int32_t pid;      // process that started the threads
  int32_t threads;  // requested number, the caller included
  int32_t started;  // workers
  int32_t num_shares;
  Share* shares;
  Mutex busy;  // held during a region on own threads and while threads are changed
  // work that sleeping workers could have shared, less the pauses since; see run_first
  int64_t missed_ns;
  int64_t last_ns;  // end of the last region that sleeping workers missed
  Mutex executor_lock;
  tt_executor executor;
  bool has_executor;  // atomic

  alignas(64) Region region;
  alignas(64) uint32_t epoch;  // of the latest region; workers sleep on it
  uint32_t sleepers;
  uint32_t stop;
  alignas(64) uint32_t gate;
};

namespace {

void spin_pause() {
  for (int i = 0; i < 16; i++) cpu_pause();
}

// Claims and runs ranges until none is left, those of share `own` first, at most `limit` of them.
void run_shares(Pool* p, int32_t own, int64_t limit) {
  const Region r = p->region;
  const int32_t count = p->num_shares;
  for (int32_t k = 0; k < count && limit > 0; k++) {
    Share* s = &p->shares[own + k < count ? own + k : own + k - count];
    while (limit > 0 && atomic_load(&s->next, kRelaxed) < s->end) {
      const int64_t i = atomic_fetch_add(&s->next, 1, kRelaxed);
      if (i >= s->end) break;
      r.run(i);
      limit--;
    }
  }
}

bool enter(Pool* p) {
  uint32_t g = atomic_load(&p->gate, kRelaxed);
  do
    if (!(g & kOpen)) return false;
  while (!atomic_compare_exchange_weak(&p->gate, &g, g + 1, kAcquire, kRelaxed));
  return true;
}

void leave(Pool* p) {
  if (atomic_sub_fetch(&p->gate, 1, kAcqRel) == kAwaited) os_wake(&p->gate, 1);
}

// Closes the gate and waits for the workers inside.
void close(Pool* p) {
  uint32_t g = atomic_and_fetch(&p->gate, ~kOpen, kAcqRel);
  if (g == 0) return;
  const int64_t until = os_now_ns() + kTailNs;
  while ((g = atomic_load(&p->gate, kAcquire)) != 0 && os_now_ns() < until) spin_pause();
  if (g == 0) return;
  g = atomic_or_fetch(&p->gate, kAwaited, kAcqRel);
  while (g & kInside) {
    os_wait(&p->gate, g);
    g = atomic_load(&p->gate, kAcquire);
  }
  atomic_store(&p->gate, 0, kRelaxed);
}

// Returns the epoch after `seen` if it comes within kSpinNs of the end of a running region.
uint32_t spin_for_epoch(Pool* p, uint32_t seen) {
  const int64_t start = os_now_ns();
  int64_t until = start + kSpinNs;
  uint32_t e;
  while ((e = atomic_load(&p->epoch, kAcquire)) == seen) {
    const int64_t now = os_now_ns();
    if (now >= until) break;
    if (atomic_load(&p->gate, kRelaxed) && now - start < kTailNs) until = now + kSpinNs;
    spin_pause();
  }
  return e;
}

// Returns the epoch after `seen`: spins briefly, then sleeps.
uint32_t next_epoch(Pool* p, uint32_t seen) {
  uint32_t e = spin_for_epoch(p, seen);
  if (e != seen) return e;
  atomic_fetch_add(&p->sleepers, 1, kSeqCst);
  while ((e = atomic_load(&p->epoch, kSeqCst)) == seen) os_wait(&p->epoch, seen);
  atomic_fetch_sub(&p->sleepers, 1, kRelaxed);
  return e;
}

void worker_main(void* arg) {
  const Share* s = static_cast<const Share*>(arg);
  Pool* p = s->pool;
  const int32_t index = s->index;
  uint32_t seen = s->seen;
  tls.in_parallel = 1;
  for (;;) {
    seen = next_epoch(p, seen);
    if (atomic_load(&p->stop, kAcquire)) return;
    if (!enter(p)) continue;
    run_shares(p, index, INT64_MAX);
    leave(p);
  }
}

// Starts missing workers, which find the open region by themselves. If the system refuses, the pool
// has fewer.
void start_workers(Pool* p) {
  const uint32_t before = atomic_load(&p->epoch, kRelaxed) - 1;
  while (p->started < p->threads - 1) {
    Share* s = &p->shares[p->started + 1];
    s->seen = before;
    if (os_thread_start(&s->thread, worker_main, s) != 0) return;
    p->started++;
  }
}

void stop_workers(Pool* p) {
  if (p->started == 0) return;
  atomic_store(&p->stop, 1, kRelease);
  atomic_fetch_add(&p->epoch, 1, kSeqCst);
  os_wake(&p->epoch, INT_MAX);
  for (; p->started; p->started--) os_thread_join(&p->shares[p->started].thread);
  atomic_store(&p->stop, 0, kRelaxed);
}

void free_shares(Pool* p) {
  if (p->shares) arena_give(p->arena, p->shares, sizeof(Share) * size_t(p->num_shares), 64);
  p->shares = nullptr;
  p->num_shares = 0;
}

// Publishes the region to the workers that are awake.
void open(Pool* p, const Region& r) {
  p->region = r;
  const int64_t ranges = r.ranges();
  for (int32_t i = 0; i < p->num_shares; i++) {
    Share* s = &p->shares[i];
    const int64_t each = ranges / p->num_shares;
    const int64_t more = ranges % p->num_shares;
    s->end = each * (i + 1) + (i + 1 < more ? i + 1 : more);
    atomic_store(&s->next, each * i + (i < more ? i : more), kRelaxed);
  }
  atomic_store(&p->gate, kOpen, kRelease);
  atomic_fetch_add(&p->epoch, 1, kSeqCst);
}

// Returns true once sleeping workers have missed kWakeNs of work: in this region, or in a stream of
// regions whose pauses are shorter than their work.
bool worth_waking(Pool* p, int64_t begin, int64_t now, int64_t left) {
  const double work = double(now - begin) * double(left);
  const int64_t pause = begin - p->last_ns;
  const int64_t missed = p->missed_ns > pause ? p->missed_ns - pause : 0;
  const bool wake = work + double(missed) >= double(kWakeNs);
  p->missed_ns = wake ? 0 : missed + int64_t(work);
  p->last_ns = now + (wake ? 0 : int64_t(work));
  return wake;
}

// Wakes workers if the ranges take long enough. If their duration is unknown, runs the first one to
// measure it. A forked child has no workers: its caller runs all shares, or finds the pool busy if
// a region was running at the fork. So the pid is checked only here, before workers are started,
// and hot regions make no system call.
void run_first(Pool* p, int64_t ranges, int64_t range_ns) {
  const uint32_t asleep = atomic_load(&p->sleepers, kSeqCst);
  if (asleep == 0 && p->started == p->threads - 1) return;
  const int64_t begin = os_now_ns();
  if (range_ns < kWakeNs / (ranges - 1)) {
    run_shares(p, 0, 1);
    if (!worth_waking(p, begin, os_now_ns(), ranges - 1)) return;
  } else {
    p->missed_ns = 0;
    p->last_ns = begin;
  }
  if (p->pid != os_pid()) return;
  const int64_t wanted = ranges - 1 < p->threads - 1 ? ranges - 1 : p->threads - 1;
  if (asleep) os_wake(&p->epoch, int32_t(wanted));
  start_workers(p);
}

void run_serial(const Region& r) {
  const int64_t ranges = r.ranges();
  for (int64_t i = 0; i < ranges; i++) r.run(i);
}

void run_own(Pool* p, const Region& r, int64_t range_ns) {
  tls.in_parallel++;
  open(p, r);
  run_first(p, r.ranges(), range_ns);
  run_shares(p, 0, INT64_MAX);
  close(p);
  tls.in_parallel--;
}

// A region on the application's threads. An executor receives range numbers, not indices, so that
// the split into ranges is always tt's.
struct ExecutorRegion {
  Region region;
  int64_t done;  // (atomic) how many ranges have run
};
void run_executor_ranges(void* ctx, int64_t begin, int64_t end) {
  ExecutorRegion* r = static_cast<ExecutorRegion*>(ctx);
  tls.in_parallel++;
  for (int64_t i = begin; i < end; i++) r->region.run(i);
  tls.in_parallel--;
  atomic_fetch_add(&r->done, end - begin, kRelaxed);
}

bool get_executor(Pool* p, tt_executor* e) {
  Lock l(p->executor_lock);
  *e = p->executor;
  return p->has_executor;
}

// An executor that throws counts as one thread.
int32_t executor_threads(const tt_executor& e) noexcept {
  try {
    return e.num_threads(e.user);
  } catch (...) {
    return 1;
  }
}

tt_status run_on_executor(Pool* p, const Region& r) {
  tt_executor e;
  if (!get_executor(p, &e) || executor_threads(e) <= 1) {
    run_serial(r);
    return TT_OK;
  }
  ExecutorRegion region = {r, 0};
  bool threw = false;
  int32_t status = TT_OK;
  try {
    status = e.parallel_for(e.user, r.ranges(), 1, run_executor_ranges, &region);
  } catch (...) {
    threw = true;
  }
  const int64_t done = atomic_load(&region.done, kRelaxed);
  if (!threw && status == TT_OK && done == r.ranges()) return TT_OK;
  const bool is_status = status > TT_OK && status <= TT_DISTRIBUTED;
  const FmtArg args[] = {status, done, r.ranges()};
  const char* text = threw ? "the application's executor threw an exception"
                           : "the application's executor returned {} after {} of {} ranges";
  set_error(tls.error, is_status ? status : TT_CALLBACK, tls.op, "", text, args);
  return -1;
}

}  // namespace

Pool* pool_new(Arena* a) noexcept {
  Pool* p = static_cast<Pool*>(arena_take(a, sizeof(Pool), 64));
  if (!p) return nullptr;
  memset(static_cast<void*>(p), 0, sizeof(Pool));
  p->arena = a;
  p->pid = os_pid();
  p->threads = 1;
  return p;
}

void pool_delete(Pool* p) noexcept {
  if (!p) return;
  if (p->pid == os_pid()) stop_workers(p);
  free_shares(p);
  arena_give(p->arena, p, sizeof(Pool), 64);
}

void pool_set_executor(Pool* p, const tt_executor* e) noexcept {
  Lock l(p->executor_lock);
  p->executor = e ? *e : tt_executor{};
  atomic_store(&p->has_executor, e != nullptr, kRelaxed);
}

tt_status pool_set_threads(Pool* p, int32_t n) noexcept {
  if (n < 1 || n > kMaxThreads || tls.in_parallel) return TT_INVALID_ARG;
  const int32_t pid = os_pid();
  if (p->pid != pid) {  // a forked child has neither the parent's threads nor their locks
    p->pid = pid;
    p->started = 0;
    p->gate = p->sleepers = p->stop = 0;
    p->busy = p->executor_lock = Mutex();
  }
  Lock l(p->busy);
  if (n == p->threads && (n == 1 || p->shares)) return TT_OK;
  Share* shares = nullptr;
  if (n > 1) {
    shares = static_cast<Share*>(arena_take(p->arena, sizeof(Share) * size_t(n), 64));
    if (!shares) return TT_OOM;
    memset(static_cast<void*>(shares), 0, sizeof(Share) * size_t(n));
    for (int32_t i = 0; i < n; i++) {
      shares[i].pool = p;
      shares[i].index = i;
    }
  }
  stop_workers(p);
  free_shares(p);
  p->shares = shares;
  p->num_shares = shares ? n : 0;
  atomic_store(&p->threads, n, kRelaxed);
  return TT_OK;
}

int32_t pool_threads(Pool* p) noexcept {
  tt_executor e;
  return get_executor(p, &e) ? executor_threads(e) : atomic_load(&p->threads, kRelaxed);
}

tt_status parallel_for(Pool* p, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx,
                       int64_t range_ns) noexcept {
  if (n <= 0) return TT_OK;
  const Region r = {body, body_ctx, n, grain < 1 ? 1 : grain};
  if (n > r.grain && !tls.in_parallel) {
    if (atomic_load(&p->has_executor, kRelaxed)) return run_on_executor(p, r);
    if (atomic_load(&p->threads, kRelaxed) > 1 && p->busy.try_lock()) {
      // The number of threads may have been reduced in between.
      if (p->threads > 1) run_own(p, r, range_ns);
      else run_serial(r);
      p->busy.unlock();
      return TT_OK;
    }
  }
  run_serial(r);
  return TT_OK;
}

}  // namespace TT_NS
