// select_rows: the elements of some ranks of each row, which is not sorted for them.
//   in: (outer, n, inner); values, indices: (outer, m, inner)
//
// The keys of a row are written to the workspace. A rank is found by Floyd and Rivest's bracket:
// two elements of a sorted sample, between which the rank most likely is; the keys between them are
// kept and those below are counted, until few are left.
#include "kernels/cpu/sort/keys.h"
#include "kernels/cpu/sort/sort.h"

TT_ISA_BEGIN

constexpr int64_t kMaxSample = 256;
constexpr int32_t kMaxRounds = 24;  // then the rank is found bit by bit

// Where an element of a row is: its key, and how many elements of this key precede it in the row.
struct Place {
  uint64_t key;
  int64_t nth;
};

// Sorts n keys, of which there are few.
TT_INLINE void insert_sort(uint64_t* key, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const uint64_t x = key[i];
    int64_t k = i;
    for (; k > 0 && key[k - 1] > x; k--) key[k] = key[k - 1];
    key[k] = x;
  }
}

// Writes the keys in [low, high] to `to`, which may be `from`, and returns their number; *less
// receives the number of smaller keys.
TT_NOINLINE int64_t keep_between(const uint64_t* from, uint64_t* to, int64_t n, uint64_t low,
                                 uint64_t high, int64_t* less) {
  const uint64_t width = high - low;
  int64_t kept = 0;
  int64_t below = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t x = from[i];
    to[kept] = x;
    kept += x - low <= width;
    below += x < low;
  }
  *less = below;
  return kept;
}

// Finds rank k in time that grows with n for any keys.
TT_NOINLINE Place find_by_bits(const uint64_t* key, int64_t n, int64_t k) {
  uint64_t found = 0;
  for (int32_t bit = 63; bit >= 0; bit--) {
    const uint64_t one = uint64_t(1) << bit;
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) zeros += (key[i] ^ found) < one;
    if (k < zeros) continue;
    k -= zeros;
    found |= one;
  }
  return {found, k};
}

// The bracket of rank k: of equal elements of the sample, or around a single one, it is one key.
TT_NOINLINE void pick_bracket(const uint64_t* key, int64_t n, int64_t k, bool narrow, uint64_t* low,
                              uint64_t* high) {
  uint64_t sample[kMaxSample];
  const int64_t size = n >= 32768 ? kMaxSample : 32;
  const int64_t margin = n >= 32768 ? 20 : 6;
  for (int64_t i = 0; i < size; i++) {
    const uint64_t scattered = uint64_t(i) * 0x9e3779b97f4a7c15u >> 40;
    sample[i] = key[i * (n / size) + int64_t(scattered % uint64_t(n / size))];
  }
  insert_sort(sample, size);
  const int64_t middle = int64_t(double(k) / double(n) * double(size));
  const int64_t at = clamp<int64_t>(middle, 1, size - 2);
  *low = at > margin ? sample[at - margin] : 0;
  *high = at + margin < size ? sample[at + margin] : ~uint64_t(0);
  if (narrow || sample[at] == sample[at - 1] || sample[at] == sample[at + 1])
    *low = *high = sample[at];
}

// Finds rank k of n keys; room has the size of the keys.
TT_NOINLINE Place find_rank(const uint64_t* key, uint64_t* room, int64_t n, int64_t k) {
  const uint64_t* left = key;  // the keys in [low, high], among which rank k is
  int64_t n_left = n;
  uint64_t low = 0;
  uint64_t high = ~uint64_t(0);
  bool narrow = false;
  for (int32_t round = 0; n_left > kSortFew; round++) {
    if (round == kMaxRounds) return find_by_bits(left, n_left, k);
    uint64_t from, to;
    pick_bracket(left, n_left, k, narrow, &from, &to);
    int64_t less;
    const int64_t kept = keep_between(left, room, n_left, from, to, &less);
    narrow = kept > n_left / 2;
    left = room;
    if (k >= less && k < less + kept) {
      k -= less;
      n_left = kept;
      low = max(low, from);
      high = min(high, to);
      if (low == high) return {low, k};
      continue;
    }
    if (k < less) {
      high = from - 1;
    } else {
      low = to + 1;
      k -= less + kept;
    }
    n_left = keep_between(key, room, n, low, high, &less);
  }
  uint64_t few[kSortFew];
  memcpy(few, left, size_t(n_left) * sizeof *few);
  insert_sort(few, n_left);
  int64_t first = k;
  while (first > 0 && few[first - 1] == few[k]) first--;
  return {few[k], k - first};
}

TT_NOINLINE int64_t count_key(const uint64_t* key, int64_t n, uint64_t x) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += key[i] == x;
  return count;
}

