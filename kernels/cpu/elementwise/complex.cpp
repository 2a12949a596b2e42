#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/functors/all.h"

TT_ENTRY_BEGIN
#include "kernels/functors/gen/complex.inc"
TT_ENTRY_END
