// Operands have channels last, for which cuDNN's fastest kernels of halves are, or first, for which
// those of f32 are (ConvPlan::channels_first). A weight in another order than [co][taps][ci] or
// [co][ci][taps], and a result with channels first of operands with channels last, are moved.
//
//   workspace   [scratch of the library][weight][result]
#include "kernels/cuda/conv/cudnn.h"

#include <string.h>

#include "kernels/cuda/conv/conv.h"
#include "kernels/cuda/copy/transpose.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/strided.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// A weight of any strides, elements. Dimension 0 is the innermost of the packed weight.
struct WeightOrder {
  static constexpr int kDims = kConvDims + 2;
  int64_t size[kDims], stride[kDims];
  Divisor divisor[kDims];
  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t length : size) n *= length;
    return n;
  }
};
// The packed weight is [co][taps][ci], or with channels first [co][ci][taps]; co counts through all
// groups.
template <class Plan> WeightOrder weight_order(const Plan& p) {
  const ConvShape& s = p.s;
  const int64_t co = s.groups * s.co;
  if (p.channels_first)
    return {{s.k[2], s.k[1], s.k[0], s.ci, co}, {p.w_k[2], p.w_k[1], p.w_k[0], p.w_ci, p.w_co}, {}};
  return {{s.ci, s.k[2], s.k[1], s.k[0], co}, {p.w_ci, p.w_k[2], p.w_k[1], p.w_k[0], p.w_co}, {}};
}
bool is_packed(const WeightOrder& w) {
  int64_t wanted = 1;
  for (int d = 0; d < WeightOrder::kDims; d++) {
    if (w.size[d] != 1 && w.stride[d] != wanted) return false;
    wanted *= w.size[d];
  }
  return true;
}

// Between a weight and a packed one.
template <class E, bool kPacks> __global__ void __launch_bounds__(kThreads)
    move_weight(const __grid_constant__ WeightOrder w, E* weight, E* packed, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_step()) {
    uint32_t rest = uint32_t(i);
    int64_t at = 0;
#pragma unroll
    for (int d = 0; d < WeightOrder::kDims; d++) {
      const uint32_t above = w.divisor[d].divide(rest);
      at += (rest - above * w.divisor[d].d) * w.stride[d];
      rest = above;
    }
    if constexpr (kPacks) packed[i] = weight[at];
    else weight[at] = packed[i];
  }
}

