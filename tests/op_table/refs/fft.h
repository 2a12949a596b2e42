/* References of Fourier transforms: the sums of their definitions. Samples are real numbers. */

typedef struct Signal {
  Array re, im;
} Signal;

static Signal zero_signal(const int64_t* shape, int ndim) {
  return (Signal){new_array(shape, ndim), new_array(shape, ndim)};
}
static Signal real_signal(const Array* x) { return (Signal){copy_of(x), zeros_like(x)}; }

/* Cut or filled with zeros to size n of dimension d. */
static Signal resized_signal(const Signal* x, int64_t d, int64_t n) {
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->re.shape, sizeof shape);
  shape[d] = n;
  Signal out = zero_signal(shape, x->re.ndim);
  for (int64_t i = 0; i < out.re.n; i++) {
    index_of(&out.re, i, index);
    if (index[d] >= x->re.shape[d]) continue;
    out.re.data[i] = x->re.data[ravel(&x->re, index)];
    out.im.data[i] = x->im.data[ravel(&x->im, index)];
  }
  return out;
}
/* The n elements of dimension d of which x has the first n / 2 + 1: x[n - j] = conj x[j]. */
static Signal completed_signal(const Signal* x, int64_t d, int64_t n) {
  int64_t index[kMaxDims];
  Signal out = resized_signal(x, d, n);
  for (int64_t i = 0; i < out.re.n; i++) {
    index_of(&out.re, i, index);
    if (index[d] == 0 || 2 * index[d] == n) out.im.data[i] = 0;
    if (2 * index[d] <= n) continue;
    index[d] = n - index[d];
    out.re.data[i] = x->re.data[ravel(&x->re, index)];
    out.im.data[i] = -x->im.data[ravel(&x->im, index)];
  }
  return out;
}
static Signal transformed(const Signal* x, int64_t d, int inverse) {
  const int64_t n = x->re.shape[d];
  int64_t index[kMaxDims];
  Signal out = zero_signal(x->re.shape, x->re.ndim);
  double* cosines = scratch((size_t)n * sizeof(double));
  double* sines = scratch((size_t)n * sizeof(double));
  for (int64_t t = 0; t < n; t++) {
    const long double angle = 2 * acosl(-1) * (long double)t / (long double)n;
    cosines[t] = (double)cosl(angle);
    sines[t] = (double)sinl(angle) * (inverse ? 1 : -1);
  }
  for (int64_t i = 0; i < out.re.n; i++) {
    long double re = 0;
    long double im = 0;
    index_of(&out.re, i, index);
    const int64_t k = index[d];
    index[d] = 0;
    const int64_t first = ravel(&x->re, index);
    const int64_t step = inner_size(&x->re, d);
    int64_t t = 0; /* j k mod n */
    for (int64_t j = 0; j < n; j++) {
      const double a = x->re.data[first + j * step];
      const double b = x->im.data[first + j * step];
      re += a * cosines[t] - b * sines[t];
      im += a * sines[t] + b * cosines[t];
      t += k;
      if (t >= n) t -= n;
    }
    out.re.data[i] = (double)re;
    out.im.data[i] = (double)im;
  }
  return out;
}
static Array pairs_of(const Signal* x) {
  Array out = paired(x->re);
  for (int64_t i = 0; i < x->re.n; i++) {
    out.data[2 * i] = x->re.data[i];
    out.data[2 * i + 1] = x->im.data[i];
  }
  return out;
}
static void scale_signal(Signal* x, double k) {
  for (int64_t i = 0; i < x->re.n; i++) {
    x->re.data[i] *= k;
    x->im.data[i] *= k;
  }
}
/* norm: 0 backward, 1 ortho, 2 forward. */
static double norm_factor(const Inputs* in, int inverse, double n) {
  const int64_t norm = int_arg(in, "norm", 0);
  if (norm == 1) return 1 / sqrt(n);
  return (norm == 2) == inverse ? 1 : 1 / n;
}

