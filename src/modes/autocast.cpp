#include "modes/autocast.h"

#include "autograd/node.h"
#include "base/pointer_map.h"
#include "ops/gen/ops.h"

namespace TT_NS {

static_assert(kAutocastKey == bit(kKeyAutocast));

namespace {

struct TypeState {
  bool enabled;
  Dtype dtype;
};
struct State {
  TypeState cpu = {false, Dtype::kBF16};
  TypeState cuda = {false, Dtype::kF16};
  bool cache = true;
  bool any() const { return cpu.enabled || cuda.enabled; }
  TypeState& of(int32_t type) { return type == TT_CPU ? cpu : cuda; }
};
// What a pop restores.
struct Outer {
  State state;
  bool included;  // the key was in Ctx::include
};
// The cast of a leaf, valid while the leaf has this version.
struct CachedCast {
  TensorRef leaf, cast;
  uint32_t version;
};

struct AutocastMode : CtxPart {
  State now;
  SmallVec<Outer, 2> outer;
  SmallVec<CachedCast, 8> casts;
  PointerMap positions;  // leaf -> index in casts
};

AutocastMode* of(const Ctx& c) { return static_cast<AutocastMode*>(c.autocast); }

void destroy(CtxPart* part) noexcept {
  auto* m = static_cast<AutocastMode*>(part);
  m->~AutocastMode();
  mem_free(m, sizeof *m);
}

void clear_cache(AutocastMode& m) {
  const SmallVec<CachedCast, 8> gone = std::move(m.casts);  // destructors may call the application
  m.positions = PointerMap();
}

// A cast that backward has run through cannot be used in another graph.
bool usable(const CachedCast& e) {
  const auto* node = static_cast<const Node*>(e.cast->grad_fn);
  const bool recorded = node != nullptr;
  const bool recording = !(ctx().exclude & bit(kKeyAutograd));
  return e.version == e.leaf->version() && recorded == recording && !(node && node->released);
}

TensorRef cached_cast(AutocastMode& m, const Tensor& leaf, Dtype to) {
  int64_t known = m.positions.find(&leaf);
  if (known >= 0 && m.casts[known].cast->dtype == to && usable(m.casts[known]))
    return m.casts[known].cast;
  CachedCast made = {TensorRef::share(&leaf), op::to_dtype(leaf, to), leaf.version()};
  TensorRef cast = made.cast;
  known = m.positions.find(&leaf);  // a callback may have cleared the cache
  if (known >= 0) {
    std::swap(m.casts[known], made);
  } else {
    m.casts.reserve(m.casts.size() + 1);
    m.positions.find_or_add(&leaf, m.casts.size());
    m.casts.push_back(std::move(made));
  }
  return cast;
}

// Whether autocast may change the dtype: floating but for float64, on the device type.
bool eligible(const Tensor& t, int32_t type) {
  return is_float(t.dtype) && t.dtype != Dtype::kF64 && t.device.type == type;
}

// The arguments of one call with their casts.
class CastArgs {
 public:
  CastArgs(AutocastMode& m, const OpSchema& schema, const Value* args, int32_t type, Dtype to,
           bool lower);
  const Value* data() const { return args_.data(); }

 private:
  const Tensor* cast(const Tensor* t);

