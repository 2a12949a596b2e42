#include "modes/checkpoint.h"

#include "autograd/node.h"
#include "autograd/saved_hooks.h"
#include "base/finalizer.h"
#include "core/ctx.h"
#include "dispatch/changed_args.h"
#include "dispatch/op_ref.h"
#include "modes/autocast.h"
#include "ops/impl.h"

namespace TT_NS {

namespace {

// A tensor that the first call has saved.
struct Saved {
  Shape sizes;
  Dtype dtype;
};

// The autocast modes of a ctx, which can be entered again.
struct AutocastModes {
  static constexpr int32_t kTypes[] = {TT_CPU, TT_CUDA};
  bool enabled[2];
  Dtype dtype[2];
  bool cache;

  static AutocastModes of(const Ctx& c) {
    AutocastModes m;
    for (int i = 0; i < 2; i++) {
      m.enabled[i] = autocast_enabled(c, kTypes[i]);
      m.dtype[i] = autocast_dtype(c, kTypes[i]);
    }
    m.cache = autocast_cache_enabled(c);
    return m;
  }
};
class AutocastScope {
 public:
  AutocastScope() = default;
  void push(const AutocastModes& m) {
    for (; n_ < 2; n_++)
      push_autocast(AutocastModes::kTypes[n_], m.enabled[n_], m.dtype[n_], m.cache);
  }
  ~AutocastScope() {
    while (n_--) pop_autocast();
  }
  AutocastScope(const AutocastScope&) = delete;

 private:
  int n_ = 0;
};

// Sets the ctx's generator to an earlier state for a block.
class RngScope {
 public:
  explicit RngScope(const Rng& state) : before_(ctx().gen->state()) { ctx().gen->set(state); }
  ~RngScope() { ctx().gen->set(before_); }
  RngScope(const RngScope&) = delete;

 private:
  const Rng before_;
};

// Records gradients for a block: what is saved is read without recording.
class Recording {
 public:
  Recording() : exclude_(ctx().exclude) { ctx().exclude &= ~bit(kKeyAutograd); }
  ~Recording() { ctx().exclude = exclude_; }
  Recording(const Recording&) = delete;

 private:
  const KeySet exclude_;
};

class HooksPushed {
 public:
  explicit HooksPushed(const SavedHooksDef& def) { push_saved_hooks(def); }
  ~HooksPushed() { pop_saved_hooks(); }
  HooksPushed(const HooksPushed&) = delete;
};

// Calls a function with the key of checkpoint_slot, which the ctx does not have in callbacks
// otherwise.
tt_status call_selecting(void* user, tt_ctx* c, const tt_tensor* const* inputs, int64_t n,
                         tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const auto& f = *static_cast<const OwnedFunction*>(user);
  ctx().include |= bit(kKeyCheckpoint);
  return f.fn(f.user, c, inputs, n, outs, cap, n_outs);
}

// Calls f(tensor) for each tensor among the arguments.
template <class F> void for_each_argument(const OpSchema& schema, const Value* args, F f) {
  for (int32_t i = 0; i < schema.n_args; i++) for_each_tensor(args[i], f);
}
bool same_place(const Tensor& a, const Tensor& b) {
  return a.storage == b.storage && a.data == b.data && a.dtype == b.dtype &&
         same(a.sizes(), b.sizes()) && same(a.strides(), b.strides());
}

// A tensor that a call has saved: argument number `argument`, or another one.
struct SavedByCall {
  int64_t argument;
  TensorRef other;
};
// A result without its history.
struct KeptResult {
  TensorRef tensor;
  uint32_t version;
  bool requires_grad;
};
// A call whose results are kept.
struct KeptCall {
  const OpInfo* op;
  SmallVec<SavedByCall, 4> saved;
  SmallVec<KeptResult, 1> results;
  Rng random_after;
};

// A call of a checkpointed function. Its operators save the numbers of tensors, which share it.
class Frame {
 public:
  explicit Frame(const OwnedFunction& f) noexcept
      : f_(f), autocast_(AutocastModes::of(ctx())), random_(ctx().gen->state()) {}
  static void destroy(void* frame);
  void hold(TensorSpan inputs);
  void keep(Span<const OpInfo* const> ops);
  TensorList first_call(TensorSpan inputs);
  static void checkpoint_slot(Call c, const Value* args, TensorList& outs);

