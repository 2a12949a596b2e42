// Recurrent layers and cells: their parameters, and states that may be left out.
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"
#include "plan/recurrent_plan.h"

namespace TT_NS {

namespace {

// The sizes of a network; proj is 0 without a projection.
struct NetworkSizes {
  int64_t input, hidden, num_layers, gates, proj;
  bool bias, bidirectional, batch_first;
  double dropout;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t state() const { return proj ? proj : hidden; }
  int64_t params() const {
    int64_t each = 2;
    if (bias) each += 2;
    if (proj) each++;
    return each * directions() * num_layers;
  }
};

NetworkSizes sizes_of(const RNNArgs& a) {
  return {a.input_size, a.hidden_size,   a.num_layers,  1,        0,
          a.bias,       a.bidirectional, a.batch_first, a.dropout};
}
NetworkSizes sizes_of(const GRUArgs& a) {
  return {a.input_size, a.hidden_size,   a.num_layers,  3,        0,
          a.bias,       a.bidirectional, a.batch_first, a.dropout};
}
NetworkSizes sizes_of(const LSTMArgs& a) {
  return {a.input_size, a.hidden_size,   a.num_layers,  4,        a.proj_size,
          a.bias,       a.bidirectional, a.batch_first, a.dropout};
}

void check_sizes(const NetworkSizes& n) {
  check_positive(n.input, "input_size");
  check_positive(n.hidden, "hidden_size");
  check_positive(n.num_layers, "num_layers");
  if (!(n.dropout >= 0 && n.dropout <= 1))
    fail_arg(TT_INVALID_ARG, "dropout", "dropout is {}: must be in [0, 1]", n.dropout);
  if (n.proj < 0 || n.proj >= n.hidden)
    fail_arg(TT_INVALID_ARG, "proj_size", "proj_size is {}: must be in [0, hidden_size {})", n.proj,
             n.hidden);
  int64_t rows, width;
  if (mul_overflow(n.hidden, n.gates, &rows) || mul_overflow(n.state(), n.directions(), &width))
    fail_arg(TT_INVALID_ARG, "hidden_size", "hidden_size is {}: {} * hidden_size overflows",
             n.hidden, n.gates);
}

void build_network(Module& m, const NetworkSizes& n, Dtype dtype, Opt<Device> device) {
  const Place place(dtype, device);
  check_sizes(n);
  const double bound = 1 / libm::sqrt(double(n.hidden));
  const int64_t rows = n.gates * n.hidden;
  Text name;
  auto add = [&](const char* what, int64_t layer, bool reverse, Ints shape) {
    name.cut(0);
    name.add(what).add("_l").add(layer).add(reverse ? "_reverse" : "");
    TensorRef t = uniform_parameter(place, shape, bound, "hidden_size");
    m.slots.push_back({name, std::move(t), false, true});
  };
  for (int64_t layer = 0; layer < n.num_layers; layer++) {
    for (int64_t d = 0; d < n.directions(); d++) {
      const int64_t w_ih[2] = {rows, layer ? n.directions() * n.state() : n.input};
      const int64_t w_hh[2] = {rows, n.state()};
      const int64_t w_hr[2] = {n.proj, n.hidden};
      add("weight_ih", layer, d, w_ih);
      add("weight_hh", layer, d, w_hh);
      if (n.bias) add("bias_ih", layer, d, {&rows, 1});
      if (n.bias) add("bias_hh", layer, d, {&rows, 1});
      if (n.proj) add("weight_hr", layer, d, w_hr);
    }
  }
}

Shape batch_sizes_of(const Tensor* t) {
  Shape sizes(Ints{});
  if (!t) return sizes;
  if (t->dtype != Dtype::kI64 || t->ndim != 1 || !t->is_cpu() || !t->numel)
    fail_arg(TT_INVALID_ARG, "batch_sizes",
             "batch_sizes is {} {} on {}: must be int64, not empty, of 1 dimension and on the CPU",
             fmt(t->dtype), t->sizes(), fmt(t->device));
  note_host_read(*t);
  for (int64_t i = 0; i < t->numel; i++) sizes.push_back(t->as<int64_t>()[i * t->stride(0)]);
  return sizes;
}

// What a call of a network works on: unbatched inputs get a batch of one sequence.
struct NetworkCall {
  const NetworkSizes sizes;
  bool unbatched, train;
  Shape batch_sizes;
  TensorRef input;
  SmallVec<const Tensor*, 16> params;

  NetworkCall(Module& m, const NetworkSizes& n, const Tensor& x, const Tensor* packed)
      : sizes(n), train(m.training), batch_sizes(batch_sizes_of(packed)) {
    unbatched = x.ndim == 2 && !packed;
    if (x.ndim != (packed ? 2 : 3) && !unbatched)
      fail_arg(TT_SHAPE, "input", "input is {}: must have {} dimensions", x.sizes(),
               packed ? "2" : "2 or 3");
    if (x.size(-1) != n.input)
      fail_arg(TT_SHAPE, "input", "input is {}: its last size must be input_size {}", x.sizes(),
               n.input);
    const int64_t batch_dim = n.batch_first ? 0 : 1;
    input = unbatched ? op::unsqueeze(x, batch_dim) : TensorRef::share(&x);
    for (int64_t i = 0; i < n.params(); i++) params.push_back(&m.slot(i));
  }

