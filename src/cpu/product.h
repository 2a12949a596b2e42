// Products of parts of matrices, and memory for them: what the drivers of decompositions share.
#pragma once

#include "base/arith.h"
#include "core/ctx.h"
#include "core/dtype.h"

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

// A part of a matrix; distances between rows and columns count elements.
struct Part {
  void* data;
  int64_t rows, columns, row, column;
};
inline Part transposed(const Part& p) { return {p.data, p.columns, p.rows, p.column, p.row}; }

// c = factor a b, or c += factor a b, by tt's own kernels.
void multiply_parts(Dtype d, const Part& c, const Part& a, const Part& b, double factor, bool adds);

}  // namespace TT_NS
