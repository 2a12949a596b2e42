#include "graph/plan/plan_form.h"

#include "plan/gen/plans.h"

#include <string.h>
#include <type_traits>

namespace TT_NS {

// ---- bytes ----

namespace {

int64_t used_of(const ElementPlan& p) {
  if (p.dense) return offsetof(ElementPlan, size);
  return int64_t(offsetof(ElementPlan, stride)) +
         (int64_t(p.n_operands - 1) * kMaxPlanDims + p.ndim) * 8;
}
int64_t used_of(const ReducePlan& p) {
  return int64_t(offsetof(ReducePlan, red_stride)) + int64_t(p.n_red) * 8;
}
int64_t used_of(const MatmulPlan& p) {
  return int64_t(offsetof(MatmulPlan, batch_dim)) + p.n_batch * int64_t(sizeof(MatmulBatchDim));
}

}  // namespace

const int64_t kPlanSlack = sizeof(ElementPlan) + sizeof(ReducePlan) + sizeof(MatmulPlan);

// ---- pointers ----

namespace {

enum PlanType : int16_t {
#define TT_PLAN(type) kIs##type,
#define TT_PLAN_FIELD(type, field)
#include "plan/gen/backend_plans.inc"
#undef TT_PLAN
#undef TT_PLAN_FIELD
};
template <class T> constexpr int16_t plan_type = -1;
#define TT_PLAN(type) template <> constexpr int16_t plan_type<type> = kIs##type;
#define TT_PLAN_FIELD(type, field)
#include "plan/gen/backend_plans.inc"
#undef TT_PLAN
#undef TT_PLAN_FIELD

constexpr int16_t kPointer = -2;

struct Field {
  int16_t of, type;  // PlanType; type: kPointer, a struct in the plan, or -1
  int32_t at, item_bytes, n;
};
template <class T> constexpr Field field(int16_t of, int64_t at) {
  using Item = std::remove_all_extents_t<T>;
  const int16_t type = std::is_pointer_v<Item> ? kPointer : plan_type<Item>;
  return {of, type, int32_t(at), int32_t(sizeof(Item)), int32_t(sizeof(T) / sizeof(Item))};
}
constexpr Field kFields[] = {
#define TT_PLAN(type)
#define TT_PLAN_FIELD(type, name) field<decltype(type::name)>(kIs##type, offsetof(type, name)),
#include "plan/gen/backend_plans.inc"
#undef TT_PLAN
#undef TT_PLAN_FIELD
};

constexpr int16_t kPlans[] = {
#define TT_KERNEL_PLAN(type) kIs##type,
#include "plan/gen/kernel_plans.inc"
#undef TT_KERNEL_PLAN
};

// Structs in structs are nested as deep as the headers say.
void find(int16_t type, int32_t at, SmallVec<int32_t, 16>& positions) {
  for (const Field& f : kFields) {
    if (f.of != type || f.type == -1) continue;
    for (int32_t i = 0; i < f.n; i++) {
      const int32_t here = at + f.at + i * f.item_bytes;
      if (f.type == kPointer) positions.push_back(here);
      else find(f.type, here, positions);
    }
  }
}

// -1: a kernel for the CPU only, whose plan is known where it is launched.
int16_t plan_of(const Kernel& k) {
  return k.id < int32_t(sizeof kPlans / sizeof *kPlans) ? kPlans[k.id] : -1;
}

}  // namespace

bool find_pointers(const Kernel& k, const void* plan, SmallVec<int32_t, 16>& positions) {
  const int16_t type = plan_of(k);
  if (type >= 0) find(type, 0, positions);
  // Pointers of operands that the call does not have are uninitialised.
  if (type == kIsElementPlan) positions.resize(static_cast<const ElementPlan*>(plan)->n_operands);
  return type >= 0;
}

int64_t used_bytes(const Kernel& k, const void* plan) {
  const int16_t type = plan_of(k);
  if (type == kIsElementPlan) return used_of(*static_cast<const ElementPlan*>(plan));
  if (type == kIsReducePlan) return used_of(*static_cast<const ReducePlan*>(plan));
  if (type == kIsMatmulPlan) return used_of(*static_cast<const MatmulPlan*>(plan));
  return k.plan_bytes;
}

}  // namespace TT_NS
