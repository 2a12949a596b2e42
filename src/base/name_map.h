// NameMap maps names to their positions in a list that stores the names, by open addressing.
#pragma once

#include "base/small_vec.h"

#include <string.h>

namespace TT_NS {

using Name = Span<const char>;
inline Name name_of(const char* s) { return {s, int64_t(strlen(s))}; }
inline bool equal(Name a, Name b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.ptr, b.ptr, size_t(a.n)) == 0);
}

class NameMap {
 public:
  // Shorter lists are searched as fast without a map.
  static constexpr int64_t kWorthwhile = 32;

  int64_t size() const { return n_; }
  // Returns the position of a name, or -1. name_at(i) is the name at position i.
  template <class F> int64_t find(Name name, F name_at) const {
    if (slots_.empty()) return -1;
    const uint32_t hash = hash_of(name);
    for (int64_t at = first(hash);; at = next(at)) {
      const Slot& s = slots_[at];
      if (s.position < 0) return -1;
      if (s.hash == hash && equal(name_at(s.position), name)) return s.position;
    }
  }
  // Adds a name that is not in the map yet. make_room must have been called.
  void add(Name name, int64_t position) noexcept {
    n_++;
    put({hash_of(name), position});
  }
  void make_room() {
    if (2 * (n_ + 1) <= slots_.size()) return;
    SmallVec<Slot, 1> old;
    old.resize(slots_.size() ? 2 * slots_.size() : 4 * kWorthwhile);
    std::swap(old, slots_);
    for (const Slot& s : old)
      if (s.position >= 0) put(s);
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int64_t position = -1;
  };
  static uint32_t hash_of(Name name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (char c : name) h = (h ^ uint8_t(c)) * 0x100000001b3u;
    return uint32_t(h ^ h >> 32);
  }
  int64_t first(uint32_t hash) const { return int64_t(hash) & (slots_.size() - 1); }
  int64_t next(int64_t at) const { return (at + 1) & (slots_.size() - 1); }
  void put(Slot s) noexcept {
    int64_t at = first(s.hash);
    while (slots_[at].position >= 0) at = next(at);
    slots_[at] = s;
  }

  SmallVec<Slot, 1> slots_;  // empty, or a power of two of them
  int64_t n_ = 0;
};

// A list of named items (item.name, a Text) with fast lookup: by a map once there are many.
template <class List> class NamedPositions {
 public:
  int64_t find(const List& list, Name name, int64_t hint = 0) const {
    const auto name_at = [&](int64_t i) { return list[i].name.span(); };
    if (hint < list.size() && equal(name_at(hint), name)) return hint;
    if (map_.size()) return map_.find(name, name_at);
    for (int64_t i = 0; i < list.size(); i++)
      if (equal(name_at(i), name)) return i;
    return -1;
  }
  // Appends an item with a new name; nothing changes if it fails.
  template <class Item> void append(List& list, Item&& item) {
    const int64_t n = list.size();
    list.reserve(n + 1);
    if (n + 1 >= NameMap::kWorthwhile) {
      if (!map_.size()) map_ = map_of(list);
      map_.make_room();
      map_.add(item.name.span(), n);
    }
    list.push_back(std::move(item));
  }

 private:
  static NameMap map_of(const List& list) {
    NameMap map;
    for (int64_t i = 0; i < list.size(); i++) {
      map.make_room();
      map.add(list[i].name.span(), i);
    }
    return map;
  }

  NameMap map_;  // of all names, or empty
};

}  // namespace TT_NS
