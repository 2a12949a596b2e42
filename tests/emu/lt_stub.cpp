// A cuBLASLt that computes column-major products of f32 and f64 one by one, from what descriptors
// say, and counts how often it chose an algorithm. It refuses what tt must not ask for.
#include <stdint.h>
#include <string.h>

namespace {

struct Layout {
  int32_t type;
  int64_t rows, columns, ld, batch = 1, offset = 0;
};
struct Product {
  int32_t compute, transpose[2] = {0, 0}, epilogue = 1;
  const void* bias = nullptr;
};
struct Preference {
  uint32_t reductions = 7;
};
struct Result {
  uint64_t algorithm[8];
  size_t workspace;
  int32_t state;
  float waves;
  int32_t reserved[4];
};
constexpr int32_t kInvalid = 7;

template <class T> T element(const void* p, const Layout& l, int64_t b, int64_t i, int64_t j) {
  return static_cast<const T*>(p)[b * l.offset + i + j * l.ld];
}
template <class T> void multiply(const Product& p, const void* alpha, const void* x,
                                 const Layout& lx, const void* y, const Layout& ly,
                                 const void* beta, const void* c, const Layout& lc, void* d,
                                 const Layout& ld) {
  const T factor = *static_cast<const T*>(alpha);
  const T addend = *static_cast<const T*>(beta);
  const int64_t depth = p.transpose[0] ? lx.rows : lx.columns;
  for (int64_t b = 0; b < ld.batch; b++)
    for (int64_t j = 0; j < ld.columns; j++)
      for (int64_t i = 0; i < ld.rows; i++) {
        T sum = 0;
        for (int64_t k = 0; k < depth; k++)
          sum += element<T>(x, lx, b, p.transpose[0] ? k : i, p.transpose[0] ? i : k) *
                 element<T>(y, ly, b, p.transpose[1] ? j : k, p.transpose[1] ? k : j);
        sum *= factor;
        if (addend != 0) sum += addend * element<T>(c, lc, b, i, j);
        if (p.epilogue == 4) sum += static_cast<const T*>(p.bias)[i];
        static_cast<T*>(d)[b * ld.offset + i + j * ld.ld] = sum;
      }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int lt_stub_choices;
EXPORT int lt_stub_products;
EXPORT int lt_stub_tf32;
int lt_stub_choices;
int lt_stub_products;
int lt_stub_tf32;  // products that may be computed in TF32

EXPORT int32_t cublasLtCreate(void** handle) {
  *handle = &lt_stub_choices;
  return 0;
}
EXPORT int32_t cublasLtMatmulDescCreate(Product** out, int32_t compute, int32_t scale) {
  const bool is_f32 = (compute == 68 || compute == 77) && scale == 0;
  if (!is_f32 && !(compute == 70 && scale == 1)) return kInvalid;
  *out = new Product{compute};
  return 0;
}
EXPORT int32_t cublasLtMatmulDescDestroy(Product* p) {
  delete p;
  return 0;
}
EXPORT int32_t cublasLtMatmulDescSetAttribute(Product* p, int32_t a, const void* v, size_t n) {
  if (a == 8 && n == sizeof p->bias) memcpy(&p->bias, v, n);
  else if (a == 7 && n == 4) memcpy(&p->epilogue, v, n);
  else if ((a == 3 || a == 4) && n == 4) memcpy(&p->transpose[a - 3], v, n);
  else return kInvalid;
  return 0;
}
EXPORT int32_t cublasLtMatrixLayoutCreate(Layout** out, int32_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  if (ld < int64_t(rows)) return kInvalid;
  *out = new Layout{type, int64_t(rows), int64_t(columns), ld};
  return 0;
}
EXPORT int32_t cublasLtMatrixLayoutDestroy(Layout* l) {
  delete l;
  return 0;
}
EXPORT int32_t cublasLtMatrixLayoutSetAttribute(Layout* l, int32_t a, const void* v, size_t n) {
  int32_t batch = 1;
  if (a == 5 && n == 4) memcpy(&batch, v, n);
  else if (a == 6 && n == 8) memcpy(&l->offset, v, n);
  else return kInvalid;
  if (a == 5) l->batch = batch;
  return 0;
}
EXPORT int32_t cublasLtMatmulPreferenceCreate(Preference** out) {
  *out = new Preference;
  return 0;
}
EXPORT int32_t cublasLtMatmulPreferenceDestroy(Preference* p) {
  delete p;
  return 0;
}
EXPORT int32_t cublasLtMatmulPreferenceSetAttribute(Preference* p, int32_t a, const void* v,
                                                    size_t n) {
  if (a == 3 && n == 4) memcpy(&p->reductions, v, n);
  else if (!(a == 1 && n == 8) && !(a >= 5 && a <= 8 && n == 4)) return kInvalid;
  return 0;
}
EXPORT int32_t cublasLtMatmulAlgoGetHeuristic(void*, Product*, Layout*, Layout*, Layout*, Layout*,
                                              Preference* preference, int32_t, Result* results,
                                              int32_t* found) {
  lt_stub_choices++;
  memset(results, 0, sizeof *results);
  results->algorithm[0] = 42;
  *found = preference->reductions & 1 ? 0 : 1;  // sums in place differ from run to run
  return 0;
}
EXPORT int32_t cublasLtMatmul(void*, Product* p, const void* alpha, const void* x, Layout* lx,
                              const void* y, Layout* ly, const void* beta, const void* c,
                              Layout* lc, void* d, Layout* ld, const uint64_t* algorithm, void*,
                              size_t, void*) {
  if (algorithm[0] != 42 || ld->batch != lx->batch || ld->batch != ly->batch) return kInvalid;
  lt_stub_products++;
  lt_stub_tf32 += p->compute == 77;
  if (p->compute == 70) multiply<double>(*p, alpha, x, *lx, y, *ly, beta, c, *lc, d, *ld);
  else multiply<float>(*p, alpha, x, *lx, y, *ly, beta, c, *lc, d, *ld);
  return 0;
}
