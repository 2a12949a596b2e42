#include "dist/reducer.h"

#include "autograd/engine.h"
#include "autograd/hook.h"
#include "base/finalizer.h"
#include "core/callback.h"
#include "dist/wire.h"
#include "ops/gen/ops.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kFirstBucketBytes = int64_t(1) << 20;  // small: its reduction begins early
constexpr int64_t kShownDims = 8;

// ---- the models of all ranks ----

// What must be equal on all ranks before parameters are compared one by one.
struct Outline {
  int64_t parameters, buffers, bucket_bytes, compression, broadcast_buffers, find_unused;
};

struct ParameterRecord {
  char name[88];
  int32_t dtype, ndim;
  int64_t trained;
  int64_t shape[kShownDims];
};

TensorRef bytes_tensor(int64_t n) { return new_tensor({&n, 1}, Dtype::kU8, kCpuDevice); }

// Returns the values of all ranks, one behind the other.
template <class T> TensorRef gather_all(Group& g, const T& mine) {
  const TensorRef in = bytes_tensor(sizeof(T));
  const TensorRef out = bytes_tensor(sizeof(T) * g.size);
  *in->as<T>() = mine;
  run_work(g, Job{DistCall::kAllGather, ReduceOp::kSum, 0, 0, in, out});
  return out;
}

void broadcast(Group& g, const TensorRef& t, int32_t root) {
  run_work(g, Job{DistCall::kBroadcast, ReduceOp::kSum, root, 0, t, t});
}

void check_outlines(Group& g, const Outline& mine) {
  const TensorRef all = gather_all(g, mine);
  const Outline* of = all->as<Outline>();
  const Outline& first = of[0];
  for (int32_t r = 1; r < g.size; r++) {
    const Outline& other = of[r];
    if (!memcmp(&first, &other, sizeof first)) continue;
    if (first.parameters != other.parameters || first.buffers != other.buffers)
      fail(TT_DISTRIBUTED,
           "the models differ: rank {} has {} parameters and {} buffers, rank {} has {} and {}",
           g.peer(0), first.parameters, first.buffers, g.peer(r), other.parameters, other.buffers);
    fail(TT_DISTRIBUTED, "the options of rank {} differ from those of rank {}", g.peer(r),
         g.peer(0));
  }
}

ParameterRecord record_of(const StateDict::Entry& entry) {
  ParameterRecord r = {};
  const Tensor& t = *entry.tensor;
  const int64_t n = entry.name.size();
  // The end of a long name says more than its begin.
  const int64_t skipped = max<int64_t>(0, n - int64_t(sizeof r.name) + 1);
  memcpy(r.name, entry.name.c_str() + skipped, size_t(n - skipped));
  r.dtype = int32_t(t.dtype);
  r.ndim = t.ndim;
  r.trained = requires_grad(t);
  for (int32_t d = 0; d < t.ndim && d < kShownDims; d++) r.shape[d] = t.size(d);
  return r;
}

void describe(char* out, int64_t cap, const ParameterRecord& r) {
  const Ints shape = {r.shape, min<int64_t>(r.ndim, kShownDims)};
  const FmtArg args[] = {r.name, fmt(Dtype(r.dtype)), shape, r.trained ? "" : ", not trained"};
  format_to(out, cap, "{} ({} {}{})", args);
}

void check_tensors(Group& g, const StateDict& own, const char* what) {
  const int64_t n = own.entries.size();
  if (!n) return;
  const TensorRef first = bytes_tensor(n * int64_t(sizeof(ParameterRecord)));
  const TensorRef mine = bytes_tensor(n * int64_t(sizeof(ParameterRecord)));
  for (int64_t i = 0; i < n; i++) mine->as<ParameterRecord>()[i] = record_of(own.entries[i]);
  memcpy(first->data, mine->data, size_t(n) * sizeof(ParameterRecord));
  broadcast(g, first, 0);
  int64_t different = 0;
  while (different < n && !memcmp(&first->as<ParameterRecord>()[different],
                                  &mine->as<ParameterRecord>()[different], sizeof(ParameterRecord)))
    different++;
  const TensorRef all = gather_all(g, different);
  for (int32_t r = 1; r < g.size; r++) {
    const int64_t i = all->as<int64_t>()[r];
    if (i == n) continue;
    const TensorRef theirs = bytes_tensor(sizeof(ParameterRecord));
    if (r == g.rank) *theirs->as<ParameterRecord>() = mine->as<ParameterRecord>()[i];
    broadcast(g, theirs, r);
    char a[240], b[240];
    describe(a, sizeof a, first->as<ParameterRecord>()[i]);
    describe(b, sizeof b, *theirs->as<ParameterRecord>());
    fail(TT_DISTRIBUTED, "the models differ: {} {} is {} on rank {}, {} on rank {}", what, i, a,
         g.peer(0), b, g.peer(r));
  }
}

