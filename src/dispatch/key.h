// Dispatch keys: bits of a key set and slots of an OpInfo. The highest set bit is served first:
// modes wrap autograd, which wraps the backends. Internal: the C API names backends, never slots.
#pragma once

#include "core/tensor.h"

namespace TT_NS {

enum Key : int32_t {
  kKeyCpu = 0,
  kKeyCuda = 1,
  kKeyMeta = 2,
  kKeyExt = 3,  // device type - 1
  // 4, 5: future layouts (sparse, quantised)
  kKeyStream = 6,   // above the backends: side streams of devices (modes/streams.h)
  kKeyCapture = 7,  // below autograd, so that a graph has forward and backward (graph/capture.h)
  kKeyAutograd = 8,
  kKeyAutocast = 9,
  kKeyWideUnsigned = 10,  // of tensors of uint16, uint32, uint64 (ops/wide_unsigned.cpp)
  kKeyVmap = 11,
  kKeyForward = 12,  // of dual tensors (autograd/dual.h)
  kKeyTrace = 13,
  kKeyProfile = 14,
  kNumKeys = 16
};
constexpr uint64_t bit(Key k) { return uint64_t(1) << k; }
constexpr uint64_t kBackendKeys = 0xff;  // and Capture's, which all operators serve
constexpr uint64_t kBelowAutograd = bit(kKeyAutograd) - 1;
// Modes may wrap every operator.
constexpr uint64_t kModeKeys = 0xffff & ~kBackendKeys & ~bit(kKeyAutograd);

// Modes wrap every operator by boxing its arguments: a twentieth of a small program's code. Builds
// for microcontrollers have none, and what would start one fails. Tensors of uint16, uint32 and
// uint64 need a mode.
constexpr bool kModes = !TT_MINIMAL || is_built(TT_U16) || is_built(TT_U32) || is_built(TT_U64);
constexpr int kNumSlots = kModes ? kNumKeys : kKeyAutograd + 1;

}  // namespace TT_NS