enum Symmetry { kNoSymmetry, kRealInput, kRealResult };

/* Along n dimensions. A size of -1 is that of self. Of a real result only the last dimension is
   completed, after the others have been transformed. */
static int transform_dims(const Inputs* in, Array* out, const int64_t* dims, int64_t* sizes, int n,
                          enum Symmetry symmetry, int inverse) {
  const Array* x = tensor(in, "self");
  double elements = 1;
  Signal y = real_signal(x);
  for (int i = 0; i < n; i++) {
    if (sizes[i] == -1) {
      sizes[i] = x->shape[dims[i]];
      if (symmetry == kRealResult && i + 1 == n) sizes[i] = 2 * (sizes[i] - 1);
    }
    elements *= (double)sizes[i];
  }
  const int64_t last = dims[n - 1];
  const int64_t size = sizes[n - 1];
  for (int i = 0; i + 1 < n; i++) {
    y = resized_signal(&y, dims[i], sizes[i]);
    y = transformed(&y, dims[i], inverse);
  }
  if (symmetry == kRealResult) {
    y = resized_signal(&y, last, size / 2 + 1);
    y = completed_signal(&y, last, size);
  } else {
    y = resized_signal(&y, last, size);
  }
  y = transformed(&y, last, inverse);
  scale_signal(&y, norm_factor(in, inverse, elements));
  if (symmetry == kRealInput) y = resized_signal(&y, last, size / 2 + 1);
  *out = symmetry == kRealResult ? y.re : pairs_of(&y);
  return 1;
}
static int transform_one(const Inputs* in, Array* out, enum Symmetry symmetry, int inverse) {
  const int64_t d = dim_arg(in, "dim", -1, tensor(in, "self")->ndim);
  int64_t n = int_arg(in, "n", -1);
  return transform_dims(in, out, &d, &n, 1, symmetry, inverse);
}
/* fft2 and fftn: without dim, the last dimensions. */
static int transform_several(const Inputs* in, Array* out, int two, enum Symmetry symmetry,
                             int inverse) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  const tt_value* s = given(in, "s");
  int64_t dims[kMaxDims];
  int64_t sizes[kMaxDims];
  int n = x->ndim;
  if (two) n = 2;
  if (s && s->n) n = (int)s->n;
  if (dim && dim->n) n = (int)dim->n;
  for (int i = 0; i < n; i++) {
    dims[i] = dim && dim->n ? wrap(dim->ints[i], x->ndim) : x->ndim - n + i;
    sizes[i] = s && s->n ? s->ints[i] : -1;
  }
  return transform_dims(in, out, dims, sizes, n, symmetry, inverse);
}
#define TRANSFORMS(name, symmetry, inverse)                  \
  static int ref_##name(const Inputs* in, Array* out) {      \
    return transform_one(in, out, symmetry, inverse);        \
  }                                                          \
  static int ref_##name##2(const Inputs* in, Array* out) {   \
    return transform_several(in, out, 1, symmetry, inverse); \
  }                                                          \
  static int ref_##name##n(const Inputs* in, Array* out) {   \
    return transform_several(in, out, 0, symmetry, inverse); \
  }
TRANSFORMS(fft, kNoSymmetry, 0)
TRANSFORMS(ifft, kNoSymmetry, 1)
TRANSFORMS(rfft, kRealInput, 0)
TRANSFORMS(irfft, kRealResult, 1)
TRANSFORMS(hfft, kRealResult, 0)
TRANSFORMS(ihfft, kRealInput, 1)

/* ---- frequencies ---- */

static int frequencies(const Inputs* in, Array* out, int half) {
  const int64_t n = int_arg(in, "n", 0);
  const int64_t count = half ? n / 2 + 1 : n;
  *out = new_array(&count, 1);
  for (int64_t i = 0; i < count; i++) {
    const int64_t frequency = half || 2 * i < n ? i : i - n;
    out->data[i] = (double)frequency / ((double)n * number_arg(in, "d", 1));
  }
  return 1;
}
static int ref_fftfreq(const Inputs* in, Array* out) { return frequencies(in, out, 0); }
static int ref_rfftfreq(const Inputs* in, Array* out) { return frequencies(in, out, 1); }

