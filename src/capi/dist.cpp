// Groups of processes, and their work.
#include "capi/api.h"
#include "base/finalizer.h"
#include "capi/module.h"
#include "dist/reducer.h"
#include "dist/sync_norm.h"
#include "nn/batch_norm.h"
#include "nn/hook.h"

using namespace TT_NS;

static Group* group_of(const tt_group* h) {
  auto* g = reinterpret_cast<Group*>(const_cast<tt_group*>(h));
  return g && g->tag == kTagGroup ? g : nullptr;
}
static Work* work_of(const tt_work* h) {
  auto* w = reinterpret_cast<Work*>(const_cast<tt_work*>(h));
  return w && w->tag == kTagWork ? w : nullptr;
}
static Group& group_arg(const tt_group* h) {
  if (!group_of(h)) fail_handle(h, "g", 1, "group");
  return *group_of(h);
}
static Work& work_arg(const tt_work* h) {
  if (!work_of(h)) fail_handle(h, "w", 1, "work");
  return *work_of(h);
}
static tt_group* handle_of(Ref<Group> g) { return reinterpret_cast<tt_group*>(g.leak()); }
static int64_t ns_of(int64_t ms) {
  return ms < 0 ? -1 : min(ms, INT64_MAX / 1'000'000) * 1'000'000;
}

// ---- groups ----

tt_status tt_group_new(tt_ctx* h, const char* backend, int32_t rank, int32_t size,
                       const char* rendezvous, const tt_group_opts* opts, tt_group** out) {
  if (out) *out = nullptr;
  return api_call(h, "group_new", [&](Ctx&) {
    check_opts(opts, 2);
    out_arg(out, "out", 6);
    GroupOptions o;
    if (opts_has(opts, 0)) {
      if (opts->timeout_ms <= 0)
        fail_arg(TT_INVALID_ARG, "timeout_ms", "timeout_ms is {}: must be positive",
                 opts->timeout_ms);
      // A year is enough, and leaves room for additions.
      o.timeout_ns = ns_of(min<int64_t>(opts->timeout_ms, int64_t(365) * 86'400'000));
    }
    if (opts_has(opts, 1)) o.library = opts->library;
    *out = handle_of(new_group(backend, rank, size, rendezvous, o));
  });
}

tt_status tt_group_split(tt_ctx* h, tt_group* g, int64_t color, int64_t key, tt_group** out) {
  if (out) *out = nullptr;
  return api_call(h, "group_split", [&](Ctx&) {
    Group& group = group_arg(g);
    out_arg(out, "out", 4);
    *out = handle_of(split_group(group, color, key));
  });
}

int32_t tt_group_rank(const tt_group* g) { return group_of(g) ? group_of(g)->rank : 0; }
int32_t tt_group_size(const tt_group* g) { return group_of(g) ? group_of(g)->size : 0; }
const char* tt_group_backend(const tt_group* g) {
  return group_of(g) ? backend_name(*group_of(g)) : nullptr;
}
void tt_group_retain(tt_group* h) {
  if (Group* g = group_of(h)) ref_inc_external(&g->refs);
}
void tt_group_release(tt_group* h) {
  if (Group* g = group_of(h)) Ref<Group>::adopt(g).reset();
}

// ---- collectives ----

// Starts the job that make() returns; waits for it unless work asks for it.
template <class F>
static tt_status start(tt_ctx* h, const char* call, tt_group* g, tt_work** work, const F& make) {
  if (work) *work = nullptr;
  return api_call(h, call, [&](Ctx&) {
    Group& group = group_arg(g);
    if (!work) return run_work(group, make());
    Ref<Work> w = start_work(group, make());
    *work = reinterpret_cast<tt_work*>(w.leak());
  });
}

static Job job_of(DistCall call, const Tensor* input, const Tensor* output, int32_t op = 1,
                  int32_t root = 0, int32_t tag = 0) {
  Job job = {call, ReduceOp(op), root, tag, {}, {}};
  job.input = TensorRef::share(input);
  job.output = TensorRef::share(output);
  return job;
}
static Job in_place_job(DistCall call, tt_tensor* tensor, int32_t op, int32_t root) {
  const Tensor* t = &mutable_arg(tensor, "tensor", 2);
  return job_of(call, t, t, op, root);
}
static Job two_tensor_job(DistCall call, const tt_tensor* input, tt_tensor* output, int32_t op) {
  const Tensor* in = &tensor_arg(input, "input", 2);
  return job_of(call, in, &mutable_arg(output, "output", 3), op);
}

