// Offsets of memories in an arena: the largest first, each at the lowest place that is free while
// it lives. Where that takes too many comparisons, which needs more than ten thousand memories of
// long lives, those that are left, the smallest, are placed in the order of time, above what has a
// place already and lives with them.
#include "graph/plan/plan.h"

#include <algorithm>

namespace TT_NS {

namespace {

// The memories that have an offset. So that a search does not visit all of them, time is divided
// into blocks: each block lists the memories that exist during it, and one more list has those that
// exist during more than a few blocks.
class Placed {
 public:
  explicit Placed(Span<const Placement> all);
  // The lowest offset at which p fits beside what exists while p does.
  int64_t free_offset(const Placement& p, int64_t alignment);
  void add(int32_t i, int64_t alignment);
  int64_t comparisons() const { return comparisons_; }

 private:
  using List = SmallVec<int32_t, 4>;  // positions in all_, by offset
  struct Cursor {
    const List* list;
    int64_t at;
  };
  static constexpr int64_t kFewBlocks = 4;

  int64_t block_of(int64_t time) const { return min(time, end_ - 1) * blocks_.size() / end_; }
  bool is_long(const Placement& p) const {
    return block_of(p.death) - block_of(p.birth) >= kFewBlocks;
  }
  // from: the first entry to look at; at: the lowest offset.
  int64_t free_among(const List& list, const Placement& p, int64_t alignment, int64_t from = 0,
                     int64_t at = 0);
  int64_t insert(List& list, int32_t i) const;
  void extend_solid(int64_t inserted, int64_t alignment);
  const List& everything();
  // Moves on to the next memory that exists while p does.
  void advance(Cursor& c, const Placement& p);

  const Span<const Placement> all_;
  int64_t end_ = 1;  // of time
  int64_t comparisons_ = 0;
  SmallVec<List, 1> blocks_;
  List long_lived_, everything_;
  SmallVec<int32_t, 4> unsorted_;  // not yet in everything_
  // (one block) The first entries, which exist until the end and have no room between them: what
  // is born once all of them are lies above them.
  struct {
    int64_t n = 0;
    int64_t end = 0;    // of the last one
    int64_t birth = 0;  // of the youngest
  } solid_;
};

Placed::Placed(Span<const Placement> all) : all_(all) {
  constexpr int64_t kMany = 4096;
  constexpr int64_t kOfBlock = 64;  // memories that begin in a block
  constexpr int64_t kLongShare = 16;
  for (const Placement& p : all) end_ = max(end_, p.birth + 1);
  blocks_.resize(all.n < kMany ? 1 : all.n / kOfBlock);
  int64_t n_long = 0;
  for (const Placement& p : all) n_long += !p.shared && is_long(p);
  // Blocks do not pay where many memories are long-lived.
  if (n_long > all.n / kLongShare) blocks_.resize(1);
}

int64_t Placed::insert(List& list, int32_t i) const {
  const auto before = [&](int32_t a, int32_t b) { return all_[a].offset < all_[b].offset; };
  const int64_t at = std::upper_bound(list.begin(), list.end(), i, before) - list.begin();
  list.insert(at, i);
  return at;
}

// After an entry has been inserted.
void Placed::extend_solid(int64_t inserted, int64_t alignment) {
  const List& list = blocks_[0];
  const auto end_of = [&](int64_t k) {
    return round_up(all_[list[k]].offset + all_[list[k]].bytes, alignment);
  };
  if (inserted < solid_.n) {
    solid_.n = inserted;
    solid_.end = inserted ? end_of(inserted - 1) : 0;
  }
  for (; solid_.n < list.size(); solid_.n++) {
    const Placement& next = all_[list[solid_.n]];
    if (next.death != INT64_MAX || next.offset != solid_.end) return;
    solid_.end = end_of(solid_.n);
    solid_.birth = max(solid_.birth, next.birth);
  }
}

void Placed::add(int32_t i, int64_t alignment) {
  if (blocks_.size() == 1) return extend_solid(insert(blocks_[0], i), alignment);
  const int64_t last = block_of(all_[i].death);
  if (is_long(all_[i])) insert(long_lived_, i);
  else
    for (int64_t b = block_of(all_[i].birth); b <= last; b++) insert(blocks_[b], i);
  unsorted_.push_back(i);
}

// Merges from the end.
const Placed::List& Placed::everything() {
  const auto before = [&](int32_t a, int32_t b) { return all_[a].offset < all_[b].offset; };
  std::sort(unsorted_.begin(), unsorted_.end(), before);
  int64_t old = everything_.size();
  everything_.resize(old + unsorted_.size());
  for (int64_t to = everything_.size(); !unsorted_.empty();) {
    if (old && before(unsorted_.back(), everything_[old - 1])) {
      everything_[--to] = everything_[--old];
    } else {
      everything_[--to] = unsorted_.back();
      unsorted_.pop_back();
    }
  }
  return everything_;
}

void Placed::advance(Cursor& c, const Placement& p) {
  for (; c.at < c.list->size(); c.at++) {
    comparisons_++;
    const Placement& q = all_[(*c.list)[c.at]];
    if (q.birth <= p.death && p.birth <= q.death) return;
  }
}

int64_t Placed::free_offset(const Placement& p, int64_t alignment) {
  if (blocks_.size() == 1) {
    if (p.birth < solid_.birth) return free_among(blocks_[0], p, alignment);
    return free_among(blocks_[0], p, alignment, solid_.n, solid_.end);
  }
  if (is_long(p)) return free_among(everything(), p, alignment);
  Cursor cursors[kFewBlocks + 1];
  int64_t n = 0;
  const int64_t last = block_of(p.death);
  for (int64_t b = block_of(p.birth); b <= last; b++) cursors[n++] = {&blocks_[b], 0};
  cursors[n++] = {&long_lived_, 0};
  for (int64_t k = 0; k < n; k++) advance(cursors[k], p);
  int64_t at = 0;
  for (;;) {
    Cursor* lowest = nullptr;
    const Placement* q = nullptr;
    for (int64_t k = 0; k < n; k++) {
      Cursor& c = cursors[k];
      if (c.at == c.list->size()) continue;
      const Placement& head = all_[(*c.list)[c.at]];
      if (q && q->offset <= head.offset) continue;
      lowest = &c;
      q = &head;
    }
    if (!q || q->offset >= at + p.bytes) return at;
    at = max(at, round_up(q->offset + q->bytes, alignment));
    lowest->at++;
    advance(*lowest, p);
  }
}

int64_t Placed::free_among(const List& list, const Placement& p, int64_t alignment, int64_t from,
                           int64_t at) {
  for (int64_t k = from; k < list.size(); k++) {
    const Placement& q = all_[list[k]];
    comparisons_++;
    if (q.birth > p.death || p.birth > q.death) continue;
    if (q.offset >= at + p.bytes) break;
    at = max(at, round_up(q.offset + q.bytes, alignment));
  }
  return at;
}

// How high memories reach at each time, in a binary tree over time.
class Skyline {
 public:
  explicit Skyline(int64_t end);
  void raise(const Placement& p);
  // The highest end of a memory that exists while p does.
  int64_t over(const Placement& p) const;

