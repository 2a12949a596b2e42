#include "core/shape.h"

namespace TT_NS {

int64_t checked_numel(Ints sizes, Dtype dtype, const char* arg) {
  if (sizes.n > kMaxDims)
    fail_arg(TT_SHAPE, arg, "{} has {} dims, at most {} are supported", arg, sizes.n, kMaxDims);
  int64_t n = 1;
  int64_t bytes;
  bool zero = false;
  for (int64_t s : sizes) {
    if (s < 0) fail_arg(TT_SHAPE, arg, "{} is {}: sizes must not be negative", arg, sizes);
    zero |= s == 0;
  }
  for (int64_t s : sizes)  // zeros are skipped: strides must not overflow either
    if (mul_overflow(n, s ? s : 1, &n))
      fail_arg(TT_SHAPE, arg, "{} is {}: the number of elements overflows", arg, sizes);
  if (zero) return 0;
  if (mul_overflow(n, item_size(dtype), &bytes) || bytes > (int64_t(1) << 62))
    fail_arg(TT_SHAPE, arg, "{} is {}: the number of bytes overflows", arg, sizes);
  return n;
}

int64_t numel_of(Ints sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

Shape channels_last_strides(Ints sizes) {
  Shape out(sizes);
  out[1] = 1;
  int64_t step = sizes[1];
  for (int64_t d = sizes.n - 1; d >= 2; d--) {
    out[d] = step;
    step *= sizes[d];
  }
  out[0] = step;
  return out;
}

int64_t wrap_dim(int64_t dim, int64_t ndim, const char* arg) {
  int64_t n = ndim ? ndim : 1;
  if (dim < -n || dim >= n)
    fail_arg(TT_INDEX, arg, "{} is {}, must be in [{}, {}]", arg, dim, -n, n - 1);
  return dim < 0 ? dim + n : dim;
}

uint64_t dim_mask(Ints dims, int64_t ndim, bool empty_is_all, const char* arg) {
  if (dims.empty() && empty_is_all) return ndim == 64 ? ~uint64_t(0) : (uint64_t(1) << ndim) - 1;
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t(1) << wrap_dim(d, ndim, arg);
    if (mask & bit) fail_arg(TT_INVALID_ARG, arg, "{} is {}: dim {} appears twice", arg, dims, d);
    mask |= bit;
  }
  return mask;
}

Shape broadcast_shapes(Ints a, Ints b, const char* a_name, const char* b_name) {
  Shape out;
  int64_t n = max(a.n, b.n);
  out.resize(n);
  for (int64_t i = 1; i <= n; i++) {
    int64_t x = i <= a.n ? a[a.n - i] : 1;
    int64_t y = i <= b.n ? b[b.n - i] : 1;
    if (x != y && x != 1 && y != 1)
      fail_arg(TT_SHAPE, b_name,
               "{} is {}, {} is {}: sizes {} and {} at dim {} must be equal, or one of them 1",
               a_name, a, b_name, b, x, y, -i);
    out[n - i] = x == 1 ? y : x;
  }
  return out;
}

bool broadcastable_to(Ints from, Ints to) {
  if (from.n > to.n) return false;
  for (int64_t i = 1; i <= from.n; i++)
    if (from[from.n - i] != 1 && from[from.n - i] != to[to.n - i]) return false;
  return true;
}

Shape infer_size(Ints sizes, int64_t numel, const char* arg) {
  Shape out(sizes);
  int64_t known = 1;
  int64_t hole = -1;
  bool zero = false;
  if (sizes.n > kMaxDims)
    fail_arg(TT_SHAPE, arg, "{} has {} dims, at most {} are supported", arg, sizes.n, kMaxDims);
  for (int64_t d = 0; d < sizes.n; d++) {
    if (sizes[d] == -1) {
      if (hole >= 0) fail_arg(TT_SHAPE, arg, "{} is {}: only one size may be -1", arg, sizes);
      hole = d;
    } else if (sizes[d] < 0) {
      fail_arg(TT_SHAPE, arg, "{} is {}: sizes must not be negative", arg, sizes);
    } else if (mul_overflow(known, sizes[d] ? sizes[d] : 1,
                            &known)) {  // as in checked_numel
      fail_arg(TT_SHAPE, arg, "{} is {}: the number of elements overflows", arg, sizes);
    }
    zero |= sizes[d] == 0;
  }
  if (zero) known = 0;
  if (hole >= 0 && known == 0)
    fail_arg(TT_SHAPE, arg, "{} is {}: -1 is ambiguous for {} elements", arg, sizes, numel);
  bool fits = hole >= 0 ? numel % known == 0 : numel == known;
  if (!fits) fail_arg(TT_SHAPE, arg, "{} is {}: does not fit {} elements", arg, sizes, numel);
  if (hole >= 0) out[hole] = numel / known;
  return out;
}

// Groups source dims that are contiguous with each other and splits each group into target dims.
bool view_strides(Ints sizes, Ints strides, Ints to, int64_t* out) {
  if (numel_of(sizes) == 0) {
    contiguous_strides(to, out);
    return true;
  }
  int64_t v = to.n - 1;
  int64_t chunk = 1;
  int64_t view_chunk = 1;
  int64_t base = 1;
  if (sizes.n) base = strides[sizes.n - 1];
  for (int64_t d = sizes.n - 1; d >= 0; d--) {
    chunk *= sizes[d];
    bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != chunk * base);
    if (!ends) continue;
    while (v >= 0 && (view_chunk < chunk || to[v] == 1)) {
      out[v] = view_chunk * base;
      view_chunk *= to[v--];
    }
    if (view_chunk != chunk) return false;
    if (d > 0) {
      base = strides[d - 1];
      chunk = view_chunk = 1;
    }
  }
  if (!sizes.n)
    for (; v >= 0; v--) out[v] = 1;
  return v == -1;
}

