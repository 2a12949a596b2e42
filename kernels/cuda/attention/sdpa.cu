// The graphs that cuDNN has fused kernels for, made of operations of its backend API: docs of cuDNN
// 9, "Fused Flash Attention fprop" and "bprop". What is between the operations is never stored.
// Uppercase letters are tensors in memory; ^T: the last two dimensions change places.
//
//   forward    s = scale Q K^T (-infinity where causal and key > query)
//              m = max s, e = exp(s - m), z = sum e, L = m + log z, O = (e / z) V
//   backward   D = sum(G O), e = exp(scale Q K^T - L), V' = e^T G
//              d = scale e (G V^T - D), K' = d^T Q, Q' = d K
//
// Q' as a product of its own, which is not added up in f32 meanwhile, makes cuDNN keep d in its
// workspace: two bytes for each query and key, and the same bits in every run. Where bits may vary,
// blocks of keys add to a Q' of f32 in memory, in the order in which they come, and an identity
// rounds it.
//
//   workspace   [scratch of the library], backward: [D], where bits may vary: [Q' of f32]
#include "kernels/cuda/attention/sdpa.h"

#include <string.h>

#include "base/arith.h"
#include "kernels/cuda/library.h"

namespace TT_NS {
namespace cuda::sdpa {
namespace {

// ---- the part of cudnn_graph.h that is used here; enums are ints ----

enum DescriptorType : int32_t {
  kPointwise = 0,
  kEngineConfig = 3,
  kHeuristics = 4,
  kExecutionPlan = 5,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
};
enum Attribute : int32_t {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseAlpha1 = 754,
  kPointwiseAlpha2 = 755,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorUid = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackUids = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kMatmulType = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201,
};
enum AttributeType : int32_t {
  kHandleType = 0,
  kDataTypeType = 1,
  kBooleanType = 2,
  kInt64Type = 3,
  kFloatType = 4,
  kPointerType = 6,
  kHeuristicsModeType = 8,
  kPointwiseModeType = 14,
  kDescriptorType = 15,
  kReductionOperatorType = 18,
};
enum DataType : int32_t { kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };
enum Mode : int32_t {
  kAdd = 0,
  kMul = 1,
  kDiv = 6,
  kSub = 9,
  kExp = 13,
  kLog = 15,
  kIdentity = 21,
  kGreaterEqual = 303,
  kIndex = 501,
  kSelect = 601,
};
enum Reduce : int32_t { kSum = 0, kMax = 3 };
constexpr int32_t kHeuristicsA = 3;
constexpr size_t kOldest = 91600;  // backward of older ones needs a padding mask

struct Library {
  size_t (*version)();
  void (*last_error)(char* text, size_t bytes);
  int32_t (*create)(void** handle);
  int32_t (*set_stream)(void* handle, void* stream);
  int32_t (*new_descriptor)(int32_t type, void** descriptor);
  int32_t (*drop_descriptor)(void* descriptor);
  int32_t (*set)(void* descriptor, int32_t attribute, int32_t type, int64_t n, const void* values);
  int32_t (*get)(void* descriptor, int32_t attribute, int32_t type, int64_t most, int64_t* n,
                 void* values);
  int32_t (*finalize)(void* descriptor);
  int32_t (*execute)(void* handle, void* plan, void* pack);
};
Library g_library;
bool find_all(void* from) {
  Library* const out = &g_library;
  return find_function(from, "cudnnGetVersion", &out->version) &&
         find_function(from, "cudnnGetLastErrorString", &out->last_error) &&
         find_function(from, "cudnnCreate", &out->create) &&
         find_function(from, "cudnnSetStream", &out->set_stream) &&
         find_function(from, "cudnnBackendCreateDescriptor", &out->new_descriptor) &&
         find_function(from, "cudnnBackendDestroyDescriptor", &out->drop_descriptor) &&
         find_function(from, "cudnnBackendSetAttribute", &out->set) &&
         find_function(from, "cudnnBackendGetAttribute", &out->get) &&
         find_function(from, "cudnnBackendFinalize", &out->finalize) &&
         find_function(from, "cudnnBackendExecute", &out->execute) && out->version() >= kOldest &&
         finds_cublas_lt(from);
}
constexpr const char* kNames[] = {"libcudnn.so.9", nullptr};
constinit OptionalLibrary g_file(kNames, find_all);
Rule g_rule = kWhereFaster;

// ---- geometries ----

enum Operand : int32_t { kQ, kK, kV, kO, kG, kOperands };
struct Geometry {
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
  int64_t stride[kOperands][3];  // of batch, head and row, elements
  int32_t dtype, task, device, causal;
  int32_t varies;  // gradients may have other bits in each run
};
constexpr int kMostParts = 96;
struct Entry {
  Geometry geometry;
  void* parts[kMostParts];  // descriptors
  void* plan;
  int64_t scratch;  // bytes
  int32_t n;
  bool used, ready;
};
constexpr uint64_t kEntries = 256;
constexpr uint64_t kProbes = 8;  // entries that a geometry may be in
Entry g_entries[kEntries];
Entry g_full;  // of geometries that found no entry: never ready
void* g_handles[kMaxLibraryDevices];
int32_t g_busy;  // whether a thread uses an entry
char g_refusal[512];

void note_refusal(const char* what) {
  const size_t n = strlen(what);
  memset(g_refusal, 0, sizeof g_refusal);
  memcpy(g_refusal, what, n);
  memcpy(g_refusal + n, ": ", 2);
  g_library.last_error(g_refusal + n + 2, sizeof g_refusal - n - 3);
}

constexpr int64_t kItem = 2;                                              // bytes of an element
constexpr int64_t kAlignment = 16;                                        // bytes
constexpr int64_t kMostScratch[] = {int64_t(1) << 20, int64_t(1) << 31};  // of a task

// Sets the strides of an operand; false if cuDNN cannot read it as it is.
bool set_strides(Geometry* g, Operand which, const AttentionRows& r, int64_t heads, int64_t rows) {
  const int64_t sizes[3] = {g->batch, heads, rows};
  const int64_t bytes[3] = {r.batch, r.head, r.row};
  if (reinterpret_cast<uintptr_t>(r.p) % kAlignment != 0) return false;
  for (int d = 0; d < 3; d++) {
    const bool one = sizes[d] == 1;
    if (!one && (bytes[d] <= 0 || bytes[d] % kAlignment != 0)) return false;
    g->stride[which][d] = one ? 0 : bytes[d] / kItem;
  }
  // What a dimension of one element would have in a dense tensor.
  int64_t step = which == kV || which == kO || which == kG ? g->value_width : g->width;
  for (int d = 2; d >= 0; d--) {
    if (sizes[d] == 1) g->stride[which][d] = step;
    step = max(step, g->stride[which][d] * sizes[d]);
  }
  return true;
}
bool geometry_of(const AttentionPlan& p, Task task, Geometry* g) {
  memset(static_cast<void*>(g), 0, sizeof *g);
  const auto fits = [](int64_t width) { return width > 0 && width <= 128 && width % 8 == 0; };
  const bool varies = task == kBackward && (p.math & kNondeterministic);
  if ((p.math & kOwnAttention) || (task == kBackward && !varies && !g_rule.backward)) return false;
  if ((p.dtype != TT_F16 && p.dtype != TT_BF16) || p.mask_dtype || p.drop) return false;
  if (!fits(p.width) || !fits(p.value_width) || p.queries < 2 || p.keys < 2) return false;
  if (p.batch * p.heads * p.key_heads == 0) return false;
  const double scores = double(p.batch * p.heads) * double(p.queries) * double(p.keys);
  if (scores * double(p.width + p.value_width) < g_rule.least_work) return false;
  g->batch = p.batch;
  g->heads = p.heads;
  g->key_heads = p.key_heads;
  g->queries = p.queries;
  g->keys = p.keys;
  g->width = p.width;
  g->value_width = p.value_width;
  g->dtype = p.dtype;
  g->task = task;
  g->device = library_device();
  g->causal = p.causal;
  g->varies = varies;
  return g->device >= 0 && set_strides(g, kQ, p.q, p.heads, p.queries) &&
         set_strides(g, kK, p.k, p.key_heads, p.keys) &&
         set_strides(g, kV, p.v, p.key_heads, p.keys) &&
         set_strides(g, kO, p.out, p.heads, p.queries) &&
         (task == kForward || set_strides(g, kG, p.grad, p.heads, p.queries));
}

// ---- graphs ----

enum Uid : int64_t {
  kUidQ = 1,
  kUidK,
  kUidV,
  kUidO,
  kUidG,
  kUidLse,
  kUidDelta,
  kUidDq,
  kUidDk,
  kUidDv,
  kUidDqSum,
  kUidScale,
  kUidMinusInfinity,
  kUidOne,
  kUidBetween,  // the first one of a tensor that is never stored
};
struct Shape {
  int64_t size[4], stride[4];
};
Shape dense(int64_t a, int64_t b, int64_t c, int64_t d) {
  return {{a, b, c, d}, {b * c * d, c * d, d, 1}};
}
Shape transposed(const Shape& s) {
  return {{s.size[0], s.size[1], s.size[3], s.size[2]},
          {s.stride[0], s.stride[1], s.stride[3], s.stride[2]}};
}
// A tensor of a graph; descriptor: NULL once anything has failed.
struct Value {
  void* descriptor;
  Shape shape;
};

// Makes the descriptors of an entry. After a failure nothing more is done.
class Builder {
 public:
  Builder(Entry* e, void* handle)
      : e_(e), handle_(handle), type_(e->geometry.dtype == TT_F16 ? kHalf : kBfloat16) {}

