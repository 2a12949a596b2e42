// All operands of cuDNN have channels last, for which its fastest kernels are: x and y are
// described by their strides, which rows of x with padding have; a weight in another order than
// [co][taps][ci], and a result with channels first, are moved.
//
//   workspace   [scratch of the library][weight][result]
#include "kernels/cuda/conv/cudnn.h"

#include <string.h>

#include "kernels/cuda/conv/conv.h"
#include "kernels/cuda/copy/transpose.h"
#include "kernels/cuda/library.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// A weight of any strides, elements.
struct WeightOrder {
  int64_t co, ci, k[kConvDims];  // sizes; co through all groups
  int64_t w_co, w_ci, w_k[kConvDims];
  int64_t elements() const { return co * ci * k[0] * k[1] * k[2]; }
};
template <class Plan> WeightOrder weight_order(const Plan& p) {
  const ConvShape& s = p.s;
  return {s.groups * s.co, s.ci,   {s.k[0], s.k[1], s.k[2]},
          p.w_co,          p.w_ci, {p.w_k[0], p.w_k[1], p.w_k[2]}};
}
// Whether it is [co][taps][ci].
bool is_packed(const WeightOrder& w) {
  const auto fits = [](int64_t size, int64_t stride, int64_t wanted) {
    return size == 1 || stride == wanted;
  };
  const int64_t row = w.k[2] * w.ci;
  return fits(w.ci, w.w_ci, 1) && fits(w.k[2], w.w_k[2], w.ci) && fits(w.k[1], w.w_k[1], row) &&
         fits(w.k[0], w.w_k[0], w.k[1] * row) && fits(w.co, w.w_co, w.k[0] * w.k[1] * row);
}

// Between a weight and packed [co][taps][ci].
template <class E, bool kPacks> __global__ void __launch_bounds__(kThreads)
    move_weight(const __grid_constant__ WeightOrder w, E* weight, E* packed, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_step()) {
    int64_t rest = quotient(i, w.ci);
    int64_t at = (i - rest * w.ci) * w.w_ci;
#pragma unroll
    for (int d = kConvDims - 1; d >= 0; d--) {
      const int64_t above = quotient(rest, w.k[d]);
      at += (rest - above * w.k[d]) * w.w_k[d];
      rest = above;
    }
    at += rest * w.w_co;
    if constexpr (kPacks) packed[i] = weight[at];
    else weight[at] = packed[i];
  }
}

template <bool kPacks> int32_t launch_move(const WeightOrder& w, const char* weight, char* packed,
                                           int64_t item, void* stream) {
  const int64_t n = w.elements();
  const auto launch = [&](auto e) {
    using E = decltype(e);
    return device::launch(move_weight<E, kPacks>, grid_of(n, kThreads), kThreads, 0, stream, w,
                          reinterpret_cast<E*>(const_cast<char*>(weight)),
                          reinterpret_cast<E*>(packed), n);
  };
  if (item == 2) return launch(uint16_t{});
  return item == 4 ? launch(uint32_t{}) : launch(uint64_t{});
}

}  // namespace