Shape usable_strides(Ints sizes, Ints strides) {
  Shape out(strides);
  for (int64_t d = 0; d < out.size(); d++)
    if (sizes[d] <= 1 && out[d] > kMaxIdleStride) out[d] = kMaxIdleStride;
  return out;
}

bool is_contiguous(Ints sizes, Ints strides) {
  int64_t step = 1;
  for (int64_t d = sizes.n - 1; d >= 0; d--) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1 && strides[d] != step) return false;
    step *= sizes[d];
  }
  return true;
}

// Lists the dims of size > 1 by ascending stride. Returns their number.
static int64_t sorted_dims(Ints sizes, Ints strides, int64_t* order) {
  int64_t n = 0;
  for (int64_t d = 0; d < sizes.n; d++) {
    if (sizes[d] == 1) continue;
    int64_t i = n++;
    for (; i > 0 && strides[order[i - 1]] > strides[d]; i--) order[i] = order[i - 1];
    order[i] = d;
  }
  return n;
}

bool is_dense(Ints sizes, Ints strides) {
  if (numel_of(sizes) == 0) return true;
  int64_t order[kMaxDims];
  int64_t step = 1;
  int64_t n = sorted_dims(sizes, strides, order);
  for (int64_t i = 0; i < n; i++) {
    if (strides[order[i]] != step) return false;
    step *= sizes[order[i]];
  }
  return true;
}

// Returns 1 if dimension a must be outside of b in memory, -1 if b must be outside of a, 0 if the
// operands do not decide.
static int compare_dims(Ints sizes, Span<const Shape> operands, int64_t a, int64_t b) {
  for (const Shape& strides : operands) {
    const int64_t x = strides[a];
    const int64_t y = strides[b];
    if (x == 0 || y == 0) continue;
    if (x != y) return x > y ? 1 : -1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

Shape strides_like(Ints sizes, Span<const Shape> operands) {
  int64_t order[kMaxDims];  // innermost first
  for (int64_t i = 0; i < sizes.n; i++) order[i] = sizes.n - 1 - i;
  for (int64_t i = 1; i < sizes.n; i++) {
    int64_t at = i;  // of the dimension that moves inwards
    for (int64_t j = i - 1; j >= 0; j--) {
      const int c = compare_dims(sizes, operands, order[j], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      const int64_t inner = order[j];
      order[j] = order[at];
      order[at] = inner;
      at = j;
    }
  }
  Shape out(sizes);
  int64_t step = 1;
  for (int64_t i = 0; i < sizes.n; i++) {
    out[order[i]] = step;
    // Sizes that cannot be counted are refused where memory is allocated for them.
    (void)mul_overflow(step, max<int64_t>(sizes[order[i]], 1), &step);
  }
  return out;
}
Shape strides_like(Ints sizes, Ints strides) {
  const Shape one[1] = {Shape(strides)};
  return strides_like(sizes, Span<const Shape>(one));
}

bool may_overlap_self(Ints sizes, Ints strides) {
  if (numel_of(sizes) <= 1) return false;
  int64_t order[kMaxDims];
  int64_t reach = 0;
  int64_t n = sorted_dims(sizes, strides, order);
  for (int64_t i = 0; i < n; i++) {
    if (strides[order[i]] <= reach) return true;
    reach += (sizes[order[i]] - 1) * strides[order[i]];
  }
  return false;
}

int64_t dim_to_slice(Ints sizes, Ints strides) {
  int64_t best = -1;
  bool best_suffices = false;
  Shape slice(sizes);
  for (int64_t d = 0; d < sizes.n; d++) {
    if (sizes[d] <= 1) continue;
    if (strides[d] == 0) return d;
    slice[d] = 1;
    const bool suffices = !may_overlap_self(slice, strides);
    slice[d] = sizes[d];
    const bool smaller = best < 0 || sizes[d] < sizes[best];
    if (suffices == best_suffices ? !smaller : best_suffices) continue;
    best = d;
    best_suffices = suffices;
  }
  return best;
}

}  // namespace TT_NS
