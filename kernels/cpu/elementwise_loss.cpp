#include "cpu/elementwise.h"
#include "functors/all.h"

TT_ENTRY_BEGIN
#include "gen/kernels_loss.inc"
TT_ENTRY_END