  bool build();

 private:
  bool check(int32_t status, const char* what) {
    if (ok_ && status != 0) {
      note_refusal(what);
      ok_ = false;
    }
    return ok_;
  }
  void* make(DescriptorType type) {
    void* out = nullptr;
    if (!ok_ || !check(e_->n < kMostParts ? 0 : 1, "too many descriptors") ||
        !check(g_library.new_descriptor(type, &out), "new descriptor"))
      return nullptr;
    return e_->parts[e_->n++] = out;
  }
  void set(void* to, Attribute attribute, AttributeType type, int64_t n, const void* values) {
    if (ok_) check(g_library.set(to, attribute, type, n, values), "attribute");
  }
  void set_descriptor(void* to, Attribute attribute, void* value) {
    set(to, attribute, kDescriptorType, 1, &value);
  }
  void* finish(void* descriptor, const char* what) {
    if (ok_) check(g_library.finalize(descriptor), what);
    return descriptor;
  }

  enum Storage { kStored, kBetween, kByValue };
  Value tensor(int64_t uid, DataType type, const Shape& s, Storage storage) {
    void* const t = make(kTensor);
    const bool yes = true;
    set(t, kTensorType, kDataTypeType, 1, &type);
    set(t, kTensorSizes, kInt64Type, 4, s.size);
    set(t, kTensorStrides, kInt64Type, 4, s.stride);
    set(t, kTensorUid, kInt64Type, 1, &uid);
    set(t, kTensorAlignment, kInt64Type, 1, &kAlignment);
    if (storage == kBetween) set(t, kTensorIsVirtual, kBooleanType, 1, &yes);
    if (storage == kByValue) set(t, kTensorIsByValue, kBooleanType, 1, &yes);
    return {finish(t, "tensor"), s};
  }
  Value stored(int64_t uid, Operand which, int64_t heads, int64_t rows, int64_t width) {
    const int64_t* stride = e_->geometry.stride[which];
    const Shape s = {{e_->geometry.batch, heads, rows, width},
                     {stride[0], stride[1], stride[2], 1}};
    return tensor(uid, type_, s, kStored);
  }
  Value stored_transposed(int64_t uid, Operand which, int64_t heads, int64_t rows, int64_t width) {
    const int64_t* stride = e_->geometry.stride[which];
    const Shape s = {{e_->geometry.batch, heads, width, rows},
                     {stride[0], stride[1], 1, stride[2]}};
    return tensor(uid, type_, s, kStored);
  }
  Value dense_stored(int64_t uid, int64_t heads, int64_t rows, int64_t width) {
    return tensor(uid, type_, dense(e_->geometry.batch, heads, rows, width), kStored);
  }
  Value number(int64_t uid) { return tensor(uid, kFloat, dense(1, 1, 1, 1), kByValue); }
  Value between(DataType type, const Shape& s) { return tensor(next_++, type, s, kBetween); }
  Value column(int64_t uid) {
    const Geometry& g = e_->geometry;
    return tensor(uid, kFloat, dense(g.batch, g.heads, g.queries, 1), kStored);
  }

