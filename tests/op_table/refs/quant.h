/* References of quantisation. */

/* The element of a scale or zero point for element i of x: one for all, or one along axis. */
static double of_channel(const Inputs* in, const char* name, const Array* x, int64_t i,
                         double otherwise) {
  const Array* t = tensor(in, name);
  if (!t) return number_arg(in, name, otherwise);
  if (t->n == 1) return t->data[0];
  const int64_t axis = dim_arg(in, "axis", 0, x->ndim);
  return t->data[i / inner_size(x, axis) % size_of(x, axis)];
}
static double quantized(const Inputs* in, const Array* x, int64_t i, double scale, double zero) {
  const double q = nearbyint(x->data[i] / scale) + zero;
  return fmin(fmax(q, number_arg(in, "quant_min", 0)), number_arg(in, "quant_max", 0));
}
static int quantize(const Inputs* in, const char* scale, const char* zero, int fake, Array* out) {
  const Array* x = tensor(in, "input");
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const double step = of_channel(in, scale, x, i, 1);
    const double point = of_channel(in, zero, x, i, 0);
    const double q = quantized(in, x, i, step, point);
    out->data[i] = fake ? (q - point) * step : q;
  }
  return 1;
}
static int dequantize(const Inputs* in, const char* scale, const char* zero, Array* out) {
  const Array* x = tensor(in, "input");
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++)
    out->data[i] = (x->data[i] - of_channel(in, zero, x, i, 0)) * of_channel(in, scale, x, i, 1);
  return 1;
}
static int ref_fake_quantize(const Inputs* in, Array* out) {
  return quantize(in, "scale", "zero_point", 1, out);
}
static int ref_quantize_per_tensor(const Inputs* in, Array* out) {
  return quantize(in, "scale", "zero_point", 0, out);
}
static int ref_quantize_per_channel(const Inputs* in, Array* out) {
  return quantize(in, "scales", "zero_points", 0, out);
}
static int ref_dequantize_per_tensor(const Inputs* in, Array* out) {
  return dequantize(in, "scale", "zero_point", out);
}
static int ref_dequantize_per_channel(const Inputs* in, Array* out) {
  return dequantize(in, "scales", "zero_points", out);
}

/* x @ w.T of rows of k elements; columns are `step` apart. */
static double dot_of(const double* x, const double* w, int64_t k, int64_t step, double zero) {
  double sum = 0;
  for (int64_t i = 0; i < k; i++) sum += (x[i] - zero) * w[i * step];
  return sum;
}
static int ref_int_mm(const Inputs* in, Array* out) {
  const Array *a = tensor(in, "self"), *b = tensor(in, "mat2");
  const int64_t shape[2] = {a->shape[0], b->shape[1]};
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] = dot_of(a->data + i / shape[1] * a->shape[1], b->data + i % shape[1], a->shape[1],
                          shape[1], 0);
  return 1;
}
static double per_item(const Array* t, int64_t i) { return t->data[t->n == 1 ? 0 : i]; }
static int ref_quantized_linear(const Inputs* in, Array* out) {
  const Array *x = tensor(in, "input"), *w = tensor(in, "weight"), *bias = tensor(in, "bias");
  const int64_t k = w->shape[1], n = w->shape[0];
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = n;
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t row = i / n, column = i % n;
    const double zero = per_item(tensor(in, "input_zero_point"), row);
    const double sum = dot_of(x->data + row * k, w->data + column * k, k, 1, zero);
    const double scale =
        per_item(tensor(in, "input_scale"), row) * per_item(tensor(in, "weight_scale"), column);
    out->data[i] = sum * scale + (bias ? bias->data[column] : 0);
  }
  return 1;
}
static int ref_quantized_conv2d(const Inputs* in, Array* out) {
  const Array *x = tensor(in, "input"), *w = tensor(in, "weight"), *bias = tensor(in, "bias");
  const Conv c = read_conv(in, 0);
  const double zero = number_arg(in, "input_zero_point", 0);
  const double scale = number_arg(in, "input_scale", 1);
  const int64_t shape[4] = {c.batch, c.out_channels, c.small[0], c.small[1]};
  *out = new_array(shape, 4);
  const int64_t channels = w->shape[1], taps = w->shape[2] * w->shape[3];
  for (int64_t i = 0; i < out->n; i++) {
    int64_t at[kMaxDims];
    index_of(out, i, at);
    const int64_t first = at[1] / (c.out_channels / c.groups) * channels;
    double sum = 0;
    for (int64_t e = 0; e < channels * taps; e++) {
      const int64_t row =
          at[2] * c.stride[0] + e % taps / w->shape[3] * c.dilation[0] - c.padding[0];
      const int64_t column = at[3] * c.stride[1] + e % w->shape[3] * c.dilation[1] - c.padding[1];
      if (row < 0 || row >= x->shape[2] || column < 0 || column >= x->shape[3]) continue;
      const int64_t from[4] = {at[0], first + e / taps, row, column};
      sum += (x->data[ravel(x, from)] - zero) * w->data[at[1] * channels * taps + e];
    }
    const double shift = bias ? bias->data[at[1]] : 0;
    out->data[i] = sum * scale * per_item(tensor(in, "weight_scale"), at[1]) + shift;
  }
  return 1;
}

