#include "kernels/cpu/matmul/complex.h"

TT_ENTRY_BEGIN
TT_MATMUL_DEFINE(matmul_f32, float, float)
TT_MATMUL_DEFINE_COMPLEX(matmul_c64, float)
TT_MATMUL_DEFINE(matmul_f16, F16, float)
TT_MATMUL_DEFINE(matmul_bf16, Bf16, float)
TT_ENTRY_END
