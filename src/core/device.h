// Device: type and index, and the key of its backend.
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
// A set of dispatch keys (dispatch/key.h), a bit for each.
using KeySet = uint32_t;
// Keys of backends, side streams and captures, which all operators serve.
constexpr KeySet kBackendKeys = 0xffff;
constexpr KeySet backend_key(Device d) { return KeySet(1) << (d.type == TT_EXT ? 8 : d.type - 1); }
inline FmtArg fmt(Device d) { return fmt_device(d.type, d.index); }

}  // namespace TT_NS