/* ---- blocks of 32 or 256 numbers with scales ---- */

enum { kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ2K, kQ3K, kQ4K, kQ5K, kQ6K, kIq4Nl, kIq4Xs, kMxfp4 };
static int format_of(const Inputs* in) { return (int)number_arg(in, "format", 0); }
static int is_q8(const Inputs* in) { return format_of(in) == kQ8_0; }
static int64_t bytes_of_block(const Inputs* in) {
  static const int64_t bytes[] = {34, 18, 20, 22, 24, 84, 110, 144, 176, 210, 18, 136, 17};
  return bytes[format_of(in)];
}
static int64_t items_of_block(const Inputs* in) {
  const int f = format_of(in);
  return (f >= kQ2K && f <= kQ6K) || f == kIq4Xs ? 256 : 32;
}
static double half_value(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = ldexp(1024 + fraction, exponent - 25);
  if (exponent == 0) magnitude = ldexp(fraction, -24);
  if (exponent == 31 && fraction) return NAN;
  if (exponent == 31) magnitude = INFINITY;
  return bits >> 15 ? -magnitude : magnitude;
}
/* The bits of the nearest float16, ties to even; |x| is at most 65504. */
static int half_bits(double x) {
  int exponent, bits;
  const double magnitude = fabs(x);
  frexp(magnitude, &exponent);
  if (magnitude < 0x1p-14) bits = (int)nearbyint(ldexp(magnitude, 24));
  else bits = ((exponent + 13) << 10) + (int)nearbyint(ldexp(magnitude, 11 - exponent));
  return signbit(x) ? bits | 0x8000 : bits;
}

/* Bits [first, first + n) of bytes. */
static int bits_of(const double* bytes, int64_t first, int n) {
  int v = 0;
  for (int i = 0; i < n; i++) v |= ((int)bytes[(first + i) / 8] >> (first + i) % 8 & 1) << i;
  return v;
}
static double half_of(const double* bytes) { return half_value(bits_of(bytes, 0, 16)); }
static int signed_of(double byte) { return byte < 128 ? (int)byte : (int)byte - 256; }