// ---- buckets ----

// Part of a flat tensor in the form of `like`.
TensorRef view_of(const Tensor& flat, const Tensor& like, int64_t offset) {
  return op::as_strided(flat, like.sizes(), like.strides(), offset);
}

// The parameter that fills a bucket is its last one.
bool has_room(const Reducer& r, int64_t used) {
  const int64_t first = min(r.options.bucket_bytes, kFirstBucketBytes);
  return used < (r.buckets.empty() ? first : r.options.bucket_bytes);
}

// Puts parameters [begin, end) of `order` in a bucket.
void add_bucket(Reducer& r, Span<const int64_t> members) {
  int64_t numel = 0;
  for (int64_t i : members) numel += r.parameters[i].leaf->numel;
  const Tensor& first = *r.parameters[members[0]].leaf;
  Reducer::Bucket b = {};
  b.missing = members.n;
  b.flat = op::zeros({&numel, 1}, first.dtype, first.device);
  int64_t offset = 0;
  for (int64_t i : members) {
    Reducer::Parameter& p = r.parameters[i];
    p.bucket = r.buckets.size();
    p.view = view_of(*b.flat, *p.leaf, offset);
    b.members.push_back(i);
    offset += p.leaf->numel;
  }
  r.buckets.push_back(std::move(b));
}

bool is_like(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.device == b.device;
}

// Backward reaches the last parameters first. Each bucket has one dtype and device.
void make_buckets(Reducer& r) {
  SmallVec<int64_t, 16> members;
  int64_t used = 0;
  for (int64_t i = r.parameters.size() - 1; i >= 0; i--) {
    const Tensor& t = *r.parameters[i].leaf;
    const bool fits =
        !members.empty() && is_like(*r.parameters[members[0]].leaf, t) && has_room(r, used);
    if (!members.empty() && !fits) {
      add_bucket(r, {members.data(), members.size()});
      members.clear();
      used = 0;
    }
    members.push_back(i);
    used += t.numel * t.item_size();
  }
  if (!members.empty()) add_bucket(r, {members.data(), members.size()});
}

void group_buffers(Reducer& r, const StateDict& buffers) {
  for (const StateDict::Entry& e : buffers.entries) {
    int64_t i = 0;
    while (i < r.buffers.size() && !is_like(*r.buffers[i].tensors[0], *e.tensor)) i++;
    if (i == r.buffers.size()) r.buffers.push_back({});
    r.buffers[i].tensors.push_back(TensorRef::share(e.tensor.get()));
  }
  for (Reducer::BufferGroup& b : r.buffers) {
    int64_t numel = 0;
    for (const TensorRef& t : b.tensors) numel += t->numel;
    b.flat = op::zeros({&numel, 1}, b.tensors[0]->dtype, b.tensors[0]->device);
    int64_t offset = 0;
    for (const TensorRef& t : b.tensors) {
      const TensorRef part = op::narrow(*b.flat, 0, offset, t->numel);
      b.views.push_back(op::view(*part, t->sizes()));
      offset += t->numel;
    }
  }
}

void share_buffers(Reducer& r) {
  for (Reducer::BufferGroup& b : r.buffers) {
    const bool first = r.group->rank == 0;
    for (int64_t i = 0; first && i < b.views.size(); i++) op::copy_(*b.views[i], *b.tensors[i]);
    broadcast(*r.group, b.flat, 0);
    for (int64_t i = 0; !first && i < b.views.size(); i++) op::copy_(*b.tensors[i], *b.views[i]);
  }
}