// The element after `place` in the order of the sorted row, which must not be the last one.
TT_NOINLINE Place next_place(const uint64_t* key, int64_t n, Place place) {
  if (place.nth + 1 < count_key(key, n, place.key)) return {place.key, place.nth + 1};
  uint64_t next = ~uint64_t(0);
  for (int64_t i = 0; i < n; i++) next = key[i] > place.key && key[i] < next ? key[i] : next;
  return {next, 0};
}

TT_NOINLINE int64_t index_of(const uint64_t* key, int64_t n, Place place) {
  int64_t i = 0;
  for (; i + kKeyBlock <= n; i += kKeyBlock) {
    const int64_t here = count_key(key + i, kKeyBlock, place.key);
    if (place.nth < here) break;
    place.nth -= here;
  }
  for (; i < n; i++)
    if (key[i] == place.key && place.nth-- == 0) return i;
  return 0;
}

// The last element of the first longest run of equal elements; every nan is a run.
TT_NOINLINE int64_t mode_of(const SortItem* item, int64_t n, bool floats) {
  int64_t longest = 0;
  int64_t found = 0;
  int64_t begin = 0;
  for (int64_t i = 0; i < n; i++) {
    const bool last = i + 1 == n || item[i].key != item[i + 1].key;
    if (!last && !(floats && item[i].key == kNanKey)) continue;
    if (i + 1 - begin > longest) {
      longest = i + 1 - begin;
      found = item[i].index;
    }
    begin = i + 1;
  }
  return found;
}

struct SelectRow {
  const SelectPlan& p;
  int64_t row;

  int64_t stride() const { return p.inner * kItemSize[p.dtype]; }
  const char* in() const {
    return p.in + (row / p.inner * p.n * p.inner + row % p.inner) * kItemSize[p.dtype];
  }
  TT_NOINLINE void read(uint64_t* key) const {
    for (int64_t i = 0; i < p.n; i += kKeyBlock)
      make_keys(p.dtype, key + i, in() + i * stride(), stride(), min(p.n - i, kKeyBlock));
  }
  // Writes element i of the row as result j.
  TT_NOINLINE void write(int64_t j, int64_t i) const {
    const int64_t at = (row / p.inner * p.m + j) * p.inner + row % p.inner;
    const int64_t size = kItemSize[p.dtype];
    p.indices[at] = i;
    memcpy(p.values + at * size, in() + i * stride(), size_t(size));
  }

  TT_NOINLINE void ranks(const uint64_t* key, uint64_t* room) const {
    const int64_t nans =
        p.dtype > TT_I64 && p.kind != kSelectRanks ? count_key(key, p.n, kNanKey) : 0;
    int64_t before = -2;
    Place place{0, 0};
    for (int64_t j = 0; j < p.m; j++) {
      int64_t k = (p.n - 1) / 2;
      if (p.kind == kSelectRanks || p.kind == kSelectNanOrRanks)
        k = clamp<int64_t>(p.ranks[row * p.rank_step + j], 0, p.n - 1);
      if (nans && p.kind == kSelectNanOrRanks) k = p.n - 1;
      if (nans && p.kind == kSelectMedian) k = p.n - nans;
      if (p.kind == kSelectNanMedian) k = max<int64_t>(p.n - nans - 1, 0) / 2;
      if (k == before + 1) place = next_place(key, p.n, place);
      else if (k != before) place = find_rank(key, room, p.n, k);
      before = k;
      write(j, index_of(key, p.n, place));
    }
  }
  TT_NOINLINE void run(char* workspace) const {
    uint64_t few[2 * kSortFew];
    uint64_t* key = workspace ? reinterpret_cast<uint64_t*>(workspace) : few;
    read(key);
    ranks(key, key + p.n);
  }
  TT_NOINLINE void mode(char* workspace) const {
    SortItem few[2 * kSortFew];
    SortItem* item = workspace ? reinterpret_cast<SortItem*>(workspace) : few;
    uint64_t key[kKeyBlock];
    for (int64_t i = 0; i < p.n; i += kKeyBlock) {
      const int64_t n = min(p.n - i, kKeyBlock);
      make_keys(p.dtype, key, in() + i * stride(), stride(), n);
      for (int64_t k = 0; k < n; k++) item[i + k] = {key[k], i + k};
    }
    const bool floats = p.dtype > TT_I64;
    if (!floats) lower_keys(item, p.n);
    write(0, mode_of(radix_sort(item, item + p.n, p.n), p.n, floats));
  }
};

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(select_rows)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SelectPlan& p = *static_cast<const SelectPlan*>(plan);
  char* room = p.slot_bytes ? p.workspace + begin / p.run.grain[0] * p.slot_bytes : nullptr;
  for (int64_t row = begin; row < end; row++) {
    const SelectRow select{p, row};
    if (p.kind == kSelectMode) select.mode(room);
    else select.run(room);
  }
  return TT_OK;
}

TT_ENTRY_END