 private:
  // The tensors that backward read last are kept: formulas read some of them twice.
  static constexpr int kRecent = 8;
  struct Recent {
    int64_t number = -1;
    TensorRef tensor;
  };
  // The tensors of a second call.
  struct Recomputation {
    Frame& frame;
    TensorList tensors;
    int64_t n = 0;
    int64_t first_difference = -1;  // the first tensor that is not as in the first call
    Saved differing = {};           // this tensor
    int64_t next_kept = 0;          // in kept_
  };

  static tt_status pack(void* user, tt_ctx*, const tt_tensor* t, void** packed);
  static tt_status unpack(void* user, tt_ctx*, void* packed, tt_tensor** out);
  static tt_status pack_recomputed(void* user, tt_ctx*, const tt_tensor* t, void** packed);
  static tt_status unpack_recomputed(void* user, tt_ctx*, void* packed, tt_tensor** out);
  static void drop_recomputed(void* packed);
  TensorList call(TensorSpan inputs) {
    if (ops_.empty()) return call_function(f_.fn, f_.user, inputs);
    return call_function(call_selecting, &f_, inputs);
  }
  bool keeps(const OpInfo& op) const;
  void call_and_keep(Call c, const Value* args, TensorList& outs);
  void note(const Tensor& t);
  static void repeat(Recomputation& run, Call c, const Value* args, TensorList& outs);
  TensorRef recent(int64_t number);
  TensorRef read(int64_t number);
  TensorList second_call();

