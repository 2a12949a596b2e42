// Identity shared by libtt and a device library: the table, the plans, the kernels and their order.
// Both sides write
//   constexpr uint64_t kId = BackendId()
//   #define TT_KERNEL_ROW(name, kind) .kernel(#name)
//   #include "plan/gen/kernel_rows.inc"
//   .value;
#pragma once

#include "core/backend.h"
#include "plan/gen/plans.h"

#include <stddef.h>

namespace TT_NS {

// incremented when a plan's meaning changes but not its layout
constexpr uint64_t kPlanRevision = 1;

// The size of each plan struct and the offsets of its fields.
inline constexpr uint64_t kPlanLayout[] = {
#define TT_PLAN(type) sizeof(type),
#define TT_PLAN_FIELD(type, field) offsetof(type, field),
#include "plan/gen/backend_plans.inc"
#undef TT_PLAN
#undef TT_PLAN_FIELD
};

struct BackendId {
  uint64_t value = 0xcbf29ce484222325u;  // FNV-1a

  constexpr BackendId()
      : BackendId(BackendId(0).number(kPlanRevision).number(sizeof(DeviceBackend)).plans()) {}
  constexpr BackendId number(uint64_t v) const {
    BackendId id = *this;
    for (int i = 0; i < 8; i++, v >>= 8) id.mix(uint8_t(v));
    return id;
  }
  constexpr BackendId plans() const {
    BackendId id = *this;
    for (uint64_t v : kPlanLayout) id = id.number(v);
    return id;
  }
  constexpr BackendId kernel(const char* name) const {
    BackendId id = *this;
    for (; *name; name++) id.mix(uint8_t(*name));
    id.mix(0);
    return id;
  }

 private:
  constexpr explicit BackendId(int) {}
  constexpr void mix(uint8_t byte) { value = (value ^ byte) * 0x100000001b3u; }
};

}  // namespace TT_NS
