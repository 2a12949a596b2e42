/* Two static copies of tt in one process, one renamed: each makes handles of its own and computes
   independently. Their functions are declared here by their renamed symbols. */
#include "tt_types.h"

#define DECLARE(name, p)                                                                    \
  tt_status p##tt_ctx_new(tt_runtime*, tt_ctx**);                                           \
  void p##tt_ctx_release(tt_ctx*);                                                          \
  tt_status p##tt_tensor_from_data(tt_ctx*, const void*, tt_dtype, const int64_t*, int64_t, \
                                   tt_tensor**);                                            \
  tt_status p##tt_add(tt_ctx*, const tt_tensor*, const tt_tensor*, tt_tensor**);            \
  tt_status p##tt_item_f64(tt_ctx*, const tt_tensor*, double*);                             \
  void p##tt_tensor_release(tt_tensor*);                                                    \
  static int use_##name(double x) {                                                         \
    double y = 0;                                                                           \
    tt_ctx* c;                                                                              \
    tt_tensor *a, *b;                                                                       \
    if (p##tt_ctx_new(NULL, &c)) return 1;                                                  \
    if (p##tt_tensor_from_data(c, &x, TT_F64, NULL, 0, &a)) return 2;                       \
    if (p##tt_add(c, a, a, &b)) return 3;                                                   \
    if (p##tt_item_f64(c, b, &y)) return 4;                                                 \
    p##tt_tensor_release(a);                                                                \
    p##tt_tensor_release(b);                                                                \
    p##tt_ctx_release(c);                                                                   \
    return y == 2 * x ? 0 : 5;                                                              \
  }
DECLARE(alpha, alpha_)
DECLARE(own, )

int main(void) {
  const int a = use_alpha(3);
  return a ? a : use_own(4);
}