  int64_t batch() const {
    if (!batch_sizes.empty()) return batch_sizes[0];
    return input->size(sizes.batch_first ? 0 : 1);
  }
  // The initial state; zeros if it is left out.
  TensorRef state(const Tensor* given, const char* name, int64_t width) const {
    const int64_t layers = sizes.num_layers * sizes.directions();
    const int64_t whole[3] = {layers, batch(), width};
    const int64_t single[2] = {layers, width};
    if (!given) {
      checked_numel(whole, input->dtype, name);
      return op::zeros(whole, input->dtype, input->device);
    }
    if (!same(given->sizes(), unbatched ? Ints(single) : Ints(whole)))
      fail_arg(TT_SHAPE, name, "{} is {}: must be {}", name, given->sizes(),
               unbatched ? Ints(single) : Ints(whole));
    return unbatched ? op::unsqueeze(*given, 1) : TensorRef::share(given);
  }
  void add_to(TensorList& list, TensorRef t, bool is_output) const {
    const int64_t dim = is_output && sizes.batch_first ? 0 : 1;
    list.push_back(unbatched ? op::select(*t, dim, 0) : std::move(t));
  }
  TensorList results(TensorRef output, TensorRef h_n, TensorRef c_n = {}) const {
    TensorList list;
    add_to(list, std::move(output), true);
    add_to(list, std::move(h_n), false);
    if (c_n) add_to(list, std::move(c_n), false);
    return list;
  }
};

}  // namespace

void build(Module& m, const RNNArgs& a) { build_network(m, sizes_of(a), a.dtype, a.device); }
void build(Module& m, const LSTMArgs& a) { build_network(m, sizes_of(a), a.dtype, a.device); }
void build(Module& m, const GRUArgs& a) { build_network(m, sizes_of(a), a.dtype, a.device); }

TensorList forward_of(Module& m, const RNNArgs& a, TensorSpan in) {
  const NetworkCall c(m, sizes_of(a), *in[0], in_opt(in, 2));
  TensorRef h_0 = c.state(in_opt(in, 1), "h_0", a.hidden_size);
  const auto run = a.nonlinearity ? op::rnn_relu : op::rnn_tanh;
  TensorPair made = run(*c.input, *h_0, c.params, a.bias, a.num_layers, a.dropout, c.train,
                        a.bidirectional, a.batch_first, c.batch_sizes);
  return c.results(std::move(made.first), std::move(made.second));
}

TensorList forward_of(Module& m, const GRUArgs& a, TensorSpan in) {
  const NetworkCall c(m, sizes_of(a), *in[0], in_opt(in, 2));
  TensorRef h_0 = c.state(in_opt(in, 1), "h_0", a.hidden_size);
  TensorPair made = op::gru(*c.input, *h_0, c.params, a.bias, a.num_layers, a.dropout, c.train,
                            a.bidirectional, a.batch_first, c.batch_sizes);
  return c.results(std::move(made.first), std::move(made.second));
}

TensorList forward_of(Module& m, const LSTMArgs& a, TensorSpan in) {
  const NetworkCall c(m, sizes_of(a), *in[0], in_opt(in, 3));
  const Tensor* h_given = in_opt(in, 1);
  const Tensor* c_given = in_opt(in, 2);
  if (!h_given != !c_given)
    fail_arg(TT_INVALID_ARG, "c_0", "h_0 and c_0 must be given together or not at all");
  TensorRef h_0 = c.state(h_given, "h_0", c.sizes.state());
  TensorRef c_0 = c.state(c_given, "c_0", a.hidden_size);
  const Tensor* const states[2] = {h_0.get(), c_0.get()};
  TensorTriple made = op::lstm(*c.input, states, c.params, a.bias, a.num_layers, a.dropout, c.train,
                               a.bidirectional, a.batch_first, c.batch_sizes);
  return c.results(std::move(made.first), std::move(made.second), std::move(made.third));
}

// ---- cells ----

namespace {

enum CellSlots { kWeightIh, kWeightHh, kBiasIh, kBiasHh };

void build_cell(Module& m, int64_t input, int64_t hidden, int64_t gates, bool bias, Place place) {
  check_size(input, "input_size");
  check_positive(hidden, "hidden_size");
  int64_t rows;
  if (mul_overflow(hidden, gates, &rows))
    fail_arg(TT_INVALID_ARG, "hidden_size", "hidden_size is {}: {} * hidden_size overflows", hidden,
             gates);
  const double bound = 1 / libm::sqrt(double(hidden));
  const int64_t w_ih[2] = {rows, input};
  const int64_t w_hh[2] = {rows, hidden};
  m.slots[kWeightIh].tensor = uniform_parameter(place, w_ih, bound, "hidden_size");
  m.slots[kWeightHh].tensor = uniform_parameter(place, w_hh, bound, "hidden_size");
  if (!bias) return;
  m.slots[kBiasIh].tensor = uniform_parameter(place, {&rows, 1}, bound, "hidden_size");
  m.slots[kBiasHh].tensor = uniform_parameter(place, {&rows, 1}, bound, "hidden_size");
}

// What a call of a cell works on: unbatched inputs get a batch of one row.
struct CellCall {
  bool unbatched;
  int64_t hidden;
  TensorRef input;

