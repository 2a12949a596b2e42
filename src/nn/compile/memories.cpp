// Inputs of a function that share memory, as inputs of a plan.
#include "nn/compile/record.h"

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

bool is_first_in_memory(TensorSpan inputs, int64_t i) {
  for (int64_t k = 0; k < i; k++)
    if (inputs[k]->storage == inputs[i]->storage) return false;
  return true;
}
// Calls f(position) for input `first` and those after it in its memory.
template <class F> void for_each_in_memory(TensorSpan inputs, int64_t first, F f) {
  for (int64_t k = first; k < inputs.n; k++)
    if (inputs[k]->storage == inputs[first]->storage) f(k);
}

bool same_form(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.dtype == b.dtype && same(a.sizes(), b.sizes()) &&
         same(a.strides(), b.strides());
}

// An input that is what the plan gets of the memory: all others are like it or inside it. -1: none.
int64_t input_with_all(TensorSpan inputs, int64_t first, const Bytes& all) {
  bool alike = true;
  int64_t found = -1;
  for_each_in_memory(inputs, first, [&](int64_t k) {
    const Bytes own = bytes_of(*inputs[k]);
    alike = alike && same_form(*inputs[first], *inputs[k]);
    if (found < 0 && inputs[k]->dense() && own.low == all.low && own.high == all.high) found = k;
  });
  return alike ? first : found;
}

Bytes bytes_of_all(TensorSpan inputs, int64_t first) {
  Bytes all = bytes_of(*inputs[first]);
  for_each_in_memory(inputs, first, [&](int64_t k) {
    const Bytes own = bytes_of(*inputs[k]);
    if (!own.size()) return;
    all.low = !all.size() || own.low < all.low ? own.low : all.low;
    all.high = own.high > all.high ? own.high : all.high;
  });
  return all;
}

// A vector of all bytes, in the dtype of the inputs if they have the same one.
TensorRef vector_of(TensorSpan inputs, int64_t first, const Bytes& all) {
  const Tensor& t = *inputs[first];
  Dtype dtype = t.dtype;
  for_each_in_memory(inputs, first, [&](int64_t k) {
    const Tensor& other = *inputs[k];
    if (other.dtype != t.dtype || (other.data - all.low) % t.item_size()) dtype = Dtype::kU8;
  });
  const int64_t n = all.size() / item_size(dtype);
  const int64_t step = 1;
  return new_alias(t, Ints(&n, 1), Ints(&step, 1), const_cast<char*>(all.low), dtype);
}

}  // namespace

Sharing sharing_of(TensorSpan inputs, int64_t i) {
  Sharing s;
  for (int64_t k = 0; k < i && s.same < 0; k++) {
    if (inputs[k]->storage != inputs[i]->storage) continue;
    if (s.memory < 0) {
      s.memory = int32_t(k);
      s.distance = inputs[i]->data - inputs[k]->data;
    }
    if (inputs[k] == inputs[i]) s.same = int32_t(k);
  }
  return s;
}

SmallVec<MemoryInput, 2> memories_of(TensorSpan inputs) {
  SmallVec<MemoryInput, 2> memories;
  for (int64_t i = 0; i < inputs.n; i++) {
    if (!is_first_in_memory(inputs, i)) continue;
    const Bytes all = bytes_of_all(inputs, i);
    const int64_t whole = input_with_all(inputs, i, all);
    if (whole >= 0) memories.push_back({TensorRef::share(inputs[whole]), whole, 0});
    else memories.push_back({vector_of(inputs, i, all), i, all.low - inputs[i]->data});
  }
  return memories;
}

const char* reason_against_memories(TensorSpan inputs) {
  for (int64_t i = 0; i < inputs.n; i++) {
    if (!is_first_in_memory(inputs, i)) continue;
    const Bytes all = bytes_of_all(inputs, i);
    if (input_with_all(inputs, i, all) >= 0) continue;
    int64_t used = 0;
    for_each_in_memory(inputs, i, [&](int64_t k) { used += bytes_of(*inputs[k]).size(); });
    if (!inputs[i]->is_cpu()) return "inputs on a device share memory";
    if (all.size() - used > kMostUnused) return "inputs are far apart in one memory";
  }
  return nullptr;
}

}  // namespace TT_NS
