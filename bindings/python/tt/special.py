"""Special functions, with the API of torch.special."""
from ._ops import digamma as digamma
from ._ops import digamma as psi  # noqa: F401
from ._ops import entr as entr
from ._ops import erf as erf
from ._ops import erfc as erfc
from ._ops import erfcx as erfcx
from ._ops import erfinv as erfinv
from ._ops import exp2 as exp2
from ._ops import expm1 as expm1
from ._ops import i0 as i0
from ._ops import i0e as i0e
from ._ops import i1 as i1
from ._ops import i1e as i1e
from ._ops import igamma as gammainc  # noqa: F401
from ._ops import igammac as gammaincc  # noqa: F401
from ._ops import lgamma as gammaln  # noqa: F401
from ._ops import log1p as log1p
from ._ops import log_ndtr as log_ndtr
from ._ops import log_softmax as log_softmax
from ._ops import logit as logit
from ._ops import logsumexp as logsumexp
from ._ops import mvlgamma as multigammaln  # noqa: F401
from ._ops import ndtr as ndtr
from ._ops import ndtri as ndtri
from ._ops import polygamma as polygamma
from ._ops import round as round
from ._ops import sigmoid as expit  # noqa: F401
from ._ops import sinc as sinc
from ._ops import softmax as softmax
from ._ops import xlog1py as xlog1py
from ._ops import xlogy as xlogy
from ._ops import zeta as zeta
