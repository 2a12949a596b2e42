#pragma once

#include "core/device.h"

namespace TT_NS {

// Whether the device has kernels of its own, with scratch memory of their own
// (DeviceBackend::workspace_bytes): not the CPU, nor devices that run its kernels.
bool has_device_kernels(Device device);

}  // namespace TT_NS
