// cuBLASLt computes D = alpha op(X) op(Y) + beta C of column-major matrices. A row-major c (m, n)
// is a column-major D (n, m), so that X is b transposed and Y is a transposed.
#include "kernels/cuda/matmul/lt.h"

#include <string.h>

#include "kernels/cuda/device.h"
#include "kernels/cuda/library.h"

namespace TT_NS::cuda::cublas_lt {
namespace {

// The part of cublasLt.h that is used here; its values do not change between versions.
using Handle = void*;
using Descriptor = void*;
enum DataType : int32_t { kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14 };
enum ComputeType : int32_t { kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77 };
enum Operation : int32_t { kAsItIs = 0, kTransposed = 1 };
enum LayoutAttribute : int32_t { kBatchCount = 5, kBatchOffset = 6 };
enum ProductAttribute : int32_t { kTransposeX = 3, kTransposeY = 4, kEpilogue = 7, kBias = 8 };
enum PreferenceAttribute : int32_t {
  kMaxWorkspace = 1,
  kReductions = 3,
  kAlignmentX = 5,
  kAlignmentY = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};
constexpr uint32_t kReductionsInWorkspace = 2 | 4;  // not 1, which is in place
constexpr int32_t kEpilogueBias = 4;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int32_t state;
  float waves;
  int32_t reserved[4];
};

struct Library {
  int32_t (*create)(Handle*);
  int32_t (*product_new)(Descriptor*, int32_t compute, int32_t scale);
  int32_t (*product_free)(Descriptor);
  int32_t (*product_set)(Descriptor, int32_t attribute, const void* value, size_t bytes);
  int32_t (*layout_new)(Descriptor*, int32_t type, uint64_t rows, uint64_t columns, int64_t ld);
  int32_t (*layout_free)(Descriptor);
  int32_t (*layout_set)(Descriptor, int32_t attribute, const void* value, size_t bytes);
  int32_t (*preference_new)(Descriptor*);
  int32_t (*preference_free)(Descriptor);
  int32_t (*preference_set)(Descriptor, int32_t attribute, const void* value, size_t bytes);
  int32_t (*heuristic)(Handle, Descriptor product, Descriptor x, Descriptor y, Descriptor c,
                       Descriptor d, Descriptor preference, int32_t requested, Heuristic* results,
                       int32_t* found);
  int32_t (*matmul)(Handle, Descriptor product, const void* alpha, const void* x, Descriptor x_is,
                    const void* y, Descriptor y_is, const void* beta, const void* c,
                    Descriptor c_is, void* d, Descriptor d_is, const Algorithm*, void* workspace,
                    size_t bytes, void* stream);
};

Library g_library;
bool find_all(void* from) {
  Library* const out = &g_library;
  return find_function(from, "cublasLtCreate", &out->create) &&
         find_function(from, "cublasLtMatmulDescCreate", &out->product_new) &&
         find_function(from, "cublasLtMatmulDescDestroy", &out->product_free) &&
         find_function(from, "cublasLtMatmulDescSetAttribute", &out->product_set) &&
         find_function(from, "cublasLtMatrixLayoutCreate", &out->layout_new) &&
         find_function(from, "cublasLtMatrixLayoutDestroy", &out->layout_free) &&
         find_function(from, "cublasLtMatrixLayoutSetAttribute", &out->layout_set) &&
         find_function(from, "cublasLtMatmulPreferenceCreate", &out->preference_new) &&
         find_function(from, "cublasLtMatmulPreferenceDestroy", &out->preference_free) &&
         find_function(from, "cublasLtMatmulPreferenceSetAttribute", &out->preference_set) &&
         find_function(from, "cublasLtMatmulAlgoGetHeuristic", &out->heuristic) &&
         find_function(from, "cublasLtMatmul", &out->matmul);
}

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", nullptr};
constinit OptionalLibrary g_file(kNames, find_all);

// ---- geometry ----

// A column-major operand: op is applied to it.
struct Operand {
  int64_t rows, columns, ld, batch_offset;
  int32_t op;
};
// What a product's descriptors and algorithm depend on.
struct Geometry {
  Operand x, y;
  int64_t n, m, c_ld, c_offset, d_ld, d_offset, batch;
  int64_t alignment;  // of all pointers, up to 256
  int32_t dtype, bias, has_c, device;
  int32_t tf32;  // whether factors may be rounded to TF32
};

bool set_operand(Operand* o, int64_t rows, int64_t columns, int64_t along, int64_t across,
                 int64_t batch_bytes, int64_t item) {
  const bool plain = along == 1 || rows == 1;
  if (!plain && across != 1 && columns != 1) return false;
  o->op = plain ? kAsItIs : kTransposed;
  o->rows = plain ? rows : columns;
  o->columns = plain ? columns : rows;
  o->ld = plain ? across : along;
  if (o->columns == 1 && o->ld < o->rows) o->ld = o->rows;
  o->batch_offset = batch_bytes / item;
  return o->ld >= o->rows && o->ld <= INT32_MAX && batch_bytes % item == 0;
}

bool is_bias(const MatmulPlan& p) {
  return p.d && p.d_row == 0 && p.d_col == 1 && p.beta.re == 1 &&
         (p.n_batch == 0 || p.batch_dim[0].d == 0) && p.m > 1;
}

bool geometry_of(const MatmulPlan& p, Geometry* g) {
  memset(static_cast<void*>(g), 0, sizeof *g);
  const bool real = matmul_is_half(p.dtype) || p.dtype == TT_F32 || p.dtype == TT_F64;
  if (!real || p.n_batch > 1 || p.k == 0 || p.batch > INT32_MAX) return false;
  if (p.math & kOwnMatmul) return false;
  if (p.c_col != 1 && p.n > 1) return false;
  const int64_t item = kItemSize[p.dtype];
  const MatmulBatchDim dim = p.n_batch ? p.batch_dim[0] : MatmulBatchDim{};
  if (!set_operand(&g->x, p.n, p.k, p.b_col, p.b_row, dim.b, item)) return false;
  if (!set_operand(&g->y, p.k, p.m, p.a_col, p.a_row, dim.a, item)) return false;
  g->n = p.n;
  g->m = p.m;
  g->d_ld = p.m == 1 ? p.n : p.c_row;
  g->d_offset = dim.c / item;
  g->c_ld = g->d_ld;
  g->c_offset = g->d_offset;
  g->bias = is_bias(p);
  g->has_c = p.d && !g->bias;
  if (g->has_c) {
    if (p.d_col != 1 && p.n > 1) return false;
    g->c_ld = p.m == 1 ? p.n : p.d_row;
    g->c_offset = dim.d / item;
  }
  g->batch = p.batch;
  g->dtype = p.dtype;
  g->tf32 = p.dtype == TT_F32 && (p.math & kTf32Matmul);
  uint64_t all = 256 | uint64_t(reinterpret_cast<uintptr_t>(p.a)) |
                 uint64_t(reinterpret_cast<uintptr_t>(p.b)) |
                 uint64_t(reinterpret_cast<uintptr_t>(p.c));
  if (p.d) all |= uint64_t(reinterpret_cast<uintptr_t>(p.d));
  g->alignment = int64_t(all & (~all + 1));
  return g->d_ld >= p.n && g->c_ld >= p.n && g->d_ld <= INT32_MAX && g->c_ld <= INT32_MAX;
}

// ---- descriptors, kept by geometry ----

struct Product {
  Geometry geometry;
  Descriptor product, x, y, c, d;
  Algorithm algorithm;
  bool ready;
};

DataType type_of(int32_t dtype) {
  switch (dtype) {
    case TT_F16: return kF16;
    case TT_BF16: return kBf16;
    case TT_F64: return kF64;
    default: return kF32;
  }
}

template <class T> bool set_product(Descriptor d, ProductAttribute a, T value) {
  return g_library.product_set(d, a, &value, sizeof value) == 0;
}
template <class T> bool set_preference(Descriptor d, PreferenceAttribute a, T value) {
  return g_library.preference_set(d, a, &value, sizeof value) == 0;
}
bool make_layout(Descriptor* out, const Geometry& g, int64_t rows, int64_t columns, int64_t ld,
                 int64_t offset) {
  if (g_library.layout_new(out, type_of(g.dtype), uint64_t(rows), uint64_t(columns), ld) != 0)
    return false;
  const int32_t batch = int32_t(g.batch);
  return g.batch == 1 || (g_library.layout_set(*out, kBatchCount, &batch, sizeof batch) == 0 &&
                          g_library.layout_set(*out, kBatchOffset, &offset, sizeof offset) == 0);
}

void release(Product* p) {
  if (p->product) g_library.product_free(p->product);
  const Descriptor layouts[] = {p->x, p->y, p->c, p->d};
  for (Descriptor layout : layouts)
    if (layout) g_library.layout_free(layout);
  memset(static_cast<void*>(p), 0, sizeof *p);
}

ComputeType compute_of(const Geometry& g) {
  if (g.dtype == TT_F64) return kCompute64;
  return g.tf32 ? kComputeTf32 : kCompute32;
}
bool describe(Product* p, const Geometry& g) {
  const DataType scale = g.dtype == TT_F64 ? kF64 : kF32;
  if (g_library.product_new(&p->product, compute_of(g), scale) != 0) return false;
  if (!set_product(p->product, kTransposeX, g.x.op)) return false;
  if (!set_product(p->product, kTransposeY, g.y.op)) return false;
  if (g.bias && !set_product(p->product, kEpilogue, kEpilogueBias)) return false;
  return make_layout(&p->x, g, g.x.rows, g.x.columns, g.x.ld, g.x.batch_offset) &&
         make_layout(&p->y, g, g.y.rows, g.y.columns, g.y.ld, g.y.batch_offset) &&
         make_layout(&p->c, g, g.n, g.m, g.c_ld, g.c_offset) &&
         make_layout(&p->d, g, g.n, g.m, g.d_ld, g.d_offset);
}

bool choose_algorithm(Product* p, Handle handle) {
  Descriptor preference = nullptr;
  if (g_library.preference_new(&preference) != 0) return false;
  bool set = set_preference(preference, kMaxWorkspace, size_t(kWorkspaceBytes)) &&
             set_preference(preference, kReductions, kReductionsInWorkspace);
  const PreferenceAttribute alignments[] = {kAlignmentX, kAlignmentY, kAlignmentC, kAlignmentD};
  for (PreferenceAttribute a : alignments)
    set = set && set_preference(preference, a, uint32_t(p->geometry.alignment));
  Heuristic best = {};
  int32_t found = 0;
  if (set && g_library.heuristic(handle, p->product, p->x, p->y, p->c, p->d, preference, 1, &best,
                                 &found) != 0)
    found = 0;
  g_library.preference_free(preference);
  p->algorithm = best.algorithm;
  return set && found > 0 && best.state == 0;
}

// Sets up a product; one without an algorithm is kept, too, and `ready` stays false.
void set_up(Product* p, const Geometry& g, const void* bias, Handle handle) {
  release(p);
  p->geometry = g;
  p->ready = describe(p, g) && (!g.bias || set_product(p->product, kBias, bias)) &&
             choose_algorithm(p, handle);
}

constexpr uint64_t kProducts = 256;
constexpr uint64_t kProbes = 8;  // products that a geometry may be
Handle g_handles[kMaxLibraryDevices];
Product g_products[kProducts];
int32_t g_busy;  // whether a thread uses what is above

uint64_t hash_of(const Geometry& g) {
  unsigned char bytes[sizeof g];
  memcpy(bytes, &g, sizeof g);
  uint64_t h = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char b : bytes) h = (h ^ b) * 0x100000001b3u;
  return h ^ h >> 32;
}

