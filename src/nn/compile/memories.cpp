// Inputs of a function that share memory, as inputs of a plan.
#include "nn/compile/record.h"

#include <algorithm>

namespace TT_NS {

namespace {

// Between and around inputs, a memory may have this many bytes that no input has.
constexpr int64_t kMostUnused = 1 << 16;

struct Bytes {
  const char *low, *high;
  int64_t size() const { return high - low; }
};
Bytes bytes_of(const Tensor& t) {
  Bytes b;
  byte_range(t, &b.low, &b.high);
  return b;
}

using Group = SmallVec<int64_t, 2>;  // the inputs in one memory, in order

SmallVec<Group, 2> groups_of(TensorSpan inputs) {
  SmallVec<Group, 2> groups;
  SmallVec<int64_t, 4> group_of;  // of each input
  Sharings sharings(inputs);
  for (int64_t i = 0; i < inputs.n; i++) {
    const int32_t first = sharings.of(i).memory;
    group_of.push_back(first < 0 ? groups.size() : group_of[first]);
    if (first < 0) groups.push_back(Group());
    groups[group_of[i]].push_back(i);
  }
  return groups;
}

bool same_form(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.dtype == b.dtype && same(a.sizes(), b.sizes()) &&
         same(a.strides(), b.strides());
}

// An input that is what the plan gets of the memory: all others are like it or inside it. -1: none.
int64_t input_with_all(TensorSpan inputs, const Group& group, const Bytes& all) {
  bool alike = true;
  int64_t found = -1;
  for (const int64_t k : group) {
    const Bytes own = bytes_of(*inputs[k]);
    alike = alike && same_form(*inputs[group[0]], *inputs[k]);
    if (found < 0 && inputs[k]->dense() && own.low == all.low && own.high == all.high) found = k;
  }
  return alike ? group[0] : found;
}

Bytes bytes_of_all(TensorSpan inputs, const Group& group) {
  Bytes all = bytes_of(*inputs[group[0]]);
  for (const int64_t k : group) {
    const Bytes own = bytes_of(*inputs[k]);
    if (!own.size()) continue;
    all.low = !all.size() || own.low < all.low ? own.low : all.low;
    all.high = own.high > all.high ? own.high : all.high;
  }
  return all;
}

// Bytes that the inputs cover, gaps between the elements of one input included.
int64_t bytes_of_union(TensorSpan inputs, const Group& group) {
  SmallVec<Bytes, 4> ranges;
  for (const int64_t k : group) ranges.push_back(bytes_of(*inputs[k]));
  std::sort(ranges.begin(), ranges.end(),
            [](const Bytes& a, const Bytes& b) { return a.low < b.low; });
  int64_t n = 0;
  const char* end = ranges[0].low;
  for (const Bytes& range : ranges) {
    const char* const from = max(range.low, end);
    if (range.high <= from) continue;
    n += range.high - from;
    end = range.high;
  }
  return n;
}
// Whether between them are bytes that no input has.
bool has_gaps(TensorSpan inputs, const Group& group, const Bytes& all) {
  for (const int64_t k : group)
    if (!inputs[k]->dense()) return true;
  return bytes_of_union(inputs, group) < all.size();
}

// A vector of all bytes, in the dtype of the inputs if they have the same one.
TensorRef vector_of(TensorSpan inputs, const Group& group, const Bytes& all) {
  const Tensor& t = *inputs[group[0]];
  Dtype dtype = t.dtype;
  for (const int64_t k : group) {
    const Tensor& other = *inputs[k];
    if (other.dtype != t.dtype || (other.data - all.low) % t.item_size()) dtype = Dtype::kU8;
  }
  const int64_t n = all.size() / item_size(dtype);
  const int64_t step = 1;
  return new_alias(t, Ints(&n, 1), Ints(&step, 1), const_cast<char*>(all.low), dtype);
}

}  // namespace

Sharing Sharings::of(int64_t i) {
  Sharing s;
  const Tensor& t = *inputs_[i];
  if (inputs_.n <= kFew) {
    for (int64_t k = 0; k < i && s.same < 0; k++) {
      if (inputs_[k]->storage != t.storage) continue;
      if (s.memory < 0) s.memory = int32_t(k);
      if (inputs_[k] == &t) s.same = int32_t(k);
    }
  } else {
    const int64_t memory = memories_.find_or_add(t.storage, i);
    const int64_t same = tensors_.find_or_add(&t, i);
    if (memory < i) s.memory = int32_t(memory);
    if (same < i) s.same = int32_t(same);
  }
  if (s.memory >= 0) s.distance = t.data - inputs_[s.memory]->data;
  return s;
}

SmallVec<MemoryInput, 2> memories_of(TensorSpan inputs) {
  SmallVec<MemoryInput, 2> memories;
  for (const Group& group : groups_of(inputs)) {
    const Bytes all = bytes_of_all(inputs, group);
    const int64_t whole = input_with_all(inputs, group, all);
    const int64_t first = group[0];
    if (whole >= 0) {
      memories.push_back({TensorRef::share(inputs[whole]), whole, 0, false});
      continue;
    }
    const int64_t shift = all.low - inputs[first]->data;
    memories.push_back({vector_of(inputs, group, all), first, shift, has_gaps(inputs, group, all)});
  }
  return memories;
}

bool storages_overlap(TensorSpan inputs) {
  SmallVec<Bytes, 8> ranges;
  for (int64_t i = 0; i < inputs.n; i++) {
    const Bytes own = bytes_of(*inputs[i]);
    for (int64_t k = 0; k < i; k++) {
      const bool meet = own.low < ranges[k].high && ranges[k].low < own.high;
      if (meet && inputs[k]->storage != inputs[i]->storage) return true;
    }
    ranges.push_back(own);
  }
  return false;
}

const char* reason_against_memories(TensorSpan inputs) {
  for (const Group& group : groups_of(inputs)) {
    const Bytes all = bytes_of_all(inputs, group);
    if (input_with_all(inputs, group, all) >= 0) continue;
    if (!inputs[group[0]]->is_cpu()) return "inputs on a device share memory";
    if (all.size() - bytes_of_union(inputs, group) > kMostUnused)
      return "inputs are far apart in one memory";
  }
  return nullptr;
}

}  // namespace TT_NS