void share_parameters(Reducer& r, const StateDict& parameters) {
  for (const StateDict::Entry& e : parameters.entries) {
    const TensorRef dense = op::contiguous(*op::detach(*e.tensor));
    broadcast(*r.group, dense, 0);
    if (dense->data != e.tensor->data) op::copy_(*e.tensor, *dense);
  }
}

// ---- one backward ----

Job job_of(const Reducer& r, DistCall call, int32_t tag, const TensorRef& t, ReduceOp op) {
  Job job = {call, op, 0, tag, t, t};
  job.run = r.run;
  return job;
}

// While a hook runs, its collectives belong to the backward.
struct HookCalls {
  Group& group;
  HookCalls(Reducer& r) : group(*r.group) {
    group.hook_run = r.run;
    atomic_store(&group.hook_ctx, &ctx(), kRelaxed);
  }
  ~HookCalls() { atomic_store(&group.hook_ctx, nullptr, kRelaxed); }
};

tt_tensor* handle(const TensorRef& t) { return reinterpret_cast<tt_tensor*>(t.get()); }

// Returns how the hook ended; the error of the ctx is then its own.
tt_status call_hook(Reducer& r, int64_t i, HookStage stage, bool failed = false) {
  const Reducer::Bucket& b = r.buckets[i];
  HookBucket bucket = {i, r.buckets.size(), failed, handle(b.flat), {}, {}};
  for (int64_t m : b.members) {
    bucket.gradients.push_back(handle(r.parameters[m].view));
    bucket.parameters.push_back(handle(r.parameters[m].leaf));
  }
  const HookCalls calls(r);
  ctx().error.view.code = TT_OK;
  ctx().error.view.cause = nullptr;
  const KeySet masks = ctx().exclude;
  CallbackScope scope;
  ctx().exclude = masks;
  try {
    return r.hook.call(r.hook.user, scope.ctx_handle(), stage, bucket);
  } catch (...) {
    return TT_CALLBACK;
  }
}

// Waits for the works that an interrupted backward has left, and ignores their errors.
void settle(Reducer& r) {
  for (int64_t i = 0; i < r.buckets.size(); i++) {
    Reducer::Bucket& b = r.buckets[i];
    if (b.work) wait_end(*b.work, -1);
    b.work.reset();
    if (!b.started) continue;
    b.started = false;
    call_hook(r, i, HookStage::kFinish, true);
  }
}

// Lets the backward of the other ranks fail.
void stop(Reducer& r, StopReason why) {
  if (r.group->size == 1) return;
  const Ref<Work> work = start_work(*r.group, job_of(r, DistCall::kStop, why, {}, ReduceOp::kSum));
  wait_end(*work, -1);
}

void run_hook(Reducer& r, int64_t i, HookStage stage) {
  poll_if_watched(true);
  const tt_status status = call_hook(r, i, stage);
  if (!status) return;
  const ErrorRecord& inner = ctx().error;
  char why[sizeof inner.message] = "";
  if (inner.view.code) strcpy(why, inner.message);
  stop(r, kStopHook);
  settle(r);
  const bool kept = status == TT_CANCELLED || status == TT_DISTRIBUTED;
  const char* const name = stage == HookStage::kStart ? "start" : "end";
  const char* const colon = *why ? ": " : "";
  fail(kept ? status : tt_status(TT_CALLBACK),
       "the {} of the hook of bucket {} failed with status {}{}{}", name, i, status, colon, why);
}

// No parameter is ready.
void reset(Reducer& r) noexcept {
  r.launched = 0;
  for (Reducer::Parameter& p : r.parameters) p.ready = p.unused = false;
  for (Reducer::Bucket& b : r.buckets) b.missing = b.members.size();
  atomic_store(&r.runner, nullptr, kRelease);
}

void launch(Reducer& r, int64_t i) {
  Reducer::Bucket& b = r.buckets[i];
  if (r.hook.call) {
    run_hook(r, i, HookStage::kStart);
    b.started = true;
    return;
  }
  const Dtype wanted = r.options.compression;
  const bool smaller = wanted != Dtype::kNone && item_size(wanted) < b.flat->item_size();
  b.message = smaller && !is_complex(b.flat->dtype) ? op::to_dtype(*b.flat, wanted) : TensorRef();
  const TensorRef& sent = b.message ? b.message : b.flat;
  Job job = job_of(r, DistCall::kAllReduce, int32_t(i + 1), sent, ReduceOp::kMean);
  const bool last = i + 1 == r.buckets.size() && is_backward_over();
  b.work = last ? start_here(*r.group, std::move(job)) : start_work(*r.group, std::move(job));
}

