// Device: type and index. The backend bit of a device in a key set is 1 << (type - 1).
#pragma once

#include "base/error.h"

namespace TT_NS {

struct Device {
  int8_t type = TT_CPU;
  int8_t index = 0;
  // Without a branch: every call compares the devices of its operands.
  constexpr bool operator==(const Device& o) const {
    return ((type ^ o.type) | (index ^ o.index)) == 0;
  }
};
constexpr Device kCpuDevice{TT_CPU, 0};
constexpr uint64_t backend_key(Device d) { return uint64_t(1) << (d.type - 1); }
inline FmtArg fmt(Device d) { return fmt_device(d.type, d.index); }

}  // namespace TT_NS
