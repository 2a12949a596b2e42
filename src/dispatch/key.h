// Dispatch keys: bits of a key set. The highest set bit is served first: modes wrap autograd, which
// wraps the backends. Eight keys share a slot of an operator, a function that serves them all:
//   slot 0: keys 0 to 7    the implementation, for backends that tt has kernels of
//   slot 1: keys 8 to 15   the boxed handler of the key, below autograd
//   slot 2: keys 16 to 23  the autograd wrapper
//   slot 3: keys 24 to 31  the boxed handler of the key: modes
// Internal: the C API names backends, never keys.
#pragma once

#include "core/tensor.h"

namespace TT_NS {

enum Key : int32_t {
  kKeyCpu = 0,
  kKeyCuda = 1,
  kKeyMeta = 2,
  kKeyExt = 8,       // devices of the application (ext/backend.h)
  kKeyStream = 9,    // above the backends: side streams of devices (modes/streams.h)
  kKeyCapture = 10,  // below autograd, so that a graph has forward and backward (graph/capture.h)
  kKeyAutograd = 16,
  kKeyAutocast = 24,
  kKeyWideUnsigned = 25,  // of tensors of uint16, uint32, uint64 (ops/wide_unsigned.cpp)
  kKeyVmap = 26,
  kKeyForward = 27,  // of dual tensors (autograd/dual.h)
  kKeyTrace = 28,
  kKeyProfile = 29,
  // Above all other modes. Callbacks other than modules of the application run without it.
  kKeyCheckpoint = 30,  // of checkpoints that keep results of operators (modes/checkpoint.h)
  kNumKeys = 32
};
constexpr KeySet bit(Key k) { return KeySet(1) << k; }
constexpr KeySet kBelowAutograd = bit(kKeyAutograd) - 1;
static_assert(backend_key({TT_META, 0}) == bit(kKeyMeta) &&
              backend_key({TT_EXT, 0}) == bit(kKeyExt));
// Modes may wrap every operator.
constexpr KeySet kModeKeys = 0xff000000;

// Modes wrap every operator by boxing its arguments: a twentieth of a small program's code. Builds
// for microcontrollers have none, and what would start one fails. Tensors of uint16, uint32 and
// uint64 need a mode.
constexpr bool kModes = !TT_MINIMAL || is_built(TT_U16) || is_built(TT_U32) || is_built(TT_U64);
// The slots of an operator, by the number of a key / 8.
enum OpSlot : int32_t { kSlotImpl, kSlotBoxed, kSlotAutograd, kSlotMode, kNumSlots };

}  // namespace TT_NS