 private:
  int64_t leaf(int64_t time) const { return n_ + min(time, n_ - 1); }

  int64_t n_;
  SmallVec<int64_t, 1> some_;  // of each node: over some of its times
  SmallVec<int64_t, 1> all_;   // over all of them
};

Skyline::Skyline(int64_t end) : n_(end) {
  some_.resize(2 * n_);
  all_.resize(2 * n_);
}

void Skyline::raise(const Placement& p) {
  const int64_t top = p.offset + p.bytes;
  int64_t first = leaf(p.birth);
  int64_t last = leaf(p.death);
  for (int64_t i = first; i > 0; i /= 2) some_[i] = max(some_[i], top);
  for (int64_t i = last; i > 0; i /= 2) some_[i] = max(some_[i], top);
  const auto cover = [&](int64_t i) {
    some_[i] = max(some_[i], top);
    all_[i] = max(all_[i], top);
  };
  for (; first <= last; first /= 2, last /= 2) {
    if (first % 2 == 1) cover(first++);
    if (last % 2 == 0) cover(last--);
  }
}

int64_t Skyline::over(const Placement& p) const {
  int64_t first = leaf(p.birth);
  int64_t last = leaf(p.death);
  int64_t top = 0;
  for (int64_t i = first; i > 0; i /= 2) top = max(top, all_[i]);
  for (int64_t i = last; i > 0; i /= 2) top = max(top, all_[i]);
  for (; first <= last; first /= 2, last /= 2) {
    if (first % 2 == 1) top = max(top, some_[first++]);
    if (last % 2 == 0) top = max(top, some_[last--]);
  }
  return top;
}

// Memories that exist at one time, by offset, in lists of a few hundred.
class Existing {
 public:
  explicit Existing(Span<const Placement> all, int64_t alignment)
      : all_(all), alignment_(alignment) {}
  // The lowest offset from `at` on at which there is room.
  int64_t room_for(int64_t bytes, int64_t at) const;
  void add(int32_t i);
  void remove(int32_t i);

 private:
  struct List {
    SmallVec<int32_t, 1> items;
    int64_t largest_gap = 0;  // between two of them
  };
  static constexpr int64_t kFull = 512;

  int64_t first(const List& l) const { return all_[l.items[0]].offset; }
  int64_t end_of(int32_t i) const { return round_up(all_[i].offset + all_[i].bytes, alignment_); }
  int64_t list_of(int32_t i) const;
  void update(List& l) const;