  void add(void* operation) {
    if (ok_) operations_[n_operations_++] = operation;
  }
  void multiply_into(const Value& a, const Value& b, const Value& c) {
    const DataType type = kFloat;
    void* const m = make(kMatmul);
    set(m, kMatmulType, kDataTypeType, 1, &type);
    finish(m, "matmul");
    void* const o = make(kMatmulOperation);
    set_descriptor(o, kMatmulA, a.descriptor);
    set_descriptor(o, kMatmulB, b.descriptor);
    set_descriptor(o, kMatmulC, c.descriptor);
    set_descriptor(o, kMatmulDescriptor, m);
    add(finish(o, "matmul operation"));
  }
  Value multiply(const Value& a, const Value& b) {
    const Value c =
        between(kFloat, dense(a.shape.size[0], a.shape.size[1], a.shape.size[2], b.shape.size[3]));
    multiply_into(a, b, c);
    return c;
  }
  // b, t: NULL where the mode has no such operand.
  void apply_into(Mode mode, const Value& x, const Value* b, const Value* t, const Value& y,
                  DataType precision = kFloat, int64_t axis = -1) {
    const float one = 1;
    void* const p = make(kPointwise);
    set(p, kPointwiseMode, kPointwiseModeType, 1, &mode);
    set(p, kPointwisePrecision, kDataTypeType, 1, &precision);
    if (axis >= 0) set(p, kPointwiseAxis, kInt64Type, 1, &axis);
    finish(p, "pointwise");
    void* const o = make(kPointwiseOperation);
    set_descriptor(o, kPointwiseDescriptor, p);
    set_descriptor(o, kPointwiseX, x.descriptor);
    set_descriptor(o, kPointwiseY, y.descriptor);
    if (b) set_descriptor(o, kPointwiseB, b->descriptor);
    if (t) set_descriptor(o, kPointwiseT, t->descriptor);
    set(o, kPointwiseAlpha1, kFloatType, 1, &one);
    set(o, kPointwiseAlpha2, kFloatType, 1, &one);
    add(finish(o, "pointwise operation"));
  }
  Value apply(Mode mode, const Value& x, const Value* b = nullptr, const Value* t = nullptr) {
    const Value y = between(kFloat, x.shape);
    apply_into(mode, x, b, t, y);
    return y;
  }
  void reduce_into(Reduce op, const Value& x, const Value& y) {
    const DataType type = kFloat;
    void* const r = make(kReduction);
    set(r, kReductionType, kDataTypeType, 1, &type);
    set(r, kReductionOperator, kReductionOperatorType, 1, &op);
    finish(r, "reduction");
    void* const o = make(kReductionOperation);
    set_descriptor(o, kReductionDescriptor, r);
    set_descriptor(o, kReductionX, x.descriptor);
    set_descriptor(o, kReductionY, y.descriptor);
    add(finish(o, "reduction operation"));
  }
  Value reduce(Reduce op, const Value& x) {
    const Value y = between(kFloat, dense(x.shape.size[0], x.shape.size[1], x.shape.size[2], 1));
    reduce_into(op, x, y);
    return y;
  }
  Value transpose(const Value& x) {
    const Value y = between(type_, transposed(x.shape));
    void* const o = make(kReshapeOperation);
    set_descriptor(o, kReshapeX, x.descriptor);
    set_descriptor(o, kReshapeY, y.descriptor);
    add(finish(o, "reshape operation"));
    return y;
  }
  Value masked(const Value& s) {
    if (!e_->geometry.causal) return s;
    const Value lowest = number(kUidMinusInfinity);
    const Value row = between(kInt32, s.shape);
    const Value column = between(kInt32, s.shape);
    const Value attends = between(kBoolean, s.shape);
    apply_into(kIndex, s, nullptr, nullptr, row, kFloat, 2);
    apply_into(kIndex, s, nullptr, nullptr, column, kFloat, 3);
    apply_into(kGreaterEqual, row, &column, nullptr, attends, kBoolean);
    return apply(kSelect, s, &lowest, &attends);
  }
  // A gradient of keys or values, added up over the heads that share them.
  void multiply_heads(const Value& a, const Value& b, int64_t uid, int64_t width) {
    const Geometry& g = e_->geometry;
    const Value out = dense_stored(uid, g.key_heads, g.keys, width);
    if (g.heads == g.key_heads) return multiply_into(a, b, out);
    const Value all = between(type_, dense(g.batch, g.heads, g.keys, width));
    multiply_into(a, b, all);
    reduce_into(kSum, all, out);
  }
  void forward();
  void backward();
  bool plan();

