"""Transposed convolutions: the size of the result may be asked for."""
from . import functional
from .layers import LAYERS


def output_padding(m, input, output_size):
    """What the wanted size has more than the smallest possible one, in each dimension."""
    n = len(m.kernel)
    size = tuple(output_size)[-n:]
    if len(tuple(output_size)) not in (n, input.ndim):
        raise ValueError(f"{type(m).__name__}: output_size must have {n} or {input.ndim} numbers")
    more = []
    for i in range(n):
        least = (
            (input.shape[i - n] - 1) * m.steps[i]
            - 2 * m.pads[i]
            + m.spread[i] * (m.kernel[i] - 1)
            + 1
        )
        if not 0 <= size[i] - least < m.steps[i]:
            raise ValueError(
                f"requested an output size of {list(size)}, but dimension {i} can be {least} to {least + m.steps[i] - 1}"
            )
        more.append(size[i] - least)
    return tuple(more)


def transposed(n):
    """ConvTranspose<n>d with forward(input, output_size=None)."""
    base = LAYERS[f"ConvTranspose{n}d"]

    def wide(value):
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n

    def forward(self, input, output_size=None):
        if output_size is None:
            return base.forward(self, input)
        more = output_padding(self, input, output_size)
        return getattr(functional, f"conv_transpose{n}d")(
            input, self.weight, self.bias, self.steps, self.pads, more, self.groups, self.spread
        )

    facts = {
        name: property(lambda self, key=key: wide(getattr(self, key)))
        for name, key in (
            ("kernel", "kernel_size"),
            ("steps", "stride"),
            ("pads", "padding"),
            ("spread", "dilation"),
        )
    }
    return type(
        base.__name__,
        (base,),
        {"forward": forward, "__doc__": base.__doc__, "__module__": "tt.nn", **facts},
    )


for _n in (1, 2, 3):
    LAYERS[f"ConvTranspose{_n}d"] = transposed(_n)