// In the order of the buckets, which is the same on all ranks.
void launch_full(Reducer& r) {
  while (r.launched < r.buckets.size() && !r.buckets[r.launched].missing) launch(r, r.launched++);
}

// Makes the view of its bucket the gradient of a parameter.
void take_gradient(Reducer::Parameter& p, const TensorRef& grad) {
  if (grad.get() == p.view.get()) return;
  if (!same(grad->sizes(), p.view->sizes()) || grad->dtype != p.view->dtype)
    fail(TT_AUTOGRAD, "the gradient of {} is {} {}: must be {} {}, as when the module was given",
         p.name.c_str(), fmt(grad->dtype), grad->sizes(), fmt(p.view->dtype), p.view->sizes());
  if (grad->data != p.view->data) op::copy_(*p.view, *grad);
  set_grad(*p.leaf, p.view);
}

// The parameters that this backward has not reached: gradients of former ones count, else zeros.
void fill_rest(Reducer& r) {
  for (Reducer::Parameter& p : r.parameters) {
    if (p.ready) continue;
    if (const TensorRef grad = grad_of(*p.leaf)) {
      take_gradient(p, grad);
    } else {
      p.unused = true;
      op::zero_(*p.view);
    }
    r.buckets[p.bucket].missing--;
  }
}

// Names up to a few parameters without a gradient.
[[noreturn]] void fail_missing(Reducer& r) {
  constexpr int64_t kNamed = 4;
  Text names;
  int64_t missing = 0;
  for (const Reducer::Parameter& p : r.parameters) {
    if (p.ready || missing++ >= kNamed) continue;
    if (missing > 1) names.add(", ");
    names.add(p.name.c_str());
  }
  if (missing > kNamed) names.add(" and ").add(missing - kNamed).add(" more");
  stop(r, kStopMissing);
  settle(r);
  fail(TT_AUTOGRAD,
       "backward has left parameters without a gradient: {}. Set find_unused_parameters if that "
       "may be",
       names.c_str());
}

// Gradients that exist on other ranks only become gradients here, too.
Ref<Work> share_usage(Reducer& r, TensorRef* used) {
  *used = bytes_tensor(r.parameters.size());
  for (int64_t i = 0; i < r.parameters.size(); i++)
    (*used)->as<uint8_t>()[i] = !r.parameters[i].unused;
  return start_work(*r.group, job_of(r, DistCall::kAllReduce, 0, *used, ReduceOp::kMax));
}

void await(Reducer& r, int64_t i) {
  Reducer::Bucket& b = r.buckets[i];
  if (b.started) {
    b.started = false;
    return run_hook(r, i, HookStage::kFinish);
  }
  wait_work(*b.work, -1);
  b.work.reset();
  if (b.message) op::copy_(*b.flat, *b.message);
  b.message.reset();
}

// Hooks need not call all ranks: their failures are known at the end of backward at the latest.
void agree(Reducer& r) { run_work(*r.group, job_of(r, DistCall::kBarrier, 1, {}, ReduceOp::kSum)); }

void finish(Reducer& r) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  Ref<Work> usage;
  TensorRef used;
  if (r.launched < r.buckets.size() && !r.options.find_unused) fail_missing(r);
  if (r.options.find_unused) {
    fill_rest(r);
    launch_full(r);
    usage = share_usage(r, &used);
  }
  for (int64_t i = 0; i < r.buckets.size(); i++) await(r, i);
  if (r.hook.call) agree(r);
  if (!usage) return;
  wait_work(*usage, -1);
  for (int64_t i = 0; i < r.parameters.size(); i++) {
    Reducer::Parameter& p = r.parameters[i];
    if (p.unused && used->as<uint8_t>()[i]) set_grad(*p.leaf, p.view);
  }
}

void end_backward(void* user) { finish(*static_cast<Reducer*>(user)); }
void drop_backward(void* user) noexcept {
  auto* r = static_cast<Reducer*>(user);
  reset(*r);
  Ref<Reducer>::adopt(r).reset();
}

