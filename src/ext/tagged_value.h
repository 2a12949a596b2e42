// Converts between boxed values and the tagged values of the C ABI.
#pragma once

#include "autograd/saved.h"

namespace TT_NS {

using TaggedValues = SmallVec<tt_value, 8>;

// Converts a value for a callback of the application; borrows what v borrows. An Rng has no tagged
// form (custom operators take none).
tt_value to_tagged(const Value& v);

// The arguments of a recorded call, for its backward callback: tensors with their versions, all
// else copied.
class SavedArgs {
 public:
  void save(Span<const Value> args);
  // Appends the values; `keep` owns the tensors among them.
  void get(Node& n, TaggedValues& out, TensorList& keep) const;

 private:
  struct Item {
    tt_value value;
    int64_t tensors = 0;  // number of its items in tensors_
    SmallVec<int64_t, 4> ints;
    SmallVec<char, 16> text;
    SmallVec<tt_index, 2> index;
    SmallVec<tt_tensor*, 2> list;  // filled by get
    Ref<Generator> generator;
  };
  mutable SmallVec<Item, 4> items_;
  SmallVec<Saved, 4> tensors_;
};

}  // namespace TT_NS
