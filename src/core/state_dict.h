// StateDict: named tensors in order. What a module's or optimizer's state is, and what a checkpoint
// holds.
#pragma once

#include "base/name_map.h"
#include "base/text.h"
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
  Text structure;  // how the tensors stand in the file that they come from (io/structure_text.h);
                   // empty: from none
  NamedPositions<SmallVec<Entry, 4>> positions;

  // The index of a name, or -1. `hint`: where it is looked for first.
  int64_t find(const char* name, int64_t hint = 0) const;
  void set(const char* name, TensorRef tensor);  // replaces, or appends
  // A name that is not there yet.
  void append(const char* name, TensorRef tensor) {
    positions.append(entries, Entry{Text(name), std::move(tensor)});
  }
  // Has the other one's names and tensors, and gives it its own.
  void swap_tensors(StateDict& other) noexcept {
    std::swap(entries, other.entries);
    std::swap(positions, other.positions);
  }
  static void destroy(StateDict*) noexcept;
};
using StateDictRef = Ref<StateDict>;
StateDictRef new_state_dict();

}  // namespace TT_NS