[[noreturn]] void fail_in_capture() {
  fail(TT_NOT_IMPLEMENTED,
       "a capture cannot record the reduction of gradients over a group: let it record a backward "
       "without (tt_ddp_set_sync, no_sync), and call tt_ddp_reduce after each replay");
}

// The first gradient of a backward.
void begin(Reducer& r) {
  const void* none = nullptr;
  if (!atomic_compare_exchange(&r.runner, &none, &ctx(), kAcqRel, kAcquire)) {
    if (none == &ctx()) return;
    fail(TT_AUTOGRAD, "another thread is in a backward through this data-parallel module");
  }
  Ref<Reducer> kept = Ref<Reducer>::share(&r);
  try {
    settle(r);
    r.run = atomic_add_fetch(&r.group->last_run, 1, kRelaxed);
    at_end_of_backward(end_backward, drop_backward, &r);
  } catch (...) {
    atomic_store(&r.runner, nullptr, kRelease);
    throw;
  }
  kept.leak();
}

struct LeafHook {
  Ref<Reducer> reducer;
  int64_t index;
};

tt_status on_gradient(void* user, tt_ctx*, const tt_tensor*) {
  const auto& hook = *static_cast<LeafHook*>(user);
  const Ref<Reducer> kept = hook.reducer;  // the hook may be removed meanwhile
  Reducer& r = *kept;
  Reducer::Parameter& p = r.parameters[hook.index];
  if (!r.sync) return TT_OK;
  if (ctx().graph) fail_in_capture();
  const MaskGuard no_grad(bit(kKeyAutograd));
  begin(r);
  if (p.ready)
    fail(TT_AUTOGRAD,
         "{} gets a second gradient in one backward, after the first was sent to the other ranks",
         p.name.c_str());
  const TensorRef grad = grad_of(*p.leaf);
  if (!grad) return TT_OK;  // another hook has removed it
  take_gradient(p, grad);
  p.ready = true;
  r.buckets[p.bucket].missing--;
  launch_full(r);
  return TT_OK;
}

void drop_hook(void* user) {
  auto* hook = static_cast<LeafHook*>(user);
  hook->~LeafHook();
  mem_retire(hook, sizeof *hook);
}

void watch(Reducer& r, int64_t i) {
  Reducer::Parameter& p = r.parameters[i];
  set_grad_place(*p.leaf, p.view);
  if (const TensorRef grad = grad_of(*p.leaf)) take_gradient(p, grad);
  const TensorHooks hooks(*p.leaf);
  auto* hook = new (mem_alloc(sizeof(LeafHook))) LeafHook{Ref<Reducer>::share(&r), i};
  p.hook =
      hooks.list().add(kAccumulateHook, 0, reinterpret_cast<AnyFn>(on_gradient), hook, drop_hook);
}

void watch_all(Reducer& r) {
  make_buckets(r);
  try {
    for (int64_t i = 0; i < r.parameters.size(); i++) watch(r, i);
  } catch (...) {
    detach_reducer(r);
    throw;
  }
}

void check_model(const Group& g, const StateDict& parameters, const StateDict& buffers) {
  int64_t trained = 0;
  for (const StateDict* dict : {&parameters, &buffers}) {
    for (const StateDict::Entry& e : dict->entries) {
      const Device device = e.tensor->device;
      if (!e.tensor->is_cpu() && !(device.type == TT_CUDA && can_use_cuda(g)))
        fail_arg(TT_DEVICE, "m", "{} is on {}: the backend \"{}\" needs tensors on the CPU",
                 e.name.c_str(), fmt(device), backend_name(g));
      if (dict == &parameters && requires_grad(*e.tensor)) {
        trained++;
        if (g.size > 1 && !e.tensor->dense())
          fail_arg(TT_INVALID_ARG, "m", "{} of shape {} is not dense", e.name.c_str(),
                   e.tensor->sizes());
      }
    }
  }
  if (!trained) fail_arg(TT_INVALID_ARG, "m", "no parameter requires a gradient");
}

}  // namespace

