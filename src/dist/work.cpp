// Works: their checks, the lanes that run them, and how callers wait.
#include "base/finalizer.h"
#include "dist/group.h"
#include "dist/nccl.h"
#include "modes/profiler.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

const char* call_name(DistCall call) noexcept {
  static constexpr const char* kNames[] = {
      "",           "barrier", "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter",
      "all_to_all", "gather",  "scatter",    "send",   "recv",      "stop"};
  return kNames[int32_t(call)];
}

void Work::destroy(Work* w) noexcept {
  w->tag = 0;
  const auto drop = w->drop;
  void* user = w->user;
  w->~Work();
  mem_retire(w, sizeof *w);
  run_drop(drop, user);
}

static void finish(Work& w, tt_status status, int64_t begin_ns) noexcept {
  WorkFn fn;
  void* user;
  {
    Lock lock(w.mutex);
    w.begin_ns = begin_ns;
    w.end_ns = os_now_ns();
    w.status = status;
    w.done = true;
    fn = w.fn;
    user = w.user;
  }
  if (fn) {
    try {
      fn(user, status);
    } catch (...) {  // from a C++ application
    }
  }
  tick(w);
}

// Runs a job on this thread; its error, without the name of the call, is kept in the work. Returns
// false as run_job.
static bool run(Group& g, Work& w, int64_t patience = INT64_MAX) noexcept {
  const char* op = tls.op;
  const int64_t begin_ns = os_now_ns();
  tls.op = call_name(w.job.call);
  tt_status status = TT_OK;
  try {
    if (!run_job(g, w, patience)) {
      tls.op = op;
      return false;
    }
    // Before the application learns of the end: the last reference to memory of its own must not
    // be this thread's, which may outlive its interpreter. A failed work keeps its tensors, since
    // the engine may still write to them.
    w.job.input.reset();
    w.job.output.reset();
  } catch (...) {
    const tt_error& e = tls.error->view;
    status = e.code ? e.code : tt_status(TT_INTERNAL);
    const char* text = e.message ? e.message : "";
    const size_t n = strlen(tls.op);
    if (!strncmp(text, tls.op, n) && !strncmp(text + n, ": ", 2)) text += n + 2;
    const FmtArg args[] = {text};
    format_to(w.message, int64_t(sizeof w.message), "{}", args);
    if (w.job.run && g.size > 1 && lane_of(w.job.call) == 0) g.failed_run = w.job.run;
  }
  end_agreement(w);
  tls.op = op;
  finish(w, status, begin_ns);
  return true;
}

bool work_done(Work& w) noexcept {
  Lock lock(w.mutex);
  return w.done;
}

// Whether the host no longer has to wait for the work.
static bool is_settled(Work& w) noexcept {
  Lock lock(w.mutex);
  return w.done || w.result;
}

// Orders the current stream of the device after the result.
static void order_after(Work& w) {
  Ref<DeviceEvent> result;
  {
    Lock lock(w.mutex);
    result = w.result;
  }
  if (!result) return;
  CudaDevice& d = *result->device;
  cuda_check(d, d.backend->stream_wait(d.index, current_stream(d).handle, result->handle),
             "waiting for an event");
}

// Tells the profiler of the ctx that waits, once, when the job ran.
static void report(Work& w) noexcept {
  Lock lock(w.mutex);
  if (!w.done || w.reported) return;
  w.reported = true;
  profiler_add(ctx(), call_name(w.job.call), w.begin_ns, w.end_ns, w.bytes);
}

void wait_end(Work& w, int64_t timeout_ns) {
  const int64_t begin = os_now_ns();
  while (!is_settled(w)) {
    const uint32_t seen = atomic_load(&w.changed, kAcquire);
    if (is_settled(w)) break;
    const int64_t past = os_now_ns() - begin;
    if (timeout_ns >= 0 && past >= timeout_ns)
      fail(TT_DISTRIBUTED, "{} is not done after {} s", call_name(w.job.call),
           double(past / 1'000'000) / 1000);
    os_wait(&w.changed, seen);
    poll_if_watched(true);
  }
  if (TT_UNLIKELY(ctx().events != nullptr)) report(w);
  order_after(w);
}

void wait_work(Work& w, int64_t timeout_ns) {
  wait_end(w, timeout_ns);
  if (!work_done(w) || !w.status) return;
  tls.op = call_name(w.job.call);
  fail(w.status, "{}", w.message);
}

