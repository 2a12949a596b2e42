#include "kernels/cpu/matmul/complex.h"

TT_ENTRY_BEGIN
TT_MATMUL_DEFINE(matmul_f64, double, double)
TT_MATMUL_DEFINE_COMPLEX(matmul_c128, double)
TT_ENTRY_END
