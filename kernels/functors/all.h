// Every functor: a generated list may name any of them.
#pragma once

#include "kernels/functors/activation.h"
#include "kernels/functors/arith.h"
#include "kernels/functors/arith_float.h"
#include "kernels/functors/bitwise.h"
#include "kernels/functors/compare.h"
#include "kernels/functors/complex.h"
#include "kernels/functors/copy.h"
#include "kernels/functors/index.h"
#include "kernels/functors/loss.h"
#include "kernels/functors/random.h"
#include "kernels/functors/special.h"
#include "kernels/functors/unary.h"