void call_when_done(Work& w, WorkFn fn, void* user, void (*drop)(void*)) {
  bool now = false;
  {
    Lock lock(w.mutex);
    if (w.fn) fail_arg(TT_INVALID_ARG, "fn", "the work has a callback already");
    w.fn = fn;
    w.user = user;
    w.drop = drop;
    now = w.done;
  }
  if (now) fn(user, w.status);
}

// ---- lanes ----

static bool is_usable(Connection& c) noexcept {
  Lock lock(c.mutex);
  return !c.broken;
}

static void delete_group(Group* g) noexcept {
  for (Lane& l : g->lanes) {
    if (l.comms.size() && g->connection->pid == os_pid())
      for (NcclComm* c : l.comms) free_comm(c, is_usable(*g->connection));
    if (l.ctx) Ref<Ctx>::adopt(l.ctx).reset();
  }
  Runtime* rt = g->rt;
  g->tag = 0;
  g->~Group();
  mem_retire(g, sizeof *g);
  Ref<Runtime>::adopt(rt).reset();
}

static void join_lanes(Group* g) noexcept {
  for (Lane& l : g->lanes) {
    if (!l.started) continue;
    if (l.self == &tls) os_thread_detach(&l.thread);
    else os_thread_join(&l.thread);
    l.started = false;
  }
}

static void wake(Lane& l) noexcept {
  atomic_fetch_add(&l.changed, 1, kRelease);
  os_wake(&l.changed, INT32_MAX);
}

// The next work of a lane; NULL: none is left, and the lane ends.
static Work* next_work(Lane& l) noexcept {
  for (;;) {
    const uint32_t seen = atomic_load(&l.changed, kAcquire);
    {
      Lock lock(l.mutex);
      if (l.first && !l.busy) {
        l.busy = true;
        return l.first;
      }
      if (l.stopping && !l.first) return nullptr;
    }
    os_wait(&l.changed, seen);
  }
}

// Takes the first work, which has run, from its lane. Returns whether others wait.
static bool end_work(Lane& l) noexcept {
  Work* w;
  bool more;
  {
    Lock lock(l.mutex);
    w = l.first;
    l.first = w->next;
    if (!l.first) l.last = nullptr;
    l.busy = false;
    more = l.first || l.stopping;
  }
  Ref<Work>::adopt(w).reset();
  return more;
}

static void run_lane(void* arg) {
  Lane& l = *static_cast<Lane*>(arg);
  l.self = &tls;
  tls.ctx = l.ctx;
  tls.error = &l.ctx->error;
  bool usable = true;
  try {
    ctx_rebind(l.ctx);
  } catch (...) {
    usable = false;
  }
  tls.heap = l.ctx->heap;
  while (Work* w = next_work(l)) {
    if (usable) {
      run(*l.group, *w);
    } else {
      end_agreement(*w);
      strcpy(w->message, "out of memory");
      finish(*w, TT_OOM, os_now_ns());
    }
    end_work(l);
  }
  bool last;
  {
    Lock lock(l.mutex);
    last = l.orphaned;
  }
  if (last) {
    join_lanes(l.group);
    tls.ctx = nullptr;
    return delete_group(l.group);
  }
  tls.ctx = nullptr;
}

void Group::destroy(Group* g) noexcept {
  bool orphaned = false;
  for (Lane& l : g->lanes) {
    if (g->connection && g->connection->pid != os_pid()) l.started = false;  // a forked child
    Lock lock(l.mutex);
    l.stopping = true;
    l.orphaned = l.started && l.self == &tls;
    orphaned |= l.orphaned;
  }
  for (Lane& l : g->lanes) wake(l);
  if (orphaned) return;
  join_lanes(g);
  delete_group(g);
}

static void start_lane(Lane& l) {
  if (l.started) return;
  if (!l.ctx) {
    l.ctx = ctx_new(l.group->rt);
    if (!l.ctx) fail_oom(0);
  }
  if (int error = os_thread_start(&l.thread, run_lane, &l))
    fail(TT_INTERNAL, "a thread cannot be started (errno {})", error);
  l.started = true;
}

int lane_of(DistCall call) noexcept {
  if (call == DistCall::kSend) return 1;
  return call == DistCall::kReceive ? 2 : 0;
}

// ---- checks ----

