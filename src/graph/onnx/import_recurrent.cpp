#include "graph/onnx/importer.h"
#include "ops/gen/ops.h"
#include "plan/recurrent_plan.h"

namespace TT_NS {

namespace {

constexpr int64_t kMaxUnrolled = 4096;  // steps that become nodes of their own

}  // namespace

// Rows of input i (directions, parts * rows, …) in the order that tt has gates in.
TensorRef OnnxImporter::gates_of(int64_t i, int64_t direction, int64_t part, int64_t parts,
                                 Ints order) const {
  const Tensor& all = in(i);
  const int64_t rows = all.size(1) / parts;
  const int64_t each = rows / order.n;
  if (!item(inputs_[i]).known || !all.contiguous()) {
    const TensorRef one = op::select(all, 0, direction);
    TensorList blocks;
    SmallVec<const Tensor*, 4> list;
    for (const int64_t from : order)
      blocks.push_back(op::narrow(*one, 0, part * rows + from * each, each));
    for (const TensorRef& t : blocks) list.push_back(t.get());
    return op::cat({list.data(), list.size()}, 0);
  }
  Shape sizes(all.sizes().slice(1, all.ndim));
  sizes[0] = rows;
  TensorRef t = new_tensor(sizes, all.dtype, kCpuDevice);
  const int64_t row = all.ndim == 3 ? all.size(2) * all.item_size() : all.item_size();
  const char* from = all.data + (direction * parts + part) * rows * row;
  for (int64_t k = 0; k < order.n; k++)
    if (each > 0 && row > 0)
      memcpy(t->data + k * each * row, from + order[k] * each * row, size_t(each * row));
  return t;
}

// A recurrent node.
struct OnnxImporter::Recurrent {
  bool lstm = false;
  bool gru = false;
  bool back = false;
  bool both = false;
  bool resets_first = false;  // a GRU whose reset gate scales the state before the product
  bool by_range = false;      // an LSTM of 8-bit weights, of each step's own range of states
  int64_t mode = 0;
  int64_t steps = 0;
  int64_t rows = 0;
  int64_t hidden = 0;
  Ints order;
  // What follows from lengths of sequences: whether a step is inside (steps, rows, 1), the place of
  // each step in reverse, the last step (1, rows, 1), whether a sequence has steps. NULL: none.
  TensorRef inside, turned, last, filled;
  int64_t total() const { return steps * rows; }
};

OnnxImporter::Recurrent OnnxImporter::read_recurrent() const {
  // where i f g o and r z n are in i o f c and z r h
  static constexpr int64_t kLstmOrder[] = {0, 2, 3, 1};
  static constexpr int64_t kGruOrder[] = {1, 0, 2};
  static constexpr int64_t kOne[] = {0};
  static constexpr int64_t kAsGiven[] = {0, 1, 2, 3};
  Recurrent n;
  n.by_range = is(type_, "DynamicQuantizeLSTM");
  n.lstm = n.by_range || is(type_, "LSTM");
  n.gru = is(type_, "GRU");
  n.order = Ints(kOne);
  if (n.lstm) n.order = Ints(kLstmOrder);
  if (n.gru) n.order = Ints(kGruOrder);
  if (n.by_range) n.order = Ints(kAsGiven);
  n.both = text_is("direction", "bidirectional", false);
  n.back = text_is("direction", "reverse", false);
  if (!n.both && !n.back && !text_is("direction", "forward", true)) refuse("its direction");
  if (attr("clip") || attr("activation_alpha") || attr("activation_beta") || integer("layout", 0) ||
      integer("input_forget", 0))
    refuse("clip, layout, input_forget or numbers of activations");
  n.resets_first = n.gru && !integer("linear_before_reset", 0);
  if (has(7)) refuse("peepholes");
  if (n.by_range && has(4)) refuse("lengths of sequences");
  n.mode = n.lstm ? kLstm : kRnnTanh;
  if (n.gru) n.mode = kGru;
  const OnnxAttr* a = attr("activations");
  if (!a) return n;
  // of an LSTM: f, g, h; of a GRU: f, g
  static constexpr const char* kNames[] = {"Sigmoid", "Tanh", "Tanh"};
  const bool gated = n.lstm || n.gru;
  const bool relu = !gated && a->texts.size() > 0 && is(a->texts[0], "Relu");
  if (relu) n.mode = kRnnRelu;
  for (int64_t i = 0; i < a->texts.size(); i++) {
    const char* want = relu ? "Relu" : "Tanh";
    const int64_t of_gates = i % (n.lstm ? 3 : 2);
    if (!is(a->texts[i], gated ? kNames[of_gates] : want)) refuse("its activations");
  }
  return n;
}

// Sets the sizes; fails unless the operands fit.
void OnnxImporter::check_recurrent(Recurrent& n) const {
  const Tensor &x = in(0), &w = in(1), &r = in(2);
  const auto is_weight = [&](const Tensor& t) {
    if (t.ndim != 3) return false;
    if (n.by_range) return t.dtype == Dtype::kU8 || t.dtype == Dtype::kI8;
    return t.dtype == x.dtype;
  };
  const bool fits = n.by_range ? x.dtype == Dtype::kF32 : is_float(x.dtype);
  if (x.ndim != 3 || !fits || !is_weight(w) || !is_weight(r))
    fail_model("a recurrent node has operands of other shapes or dtypes");
  // Weights of 8 bits are transposed.
  const int of_gates = n.by_range ? 2 : 1;
  const int of_input = n.by_range ? 1 : 2;
  n.steps = x.size(0);
  n.rows = x.size(1);
  n.hidden = r.size(of_input);
  if (n.hidden < 1 || n.hidden > kMaxMade || n.steps < 1 || n.steps > kMaxMade)
    refuse("its number of steps or of hidden units");
  if ((n.resets_first || n.by_range) && n.steps > kMaxUnrolled) refuse("too many steps to unroll");
  checked_numel(Ints(x.sizes().ptr, 2), x.dtype, "input");
  const int64_t width = n.order.n * n.hidden;
  const int64_t directions = n.both ? 2 : 1;
  if (w.size(0) != directions || r.size(0) != directions || w.size(of_gates) != width ||
      r.size(of_gates) != width || w.size(of_input) != x.size(2))
    fail_model("a recurrent node has weights of other shapes");
  for (int64_t i = 8; n.by_range && i < 12; i++) {
    const Tensor& t = in(i);
    const bool each = t.ndim == 2 && t.size(1) == width;
    const Dtype want = i == 9 ? w.dtype : r.dtype;
    if ((t.ndim != 1 && !each) || t.size(0) != directions ||
        t.dtype != (i % 2 ? want : Dtype::kF32))
      fail_model("a recurrent node has scales or zero points of other shapes or dtypes");
  }
  if (has(3) && (in(3).ndim != 2 || in(3).size(0) != directions || in(3).size(1) != 2 * width ||
                 in(3).dtype != x.dtype))
    fail_model("a recurrent node has biases of another shape");
  if (has(4) && (in(4).ndim != 1 || in(4).size(0) != n.rows || is_float(in(4).dtype)))
    fail_model("a recurrent node has lengths of another shape or dtype");
  const int64_t state[] = {directions, n.rows, n.hidden};
  for (const int64_t i : {5, 6})
    if (has(i) && (!same(in(i).sizes(), Ints(state)) || in(i).dtype != x.dtype))
      fail_model("a recurrent node has a state of another shape");
}

// A length outside [0, steps] gives a last step that the gather of the last state refuses.
void OnnxImporter::place_lengths(Recurrent& n) const {
  const int64_t by_row[] = {1, n.rows, 1};
  const int64_t by_step[] = {n.steps, 1, 1};
  const TensorRef lengths = op::to_dtype(*op::reshape(in(4), Ints(by_row)), Dtype::kI64);
  const TensorRef step = op::reshape(
      *op::arange(Scalar(0), Scalar(n.steps), Scalar(1), Dtype::kI64, Opt<Device>(kCpuDevice)),
      Ints(by_step));
  n.inside = op::lt(*step, *lengths);
  const TensorRef before = op::sub(*lengths, Scalar(1));
  n.turned = op::where(*n.inside, *op::sub(*before, *step), *step);
  n.filled = op::ne(*lengths, Scalar(0));
  n.last = op::where(*n.filled, *before, *lengths);
}

// Elements of t (steps, rows, features) at steps (…, rows, 1).
TensorRef OnnxImporter::at_steps(const Tensor& t, const Tensor& steps) {
  const int64_t sizes[] = {steps.size(0), steps.size(1), t.size(2)};
  return op::gather(t, 0, *op::expand(steps, Ints(sizes)));
}

// The states of a GRU whose reset gate scales the state before the product, as single steps.
TensorRef OnnxImporter::unrolled_gru(const Recurrent& n, const Tensor& gates, const Tensor& h0,
                                     const Tensor& again, bool reverse) const {
  const TensorRef of_gates = op::narrow(again, 0, 0, 2 * n.hidden);
  const TensorRef of_state = op::narrow(again, 0, 2 * n.hidden, n.hidden);
  TensorRef h = TensorRef::share(&h0);
  TensorList states;
  SmallVec<const Tensor*, 16> list;
  list.resize(n.steps);
  for (int64_t i = 0; i < n.steps; i++) {
    const int64_t step = reverse ? n.steps - 1 - i : i;
    const TensorRef x = op::narrow(gates, 0, step * n.rows, n.rows);
    const TensorRef rz =
        op::sigmoid(*op::add(*op::linear(*h, *of_gates), *op::narrow(*x, 1, 0, 2 * n.hidden)));
    const TensorRef kept = op::mul(*op::narrow(*rz, 1, 0, n.hidden), *h);
    const TensorRef fresh = op::tanh(
        *op::add(*op::linear(*kept, *of_state), *op::narrow(*x, 1, 2 * n.hidden, n.hidden)));
    const TensorRef z = op::narrow(*rz, 1, n.hidden, n.hidden);
    h = op::add(*fresh, *op::mul(*z, *op::sub(*h, *fresh)));
    list[step] = h.get();
    states.push_back(h);
  }
  return op::stack({list.data(), list.size()}, 0);
}

// The states and cells of an LSTM of 8-bit weights as single steps: x and the states of each step
// are quantized by their range.
TensorPair OnnxImporter::unrolled_lstm(const Recurrent& n, int64_t d, const Tensor& x,
                                       const Tensor* bias, const Tensor& h0, const Tensor& c0,
                                       bool reverse) const {
  struct Weight {
    TensorRef numbers, scale;
  };
  const auto weight_of = [&](int64_t i, int64_t scale) {
    const Dtype exact = exact_dtype(in(i).size(1));
    const TensorRef zero = op::to_dtype(*op::select(in(scale + 1), 0, d), exact);
    const TensorRef numbers = op::to_dtype(*op::select(in(i), 0, d), exact);
    return Weight{op::sub(*numbers, *zero), op::select(in(scale), 0, d)};
  };
  const auto product = [&](const Tensor& rows, const Weight& w) {
    return product_of_ranges(quantized_by_range(rows), *w.numbers, *w.scale);
  };
  const Weight again = weight_of(2, 10);
  TensorRef gates = product(x, weight_of(1, 8));
  if (bias) gates = op::add(*gates, *bias);
  TensorRef h = TensorRef::share(&h0);
  TensorRef c = TensorRef::share(&c0);
  TensorList made;
  SmallVec<const Tensor*, 16> states, cells;
  states.resize(n.steps);
  cells.resize(n.steps);
  for (int64_t i = 0; i < n.steps; i++) {
    const int64_t step = reverse ? n.steps - 1 - i : i;
    const TensorRef of_step = op::narrow(*gates, 0, step * n.rows, n.rows);
    const TensorRef all = op::add(*of_step, *product(*h, again));
    const auto gate = [&](int64_t k) { return op::narrow(*all, 1, k * n.hidden, n.hidden); };
    const TensorRef kept = op::mul(*op::sigmoid(*gate(2)), *c);
    c = op::add(*kept, *op::mul(*op::sigmoid(*gate(0)), *op::tanh(*gate(3))));
    h = op::mul(*op::sigmoid(*gate(1)), *op::tanh(*c));
    states[step] = h.get();
    cells[step] = c.get();
    made.push_back(h);
    made.push_back(c);
  }
  return {op::stack({states.data(), states.size()}, 0), op::stack({cells.data(), cells.size()}, 0)};
}

// States (steps, rows, hidden) of one direction, the last ones and those of cells (rows, hidden).
TensorTriple OnnxImporter::direction(const Recurrent& n, int64_t d) const {
  const Tensor& x = in(0);
  const bool reverse = n.back || d == 1;
  const bool turns = reverse && n.turned;
  const TensorRef given = turns ? at_steps(x, *n.turned) : TensorRef::share(&x);
  const int64_t flat[] = {n.total(), x.size(2)};
  const int64_t by_step[] = {n.steps, n.rows, n.hidden};
  const int64_t state[] = {n.rows, n.hidden};
  const auto initial = [&](int64_t i) {
    if (has(i)) return op::select(in(i), 0, d);
    return op::zeros(Ints(state), x.dtype, Opt<Device>(kCpuDevice));
  };
  const bool apart = n.gru && !n.resets_first;  // the reset gate scales the product's bias, too
  TensorRef b_ih, b_hh;
  if (has(3)) {
    b_ih = gates_of(3, d, 0, 2, n.order);
    b_hh = gates_of(3, d, 1, 2, n.order);
    if (!apart) b_ih = op::add(*b_ih, *b_hh);
  }
  const TensorRef rows = op::reshape(*given, Ints(flat));
  const TensorRef h0 = initial(5);
  const TensorRef c0 = n.lstm ? initial(6) : TensorRef();
  TensorRef states, cells;
  if (n.by_range) {
    TensorPair made = unrolled_lstm(n, d, *rows, b_ih.get(), *h0, *c0, reverse);
    states = std::move(made.first);
    cells = std::move(made.second);
  } else {
    const TensorRef again = gates_of(2, d, 0, 1, n.order);
    const TensorRef gates = op::linear(*rows, *gates_of(1, d, 0, 1, n.order), b_ih.get());
    if (n.resets_first) {
      states = unrolled_gru(n, *gates, *h0, *again, reverse && !turns);
    } else {
      SmallVec<int64_t, 16> sizes;
      sizes.resize(n.steps, n.rows);
      TensorTriple made =
          op::recurrent_layer(*gates, *h0, c0.get(), *again, apart ? b_hh.get() : nullptr, nullptr,
                              {sizes.data(), sizes.size()}, n.mode, reverse && !turns);
      states = op::reshape(*made.first, Ints(by_step));
      if (n.lstm) cells = op::reshape(*made.second, Ints(by_step));
    }
  }
  const auto last = [&](const Tensor& all) {
    if (!n.last) return op::select(all, 0, reverse ? 0 : n.steps - 1);
    const TensorRef zero = op::zeros({}, x.dtype, Opt<Device>(kCpuDevice));
    return op::reshape(*op::where(*n.filled, *at_steps(all, *n.last), *zero), Ints(state));
  };
  TensorTriple out;
  out.second = last(*states);
  if (n.lstm) out.third = last(*cells);
  if (turns) states = at_steps(*states, *n.turned);
  if (n.inside)
    states = op::where(*n.inside, *states, *op::zeros({}, x.dtype, Opt<Device>(kCpuDevice)));
  out.first = std::move(states);
  return out;
}

bool OnnxImporter::recurrent() {
  const bool by_range = is(type_, "DynamicQuantizeLSTM");
  if (!by_range && !is(type_, "LSTM") && !is(type_, "GRU") && !is(type_, "RNN")) return false;
  Recurrent n = read_recurrent();
  check_recurrent(n);
  if (has(4)) place_lengths(n);
  TensorList outputs, last_h, last_c;
  for (int64_t d = 0; d < (n.both ? 2 : 1); d++) {
    TensorTriple made = direction(n, d);
    outputs.push_back(std::move(made.first));
    last_h.push_back(std::move(made.second));
    if (n.lstm) last_c.push_back(std::move(made.third));
  }
  const auto stacked = [](const TensorList& list, int64_t dim) {
    SmallVec<const Tensor*, 2> tensors;
    for (const TensorRef& t : list) tensors.push_back(t.get());
    return op::stack({tensors.data(), tensors.size()}, dim);
  };
  give(stacked(outputs, 1));
  give(stacked(last_h, 0));
  if (n.lstm) give(stacked(last_c, 0));
  return true;
}

}  // namespace TT_NS