Ref<Reducer> new_reducer(Group& g, const StateDict& parameters, const StateDict& buffers,
                         const ReducerOptions& options) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  check_model(g, parameters, buffers);
  auto* r = new (mem_alloc(sizeof(Reducer))) Reducer{};
  r->refs = 1;
  r->group = Ref<Group>::share(&g);
  r->options = options;
  r->sync = true;
  Ref<Reducer> made = Ref<Reducer>::adopt(r);
  for (const StateDict::Entry& e : parameters.entries) {
    if (!requires_grad(*e.tensor)) continue;
    Reducer::Parameter p = {};
    p.name = Text(e.name.c_str());
    p.leaf = TensorRef::share(e.tensor.get());
    r->parameters.push_back(std::move(p));
  }
  if (g.size == 1) return made;
  check_outlines(g, {parameters.entries.size(), buffers.entries.size(), options.bucket_bytes,
                     int64_t(options.compression), options.broadcast_buffers, options.find_unused});
  check_tensors(g, parameters, "parameter");
  check_tensors(g, buffers, "buffer");
  share_parameters(*r, parameters);
  group_buffers(*r, buffers);
  share_buffers(*r);
  watch_all(*r);
  return made;
}

void detach_reducer(Reducer& r) noexcept {
  for (Reducer::Parameter& p : r.parameters) {
    AutogradMeta* m = find_meta(*p.leaf);
    if (!m) continue;
    if (p.hook) m->hooks.remove(p.hook);
    p.hook = 0;
    TensorRef none;
    if (m->place.get() == p.view.get()) std::swap(m->place, none);
  }
}

void prepare_forward(Reducer& r) {
  const bool records = !(ctx().exclude & bit(kKeyAutograd));
  if (!records || !r.sync || r.group->size == 1 || !r.options.broadcast_buffers) return;
  const MaskGuard no_grad(bit(kKeyAutograd));
  settle(r);
  share_buffers(r);
}

void reduce_gradients(Reducer& r) {
  if (r.buckets.empty()) return;
  const MaskGuard no_grad(bit(kKeyAutograd));
  if (ctx().graph) fail_in_capture();
  const void* none = nullptr;
  if (!atomic_compare_exchange(&r.runner, &none, &ctx(), kAcqRel, kAcquire))
    fail(TT_AUTOGRAD, "a backward through this data-parallel module is running");
  struct End {
    Ref<Reducer> reducer;
    ~End() { reset(*reducer); }
  } end{Ref<Reducer>::share(&r)};
  settle(r);
  r.run = atomic_add_fetch(&r.group->last_run, 1, kRelaxed);
  for (Reducer::Parameter& p : r.parameters) {
    const TensorRef grad = grad_of(*p.leaf);
    if (!grad) continue;
    take_gradient(p, grad);
    p.ready = true;
    r.buckets[p.bucket].missing--;
  }
  launch_full(r);
  finish(r);
}

void set_reducer_sync(Reducer& r, bool on) noexcept { r.sync = on; }

void set_reducer_hook(Reducer& r, const ReducerHook& hook) {
  const MaskGuard no_grad(bit(kKeyAutograd));
  if (atomic_load(&r.runner, kAcquire))
    fail(TT_AUTOGRAD, "a backward through this data-parallel module is running");
  const Ref<Reducer> kept = Ref<Reducer>::share(&r);
  settle(r);
  const TensorRef all = gather_all<int64_t>(*r.group, hook.call != nullptr);
  const int64_t* const has_hook = all->as<int64_t>();
  for (int32_t i = 1; i < r.group->size; i++) {
    if (has_hook[i] == has_hook[0]) continue;
    const int32_t with = has_hook[0] ? 0 : i;
    const int32_t without = has_hook[0] ? i : 0;
    fail(TT_DISTRIBUTED, "rank {} has a hook, rank {} has none: all ranks must have one, or none",
         r.group->peer(with), r.group->peer(without));
  }
  if (r.buckets.empty() && hook.call) watch_all(r);
  const ReducerHook before = r.hook;
  r.hook = hook;
  run_drop(before.drop, before.user);
}

void Reducer::destroy(Reducer* r) noexcept {
  const ReducerHook hook = r->hook;
  r->~Reducer();
  mem_retire(r, sizeof *r);
  run_drop(hook.drop, hook.user);
}

}  // namespace TT_NS
