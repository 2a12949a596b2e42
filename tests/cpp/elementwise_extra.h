// Functors that are not the kernel of a declared operator, as kernels of the baseline build: name,
// functor, inputs, types, output.
TT_ELEMENTWISE(extra_square, PowSquare, 1, arith, same)
TT_ELEMENTWISE(extra_pow_scalar_base, PowScalarBase, 1, arith, same)
