// Shared by Fourier transforms of one and of several dimensions.
#pragma once

#include "core/tensor.h"

namespace TT_NS {

// self as float32 or float64 or, if allowed, complex; half precision is refused.
TensorRef fft_input(const Tensor& self, bool complex_too);
TensorRef fft_complex_input(const Tensor& self);
// Cuts x or fills it with zeros to size n of dim.
TensorRef fft_resized(const Tensor& x, int64_t dim, int64_t n);
// The factor of a transform of n elements; norm: kFftNorm….
double fft_scale(int64_t norm, bool inverse, double n);
void check_fft_length(int64_t n, const char* arg);
// The usual length of a real signal with this many coefficients; one that no tensor has, if that
// exceeds int64.
int64_t fft_real_length(int64_t coefficients);

}  // namespace TT_NS