  const Span<const Placement> all_;
  const int64_t alignment_;
  SmallVec<List, 1> lists_;
};

int64_t Existing::room_for(int64_t bytes, int64_t at) const {
  for (const List& l : lists_) {
    const int64_t last = end_of(l.items[l.items.size() - 1]);
    if (last <= at) continue;
    if (first(l) >= at + bytes) return at;
    if (at <= first(l) && l.largest_gap < bytes) {
      at = last;
      continue;
    }
    for (const int32_t i : l.items) {
      if (all_[i].offset >= at + bytes) return at;
      at = max(at, end_of(i));
    }
  }
  return at;
}

void Existing::update(List& l) const {
  l.largest_gap = 0;
  for (int64_t k = 1; k < l.items.size(); k++)
    l.largest_gap = max(l.largest_gap, all_[l.items[k]].offset - end_of(l.items[k - 1]));
}

// The last list that begins at the offset of i or before it; 0 if there is none.
int64_t Existing::list_of(int32_t i) const {
  const auto before = [&](int64_t offset, const List& l) { return offset < first(l); };
  const List* next = std::upper_bound(lists_.begin(), lists_.end(), all_[i].offset, before);
  return max(int64_t(next - lists_.begin()) - 1, int64_t(0));
}

void Existing::add(int32_t i) {
  if (lists_.empty()) {
    lists_.push_back(List());
    lists_[0].items.push_back(i);
    return;
  }
  const int64_t at = list_of(i);
  SmallVec<int32_t, 1>& items = lists_[at].items;
  const auto before = [&](int32_t a, int32_t b) { return all_[a].offset < all_[b].offset; };
  items.insert(std::upper_bound(items.begin(), items.end(), i, before) - items.begin(), i);
  if (items.size() > kFull) {
    List rest;
    rest.items.append({items.data() + kFull / 2, items.size() - kFull / 2});
    items.resize(kFull / 2);
    update(rest);
    update(lists_[at]);
    lists_.insert(at + 1, std::move(rest));
  }
  update(lists_[at]);
}

void Existing::remove(int32_t i) {
  const int64_t at = list_of(i);
  SmallVec<int32_t, 1>& items = lists_[at].items;
  int64_t k = 0;
  while (items[k] != i) k++;
  items.erase(k);
  if (items.empty()) lists_.erase(at);
  else update(lists_[at]);
}

// Places `rest` in the order of time, above what is `placed`. Returns the end of the last one.
int64_t place_in_time(Span<Placement> all, Span<const int32_t> placed, Span<const int32_t> rest,
                      int64_t alignment) {
  int64_t end_of_time = 1;
  for (const Placement& p : all) end_of_time = max(end_of_time, p.birth + 1);
  Skyline skyline(end_of_time);
  for (const int32_t i : placed) skyline.raise(all[i]);
  SmallVec<int32_t, 1> births(rest), deaths(rest);
  std::sort(births.begin(), births.end(), [&](int32_t a, int32_t b) {
    return all[a].birth != all[b].birth ? all[a].birth < all[b].birth : a < b;
  });
  std::sort(deaths.begin(), deaths.end(), [&](int32_t a, int32_t b) {
    return all[a].death != all[b].death ? all[a].death < all[b].death : a < b;
  });
  Existing existing(Span<const Placement>(all.ptr, all.n), alignment);
  int64_t end = 0;
  int64_t n_dead = 0;
  for (const int32_t i : births) {
    Placement& p = all[i];
    for (; all[deaths[n_dead]].death < p.birth; n_dead++) existing.remove(deaths[n_dead]);
    p.offset = existing.room_for(p.bytes, round_up(skyline.over(p), alignment));
    existing.add(i);
    end = max(end, round_up(p.offset + p.bytes, alignment));
  }
  return end;
}

}  // namespace

int64_t place_greedily(Span<Placement> all, int64_t alignment, int64_t max_comparisons) {
  SmallVec<int32_t, 16> order;
  for (int64_t i = 0; i < all.n; i++) {
    if (all[i].shared) continue;
    // Memories of no bytes may be anywhere; those below are at places of their own.
    if (all[i].bytes) order.push_back(int32_t(i));
    else all[i].offset = 0;
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  Placed placed(Span<const Placement>(all.ptr, all.n));
  int64_t end = 0;
  int64_t n = 0;
  for (; n < order.size() && placed.comparisons() < max_comparisons; n++) {
    Placement& p = all[order[n]];
    p.offset = placed.free_offset(p, alignment);
    placed.add(order[n], alignment);
    end = max(end, round_up(p.offset + p.bytes, alignment));
  }
  if (n == order.size()) return end;
  const Span<const int32_t> rest(order.data() + n, order.size() - n);
  return max(end, place_in_time(all, {order.data(), n}, rest, alignment));
}

}  // namespace TT_NS
