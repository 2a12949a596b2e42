// Records for sizes that were never called, derived from records of other sizes.
#include "nn/compile/gradients.h"

#include "graph/plan/bind.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kMostDerived = 16;  // records
// A size of 1 broadcasts, and with 0 nothing is computed, so such sizes say nothing about others.
constexpr int64_t kLeastSize = 2;

// Records of one computation. The last one is a check: its graph must follow from the others.
using Family = SmallVec<CompiledRecord*, 5>;
using Graphs = SmallVec<const Graph*, 5>;

bool differs_by_small(const CompiledRecord& r, TensorSpan inputs) {
  for (int64_t i = 0; i < inputs.n; i++)
    for (int64_t d = 0; d < inputs[i]->ndim; d++) {
      const int64_t a = r.inputs[i].sizes[d];
      const int64_t b = inputs[i]->sizes()[d];
      if (a != b && min(a, b) < kLeastSize) return true;
    }
  return false;
}

// The first recorded calls that may differ from this one in sizes only.
SmallVec<CompiledRecord*, 8> relatives_of(const Compiled& f, TensorSpan inputs) {
  constexpr int64_t kMost = 8;
  SmallVec<CompiledRecord*, 8> found;
  for (CompiledRecord* r : f.records)
    if (found.size() < kMost && r->captured && fits_but_sizes(*r, inputs) &&
        !differs_by_small(*r, inputs))
      found.push_back(r);
  return found;
}

// Whether the sizes of both records differ from those of the call in the same proportions.
bool in_line(const CompiledRecord& a, const CompiledRecord& b, TensorSpan inputs) {
  int64_t by_a = 0, by_b = 0;  // how much the first size differs
  for (int64_t i = 0; i < inputs.n; i++)
    for (int64_t d = 0; d < inputs[i]->ndim; d++) {
      const int64_t size = inputs[i]->sizes()[d];
      const int64_t x = a.inputs[i].sizes[d] - size;
      const int64_t y = b.inputs[i].sizes[d] - size;
      if (!by_a && !by_b) {
        by_a = x;
        by_b = y;
      }
      if (double(x) * double(by_b) != double(y) * double(by_a)) return false;
    }
  return by_a && by_b && by_a != by_b;
}

Graphs graphs_of(const Family& family, int64_t n) {
  Graphs graphs;
  for (int64_t i = 0; i < n; i++) graphs.push_back(family[i]->captured.get());
  return graphs;
}

// Three calls that differ from this one in one dimension, or none.
Family line_of(Span<CompiledRecord* const> relatives, TensorSpan inputs) {
  for (int64_t i = 0; i < relatives.n; i++) {
    Family found({relatives[i]});
    for (int64_t k = i + 1; k < relatives.n && found.size() < 3; k++)
      if (in_line(*relatives[i], *relatives[k], inputs)) found.push_back(relatives[k]);
    if (found.size() == 3) return found;
  }
  return {};
}

// Five calls that differ in two dimensions, or none. The first four determine all factors.
Family plane_of(Span<CompiledRecord* const> relatives) {
  constexpr int64_t kGraphs = 4;
  if (relatives.n <= kGraphs) return {};
  for (int64_t set = 0; set < int64_t(1) << relatives.n; set++) {
    Family found;
    for (int64_t i = 0; i < relatives.n; i++)
      if (set >> i & 1) found.push_back(relatives[i]);
    if (found.size() != kGraphs || !Growth::fits(graphs_of(found, kGraphs))) continue;
    for (int64_t i = 0; i < relatives.n && found.size() == kGraphs; i++)
      if (!(set >> i & 1)) found.push_back(relatives[i]);
    return found.size() > kGraphs ? found : Family();
  }
  return {};
}

// The text of a graph has not all digits of its numbers.
bool same_numbers(const IrNode& a, const IrNode& b) {
  for (int64_t i = 0; i < a.args.size(); i++) {
    const IrArg &x = a.args[i], &y = b.args[i];
    if (memcmp(&x.f, &y.f, sizeof x.f) || memcmp(&x.scalar.re, &y.scalar.re, sizeof x.scalar.re))
      return false;
  }
  return true;
}
// Whether two graphs have the same nodes and numbers. resize_graph compares their objects.
bool same_graph(const Graph& a, const Graph& b) {
  if (a.draws.size() != b.draws.size() || a.nodes.size() != b.nodes.size()) return false;
  for (int64_t i = 0; i < a.draws.size(); i++)
    if (a.draws[i].counters != b.draws[i].counters) return false;
  for (int64_t i = 0; i < a.nodes.size(); i++)
    if (a.nodes[i].args.size() != b.nodes[i].args.size() || !same_numbers(a.nodes[i], b.nodes[i]))
      return false;
  Text x, y;
  print_graph(a, x);
  print_graph(b, y);
  return x.is(y.c_str());
}

