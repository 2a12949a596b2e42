// StateDict: named tensors in order, such as the state of a module or optimizer, or the content of
// a checkpoint.
#pragma once

#include "base/name_map.h"
#include "base/text/text.h"
#include "core/tensor.h"

namespace TT_NS {

struct StateDict {
  struct Entry {
    Text name;
    TensorRef tensor;
  };
  uint32_t tag;
  RefCount refs;
  SmallVec<Entry, 4> entries;
  Text structure;  // layout of the tensors in the file that they were loaded from
                   // (io/torch/structure_text.h); empty: none
  NamedPositions<SmallVec<Entry, 4>> positions;

  // Returns the index of a name, or -1. `hint` is the index to try first.
  int64_t find(const char* name, int64_t hint = 0) const;
  void set(const char* name, TensorRef tensor);  // replaces, or appends
  // Appends a name that is not in the dict yet.
  void append(const char* name, TensorRef tensor) {
    positions.append(entries, Entry{Text(name), std::move(tensor)});
  }
  // Swaps names and tensors with other.
  void swap_tensors(StateDict& other) noexcept {
    std::swap(entries, other.entries);
    std::swap(positions, other.positions);
  }
  static void destroy(StateDict*) noexcept;
};
using StateDictRef = Ref<StateDict>;
StateDictRef new_state_dict();

}  // namespace TT_NS
