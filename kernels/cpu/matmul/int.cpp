#include "kernels/cpu/matmul/packed.h"

TT_ENTRY_BEGIN
TT_MATMUL_DEFINE(matmul_i32, int32_t, int32_t)
TT_MATMUL_DEFINE(matmul_i64, int64_t, int64_t)
TT_ENTRY_END
