// Between boxed values and the tagged values of the C ABI.
#pragma once

#include "autograd/saved.h"

namespace TT_NS {

using HostValues = SmallVec<tt_value, 8>;

// The same value for a callback of the host; borrows what v borrows. An Rng has no form there
// (custom operators take none).
tt_value to_host(const Value& v);

// The arguments of a recorded call, for its backward callback: tensors by version, all else copied.
class SavedArgs {
 public:
  void save(Span<const Value> args);
  // Appends the values; the tensors among them live in `keep`.
  void get(Node& n, HostValues& out, TensorList& keep) const;

 private:
  struct Item {
    tt_value value;
    int64_t tensors = 0;  // how many of tensors_ are its own
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
