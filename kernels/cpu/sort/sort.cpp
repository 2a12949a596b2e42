// sort_rows: the first k of n elements in order, with their indices.
//   in: (outer, n, inner), values (may be NULL) and indices: (outer, k, inner)
//
// Elements become 64-bit keys of the same order, so that one loop sorts every dtype. By path:
//   kSortRows    each row by itself: by insertion if few results are kept, else by LSD radix sort,
//                which is stable and skips bits that all keys share
//   kSortFirst   one long row, few results: the first k of each chunk, then of these
//   otherwise    one long row: splitters from a sample of keys divide it into buckets, each of
//                which is radix-sorted in the cache
#include "kernels/cpu/sort/sort.h"

#include "kernels/cpu/sort/keys.h"

TT_ISA_BEGIN

TT_NOINLINE void make_keys(const SortPlan& p, uint64_t* key, const char* x, int64_t stride,
                           int64_t n) {
  make_keys(p.dtype, key, x, stride, n);
  const uint64_t flip = p.descending ? ~uint64_t(0) : 0;
  for (int64_t i = 0; i < n; i++) key[i] ^= flip;
}

TT_INLINE const char* row_in(const SortPlan& p, int64_t row) {
  return p.in + (row / p.inner * p.n * p.inner + row % p.inner) * kItemSize[p.dtype];
}

// Writes results [first, last) of a row.
TT_NOINLINE void write_results(const SortPlan& p, int64_t row, const SortItem* item, int64_t first,
                               int64_t last) {
  const int64_t size = kItemSize[p.dtype];
  const int64_t stride = p.inner * size;
  const int64_t n = last - first;
  const int64_t at = row / p.inner * p.k * p.inner + row % p.inner + first * p.inner;
  for (int64_t i = 0; i < n; i++) p.indices[at + i * p.inner] = item[i].index;
  if (!p.values) return;
  const char* x = row_in(p, row);
  char* to = p.values + at * size;
  for (int64_t i = 0; i < n; i++, to += stride) {
    const char* from = x + item[i].index * stride;
    switch (size) {
      case 1: *to = *from; break;
      case 2: memcpy(to, from, 2); break;
      case 4: memcpy(to, from, 4); break;
      default: memcpy(to, from, 8);
    }
  }
}

// Calls f(keys, i, n) for blocks [i, i + n) of elements [begin, end) of a row.
template <class F>
TT_INLINE void for_keys(const SortPlan& p, int64_t row, int64_t begin, int64_t end, const F& f) {
  const int64_t stride = p.inner * kItemSize[p.dtype];
  const char* x = row_in(p, row);
  alignas(64) uint64_t key[kKeyBlock];
  for (int64_t i = begin; i < end; i += kKeyBlock) {
    const int64_t n = min(end - i, kKeyBlock);
    make_keys(p, key, x + i * stride, stride, n);
    f(key, i, n);
  }
}

TT_NOINLINE void take_first(const SortPlan& p, int64_t row, int64_t begin, int64_t end,
                            Insertion* few) {
  for_keys(p, row, begin, end, [&](const uint64_t* key, int64_t i, int64_t n) {
    for (int64_t j = 0; j < n; j++) few->take(key[j], i + j, p.k);
  });
}

TT_NOINLINE void sort_row(const SortPlan& p, int64_t row, SortItem* room) {
  if (!room) {
    Insertion few;
    take_first(p, row, 0, p.n, &few);
    return write_results(p, row, few.item, 0, p.k);
  }
  for_keys(p, row, 0, p.n, [&](const uint64_t* key, int64_t i, int64_t n) {
    for (int64_t j = 0; j < n; j++) room[i + j] = {key[j], i + j};
  });
  if (p.dtype <= TT_I64) lower_keys(room, p.n);
  write_results(p, row, radix_sort(room, room + p.n, p.n), 0, p.k);
}

// ---- one long row ----

TT_INLINE int64_t chunk_end(const SortPlan& p, int64_t c) {
  return c + 1 < p.n_chunks ? (c + 1) * p.chunk : p.n;
}

