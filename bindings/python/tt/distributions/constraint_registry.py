"""transform_to and biject_to: from constraints to transforms of real numbers."""
from __future__ import annotations

from typing import Any, Callable

from . import constraints, transforms
from .transforms import Transform

Factory = Callable[[Any], Transform]

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Maps classes of constraints to functions that make a transform of a constraint.

    registry(constraint) returns a transform from real numbers to the values of the constraint.
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Registers a function of a constraint for a class of constraints, or for that of an
        object. Without factory, returns a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(f"register: constraint is {constraint!r}: must be a Constraint")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> Transform:
        """Returns the transform for a constraint. Raises NotImplementedError if none is
        registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform is registered for {constraint}")
        return factory(constraint)


biject_to = ConstraintRegistry()  # bijections, with log_abs_det_jacobian
transform_to = ConstraintRegistry()  # may have more inputs than needed, for optimizers


def above(constraint: Any) -> Transform:
    moved = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), moved])


def below(constraint: Any) -> Transform:
    mirrored = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), mirrored])


def between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    scaled = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scaled])


def register_for_both() -> None:
    """Registers what is the same in both."""
    for registry in (biject_to, transform_to):

        def independent(constraint: Any, registry: ConstraintRegistry = registry) -> Transform:
            base = registry(constraint.base_constraint)
            return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

        def cat(constraint: Any, registry: ConstraintRegistry = registry) -> Transform:
            parts = [registry(c) for c in constraint.cseq]
            return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

        def stack(constraint: Any, registry: ConstraintRegistry = registry) -> Transform:
            return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

        registry.register(constraints.cat, cat)
        registry.register(constraints.stack, stack)
        registry.register(constraints.real, lambda constraint: transforms.identity_transform)
        registry.register(constraints.independent, independent)
        registry.register(constraints.greater_than, above)
        registry.register(constraints.greater_than_eq, above)
        registry.register(constraints.less_than, below)
        registry.register(constraints.interval, between)
        registry.register(constraints.half_open_interval, between)
        registry.register(
            constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform()
        )


register_for_both()
biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform()
)
for matrices in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(matrices, lambda constraint: transforms.PositiveDefiniteTransform())