  AutocastMode& mode_;
  const int32_t type_;
  const Dtype to_;
  const bool lower_;
  SmallVec<Value, 16> args_;
  SmallVec<TensorRef, 8> owned_;
  SmallVec<SmallVec<const Tensor*, 8>, 1> lists_;
};

const Tensor* CastArgs::cast(const Tensor* t) {
  if (!t || !eligible(*t, type_) || t->dtype == to_) return t;
  const bool weight = lower_ && mode_.now.cache && t->dtype == Dtype::kF32 &&
                      (t->flags & kRequiresGrad) && !t->grad_fn;
  owned_.push_back(weight ? cached_cast(mode_, *t, to_) : op::to_dtype(*t, to_));
  return owned_.back().get();
}

CastArgs::CastArgs(AutocastMode& m, const OpSchema& schema, const Value* args, int32_t type,
                   Dtype to, bool lower)
    : mode_(m), type_(type), to_(to), lower_(lower) {
  lists_.reserve(schema.n_args);
  for (int32_t i = 0; i < schema.n_args; i++) {
    Value v = args[i];
    if (v.kind == Value::kTensor) {
      v.tensor = cast(v.tensor);
    } else if (v.kind == Value::kTensorList) {
      lists_.push_back({});
      for (int64_t k = 0; k < v.n; k++) lists_.back().push_back(cast(v.tensors[k]));
      v.tensors = lists_.back().data();
    }
    args_.push_back(v);
  }
}

// Calls f(tensor) for each tensor among the arguments.
template <class F> void for_each_tensor(const OpSchema& schema, const Value* args, F f) {
  for (int32_t i = 0; i < schema.n_args; i++) {
    if (args[i].kind == Value::kTensor) f(*args[i].tensor);
    if (args[i].kind != Value::kTensorList) continue;
    for (int64_t k = 0; k < args[i].n; k++)
      if (args[i].tensors[k]) f(*args[i].tensors[k]);
  }
}

// The device type of a call: that of its first tensor.
int32_t type_of(const OpSchema& schema, const Value* args) {
  int32_t type = 0;
  for_each_tensor(schema, args, [&](const Tensor& t) {
    if (!type) type = t.device.type;
  });
  return type;
}

Dtype widest(const OpSchema& schema, const Value* args, int32_t type, Dtype lower) {
  Dtype found = lower;
  for_each_tensor(schema, args, [&](const Tensor& t) {
    if (eligible(t, type)) found = t.dtype == lower ? found : Dtype::kF32;
  });
  return found;
}

void autocast_slot(Call c, const Value* args, TensorList& outs) {
  AutocastMode* m = of(ctx());
  c.keys &= ~bit(kKeyAutocast);
  const OpSchema& schema = *c.op->schema;
  const int32_t type = type_of(schema, args);
  const bool served = m && (type == TT_CPU || type == TT_CUDA) && m->now.of(type).enabled;
  const Autocast policy = type == TT_CPU ? schema.autocast.cpu : schema.autocast.cuda;
  const bool casts = served && policy != Autocast::kNone;
  const bool has_parts = !schema.leaf || schema.custom;  // calls that autocast serves, too
  if (!casts && has_parts) return c.op->call_boxed(c, args, outs);
  const MaskGuard quiet(bit(kKeyAutocast));  // the implementation takes what it gets
  if (!casts) return c.op->call_boxed(c, args, outs);
  const Dtype lower = m->now.of(type).dtype;
  Dtype to = Dtype::kF32;
  if (policy == Autocast::kLower) to = lower;
  if (policy == Autocast::kPromote) to = widest(schema, args, type, lower);
  const CastArgs cast(*m, schema, args, type, to, policy == Autocast::kLower);
  c.op->call_boxed(c, cast.data(), outs);
}

}  // namespace

void push_autocast(int32_t type, bool enabled, Dtype dtype, bool cache) {
  Ctx& c = ctx();
  if (!c.autocast)
    c.autocast = new (mem_alloc(sizeof(AutocastMode))) AutocastMode{{destroy}, {}, {}, {}, {}};
  AutocastMode& m = *of(c);
  m.outer.push_back({m.now, (c.include & kAutocastKey) != 0});
  if (m.outer.size() == 1) m.now = State();
  TypeState& state = m.now.of(type);
  if (dtype == Dtype::kNone) dtype = State().of(type).dtype;
  state = {enabled, dtype};
  m.now.cache = cache;
  use_mode(kKeyAutocast, &autocast_slot);
  c.include = m.now.any() ? c.include | kAutocastKey : c.include & ~kAutocastKey;
}

void pop_autocast() {
  Ctx& c = ctx();
  AutocastMode* m = of(c);
  if (!m || m->outer.empty()) fail(TT_INVALID_ARG, "autocast has not been pushed on this ctx");
  const Outer outer = m->outer.back();
  m->outer.pop_back();
  m->now = outer.state;
  c.include = outer.included ? c.include | kAutocastKey : c.include & ~kAutocastKey;
  if (m->outer.empty()) clear_cache(*m);
}

void clear_autocast_cache() {
  if (AutocastMode* m = of(ctx())) clear_cache(*m);
}

// Backward and callbacks in it run without the key.
static bool on(const Ctx& c) { return of(c) && (c.include & kAutocastKey); }
bool autocast_enabled(const Ctx& c, int32_t type) noexcept {
  return on(c) && (type == TT_CPU || type == TT_CUDA) && of(c)->now.of(type).enabled;
}
Dtype autocast_dtype(const Ctx& c, int32_t type) noexcept {
  if (type != TT_CPU && type != TT_CUDA) return Dtype::kNone;
  return of(c) ? of(c)->now.of(type).dtype : State().of(type).dtype;
}
bool autocast_cache_enabled(const Ctx& c) noexcept { return !of(c) || of(c)->now.cache; }

}  // namespace TT_NS
