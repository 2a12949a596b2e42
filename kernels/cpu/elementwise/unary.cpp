#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/functors/all.h"

TT_ENTRY_BEGIN
#define TT_LONG_ROWS 0
#include "kernels/functors/gen/unary.inc"
TT_ENTRY_END
