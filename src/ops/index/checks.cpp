#include "ops/index/checks.h"

#include "base/name_map.h"
#include "base/text/text.h"
#include "ops/gen/impls.h"
#include "ops/index/nest.h"

#include <string.h>

namespace TT_NS {

// Errors point to static strings, and graphs that were read from files have none.
const char* static_name(Str name) noexcept {
  static constexpr const char* kNames[] = {
      // arguments
      "index", "indices", "offsets", "target", "targets", "input", "var", "fweights", "aweights",
      "sorter", "source", "self", "window", "input_lengths", "target_lengths", "q", "weights",
      "pivots", "LU_pivots",
      // operators
      "take", "put", "put_", "embedding_bag", "multilabel_margin_loss", "multi_margin_loss",
      "ctc_loss", "unravel_index", "index_fill", "masked_scatter", "binary_cross_entropy",
      "gaussian_nll_loss", "cov", "corrcoef", "istft", "one_hot", "scatter", "scatter_reduce",
      "quantile", "nanquantile", "searchsorted", "linalg_cholesky", "cholesky", "linalg_solve",
      "linalg_inv", "inverse", "linalg_svd", "svd", "linalg_svdvals", "linalg_pinv", "pinverse",
      "linalg_matrix_rank", "linalg_cond", "linalg_lstsq", "linalg_tensorinv", "linalg_tensorsolve",
      "linalg_ldl_factor", "linalg_lu_factor", "nuclear_norm", "linalg_lu", "lu_unpack", "lu_solve",
      "linalg_lu_solve", "linalg_ldl_solve"};
  for (const char* known : kNames)
    if (equal(name, Str{known, int64_t(strlen(known))})) return known;
  return "";
}

void impl::check_indices(Call, const Tensor& index, int64_t low, int64_t size, int64_t allowed,
                         Str arg, Str) {
  if (!is_integral(index.dtype))
    fail_arg(TT_DTYPE, "index", "index is {}: must be integer", fmt(index.dtype));
  TT_NS::check_indices(index, static_name(arg), low, size, allowed);
}

void impl::check_holds(Call, const Tensor& holds, int64_t status, Str arg, Str text, Str) {
  if (holds.dtype != Dtype::kBool || holds.numel != 1)
    fail_arg(TT_DTYPE, "holds", "holds is {} {}: must be one bool", fmt(holds.dtype),
             holds.sizes());
  if (status < TT_INVALID_ARG || status > TT_LINALG)
    fail_arg(TT_INVALID_ARG, "status", "status is {}: must be that of an error", status);
  Text message;  // text need not end with a 0
  message.add(text);
  require(holds, tt_status(status), static_name(arg), message.c_str());
}

}  // namespace TT_NS