  Entry* const e_;
  void* const handle_;
  const DataType type_;
  int64_t next_ = kUidBetween;
  void* operations_[32];
  int n_operations_ = 0;
  bool ok_ = true;
};

void Builder::forward() {
  const Geometry& g = e_->geometry;
  const Value q = stored(kUidQ, kQ, g.heads, g.queries, g.width);
  const Value k = stored_transposed(kUidK, kK, g.key_heads, g.keys, g.width);
  const Value v = stored(kUidV, kV, g.key_heads, g.keys, g.value_width);
  const Value out = stored(kUidO, kO, g.heads, g.queries, g.value_width);
  const Value lse = column(kUidLse);
  const Value scale = number(kUidScale);
  const Value product = multiply(q, k);
  const Value score = masked(apply(kMul, product, &scale));
  const Value maximum = reduce(kMax, score);
  const Value e = apply(kExp, apply(kSub, score, &maximum));
  const Value sum = reduce(kSum, e);
  const Value log_sum = apply(kLog, sum);
  apply_into(kAdd, maximum, &log_sum, nullptr, lse);
  const Value weight = between(type_, e.shape);
  apply_into(kDiv, e, &sum, nullptr, weight);
  multiply_into(weight, v, out);
}

void Builder::backward() {
  const Geometry& g = e_->geometry;
  const Value q = stored(kUidQ, kQ, g.heads, g.queries, g.width);
  const Value k = stored_transposed(kUidK, kK, g.key_heads, g.keys, g.width);
  const Value v = stored_transposed(kUidV, kV, g.key_heads, g.keys, g.value_width);
  const Value out = stored(kUidO, kO, g.heads, g.queries, g.value_width);
  const Value grad = stored(kUidG, kG, g.heads, g.queries, g.value_width);
  const Value lse = column(kUidLse);
  const Value delta = column(kUidDelta);
  const Value scale = number(kUidScale);
  const Value one = number(kUidOne);
  const Value sum = reduce(kSum, apply(kMul, grad, &out));
  apply_into(kMul, sum, &one, nullptr, delta);

  const Value score = multiply(q, k);
  const Value scaled = apply(kMul, score, &scale);
  const Value e = apply(kExp, masked(apply(kSub, scaled, &lse)));
  multiply_heads(transpose(e), grad, kUidDv, g.value_width);

  const Value product = multiply(grad, v);
  const Value centred = apply(kSub, product, &delta);
  const Value weighted = apply(kMul, centred, &e);
  const Value d = apply(kMul, weighted, &scale);
  multiply_heads(transpose(d), q, kUidDk, g.width);
  const Value dq = dense_stored(kUidDq, g.heads, g.queries, g.width);
  if (!g.varies) return multiply_into(d, transpose(k), dq);
  const Value dq_sum = tensor(kUidDqSum, kFloat, dq.shape, kStored);
  multiply_into(d, transpose(k), dq_sum);
  apply_into(kIdentity, dq_sum, nullptr, nullptr, dq);
}

// The first of the heuristics' engines that makes a plan.
bool Builder::plan() {
  constexpr int64_t kMost = 8;
  void* const graph = make(kOperationGraph);
  set(graph, kGraphOperations, kDescriptorType, n_operations_, operations_);
  set(graph, kGraphHandle, kHandleType, 1, &handle_);
  finish(graph, "graph");
  void* const heuristics = make(kHeuristics);
  set_descriptor(heuristics, kHeuristicsGraph, graph);
  set(heuristics, kHeuristicsMode, kHeuristicsModeType, 1, &kHeuristicsA);
  finish(heuristics, "heuristics");
  void* configs[kMost] = {};
  for (void*& config : configs) config = make(kEngineConfig);
  int64_t n = 0;
  if (ok_)
    check(g_library.get(heuristics, kHeuristicsResults, kDescriptorType, kMost, &n, configs),
          "results of the heuristics");
  for (int64_t i = 0; ok_ && i < n; i++) {
    void* const plan = make(kExecutionPlan);
    set(plan, kPlanHandle, kHandleType, 1, &handle_);
    set_descriptor(plan, kPlanConfig, configs[i]);
    if (!ok_) return false;
    if (g_library.finalize(plan) != 0) {
      note_refusal("plan");
      continue;
    }
    int64_t one = 0;
    check(g_library.get(plan, kPlanWorkspace, kInt64Type, 1, &one, &e_->scratch), "workspace");
    e_->plan = plan;
    return ok_ && e_->scratch <= kMostScratch[e_->geometry.task];
  }
  return false;
}
bool Builder::build() {
  if (e_->geometry.task == kForward) forward();
  else backward();
  return plan();
}

// ---- entries ----

void drop(Entry* e) {
  for (int32_t i = e->n - 1; i >= 0; i--) g_library.drop_descriptor(e->parts[i]);
  *e = Entry{};
}
void* handle_of(int32_t device) {
  void** handle = &g_handles[device];
  if (!*handle && g_library.create(handle) != 0) {
    note_refusal("handle");
    *handle = nullptr;
  }
  return *handle;
}
// The entry of a geometry; one that the library refuses is kept, too. Plans stay: captured graphs
// launch their kernels. The caller has the lock.
Entry& entry_of(const Geometry& g) {
  uint64_t words[sizeof(Geometry) / 8];
  memcpy(words, &g, sizeof words);
  uint64_t h = 0;
  for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15u;
  const uint64_t first = h >> 32;
  Entry* free = nullptr;
  for (uint64_t i = 0; i < kProbes && !free; i++) {
    Entry* const entry = &g_entries[(first + i) % kEntries];
    if (!entry->used) free = entry;
    else if (memcmp(&entry->geometry, &g, sizeof g) == 0) return *entry;
  }
  if (!free) return g_full;
  Entry& e = *free;
  e.geometry = g;
  e.used = true;
  const AllowDuringCapture allow;
  void* const handle = handle_of(g.device);
  e.ready = handle && Builder(&e, handle).build();
  return e;
}

// ---- the two rows ----

// A workspace: the scratch of the library and, for backward passes, delta and Q' of f32.
struct Places {
  int64_t delta, dq_sum, end;
};
Places places_of(const Entry& e) {
  const Geometry& g = e.geometry;
  const int64_t rows = g.task == kForward ? 0 : g.batch * g.heads * g.queries;
  Places places;
  places.delta = round_up(e.scratch, int64_t(256));
  places.dq_sum = round_up(places.delta + rows * 4, int64_t(256));
  places.end = places.dq_sum + (g.varies ? rows * g.width * 4 : 0);
  return places;
}

// Binds the tensors of a graph, and runs it.
class Pack {
 public:
  void bind(Uid uid, const void* p) {
    uids_[n_] = uid;
    pointers_[n_++] = p;
  }
  bool run(void* handle, void* plan, void* workspace) const {
    void* pack = nullptr;
    if (g_library.new_descriptor(kVariantPack, &pack) != 0) return false;
    const bool ok = g_library.set(pack, kPackPointers, kPointerType, n_, pointers_) == 0 &&
                    g_library.set(pack, kPackUids, kInt64Type, n_, uids_) == 0 &&
                    g_library.set(pack, kPackWorkspace, kPointerType, 1, &workspace) == 0 &&
                    g_library.finalize(pack) == 0 && g_library.execute(handle, plan, pack) == 0;
    if (!ok) note_refusal("execution");
    g_library.drop_descriptor(pack);
    return ok;
  }

