#include "ops/undo.h"

#include "ops/gen/ops.h"
#include "core/graph_hooks.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS {

Rng UndoLog::reserve(Generator& g, uint64_t counters) {
  reserved_.reserve(reserved_.size() + 1);
  const Rng begin = g.take(counters);
  reserved_.push_back({Ref<Generator>::share(&g), begin, counters});
  return begin;
}

// The bytes from a tensor's first to its last element.
struct Range {
  char* begin;
  int64_t bytes;
};
static Range range_of(const Tensor& t) {
  const char* lo;
  const char* hi;
  byte_range(t, &lo, &hi);
  return {const_cast<char*>(lo), hi - lo};
}

static TensorRef copy_of_range(const Tensor& t) {
  const Range r = range_of(t);
  TensorRef copy = new_tensor(Ints(&r.bytes, 1), Dtype::kU8, kCpuDevice);
  ext_copy(ext_of(t), copy->data, r.begin, r.bytes, kDeviceToHost);
  return copy;
}

void UndoLog::remember(Tensor& t) {
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef values = t.device.type == TT_EXT ? copy_of_range(t) : op::clone(t);
  written_.push_back({TensorRef::share(&t), std::move(values), t.version()});
}

// A tensor that a callback has given other data (tt_tensor_set_data) keeps them: false.
static bool put_back(Tensor& t, const Tensor& values) {
  if (t.device.type != TT_EXT) {
    const bool alike = same(t.sizes(), values.sizes()) && t.dtype == values.dtype;
    if (!alike || !(t.device == values.device)) return false;
    copy_elements(t, values);
    return true;
  }
  const Range r = range_of(t);
  if (r.bytes != values.numel) return false;
  ext_copy(ext_of(t), r.begin, values.data, r.bytes, kHostToDevice);
  return true;
}

void UndoLog::undo() noexcept {
  while (!reserved_.empty()) {
    const RngReservation& d = reserved_.back();
    d.generator->give_back(d.begin, d.counters);
    reserved_.pop_back();
  }
  if (!written_.empty()) undo_writes();
}

// Does not allocate. If a device of the application fails to copy, its tensor keeps its values.
void UndoLog::undo_writes() noexcept {
  const ErrorRecord error = ctx_.error;
  MaskGuard no_grad(bit(kKeyAutograd));
  CommitGuard whole;
  for (; !written_.empty(); written_.pop_back()) {
    Written& w = written_.back();
    try {
      if (put_back(*w.tensor, *w.values))
        w.tensor->bump_version(w.version - w.tensor->version());  // back, modulo 2^32
    } catch (...) {}
  }
  ctx_.error = error;
}

static Rng reserve(Generator& g, uint64_t counters) {
  UndoLog* log = ctx().undo;
  return log && counters ? log->reserve(g, counters) : g.take(counters);
}
Rng reserve_rng(Generator* generator, uint64_t counters) {
  Generator& g = generator ? *generator : *ctx().gen;
  GraphHooks* graph = ctx().graph;
  return TT_UNLIKELY(graph != nullptr) ? graph->draw(*graph, g, counters, reserve)
                                       : reserve(g, counters);
}

void remember_values(Tensor& t) {
  if (UndoLog* log = ctx().undo) log->remember(t);
}

}  // namespace TT_NS
