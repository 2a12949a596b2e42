"""Parameter: a leaf that a module registers when it is assigned."""
from .. import _ops
from .._tensor import Tensor, new


class Parameter(Tensor, plain_results=True):
    """A tensor that counts as a module's parameter. Parameter(data, requires_grad=True)"""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = _ops.empty(0)
        return cls.over(data.detach()).requires_grad_(requires_grad)

    def __init__(self, data=None, requires_grad=True):
        pass

    @classmethod
    def over(cls, tensor):
        """A Parameter that takes the handle of a tensor nobody else has."""
        made = new(cls)
        made._address, tensor._address = tensor._address, None
        return made

    def __deepcopy__(self, memo):
        """Without the gradient."""
        made = super().__deepcopy__(memo)
        made.grad = None
        return made

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor, plain_results=True):
    """A tensor that counts as a module's buffer. Buffer(data, *, persistent=True)"""

    def __new__(cls, data=None, *, persistent=True):
        made = Parameter.over.__func__(cls, data.detach())
        made.persistent = persistent
        return made

    def __init__(self, data=None, *, persistent=True):
        pass