 private:
  int64_t uids_[16];
  const void* pointers_[16];
  int64_t n_ = 0;
};

}  // namespace

void use_library(const char* path, const Rule& rule) {
  for (Entry& e : g_entries) drop(&e);
  memset(g_handles, 0, sizeof g_handles);
  g_refusal[0] = 0;
  g_rule = rule;
  g_file.use(path);
}
const char* refusal() { return g_refusal; }

bool serves(const AttentionPlan& p, Task task) {
  Geometry g;
  if (!geometry_of(p, task, &g) || !g_file.is_open()) return false;
  const LaunchLock lock(&g_busy);
  return entry_of(g).ready;
}
size_t workspace_bytes(const AttentionPlan& p, Task task) {
  Geometry g;
  if (!geometry_of(p, task, &g) || !g_file.is_open()) return 0;
  const LaunchLock lock(&g_busy);
  const Entry& e = entry_of(g);
  return e.ready ? size_t(places_of(e).end) : 0;
}
int32_t run(const AttentionPlan& p, Task task, void* stream, void* workspace) {
  Geometry g;
  if (!geometry_of(p, task, &g) || !g_file.is_open()) return TT_NOT_IMPLEMENTED;
  const LaunchLock lock(&g_busy);
  Entry& e = entry_of(g);
  void* const handle = e.ready ? handle_of(g.device) : nullptr;
  if (!handle || g_library.set_stream(handle, stream) != 0) return TT_NOT_IMPLEMENTED;
  const float scale = float(p.scale);
  const float one = 1;
  const float minus_infinity = -__builtin_inff();
  Pack pack;
  pack.bind(kUidQ, p.q.p);
  pack.bind(kUidK, p.k.p);
  pack.bind(kUidV, p.v.p);
  pack.bind(kUidO, p.out.p);
  pack.bind(kUidLse, p.lse);
  pack.bind(kUidScale, &scale);
  if (p.causal) pack.bind(kUidMinusInfinity, &minus_infinity);
  if (task == kBackward) {
    pack.bind(kUidG, p.grad.p);
    const Places places = places_of(e);
    char* const begin = static_cast<char*>(workspace);
    pack.bind(kUidDelta, begin + places.delta);
    if (g.varies) pack.bind(kUidDqSum, begin + places.dq_sum);
    pack.bind(kUidDq, p.dq);
    pack.bind(kUidDk, p.dk);
    pack.bind(kUidDv, p.dv);
    pack.bind(kUidOne, &one);
  }
  if (!pack.run(handle, e.plan, workspace)) {
    e.ready = false;
    return TT_NOT_IMPLEMENTED;
  }
  return TT_OK;
}

}  // namespace cuda::sdpa
}  // namespace TT_NS
