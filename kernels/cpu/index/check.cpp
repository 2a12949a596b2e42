// index_check: finds the first index out of range. index_offsets: also converts indices to offsets.
//   index: dim_size[ndim] of any integer dtype; first_bad: a position; offsets: [n]
#include "kernels/cpu/index/index.h"

#include "kernels/cpu/simd/load.h"
#include "plan/index_plan.h"

TT_ISA_BEGIN

constexpr int64_t kBlock = 1024;

// Reads the indices in order, as int64.
struct IndexWalk {
  const IndexCheckPlan& p;
  const char* at;
  int64_t coordinate[kMaxPlanDims];

  IndexWalk(const IndexCheckPlan& plan, int64_t position) : p(plan), at(plan.index) {
    for (int32_t d = 0; d < p.ndim; d++) {
      coordinate[d] = position % p.dim_size[d];
      position /= p.dim_size[d];
      at += coordinate[d] * p.stride[d];
    }
  }
  // Returns the next n indices: in place if they are adjacent int64 and `copies` is false, else
  // copied to out.
  const int64_t* next(int64_t* out, int64_t n, bool copies) {
    const bool direct = p.index_dtype == TT_I64 && p.stride[0] == 8;
    if (!copies && direct && n < p.dim_size[0] - coordinate[0]) {
      const int64_t* there = reinterpret_cast<const int64_t*>(at);
      coordinate[0] += n;
      at += 8 * n;
      return there;
    }
    const int64_t* const first = out;
    while (n) {
      const int64_t left = p.dim_size[0] - coordinate[0];
      const int64_t run = min(left, n);
      load_i64(out, at, p.stride[0], run, p.index_dtype);
      out += run;
      n -= run;
      at += run * p.stride[0];
      coordinate[0] += run;
      for (int32_t d = 0; d < p.ndim && coordinate[d] == p.dim_size[d]; d++) {
        at -= p.dim_size[d] * p.stride[d];
        coordinate[d] = 0;
        if (d + 1 < p.ndim) {
          coordinate[d + 1]++;
          at += p.stride[d + 1];
        }
      }
    }
    return first;
  }
};

// Lowers *first_bad to position; other threads do so at the same time.
inline void report(int64_t* first_bad, int64_t position) {
  int64_t seen = atomic_load(first_bad, kRelaxed);
  while (position < seen &&
         !atomic_compare_exchange(first_bad, &seen, position, kRelaxed, kRelaxed)) {}
}

// Returns whether all v are in [low, size), or `allowed` unless that is kNoSkip.
TT_NOINLINE bool all_inside(const IndexCheckPlan& p, const int64_t* v, int64_t n) {
  const uint64_t low = uint64_t(p.low);
  const uint64_t width = uint64_t(p.size) - low;
  const int64_t allowed = p.allowed;
  uint64_t bad = 0;
  for (int64_t k = 0; k < n; k++)
    bad |= uint64_t((uint64_t(v[k]) - low >= width) & ((v[k] != allowed) | (allowed == kNoSkip)));
  return !bad;
}

// Checks chunks [begin, end). If kCopies, calls f(v, i, n) with a copy of the indices at
// [i, i + n), bad ones set to 0.
template <bool kCopies, class F>
inline int32_t check_chunks(const IndexCheckPlan& p, int64_t begin, int64_t end, const F& f) {
  const int64_t last = min(end * kIndexChunk, p.n);
  IndexWalk walk(p, begin * kIndexChunk);
  alignas(64) int64_t copy[kBlock];
  for (int64_t i = begin * kIndexChunk; i < last; i += kBlock) {
    const int64_t n = min(last - i, kBlock);
    const int64_t* const v = walk.next(copy, n, kCopies);
    if (!all_inside(p, v, n)) {
      for (int64_t k = n - 1; k >= 0; k--)
        if (!all_inside(p, v + k, 1)) {
          report(p.first_bad, i + k);
          if (kCopies) copy[k] = 0;
        }
    }
    if (kCopies) f(copy, i, n);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(index_check)(const void* plan, int64_t begin, int64_t end) noexcept {
  return check_chunks<false>(*static_cast<const IndexCheckPlan*>(plan), begin, end,
                             [](int64_t*, int64_t, int64_t) {});
}

TT_KERNEL(index_offsets)(const void* plan, int64_t begin, int64_t end) noexcept {
  const IndexCheckPlan& p = *static_cast<const IndexCheckPlan*>(plan);
  return check_chunks<true>(p, begin, end, [&](int64_t* v, int64_t i, int64_t n) {
    int64_t* out = p.offsets + i;
    for (int64_t k = 0; k < n; k++) v[k] = (v[k] + (v[k] < 0 ? p.size : 0)) * p.step;
    if (p.add) {
      for (int64_t k = 0; k < n; k++) out[k] += v[k];
    } else {
      memcpy(out, v, size_t(n) * 8);
    }
  });
}

TT_ENTRY_END
