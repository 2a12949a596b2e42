"""Captured work of a device that is replayed as a whole, with the names of torch.cuda."""
from __future__ import annotations

import gc
from ctypes import byref, c_int64
from typing import Any, Callable, Sequence

from .. import autograd
from .._graph import GraphHandle, PlanHandle
from .._lib import call, lib, local, result
from .._structs import struct
from .._tensor import Tensor
from .._tree import Place, mapped, with_tensors, without_tensors
from .devices import required
from .streams import Stream, current_stream, set_stream, stream as on_stream

DEFERRED = 2  # TT_CAPTURE_DEFERRED


def graph_pool_handle() -> tuple[int, int]:
    """Returns a handle for the argument pool, which has no effect: a graph has memory of its own
    for intermediate results."""
    return (0, 0)


def is_current_stream_capturing() -> bool:
    """Returns whether this thread records a CUDAGraph."""
    return getattr(local, "cuda_graph", None) is not None


class CUDAGraph:
    """Work that is recorded once and replayed by one call.

    While it is recorded, nothing is computed: tensors that are made then have values after the
    first replay. A replay computes with the present values of the tensors that existed before, in
    their memory, and writes its results to the same tensors each time. Random numbers, learning
    rates of schedulers and the counts of optimizers go on from replay to replay.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        required("CUDAGraph")
        self._graph: GraphHandle | None = None
        self._plan: PlanHandle | None = None

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", **kwargs: Any
    ) -> None:
        """Begins to record the operators of this thread. pool and capture_error_mode: ignored."""
        if self._graph is not None:
            raise RuntimeError("CUDAGraph.capture_begin: it holds a graph already: call reset()")
        opts = struct("tt_capture_opts")(set=DEFERRED, deferred=1)
        call("tt_capture_begin", None, c_int64(0), byref(opts))
        local.cuda_graph = self

    def capture_end(self) -> None:
        """Ends the recording and prepares replays.

        Raises UnimplementedError for what cannot be replayed, e.g. an operator that reads elements.
        """
        if getattr(local, "cuda_graph", None) is not self:
            raise RuntimeError("CUDAGraph.capture_end: this graph is not being recorded")
        local.cuda_graph = None
        graph = result(GraphHandle, "tt_capture_end", None, c_int64(0))
        self._plan = result(PlanHandle, "tt_plan_new", graph, None)
        self._graph = graph

    def _drop(self) -> None:
        """Ends the recording without a graph."""
        if getattr(local, "cuda_graph", None) is self:
            local.cuda_graph = None
            lib.tt_capture_drop(local.ctx)

    def instantiate(self) -> None:
        """Does nothing: capture_end has prepared the replays."""

    def replay(self) -> None:
        """Runs the work on the current stream. Returns at once."""
        if self._plan is None:
            raise RuntimeError("CUDAGraph.replay: nothing was recorded")
        call("tt_plan_run", self._plan)

    def reset(self) -> None:
        """Drops the recorded work."""
        self._drop()
        self._graph = self._plan = None

    def pool(self) -> tuple[int, int]:
        """Returns graph_pool_handle()."""
        return graph_pool_handle()

    def enable_debug_mode(self) -> None:
        """Does nothing: debug_dump works always."""

    def debug_dump(self, debug_path: str) -> None:
        """Writes the graph in Graphviz's language to a file."""
        if self._graph is None:
            raise RuntimeError("CUDAGraph.debug_dump: nothing was recorded")
        with open(debug_path, "w") as f:
            f.write(self._graph.dot())


