/* Two static copies of tt, alpha and beta, in one process: each makes its own handles and refuses the other's ctx tags or not,
   but computes alone. Their functions are declared here by their renamed symbols. */
#include "tt_types.h"

#define DECLARE(p)                                                                                                  \
  tt_status p##_tt_ctx_new(tt_runtime *, tt_ctx **);                                                                \
  void p##_tt_ctx_release(tt_ctx *);                                                                                \
  tt_status p##_tt_tensor_from_data(tt_ctx *, const void *, tt_dtype, const int64_t *, int64_t, tt_tensor **);      \
  tt_status p##_tt_add(tt_ctx *, const tt_tensor *, const tt_tensor *, tt_tensor **);                               \
  tt_status p##_tt_item_f64(tt_ctx *, const tt_tensor *, double *);                                                 \
  void p##_tt_tensor_release(tt_tensor *);                                                                          \
  static int use_##p(double x) {                                                                                    \
    double y = 0;                                                                                                   \
    tt_ctx *c;                                                                                                      \
    tt_tensor *a, *b;                                                                                               \
    if (p##_tt_ctx_new(NULL, &c)) return 1;                                                                         \
    if (p##_tt_tensor_from_data(c, &x, TT_F64, NULL, 0, &a)) return 2;                                              \
    if (p##_tt_add(c, a, a, &b)) return 3;                                                                          \
    if (p##_tt_item_f64(c, b, &y)) return 4;                                                                        \
    p##_tt_tensor_release(a);                                                                                       \
    p##_tt_tensor_release(b);                                                                                       \
    p##_tt_ctx_release(c);                                                                                          \
    return y == 2 * x ? 0 : 5;                                                                                      \
  }
DECLARE(alpha)
DECLARE(beta)

int main(void) {
  const int a = use_alpha(3);
  return a ? a : use_beta(4);
}
