/* References of recurrent networks. */

enum { kRnnRelu, kRnnTanh, kLstm, kGru };
static int gates_of(int mode) {
  if (mode == kLstm) return 4;
  return mode == kGru ? 3 : 1;
}
static double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }

/* Item i of a tensor list; NULL for i < 0. */
static const Array* item(const Inputs* in, const char* name, int i) {
  return i < 0 ? NULL : &in->items[in->sample->first_item[row_arg(in->sample->row, name)] + i];
}

/* The parameters of one layer in one direction; b_ih, b_hh and w_hr may be NULL. */
typedef struct Weights {
  const Array *w_ih, *w_hh, *b_ih, *b_hh, *w_hr;
} Weights;

/* Row `row` of w times x, plus b[row]. */
static double affine(const Array* w, const Array* b, int64_t row, const double* x) {
  const int64_t n = w->shape[1];
  double sum = b ? b->data[row] : 0;
  for (int64_t k = 0; k < n; k++) sum += w->data[row * n + k] * x[k];
  return sum;
}

/* One step of one sequence, in place: h (state), c (hidden; lstm only). */
static void recurrent_step(int mode, const Weights* w, const double* x, double* h, double* c) {
  const int64_t hidden = w->w_hh->shape[0] / gates_of(mode);
  double* next = scratch((size_t)hidden * sizeof *next);
  for (int64_t j = 0; j < hidden; j++) {
    double of_x[4], of_h[4];
    for (int g = 0; g < gates_of(mode); g++) {
      of_x[g] = affine(w->w_ih, w->b_ih, g * hidden + j, x);
      of_h[g] = affine(w->w_hh, w->b_hh, g * hidden + j, h);
    }
    if (mode == kLstm) {
      const double i = sigmoid_of(of_x[0] + of_h[0]);
      const double f = sigmoid_of(of_x[1] + of_h[1]);
      c[j] = f * c[j] + i * tanh(of_x[2] + of_h[2]);
      next[j] = sigmoid_of(of_x[3] + of_h[3]) * tanh(c[j]);
    } else if (mode == kGru) {
      const double r = sigmoid_of(of_x[0] + of_h[0]);
      const double z = sigmoid_of(of_x[1] + of_h[1]);
      next[j] = (1 - z) * tanh(of_x[2] + r * of_h[2]) + z * h[j];
    } else {
      next[j] = mode == kRnnTanh ? tanh(of_x[0] + of_h[0]) : fmax(0, of_x[0] + of_h[0]);
    }
  }
  if (w->w_hr)
    for (int64_t j = 0; j < w->w_hr->shape[0]; j++) h[j] = affine(w->w_hr, NULL, j, next);
  else memcpy(h, next, (size_t)hidden * sizeof *h);
}

/* The row of step t of sequence i, -1 if the sequence is shorter. */
static int64_t row_of_step(const Inputs* in, const Array* input, int64_t t, int64_t i) {
  const tt_value* sizes = given(in, "batch_sizes");
  if (!sizes)
    return flag_arg(in, "batch_first") ? i * input->shape[1] + t : t * input->shape[1] + i;
  if (i >= sizes->ints[t]) return -1;
  for (int64_t before = 0; before < t; before++) i += sizes->ints[before];
  return i;
}