/* Number i of a block of 32: the nibbles of 16 bytes, the low ones first. */
static double of_short(int format, const double* b, int64_t i) {
  static const int iq4[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                            1,    13,   25,  38,  53,  69,  89,  113};
  static const double mxfp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  static const int header[] = {2, 2, 4, 6, 8, 0, 0, 0, 0, 0, 2, 0, 1};
  const double d = half_of(b);
  const int q = format == kQ8_0 ? 0 : bits_of(b + header[format] + i % 16, i / 16 * 4, 4);
  switch (format) {
    case kQ8_0: return d * signed_of(b[2 + i]);
    case kQ4_0: return d * (q - 8);
    case kQ4_1: return d * q + half_of(b + 2);
    case kQ5_0: return d * (q + 16 * bits_of(b + 2, i, 1) - 16);
    case kQ5_1: return d * (q + 16 * bits_of(b + 4, i, 1)) + half_of(b + 2);
    case kIq4Nl: return d * iq4[q];
    case kMxfp4: return ldexp(q < 8 ? mxfp4[q] : -mxfp4[q - 8], (int)b[0] - 127);
    default: /* an eighth of iq4_xs, behind the two bytes of d */ return iq4[q];
  }
}
/* Number i of a block of 256. Factor g of 16 numbers, or g / 2 of 32. */
static double of_long(int format, const double* b, int64_t i) {
  const int64_t g = i / 16, pair = i / 32;
  switch (format) {
    case kQ2K: {
      const int q = bits_of(b + 16 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
      return half_of(b + 80) * bits_of(b + g, 0, 4) * q - half_of(b + 82) * bits_of(b + g, 4, 4);
    }
    case kQ3K: {
      const int low = bits_of(b + 32 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
      const int high = bits_of(b + i % 32, pair, 1);
      const int factor =
          bits_of(b + 96 + g % 8, g / 8 * 4, 4) + 16 * bits_of(b + 104 + g % 4, g / 4 * 2, 2);
      return half_of(b + 108) * (factor - 32) * (low + 4 * high - 4);
    }
    case kQ4K:
    case kQ5K: {
      const double* nibbles = b + (format == kQ4K ? 16 : 48);
      int q = bits_of(nibbles + i / 64 * 32 + i % 32, pair % 2 * 4, 4);
      int factor = bits_of(b + 4 + pair % 4, 0, 6), less = bits_of(b + 8 + pair % 4, 0, 6);
      if (format == kQ5K) q += 16 * bits_of(b + 16 + i % 32, pair, 1);
      if (pair >= 4) {
        factor = bits_of(b + 8 + pair, 0, 4) + 16 * bits_of(b + pair, 6, 2);
        less = bits_of(b + 8 + pair, 4, 4) + 16 * bits_of(b + 4 + pair, 6, 2);
      }
      return half_of(b) * factor * q - half_of(b + 2) * less;
    }
    case kQ6K: {
      const int low = bits_of(b + i / 128 * 64 + i % 64, i % 128 / 64 * 4, 4);
      const int high = bits_of(b + 128 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
      return half_of(b + 208) * signed_of(b[192 + g]) * (low + 16 * high - 32);
    }
    default: {
      const int factor =
          bits_of(b + 4 + pair / 2, pair % 2 * 4, 4) + 16 * bits_of(b + 2, 2 * pair, 2);
      return half_of(b) * (factor - 32) * of_short(format, b + 8 + 16 * pair, i % 32);
    }
  }
}
/* Number i of a packed row, a float32: formats with a shift round once. */
static double unpacked(const Inputs* in, const double* row, int64_t i) {
  const int64_t items = items_of_block(in);
  const double* block = row + i / items * bytes_of_block(in);
  if (items == 32) return (float)of_short(format_of(in), block, i % items);
  return (float)of_long(format_of(in), block, i % items);
}
static void pack_block(const double* x, int q8, double* out) {
  float most = 0;
  double packed[32];
  for (int i = 0; i < 32; i++)
    if (fabs(x[i]) > fabs((double)most)) most = (float)x[i];
  const float scale = q8 ? (float)(fabs((double)most) / 127) : (float)((double)most / -8);
  const float inverse = scale != 0 ? (float)(1 / (double)scale) : 0;
  for (int i = 0; i < 32; i++) {
    const float steps = (float)(x[i] * inverse);
    if (q8) packed[i] = round(steps) < 0 ? round(steps) + 256 : round(steps);
    else packed[i] = fmin(15, trunc((double)(float)(steps + 8.5)));
  }
  const int bits = half_bits(scale);
  out[0] = bits & 255;
  out[1] = bits >> 8;
  for (int i = 0; i < (q8 ? 32 : 16); i++)
    out[2 + i] = q8 ? packed[i] : packed[i] + 16 * packed[i + 16];
}
static int ref_quantize_blockwise(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = shape[x->ndim - 1] / 32 * bytes_of_block(in);
  *out = new_array(shape, x->ndim);
  for (int64_t b = 0; b < x->n / 32; b++)
    pack_block(x->data + b * 32, is_q8(in), out->data + b * bytes_of_block(in));
  return 1;
}
/* A matrix of unpacked rows of t, (…, numbers). */
static Array unpacked_rows(const Inputs* in, const Array* t) {
  int64_t shape[kMaxDims];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->ndim - 1] = shape[t->ndim - 1] / bytes_of_block(in) * items_of_block(in);
  Array out = new_array(shape, t->ndim);
  for (int64_t i = 0; i < out.n; i++) out.data[i] = unpacked(in, t->data, i);
  return out;
}
static int ref_dequantize_blockwise(const Inputs* in, Array* out) {
  *out = unpacked_rows(in, tensor(in, "input"));
  return 1;
}
static int ref_blockwise_linear(const Inputs* in, Array* out) {
  const Array *x = tensor(in, "input"), *bias = tensor(in, "bias");
  const Array w = unpacked_rows(in, tensor(in, "weight"));
  const int64_t k = w.shape[1], n = w.shape[0];
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = n;
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] =
        dot_of(x->data + i / n * k, w.data + i % n * k, k, 1, 0) + (bias ? bias->data[i % n] : 0);
  return 1;
}
static int ref_blockwise_embedding(const Inputs* in, Array* out) {
  const Array* indices = tensor(in, "indices");
  const Array w = unpacked_rows(in, tensor(in, "weight"));
  int64_t shape[kMaxDims];
  memcpy(shape, indices->shape, sizeof shape);
  shape[indices->ndim] = w.shape[1];
  *out = new_array(shape, indices->ndim + 1);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] = w.data[(int64_t)indices->data[i / w.shape[1]] * w.shape[1] + i % w.shape[1]];
  return 1;
}

static const Reference kQuant[] = {
    {"fake_quantize_per_tensor_affine", .whole = ref_fake_quantize},
    {"fake_quantize_per_tensor_affine_tensor", .whole = ref_fake_quantize},
    {"fake_quantize_per_channel_affine", .whole = ref_fake_quantize},
    {"quantize_per_tensor", .whole = ref_quantize_per_tensor},
    {"dequantize_per_tensor", .whole = ref_dequantize_per_tensor},
    {"quantize_per_channel", .whole = ref_quantize_per_channel},
    {"dequantize_per_channel", .whole = ref_dequantize_per_channel},
    {"int_mm", .whole = ref_int_mm},
    {"quantized_linear", .whole = ref_quantized_linear},
    {"quantized_conv2d", .whole = ref_quantized_conv2d},
    {"quantize_blockwise", .whole = ref_quantize_blockwise},
    {"dequantize_blockwise", .whole = ref_dequantize_blockwise},
    {"blockwise_linear", .whole = ref_blockwise_linear},
    {"blockwise_embedding", .whole = ref_blockwise_embedding},
};