TT_NOINLINE void first_of_chunk(const SortPlan& p, int64_t c) {
  Insertion few;
  take_first(p, p.row, c * p.chunk, chunk_end(p, c), &few);
  memcpy(p.workspace + size_t(c * p.k) * sizeof(SortItem), few.item,
         size_t(few.n) * sizeof(SortItem));
}

TT_NOINLINE void merge_first(const SortPlan& p) {
  const SortItem* item = reinterpret_cast<const SortItem*>(p.workspace);
  Insertion few;
  for (int64_t c = 0; c < p.n_chunks; c++, item += p.k) {
    const int64_t size = chunk_end(p, c) - c * p.chunk;
    const int64_t n = min(size, p.k);
    for (int64_t i = 0; i < n; i++) few.take(item[i].key, item[i].index, p.k);
  }
  write_results(p, p.row, few.item, 0, p.k);
}

// Stage 0: splitters from keys at scattered positions, as an implicit binary tree. No two are
// equal: a frequent key gives the splitters key and key + 1, whose bucket holds nothing else.
TT_NOINLINE void sample_splitters(const SortPlan& p, const SortRoom& room) {
  const bool first = p.buckets == 2;
  const int64_t samples = first ? kSortFirstSample : p.buckets * kSortSample;
  const int64_t stride = p.inner * kItemSize[p.dtype];
  const int64_t part = p.n / samples;
  const char* x = row_in(p, p.row);
  for (int64_t i = 0; i < samples; i++) {
    const int64_t at =
        i * part + int64_t((uint64_t(i) * 0x9e3779b97f4a7c15u >> 40) % uint64_t(part));
    make_keys(p, &room.items[i].key, x + at * stride, stride, 1);
  }
  const SortItem* sorted = radix_sort(room.items, room.other, samples);
  if (first) {  // the first bucket misses the k items once in thousands of calls, and is then both
    const int64_t rank = int64_t(1.25 * double(p.k) / double(p.n) * double(samples)) + 12;
    const uint64_t key = sorted[rank].key;
    room.splitter[1] = key + (key != ~uint64_t(0));
    return;
  }
  uint64_t before = 0;
  for (int64_t b = 1; b < p.buckets; b++) {
    const uint64_t key = sorted[b * kSortSample].key;
    const uint64_t next = before + (before != ~uint64_t(0));
    before = max(next, key);
    const int32_t depth = trailing_zeros(uint64_t(b));  // levels above the leaves
    room.splitter[(p.buckets + b) >> (depth + 1)] = before;
  }
}

// bucket[j] = the number of splitters <= key[j], plus p.buckets in higher bits; n <= kKeyBlock.
TT_NOINLINE void find_buckets(const SortPlan& p, const uint64_t* splitter, const uint64_t* key,
                              uint8_t* bucket, int64_t n) {
  alignas(64) uint64_t node[kKeyBlock];
  for (int64_t j = 0; j < n; j++) node[j] = 1;
  for (int64_t level = 1; level < p.buckets; level *= 2)
    for (int64_t j = 0; j < n; j++) node[j] = 2 * node[j] + uint64_t(key[j] >= splitter[node[j]]);
  for (int64_t j = 0; j < n; j++) bucket[j] = uint8_t(node[j]);
}

// Stage 1: the bucket of each element of a chunk, and their counts.
TT_NOINLINE void count_chunk(const SortPlan& p, const SortRoom& room, int64_t c) {
  int64_t count[kSortMaxBuckets] = {};
  const uint8_t mask = uint8_t(p.buckets - 1);
  const uint64_t only = room.splitter[1];
  for_keys(p, p.row, c * p.chunk, chunk_end(p, c), [&](const uint64_t* key, int64_t i, int64_t n) {
    uint8_t* bucket = room.bucket + i;
    if (p.buckets == 2) {
      int64_t second = 0;
      for (int64_t j = 0; j < n; j++) {
        bucket[j] = key[j] >= only;
        second += key[j] >= only;
      }
      count[0] += n - second;
      count[1] += second;
      return;
    }
    find_buckets(p, room.splitter, key, bucket, n);
    for (int64_t j = 0; j < n; j++) count[bucket[j] &= mask]++;
  });
  memcpy(room.counts + c * p.buckets, count, size_t(p.buckets) * sizeof *count);
}