static int shifted_dims(const Inputs* in, Array* out, int back) {
  const Array* x = tensor(in, "self");
  const tt_value* dim = given(in, "dim");
  int64_t index[kMaxDims];
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    index_of(x, i, index);
    for (int d = 0; d < x->ndim; d++) {
      int listed = !dim || dim->n == 0;
      for (int64_t k = 0; dim && k < dim->n; k++) listed |= wrap(dim->ints[k], x->ndim) == d;
      const int64_t size = x->shape[d];
      const int64_t by = back ? (size + 1) / 2 : size / 2;
      if (listed) index[d] = (index[d] + by) % size;
    }
    out->data[ravel(out, index)] = x->data[i];
  }
  return 1;
}
static int ref_fftshift(const Inputs* in, Array* out) { return shifted_dims(in, out, 0); }
static int ref_ifftshift(const Inputs* in, Array* out) { return shifted_dims(in, out, 1); }

/* ---- short-time transforms ---- */

/* The window, of win_length elements in the middle of n_fft. */
static const double* window_of(const Inputs* in, int64_t n_fft) {
  const Array* window = tensor(in, "window");
  const int64_t length = int_arg(in, "win_length", n_fft);
  double* w = scratch((size_t)n_fft * sizeof(double));
  for (int64_t i = 0; i < length; i++) w[(n_fft - length) / 2 + i] = window ? window->data[i] : 1;
  return w;
}
/* Element i of a signal of n, beyond whose ends it is reflected (pad_mode 1) or 0. */
static double element_beyond(const double* x, int64_t n, int64_t i, int64_t pad_mode) {
  if (i >= 0 && i < n) return x[i];
  if (pad_mode != 1) return 0;
  return i < 0 ? x[-i] : x[2 * (n - 1) - i];
}
static int ref_stft(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t n = x->shape[x->ndim - 1];
  const int64_t batch = x->n / n;
  const int64_t n_fft = int_arg(in, "n_fft", 0);
  const int64_t hop = int_arg(in, "hop_length", n_fft / 4);
  const int64_t win = int_arg(in, "win_length", n_fft);
  const double* w = window_of(in, n_fft);
  const int center = (int)int_arg(in, "center", 1);
  const int aligned = flag_arg(in, "align_to_window");
  int64_t before = center ? n_fft / 2 : 0;
  int64_t all = center ? n + 2 * before : n;
  if (aligned) {
    before = (n_fft - win) / 2;
    all = n + n_fft - win;
  }
  const int64_t shape[3] = {batch, (all - n_fft) / hop + 1, n_fft};
  Signal frames = zero_signal(shape, 3);
  for (int64_t i = 0; i < frames.re.n; i++) {
    const int64_t j = i % n_fft;
    const int64_t frame = i / n_fft % shape[1];
    const int64_t mode = aligned ? 0 : int_arg(in, "pad_mode", 1);
    const double* row = x->data + i / n_fft / shape[1] * n;
    frames.re.data[i] = w[j] * element_beyond(row, n, frame * hop + j - before, mode);
  }
  Signal y = transformed(&frames, 2, 0);
  if (int_arg(in, "onesided", 1)) y = resized_signal(&y, 2, n_fft / 2 + 1);
  if (flag_arg(in, "normalized")) scale_signal(&y, 1 / sqrt((double)n_fft));
  const int64_t swapped[3] = {batch, y.re.shape[2], y.re.shape[1]};
  const int alone = x->ndim == 1;
  Signal turned = zero_signal(swapped + alone, 3 - alone);
  for (int64_t i = 0; i < y.re.n; i++) {
    const int64_t frequency = i % swapped[1];
    const int64_t frame = i / swapped[1] % swapped[2];
    const int64_t at = (i / swapped[1] / swapped[2] * swapped[1] + frequency) * swapped[2] + frame;
    turned.re.data[at] = y.re.data[i];
    turned.im.data[at] = y.im.data[i];
  }
  *out = pairs_of(&turned);
  return 1;
}
static int ref_istft(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t n_fft = int_arg(in, "n_fft", 0);
  const int64_t hop = int_arg(in, "hop_length", n_fft / 4);
  const int64_t count = x->shape[x->ndim - 1];
  const int64_t frequencies_given = x->shape[x->ndim - 2];
  const int64_t batch = x->n / count / frequencies_given;
  const double* w = window_of(in, n_fft);
  const int is_complex_signal = flag_arg(in, "return_complex");
  const int64_t shape[3] = {batch, count, frequencies_given};
  Signal frames = zero_signal(shape, 3);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t frame = i % count;
    const int64_t at = (i / count / frequencies_given * count + frame) * frequencies_given;
    frames.re.data[at + i / count % frequencies_given] = x->data[i];
  }
  if (!is_complex_signal) {
    frames = resized_signal(&frames, 2, n_fft / 2 + 1);
    frames = completed_signal(&frames, 2, n_fft);
  }
  frames = transformed(&frames, 2, 1);
  scale_signal(&frames, flag_arg(in, "normalized") ? 1 / sqrt((double)n_fft) : 1 / (double)n_fft);
  const int center = (int)int_arg(in, "center", 1);
  const int64_t covered = n_fft + hop * (count - 1);
  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t length = int_arg(in, "length", covered - 2 * start);
  const int64_t result[2] = {batch, length};
  const int alone = x->ndim == 2;
  Signal y = zero_signal(result + alone, 2 - alone);
  for (int64_t i = 0; i < y.re.n; i++) {
    const int64_t position = i % length + start;
    double weight = 0;
    for (int64_t frame = 0; frame < count; frame++) {
      const int64_t j = position - frame * hop;
      if (j < 0 || j >= n_fft) continue;
      const int64_t at = (i / length * count + frame) * n_fft + j;
      y.re.data[i] += w[j] * frames.re.data[at];
      y.im.data[i] += w[j] * frames.im.data[at];
      weight += w[j] * w[j];
    }
    if (weight == 0) continue;
    y.re.data[i] /= weight;
    y.im.data[i] /= weight;
  }
  *out = is_complex_signal ? pairs_of(&y) : y.re;
  return 1;
}

