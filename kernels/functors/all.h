// Every functor: a generated list may name any of them.
#pragma once

#include "functors/activation.h"
#include "functors/arith.h"
#include "functors/binary.h"
#include "functors/compare.h"
#include "functors/loss.h"
#include "functors/math.h"
#include "functors/move.h"
#include "functors/unary.h"
