#include "cpu/elementwise.h"
#include "functors/all.h"

TT_ENTRY_BEGIN
#include "gen/kernels_math_more.inc"
TT_ENTRY_END
