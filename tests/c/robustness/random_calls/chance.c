/* Numbers, shapes and dtypes, most of them sensible. */
#include "program.h"

#include <math.h>

uint64_t any(Program* p) {
  uint64_t z = (p->random += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
int below(Program* p, int n) { return (int)(any(p) % (uint64_t)n); }
int one_in(Program* p, int n) { return below(p, n) == 0; }

static int64_t extreme(Program* p) {
  static const int64_t kExtremes[] = {-1,        INT64_MIN,           INT64_MAX, INT64_C(1) << 31,
                                      1 << 20,   INT64_C(1) << 40,    -7,        INT64_MAX - 1,
                                      INT32_MIN, -(INT64_C(1) << 40), 100,       INT64_C(1) << 62};
  return kExtremes[below(p, sizeof kExtremes / sizeof *kExtremes)];
}
int64_t small_int(Program* p) { return one_in(p, 40) ? extreme(p) : below(p, 7) - 1; }
int64_t size_or_not(Program* p) { return one_in(p, 60) ? extreme(p) : below(p, 5); }

double any_real(Program* p) {
  static const double kReals[] = {0, 0.5, 1, -1, 2, 1e-5, 0.1, -0.5, 3, 0.9};
  static const double kOdd[] = {INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e-300, -0.0, 1e18};
  return one_in(p, 25) ? kOdd[below(p, 8)] : kReals[below(p, 10)];
}
tt_scalar any_scalar(Program* p) {
  tt_scalar s;
  memset(&s, 0, sizeof s);
  s.kind = one_in(p, 60) ? (int32_t)extreme(p) : 1 + below(p, 4);
  s.i = s.kind == TT_SCALAR_BOOL ? below(p, 2) : small_int(p);
  s.re = any_real(p);
  s.im = any_real(p);
  return s;
}
tt_dtype any_dtype(Program* p) {
  static const tt_dtype kCommon[] = {TT_F32, TT_F32, TT_F32, TT_F64, TT_F64, TT_I64, TT_BOOL};
  if (one_in(p, 50)) return (tt_dtype)small_int(p);
  return one_in(p, 4) ? 1 + below(p, 12) : kCommon[below(p, 7)];
}
tt_device any_device(Program* p) {
  tt_device d = {TT_CPU, 0};
  if (p->ext.type && one_in(p, 3)) return p->ext;
  if (one_in(p, 8)) d.type = TT_META;
  if (one_in(p, 60)) d.type = (int32_t)small_int(p);
  if (one_in(p, 60)) d.index = (int32_t)small_int(p);
  return d;
}
int any_shape(Program* p, int64_t shape[8]) {
  static const int64_t kShapes[][6] = {
      {0},          {1, 3},    {1, 4},          {2, 3, 4},    {2, 4, 4},
      {3, 2, 3, 4}, {2, 4, 3}, {4, 2, 3, 4, 4}, {2, 1, 3},    {2, 0, 3},
      {2, 5, 1},    {1, 1},    {4, 1, 2, 5, 5}, {3, 2, 4, 4}, {5, 1, 2, 1, 3, 2},
      {1, 6},       {2, 4, 2}, {3, 4, 3, 2}};
  const int64_t* s = kShapes[below(p, sizeof kShapes / sizeof *kShapes)];
  const int ndim = (int)s[0];
  memcpy(shape, s + 1, (size_t)ndim * sizeof *shape);
  return ndim;
}
