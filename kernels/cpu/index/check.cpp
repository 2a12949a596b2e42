// index_check, index_offsets, nonzero_count, nonzero_write, fill_arange.
#include "kernels/cpu/index/index.h"

#include "kernels/cpu/simd/load.h"
#include "plan/index_plan.h"

TT_ISA_BEGIN

constexpr int64_t kBlock = 1024;

// The indices of positions [from, from + n) as int64.
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
  void next(int64_t* out, int64_t n) {
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
  }
};

inline void report(int64_t* first_bad, int64_t position) {
  int64_t seen = __atomic_load_n(first_bad, __ATOMIC_RELAXED);
  while (position < seen && !__atomic_compare_exchange_n(first_bad, &seen, position, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

TT_NOINLINE bool all_inside(const IndexCheckPlan& p, const int64_t* v, int64_t n) {
  const uint64_t low = uint64_t(p.low);
  const uint64_t width = uint64_t(p.size) - low;
  const int64_t allowed = p.allowed;
  uint64_t bad = 0;
  for (int64_t k = 0; k < n; k++)
    bad |= uint64_t((uint64_t(v[k]) - low >= width) & ((v[k] != allowed) | (allowed == kNoSkip)));
  return !bad;
}

template <class F>
inline int32_t check_chunks(const IndexCheckPlan& p, int64_t begin, int64_t end, const F& f) {
  const int64_t last = min(end * kIndexChunk, p.n);
  IndexWalk walk(p, begin * kIndexChunk);
  alignas(64) int64_t v[kBlock];
  for (int64_t i = begin * kIndexChunk; i < last; i += kBlock) {
    const int64_t n = min(last - i, kBlock);
    walk.next(v, n);
    if (!all_inside(p, v, n)) {
      for (int64_t k = n - 1; k >= 0; k--)
        if (!all_inside(p, v + k, 1)) {
          report(p.first_bad, i + k);
          v[k] = 0;
        }
    }
    f(v, i, n);
  }
  return TT_OK;
}

TT_INLINE void put_position(const NonzeroPlan& p, int64_t* out, int64_t position) {
  for (int32_t d = p.ndim - 1; d > 0; position /= p.size[d--])
    out[d * p.dim_stride] = position % p.size[d];
  *out = position;
}

template <class T> inline void write_arange(const ArangePlan& p, int64_t from, int64_t to) {
  T* out = reinterpret_cast<T*>(p.out);
  for (int64_t i = from; i < to; i++) {
    if constexpr (T(0.5) != 0) out[i] = T(p.start + double(i) * p.step);
    else out[i] = T(uint64_t(p.start_int) + uint64_t(i) * uint64_t(p.step_int));
  }
}

inline void write_arange_narrow(const ArangePlan& p, int64_t from, int64_t to) {
  alignas(64) float v[kBlock];
  for (int64_t i = from; i < to; i += kBlock) {
    const int64_t n = min(to - i, kBlock);
    for (int64_t k = 0; k < n; k++) v[k] = float(p.start + double(i + k) * p.step);
    store_f32(p.out + i * 2, 2, v, n, p.dtype);
  }
}

template <class R> inline void write_arange_complex(const ArangePlan& p, int64_t from, int64_t to) {
  Complex<R>* out = reinterpret_cast<Complex<R>*>(p.out);
  for (int64_t i = from; i < to; i++) out[i] = {R(p.start + double(i) * p.step), 0};
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(index_check)(const void* plan, int64_t begin, int64_t end) noexcept {
  return check_chunks(*static_cast<const IndexCheckPlan*>(plan), begin, end,
                      [](int64_t*, int64_t, int64_t) {});
}

TT_KERNEL(index_offsets)(const void* plan, int64_t begin, int64_t end) noexcept {
  const IndexCheckPlan& p = *static_cast<const IndexCheckPlan*>(plan);
  return check_chunks(p, begin, end, [&](int64_t* v, int64_t i, int64_t n) {
    int64_t* out = p.offsets + i;
    for (int64_t k = 0; k < n; k++) v[k] = (v[k] + (v[k] < 0 ? p.size : 0)) * p.step;
    if (p.add) {
      for (int64_t k = 0; k < n; k++) out[k] += v[k];
    } else {
      __builtin_memcpy(out, v, size_t(n) * 8);
    }
  });
}

TT_KERNEL(nonzero_count)(const void* plan, int64_t begin, int64_t end) noexcept {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  if (p.run.stage == 1) {
    int64_t start = 0;
    for (int64_t c = 0; c * kNonzeroChunk < p.n; c++) {
      const int64_t count = p.starts[c];
      p.starts[c] = start;
      start += count;
    }
    *p.total = start;
    return TT_OK;
  }
  const int64_t item = kItemSize[p.dtype];
  alignas(64) uint8_t hit[kBlock];
  for (int64_t c = begin; c < end; c++) {
    const int64_t last = (c + 1) * kNonzeroChunk < p.n ? (c + 1) * kNonzeroChunk : p.n;
    int64_t count = 0;
    for (int64_t i = c * kNonzeroChunk; i < last; i += kBlock) {
      const int64_t n = min(last - i, kBlock);
      load_logical(hit, p.x + i * item, item, n, p.dtype);
      int32_t sum = 0;
      for (int64_t k = 0; k < n; k++) sum += hit[k];
      count += sum;
    }
    p.starts[c] = count;
  }
  return TT_OK;
}

TT_KERNEL(nonzero_write)(const void* plan, int64_t begin, int64_t end) noexcept {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  const int64_t item = kItemSize[p.dtype];
  alignas(64) uint8_t hit[kBlock];
  int32_t found[kBlock];
  for (int64_t c = begin; c < end; c++) {
    const int64_t last = (c + 1) * kNonzeroChunk < p.n ? (c + 1) * kNonzeroChunk : p.n;
    int64_t* out = p.out + p.starts[c] * p.row_stride;
    int64_t left = (last < p.n ? p.starts[c + 1] : *p.total) - p.starts[c];
    for (int64_t i = c * kNonzeroChunk; i < last; i += kBlock) {
      const int64_t n = min(last - i, kBlock);
      load_logical(hit, p.x + i * item, item, n, p.dtype);
      int64_t hits = 0;
      for (int64_t k = 0; k < n; k++) {
        found[hits] = int32_t(k);
        hits += hit[k];
      }
      if (hits > left) hits = left;
      left -= hits;
      for (int64_t k = 0; k < hits; k++, out += p.row_stride) put_position(p, out, i + found[k]);
    }
    for (; left > 0; left--, out += p.row_stride) put_position(p, out, 0);
  }
  return TT_OK;
}

TT_KERNEL(fill_arange)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ArangePlan& p = *static_cast<const ArangePlan*>(plan);
  const int64_t from = begin * kArangeChunk;
  const int64_t to = min(end * kArangeChunk, p.n);
  switch (p.dtype) {
    case TT_BOOL:
      for (int64_t i = from; i < to; i++) p.out[i] = char(p.start_int + i * p.step_int != 0);
      break;
    case TT_U8:
    case TT_I8: write_arange<uint8_t>(p, from, to); break;
    case TT_I16: write_arange<uint16_t>(p, from, to); break;
    case TT_I32: write_arange<uint32_t>(p, from, to); break;
    case TT_I64: write_arange<uint64_t>(p, from, to); break;
    case TT_F32: write_arange<float>(p, from, to); break;
    case TT_F64: write_arange<double>(p, from, to); break;
    case TT_C64: write_arange_complex<float>(p, from, to); break;
    case TT_C128: write_arange_complex<double>(p, from, to); break;
    default: write_arange_narrow(p, from, to);
  }
  return TT_OK;
}

TT_ENTRY_END
