// Every functor: a generated list may name any of them.
#pragma once

#include "functors/arith.h"
#include "functors/compare.h"
#include "functors/math.h"
#include "functors/move.h"
