// Plans use the kernel signature and item sizes of core.
#pragma once

#include "base/arith.h"
#include "core/kernel.h"