  CellCall(const Tensor& x, int64_t input_size, int64_t hidden_size)
      : unbatched(x.ndim == 1), hidden(hidden_size) {
    if (x.ndim != 1 && x.ndim != 2)
      fail_arg(TT_SHAPE, "input", "input is {}: must have 1 or 2 dimensions", x.sizes());
    if (x.size(-1) != input_size)
      fail_arg(TT_SHAPE, "input", "input is {}: its last size must be input_size {}", x.sizes(),
               input_size);
    input = unbatched ? op::unsqueeze(x, 0) : TensorRef::share(&x);
  }

  TensorRef state(const Tensor* given, const char* name) const {
    const int64_t whole[2] = {input->size(0), hidden};
    if (!given) {
      checked_numel(whole, input->dtype, name);
      return op::zeros(whole, input->dtype, input->device);
    }
    const Ints want = unbatched ? Ints(whole + 1, 1) : Ints(whole);
    if (!same(given->sizes(), want))
      fail_arg(TT_SHAPE, name, "{} is {}: must be {}", name, given->sizes(), want);
    return unbatched ? op::unsqueeze(*given, 0) : TensorRef::share(given);
  }
  TensorRef result(TensorRef t) const { return unbatched ? op::select(*t, 0, 0) : std::move(t); }
};

}  // namespace

void build(Module& m, const RNNCellArgs& a) {
  build_cell(m, a.input_size, a.hidden_size, 1, a.bias, Place(a.dtype, a.device));
}
void build(Module& m, const LSTMCellArgs& a) {
  build_cell(m, a.input_size, a.hidden_size, 4, a.bias, Place(a.dtype, a.device));
}
void build(Module& m, const GRUCellArgs& a) {
  build_cell(m, a.input_size, a.hidden_size, 3, a.bias, Place(a.dtype, a.device));
}

void describe_of(const Module&, const RNNCellArgs& a, Text& t) {
  put(t, nullptr, a.input_size);
  put(t, nullptr, a.hidden_size);
  if (!a.bias) put(t, "bias", a.bias);
  if (a.nonlinearity) t.add(", nonlinearity=relu");
}

TensorList forward_of(Module& m, const RNNCellArgs& a, TensorSpan in) {
  const CellCall c(*in[0], a.input_size, a.hidden_size);
  TensorRef h = c.state(in_opt(in, 1), "hx");
  const auto run = a.nonlinearity ? op::rnn_relu_cell : op::rnn_tanh_cell;
  return one(c.result(run(*c.input, *h, m.slot(kWeightIh), m.slot(kWeightHh), m.slot_opt(kBiasIh),
                          m.slot_opt(kBiasHh))));
}

TensorList forward_of(Module& m, const GRUCellArgs& a, TensorSpan in) {
  const CellCall c(*in[0], a.input_size, a.hidden_size);
  TensorRef h = c.state(in_opt(in, 1), "hx");
  return one(c.result(op::gru_cell(*c.input, *h, m.slot(kWeightIh), m.slot(kWeightHh),
                                   m.slot_opt(kBiasIh), m.slot_opt(kBiasHh))));
}

TensorList forward_of(Module& m, const LSTMCellArgs& a, TensorSpan in) {
  const CellCall c(*in[0], a.input_size, a.hidden_size);
  const Tensor* h_given = in_opt(in, 1);
  const Tensor* c_given = in_opt(in, 2);
  if (!h_given != !c_given)
    fail_arg(TT_INVALID_ARG, "c_0", "h_0 and c_0 must be given together or not at all");
  TensorRef h_0 = c.state(h_given, "h_0");
  TensorRef c_0 = c.state(c_given, "c_0");
  const Tensor* const states[2] = {h_0.get(), c_0.get()};
  TensorPair made = op::lstm_cell(*c.input, states, m.slot(kWeightIh), m.slot(kWeightHh),
                                  m.slot_opt(kBiasIh), m.slot_opt(kBiasHh));
  TensorList list = one(c.result(std::move(made.first)));
  list.push_back(c.result(std::move(made.second)));
  return list;
}

}  // namespace TT_NS
