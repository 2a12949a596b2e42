// Identity shared by libtt and a device library: the table, the plans, the kernels and their order.
#pragma once

#include "core/backend.h"
#include "plan/gen/plans.h"

#include <stddef.h>

namespace TT_NS {

// incremented when a plan's or a function's meaning changes but not the layout
constexpr uint64_t kPlanRevision = 2;

// The sizes of the table and of each plan struct, and the offsets of the structs' fields.
inline constexpr uint64_t kLayout[] = {
    kPlanRevision,
    sizeof(DeviceBackend),
#define TT_PLAN(type) sizeof(type),
#define TT_PLAN_FIELD(type, field) offsetof(type, field),
#include "plan/gen/backend_plans.inc"
#undef TT_PLAN
#undef TT_PLAN_FIELD
};

// The names of the kernels, each with a zero at its end.
inline constexpr char kKernelNames[] =
#define TT_KERNEL_ROW(name, kind) #name "\0"
#include "plan/gen/kernel_rows.inc"
#undef TT_KERNEL_ROW
    ;

// FNV-1a. One function with loops: compilers are slow at constant expressions of many calls.
constexpr uint64_t backend_id() {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t v : kLayout)
    for (int i = 0; i < 8; i++, v >>= 8) hash = (hash ^ (v & 0xff)) * 0x100000001b3u;
  for (size_t i = 0; i + 1 < sizeof kKernelNames; i++)
    hash = (hash ^ uint8_t(kKernelNames[i])) * 0x100000001b3u;
  return hash;
}
inline constexpr uint64_t kBuildId = backend_id();

}  // namespace TT_NS