// The graph of a call with these inputs, or empty if it does not follow from the family.
Ref<Graph> derived_graph(const Compiled& f, const Family& family, TensorSpan inputs) {
  const int64_t n = family.size() - 1;
  const SmallVec<MemoryInput, 2> memories = memories_of(inputs);
  const Graphs graphs = graphs_of(family, n);
  const Graph& check = *family[n]->captured;
  try {
    const Growth growth(graphs);
    Shape checked, sizes;
    for (int64_t i = 0; i < growth.n_dims(); i++) {
      const DynamicDim& d = growth.dim(i);
      checked.push_back(check.values[check.inputs[d.input]].sizes[d.dim]);
      if (d.input >= memories.size()) return {};
      sizes.push_back(memories[d.input].tensor->sizes()[d.dim]);
    }
    if (!same_graph(*resize_graph(graphs, checked, f.dynamic), check))
      fail(TT_NOT_IMPLEMENTED, "the last size does not follow from the others");
    Ref<Graph> g = resize_graph(graphs, sizes, f.dynamic);
    for (int64_t i = 0; i < memories.size(); i++) {
      const IrValue& v = g->values[g->inputs[i]];
      const Tensor& t = *memories[i].tensor;
      if (!same(v.sizes, t.sizes()) || !same(v.strides, t.strides())) return {};
    }
    return g;
  } catch (...) {
    if (ctx().error.view.code == TT_OOM) throw;
    family[0]->underivable[n > 2] = true;
    return {};
  }
}

void drop_oldest_derived(Compiled& f) noexcept {
  int64_t n = 0;
  int64_t oldest = -1;
  for (int64_t i = 0; i < f.records.size(); i++) {
    if (!f.records[i]->derived) continue;
    if (oldest < 0) oldest = i;
    n++;
  }
  if (n < kMostDerived) return;
  free_record(f.records[oldest]);
  f.records.erase(oldest);
}

void copy_guards(const CompiledRecord& from, TensorSpan inputs, CompiledRecord& to) {
  to.modes = from.modes;
  to.spent = from.spent;
  for (int64_t i = 0; i < inputs.n; i++) {
    InputGuard guard = from.inputs[i];
    guard.sizes = Shape(inputs[i]->sizes());
    guard.strides = Shape(inputs[i]->strides());
    to.inputs.push_back(std::move(guard));
  }
  for (const ModuleGuard& g : from.modules) to.modules.push_back(g);
  for (const OutsideGuard& g : from.tensors) to.tensors.push_back(g);
  for (const LeafGuard& g : from.leaves) to.leaves.push_back(g);
}

// Finds a family from which the graph of a call with these inputs follows, and returns the graph.
Ref<Graph> derive_graph(const Compiled& f, TensorSpan inputs, Family& family) {
  const SmallVec<CompiledRecord*, 8> relatives = relatives_of(f, inputs);
  if (relatives.empty()) return {};
  Ref<Graph> found;
  family = line_of(relatives, inputs);
  if (!family.empty() && !family[0]->underivable[0]) found = derived_graph(f, family, inputs);
  if (found || relatives[0]->underivable[1]) return found;
  family = plane_of(relatives);
  if (!family.empty()) return derived_graph(f, family, inputs);
  if (num_recorded(f) >= f.limit) relatives[0]->underivable[1] = true;
  return {};
}

}  // namespace

CompiledRecord* derive_record(Compiled& f, TensorSpan inputs) {
  if (!f.dynamic) return nullptr;
  Family family;
  const Ref<Graph> captured = derive_graph(f, inputs, family);
  if (!captured) return nullptr;
  const CompiledRecord& first = *family[0];
  NewRecord made(f);
  CompiledRecord& r = *made.record;
  r.derived = true;
  copy_guards(first, inputs, r);
  r.n_results = first.n_results;
  if (first.gradients) {
    r.gradients = new_gradients_like(*first.gradients);
    set_plans(r, *captured, inputs);
  } else {
    set_plan(r, *captured, r.n_results, inputs);
  }
  for (const GradRule& rule : first.grads)
    r.grads.push_back({rule.leaf, rule.out < 0 ? TensorRef() : plan_slot(*r.plan, true, rule.out),
                       rule.out, rule.result, rule.input});
  drop_oldest_derived(f);
  made.keep();
  return &r;
}

}  // namespace TT_NS