tt_status tt_group_barrier(tt_ctx* h, tt_group* g, tt_work** work) {
  return start(h, "barrier", g, work, [&] { return job_of(DistCall::kBarrier, nullptr, nullptr); });
}
tt_status tt_group_all_reduce(tt_ctx* h, tt_group* g, tt_tensor* tensor, int32_t op,
                              tt_work** work) {
  return start(h, "all_reduce", g, work,
               [&] { return in_place_job(DistCall::kAllReduce, tensor, op, 0); });
}
tt_status tt_group_reduce(tt_ctx* h, tt_group* g, tt_tensor* tensor, int32_t op, int32_t root,
                          tt_work** work) {
  return start(h, "reduce", g, work,
               [&] { return in_place_job(DistCall::kReduce, tensor, op, root); });
}
tt_status tt_group_broadcast(tt_ctx* h, tt_group* g, tt_tensor* tensor, int32_t root,
                             tt_work** work) {
  return start(h, "broadcast", g, work,
               [&] { return in_place_job(DistCall::kBroadcast, tensor, TT_REDUCE_SUM, root); });
}
tt_status tt_group_all_gather(tt_ctx* h, tt_group* g, const tt_tensor* input, tt_tensor* output,
                              tt_work** work) {
  return start(h, "all_gather", g, work,
               [&] { return two_tensor_job(DistCall::kAllGather, input, output, TT_REDUCE_SUM); });
}
tt_status tt_group_reduce_scatter(tt_ctx* h, tt_group* g, const tt_tensor* input, tt_tensor* output,
                                  int32_t op, tt_work** work) {
  return start(h, "reduce_scatter", g, work,
               [&] { return two_tensor_job(DistCall::kReduceScatter, input, output, op); });
}
tt_status tt_group_all_to_all(tt_ctx* h, tt_group* g, const tt_tensor* input, tt_tensor* output,
                              tt_work** work) {
  return start(h, "all_to_all", g, work,
               [&] { return two_tensor_job(DistCall::kAllToAll, input, output, TT_REDUCE_SUM); });
}
tt_status tt_group_gather(tt_ctx* h, tt_group* g, const tt_tensor* input, tt_tensor* output,
                          int32_t root, tt_work** work) {
  return start(h, "gather", g, work, [&] {
    const Tensor* in = &tensor_arg(input, "input", 2);
    const Tensor* to = optional_mutable_arg(output, "output", 3);
    const bool is_root = root == group_of(g)->rank;
    if (is_root && !to) fail_null("output", 3);
    return job_of(DistCall::kGather, in, is_root ? to : nullptr, TT_REDUCE_SUM, root);
  });
}
tt_status tt_group_scatter(tt_ctx* h, tt_group* g, const tt_tensor* input, tt_tensor* output,
                           int32_t root, tt_work** work) {
  return start(h, "scatter", g, work, [&] {
    const Tensor* in = optional_arg(input, "input", 2);
    const Tensor* to = &mutable_arg(output, "output", 3);
    const bool is_root = root == group_of(g)->rank;
    if (is_root && !in) fail_null("input", 2);
    return job_of(DistCall::kScatter, is_root ? in : nullptr, to, TT_REDUCE_SUM, root);
  });
}
tt_status tt_group_send(tt_ctx* h, tt_group* g, const tt_tensor* tensor, int32_t peer, int32_t tag,
                        tt_work** work) {
  return start(h, "send", g, work, [&] {
    return job_of(DistCall::kSend, &tensor_arg(tensor, "tensor", 2), nullptr, TT_REDUCE_SUM, peer,
                  tag);
  });
}
tt_status tt_group_recv(tt_ctx* h, tt_group* g, tt_tensor* tensor, int32_t peer, int32_t tag,
                        tt_work** work) {
  return start(h, "recv", g, work, [&] {
    return job_of(DistCall::kReceive, nullptr, &mutable_arg(tensor, "tensor", 2), TT_REDUCE_SUM,
                  peer, tag);
  });
}

// ---- work ----

