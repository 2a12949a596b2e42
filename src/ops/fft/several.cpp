// Fourier transforms along several dimensions, one after the other.
#include "ops/fft/fft.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// The dimensions to transform, in order, and the lengths: -1 for the size of self.
struct Lengths {
  Shape dims, sizes;
  int64_t last() const { return dims[dims.size() - 1]; }
};

static Lengths lengths_of(const Tensor& self, Ints s, Ints dim, bool two) {
  Lengths l;
  const int64_t last_two[2] = {-2, -1};
  if (dim.n == 0 && two) dim = last_two;
  if (self.ndim == 0 && dim.n)
    fail_arg(TT_INDEX, "dim", "dim is {}, self is 0-dim: it has no such dimension", dim);
  if (dim.n && s.n && dim.n != s.n)
    fail_arg(TT_INVALID_ARG, "s", "s is {}, dim is {}: must have the same number of entries", s,
             dim);
  if (s.n > self.ndim)
    fail_arg(TT_INVALID_ARG, "s", "s is {}, self is {}: must not have more entries", s,
             self.sizes());
  dim_mask(dim, self.ndim, true);  // refuses duplicates
  const int64_t count = dim.n ? dim.n : s.n;
  const int64_t n = count ? count : self.ndim;
  for (int64_t i = 0; i < n; i++) {
    l.dims.push_back(dim.n ? wrap_dim(dim[i], self.ndim) : self.ndim - n + i);
    l.sizes.push_back(s.n ? s[i] : -1);
  }
  if (n == 0) fail_arg(TT_INVALID_ARG, "dim", "self is 0-dim: at least one dimension is needed");
  return l;
}
// Replaces -1 by the size of self, in the last dimension by `last`.
static double complete_lengths(Lengths* l, const Tensor& self, int64_t last) {
  double n = 1;
  for (int64_t i = 0; i < l->dims.size(); i++) {
    int64_t& size = l->sizes[i];
    if (size == -1) size = i + 1 == l->dims.size() ? last : self.size(l->dims[i]);
    check_fft_length(size, "s");
    n *= double(size);
  }
  return n;
}

// The complex transforms along the first `n` of the dimensions.
static TensorRef along_first(TensorRef x, const Lengths& l, int64_t n, bool inverse, double scale) {
  for (int64_t i = n - 1; i >= 0; i--)
    x = op::fft_c2c(*fft_resized(*x, l.dims[i], l.sizes[i]), l.dims[i], inverse,
                    i == 0 ? scale : 1);
  return x;
}

static TensorRef complex_transform(const Tensor& self, Ints s, Ints dim, int64_t norm, bool inverse,
                                   bool two) {
  if (self.ndim == 0 && !two && dim.n == 0 && s.n == 0) return op::clone(*fft_complex_input(self));
  Lengths l = lengths_of(self, s, dim, two);
  const double n = complete_lengths(&l, self, self.size(l.last()));
  return along_first(fft_complex_input(self), l, l.dims.size(), inverse,
                     fft_scale(norm, inverse, n));
}
static TensorRef real_transform(const Tensor& self, Ints s, Ints dim, int64_t norm, bool inverse,
                                bool two) {
  TensorRef x = fft_input(self, false);
  Lengths l = lengths_of(self, s, dim, two);
  const double n = complete_lengths(&l, self, self.size(l.last()));
  const double scale = fft_scale(norm, inverse, n);
  const int64_t others = l.dims.size() - 1;
  x = fft_resized(*x, l.last(), l.sizes[others]);
  x = op::fft_r2c(*x, l.last(), inverse, others ? 1 : scale);
  return along_first(std::move(x), l, others, inverse, scale);
}
static TensorRef hermitian_transform(const Tensor& self, Ints s, Ints dim, int64_t norm,
                                     bool inverse, bool two) {
  TensorRef x = fft_complex_input(self);
  Lengths l = lengths_of(self, s, dim, two);
  const double n = complete_lengths(&l, self, fft_real_length(self.size(l.last())));
  const int64_t others = l.dims.size() - 1;
  const int64_t length = l.sizes[others];
  x = fft_resized(*x, l.last(), length / 2 + 1);
  x = along_first(std::move(x), l, others, inverse, 1);
  return op::fft_c2r(*x, l.last(), length, inverse, fft_scale(norm, inverse, n));
}

TensorRef fft_fft2(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return complex_transform(self, s, dim, norm, false, true);
}
TensorRef fft_ifft2(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return complex_transform(self, s, dim, norm, true, true);
}
TensorRef fft_rfft2(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return real_transform(self, s, dim, norm, false, true);
}
TensorRef fft_irfft2(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return hermitian_transform(self, s, dim, norm, true, true);
}
TensorRef fft_hfft2(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return hermitian_transform(self, s, dim, norm, false, true);
}
TensorRef fft_ihfft2(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return real_transform(self, s, dim, norm, true, true);
}
TensorRef fft_fftn(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return complex_transform(self, s, dim, norm, false, false);
}
TensorRef fft_ifftn(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return complex_transform(self, s, dim, norm, true, false);
}
TensorRef fft_rfftn(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return real_transform(self, s, dim, norm, false, false);
}
TensorRef fft_irfftn(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return hermitian_transform(self, s, dim, norm, true, false);
}
TensorRef fft_hfftn(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return hermitian_transform(self, s, dim, norm, false, false);
}
TensorRef fft_ihfftn(Call, const Tensor& self, Ints s, Ints dim, int64_t norm) {
  return real_transform(self, s, dim, norm, true, false);
}

}  // namespace TT_NS::impl
