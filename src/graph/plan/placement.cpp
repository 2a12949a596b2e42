// Offsets of memories in an arena: the largest first, each at the lowest place that is free while
// it lives.
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
  void add(int32_t i);

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
  int64_t free_among(const List& list, const Placement& p, int64_t alignment) const;
  void insert(List& list, int32_t i) const;
  const List& everything();
  // Moves on to the next memory that exists while p does.
  void advance(Cursor& c, const Placement& p) const;

  const Span<const Placement> all_;
  int64_t end_ = 1;  // of time
  SmallVec<List, 1> blocks_;
  List long_lived_, everything_;
  SmallVec<int32_t, 4> unsorted_;  // not yet in everything_
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

void Placed::insert(List& list, int32_t i) const {
  const auto before = [&](int32_t a, int32_t b) { return all_[a].offset < all_[b].offset; };
  list.insert(std::upper_bound(list.begin(), list.end(), i, before) - list.begin(), i);
}

void Placed::add(int32_t i) {
  const int64_t last = block_of(all_[i].death);
  if (is_long(all_[i])) insert(long_lived_, i);
  else
    for (int64_t b = block_of(all_[i].birth); b <= last; b++) insert(blocks_[b], i);
  if (blocks_.size() > 1) unsorted_.push_back(i);
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

void Placed::advance(Cursor& c, const Placement& p) const {
  for (; c.at < c.list->size(); c.at++) {
    const Placement& q = all_[(*c.list)[c.at]];
    if (q.birth <= p.death && p.birth <= q.death) return;
  }
}

int64_t Placed::free_offset(const Placement& p, int64_t alignment) {
  if (blocks_.size() == 1) return free_among(blocks_[0], p, alignment);
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

int64_t Placed::free_among(const List& list, const Placement& p, int64_t alignment) const {
  int64_t at = 0;
  for (const int32_t i : list) {
    const Placement& q = all_[i];
    if (q.birth > p.death || p.birth > q.death) continue;
    if (q.offset >= at + p.bytes) break;
    at = max(at, round_up(q.offset + q.bytes, alignment));
  }
  return at;
}

}  // namespace

int64_t place_greedily(Span<Placement> all, int64_t alignment) {
  SmallVec<int32_t, 16> order;
  for (int64_t i = 0; i < all.n; i++)
    if (!all[i].shared) order.push_back(int32_t(i));
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : a < b;
  });
  Placed placed(Span<const Placement>(all.ptr, all.n));
  int64_t end = 0;
  for (const int32_t i : order) {
    all[i].offset = placed.free_offset(all[i], alignment);
    placed.add(i);
    end = max(end, round_up(all[i].offset + all[i].bytes, alignment));
  }
  return end;
}

}  // namespace TT_NS
