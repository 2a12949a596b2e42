"""Special functions, with the API of torch.special."""
from .._ops import digamma as digamma
from .._ops import digamma as psi  # noqa: F401
from .._ops import entr as entr
from .._ops import erf as erf
from .._ops import erfc as erfc
from .._ops import erfcx as erfcx
from .._ops import erfinv as erfinv
from .._ops import exp2 as exp2
from .._ops import expm1 as expm1
from .._ops import i0 as i0
from .._ops import i0e as i0e
from .._ops import i0 as modified_bessel_i0  # noqa: F401
from .._ops import i1 as i1
from .._ops import i1 as modified_bessel_i1  # noqa: F401
from .._ops import i1e as i1e
from .._ops import igamma as gammainc  # noqa: F401
from .._ops import igammac as gammaincc  # noqa: F401
from .._ops import lgamma as gammaln  # noqa: F401
from .._ops import log1p as log1p
from .._ops import log_ndtr as log_ndtr
from .._ops import log_softmax as log_softmax
from .._ops import logit as logit
from .._ops import logsumexp as logsumexp
from .._ops import mvlgamma as multigammaln  # noqa: F401
from .._ops import ndtr as ndtr
from .._ops import ndtri as ndtri
from .._ops import polygamma as polygamma
from .._ops import round as round
from .._ops import sigmoid as expit  # noqa: F401
from .._ops import sinc as sinc
from .._ops import softmax as softmax
from .._ops import xlog1py as xlog1py
from .._ops import xlogy as xlogy
from .._ops import zeta as zeta
from ._bessel import airy_ai as airy_ai
from ._bessel import bessel_j0 as bessel_j0
from ._bessel import bessel_j1 as bessel_j1
from ._bessel import bessel_y0 as bessel_y0
from ._bessel import bessel_y1 as bessel_y1
from ._bessel import modified_bessel_k0 as modified_bessel_k0
from ._bessel import modified_bessel_k1 as modified_bessel_k1
from ._bessel import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from ._bessel import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from ._bessel import spherical_bessel_j0 as spherical_bessel_j0
from ._polynomials import chebyshev_polynomial_t as chebyshev_polynomial_t
from ._polynomials import chebyshev_polynomial_u as chebyshev_polynomial_u
from ._polynomials import chebyshev_polynomial_v as chebyshev_polynomial_v
from ._polynomials import chebyshev_polynomial_w as chebyshev_polynomial_w
from ._polynomials import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
from ._polynomials import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
from ._polynomials import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
from ._polynomials import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
from ._polynomials import hermite_polynomial_h as hermite_polynomial_h
from ._polynomials import hermite_polynomial_he as hermite_polynomial_he
from ._polynomials import laguerre_polynomial_l as laguerre_polynomial_l
from ._polynomials import legendre_polynomial_p as legendre_polynomial_p