bool create(Handle* handle) {
  const AllowDuringCapture allow;
  return g_library.create(handle) == 0;
}
// The product of a geometry, which takes the place of another one if it finds none.
Product& product_of(const Geometry& g, const void* bias, Handle handle) {
  const uint64_t first = hash_of(g);
  Product* free = nullptr;
  for (uint64_t i = 0; i < kProbes; i++) {
    Product* const p = &g_products[(first + i) % kProducts];
    if (memcmp(&p->geometry, &g, sizeof g) == 0) return *p;
    if (p->geometry.batch == 0 && !free) free = p;
  }
  Product& p = free ? *free : g_products[first % kProducts];
  const AllowDuringCapture allow;
  set_up(&p, g, bias, handle);
  return p;
}

int32_t launch(const Product& p, const MatmulPlan& plan, Handle handle, void* stream,
               void* workspace) {
  const Geometry& g = p.geometry;
  const double wide[2] = {plan.alpha.re, g.has_c ? plan.beta.re : 0};
  const float narrow[2] = {float(wide[0]), float(wide[1])};
  const bool is_wide = g.dtype == TT_F64;
  const void* const alpha = is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0];
  const void* const beta = is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
  const void* const c = g.has_c ? plan.d : plan.c;
  const int32_t status =
      g_library.matmul(handle, p.product, alpha, plan.b, p.x, plan.a, p.y, beta, c, p.c, plan.c,
                       p.d, &p.algorithm, workspace, size_t(kWorkspaceBytes), stream);
  return status == 0 ? int32_t(TT_OK) : int32_t(TT_NOT_IMPLEMENTED);
}

}  // namespace

void use_library(const char* path) {
  for (Product& p : g_products)
    if (p.product) release(&p);
  memset(g_handles, 0, sizeof g_handles);
  g_file.use(path);
}

bool serves(const MatmulPlan& p) {
  Geometry g;
  return geometry_of(p, &g) && g_file.is_open();
}

int32_t run(const MatmulPlan& plan, void* stream, void* workspace) {
  Geometry g;
  if (!geometry_of(plan, &g) || !g_file.is_open()) return TT_NOT_IMPLEMENTED;
  g.device = library_device();
  if (g.device < 0) return TT_NOT_IMPLEMENTED;
  const LaunchLock lock(&g_busy);
  Handle& handle = g_handles[g.device];
  int32_t status = TT_NOT_IMPLEMENTED;
  if (handle || create(&handle)) {
    const Product& p = product_of(g, plan.d, handle);
    if (p.ready && (!g.bias || set_product(p.product, kBias, static_cast<const void*>(plan.d))))
      status = launch(p, plan, handle, stream, workspace);
  }
  return status;
}

}  // namespace TT_NS::cuda::cublas_lt