class graph:
    """Records the operators of a block in a CUDAGraph.

    stream: the current stream in the block. pool and capture_error_mode: ignored.
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        **kwargs: Any,
    ) -> None:
        self.cuda_graph = cuda_graph
        self.stream = on_stream(stream)

    def __enter__(self) -> None:
        gc.collect()  # what Python has not yet dropped would be kept
        self.stream.__enter__()
        try:
            self.cuda_graph.capture_begin()
        except BaseException:
            self.stream.__exit__()
            raise

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph._drop()
        finally:
            self.stream.__exit__()


def comparable(structure: Any) -> Any:
    """Returns the structure with numbers for its places."""
    return mapped(structure, lambda x: (Place, x.index) if isinstance(x, Place) else x)


class Graphed:
    """A function whose forward and backward are graphs, for arguments like the samples."""

    def __init__(self, fn: Any, sample_args: Sequence[Any], warmup: int, unused: bool) -> None:
        self.samples: list[Tensor] = []
        self.arguments = comparable(without_tensors(tuple(sample_args), self.samples))
        self.parameters = list(fn.parameters()) if hasattr(fn, "parameters") else []
        self.inputs = self.samples + self.parameters
        self.wanted = [x for x in self.inputs if x.requires_grad]
        self.unused = unused
        side = Stream(self.samples[0].device if self.samples else None)
        outer = current_stream(side.device)
        set_stream(side)
        try:
            for _ in range(warmup):
                outs: list[Tensor] = []
                without_tensors(fn(*sample_args), outs)
                self.gradients(outs, [o.detach() for o in outs if o.requires_grad])
        finally:
            set_stream(outer)
        outs = []
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()
        with graph(self.forward_graph):
            self.result = without_tensors(fn(*sample_args), outs)
        self.grad_outputs = [o.detach().clone() for o in outs if o.requires_grad]
        with graph(self.backward_graph):
            self.grads = self.gradients(outs, self.grad_outputs)
        self.takes_gradient = [o.requires_grad for o in outs]
        self.outs = [o.detach() for o in outs]
        self.function = self.new_function()

    def gradients(self, outs: list[Tensor], grad_outputs: list[Tensor]) -> list[Tensor | None]:
        """Returns the gradient of each input; None for those that need none."""
        roots = [o for o in outs if o.requires_grad]
        if not (roots and self.wanted):
            return [None] * len(self.inputs)
        found = iter(autograd.grad(roots, self.wanted, grad_outputs, allow_unused=self.unused))
        return [next(found) if x.requires_grad else None for x in self.inputs]

    def new_function(self) -> Any:
        graphed = self

        class Replay(autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
                for x, place in zip(inputs, graphed.samples):
                    if x.data_ptr() != place.data_ptr():
                        place.detach().copy_(x)
                graphed.forward_graph.replay()
                outs = tuple(o.detach() for o in graphed.outs)
                flags = zip(outs, graphed.takes_gradient)
                ctx.mark_non_differentiable(*[o for o, takes in flags if not takes])
                return outs

            @staticmethod
            def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
                taken = [g for g, takes in zip(grads, graphed.takes_gradient) if takes]
                for g, place in zip(taken, graphed.grad_outputs):
                    if g is not None and g.data_ptr() != place.data_ptr():
                        place.copy_(g)
                graphed.backward_graph.replay()
                return tuple(None if g is None else g.detach() for g in graphed.grads)

        return Replay

    def __call__(self, *args: Any) -> Any:
        tensors: list[Tensor] = []
        if comparable(without_tensors(args, tensors)) != self.arguments:
            raise ValueError(
                "make_graphed_callables: the arguments differ from the samples in more than tensors"
            )
        for i, (x, place) in enumerate(zip(tensors, self.samples)):
            if x.shape != place.shape or x.dtype != place.dtype:
                raise ValueError(
                    f"make_graphed_callables: tensor {i} is {x.dtype} {tuple(x.shape)}, the sample "
                    f"{place.dtype} {tuple(place.shape)}"
                )
        return with_tensors(self.result, list(self.function.apply(*tensors, *self.parameters)))


def graphed_callable(fn: Any, args: Any, warmup: int, unused: bool) -> Any:
    graphed = Graphed(fn, args, warmup, unused)
    if not hasattr(fn, "forward"):
        return graphed
    eager, training = fn.forward, fn.training

    def forward(*given: Any) -> Any:
        return graphed(*given) if fn.training == training else eager(*given)

    fn.forward = forward
    return fn


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Returns functions, or the modules themselves, whose forward and backward are replayed.

    sample_args: a tuple of arguments, or one for each of several callables; later arguments have
    the same shapes. Modules must have no hooks, and run as ever in the other mode (training or
    evaluation). Results and gradients are overwritten by the next call. pool: ignored.
    """
    if not isinstance(callables, tuple):
        return graphed_callable(callables, sample_args, num_warmup_iters, allow_unused_input)
    return tuple(
        graphed_callable(f, args, num_warmup_iters, allow_unused_input)
        for f, args in zip(callables, sample_args)
    )
