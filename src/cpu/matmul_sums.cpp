#include "cpu/matmul_sums.h"

#include "core/half.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kRun = 128;  // numbers added at a time

template <class T> T load(const char* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}
template <class T> void store(char* p, T v) { memcpy(p, &v, sizeof v); }

// total[i] is the sum of the i-th of n numbers over all pieces, which are `step` numbers apart.
template <class T, class S>
void add_run(const T* x, int64_t step, int64_t pieces, int64_t n, S* total) {
  for (int64_t i = 0; i < n; i++) total[i] = 0;
  for (int64_t s = 0; s < pieces; s++, x += step)
    for (int64_t i = 0; i < n; i++) total[i] += S(x[i]);
}

double real(const char* p, int32_t dtype) {
  switch (dtype) {
    case TT_F32: return double(load<float>(p));
    case TT_F64: return load<double>(p);
    case TT_F16: return double(f16_to_float(load<uint16_t>(p)));
    default: return double(bf16_to_float(load<uint16_t>(p)));
  }
}
void put_real(char* p, int32_t dtype, double v) {
  switch (dtype) {
    case TT_F32: return store(p, float(v));
    case TT_F64: return store(p, v);
    case TT_F16: return store(p, float_to_f16(float(v)));
    default: return store(p, float_to_bf16(float(v)));
  }
}

// Stores one result: v holds its parts, d is its addend or NULL.
void finish(const MatmulPlan& p, const double* v, const char* d, char* c) {
  if (!matmul_is_complex(p.dtype)) {
    const double sum = p.scaled ? v[0] * p.alpha.re : v[0];
    const double addend = d ? p.beta.re * real(d, p.dtype) : 0;
    return put_real(c, p.dtype, sum + addend);
  }
  const int32_t part = p.dtype == TT_C64 ? TT_F32 : TT_F64;
  double re = v[0];
  double im = v[1];
  if (p.scaled) {
    re = v[0] * p.alpha.re - v[1] * p.alpha.im;
    im = v[0] * p.alpha.im + v[1] * p.alpha.re;
  }
  if (d) {
    const double x = real(d, part);
    const double y = real(d + kItemSize[part], part);
    re += x * p.beta.re - y * p.beta.im;
    im += x * p.beta.im + y * p.beta.re;
  }
  put_real(c, part, re);
  put_real(c + kItemSize[part], part, im);
}
void finish(const MatmulPlan& p, const uint64_t* v, const char* d, char* c) {
  uint64_t sum = *v * uint64_t(p.alpha.i);
  if (p.dtype == TT_I32) {
    if (d) sum += uint64_t(p.beta.i) * load<uint32_t>(d);
    return store(c, uint32_t(sum));
  }
  if (d) sum += uint64_t(p.beta.i) * load<uint64_t>(d);
  store(c, sum);
}

// T: type of the sums, `parts` per result; S: type in which they are added.
template <class T, class S>
void add_rows(const MatmulSums& w, int64_t begin, int64_t end, int64_t parts) {
  const MatmulPlan& p = *w.plan;
  const int64_t step = p.batch * p.m * p.n * parts;
  const int64_t size = kItemSize[p.dtype];
  const T* x = reinterpret_cast<const T*>(w.sums) + begin * p.n * parts;
  S total[kRun];
  for (int64_t r = begin; r < end; r++) {
    char* c = p.c + r % p.m * p.c_row * size;
    const char* d = p.d ? p.d + r % p.m * p.d_row * size : nullptr;
    for (int64_t i = 0, index = r / p.m; i < p.n_batch; i++) {
      const int64_t at = index % p.batch_dim[i].size;
      index /= p.batch_dim[i].size;
      c += at * p.batch_dim[i].c;
      if (d) d += at * p.batch_dim[i].d;
    }
    for (int64_t j = 0; j < p.n; j += kRun / 2) {
      const int64_t n = matmul_min(kRun / 2, p.n - j);
      add_run(x, step, w.pieces, n * parts, total);
      x += n * parts;
      for (int64_t i = 0; i < n; i++)
        finish(p, total + i * parts, d ? d + (j + i) * p.d_col * size : nullptr,
               c + (j + i) * p.c_col * size);
    }
  }
}

}  // namespace

int32_t matmul_add_pieces(const void* sums, int64_t begin, int64_t end) noexcept {
  const MatmulSums& w = *static_cast<const MatmulSums*>(sums);
  const int64_t parts = matmul_is_complex(w.plan->dtype) ? 2 : 1;
  switch (w.plan->dtype) {
    case TT_F64:
    case TT_C128: add_rows<double, double>(w, begin, end, parts); break;
    case TT_I32: add_rows<int32_t, uint64_t>(w, begin, end, parts); break;
    case TT_I64: add_rows<int64_t, uint64_t>(w, begin, end, parts); break;
    default: add_rows<float, double>(w, begin, end, parts);
  }
  return TT_OK;
}

}  // namespace TT_NS
