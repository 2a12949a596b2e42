// sort_rows, draw_by_weight. Elements become 64-bit keys that order as they do, so that one loop sorts every dtype: by
// insertion if they are few, else by radix from the lowest byte (LSD), which is stable and skips bytes that all share.
#include "cpu/sort.h"

#include "cpu/reduce_load.h"
#include "plan/sort_plan.h"

TT_ISA_BEGIN

constexpr int64_t kKeyBlock = 512;

// Of an IEEE number's bits: as unsigned integers they order as the numbers; both zeros are one, all nans the last.
TT_INLINE uint64_t float_key(uint64_t bits) {
  const uint64_t sign = uint64_t(1) << 63, infinity = 0x7ff0000000000000u, size = bits & ~sign;
  if (size > infinity) return ~uint64_t(0);
  return size == 0 ? sign : bits & sign ? ~bits : bits | sign;
}

// The keys of n elements, `stride` bytes apart. 16- and 32-bit floats order as their doubles.
TT_NOINLINE void make_keys(const SortPlan& p, uint64_t* key, const char* x, int64_t stride, int64_t n) {
  alignas(64) double wide[kKeyBlock];
  alignas(64) float f[kKeyBlock];
  if (p.dtype <= TT_I64) {
    load_i64(reinterpret_cast<int64_t*>(key), x, stride, n, p.dtype);
    for (int64_t i = 0; i < n; i++) key[i] ^= uint64_t(1) << 63;
  } else {
    if (p.dtype == TT_F64) {
      load_raw8(wide, x, stride, n, p.dtype);
    } else {
      load_f32(f, x, stride, n, p.dtype);
      for (int64_t i = 0; i < n; i++) wide[i] = double(f[i]);
    }
    for (int64_t i = 0; i < n; i++) key[i] = float_key(bit_cast<uint64_t>(wide[i]));
  }
  const uint64_t flip = p.descending ? ~uint64_t(0) : 0;
  for (int64_t i = 0; i < n; i++) key[i] ^= flip;
}

// The `room` first items of those that come, in order.
struct Insertion {
  SortItem item[kSortFew];
  int64_t n = 0;
  TT_INLINE void take(uint64_t key, int64_t index, int64_t room) {
    if (n == room && key >= item[n - 1].key) return;
    int64_t i = n < room ? n++ : n - 1;
    for (; i > 0 && item[i - 1].key > key; i--) item[i] = item[i - 1];
    item[i] = {key, index};
  }
};

// Sorts a, with b as a second buffer; returns the one that holds the result.
TT_NOINLINE const SortItem* radix_sort(SortItem* a, SortItem* b, int64_t n) {
  int64_t count[8][256];
  __builtin_memset(count, 0, sizeof count);
  for (int64_t i = 0; i < n; i++)
    for (int d = 0; d < 8; d++) count[d][a[i].key >> (8 * d) & 255]++;
  for (int d = 0; d < 8; d++) {
    if (count[d][a[0].key >> (8 * d) & 255] == n) continue;
    int64_t at = 0;
    for (int v = 0; v < 256; v++) {
      const int64_t here = count[d][v];
      count[d][v] = at, at += here;
    }
    for (int64_t i = 0; i < n; i++) b[count[d][a[i].key >> (8 * d) & 255]++] = a[i];
    SortItem* const t = a;
    a = b, b = t;
  }
  return a;
}

TT_NOINLINE void deliver(const SortPlan& p, int64_t row, const char* x, const SortItem* item) {
  const int64_t size = kItemSize[p.dtype], stride = p.inner * size, at = row / p.inner * p.k * p.inner + row % p.inner;
  for (int64_t i = 0; i < p.k; i++) p.indices[at + i * p.inner] = item[i].index;
  if (!p.values) return;
  char* to = p.values + at * size;
  for (int64_t i = 0; i < p.k; i++, to += stride) {
    const char* from = x + item[i].index * stride;
    switch (size) {
      case 1:
        *to = *from;
        break;
      case 2:
        __builtin_memcpy(to, from, 2);
        break;
      case 4:
        __builtin_memcpy(to, from, 4);
        break;
      default:
        __builtin_memcpy(to, from, 8);
    }
  }
}

TT_NOINLINE void sort_row(const SortPlan& p, int64_t row, SortItem* room) {
  const int64_t size = kItemSize[p.dtype], stride = p.inner * size;
  const char* x = p.in + (row / p.inner * p.n * p.inner + row % p.inner) * size;
  alignas(64) uint64_t key[kKeyBlock];
  Insertion few;
  for (int64_t i = 0; i < p.n; i += kKeyBlock) {
    const int64_t n = p.n - i < kKeyBlock ? p.n - i : kKeyBlock;
    make_keys(p, key, x + i * stride, stride, n);
    if (room)
      for (int64_t j = 0; j < n; j++) room[i + j] = {key[j], i + j};
    else
      for (int64_t j = 0; j < n; j++) few.take(key[j], i + j, p.k);
  }
  deliver(p, row, x, room ? radix_sort(room, room + p.n, p.n) : few.item);
}

// The first position whose sum exceeds x; a weight of 0 is never drawn.
TT_INLINE int64_t position_of(const double* sums, int64_t n, double x) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (sums[middle] > x)
      high = middle;
    else
      low = middle + 1;
  }
  while (low > 0 && sums[low] == sums[low - 1]) low--;  // rounding took x to the whole sum
  return low;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(sort_rows)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SortPlan& p = *static_cast<const SortPlan*>(plan);
  char* room = p.slot_bytes ? p.workspace + begin / p.run.grain[0] * p.slot_bytes : nullptr;
  for (int64_t row = begin; row < end; row++) sort_row(p, row, reinterpret_cast<SortItem*>(room));
  return TT_OK;
}

TT_KERNEL(draw_by_weight)(const void* plan, int64_t begin, int64_t end) noexcept {
  const DrawPlan& p = *static_cast<const DrawPlan*>(plan);
  const int64_t blocks = (p.samples + kDrawBlock - 1) / kDrawBlock;
  for (int64_t u = begin; u < end; u++) {
    if (p.run.stage == 0) {
      double* sums = p.sums + u * p.n;
      for (int64_t i = 1; i < p.n; i++) sums[i] += sums[i - 1];
      continue;
    }
    const int64_t row = u / blocks, first = u % blocks * kDrawBlock, rest = p.samples - first;
    const double *sums = p.sums + row * p.n, *uniform = p.uniform + row * p.samples + first;
    int64_t* out = p.out + row * p.samples + first;
    for (int64_t i = 0; i < (rest < kDrawBlock ? rest : kDrawBlock); i++)
      out[i] = position_of(sums, p.n, uniform[i] * sums[p.n - 1]);
  }
  return TT_OK;
}

TT_ENTRY_END
