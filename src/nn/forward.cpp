// Calls a module: pre-hooks, the type's forward, hooks. Sequences run on an explicit stack.
#include "core/graph_hooks.h"
#include "nn/hook.h"
#include "nn/lazy.h"

namespace TT_NS {

namespace {

void run_pre_hooks(Module& m, Values& v) {
  for_each_hook(m.hooks, kForwardPreHook, 0, [&](Hook& h) {
    CallbackName what("forward pre-hook", m.type->name);
    CallbackOuts outs(v.own.size());
    run_callback(what.text, true, [&](tt_ctx* c) {
      return reinterpret_cast<ModulePreHook>(h.fn)(h.user, c, handle(m), handles(v.span()),
                                                   v.own.size(), outs.data());
    });
    v.replace(outs.take(what.text, true));
  });
}

void run_post_hooks(Module& m, TensorSpan inputs, Values& v) {
  for_each_hook(m.hooks, kForwardHook, 0, [&](Hook& h) {
    CallbackName what("forward hook", m.type->name);
    CallbackOuts outs(v.own.size());
    run_callback(what.text, true, [&](tt_ctx* c) {
      return reinterpret_cast<ModulePostHook>(h.fn)(h.user, c, handle(m), handles(inputs), inputs.n,
                                                    handles(v.span()), v.own.size(), outs.data());
    });
    v.replace(outs.take(what.text, true));
  });
}

void check_call(Module& m, TensorSpan inputs) {
  note_module(m);
  const ModuleType& t = *m.type;
  const LayerName named(t.name);
  if (!t.forward && !t.sequential)
    fail_arg(TT_NOT_IMPLEMENTED, "m", "a container cannot be called: call its children");
  if (inputs.n < t.min_inputs || inputs.n > t.max_inputs)
    fail_arg(TT_INVALID_ARG, "inputs", "inputs has length {}: must be {} to {}", inputs.n,
             t.min_inputs, t.max_inputs);
  for (int64_t i = 0; i < t.min_inputs; i++)
    if (!inputs[i])
      fail_arg(TT_BAD_HANDLE, "inputs", "inputs[{}] is NULL: must be a tensor handle", i);
}

// The event of a running sequence; that of other modules is run_forward's.
class SequenceEvent {
 public:
  explicit SequenceEvent(const Module& m) : sink_(m.type->sequential ? ctx().events : nullptr) {
    if (sink_) token_ = sink_->begin(*sink_, EventKind::kModule, m.type->name, &m);
  }
  SequenceEvent(SequenceEvent&& o) noexcept : sink_(o.sink_), token_(o.token_) {
    o.sink_ = nullptr;
  }
  ~SequenceEvent() {
    if (sink_) sink_->end(*sink_, token_);
  }

 private:
  EventSink* sink_;
  int64_t token_ = 0;
};

// A running sequence, or a module whose hooks wait for its results.
struct Frame {
  ModuleRef module;
  int64_t next;
  TensorList inputs;  // kept for its hooks
  WatchedCall watched;
  SequenceEvent event;
};

}  // namespace

static TensorList run_forward(Module& m, TensorSpan inputs) {
  const LayerName named(m.type->name);
  if (TT_UNLIKELY(m.lazy != nullptr)) materialize(m, inputs);
  const Ctx& c = ctx();
  const bool alone =
      !c.watched && !(c.include & kLastingKeys) && (!inputs.n || !inputs[0] || inputs[0]->is_cpu());
  if (TT_LIKELY(alone)) return m.type->forward(m, inputs);
  const ModuleKeepAlive kept(m);
  EventScope event(EventKind::kModule, m.type->name, &m);
  return m.type->forward(m, inputs);
}

TensorList forward(Module& root, TensorSpan inputs) {
  check_call(root, inputs);
  if (root.hooks.empty() && !root.type->sequential) return run_forward(root, inputs);
  Values v(inputs);
  SmallVec<Frame, 4> frames;
  ModuleRef entering = ModuleRef::share(&root);
  for (;;) {
    if (entering) {
      Module& m = *entering;
      run_pre_hooks(m, v);
      check_call(m, v.span());
      const bool hooked = !m.hooks.empty();
      WatchedCall watched = hooked ? watch_inputs(m, v) : WatchedCall();
      SequenceEvent event(m);
      frames.push_back({std::move(entering), 0, hooked ? v.own : TensorList(), std::move(watched),
                        std::move(event)});
      if (!m.type->sequential) v.take(run_forward(m, v.span()));
    }
    Frame& f = frames.back();
    Module& m = *f.module;
    if (m.type->sequential && f.next < m.children.size()) {
      entering = m.children[f.next++].module;
      continue;
    }
    if (!m.hooks.empty()) run_post_hooks(m, Values(std::move(f.inputs)).span(), v);
    if (f.watched.on) watch_results(m, f.watched, v);
    frames.pop_back();
    if (frames.empty()) return std::move(v.own);
  }
}

TensorRef first_of(TensorList results, const Module& child) {
  if (results.empty() || !results[0])
    fail_arg(TT_INVALID_ARG, "m", "{} returned no result: must return one", child.type->name);
  return std::move(results[0]);
}
TensorRef call_child(const Module& m, int64_t i, const Tensor& x) {
  const ModuleRef child = m.children[i].module;  // callbacks may replace it
  const Tensor* in = &x;
  return first_of(forward(*child, {&in, 1}), *child);
}

}  // namespace TT_NS