tt_status tt_work_wait(tt_ctx* h, tt_work* w, int64_t timeout_ms) {
  return api_call(h, "work_wait", [&](Ctx&) { wait_work(work_arg(w), ns_of(timeout_ms)); });
}
tt_status tt_work_test(tt_ctx* h, tt_work* w, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "work_test", [&](Ctx&) {
    Work& work = work_arg(w);
    out_arg(out, "out", 2);
    *out = work_done(work);
  });
}
tt_status tt_work_on_done(tt_ctx* h, tt_work* w, tt_work_fn fn, void* user,
                          void (*drop)(void* user)) {
  bool passed_on = false;
  const tt_status status = api_call(h, "work_on_done", [&](Ctx&) {
    Work& work = work_arg(w);
    if (!fn) fail_null("fn", 2);
    call_when_done(work, fn, user, drop);
    passed_on = true;
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}
tt_status tt_work_source(tt_ctx* h, tt_work* w, int32_t* out) {
  if (out) *out = 0;
  return api_call(h, "work_source", [&](Ctx&) {
    Work& work = work_arg(w);
    out_arg(out, "out", 2);
    if (work.job.call != DistCall::kReceive)
      fail_arg(TT_INVALID_ARG, "w", "the work is {}: must be a recv", call_name(work.job.call));
    wait_work(work, -1);
    Lock lock(work.mutex);
    *out = work.source;
  });
}
void tt_work_retain(tt_work* h) {
  if (Work* w = work_of(h)) ref_inc_external(&w->refs);
}
void tt_work_release(tt_work* h) {
  if (Work* w = work_of(h)) Ref<Work>::adopt(w).reset();
}

// ---- data-parallel training ----

namespace TT_NS {

// A reducer and the hook of its module, which ends with the last handle.
struct Ddp {
  uint32_t tag;
  RefCount refs;
  Ref<Reducer> reducer;
  ModuleRef module;
  int64_t hook;
  static void destroy(Ddp* d) noexcept {
    d->tag = 0;
    if (d->hook) d->module->hooks.remove(d->hook);
    if (d->reducer) detach_reducer(*d->reducer);
    d->~Ddp();
    mem_retire(d, sizeof *d);
  }
};

}  // namespace TT_NS

static Ddp* ddp_of(tt_ddp* h) {
  auto* d = reinterpret_cast<Ddp*>(h);
  return d && d->tag == kTagDdp ? d : nullptr;
}
static Ddp& ddp_arg(tt_ddp* h) {
  if (!ddp_of(h)) fail_handle(h, "d", 1, "ddp");
  return *ddp_of(h);
}

static tt_status before_forward(void* user, tt_ctx*, tt_module* m, const tt_tensor* const*, int64_t,
                                tt_tensor**) {
  if (module_arg(m).training) prepare_forward(*static_cast<Reducer*>(user));
  return TT_OK;
}
static void drop_reducer(void* user) { Ref<Reducer>::adopt(static_cast<Reducer*>(user)).reset(); }

static ReducerOptions reducer_options(const tt_ddp_opts* opts) {
  ReducerOptions o;
  if (opts_has(opts, 0)) o.bucket_bytes = opts->bucket_bytes;
  if (opts_has(opts, 1)) o.broadcast_buffers = opts->broadcast_buffers != 0;
  if (opts_has(opts, 2)) o.find_unused = opts->find_unused_parameters != 0;
  if (opts_has(opts, 3)) o.compression = Dtype(opts->compression);
  if (o.bucket_bytes <= 0)
    fail_arg(TT_INVALID_ARG, "bucket_bytes", "bucket_bytes is {}: must be positive",
             o.bucket_bytes);
  const bool known = o.compression >= Dtype::kNone && o.compression <= Dtype::kU64;
  if (!known || (o.compression != Dtype::kNone && !is_float(o.compression)))
    fail_arg(TT_DTYPE, "compression", "compression is {}: must be a floating dtype",
             int32_t(opts->compression));
  return o;
}

tt_status tt_ddp_new(tt_ctx* h, tt_module* m, tt_group* g, const tt_ddp_opts* opts, tt_ddp** out) {
  if (out) *out = nullptr;
  return api_call(h, "ddp_new", [&](Ctx&) {
    Module& module = module_arg(m);
    if (!group_of(g)) fail_handle(g, "g", 2, "group");
    check_opts(opts, 4);
    out_arg(out, "out", 4);
    const ReducerOptions options = reducer_options(opts);
    check_not_frozen(module);
    for (const ModuleRef& x : modules_of(module))
      if (x->lazy)
        fail_arg(TT_INVALID_ARG, "m", "Lazy{} has no parameters yet: call the module once before",
                 x->type->name);
    const StateDictRef parameters = named_tensors(module, Named::kParameters);
    const StateDictRef buffers = named_tensors(module, Named::kBuffers);
    auto* d = new (mem_alloc(sizeof(Ddp))) Ddp{};
    d->tag = kTagDdp;
    d->refs = 1;
    Ref<Ddp> made = Ref<Ddp>::adopt(d);
    d->module = ModuleRef::share(&module);
    d->reducer = new_reducer(*group_of(g), *parameters, *buffers, options);
    if (group_of(g)->size > 1) {
      Ref<Reducer> of_hook = d->reducer;
      d->hook = module.hooks.add(kForwardPreHook, 0, reinterpret_cast<AnyFn>(before_forward),
                                 of_hook.leak(), drop_reducer);
    }
    *out = reinterpret_cast<tt_ddp*>(made.leak());
  });
}

tt_status tt_ddp_prepare_forward(tt_ctx* h, tt_ddp* d) {
  return api_call(h, "ddp_prepare_forward", [&](Ctx&) { prepare_forward(*ddp_arg(d).reducer); });
}
tt_status tt_ddp_reduce(tt_ctx* h, tt_ddp* d) {
  return api_call(h, "ddp_reduce", [&](Ctx&) { reduce_gradients(*ddp_arg(d).reducer); });
}
tt_status tt_ddp_set_sync(tt_ctx* h, tt_ddp* d, int32_t on) {
  return api_call(h, "ddp_set_sync", [&](Ctx&) { set_reducer_sync(*ddp_arg(d).reducer, on != 0); });
}

// What the application has registered.
struct BucketHook {
  tt_ddp_hook start, finish;
  void* user;
  void (*drop)(void*);
};
static tt_status call_hook(void* user, tt_ctx* c, HookStage stage, const HookBucket& b) {
  const auto& hook = *static_cast<BucketHook*>(user);
  const tt_ddp_hook fn = stage == HookStage::kStart ? hook.start : hook.finish;
  if (!fn) return TT_OK;
  const tt_ddp_bucket bucket = {b.index,
                                b.num_buckets,
                                b.buffer,
                                b.gradients.data(),
                                b.parameters.data(),
                                b.gradients.size(),
                                b.failed,
                                0};
  return fn(hook.user, c, &bucket);
}
static void drop_bucket_hook(void* user) {
  const BucketHook hook = *static_cast<BucketHook*>(user);
  mem_retire(user, sizeof hook);
  run_drop(hook.drop, hook.user);
}

tt_status tt_ddp_set_hook(tt_ctx* h, tt_ddp* d, tt_ddp_hook start, tt_ddp_hook finish, void* user,
                          void (*drop)(void* user)) {
  bool passed_on = false;
  const tt_status status = api_call(h, "ddp_set_hook", [&](Ctx&) {
    Reducer& reducer = *ddp_arg(d).reducer;
    if (!start && finish)
      fail_arg(TT_INVALID_ARG, "start", "start is NULL: must be a hook, since finish is one");
    ReducerHook hook = {};
    if (start) {
      void* made = new (mem_alloc(sizeof(BucketHook))) BucketHook{start, finish, user, drop};
      hook = {call_hook, made, drop_bucket_hook};
    }
    try {
      set_reducer_hook(reducer, hook);
    } catch (...) {
      if (hook.user) mem_retire(hook.user, sizeof(BucketHook));
      throw;
    }
    passed_on = start != nullptr;
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}
void tt_ddp_retain(tt_ddp* h) {
  if (Ddp* d = ddp_of(h)) ref_inc_external(&d->refs);
}
void tt_ddp_release(tt_ddp* h) {
  if (Ddp* d = ddp_of(h)) Ref<Ddp>::adopt(d).reset();
}

// ---- batch normalisation over a group ----

static TensorRef normalize_together(void* user, const Tensor& input, const BatchNormCall& call) {
  const SyncNorm norm = {call.running_mean, call.running_var, call.weight,
                         call.bias,         call.momentum,    call.eps};
  return sync_batch_norm(*static_cast<Group*>(user), input, norm);
}
static void drop_group(void* user) { Ref<Group>::adopt(static_cast<Group*>(user)).reset(); }

tt_status tt_group_sync_batch_norm(tt_ctx* h, tt_group* g, tt_module* m) {
  return api_call(h, "group_sync_batch_norm", [&](Ctx&) {
    if (g && !group_of(g)) fail_handle(g, "g", 1, "group");
    Module& root = module_arg(m);
    check_not_frozen(root);
    for (const ModuleRef& module : modules_of(root)) {
      if (!normalizes_batches(*module)) continue;
      while (const Ref<Hook> old = module->hooks.next(kBatchNormHook, 0, 0))
        module->hooks.remove(old->id);
      if (!g || group_of(g)->size == 1) continue;
      Ref<Group> kept = Ref<Group>::share(group_of(g));
      module->hooks.add(kBatchNormHook, 0, reinterpret_cast<AnyFn>(normalize_together), kept.leak(),
                        drop_group);
    }
  });
}
