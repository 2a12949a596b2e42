#include "modes/streams.h"

#include "dispatch/call.h"

namespace TT_NS {

namespace {

// Calls f(tensor, written) for the tensors of CUDA devices among the arguments.
template <class F> void each_on_cuda(const OpSchema& s, const Value* args, const F& f) {
  const auto visit = [&](const Tensor* t, bool written) {
    if (t && t->device.type == TT_CUDA) f(*const_cast<Tensor*>(t), written);
  };
  for (int32_t i = 0; i < s.n_args; i++) {
    const Value& v = args[i];
    const bool written = s.args[i].mutates;
    if (v.kind == Value::kTensor) visit(v.tensor, written);
    for (int64_t k = 0; v.kind == Value::kTensorList && k < v.n; k++) visit(v.tensors[k], written);
    for (int64_t k = 0; v.kind == Value::kIndices && k < v.n; k++)
      if (v.indices[k].kind == TT_IDX_TENSOR)
        visit(reinterpret_cast<const Tensor*>(v.indices[k].tensor), false);
  }
}

DeviceStream& stream_of(const Tensor& t) {
  return current_stream(runtime_cuda(ctx().rt, t.device.index));
}

// From now on, whoever uses the tensor comes through this mode.
void mark_tensor(Tensor& t) noexcept {
  if (atomic_load(&t.storage->users, kRelaxed) >> kWriterShift) t.keys |= bit(kKeyStream);
}

// What was started on the memory is noted, also if the call fails.
struct MarkArgs {
  const OpSchema& schema;
  const Value* args;
  ~MarkArgs() {
    each_on_cuda(schema, args, [](Tensor& t, bool written) {
      mark_used(stream_of(t), *t.storage, written);
      if (written) mark_tensor(t);
    });
  }
};

void stream_slot(Call c, const Value* args, TensorList& outs) {
  c.keys &= ~bit(kKeyStream);
  const OpSchema& s = *c.op->schema;
  const int64_t before = outs.size();
  if (s.structural) {  // views, and calls of other operators, which come here again
    c.op->call_boxed(c, args, outs);
  } else {
    each_on_cuda(s, args, [](Tensor& t, bool written) {
      DeviceStream& stream = stream_of(t);
      wait_for_writer(stream, *t.storage);
      if (written) wait_for_users(stream, *t.storage);
    });
    MarkArgs marks{s, args};
    c.op->call_boxed(c, args, outs);
  }
  for (int64_t k = before; k < outs.size(); k++) {
    Tensor* t = outs[k].get();
    if (!t || t->device.type != TT_CUDA) continue;
    if (!s.structural && s.alias == Alias::kNone && stream_of(*t).number)
      mark_used(stream_of(*t), *t->storage, true);
    mark_tensor(*t);
  }
}

}  // namespace

void use_stream(Ctx& c, DeviceStream& stream) {
  use_mode(kKeyStream, &stream_slot);
  set_current_stream(c, stream);
  // For good: a tensor that shares memory with a marked one need not be marked itself.
  if (stream.number) c.include |= bit(kKeyStream);
}

}  // namespace TT_NS
