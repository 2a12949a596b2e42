#include "observer.h"

#include "capi/api.h"
#include "dispatch/op_info.h"
#include "graph/plan/bind.h"
#include "ops/elementwise.h"
#include "ops/gen/kernels.h"

#include <stdlib.h>
#include <string.h>

using namespace TT_NS;

namespace {

constexpr unsigned char kPoison = 0xA5;
constexpr int32_t kMaxIds = 1024;

struct Observer : WorkObserver {
  char* stack_top;
  int reads;
};
Observer observer;
bool seen[kMaxIds];

// Runs the kernel with everything between this frame and the test's overwritten.
__attribute__((noinline)) int32_t run_alone(const Kernel& k, const void* plan, int64_t units,
                                            int64_t grain) {
  char* const low = static_cast<char*>(__builtin_frame_address(0));
  const size_t bytes = size_t(observer.stack_top - low);
  void* const before = malloc(bytes);
  memcpy(before, low, bytes);
  memset(low, kPoison, bytes);
  const int32_t status = run_kernel(k, plan, units, grain);
  memcpy(low, before, bytes);
  free(before);
  return status;
}

int32_t launch_copy(WorkObserver&, const Kernel& k, const void* plan, int64_t units,
                    int64_t grain) {
  if (k.id < kMaxIds) seen[k.id] = true;
  const size_t bytes = size_t(k.plan_bytes);
  void* const copy = aligned_alloc(64, (bytes + 63) / 64 * 64);
  memcpy(copy, plan, bytes);
  if (k.rebase) k.rebase(copy, plan);
  const int32_t status = run_alone(k, copy, units, grain);
  free(copy);
  return status;
}

void count_read(WorkObserver&, const Tensor&) { observer.reads++; }
void ignore_write(WorkObserver&, const Tensor&) {}
bool ignore_check(WorkObserver&, const Tensor&, const DeviceCheck&) { return true; }

const Tensor* tensor(const tt_tensor* t) { return reinterpret_cast<const Tensor*>(t); }

bool shares(const Tensor* a, const Tensor* b) { return a && b && a->storage == b->storage; }

const char* const kNames[] = {
#define TT_KERNEL_ROW(name, kind) #name,
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
};

// Memory of a slot elsewhere, or its own.
class Place {
 public:
  Place(Plan& p, SlotBinding& slot, char* own) : slot_(slot), at_(own) {
    if (slot.placement < 0) return;
    memset(slot.own, kPoison, size_t(slot.bytes));
    memory_ = static_cast<char*>(aligned_alloc(64, size_t(slot.bytes + 63) / 64 * 64));
    memset(memory_, kPoison, size_t(slot.bytes));
    if (!may_bind(p, slot, memory_)) return;
    bind_slot(slot, memory_);
    at_ = memory_;
  }
  ~Place() {
    if (slot_.placement >= 0) bind_slot(slot_, slot_.own);
    free(memory_);
  }
  Place(const Place&) = delete;
  char* at() const { return at_; }
  bool moved() const { return at_ == memory_; }