static int ref_network(const Inputs* in, Array* outs, int mode) {
  const Array* input = tensor(in, "input");
  const Array* h_0 = mode == kLstm ? item(in, "hx", 0) : tensor(in, "hx");
  const Array* c_0 = mode == kLstm ? item(in, "hx", 1) : NULL;
  const tt_value* sizes = given(in, "batch_sizes");
  const int batch_first = flag_arg(in, "batch_first");
  const int biases = flag_arg(in, "has_biases");
  const int64_t directions = flag_arg(in, "bidirectional") ? 2 : 1;
  const int64_t steps = sizes ? sizes->n : input->shape[batch_first];
  const int64_t batch = h_0->shape[1];
  const int64_t state = h_0->shape[2];
  const int64_t hidden = c_0 ? c_0->shape[2] : state;
  const int per_layer = (biases ? 4 : 2) + (hidden != state);
  Array x = copy_of(input);
  outs[1] = copy_of(h_0);
  if (c_0) outs[2] = copy_of(c_0);
  for (int64_t layer = 0; layer < int_arg(in, "num_layers", 1); layer++) {
    Array y = x;
    y.shape[y.ndim - 1] = directions * state;
    y = new_array(y.shape, y.ndim);
    const int64_t width = x.shape[x.ndim - 1];
    for (int64_t d = 0; d < directions; d++) {
      const int64_t at = layer * directions + d;
      const int first = (int)at * per_layer;
      const Weights w = {item(in, "params", first), item(in, "params", first + 1),
                         biases ? item(in, "params", first + 2) : NULL,
                         biases ? item(in, "params", first + 3) : NULL,
                         hidden != state ? item(in, "params", first + per_layer - 1) : NULL};
      for (int64_t i = 0; i < batch; i++) {
        double* h = outs[1].data + (at * batch + i) * state;
        double* c = c_0 ? outs[2].data + (at * batch + i) * hidden : NULL;
        for (int64_t k = 0; k < steps; k++) {
          const int64_t row = row_of_step(in, input, d ? steps - 1 - k : k, i);
          if (row < 0) continue;
          recurrent_step(mode, &w, x.data + row * width, h, c);
          memcpy(y.data + (row * directions + d) * state, h, (size_t)state * sizeof *h);
        }
      }
    }
    x = y;
  }
  outs[0] = x;
  return c_0 ? 3 : 2;
}
static int ref_lstm(const Inputs* in, Array* outs) { return ref_network(in, outs, kLstm); }
static int ref_gru(const Inputs* in, Array* outs) { return ref_network(in, outs, kGru); }
static int ref_rnn_tanh(const Inputs* in, Array* outs) { return ref_network(in, outs, kRnnTanh); }
static int ref_rnn_relu(const Inputs* in, Array* outs) { return ref_network(in, outs, kRnnRelu); }

static int ref_cell(const Inputs* in, Array* outs, int mode) {
  const Array* input = tensor(in, "input");
  const Weights w = {tensor(in, "w_ih"), tensor(in, "w_hh"), tensor(in, "b_ih"), tensor(in, "b_hh"),
                     NULL};
  outs[0] = copy_of(mode == kLstm ? item(in, "hx", 0) : tensor(in, "hx"));
  if (mode == kLstm) outs[1] = copy_of(item(in, "hx", 1));
  for (int64_t i = 0; i < input->shape[0]; i++)
    recurrent_step(mode, &w, input->data + i * input->shape[1], outs[0].data + i * outs[0].shape[1],
                   mode == kLstm ? outs[1].data + i * outs[1].shape[1] : NULL);
  return mode == kLstm ? 2 : 1;
}
static int ref_lstm_cell(const Inputs* in, Array* outs) { return ref_cell(in, outs, kLstm); }
static int ref_gru_cell(const Inputs* in, Array* outs) { return ref_cell(in, outs, kGru); }
static int ref_tanh_cell(const Inputs* in, Array* outs) { return ref_cell(in, outs, kRnnTanh); }
static int ref_relu_cell(const Inputs* in, Array* outs) { return ref_cell(in, outs, kRnnRelu); }

static const Reference kRecurrent[] = {
    {"lstm", .whole = ref_lstm},
    {"gru", .whole = ref_gru},
    {"rnn_tanh", .whole = ref_rnn_tanh},
    {"rnn_relu", .whole = ref_rnn_relu},
    {"lstm_cell", .whole = ref_lstm_cell},
    {"gru_cell", .whole = ref_gru_cell},
    {"rnn_tanh_cell", .whole = ref_tanh_cell},
    {"rnn_relu_cell", .whole = ref_relu_cell},
};
