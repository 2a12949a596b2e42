// One pass over elements of the CPU in place of the operators that a function is composed of, with
// the same results: modes and recorders of launches see the operators.
#pragma once

#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/elementwise_plan.h"

namespace TT_NS {

// Whether gradients of t may be recorded. A view has autograd's key whether or not its base needs a
// gradient, and does not notice at once when that changes.
inline bool may_need_gradient(const Tensor& t) {
  const Tensor* const base = atomic_load(&t.base, kRelaxed);
  return needs_gradient(t) || (base && needs_gradient(*base));
}
inline bool takes_one_pass(const Tensor& t) {
  const Ctx& c = ctx();
  KeySet keys = t.keys;
  if ((keys & bit(kKeyAutograd)) && !may_need_gradient(t)) keys &= ~bit(kKeyAutograd);
  return ((keys | c.include) & ~c.exclude) == bit(kKeyCpu) && !(c.watched & kWatchWork);
}

// The same for a pass that is an operator with a gradient of its own.
inline bool records_one_pass(const Tensor& t) {
  const Ctx& c = ctx();
  const KeySet keys = (t.keys | c.include) & ~c.exclude;
  return (keys & ~bit(kKeyAutograd)) == bit(kKeyCpu) && !(c.watched & kWatchWork);
}

template <class Plan, void (*compute)(const Plan&)>
int32_t run_one_pass(const void* plan, int64_t, int64_t) noexcept {
  compute(*static_cast<const Plan*>(plan));
  return TT_OK;
}
// A kernel whose only unit is all of the work.
template <class Plan, void (*compute)(const Plan&)>
constexpr Kernel one_pass_kernel(const char* name) {
  constexpr CpuKernel fn = run_one_pass<Plan, compute>;
  return {{fn, fn, fn}, kNoDevice, sizeof(Plan), name};
}

// Two elementwise kernels: the first one's result is the second one's first input. It is computed
// in parts that fit in the first cache.
struct ChainPlan {
  const Kernel* kernel[2];
  ElementPlan step[2];  // of one dtype and one run of elements; ptr[0] of the first is not set
};
template <int isa> int32_t run_chain(const void* plan, int64_t begin, int64_t end) noexcept {
  constexpr int64_t kPartBytes = 8192;
  const ChainPlan& chain = *static_cast<const ChainPlan*>(plan);
  alignas(64) char between[kPartBytes];
  ElementPlan first = chain.step[0];
  ElementPlan second = chain.step[1];
  const int64_t item = kItemSize[first.dtype[0]];
  first.ptr[0] = second.ptr[1] = between;
  for (int64_t i = begin; i < end;) {
    const int64_t n = min(end - i, kPartBytes / item);
    first.n = n;  // a small result, to which writes do not pass the caches
    for (int32_t k = 1; k < first.n_operands; k++) first.ptr[k] = chain.step[0].ptr[k] + i * item;
    second.ptr[0] = chain.step[1].ptr[0] + i * item;
    for (int32_t k = 2; k < second.n_operands; k++) second.ptr[k] = chain.step[1].ptr[k] + i * item;
    int32_t status = chain.kernel[0]->cpu[isa](&first, 0, n);
    if (status == TT_OK) status = chain.kernel[1]->cpu[isa](&second, 0, n);
    if (status != TT_OK) return status;
    i += n;
  }
  return TT_OK;
}
constexpr Kernel chain_kernel(const char* name) {
  return {{run_chain<0>, run_chain<1>, run_chain<2>}, kNoDevice, sizeof(ChainPlan), name};
}
// Sets the plan of one step, over tensors of one geometry and dtype in the order of memory.
inline void set_step(ElementPlan* p, const Tensor* out, std::initializer_list<const Tensor*> ins) {
  const Tensor& like = **ins.begin();
  const int64_t item = like.item_size();
  p->n = like.numel;
  p->n_operands = int32_t(ins.size()) + 1;
  p->compute = int32_t(widen(like.dtype));
  p->dense = widen(like.dtype) == like.dtype;
  p->ndim = 1;
  p->size[0] = like.numel;
  p->ptr[0] = out ? out->data : nullptr;
  for (int32_t k = 0; k < p->n_operands; k++) {
    p->scalar_in[k] = false;
    p->dtype[k] = int32_t(like.dtype);
    p->stride[k][0] = item;
    if (k) p->ptr[k] = ins.begin()[k - 1]->data;
  }
  p->param[0] = kNoParam.v;
  p->param[1] = kNoParam.v;
}

// Calls f with a value of the type of d: f32, f64, i32 or i64.
template <class F> void with_real_type(Dtype d, const F& f) {
  switch (d) {
    case Dtype::kF32: return f(float());
    case Dtype::kF64: return f(double());
    case Dtype::kI32: return f(int32_t());
    default: return f(int64_t());
  }
}

}  // namespace TT_NS
