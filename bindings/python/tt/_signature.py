"""The signature of an exported program: which inputs of PyTorch's graph are parameters, buffers and
arguments. In tt's graph, parameters and buffers are constants."""
from __future__ import annotations

import enum
from typing import Any, NamedTuple, Sequence


class InputKind(enum.Enum):
    """The kind of an input."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()


class OutputKind(enum.Enum):
    """The kind of an output."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()


class TensorArgument(NamedTuple):
    """A tensor that goes in or comes out."""

    name: str


class InputSpec(NamedTuple):
    """An input. target: the name of the parameter or the buffer."""

    kind: InputKind
    arg: TensorArgument
    target: str | None
    persistent: bool | None = None


class OutputSpec(NamedTuple):
    """An output."""

    kind: OutputKind
    arg: TensorArgument
    target: str | None


class ExportGraphSignature:
    """Inputs in the order of PyTorch's graph: parameters, buffers, tensors among the arguments."""

    backward_signature: None = None
    assertion_dep_token: None = None

    def __init__(
        self,
        parameters: Sequence[str],
        buffers: Sequence[str],
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        self.parameters, self.buffers = tuple(parameters), tuple(buffers)
        self.user_inputs, self.user_outputs = tuple(inputs), tuple(outputs)
        self.buffers_to_mutate: dict[str, str] = {}
        self.user_inputs_to_mutate: dict[str, str] = {}
        self.non_persistent_buffers: tuple[str, ...] = ()
        self.lifted_tensor_constants: tuple[str, ...] = ()

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        return {"p_" + name.replace(".", "_"): name for name in self.parameters}

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        return {"b_" + name.replace(".", "_"): name for name in self.buffers}

    @property
    def input_specs(self) -> list[InputSpec]:
        kinds: Any = (
            (InputKind.PARAMETER, self.inputs_to_parameters, None),
            (InputKind.BUFFER, self.inputs_to_buffers, True),
            (InputKind.USER_INPUT, dict.fromkeys(self.user_inputs), None),
        )
        return [
            InputSpec(kind, TensorArgument(name), target, persistent)
            for kind, names, persistent in kinds
            for name, target in names.items()
        ]

    @property
    def output_specs(self) -> list[OutputSpec]:
        kind = OutputKind.USER_OUTPUT
        return [OutputSpec(kind, TensorArgument(name), None) for name in self.user_outputs]

    def __repr__(self) -> str:
        return (
            f"ExportGraphSignature(parameters={self.parameters}, buffers={self.buffers}, "
            f"user_inputs={self.user_inputs}, user_outputs={self.user_outputs})"
        )
