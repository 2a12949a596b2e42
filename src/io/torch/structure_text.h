// The structure of a PyTorch file as JSON (include/tt.h, tt_state_dict_structure).
#pragma once

#include "core/state_dict.h"
#include "io/torch/unpickler.h"

namespace TT_NS {

// Names of containers in the text, by PickleKind up to kSize. Items are pairs from kDict to
// kCounter.
constexpr const char* kContainerNames[] = {"list", "tuple", "dict", "ordered", "counter", "size"};
constexpr bool has_pairs(PickleKind k) {
  return k >= PickleKind::kDict && k <= PickleKind::kCounter;
}

// Writes `root` to state->structure, at most `max_bytes` bytes, and the tensors in it to state,
// named by their paths.
void write_structure(const Unpickler& pickle, const TorchStorages& storages, PickleValue root,
                     int64_t max_bytes, StateDict* state);

}  // namespace TT_NS