static const Reference kFft[] = {
    {"fft_fft", .whole = ref_fft},
    {"fft_ifft", .whole = ref_ifft},
    {"fft_rfft", .whole = ref_rfft},
    {"fft_irfft", .whole = ref_irfft},
    {"fft_hfft", .whole = ref_hfft},
    {"fft_ihfft", .whole = ref_ihfft},
    {"fft_fft2", .whole = ref_fft2},
    {"fft_ifft2", .whole = ref_ifft2},
    {"fft_rfft2", .whole = ref_rfft2},
    {"fft_irfft2", .whole = ref_irfft2},
    {"fft_hfft2", .whole = ref_hfft2},
    {"fft_ihfft2", .whole = ref_ihfft2},
    {"fft_fftn", .whole = ref_fftn},
    {"fft_ifftn", .whole = ref_ifftn},
    {"fft_rfftn", .whole = ref_rfftn},
    {"fft_irfftn", .whole = ref_irfftn},
    {"fft_hfftn", .whole = ref_hfftn},
    {"fft_ihfftn", .whole = ref_ihfftn},
    {"fft_fftfreq", .whole = ref_fftfreq},
    {"fft_rfftfreq", .whole = ref_rfftfreq},
    {"fft_fftshift", .whole = ref_fftshift, .exact = 1},
    {"fft_ifftshift", .whole = ref_ifftshift, .exact = 1},
    {"stft", .whole = ref_stft},
    {"istft", .whole = ref_istft},
};
