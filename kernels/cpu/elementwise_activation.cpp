#include "cpu/elementwise.h"
#include "functors/all.h"

TT_ENTRY_BEGIN
#include "gen/kernels_activation.inc"
TT_ENTRY_END