static void check_tensor(const Group& g, const Tensor& t, const char* arg) {
  const bool on_cuda = t.device.type == TT_CUDA;
  if (t.is_cpu() || (on_cuda && can_use_cuda(g))) return;
  if (on_cuda)
    fail_arg(TT_DEVICE, arg,
             "{} is on {}: the backend \"{}\" needs tensors on the CPU, \"nccl\" takes both", arg,
             fmt(t.device), backend_name(g));
  fail_arg(TT_DEVICE, arg, "{} is on {}: must be on the CPU or a CUDA device", arg, fmt(t.device));
}
static void check_target(const Group& g, const Tensor& t, const char* arg, bool dense_is_enough) {
  check_tensor(g, t, arg);
  if (!(dense_is_enough ? t.dense() : t.contiguous()))
    fail_arg(TT_INVALID_ARG, arg, "{} of shape {} is not contiguous", arg, t.sizes());
  if (!t.storage->writable) fail_arg(TT_INVALID_ARG, arg, "{} is read-only", arg);
}

// One of them has `size` times the elements of the other.
static void check_parts(const Tensor& whole, const char* whole_arg, const Tensor& part,
                        const char* part_arg, int32_t size) {
  int64_t want;
  if (whole.dtype != part.dtype)
    fail_arg(TT_DTYPE, whole_arg, "{} is {}, {} is {}: must be equal", whole_arg, fmt(whole.dtype),
             part_arg, fmt(part.dtype));
  if (mul_overflow(part.numel, int64_t(size), &want) || whole.numel != want)
    fail_arg(TT_SHAPE, whole_arg,
             "{} is {}, {} is {}: must have {} times its elements, the size of the group",
             whole_arg, whole.sizes(), part_arg, part.sizes(), size);
}

static void check_tag(int32_t tag) {
  if (tag < 0 || tag > kMaxUserTag)
    fail_arg(TT_INVALID_ARG, "tag", "tag is {}: must be 0 to {}", tag, kMaxUserTag);
}

// The rank that the job names: of a transfer the other one, else that which sends or receives all.
static void check_root(const Group& g, const Job& job) {
  const bool transfer = is_transfer(job.call);
  const char* root = transfer ? "peer" : "root";
  const bool any = job.call == DistCall::kReceive && job.root == kAnyRank;
  if (any && g.size > 1 && !job.output->is_cpu())
    fail_arg(TT_NOT_IMPLEMENTED, "peer", "NCCL cannot receive from any rank");
  if (any && g.size == 1)
    fail_arg(TT_INVALID_ARG, "peer", "peer is any rank: the group has no other one");
  if (!any && (job.root < 0 || job.root >= g.size))
    fail_arg(TT_INVALID_ARG, root, "{} is {}: must be a rank below {}", root, job.root, g.size);
  if (transfer && job.root == g.rank)
    fail_arg(TT_INVALID_ARG, root, "{} is {}, the rank of this process", root, job.root);
  if (transfer) check_tag(job.tag);
}

// Of collectives that divide or join tensors.
static void check_sizes(const Group& g, const Job& job) {
  const bool is_root = g.rank == job.root;
  if (job.call == DistCall::kAllGather || (job.call == DistCall::kGather && is_root))
    check_parts(*job.output, "output", *job.input, "input", g.size);
  if (job.call == DistCall::kReduceScatter || (job.call == DistCall::kScatter && is_root))
    check_parts(*job.input, "input", *job.output, "output", g.size);
  if (job.call != DistCall::kAllToAll) return;
  check_parts(*job.output, "output", *job.input, "input", 1);
  if (job.input->numel % g.size)
    fail_arg(TT_SHAPE, "input",
             "input is {}: its elements must be a multiple of {}, the size of the group",
             job.input->sizes(), g.size);
}

static void check_job(const Group& g, const Job& job) {
  const bool in_place = job.input && job.input.get() == job.output.get();
  const bool reduces = job.call == DistCall::kAllReduce || job.call == DistCall::kReduce ||
                       job.call == DistCall::kReduceScatter;
  if (reduces && (job.op < ReduceOp::kSum || job.op > ReduceOp::kBitXor))
    fail_arg(TT_INVALID_ARG, "op", "op is {}: there is no such reduction", int32_t(job.op));
  if (job.output) check_target(g, *job.output, in_place ? "tensor" : "output", in_place);
  if (job.input && !in_place) check_tensor(g, *job.input, "input");
  if (job.input && job.output && !(job.input->device == job.output->device))
    fail_arg(TT_DEVICE, "output", "input is on {}, output on {}: must be on one device",
             fmt(job.input->device), fmt(job.output->device));
  if (reduces) check_reduce(job.op, job.input->dtype);
  if (reduces && g.size > 1 && !job.input->is_cpu()) check_nccl_reduce(job.op, job.input->dtype);
  check_root(g, job);
  check_sizes(g, job);
  if (job.input && job.output && !in_place && may_share_memory(*job.input, *job.output))
    fail_arg(TT_INVALID_ARG, "output", "output shares memory with input: must have its own");
}

