/* Comparisons of tensors, with the tolerances of the op table. */
#include "checks.h"

#include <float.h>
#include <math.h>

/* Tolerances of floating dtypes; complex dtypes have those of their parts. */
typedef struct Limits {
  double epsilon, largest, smallest; /* normal */
} Limits;
static Limits limits_of(tt_dtype d) {
  switch (d) {
    case TT_F64:
    case TT_C128: return (Limits){DBL_EPSILON, DBL_MAX, DBL_MIN};
    case TT_F32:
    case TT_C64: return (Limits){FLT_EPSILON, FLT_MAX, FLT_MIN};
    case TT_F16: return (Limits){0x1p-10, 65504, 0x1p-14};
    case TT_BF16: return (Limits){0x1p-7, FLT_MAX, FLT_MIN};
    default: return (Limits){0, FLT_MAX, FLT_MIN};
  }
}

int have_equal_shapes(const tt_tensor* a, const tt_tensor* b) {
  if (tt_tensor_ndim(a) != tt_tensor_ndim(b)) return 0;
  for (int64_t d = 0; d < tt_tensor_ndim(a); d++)
    if (tt_tensor_shape(a)[d] != tt_tensor_shape(b)[d]) return 0;
  return 1;
}
void check_shape(const Sample* s, const tt_tensor* t, const int64_t* shape, int ndim) {
  if (tt_tensor_ndim(t) != ndim) lost(s, "number of dimensions", (double)tt_tensor_ndim(t), ndim);
  for (int d = 0; d < ndim; d++)
    if (tt_tensor_shape(t)[d] != shape[d])
      lost(s, "size", (double)tt_tensor_shape(t)[d], (double)shape[d]);
}

/* x in an integer dtype: the low bits. */
static double wrapped(double x, tt_dtype d) {
  const double range = ldexp(1, (int)(8 * tt_dtype_size(d)));
  if (d == TT_BOOL || d == TT_U8 || fabs(x) < range / 2) return x;
  x = fmod(x, range);
  if (x >= range / 2) return x - range;
  return x < -range / 2 ? x + range : x;
}
static int is_equal(double got, double want) { return got == want || (isnan(got) && isnan(want)); }
/* At the end of the range, rounding may give the largest value or infinity. */
static int is_equal_at_the_end(double got, double want, const Limits* l) {
  if (fabs(want) <= l->largest * (1 - 2 * l->epsilon)) return 0;
  return got == copysign(INFINITY, want) || fabs(got) >= l->largest * (1 - 4 * l->epsilon);
}
static double largest_of(const double* values,
                         int64_t n) { /* largest absolute value of the finite elements */
  double largest = 0;
  for (int64_t i = 0; i < n; i++)
    if (fabs(values[i]) > largest && !isinf(values[i])) largest = fabs(values[i]);
  return largest;
}
void check_close(const Sample* s, const tt_tensor* t, const double* want, int64_t n, double ulps,
                 double share) {
  const tt_dtype dtype = tt_tensor_dtype(t);
  const Limits l = limits_of(dtype);
  const double shared = share * (1 + largest_of(want, n));
  double* got = values_of(t);
  for (int64_t i = 0; i < n; i++) {
    const double wanted = is_integer(dtype) ? wrapped(trunc(want[i]), dtype) : want[i];
    const double allowed = l.epsilon * (ulps * fabs(wanted) + shared) + l.smallest * l.epsilon;
    if (is_equal(got[i], wanted) || fabs(got[i] - wanted) <= allowed) continue;
    if (!is_integer(dtype) && is_equal_at_the_end(got[i], wanted, &l)) continue;
    print_error("element %lld of %s\n", (long long)i, tt_dtype_name(dtype));
    lost(s, "value", got[i], wanted);
  }
  free(got);
}

static int have_equal_bits(const tt_tensor* a, const tt_tensor* b) {
  const size_t bytes = (size_t)(tt_tensor_numel(b) * tt_dtype_size(tt_tensor_dtype(b)));
  char* of_a = malloc(bytes + 1);
  char* of_b = malloc(bytes + 1);
  OK(tt_tensor_read(c, a, of_a, (int64_t)bytes));
  OK(tt_tensor_read(c, b, of_b, (int64_t)bytes));
  const int equal = memcmp(of_a, of_b, bytes) == 0;
  free(of_a);
  free(of_b);
  return equal;
}
void check_same(const Sample* s, const tt_tensor* a, const tt_tensor* b, double ulps,
                double share) {
  if (tt_tensor_dtype(a) != tt_tensor_dtype(b))
    lost(s, "dtype", tt_tensor_dtype(a), tt_tensor_dtype(b));
  check_shape(s, a, tt_tensor_shape(b), (int)tt_tensor_ndim(b));
  if (ulps == 0 && have_equal_bits(a, b)) return;
  double* want = values_of(b);
  check_close(s, a, want, tt_tensor_numel(b), ulps, share);
  free(want);
}
