#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/functors/all.h"

TT_ENTRY_BEGIN
#define TT_LONG_ROWS 1  // functors of many constants
#include "kernels/functors/gen/activation.inc"
TT_ENTRY_END
