// KeptChecks: checks that launches of a plan make in each run. What they find is reported as that
// of others (core/device_checks.h).
#pragma once

#include "core/device_checks.h"

namespace TT_NS {

struct KeptChecks {
  int64_t* places;  // pinned; hold kCheckPassed until one finds something
  Span<DeviceCheck> checks;
  KeptChecks* next;  // of the device
};

// Requires that the device has DeviceChecks.
void keep_checks(CudaDevice&, KeptChecks& more) noexcept;
// The runtime, and its checks, may be gone.
void forget_checks(CudaDevice&, KeptChecks& which) noexcept;

}  // namespace TT_NS
