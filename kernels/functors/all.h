// Every functor: a generated list may name any of them.
#pragma once

#include "kernels/functors/activation.h"
#include "kernels/functors/arith.h"
#include "kernels/functors/binary.h"
#include "kernels/functors/compare.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/math.h"
#include "kernels/functors/move.h"
#include "kernels/functors/unary.h"
