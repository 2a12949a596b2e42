// Recurrent networks of several layers and directions, and their cells, over the primitive.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/recurrent/rows.h"

namespace TT_NS::impl {

namespace {

// The arguments of a network.
struct Network {
  int32_t mode;
  const Tensor* input;
  const Tensor* h0;  // (layers * directions, N, state)
  const Tensor* c0;  // (layers * directions, N, hidden), lstm only
  TensorSpan params;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
  Ints batch_sizes;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t state() const { return h0->size(2); }
  int64_t hidden() const { return mode == kLstm ? c0->size(2) : state(); }
  bool projects() const { return hidden() != state(); }
  int64_t params_of_layer() const { return (has_biases ? 4 : 2) + int64_t(projects()); }
};

// The parameters of one layer in one direction.
struct LayerParams {
  const Tensor *w_ih, *w_hh;
  const Tensor* b_ih = nullptr;
  const Tensor* b_hh = nullptr;
  const Tensor* w_hr = nullptr;
};

void check_dtype(const Tensor& t, const char* name, Dtype dtype) {
  if (t.dtype != dtype)
    fail_arg(TT_DTYPE, name, "{} is {}, input is {}: must have the same dtype", name, fmt(t.dtype),
             fmt(dtype));
}
void check_shape(const Tensor& t, const char* name, Ints want) {
  if (!same(t.sizes(), want))
    fail_arg(TT_SHAPE, name, "{} is {}: must be {}", name, t.sizes(), want);
}
void check_param(const Tensor* t, const char* name, const Tensor& input, Ints want) {
  if (!t) return;
  check_same_device(input, "input", *t, name);
  check_dtype(*t, name, input.dtype);
  check_shape(*t, name, want);
}

void check_params(const LayerParams& w, const Tensor& input, int32_t mode, int64_t width,
                  int64_t hidden, int64_t state) {
  int64_t rows;
  if (mul_overflow(int64_t(recurrent_gates(mode)), hidden, &rows))
    fail_arg(TT_SHAPE, "hx", "the hidden size is {}: too large for the weights of all gates",
             hidden);
  const int64_t w_ih[2] = {rows, width};
  const int64_t w_hh[2] = {rows, state};
  const int64_t bias[1] = {rows};
  const int64_t w_hr[2] = {state, hidden};
  check_param(w.w_ih, "weight_ih", input, w_ih);
  check_param(w.w_hh, "weight_hh", input, w_hh);
  check_param(w.b_ih, "bias_ih", input, bias);
  check_param(w.b_hh, "bias_hh", input, bias);
  check_param(w.w_hr, "weight_hr", input, w_hr);
}

void check_state(const Tensor& t, const char* name, const Network& n, int64_t batch) {
  check_same_device(*n.input, "input", t, name);
  check_dtype(t, name, n.input->dtype);
  if (t.ndim != 3) fail_arg(TT_SHAPE, name, "{} is {}: must have 3 dimensions", name, t.sizes());
  const int64_t want[3] = {n.num_layers * n.directions(), batch, t.size(2)};
  check_shape(t, name, want);
  if (t.size(2) < 1)
    fail_arg(TT_SHAPE, name, "{} is {}: its last size must be at least 1", name, t.sizes());
}

// Returns the batch sizes of the steps.
Shape check_network(const Network& n) {
  const Tensor& x = *n.input;
  const bool packed = n.batch_sizes.n > 0;
  if (!is_float(x.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(x.dtype));
  if (x.ndim != (packed ? 2 : 3))
    fail_arg(TT_SHAPE, "input", "input is {}: must have {} dimensions", x.sizes(), packed ? 2 : 3);
  if (n.num_layers < 1 || n.num_layers > n.params.n)
    fail_arg(TT_INVALID_ARG, "num_layers",
             "num_layers is {}: must be at least 1, with parameters for each layer", n.num_layers);
  Shape sizes(n.batch_sizes);
  const int64_t time = n.batch_first ? 1 : 0;
  if (!packed) {
    if (x.size(time) < 1)
      fail_arg(TT_SHAPE, "input", "input is {}: must have at least one step", x.sizes());
    for (int64_t t = 0; t < x.size(time); t++) sizes.push_back(x.size(1 - time));
  }
  check_state(*n.h0, "h_0", n, sizes[0]);
  if (n.c0) check_state(*n.c0, "c_0", n, sizes[0]);
  const int64_t want = n.num_layers * n.directions() * n.params_of_layer();
  if (n.params.n != want)
    fail_arg(TT_INVALID_ARG, "params", "params has length {}: must be {}", n.params.n, want);
  return sizes;
}

LayerParams params_of(const Network& n, int64_t at) {
  const int64_t first = at * n.params_of_layer();
  LayerParams w = {n.params[first], n.params[first + 1]};
  if (n.has_biases) {
    w.b_ih = n.params[first + 2];
    w.b_hh = n.params[first + 3];
  }
  if (n.projects()) w.w_hr = n.params[first + n.params_of_layer() - 1];
  return w;
}

// Products of the input with weight_ih. All biases are added here, but for those of a gru's state,
// which a gate multiplies.
TensorRef input_gates(const LayerParams& w, const Tensor& rows, int32_t mode) {
  if (mode == kGru || !w.b_ih || !w.b_hh)
    return op::linear(rows, *w.w_ih, w.b_ih || mode == kGru ? w.b_ih : w.b_hh);
  return op::linear(rows, *w.w_ih, op::add(*w.b_ih, *w.b_hh).get());
}

TensorTriple run_layer(const LayerParams& w, const Tensor& rows, const Tensor& h0, const Tensor* c0,
                       Ints sizes, int32_t mode, bool reverse) {
  TensorRef gates = input_gates(w, rows, mode);
  return op::recurrent_layer(*gates, h0, c0, *w.w_hh, mode == kGru ? w.b_hh : nullptr, w.w_hr,
                             sizes, mode, reverse);
}

TensorRef joined(const TensorList& list, int64_t dim, bool new_dim) {
  SmallVec<const Tensor*, 8> tensors;
  for (const TensorRef& t : list) tensors.push_back(t.get());
  return new_dim ? op::stack(tensors, dim) : op::cat(tensors, dim);
}

TensorTriple run_network(const Network& n) {
  const Shape sizes = check_network(n);
  const bool packed = n.batch_sizes.n > 0;
  const int64_t directions = n.directions();
  TensorRef x = TensorRef::share(n.input);
  if (!packed && n.batch_first) x = op::transpose(*x, 0, 1);
  Shape shape(x->sizes());
  if (!packed) {
    const int64_t rows[2] = {shape[0] * shape[1], shape[2]};
    x = op::reshape(*x, rows);
  }
  TensorList h_n, c_n;
  for (int64_t layer = 0; layer < n.num_layers; layer++) {
    TensorList outputs;
    for (int64_t d = 0; d < directions; d++) {
      const int64_t at = layer * directions + d;
      const LayerParams w = params_of(n, at);
      check_params(w, *n.input, n.mode, x->size(1), n.hidden(), n.state());
      TensorRef h0 = op::select(*n.h0, 0, at);
      TensorRef c0 = n.c0 ? op::select(*n.c0, 0, at) : TensorRef();
      TensorTriple made = run_layer(w, *x, *h0, c0.get(), sizes, n.mode, d == 1);
      h_n.push_back(recurrent_last_rows(*made.first, sizes, d == 1));
      if (n.c0) c_n.push_back(recurrent_last_rows(*made.second, sizes, d == 1));
      outputs.push_back(std::move(made.first));
    }
    x = directions == 1 ? std::move(outputs[0]) : joined(outputs, 1, false);
    const bool last = layer == n.num_layers - 1;
    if (n.dropout > 0 && n.train && !last) x = op::dropout(*x, n.dropout, true);
  }
  if (!packed) {
    shape[2] = x->size(1);
    x = op::reshape(*x, shape);
    if (n.batch_first) x = op::transpose(*x, 0, 1);
  }
  TensorRef last_c = n.c0 ? joined(c_n, 0, true) : TensorRef();
  return {std::move(x), joined(h_n, 0, true), std::move(last_c)};
}

TensorPair run_without_cells(const Network& n) {
  TensorTriple made = run_network(n);
  return {std::move(made.first), std::move(made.second)};
}

void check_pair(TensorSpan hx) {
  if (hx.n != 2) fail_arg(TT_INVALID_ARG, "hx", "hx has length {}: must be h and c", hx.n);
}

TensorPair run_cell(int32_t mode, const Tensor& input, const Tensor& h, const Tensor* c,
                    const LayerParams& w) {
  if (!is_float(input.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "input", "input is {}: must be floating", fmt(input.dtype));
  if (input.ndim != 2)
    fail_arg(TT_SHAPE, "input", "input is {}: must have 2 dimensions", input.sizes());
  if (h.ndim != 2 || h.size(1) < 1)
    fail_arg(TT_SHAPE, "hx", "hx is {}: must have 2 dimensions, the last not empty", h.sizes());
  const int64_t hidden = h.size(1);
  const int64_t state[2] = {input.size(0), hidden};
  check_param(&h, "hx", input, state);
  check_param(c, "hx", input, state);
  check_params(w, input, mode, input.size(1), hidden, hidden);
  const int64_t sizes[1] = {input.size(0)};
  TensorTriple made = run_layer(w, input, h, c, sizes, mode, false);
  return {std::move(made.first), std::move(made.second)};
}

}  // namespace

TensorTriple lstm(Call, const Tensor& input, TensorSpan hx, TensorSpan params, bool has_biases,
                  int64_t num_layers, double dropout, bool train, bool bidirectional,
                  bool batch_first, Ints batch_sizes) {
  check_pair(hx);
  return run_network({kLstm, &input, hx[0], hx[1], params, has_biases, num_layers, dropout, train,
                      bidirectional, batch_first, batch_sizes});
}

TensorPair gru(Call, const Tensor& input, const Tensor& hx, TensorSpan params, bool has_biases,
               int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first,
               Ints batch_sizes) {
  return run_without_cells({kGru, &input, &hx, nullptr, params, has_biases, num_layers, dropout,
                            train, bidirectional, batch_first, batch_sizes});
}

TensorPair rnn_tanh(Call, const Tensor& input, const Tensor& hx, TensorSpan params, bool has_biases,
                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                    bool batch_first, Ints batch_sizes) {
  return run_without_cells({kRnnTanh, &input, &hx, nullptr, params, has_biases, num_layers, dropout,
                            train, bidirectional, batch_first, batch_sizes});
}

TensorPair rnn_relu(Call, const Tensor& input, const Tensor& hx, TensorSpan params, bool has_biases,
                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                    bool batch_first, Ints batch_sizes) {
  return run_without_cells({kRnnRelu, &input, &hx, nullptr, params, has_biases, num_layers, dropout,
                            train, bidirectional, batch_first, batch_sizes});
}

TensorPair lstm_cell(Call, const Tensor& input, TensorSpan hx, const Tensor& w_ih,
                     const Tensor& w_hh, const Tensor* b_ih, const Tensor* b_hh) {
  check_pair(hx);
  return run_cell(kLstm, input, *hx[0], hx[1], {&w_ih, &w_hh, b_ih, b_hh});
}

TensorRef gru_cell(Call, const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                   const Tensor& w_hh, const Tensor* b_ih, const Tensor* b_hh) {
  return run_cell(kGru, input, hx, nullptr, {&w_ih, &w_hh, b_ih, b_hh}).first;
}

TensorRef rnn_tanh_cell(Call, const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                        const Tensor& w_hh, const Tensor* b_ih, const Tensor* b_hh) {
  return run_cell(kRnnTanh, input, hx, nullptr, {&w_ih, &w_hh, b_ih, b_hh}).first;
}

TensorRef rnn_relu_cell(Call, const Tensor& input, const Tensor& hx, const Tensor& w_ih,
                        const Tensor& w_hh, const Tensor* b_ih, const Tensor* b_hh) {
  return run_cell(kRnnRelu, input, hx, nullptr, {&w_ih, &w_hh, b_ih, b_hh}).first;
}

}  // namespace TT_NS::impl