// What the application has computed so far comes before the job.
static void mark_ready(Work& w) {
  const Tensor* t = w.job.output ? w.job.output.get() : w.job.input.get();
  if (!t || t->is_cpu()) return;
  CudaDevice& d = runtime_cuda(ctx().rt, t->device.index);
  w.ready = new_event(d, false);
  cuda_check(d, d.backend->event_record(d.index, w.ready->handle, current_stream(d).handle),
             "recording an event");
}

static Ref<Work> new_work(Group& g, Job job) {
  check_job(g, job);
  if (g.connection && g.connection->pid != os_pid())
    fail(TT_DISTRIBUTED, "the group belongs to the process that forked");
  const bool in_place = job.input.get() == job.output.get();
  if (job.input && !in_place && !job.input->contiguous()) job.input = op::contiguous(*job.input);
  if (job.output) job.output->bump_version();
  auto* w = new (mem_alloc(sizeof(Work))) Work{};
  w->tag = kTagWork;
  w->refs = 1;
  w->job = std::move(job);
  w->source = w->job.root;
  const bool of_hook = atomic_load(&g.hook_ctx, kRelaxed) == &ctx();
  if (of_hook && !w->job.run) w->job.run = g.hook_run;
  for (const Tensor* t : {w->job.input.get(), w->job.output.get()})
    if (t) w->bytes = max(w->bytes, t->numel * t->item_size());
  return Ref<Work>::adopt(w);
}

// Makes a ctx the running one.
struct CtxScope {
  Ctx* ctx = tls.ctx;
  ErrorRecord* error = tls.error;
  explicit CtxScope(Ctx* c) {
    tls.ctx = c;
    tls.error = &c->error;
  }
  ~CtxScope() {
    tls.ctx = ctx;
    tls.error = error;
  }
  CtxScope(const CtxScope&) = delete;
};

bool poll_caller(Work& w) noexcept {
  const CtxScope scope(w.caller);
  try {
    poll_if_watched(true);
  } catch (...) {
    w.interrupted = true;
  }
  return !w.interrupted;
}

// Appends the work to its lane. Returns true if it is for the caller to run: `here`, and no other
// work is in the lane.
static bool enqueue(Lane& l, Work* w, bool here) {
  Lock lock(l.mutex);
  start_lane(l);
  ref_inc(&w->refs);
  const bool alone = !l.first;
  (alone ? l.first : l.last->next) = w;
  l.last = w;
  if (here && alone) l.busy = true;
  else wake(l);
  return here && alone;
}

static Ref<Work> start(Group& g, Job job, bool here) {
  constexpr int64_t kHereBytes = int64_t(64) << 20;  // what moves soon: no cancellation meanwhile
  constexpr int64_t kPatienceNs = 50'000'000;        // the lane waits on for ranks that are late
  Ref<Work> w = new_work(g, std::move(job));
  if (g.size == 1) {
    run(g, *w);
    return w;
  }
  mark_ready(*w);
  const bool transfer = is_transfer(w->job.call);
  Lane& l = g.lanes[lane_of(w->job.call)];
  const bool fits = here && !transfer && !w->ready && w->bytes <= kHereBytes;
  if (!enqueue(l, w.get(), fits)) return w;
  w->caller = &ctx();
  bool ran;
  {
    const CtxScope scope(l.ctx);
    ran = run(g, *w, kPatienceNs);
  }
  w->caller = nullptr;
  if (!ran) {
    Lock lock(l.mutex);
    l.busy = false;
    wake(l);
  } else if (end_work(l)) {
    wake(l);
  }
  if (w->interrupted) fail_again();
  return w;
}
Ref<Work> start_work(Group& g, Job job) { return start(g, std::move(job), false); }
Ref<Work> start_here(Group& g, Job job) { return start(g, std::move(job), true); }

}  // namespace TT_NS