  OwnedFunction f_;
  TensorList inputs_;  // without histories
  AutocastModes autocast_;
  Rng random_;
  bool draws_ = false;  // the function drew random numbers
  SmallVec<Saved, 8> saved_;
  SmallVec<OpRef, 4> ops_;  // the operators whose results are kept
  SmallVec<KeptCall, 4> kept_;
  const Value* args_ = nullptr;  // of the running call that is the last of kept_
  Mutex mutex_;
  TensorList recomputed_;   // under mutex_: of the last second call, without those that were read
  Recent recent_[kRecent];  // under mutex_
  int next_recent_ = 0;
};

// An alias without a history, which is a leaf if t requires a gradient.
TensorRef leaf_of(const Tensor& t) {
  TensorRef leaf = new_alias(t);
  if (requires_grad(t)) set_requires_grad(*leaf, true);
  return leaf;
}
void Frame::hold(TensorSpan inputs) {
  for (const Tensor* t : inputs) inputs_.push_back(leaf_of(*t));
}

void Frame::destroy(void* frame) {
  auto* const own = static_cast<Frame*>(frame);
  const OwnedFunction f = own->f_;
  own->~Frame();
  mem_free(own, sizeof *own);
  run_drop(f.drop, f.user);
}

tt_status Frame::pack(void* user, tt_ctx*, const tt_tensor* t, void** packed) {
  Frame& frame = *static_cast<Frame*>(user);
  const Tensor& tensor = *reinterpret_cast<const Tensor*>(t);
  frame.saved_.push_back({Shape(tensor.sizes()), tensor.dtype});
  if (frame.args_) frame.note(tensor);
  *packed = reinterpret_cast<void*>(uintptr_t(frame.saved_.size()));
  return TT_OK;
}

void Frame::keep(Span<const OpInfo* const> ops) {
  for (const OpInfo* op : ops) ops_.push_back(op);
}

// Results that are views, or arguments that the operator writes, are not kept.
bool Frame::keeps(const OpInfo& op) const {
  const OpSchema& schema = *op.schema;
  if (schema.alias != Alias::kNone || !schema.n_outs) return false;
  for (int32_t i = 0; i < schema.n_args; i++)
    if (schema.args[i].mutates) return false;
  for (const OpRef& one : ops_)
    if (one.get() == &op) return true;
  return false;
}

// Notes that the running call saves t.
void Frame::note(const Tensor& t) {
  KeptCall& call = kept_.back();
  int64_t argument = -1;
  int64_t i = 0;
  for_each_argument(*call.op->schema, args_, [&](const Tensor& x) {
    if (argument < 0 && same_place(x, t)) argument = i;
    i++;
  });
  call.saved.push_back({argument, argument < 0 ? new_alias(t) : TensorRef()});
}

void Frame::call_and_keep(Call c, const Value* args, TensorList& outs) {
  const int64_t before = outs.size();
  kept_.push_back({c.op, {}, {}, {}});
  {
    const MaskGuard whole(bit(kKeyCheckpoint));
    struct Done {
      Frame& frame;
      ~Done() { frame.args_ = nullptr; }
    } done{*this};
    args_ = args;
    c.op->call_boxed(c, args, outs);
  }
  KeptCall& call = kept_.back();
  call.random_after = ctx().gen->state();
  for (int64_t i = before; i < outs.size(); i++) {
    if (!outs[i]) {
      call.results.push_back({});
      continue;
    }
    TensorRef plain = new_alias(*outs[i]);
    const uint32_t version = plain->version();
    call.results.push_back({std::move(plain), version, requires_grad(*outs[i])});
  }
}

// Returns the kept results of the first call in place of calling the operator.
void Frame::repeat(Recomputation& run, Call c, const Value* args, TensorList& outs) {
  const Frame& frame = run.frame;
  const int64_t i = run.next_kept++;
  if (i >= frame.kept_.size() || frame.kept_[i].op != c.op)
    fail(TT_CALLBACK, "the function calls {} when it is called again, and not at first",
         c.op->name());
  const KeptCall& call = frame.kept_[i];
  SmallVec<const Tensor*, 8> arguments;
  for_each_argument(*c.op->schema, args, [&](const Tensor& t) { arguments.push_back(&t); });
  for (const SavedByCall& saved : call.saved) {
    const Tensor* t = saved.other.get();
    if (!t && saved.argument < arguments.size()) t = arguments[saved.argument];
    if (!t)
      fail(TT_CALLBACK, "{} has fewer tensors when the function is called again", c.op->name());
    void* packed = nullptr;
    pack_recomputed(&run, nullptr, reinterpret_cast<const tt_tensor*>(t), &packed);
    drop_recomputed(packed);
  }
  ctx().gen->set(call.random_after);
  for (const KeptResult& r : call.results) {
    if (r.tensor && r.tensor->version() != r.version)
      fail(TT_CALLBACK, "a result of {} that the checkpoint has kept was written to", c.op->name());
    TensorRef leaf = r.tensor ? new_alias(*r.tensor) : TensorRef();
    if (r.requires_grad) set_requires_grad(*leaf, true);
    outs.push_back(std::move(leaf));
  }
}

void Frame::checkpoint_slot(Call c, const Value* args, TensorList& outs) {
  c.keys &= ~bit(kKeyCheckpoint);
  // Inside another pair of hooks, which keeps the saved tensors, the checkpoint has none.
  const SavedHooksDef* hooks = innermost_saved_hooks();
  const bool first = hooks && hooks->pack == pack;
  const bool second = hooks && hooks->pack == pack_recomputed;
  if (first) {
    Frame& frame = *static_cast<Frame*>(hooks->user);
    if (frame.keeps(*c.op)) return frame.call_and_keep(c, args, outs);
  } else if (second) {
    Recomputation& run = *static_cast<Recomputation*>(hooks->user);
    if (run.frame.keeps(*c.op)) return repeat(run, c, args, outs);
  }
  c.op->call_boxed(c, args, outs);
}

TensorList Frame::first_call(TensorSpan inputs) {
  const HooksPushed hooks({this, pack, unpack, nullptr, destroy, true});
  TensorList outs = call(inputs);
  const Rng now = ctx().gen->state();
  draws_ = now.seed != random_.seed || now.offset != random_.offset;
  return outs;
}

tt_status Frame::pack_recomputed(void* user, tt_ctx*, const tt_tensor* t, void** packed) {
  Recomputation& run = *static_cast<Recomputation*>(user);
  const Tensor& tensor = *reinterpret_cast<const Tensor*>(t);
  const int64_t number = run.n++;
  TensorRef kept = new_alias(tensor);
  if (number < run.tensors.size()) {
    const Saved& first = run.frame.saved_[number];
    const bool equal = tensor.dtype == first.dtype && same(tensor.sizes(), first.sizes);
    if (!equal && run.first_difference < 0) {
      run.first_difference = number;
      run.differing = {Shape(tensor.sizes()), tensor.dtype};
    }
    run.tensors[number] = kept;
  }
  *packed = kept.leak();
  return TT_OK;
}
tt_status Frame::unpack_recomputed(void*, tt_ctx*, void* packed, tt_tensor** out) {
  TensorRef kept = TensorRef::share(static_cast<Tensor*>(packed));
  *out = reinterpret_cast<tt_tensor*>(kept.leak());
  return TT_OK;
}
void Frame::drop_recomputed(void* packed) { TensorRef::adopt(static_cast<Tensor*>(packed)); }

TensorList Frame::second_call() {
  if (draws_ && ctx().graph)
    fail(TT_NOT_IMPLEMENTED,
         "a checkpoint draws random numbers: a capture cannot repeat those of its first call");
  const Recording recording;
  TensorList leaves;
  SmallVec<const Tensor*, 4> inputs;
  for (const TensorRef& t : inputs_) {
    leaves.push_back(leaf_of(*t));
    inputs.push_back(leaves.back().get());
  }
  Recomputation run{*this, {}};
  run.tensors.resize(saved_.size());
  const RngScope random(random_);
  AutocastScope autocast;
  autocast.push(autocast_);
  {
    const HooksPushed hooks(
        {&run, pack_recomputed, unpack_recomputed, drop_recomputed, nullptr, true});
    call(inputs);
  }
  if (run.first_difference >= 0) {
    const Saved& first = saved_[run.first_difference];
    fail(TT_CALLBACK, "the function saved {} {} as tensor {}, and {} {} when it was called again",
         fmt(first.dtype), Ints(first.sizes), run.first_difference, fmt(run.differing.dtype),
         Ints(run.differing.sizes));
  }
  if (run.n != saved_.size())
    fail(TT_CALLBACK, "the function saved {} tensors for backward, and {} when it was called again",
         saved_.size(), run.n);
  return std::move(run.tensors);
}

TensorRef Frame::recent(int64_t number) {
  TensorRef gone;  // released after the lock
  Lock lock(mutex_);
  for (const Recent& r : recent_)
    if (r.number == number) return r.tensor;
  if (number >= recomputed_.size() || !recomputed_[number]) return {};
  Recent& oldest = recent_[next_recent_++ % kRecent];
  gone = std::move(oldest.tensor);
  oldest = {number, std::move(recomputed_[number])};
  return oldest.tensor;
}

TensorRef Frame::read(int64_t number) {
  if (TensorRef found = recent(number)) return found;
  TensorList tensors = second_call();
  TensorList gone;  // released after the lock
  {
    Lock lock(mutex_);
    gone = std::move(recomputed_);
    recomputed_ = std::move(tensors);
  }
  return recent(number);
}

tt_status Frame::unpack(void* user, tt_ctx*, void* packed, tt_tensor** out) {
  TensorRef t = static_cast<Frame*>(user)->read(int64_t(uintptr_t(packed)) - 1);
  *out = reinterpret_cast<tt_tensor*>(t.leak());
  return TT_OK;
}

}  // namespace

TensorList checkpoint(const OwnedFunction& f, TensorSpan inputs, Span<const OpInfo* const> kept) {
  void* block = nullptr;
  try {
    block = mem_alloc(sizeof(Frame));
  } catch (...) {
    run_drop(f.drop, f.user);
    throw;
  }
  Frame* const frame = new (block) Frame(f);
  try {
    if (kept.n) use_mode(kKeyCheckpoint, &Frame::checkpoint_slot);
    frame->keep(kept);
    frame->hold(inputs);
  } catch (...) {
    Frame::destroy(frame);
    throw;
  }
  return frame->first_call(inputs);
}

}  // namespace TT_NS
