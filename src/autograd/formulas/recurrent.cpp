// Gradients of recurrent layers. The kernels run backward through time unless the gradient itself
// is recorded: then it is composed of differentiable operators. All products of the state with
// w_hh are one, since the results hold every state; only dh and dc pass from step to step.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/recurrent/rows.h"

namespace TT_NS::formula {

namespace {

// What the kernels compute: the gradients of the gates, of the products with w_hh (gru) or of the
// projected outputs, and of c0 (lstm) or the part z dh of that of h0 (gru).
struct StepGradients {
  TensorRef gates, hidden, carry;
};

TensorRef concatenated(const TensorList& list, int64_t dim) {
  SmallVec<const Tensor*, 8> parts;
  for (const TensorRef& t : list) parts.push_back(t.get());
  return op::cat(parts, dim);
}
// NULL counts as zeros.
TensorRef sum_or_one(TensorRef a, TensorRef b) {
  if (!a || !b) return a ? std::move(a) : std::move(b);
  return a + b;
}
TensorRef rows_at(const Tensor& t, RecurrentStep step) {
  return op::narrow(t, 0, step.at, step.rows);
}
// The first n rows of t, with zeros appended if it has fewer.
TensorRef resized_rows(const Tensor& t, int64_t n) {
  const int64_t have = t.size(0);
  if (have >= n) return op::narrow(t, 0, 0, n);
  const int64_t missing[2] = {n - have, t.size(1)};
  TensorRef zeros = op::zeros(missing, t.dtype, t.device);
  const Tensor* const parts[2] = {&t, zeros.get()};
  return op::cat(parts, 0);
}
// Column group `gate` of t.
TensorRef gate_of(const Tensor& t, int64_t gate, int64_t hidden) {
  return op::narrow(t, 1, gate * hidden, hidden);
}

// The layer as differentiable functions of its inputs and results, for all steps at once.
struct Recomputed {
  int64_t mode, hidden;
  const Tensor &output, &w_hh;
  const Tensor* w_hr;
  TensorRef before;       // the state before each row
  TensorRef c_before, t;  // lstm: c before each row, tanh(c)
  TensorRef gate[4];      // lstm: i f g o; gru: r z n h_n

  Recomputed(const Tensor& gates, const Tensor& h0, const Tensor* c0, const Tensor& w,
             const Tensor* bias, const Tensor* projection, Ints sizes, int64_t kind, bool reverse,
             const Tensor& out, const Tensor& cells)
      : mode(kind),
        hidden(w.size(0) / recurrent_gates(int32_t(kind))),
        output(out),
        w_hh(w),
        w_hr(projection) {
    if (mode != kLstm && mode != kGru) return;
    before = recurrent_rows_before(out, h0, sizes, reverse);
    TensorRef products = op::linear(before, w, bias);
    if (mode == kLstm) {
      TensorRef x = gates + products;
      for (int64_t k = 0; k < 4; k++) {
        TensorRef part = gate_of(x, k, hidden);
        gate[k] = k == 2 ? op::tanh(part) : op::sigmoid(part);
      }
      c_before = recurrent_rows_before(cells, *c0, sizes, reverse);
      t = op::tanh(cells);
      return;
    }
    for (int64_t k = 0; k < 2; k++)
      gate[k] = op::sigmoid(gate_of(gates, k, hidden) + gate_of(products, k, hidden));
    gate[3] = gate_of(products, 2, hidden);
    gate[2] = op::tanh(gate_of(gates, 2, hidden) + gate[0] * gate[3]);
  }

  // The gradients of the gates of one step and what is carried to the step before. `carry` may be
  // NULL.
  StepGradients step(RecurrentStep at, const Tensor& dh, TensorRef carry) const {
    if (mode == kLstm) return lstm_step(at, dh, std::move(carry));
    if (mode == kGru) return gru_step(at, sum_or_one(TensorRef::share(&dh), std::move(carry)));
    return {dh * slope_at(at), {}, {}};
  }