namespace cuda::cudnn {
namespace {

// The part of cudnn.h that is used here. Descriptors and handles are pointers; enums are ints.
enum DataType : int32_t { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 9 };
constexpr int32_t kChannelsLast = 1;
enum MathType : int32_t { kDefault = 0, kTensorOp = 1, kFma = 3 };
constexpr int32_t kCrossCorrelation = 1;
constexpr int32_t kDeterministic = 1;
struct Algorithm {
  int32_t number, status;
  float time;
  size_t memory;
  int32_t determinism, math;
  int32_t reserved[3];
};
using Find = int32_t (*)(void* handle, void* a, void* b, void* convolution, void* result,
                         int32_t most, int32_t* n, Algorithm* out);
using Compute = int32_t (*)(void* handle, const void* alpha, void* a_shape, const void* a,
                            void* b_shape, const void* b, void* convolution, int32_t algorithm,
                            void* workspace, size_t bytes, const void* beta, void* result_shape,
                            void* result);
enum Task : int32_t { kForward, kData, kWeight, kTasks };
struct Library {
  int32_t (*create)(void** handle);
  int32_t (*set_stream)(void* handle, void* stream);
  int32_t (*new_tensor)(void**);
  int32_t (*drop_tensor)(void*);
  int32_t (*set_tensor)(void*, int32_t type, int32_t ndim, const int32_t* size,
                        const int32_t* stride);
  int32_t (*new_filter)(void**);
  int32_t (*drop_filter)(void*);
  int32_t (*set_filter)(void*, int32_t type, int32_t format, int32_t ndim, const int32_t* size);
  int32_t (*new_convolution)(void**);
  int32_t (*drop_convolution)(void*);
  int32_t (*set_convolution)(void*, int32_t ndim, const int32_t* pad, const int32_t* stride,
                             const int32_t* dilation, int32_t mode, int32_t type);
  int32_t (*set_groups)(void*, int32_t);
  int32_t (*set_math)(void*, int32_t);
  int32_t (*add)(void* handle, const void* alpha, void* a_shape, const void* a, const void* beta,
                 void* c_shape, void* c);
  Find find[kTasks];
  Compute compute[kTasks];
};
Library g_library;
bool find_all(void* from) {
  Library* const out = &g_library;
  return find_function(from, "cudnnCreate", &out->create) &&
         find_function(from, "cudnnSetStream", &out->set_stream) &&
         find_function(from, "cudnnCreateTensorDescriptor", &out->new_tensor) &&
         find_function(from, "cudnnDestroyTensorDescriptor", &out->drop_tensor) &&
         find_function(from, "cudnnSetTensorNdDescriptor", &out->set_tensor) &&
         find_function(from, "cudnnCreateFilterDescriptor", &out->new_filter) &&
         find_function(from, "cudnnDestroyFilterDescriptor", &out->drop_filter) &&
         find_function(from, "cudnnSetFilterNdDescriptor", &out->set_filter) &&
         find_function(from, "cudnnCreateConvolutionDescriptor", &out->new_convolution) &&
         find_function(from, "cudnnDestroyConvolutionDescriptor", &out->drop_convolution) &&
         find_function(from, "cudnnSetConvolutionNdDescriptor", &out->set_convolution) &&
         find_function(from, "cudnnSetConvolutionGroupCount", &out->set_groups) &&
         find_function(from, "cudnnSetConvolutionMathType", &out->set_math) &&
         find_function(from, "cudnnAddTensor", &out->add) &&
         find_function(from, "cudnnGetConvolutionForwardAlgorithm_v7", &out->find[kForward]) &&
         find_function(from, "cudnnGetConvolutionBackwardDataAlgorithm_v7", &out->find[kData]) &&
         find_function(from, "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                       &out->find[kWeight]) &&
         find_function(from, "cudnnConvolutionForward", &out->compute[kForward]) &&
         find_function(from, "cudnnConvolutionBackwardData", &out->compute[kData]) &&
         find_function(from, "cudnnConvolutionBackwardFilter", &out->compute[kWeight]) &&
         finds_cublas_lt(from);
}
constexpr const char* kNames[] = {"libcudnn.so.9", nullptr};
constinit OptionalLibrary g_file(kNames, find_all);

// ---- geometries ----

struct Geometry {
  ConvShape s;
  int64_t row, pixel;  // of x, elements
  int32_t dtype, task, device;
};
struct Entry {
  Geometry geometry;
  void *x, *y, *bias, *weight, *convolution;
  Algorithm algorithm;
  bool used, ready;
};
constexpr uint64_t kEntries = 256;
constexpr uint64_t kProbes = 4;  // entries that a geometry may be in
Entry g_entries[kEntries];
void* g_handles[kMaxLibraryDevices];
int32_t g_busy;  // whether a thread uses an entry

int32_t data_type(int32_t dtype) {
  switch (dtype) {
    case TT_F16: return kHalf;
    case TT_BF16: return kBfloat16;
    case TT_F64: return kDouble;
    default: return kFloat;
  }
}

Geometry geometry_of(const ConvPlan& p) {
  Geometry g;
  memset(static_cast<void*>(&g), 0, sizeof g);
  const bool forward = p.mode == kConvForward;
  const ConvGather gather = forward ? p.gather : conv_gather_x(p.s, 0);
  g.s = p.s;
  g.row = gather.row;
  g.pixel = gather.pixel;
  g.dtype = p.dtype;
  g.task = forward ? kForward : kData;
  g.device = library_device();
  return g;
}
Geometry geometry_of(const ConvWeightPlan& p) {
  Geometry g;
  memset(static_cast<void*>(&g), 0, sizeof g);
  g.s = p.s;
  g.row = p.gather.row;
  g.pixel = p.gather.pixel;
  g.dtype = p.dtype;
  g.task = kWeight;
  g.device = library_device();
  return g;
}

// Pixels from the beginning of a row of x to its first one: rows may hold their padding.
int64_t lead_of(const ConvGather& g, const ConvShape& s) {
  return g.pad[2] != s.pad[2] ? s.pad[2] : 0;
}

// ---- descriptors ----

constexpr int64_t kMostInt = (int64_t(1) << 31) - 1;

// (n, channels, spatial sizes) with the spatial dimensions last, as cuDNN counts them; the first
// of three is left out where it is 1.
struct Sizes {
  int32_t n;
  int32_t of[2 + kConvDims];
};
int first_dim(const ConvShape& s) { return s.x[0] == 1 && s.k[0] == 1 && s.y[0] == 1 ? 1 : 0; }
Sizes sizes_of(const ConvShape& s, int64_t outer, int64_t channels, const int64_t* spatial) {
  Sizes out = {0, {}};
  out.of[out.n++] = int32_t(outer);
  out.of[out.n++] = int32_t(channels);
  for (int d = first_dim(s); d < kConvDims; d++) out.of[out.n++] = int32_t(spatial[d]);
  return out;
}
bool set_image(void* shape, const Geometry& g, bool is_x) {
  const ConvShape& s = g.s;
  const int64_t* spatial = is_x ? s.x : s.y;
  const int64_t channels = s.groups * (is_x ? s.ci : s.co);
  const int64_t pixel = is_x ? g.pixel : channels;
  const int64_t row = is_x ? g.row : spatial[2] * channels;
  const int64_t image = spatial[0] * spatial[1] * row;
  if (s.n * image > kMostInt) return false;
  const int64_t strides[kConvDims] = {spatial[1] * row, row, pixel};
  const Sizes size = sizes_of(s, s.n, channels, spatial);
  const Sizes stride = sizes_of(s, image, 1, strides);
  return g_library.set_tensor(shape, data_type(g.dtype), size.n, size.of, stride.of) == 0;
}
bool set_all(Entry* e) {
  const Geometry& g = e->geometry;
  const ConvShape& s = g.s;
  const bool wide = g.dtype == TT_F64;
  const Sizes weight = sizes_of(s, s.groups * s.co, s.ci, s.k);
  const int64_t channels = s.groups * (g.task == kData ? s.ci : s.co);
  const int64_t one[kConvDims] = {1, 1, 1};
  const Sizes bias = sizes_of(s, 1, channels, one);
  const Sizes bias_stride = sizes_of(s, channels, 1, one);
  Sizes at = {0, {}}, step = {0, {}}, dilation = {0, {}};
  for (int d = first_dim(s); d < kConvDims; d++) {
    at.of[at.n++] = int32_t(s.pad[d]);
    step.of[step.n++] = int32_t(s.stride[d]);
    dilation.of[dilation.n++] = int32_t(s.dil[d]);
  }
  const Library& lib = g_library;
  return set_image(e->x, g, true) && set_image(e->y, g, false) &&
         lib.set_tensor(e->bias, data_type(g.dtype), bias.n, bias.of, bias_stride.of) == 0 &&
         lib.set_filter(e->weight, data_type(g.dtype), kChannelsLast, weight.n, weight.of) == 0 &&
         lib.set_convolution(e->convolution, at.n, at.of, step.of, dilation.of, kCrossCorrelation,
                             wide ? kDouble : kFloat) == 0 &&
         lib.set_groups(e->convolution, int32_t(s.groups)) == 0 &&
         lib.set_math(e->convolution, g.dtype == TT_F16 || g.dtype == TT_BF16 ? kTensorOp : kFma) ==
             0;
}

constexpr size_t kMostMemory = size_t(1) << 28;

// The fastest algorithm by cuDNN's heuristics that is deterministic and keeps the math.
bool find_algorithm(Entry* e, void* handle) {
  constexpr int32_t kMost = 16;
  Algorithm known[kMost];
  int32_t n = 0;
  void* const shapes[kTasks][3] = {{e->x, e->weight, e->y},   // kForward: from two, the third
                                   {e->weight, e->y, e->x},   // kData
                                   {e->x, e->y, e->weight}};  // kWeight
  void* const* shape = shapes[e->geometry.task];
  if (g_library.find[e->geometry.task](handle, shape[0], shape[1], e->convolution, shape[2], kMost,
                                       &n, known) != 0)
    return false;
  const bool half = e->geometry.dtype == TT_F16 || e->geometry.dtype == TT_BF16;
  int32_t plain = kDefault;  // how the library calls math without TF32
  for (int32_t i = 0; i < n; i++)
    if (known[i].math == kFma) plain = kFma;
  for (int32_t i = 0; i < n; i++) {
    const Algorithm& a = known[i];
    if (a.status != 0 || a.determinism != kDeterministic || a.memory > kMostMemory) continue;
    if (!half && a.math != plain) continue;
    e->algorithm = a;
    return g_library.set_math(e->convolution, half ? a.math : int32_t(kFma)) == 0;
  }
  return false;
}

void* handle_of(int32_t device) {
  void** handle = &g_handles[device];
  if (!*handle && g_library.create(handle) != 0) *handle = nullptr;
  return *handle;
}
void drop(Entry* e) {
  if (e->x) g_library.drop_tensor(e->x);
  if (e->y) g_library.drop_tensor(e->y);
  if (e->bias) g_library.drop_tensor(e->bias);
  if (e->weight) g_library.drop_filter(e->weight);
  if (e->convolution) g_library.drop_convolution(e->convolution);
  *e = Entry{};
}
bool make(Entry* e) {
  const Geometry& g = e->geometry;
  if (g.device < 0) return false;
  const AllowDuringCapture allow;
  void* const handle = handle_of(g.device);
  const Library& lib = g_library;
  return handle && lib.new_tensor(&e->x) == 0 && lib.new_tensor(&e->y) == 0 &&
         lib.new_tensor(&e->bias) == 0 && lib.new_filter(&e->weight) == 0 &&
         lib.new_convolution(&e->convolution) == 0 && set_all(e) && find_algorithm(e, handle);
}

// The entry of a geometry; one that the library refuses is kept, too. The caller has the lock.
Entry& entry_of(const Geometry& g) {
  uint64_t words[sizeof(Geometry) / 8];
  memcpy(words, &g, sizeof words);
  uint64_t h = 0;
  for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15u;
  const uint64_t first = h >> 32;
  Entry* free = nullptr;
  for (uint64_t i = 0; i < kProbes; i++) {
    Entry* const entry = &g_entries[(first + i) % kEntries];
    if (entry->used && memcmp(&entry->geometry, &g, sizeof g) == 0) return *entry;
    if (!entry->used && !free) free = entry;
  }
  Entry& e = free ? *free : g_entries[first % kEntries];
  drop(&e);
  e.geometry = g;
  e.used = true;
  e.ready = make(&e);
  return e;
}

// ---- the two rows ----

bool is_served(const ConvShape& s, int32_t dtype) {
  if (dtype == TT_I64 || s.n * s.groups * s.ci * s.co == 0) return false;
  return s.x[0] * s.x[1] * s.x[2] > 0 && s.y[0] * s.y[1] * s.y[2] > 0;
}
template <class Plan> bool serves_plan(const Plan& p) {
  if (!is_served(p.s, p.dtype) || !g_file.is_open()) return false;
  const LaunchLock lock(&g_busy);
  return entry_of(geometry_of(p)).ready;
}
// The parts of the workspace; NULL: what it would hold is where it shall be.
struct Parts {
  char *weight, *result;
  int64_t bytes;
};
template <class Plan> Parts parts_of(const Plan& p, const Entry& e, char* workspace) {
  Parts r = {nullptr, nullptr, round_up(int64_t(e.algorithm.memory), int64_t(256))};
  const auto take = [&](int64_t elements) {
    char* const part = workspace + r.bytes;
    r.bytes += round_up(elements * kItemSize[p.dtype], int64_t(256));
    return part;
  };
  const WeightOrder w = weight_order(p);
  if (!is_packed(w)) r.weight = take(w.elements());
  if constexpr (__is_same(Plan, ConvPlan)) {
    const bool forward = p.mode == kConvForward;
    if (p.path == kConvPlanes)
      r.result =
          take(conv_pixels(p.s, forward ? p.s.y : p.s.x) * p.s.groups * conv_cols(p.s, p.mode));
  }
  return r;
}
template <class Plan> size_t bytes_of_plan(const Plan& p) {
  const LaunchLock lock(&g_busy);
  return size_t(parts_of(p, entry_of(geometry_of(p)), nullptr).bytes);
}

struct Scalar {  // of the type that is summed in
  float f;
  double d;
  const void* of(int32_t dtype) const {
    return dtype == TT_F64 ? static_cast<const void*>(&d) : &f;
  }
};
constexpr Scalar kOne = {1, 1};
constexpr Scalar kZero = {0, 0};

int32_t compute(const Entry& e, void* handle, const char* x, const char* y, const char* weight,
                char* result, void* workspace) {
  const int32_t dtype = e.geometry.dtype;
  struct Operand {
    void* shape;
    const char* data;
  };
  const Operand image = {e.x, x};
  const Operand grad = {e.y, y};
  const Operand filter = {e.weight, weight};
  const Operand operands[kTasks][3] = {
      {image, filter, grad}, {filter, grad, image}, {image, grad, filter}};
  const Operand* o = operands[e.geometry.task];
  return g_library.compute[e.geometry.task](
      handle, kOne.of(dtype), o[0].shape, o[0].data, o[1].shape, o[1].data, e.convolution,
      e.algorithm.number, workspace, e.algorithm.memory, kZero.of(dtype), o[2].shape, result);
}

// The result with channels first, and the bias.
int32_t planes_from(const ConvPlan& p, const char* result, void* stream) {
  const int64_t channels = p.s.groups * conv_cols(p.s, p.mode);
  const int64_t pixels = conv_pixels(p.s, p.mode == kConvForward ? p.s.y : p.s.x) / p.s.n;
  return copy_planes({result, p.bias, p.dst, p.s.n, pixels, channels, p.dtype}, stream);
}

}  // namespace

void use_library(const char* path) {
  for (Entry& e : g_entries) drop(&e);
  memset(g_handles, 0, sizeof g_handles);
  g_file.use(path);
}

bool serves(const ConvPlan& p) { return serves_plan(p); }
bool serves(const ConvWeightPlan& p) { return serves_plan(p); }
size_t workspace_bytes(const ConvPlan& p) { return bytes_of_plan(p); }
size_t workspace_bytes(const ConvWeightPlan& p) { return bytes_of_plan(p); }

int32_t run(const ConvPlan& p, void* stream, void* workspace) {
  const LaunchLock lock(&g_busy);
  const Entry& e = entry_of(geometry_of(p));
  void* const handle = e.ready ? handle_of(e.geometry.device) : nullptr;
  if (!handle || g_library.set_stream(handle, stream) != 0) return TT_INTERNAL;
  const Parts parts = parts_of(p, e, static_cast<char*>(workspace));
  const int64_t item = kItemSize[p.dtype];
  int32_t status = TT_OK;
  if (parts.weight)
    status = launch_move<true>(weight_order(p), p.weight, parts.weight, item, stream);
  if (status != TT_OK) return status;
  const bool forward = p.mode == kConvForward;
  const int64_t lead = forward ? lead_of(p.gather, p.s) * p.gather.pixel * item : 0;
  const char* x = forward ? p.src + lead : nullptr;
  const char* y = forward ? nullptr : p.src;
  const char* weight = parts.weight ? parts.weight : p.weight;
  if (compute(e, handle, x, y, weight, parts.result ? parts.result : p.dst, workspace) != 0)
    return TT_INTERNAL;
  if (parts.result) return planes_from(p, parts.result, stream);
  if (!p.bias) return TT_OK;
  const void* one = kOne.of(p.dtype);
  void* const result = forward ? e.y : e.x;
  return g_library.add(handle, one, e.bias, p.bias, one, result, p.dst) == 0 ? TT_OK : TT_INTERNAL;
}
int32_t run(const ConvWeightPlan& p, void* stream, void* workspace) {
  const LaunchLock lock(&g_busy);
  const Entry& e = entry_of(geometry_of(p));
  void* const handle = e.ready ? handle_of(e.geometry.device) : nullptr;
  if (!handle || g_library.set_stream(handle, stream) != 0) return TT_INTERNAL;
  const Parts parts = parts_of(p, e, static_cast<char*>(workspace));
  const int64_t item = kItemSize[p.dtype];
  const char* x = p.src + lead_of(p.gather, p.s) * p.gather.pixel * item;
  char* const result = parts.weight ? parts.weight : p.dst;
  if (compute(e, handle, x, p.y, nullptr, result, workspace) != 0) return TT_INTERNAL;
  if (!parts.weight) return TT_OK;
  return launch_move<false>(weight_order(p), p.dst, parts.weight, item, stream);
}

}  // namespace cuda::cudnn
}  // namespace TT_NS
