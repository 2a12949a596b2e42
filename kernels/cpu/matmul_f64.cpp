#include "matmul_packed.h"

TT_ENTRY_BEGIN
TT_MATMUL_DEFINE(matmul_f64, double, double)
TT_ENTRY_END
