// Kernels that carry row-major matrices to libraries which read them by columns, and back.
#pragma once

#include "kernels/cuda/nest.h"
#include "kernels/functors/linalg/lu.h"

namespace TT_NS {
namespace {

constexpr int kThreads = 256;

// Transposes matrices of `items` numbers in all: to[j * rows + i] = from[i * columns + j], or its
// conjugate, for each of them.
template <class T> __global__ void __launch_bounds__(kThreads)
    transpose(const T* from, T* to, int64_t rows, int64_t columns, int64_t items, bool conjugate) {
  for (int64_t at = first_item(); at < items; at += item_step()) {
    const int64_t row = quotient(at, columns);
    const int64_t matrix = quotient(row, rows);
    const int64_t i = row - matrix * rows;
    const int64_t j = at - row * columns;
    to[(matrix * columns + j) * rows + i] = conjugate ? conj_of(from[at]) : from[at];
  }
}
// The addresses of n matrices of `size` numbers, one behind the other.
template <class T> __global__ void __launch_bounds__(kThreads)
    list_matrices(T* a, int64_t size, T** list, int64_t n) {
  for (int64_t i = first_item(); i < n; i += item_step()) list[i] = a + i * size;
}
// The determinant of the factors of n rows that block i has, by one thread.
template <class T> __global__ void __launch_bounds__(kWarp)
    determinant(const T* factors, const int32_t* pivots, int64_t n, double* out) {
  if (threadIdx.x != 0) return;
  const int64_t at = blockIdx.x;
  const int32_t* const exchanged = pivots + at * n;
  bool odd = false;
  for (int64_t i = 0; i < n; i++) odd = odd != (exchanged[i] != i + 1);
  write_determinant(factors + at * n * n, n, odd, out + at * 6);
}
// An exchange that names none of n rows becomes none: the library would write elsewhere.
__global__ void __launch_bounds__(kThreads)
    valid_pivots(const int32_t* from, int32_t* to, int64_t n, int64_t items) {
  for (int64_t at = first_item(); at < items; at += item_step()) {
    const int64_t row = at - quotient(at, n) * n;
    to[at] = from[at] >= 1 && from[at] <= n ? from[at] : int32_t(row + 1);
  }
}

// As matrix_of, for the host: nvcc makes a call of code of the device there the end of the process.
template <class T> T* matrix_at(double* list, int64_t i, int64_t size) {
  return reinterpret_cast<T*>(list + i * size * kParts<T>);
}

// Launches and calls in their order; after one that fails, none.
struct Sequence {
  void* stream;
  int32_t status = TT_OK;

  template <class... A, class... B> void launch(void (*kernel)(A...), int64_t items, B... args) {
    if (status != TT_OK) return;
    status = device::launch(kernel, grid_of(items, kThreads), kThreads, 0, stream, args...);
  }
  template <class T> void write_determinants(const T* factors, const int32_t* pivots, int64_t n,
                                             int64_t batch, double* out) {
    if (status != TT_OK) return;
    status =
        device::launch(determinant<T>, unsigned(batch), kWarp, 0, stream, factors, pivots, n, out);
  }
  // A function of the library returns 0 where it succeeds.
  template <class F> void call(const F& function) {
    if (status == TT_OK && function() != 0) status = TT_INTERNAL;
  }
};

}  // namespace
}  // namespace TT_NS