  // The tangents of the state and of the cells after a step: x and p are those of its gates and of
  // the products with w_hh, h and c those before it.
  TensorPair tangents(RecurrentStep at, const Tensor& x, const Tensor& p, const Tensor& h,
                      const Tensor* c) const {
    if (mode == kLstm) return lstm_tangents(at, x + p, *c);
    if (mode == kGru) return {gru_tangents(at, x, p, h), {}};
    return {(x + p) * slope_at(at), {}};
  }

 private:
  TensorRef slope_at(RecurrentStep at) const {
    TensorRef h = rows_at(output, at);
    return mode == kRnnTanh ? 1 - h * h : op::to_dtype(op::gt(h, 0), h->dtype);
  }
  TensorPair lstm_tangents(RecurrentStep at, const Tensor& x, const Tensor& c) const {
    TensorRef i = rows_at(gate[0], at);
    TensorRef f = rows_at(gate[1], at);
    TensorRef g = rows_at(gate[2], at);
    TensorRef o = rows_at(gate[3], at);
    TensorRef tanh_c = rows_at(t, at);
    TensorRef of_i = gate_of(x, 0, hidden) * (i * (1 - i));
    TensorRef of_f = gate_of(x, 1, hidden) * (f * (1 - f));
    TensorRef of_g = gate_of(x, 2, hidden) * (1 - g * g);
    TensorRef of_o = gate_of(x, 3, hidden) * (o * (1 - o));
    TensorRef dc = f * c + of_f * rows_at(c_before, at) + i * of_g + of_i * g;
    return {of_o * tanh_c + o * (1 - tanh_c * tanh_c) * dc, dc};
  }
  TensorRef gru_tangents(RecurrentStep at, const Tensor& x, const Tensor& p,
                         const Tensor& h) const {
    TensorRef r = rows_at(gate[0], at);
    TensorRef z = rows_at(gate[1], at);
    TensorRef n = rows_at(gate[2], at);
    TensorRef of_r = (gate_of(x, 0, hidden) + gate_of(p, 0, hidden)) * (r * (1 - r));
    TensorRef of_z = (gate_of(x, 1, hidden) + gate_of(p, 1, hidden)) * (z * (1 - z));
    TensorRef inner =
        gate_of(x, 2, hidden) + r * gate_of(p, 2, hidden) + of_r * rows_at(gate[3], at);
    return (1 - z) * (1 - n * n) * inner + z * h + (rows_at(before, at) - n) * of_z;
  }
  StepGradients lstm_step(RecurrentStep at, const Tensor& dh, TensorRef carry) const {
    TensorRef i = rows_at(gate[0], at);
    TensorRef f = rows_at(gate[1], at);
    TensorRef g = rows_at(gate[2], at);
    TensorRef o = rows_at(gate[3], at);
    TensorRef tanh_c = rows_at(t, at);
    TensorRef dm = w_hr ? op::matmul(dh, *w_hr) : TensorRef::share(&dh);
    TensorRef dc = sum_or_one(dm * o * (1 - tanh_c * tanh_c), std::move(carry));
    TensorList parts;
    parts.push_back(dc * g * (i * (1 - i)));
    parts.push_back(dc * rows_at(c_before, at) * (f * (1 - f)));
    parts.push_back(dc * i * (1 - g * g));
    parts.push_back(dm * tanh_c * (o * (1 - o)));
    return {concatenated(parts, 1), TensorRef::share(&dh), dc * f};
  }
  StepGradients gru_step(RecurrentStep at, const Tensor& dh) const {
    TensorRef r = rows_at(gate[0], at);
    TensorRef z = rows_at(gate[1], at);
    TensorRef n = rows_at(gate[2], at);
    TensorRef dn = dh * (1 - z) * (1 - n * n);
    TensorList parts;
    parts.push_back(dn * rows_at(gate[3], at) * (r * (1 - r)));
    parts.push_back(dh * (rows_at(before, at) - n) * (z * (1 - z)));
    parts.push_back(dn);
    TensorRef dgates = concatenated(parts, 1);
    parts[2] = dn * r;
    return {std::move(dgates), concatenated(parts, 1), dh * z};
  }
};

// Concatenates the parts of steps, which were made in the order of the walk.
TensorRef of_all_steps(TensorList& parts, bool ascending) {
  if (!ascending)
    for (int64_t i = 0, j = parts.size() - 1; i < j; i++, j--) std::swap(parts[i], parts[j]);
  return concatenated(parts, 0);
}

// Backward through time in differentiable operators.
StepGradients through_time(const Recomputed& layer, TensorSpan g, Ints sizes, bool reverse) {
  const bool projects = layer.w_hr != nullptr;
  const int64_t width = layer.w_hh.size(1);
  TensorList dgates, dhidden, finished;
  TensorRef later, carry;  // of the step after: gradients of the products with w_hh, and of c or h
  RecurrentWalk walk(sizes, layer.output.size(0), !reverse);
  for (int64_t k = 0; k < sizes.n; k++, walk.next()) {
    const RecurrentStep at = walk.now();
    TensorRef dh = g[0] ? rows_at(*g[0], at) : TensorRef();
    if (later) dh = sum_or_one(std::move(dh), resized_rows(op::matmul(later, layer.w_hh), at.rows));
    if (!dh) {
      const int64_t shape[2] = {at.rows, width};
      dh = op::zeros(shape, layer.output.dtype, layer.output.device);
    }
    if (carry && carry->size(0) > at.rows)  // sequences whose first step was the step after
      finished.push_back(op::narrow(carry, 0, at.rows, carry->size(0) - at.rows));
    if (carry) carry = resized_rows(carry, at.rows);
    if (g[1] && layer.mode == kLstm) carry = sum_or_one(std::move(carry), rows_at(*g[1], at));
    StepGradients made = layer.step(at, dh, std::move(carry));
    carry = std::move(made.carry);
    later = layer.mode == kGru ? made.hidden : made.gates;
    dgates.push_back(std::move(made.gates));
    if (layer.mode == kGru || projects) dhidden.push_back(std::move(made.hidden));
  }
  StepGradients all;
  all.gates = of_all_steps(dgates, reverse);
  if (!dhidden.empty()) all.hidden = of_all_steps(dhidden, reverse);
  if (!carry) return all;
  finished.push_back(std::move(carry));
  all.carry = of_all_steps(finished, false);
  return all;
}

// The rows before a step of `rows` rows: those of the step before it, or of `first` where it has
// none. `last`: NULL before the first step.
TensorRef rows_before(const TensorRef& last, const Tensor& first, int64_t rows) {
  if (!last) return op::narrow(first, 0, 0, rows);
  const int64_t have = last->size(0);
  if (have >= rows) return op::narrow(last, 0, 0, rows);
  TensorRef rest = op::narrow(first, 0, have, rows - have);
  const Tensor* const parts[2] = {last.get(), rest.get()};
  return op::cat(parts, 0);
}
TensorRef tangent_or_zeros(const Tensor* tangent, const Tensor& t) {
  return tangent ? TensorRef::share(tangent) : op::zeros_like(t);
}

}  // namespace

TensorList recurrent_layer_forward(TensorSpan tangents, const Tensor& gates, const Tensor& h0,
                                   const Tensor* c0, const Tensor& w_hh, const Tensor* b_hh,
                                   const Tensor* w_hr, Ints batch_sizes, int64_t mode, bool reverse,
                                   const Tensor& output, const Tensor& cells) {
  const Recomputed layer(gates, h0, c0, w_hh, b_hh, w_hr, batch_sizes, mode, reverse, output,
                         cells);
  TensorRef x = tangent_or_zeros(tangents[0], gates);
  TensorRef first = tangent_or_zeros(tangents[1], h0);
  TensorRef first_cells = c0 ? tangent_or_zeros(tangents[2], *c0) : TensorRef();
  TensorRef of_weights, of_projection;  // parts that do not pass from step to step
  if (tangents[3] || tangents[4])
    of_weights = op::linear(recurrent_rows_before(output, h0, batch_sizes, reverse),
                            tangent_or_zeros(tangents[3], w_hh), tangents[4]);
  if (tangents[5]) of_projection = op::linear(layer.gate[3] * layer.t, *tangents[5], nullptr);
  TensorList states, all_cells;
  TensorRef state, cell;
  RecurrentWalk walk(batch_sizes, gates.size(0), reverse);
  for (int64_t k = 0; k < batch_sizes.n; k++, walk.next()) {
    const RecurrentStep at = walk.now();
    TensorRef h = rows_before(state, first, at.rows);
    TensorRef c = c0 ? rows_before(cell, first_cells, at.rows) : TensorRef();
    TensorRef p = op::linear(h, w_hh, nullptr);
    if (of_weights) p = p + rows_at(of_weights, at);
    TensorPair made = layer.tangents(at, rows_at(x, at), p, h, c.get());
    state = w_hr ? op::linear(made.first, *w_hr, nullptr) : std::move(made.first);
    if (of_projection) state = state + rows_at(of_projection, at);
    cell = std::move(made.second);
    states.push_back(state);
    if (cell) all_cells.push_back(cell);
  }
  TensorList found;
  found.push_back(of_all_steps(states, !reverse));
  if (c0) found.push_back(of_all_steps(all_cells, !reverse));
  return found;
}

RecurrentGrads recurrent_layer_grads(TensorSpan g, const Tensor& gates, const Tensor& h0,
                                     const Tensor* c0, const Tensor& w_hh, const Tensor* b_hh,
                                     const Tensor* w_hr, Ints batch_sizes, int64_t mode,
                                     bool reverse, const Tensor& output, const Tensor& cells,
                                     const Tensor& saved, Needs needs) {
  StepGradients made;
  TensorRef o, tanh_c;  // lstm with a projection
  const int64_t hidden = w_hh.size(0) / recurrent_gates(int32_t(mode));
  if (ctx().exclude & bit(kKeyAutograd)) {
    TensorTriple all = op::recurrent_layer_backward(g[0], g[1], h0, c0, w_hh, w_hr, output, cells,
                                                    saved, batch_sizes, mode, reverse);
    made = {std::move(all.first), std::move(all.second), std::move(all.third)};
    if (w_hr) o = op::to_dtype(gate_of(saved, 3, hidden), output.dtype);
    if (w_hr) tanh_c = op::tanh(cells);
  } else {
    const Recomputed layer(gates, h0, c0, w_hh, b_hh, w_hr, batch_sizes, mode, reverse, output,
                           cells);
    made = through_time(layer, g, batch_sizes, reverse);
    o = layer.gate[3];
    tanh_c = layer.t;
  }
  const Tensor& products = mode == kGru ? *made.hidden : *made.gates;
  RecurrentGrads r;
  if (needs[1]) {
    r.second = op::matmul(recurrent_first_rows(products, batch_sizes, reverse), w_hh);
    if (mode == kGru) r.second = r.second + made.carry;
  }
  if (needs[2]) r.third = made.carry;
  if (needs[3])
    r.fourth = op::matmul(op::transpose(products, 0, 1),
                          recurrent_rows_before(output, h0, batch_sizes, reverse));
  const int64_t rows[1] = {0};
  if (needs[4]) r.fifth = op::sum_dim(products, rows);
  if (needs[5]) r.sixth = op::matmul(op::transpose(made.hidden, 0, 1), o * tanh_c);
  r.first = std::move(made.gates);
  return r;
}

}  // namespace TT_NS::formula
