// PointerMap maps addresses to int64s, by open addressing: the visited set of walks over trees that
// share nodes.
#pragma once

#include "base/small_vec.h"

namespace TT_NS {

class PointerMap {
 public:
  // Returns the value of p. If p is absent, inserts `value` and returns it. *added, if given, tells
  // whether it was absent.
  int64_t find_or_add(const void* p, int64_t value, bool* added = nullptr) {
    if (2 * (n_ + 1) > slots_.size()) grow();
    Slot& s = slot(p);
    if (added) *added = s.key == nullptr;
    if (!s.key) {
      s.key = p;
      s.value = value;
      n_++;
    }
    return s.value;
  }
  // Returns the value of p, or -1.
  int64_t find(const void* p) { return slots_.empty() || !slot(p).key ? -1 : slot(p).value; }
  bool add(const void* p) {
    bool added;
    find_or_add(p, 0, &added);
    return added;
  }

 private:
  struct Slot {
    const void* key = nullptr;
    int64_t value = 0;
  };
  Slot& slot(const void* p) {
    const uint64_t mask = uint64_t(slots_.size()) - 1;
    uint64_t at = (reinterpret_cast<uintptr_t>(p) * 0x9e3779b97f4a7c15u) >> 20;
    while (slots_[int64_t(at & mask)].key && slots_[int64_t(at & mask)].key != p) at++;
    return slots_[int64_t(at & mask)];
  }
  void grow() {
    SmallVec<Slot, 16> old = std::move(slots_);
    slots_ = SmallVec<Slot, 16>();
    slots_.resize(old.size() ? 2 * old.size() : 16);
    for (const Slot& s : old)
      if (s.key) slot(s.key) = s;
  }
  SmallVec<Slot, 16> slots_;
  int64_t n_ = 0;
};

}  // namespace TT_NS
