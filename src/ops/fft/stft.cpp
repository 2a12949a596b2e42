// Short-time Fourier transforms: stft, istft.
#include "ops/fft/fft.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

#include <math.h>

namespace TT_NS::impl {

struct Frames {
  int64_t n_fft, hop, win;
};

static Frames checked_frames(int64_t n_fft, Opt<int64_t> hop_length, Opt<int64_t> win_length) {
  if (n_fft < 1) fail_arg(TT_INVALID_ARG, "n_fft", "n_fft is {}: must be positive", n_fft);
  const Frames f = {n_fft, hop_length.or_else(n_fft / 4), win_length.or_else(n_fft)};
  if (f.hop < 1)
    fail_arg(TT_INVALID_ARG, "hop_length", "hop_length is {}: must be positive", f.hop);
  if (f.win < 1 || f.win > n_fft)
    fail_arg(TT_INVALID_ARG, "win_length", "win_length is {}, n_fft is {}: must be in [1, n_fft]",
             f.win, n_fft);
  return f;
}

// The window with zeros on both sides; NULL if it is all ones.
static TensorRef full_window(const Tensor& self, const Tensor* window, const Frames& f) {
  if (!window && f.win == f.n_fft) return {};
  TensorRef w;
  if (window) {
    check_same_device(self, "self", *window, "window");
    if (window->ndim != 1 || window->numel != f.win)
      fail_arg(TT_SHAPE, "window", "window is {}: must be [{}], win_length elements",
               window->sizes(), f.win);
    w = TensorRef::share(window);
  } else {
    w = op::ones(Ints(&f.win, 1), real_of(self.dtype), self.device);
  }
  if (f.win == f.n_fft) return w;
  const int64_t before = (f.n_fft - f.win) / 2;
  const int64_t pad[2] = {before, f.n_fft - f.win - before};
  return op::constant_pad_nd(*w, pad);
}

static TensorRef padded_signal(const Tensor& x, int64_t before, int64_t after, int64_t mode) {
  const int64_t pad[2] = {before, after};
  Shape batched(x.sizes());
  Shape shape;  // pad wants batch and channel dimensions
  shape.resize(3 - x.ndim, 1);
  shape.append(x.sizes());
  TensorRef wide = op::pad(*op::reshape(x, shape), pad, mode);
  batched[x.ndim - 1] = wide->size(-1);
  return op::reshape(*wide, batched);
}

TensorRef stft(Call, const Tensor& self, int64_t n_fft, Opt<int64_t> hop_length,
               Opt<int64_t> win_length, const Tensor* window, bool center, int64_t pad_mode,
               bool normalized, Opt<bool> onesided, Opt<bool> return_complex,
               Opt<bool> align_to_window) {
  if (!is_differentiable(self.dtype) || self.dtype == Dtype::kF16 || self.dtype == Dtype::kBF16)
    fail_arg(TT_DTYPE, "self", "self is {}: must be float32, float64 or complex", fmt(self.dtype));
  if (self.ndim != 1 && self.ndim != 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must be (n) or (batch, n)", self.sizes());
  const Frames f = checked_frames(n_fft, hop_length, win_length);
  const bool complex = is_complex(self.dtype) || (window && is_complex(window->dtype));
  if (!complex && !return_complex.has)
    fail_arg(TT_INVALID_ARG, "return_complex",
             "return_complex is missing: it is required for real signals and windows");
  const bool half = onesided.or_else(!complex);
  if (half && complex)
    fail_arg(TT_INVALID_ARG, "onesided",
             "onesided is true: the spectrum of a complex signal or window has no symmetry");
  if (center && align_to_window.has)
    fail_arg(TT_INVALID_ARG, "align_to_window", "align_to_window is given: center must be false");
  TensorRef w = full_window(self, window, f);
  TensorRef x = TensorRef::share(&self);
  if (center) x = padded_signal(*x, n_fft / 2, n_fft / 2, pad_mode);
  if (!center && align_to_window.or_else(false)) {
    const int64_t before = (n_fft - f.win) / 2;
    x = padded_signal(*x, before, n_fft - f.win - before, kPaddingConstant);
  }
  if (x->size(-1) < n_fft)
    fail_arg(TT_INVALID_ARG, "n_fft", "n_fft is {}: must be at most {}, the length of the signal",
             n_fft, x->size(-1));
  TensorRef frames = op::unfold(*x, -1, n_fft, f.hop);
  if (w) frames = op::mul(*frames, *w);
  const double scale = normalized ? 1 / sqrt(double(n_fft)) : 1;
  TensorRef y;
  if (half) {
    y = op::fft_r2c(*frames, -1, false, scale);
  } else {
    if (!is_complex(frames->dtype)) frames = op::to_dtype(*frames, complex_of(frames->dtype));
    y = op::fft_c2c(*frames, -1, false, scale);
  }
  y = op::transpose(*y, -2, -1);
  return return_complex.or_else(true) ? std::move(y) : op::view_as_real(*op::contiguous(*y));
}

// ---- istft ----

// Adds up frames (batch, count, n_fft), `hop` apart, to (batch, n).
static TensorRef overlap_add(const Tensor& frames, int64_t n, int64_t hop) {
  const int64_t count = frames.size(1);
  const int64_t n_fft = frames.size(2);
  TensorRef first = op::mul(*op::arange(0, count, 1, Dtype::kI64, frames.device), hop);
  TensorRef within = op::arange(0, n_fft, 1, Dtype::kI64, frames.device);
  TensorRef index = op::add(*op::unsqueeze(*first, 1), *within);
  const int64_t flat[2] = {frames.size(0), count * n_fft};
  const int64_t shape[2] = {frames.size(0), n};
  TensorRef zeros = op::zeros(shape, frames.dtype, frames.device);
  return op::index_add(*zeros, 1, *op::reshape(*index, Ints(flat + 1, 1)),
                       *op::reshape(frames, flat));
}

static TensorRef signal_frames(const Tensor& self, const Frames& f, bool normalized, bool half,
                               bool return_complex) {
  TensorRef x = op::transpose(self, -2, -1);
  const double scale = normalized ? 1 / sqrt(double(f.n_fft)) : 1 / double(f.n_fft);
  if (return_complex) return op::fft_c2c(*x, -1, true, scale);
  if (!half) x = op::slice(*x, -1, 0, f.n_fft / 2 + 1);
  return op::fft_c2r(*x, -1, f.n_fft, true, scale);
}

static void check_spectrum(const Tensor& self) {
  if (!is_complex(self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: must be complex", fmt(self.dtype));
  if ((self.ndim != 2 && self.ndim != 3) || self.numel == 0)
    fail_arg(TT_SHAPE, "self",
             "self is {}: must be (frequencies, frames) or (batch, frequencies, frames), not empty",
             self.sizes());
}
// half: self has the frequencies up to n_fft / 2 alone.
static void check_frequencies(const Tensor& self, const Tensor* window, int64_t n_fft, bool half,
                              bool return_complex) {
  const int64_t frequencies = self.size(-2);
  const int64_t wanted = half ? n_fft / 2 + 1 : n_fft;
  if (frequencies != wanted)
    fail_arg(TT_SHAPE, "self", "self has {} frequencies: must have {}", frequencies, wanted);
  if (return_complex && half)
    fail_arg(TT_INVALID_ARG, "onesided",
             "onesided is true: a complex signal needs all {} frequencies", n_fft);
  if (!return_complex && window && is_complex(window->dtype))
    fail_arg(TT_INVALID_ARG, "return_complex", "return_complex is false: window is complex");
}

TensorRef istft(Call, const Tensor& self, int64_t n_fft, Opt<int64_t> hop_length,
                Opt<int64_t> win_length, const Tensor* window, bool center, bool normalized,
                Opt<bool> onesided, Opt<int64_t> length, bool return_complex) {
  check_spectrum(self);
  const Frames f = checked_frames(n_fft, hop_length, win_length);
  if (f.hop > f.win)
    fail_arg(TT_INVALID_ARG, "hop_length", "hop_length is {}, win_length is {}: must not be larger",
             f.hop, f.win);
  const bool half = onesided.or_else(self.size(-2) != n_fft);
  check_frequencies(self, window, n_fft, half, return_complex);
  if (length.has && length.value < 1)
    fail_arg(TT_INVALID_ARG, "length", "length is {}: must be positive", length.value);
  TensorRef w = full_window(self, window, f);
  if (!w) w = op::ones(Ints(&n_fft, 1), real_of(self.dtype), self.device);
  const Dtype window_dtype = promote(w->dtype, real_of(self.dtype));
  w = as_dtype(std::move(w), window_dtype);
  TensorRef x = self.ndim == 2 ? op::unsqueeze(self, 0) : TensorRef::share(&self);
  const int64_t count = x->size(-1);
  const int64_t n = n_fft + f.hop * (count - 1);
  TensorRef frames = signal_frames(*x, f, normalized, half, return_complex);
  TensorRef sum = overlap_add(*op::mul(*frames, *w), n, f.hop);
  const int64_t squares[3] = {1, count, n_fft};
  TensorRef weights = overlap_add(*op::expand(*op::mul(*w, *w), squares), n, f.hop);
  const int64_t start = center ? n_fft / 2 : 0;
  int64_t end = center ? n - n_fft / 2 : n;
  if (length.has && add_overflow(start, length.value, &end))
    fail_arg(TT_INVALID_ARG, "length", "length is {}: must be less than 2^62", length.value);
  const int64_t covered = TT_NS::min(end, n);
  sum = op::slice(*sum, 1, start, covered);
  weights = op::slice(*weights, 1, start, covered);
  const bool read = weights->numel && weights->device.type != TT_META;
  if (read)
    require(*op::gt(*op::min(*op::abs(*op::detach(*weights))), 1e-11), TT_INVALID_ARG, "window",
            "the squares of the windows add up to less than 1e-11 at some element of the signal");
  TensorRef y = op::div(*sum, *weights);
  if (end > covered) {
    const int64_t behind[2] = {0, end - TT_NS::max(covered, start)};
    y = op::constant_pad_nd(*y, behind);
  }
  return self.ndim == 2 ? op::select(*y, 0, 0) : std::move(y);
}

}  // namespace TT_NS::impl