// Moves the few items of bucket 0.
TT_NOINLINE void fill_first(const SortPlan& p, const SortRoom& room, int64_t c, SortItem* to) {
  const int64_t stride = p.inner * kItemSize[p.dtype];
  const int64_t end = chunk_end(p, c);
  for (int64_t i = c * p.chunk; i < end; i++) {
    const void* found = memchr(room.bucket + i, 0, size_t(end - i));
    if (!found) return;
    i = static_cast<const uint8_t*>(found) - room.bucket;
    make_keys(p, &to->key, row_in(p, p.row) + i * stride, stride, 1);
    (to++)->index = i;
  }
}

// Stage 2: moves a chunk's items to their buckets. Buckets that start behind the first k results
// are not filled.
TT_NOINLINE void fill_buckets(const SortPlan& p, const SortRoom& room, int64_t c) {
  int64_t at[kSortMaxBuckets] = {};
  int64_t sum[kSortMaxBuckets] = {};
  int64_t start = 0;
  int64_t wanted = 0;
  for (int64_t k = 0; k < p.n_chunks; k++) {
    const int64_t* count = room.counts + k * p.buckets;
    for (int64_t b = 0; b < p.buckets; b++) sum[b] += count[b];
    for (int64_t b = 0; b < p.buckets && k < c; b++) at[b] += count[b];
  }
  for (int64_t b = 0; b < p.buckets; b++) {
    wanted += start < p.k;
    if (c == 0) room.starts[b] = start;
    at[b] += start;
    start += sum[b];
  }
  if (c == 0) room.starts[p.buckets] = start;
  const bool few = room.counts[c * p.buckets] < p.chunk / 16;
  if (p.buckets == 2 && wanted == 1 && few) return fill_first(p, room, c, room.items + at[0]);
  for_keys(p, p.row, c * p.chunk, chunk_end(p, c), [&](const uint64_t* key, int64_t i, int64_t n) {
    const uint8_t* bucket = room.bucket + i;
    for (int64_t j = 0; j < n; j++)
      if (bucket[j] < wanted) room.items[at[bucket[j]]++] = {key[j], i + j};
  });
}

// Stage 3: sorts a bucket and writes its results.
TT_NOINLINE void sort_bucket(const SortPlan& p, const SortRoom& room, int64_t b) {
  const int64_t start = room.starts[b];
  const int64_t end = room.starts[b + 1];
  if (start == end || start >= p.k) return;
  const SortItem* item = radix_sort(room.items + start, room.other + start, end - start);
  write_results(p, p.row, item, start, min(end, p.k));
}

enum Stage { kSample, kCount, kFill, kSort };

TT_NOINLINE void sort_long(const SortPlan& p, int64_t unit) {
  if (p.path == kSortFirst) return p.run.stage == 0 ? first_of_chunk(p, unit) : merge_first(p);
  const SortRoom room = sort_room(p);
  switch (p.run.stage) {
    case kSample: return sample_splitters(p, room);
    case kCount: return count_chunk(p, room, unit);
    case kFill: return fill_buckets(p, room, unit);
    default: return sort_bucket(p, room, unit);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(sort_rows)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SortPlan& p = *static_cast<const SortPlan*>(plan);
  for (int64_t unit = begin; unit < end && p.path != kSortRows; unit++) sort_long(p, unit);
  if (p.path != kSortRows) return TT_OK;
  char* room = p.slot_bytes ? p.workspace + begin / p.run.grain[0] * p.slot_bytes : nullptr;
  for (int64_t row = begin; row < end; row++) sort_row(p, row, reinterpret_cast<SortItem*>(room));
  return TT_OK;
}

TT_ENTRY_END