template <bool kPacks>
int32_t launch_move(WeightOrder w, const char* weight, char* packed, int64_t item, void* stream) {
  const int64_t n = w.elements();
  for (int d = 0; d < WeightOrder::kDims; d++) w.divisor[d].set(uint32_t(w.size[d]));
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
enum Format : int32_t { kChannelsFirst = 0, kChannelsLast = 1 };
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
  int32_t dtype, task, device, channels_first;
  uint32_t math;  // kTf32Conv and kNondeterministic
  uint32_t unused;
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

bool is_half(int32_t dtype) { return dtype == TT_F16 || dtype == TT_BF16; }
int32_t data_type(int32_t dtype) {
  switch (dtype) {
    case TT_F16: return kHalf;
    case TT_BF16: return kBfloat16;
    case TT_F64: return kDouble;
    default: return kFloat;
  }
}

uint32_t math_of(uint32_t allowed, int32_t dtype) {
  return allowed & (dtype == TT_F32 ? kTf32Conv | kNondeterministic : kNondeterministic);
}
Geometry geometry_of(const ConvPlan& p) {
  Geometry g;
  memset(static_cast<void*>(&g), 0, sizeof g);
  g.s = p.s;
  g.dtype = p.dtype;
  g.task = p.mode == kConvForward ? kForward : kData;
  g.device = library_device();
  g.channels_first = p.channels_first;
  g.math = math_of(p.math, p.dtype);
  return g;
}
Geometry geometry_of(const ConvWeightPlan& p) {
  Geometry g;
  memset(static_cast<void*>(&g), 0, sizeof g);
  g.s = p.s;
  g.dtype = p.dtype;
  g.task = kWeight;
  g.device = library_device();
  g.channels_first = p.channels_first;
  g.math = math_of(p.math, p.dtype);
  return g;
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
  const ConvLayout at = conv_layout(spatial, channels, g.channels_first != 0);
  if (s.n * at.image > kMostInt) return false;
  const int64_t strides[kConvDims] = {spatial[1] * at.row, at.row, at.pixel};
  const Sizes size = sizes_of(s, s.n, channels, spatial);
  const Sizes stride = sizes_of(s, at.image, at.channel, strides);
  return g_library.set_tensor(shape, data_type(g.dtype), size.n, size.of, stride.of) == 0;
}
// The math that algorithms are asked for. By default cuDNN rounds f32 to TF32.
MathType first_math(const Geometry& g) {
  if (is_half(g.dtype)) return kTensorOp;
  return g.math & kTf32Conv ? kDefault : kFma;
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
  const Format format = g.channels_first ? kChannelsFirst : kChannelsLast;
  return set_image(e->x, g, true) && set_image(e->y, g, false) &&
         lib.set_tensor(e->bias, data_type(g.dtype), bias.n, bias.of, bias_stride.of) == 0 &&
         lib.set_filter(e->weight, data_type(g.dtype), format, weight.n, weight.of) == 0 &&
         lib.set_convolution(e->convolution, at.n, at.of, step.of, dilation.of, kCrossCorrelation,
                             wide ? kDouble : kFloat) == 0 &&
         lib.set_groups(e->convolution, int32_t(s.groups)) == 0 &&
         lib.set_math(e->convolution, first_math(g)) == 0;
}

constexpr size_t kMostMemory = size_t(1) << 29;

// Numbers of algorithms, by task.
enum ForwardAlgorithm : int32_t { kForwardTiledFft = 5 };
enum DataAlgorithm : int32_t { kDataFft = 2, kDataTiledFft = 3 };
enum WeightAlgorithm : int32_t { kWeightGemm = 1, kWeightFft = 2, kWeightWinograd = 5 };

constexpr double kLargeWork = 1 << 27;  // multiplications that pay for transforms
double work_of(const ConvShape& s) {
  return double(conv_pixels(s, s.y)) * double(s.groups * s.ci * s.co * s.taps());
}
// Whether the tiles of tiled transforms, 32 x 32 pixels that overlap by the window, hold little
// beside the pixels of y.
bool fills_tiles(const ConvShape& s) {
  constexpr int64_t kTile = 32;
  int64_t tiles = 1;
  for (int d = 1; d < kConvDims; d++) {
    if (s.k[d] >= kTile) return false;
    tiles *= ceil_div(s.y[d], kTile - s.k[d] + 1);
  }
  return 2 * tiles * kTile * kTile <= 3 * s.y[1] * s.y[2];
}
// The order among algorithms of f32 as an H200 timed them, where the heuristics' differs: those
// count on algorithms that give other bits in each run, and what they name next is slow.
// is_second: such an algorithm comes before this one. Lower is better.
int rank_of(const Geometry& g, int32_t number, bool is_second) {
  if (is_half(g.dtype) || g.math) return 0;
  const bool is_large = work_of(g.s) >= kLargeWork;
  switch (g.task) {
    case kForward: return number == kForwardTiledFft && is_large && fills_tiles(g.s) ? 0 : 1;
    case kData:
      if (!is_second || !is_large) return 0;
      return number == kDataFft || number == kDataTiledFft ? 0 : 1;
    default:
      // Transforms of windows of more than 3 pixels lose digits.
      if (number == kWeightWinograd) return max(g.s.k[1], g.s.k[2]) > 3 ? 3 : 1;
      if (number == kWeightFft) return 0;
      return number == kWeightGemm ? 2 : 1;
  }
}

// The algorithm that keeps to what is allowed, by cuDNN's heuristics and rank_of.
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
  const bool keeps_f32 = first_math(e->geometry) == kFma;
  const bool any_order = e->geometry.math & kNondeterministic;
  int32_t plain = kDefault;  // how the library calls math without TF32
  for (int32_t i = 0; i < n; i++)
    if (known[i].math == kFma) plain = kFma;
  const Algorithm* best = nullptr;
  int best_rank = 0;
  bool is_second = false;
  for (int32_t i = 0; i < n; i++) {
    const Algorithm& a = known[i];
    if (a.status != 0 || (keeps_f32 && a.math != plain)) continue;
    const bool varies = !any_order && a.determinism != kDeterministic;
    is_second |= varies;
    if (varies || a.memory > kMostMemory) continue;
    const int rank = rank_of(e->geometry, a.number, is_second);
    if (best && rank >= best_rank) continue;
    best = &a;
    best_rank = rank;
  }
  if (!best) return false;
  e->algorithm = *best;
  return g_library.set_math(e->convolution, keeps_f32 ? int32_t(kFma) : best->math) == 0;
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
  if (s.groups * s.co * s.ci * s.taps() > kMostInt) return false;
  return s.x[0] * s.x[1] * s.x[2] > 0 && s.y[0] * s.y[1] * s.y[2] > 0;
}
template <class Plan> bool serves_plan(const Plan& p) {
  if ((p.math & kOwnConv) || !is_served(p.s, p.dtype) || !g_file.is_open()) return false;
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
    if (p.path == kConvPlanes && !p.channels_first)
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
  const char* x = forward ? p.src : nullptr;
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
  char* const result = parts.weight ? parts.weight : p.dst;
  if (compute(e, handle, p.src, p.y, nullptr, result, workspace) != 0) return TT_INTERNAL;
  if (!parts.weight) return TT_OK;
  return launch_move<false>(weight_order(p), p.dst, parts.weight, item, stream);
}

}  // namespace cuda::cudnn
}  // namespace TT_NS
