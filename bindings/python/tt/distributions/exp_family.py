"""ExponentialFamily, a base class for distributions of one's own."""
from __future__ import annotations

from .._tensor import Tensor
from ..autograd import enable_grad, grad
from .distribution import Distribution, last_dims_summed

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Base class of distributions with the density exp(t(x) · θ - F(θ) + k(x)).

    A subclass that has `_natural_params` θ, `_log_normalizer(*θ)` F and `_mean_carrier_measure`,
    the mean of k(x), has entropy() by the gradient of F. Those of this module compute it
    themselves, and are no subclasses.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _log_normalizer")

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Returns F(θ) - θ · F'(θ) - mean of k."""
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with enable_grad():
            normalizer = self._log_normalizer(*params)
            slopes = grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for p, slope in zip(params, slopes):
            term = p * slope
            result = result - last_dims_summed(term, term.ndim - normalizer.ndim)
        return result


def __dir__() -> list[str]:
    return __all__
