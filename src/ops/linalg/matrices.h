// Shared by the operators of linear algebra: checks, batches, the numbers that kernels compute in.
#pragma once

#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "cpu/lapack.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "plan/linalg_plan.h"
#include "plan/rows.h"

namespace TT_NS {

// Fail unless t is a batch of matrices (…, m, n) of float32, float64, complex64 or complex128; or
// of square ones.
void check_matrices(const Tensor& t, const char* arg);
void check_square(const Tensor& t, const char* arg);
void check_precise(const Tensor& t, const char* arg);  // the dtype alone
void check_same_dtype(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name);

inline Ints batch_of(const Tensor& t) { return t.sizes().slice(0, t.ndim - 2); }
// Sizes of a batch of matrices (m, n).
Shape matrix_shape(Ints batch, int64_t m, int64_t n);
Shape vector_shape(Ints batch, int64_t n);
// t with its batch broadcast to `batch`: a view.
TensorRef with_batch(const Tensor& t, Ints batch);
TensorRef transposed(const Tensor& t);
TensorRef adjoint_of(const Tensor& t);
TensorRef without_dim(const Tensor& t, int64_t dim);  // of size 1

// f64 or c128.
inline Dtype precise(Dtype d) { return is_complex(d) ? Dtype::kC128 : Dtype::kF64; }
// A dense copy of t in dtype d, which a kernel may overwrite.
TensorRef working_copy(const Tensor& t, Dtype d);
TensorRef converted(TensorRef t, Dtype d);

// A plan for `batch` matrices, each of which takes about `work` multiplications.
MatrixPlan matrix_plan(const Tensor& a, int64_t batch, int64_t work);
// Lets the CPU compute small matrices in groups, which take `numbers` elements for each. Returns
// the memory of the plan's rooms.
Workspace group_rooms(MatrixPlan& plan, Device device, int64_t batch, int64_t numbers);
// Whether the CPU computes matrices like these in groups, with `numbers` elements for each.
bool in_groups(const Tensor& t, int64_t numbers);
// Whether cholesky and lu_factor read and write these float32 or complex64 matrices in groups.
bool groups_floats(const Tensor& t);
inline double* doubles(const Tensor& t) { return reinterpret_cast<double*>(t.data); }

// The size above which LAPACK, or tt's panels of columns, factor a matrix faster than kernels for
// small matrices do.
int64_t large_above(Dtype d);
// Whether LAPACK is installed and serves matrices of this size.
bool uses_lapack(const Tensor& t, int64_t above);
inline bool uses_lapack(const Tensor& t) { return uses_lapack(t, large_above(t.dtype)); }
// What matrices like t are computed in: LAPACK has every dtype, tt's kernels f64 and c128.
Dtype working_dtype(const Tensor& t, int64_t above);
inline Dtype working_dtype(const Tensor& t) { return working_dtype(t, large_above(t.dtype)); }
// A dense tensor of the transposes, which is t in LAPACK's order of columns.
TensorRef by_columns(const Tensor& t);
// Whether all numbers are finite: LAPACK, whose dtypes these are, may not return where one is not.
bool are_finite(Dtype d, const char* data, int64_t bytes);
void fill_nan(Dtype d, char* data, int64_t bytes);

// Matrix i of a batch is at data + i * step: what a plan has of dense matrices or vectors.
struct BatchData {
  char* data;
  int64_t step;  // bytes
  char* at(int64_t i) const { return data + i * step; }
};
inline BatchData matrices_of(const Tensor& t) {
  return {t.data, t.size(-1) * t.size(-2) * t.item_size()};
}
inline BatchData vectors_of(const Tensor& t) { return {t.data, t.size(-1) * t.item_size()}; }

// A kernel, for the CPU only, of one unit: a function of a plan that calls LAPACK. As a kernel it
// is launched, and seen by observers of launches.
template <class Plan, void (*compute)(const Plan&)>
int32_t run_lapack(const void* plan, int64_t, int64_t) noexcept {
  try {
    compute(*static_cast<const Plan*>(plan));
    return TT_OK;
  } catch (...) {
    return kKernelEnded;
  }
}
template <class Plan, void (*compute)(const Plan&)>
constexpr Kernel lapack_kernel(const char* name) {
  constexpr CpuKernel fn = run_lapack<Plan, compute>;
  return {{fn, fn, fn}, kNoDevice, sizeof(Plan), name};
}

// Whether a gradient or a tangent of t may be wanted.
bool is_tracked(const Tensor& t);

// The first number of an int32 tensor that is not 0: the matrix of the batch and the number.
struct Failure {
  int64_t matrix;
  int64_t info;
};
Failure first_failure(const Tensor& info);  // info 0: none, or the tensor is on META
// What such a number says of a matrix; files of graphs hold these.
enum InfoText : int32_t { kSingular, kNoResult, kNotPositive, kSingularLdl, kInfoTexts };
// Fails with TT_LINALG if there is one.
void check_info(const Tensor& info, InfoText what);

// An int32 tensor on the CPU with the exchanges of rows, each of which is in [1, n].
TensorRef checked_pivots(const Tensor& pivots, const char* arg, Ints batch, int64_t count,
                         int64_t n);

// Whether other is a vector for each matrix of self.
bool is_vector_batch(const Tensor& self, const Tensor& other);

// Scratch memory of a kernel that is the same algorithm on every device (see Workspace for others).
TensorRef new_scratch(int64_t bytes, Device device);

}  // namespace TT_NS