 private:
  SlotBinding& slot_;
  char* memory_ = nullptr;
  char* at_;
};

bool same_values(const Tensor& a, const Tensor& b) {
  const TensorRef x = new_tensor(b.sizes(), b.dtype, kCpuDevice);
  const TensorRef y = new_tensor(b.sizes(), b.dtype, kCpuDevice);
  if (!b.numel) return a.numel == 0;
  copy_elements(*x, a);
  copy_elements(*y, b);
  return !memcmp(x->data, y->data, size_t(b.numel * b.item_size()));
}

// Runs the plan with one place for each slot; the places end in the opposite order.
const char* run_bound(Plan& p, Span<tt_tensor* const> given, Span<tt_tensor* const> outs, int64_t i,
                      int* n_bound) {
  const Graph& g = *p.graph;
  if (i < given.n) {
    const Place place(p, p.bound_inputs[i], p.inputs[i]);
    *n_bound += place.moved();
    if (tensor(given[i])->numel)
      copy_elements(*plan_tensor(p, g.inputs[i], place.at()), *tensor(given[i]));
    return run_bound(p, given, outs, i + 1, n_bound);
  }
  const int64_t k = i - given.n;
  if (k == outs.n) {
    run_plan(p, -1);
    return nullptr;
  }
  const Place place(p, p.bound_outputs[k], p.outputs[k]);
  *n_bound += place.moved();
  const char* wrong = run_bound(p, given, outs, i + 1, n_bound);
  if (wrong || !outs[k] || g.storages[g.values[g.outputs[k]].storage].role != IrRole::kMade)
    return wrong;
  return same_values(*plan_tensor(p, g.outputs[k], place.at()), *tensor(outs[k]))
             ? nullptr
             : "a bound plan computes something else";
}

}  // namespace

extern "C" {

void observe_launches(tt_ctx* ctx) {
  Ctx& c = *reinterpret_cast<Ctx*>(ctx);
  observer.launch = launch_copy;
  observer.read = count_read;
  observer.write = ignore_write;
  observer.check = ignore_check;
  observer.stack_top = static_cast<char*>(__builtin_frame_address(0));
  observer.reads = 0;
  c.work = &observer;
  c.watched |= kWatchWork;
}

void observe_nothing(tt_ctx* ctx) {
  Ctx& c = *reinterpret_cast<Ctx*>(ctx);
  c.work = nullptr;
  c.watched &= uint8_t(~kWatchWork);
}

int count_reads(void) { return observer.reads; }

int unseen_kernels(const char** names, int n) {
  int found = 0;
  for (int32_t i = 0; i < kNumKernels; i++) {
    if (seen[i]) continue;
    if (found < n) names[found] = kNames[i];
    found++;
  }
  return found;
}

const char* wrong_alias(const tt_op* op, const tt_value* args, int n_args, tt_tensor* const* outs,
                        int n_outs) {
  const OpSchema& s = *reinterpret_cast<const OpInfo*>(op)->schema;
  if (!s.leaf) return nullptr;
  for (int i = 0; i < n_outs; i++) {
    const Tensor* out = tensor(outs[i]);
    if (s.alias == Alias::kView && !shares(out, tensor(args[0].tensor)))
      return "a view that does not share memory with the first argument";
    for (int k = 0; s.alias == Alias::kNone && k < n_args; k++) {
      if (args[k].tag == TT_VAL_TENSOR && shares(out, tensor(args[k].tensor)))
        return "a result shares memory with an argument";
      for (int64_t j = 0; args[k].tag == TT_VAL_TENSORS && j < args[k].n; j++)
        if (shares(out, tensor(args[k].tensors[j])))
          return "a result shares memory with an argument";
    }
  }
  return nullptr;
}

const char* wrong_bound(tt_ctx* c, const tt_graph* graph, tt_tensor* const* given, int n,
                        tt_tensor* const* outs, int n_outs, int* n_bound, int* refused) {
  const char* wrong = "a bound plan fails";
  const Graph& g = *reinterpret_cast<const Graph*>(graph);
  Ref<Plan> plan;
  *refused = api_call(c, __func__, [&](Ctx&) {
               plan = new_plan(Ref<Graph>::share(&g), nullptr, 0, n_outs, 1);
             }) != TT_OK;
  if (*refused) return nullptr;
  const tt_status status = api_call(c, __func__, [&](Ctx&) {
    const MaskGuard plain(~kBackendKeys);
    const Rng begin = ctx().gen->state();
    for (int round = 0; round < 2; round++) {
      ctx().gen->set(begin);
      wrong = run_bound(*plan, {given, n}, {outs, n_outs}, 0, n_bound);
      if (wrong) return;
    }
  });
  return status == TT_OK || wrong ? wrong : "a bound plan fails";
}

}  // extern "C"
