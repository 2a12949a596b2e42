// Products of parts of matrices, and memory for them: what the drivers of decompositions share.
#pragma once

#include "base/arith.h"
#include "core/ctx.h"
#include "core/dtype.h"
#include "plan/number.h"

#include <string.h>

namespace TT_NS {

// Memory of the running call; fails with TT_OOM.
class Memory {
 public:
  explicit Memory(int64_t bytes)
      : bytes_(size_t(max(bytes, int64_t(16)))), p_(mem_alloc_wide(max(bytes, int64_t(16)))) {}
  ~Memory() { mem_free(p_, bytes_); }
  Memory(const Memory&) = delete;
  void* get() const { return p_; }
  template <class T> T* as() const { return static_cast<T*>(p_); }

 private:
  size_t bytes_;
  void* p_;
};

constexpr int64_t kLine = 64;  // bytes

template <class N> constexpr Dtype kRealDtype = sizeof(RealOf<N>) == 4 ? Dtype::kF32 : Dtype::kF64;
template <class N> constexpr Dtype kDtype = kParts<N> == 1 ? kRealDtype<N>
                                                           : complex_of(kRealDtype<N>);
template <class T> int64_t padded(int64_t n) { return round_up(n, kLine / int64_t(sizeof(T))); }

// Zeros, from a multiple of 64 bytes on.
template <class T> class Numbers {
 public:
  TT_NOINLINE explicit Numbers(int64_t n) : memory_(n * int64_t(sizeof(T)) + kLine), n_(n) {
    p_ = reinterpret_cast<T*>((uintptr_t(memory_.get()) + kLine - 1) / kLine * kLine);
    clear();
  }
  TT_NOINLINE ~Numbers() {}
  void clear() { memset(p_, 0, size_t(n_) * sizeof(T)); }
  T* get() const { return p_; }

 private:
  Memory memory_;
  int64_t n_;
  T* p_;
};

// A part of a matrix; distances between rows and columns count elements.
struct Part {
  void* data;
  int64_t rows, columns, row, column;
};
inline Part transposed(const Part& p) { return {p.data, p.columns, p.rows, p.column, p.row}; }

// c = factor a b, or c += factor a b, by tt's own kernels.
void multiply_parts(Dtype d, const Part& c, const Part& a, const Part& b, double factor, bool adds);

}  // namespace TT_NS
