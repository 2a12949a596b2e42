/* References of sliding windows, over all elements of all windows. */

typedef struct Fold {
  int64_t images, channels, image[2], kernel[2], dilation[2], padding[2], stride[2], windows[2];
} Fold;

static Fold read_fold(const Inputs* in, const int64_t* image) {
  Fold f;
  for (int d = 0; d < 2; d++) {
    f.image[d] = image[d];
    f.kernel[d] = spatial_arg(in, "kernel_size", d, 1);
    f.dilation[d] = spatial_arg(in, "dilation", d, 1);
    f.padding[d] = spatial_arg(in, "padding", d, 0);
    f.stride[d] = spatial_arg(in, "stride", d, 1);
    const int64_t room = f.image[d] + 2 * f.padding[d] - f.dilation[d] * (f.kernel[d] - 1) - 1;
    f.windows[d] = room / f.stride[d] + 1;
  }
  return f;
}
/* Copies the image to the columns, or adds the columns to the image. */
static void fold_elements(const Fold* f, double* image, double* columns, int adds) {
  const int64_t window = f->windows[0] * f->windows[1];
  const int64_t kernel = f->kernel[0] * f->kernel[1];
  for (int64_t i = 0; i < f->images * f->channels * kernel * window; i++) {
    const int64_t o = i % window;
    const int64_t k = i / window % kernel;
    const int64_t plane = i / window / kernel;
    const int64_t row =
        o / f->windows[1] * f->stride[0] - f->padding[0] + k / f->kernel[1] * f->dilation[0];
    const int64_t column =
        o % f->windows[1] * f->stride[1] - f->padding[1] + k % f->kernel[1] * f->dilation[1];
    if (row < 0 || row >= f->image[0] || column < 0 || column >= f->image[1]) continue;
    double* pixel = image + (plane * f->image[0] + row) * f->image[1] + column;
    if (adds) *pixel += columns[i];
    else columns[i] = *pixel;
  }
}
static int ref_im2col(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  Fold f = read_fold(in, x->shape + x->ndim - 2);
  f.images = x->ndim == 4 ? x->shape[0] : 1;
  f.channels = x->shape[x->ndim - 3];
  const int64_t shape[3] = {f.images, f.channels * f.kernel[0] * f.kernel[1],
                            f.windows[0] * f.windows[1]};
  *out = new_array(shape + (x->ndim == 3), x->ndim - 1);
  fold_elements(&f, x->data, out->data, 0);
  return 1;
}
static int ref_col2im(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t image[2] = {spatial_arg(in, "output_size", 0, 1),
                            spatial_arg(in, "output_size", 1, 1)};
  Fold f = read_fold(in, image);
  f.images = x->ndim == 3 ? x->shape[0] : 1;
  f.channels = x->shape[x->ndim - 2] / f.kernel[0] / f.kernel[1];
  const int64_t shape[4] = {f.images, f.channels, image[0], image[1]};
  *out = new_array(shape + (x->ndim == 2), x->ndim + 1);
  fold_elements(&f, out->data, x->data, 1);
  return 1;
}

static const Reference kFold[] = {
    {"im2col", .whole = ref_im2col, .exact = 1},
    {"col2im", .whole = ref_col2im},
};
