"""Function transforms with the API of torch.func: gradients, Jacobian matrices, vmap, and calls of
modules with other parameters.

Transforms may be nested. Arguments and results may hold tensors in lists, tuples and dicts.
"""
from __future__ import annotations

from ctypes import byref, c_int64, c_void_p
from functools import wraps
from struct import Struct
from typing import Any, Callable, Iterator, Sequence, Union

import tt

from . import _ops as ops
from . import _containers as containers
from . import _convert as convert
from ._callbacks import tt_fn
from ._class_name import class_name
from ._containers import is_batchable
from ._lib import call, drop, keep
from ._tensor import Tensor, from_address
from ._tree import Place, broadcast, leaves_like, mapped, with_tensors, without_tensors
from .autograd import enable_grad, is_grad_enabled
from ._depth import depth
from .autograd import grad as gradients
from .errors import DtypeError, InvalidArgumentError
from .random import thread_generator

Argnums = Union[int, tuple[int, ...]]

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
MAX_RESULTS = 1024  # of a function in C
MAX_MATRICES = 65536
NOT_BATCHED = -(2**63)
VMAP_OPTIONS = Struct("QPqPqi0q").pack  # tt_vmap_opts
WRITES_SHARED = "that all samples share"  # in vmap's refusal to write into such a tensor
RANDOMNESS = {"error": 0, "same": 1, "different": 2}


def addresses(handles: Any) -> list[Tensor | None]:
    """Returns the tensors of an array that C filled."""
    return [from_address(address) if address else None for address in handles]


class Flat:
    """Adapts a Python function to a C function of lists of tensors.

    arguments: the structure of the arguments with places for tensors. result: the structure of
    func's result; aux: its auxiliary result. transforms: whether a transform calls it.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        arguments: Any,
        has_aux: bool = False,
        transforms: bool = True,
    ) -> None:
        self.func, self.arguments, self.has_aux = func, arguments, has_aux
        self.transforms = transforms
        self.result: Any = None
        self.aux: Any = None

    def __call__(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        args, kwargs = with_tensors(self.arguments, tensors)
        depth.functions += self.transforms
        try:
            result = self.func(*args, **kwargs)
        finally:
            depth.functions -= self.transforms
        if self.has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError("with has_aux the function must return a tuple (result, aux)")
            result, self.aux = result
        results: list[Tensor] = []
        self.result = without_tensors(result, results)
        self.number = len(results)
        if self.has_aux:
            self.aux = without_tensors(self.aux, results)
        return results

    def user(self) -> tuple[Any, Any, Any]:
        """Returns the three C arguments for this function."""
        return tt_fn, c_void_p(keep(self)), drop

    def results_of(self, tensors: Sequence[Any]) -> Any:
        """Returns the result with tensors instead of places."""
        return with_tensors(self.result, tensors)


def selected(args: tuple[Any, ...], argnums: Argnums, name: str) -> tuple[int, ...]:
    """Returns the positions of the arguments in argnums."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError(f"{name}: argnums is empty")
    positions = []
    for i in numbers:
        if not isinstance(i, int):
            raise RuntimeError(f"{name}: argnums is {argnums!r}: must be an int or a tuple of them")
        if not -len(args) <= i < len(args):
            raise RuntimeError(
                f"{name}: argnums is {argnums!r}, but there are {len(args)} positional arguments"
            )
        positions.append(i % len(args))
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"{name}: argnums is {argnums!r}: its items must differ")
    return tuple(positions)


class Call:
    """One call of a transform with respect to some of its arguments.

    tensors: those of the selected arguments; structure: the arguments with places for them.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Argnums,
        has_aux: bool,
        name: str,
    ) -> None:
        numbers = selected(args, argnums, name)
        self.tensors: list[Tensor] = []
        parts = [without_tensors(args[i], self.tensors) for i in numbers]
        for i, part in zip(numbers, parts):
            if isinstance(args[i], (int, float, complex)):
                raise ValueError(
                    f"{name}: argument {i} is {type(args[i]).__name__}: must hold tensors"
                )
        if not self.tensors:
            raise ValueError(f"{name}: the arguments {numbers} hold no tensors")
        self.structure = tuple(parts) if isinstance(argnums, tuple) else parts[0]
        given: list[Any] = list(args)

        def with_selected(*selection: Any) -> Any:
            for i, part in zip(numbers, selection):
                given[i] = part
            return func(*given, **kwargs)

        self.flat = Flat(with_selected, (tuple(parts), {}), has_aux)


def run_vjp(
    flat: Flat, tensors: Sequence[Tensor], cotangents: Sequence[Tensor | None]
) -> tuple[list[Any], list[Any]]:
    """Calls tt_vjp. Returns the function's results and the gradients."""
    outs, n = (c_void_p * MAX_RESULTS)(), c_int64()
    grads = (c_void_p * len(tensors))()
    call(
        "tt_vjp",
        *flat.user(),
        convert.pointers(tensors),
        convert.length(tensors),
        convert.pointers(cotangents),
        convert.length(cotangents),
        outs,
        c_int64(MAX_RESULTS),
        byref(n),
        grads,
    )
    return addresses(outs[: n.value]), addresses(grads)


def run_jvp(
    flat: Flat, tensors: Sequence[Tensor], tangents: Sequence[Tensor | None]
) -> tuple[list[Any], list[Any]]:
    """Calls tt_jvp. Returns the function's results and the products."""
    outs, products, n = ((c_void_p * MAX_RESULTS)(), (c_void_p * MAX_RESULTS)(), c_int64())
    call(
        "tt_jvp",
        *flat.user(),
        convert.pointers(tensors),
        convert.pointers(tangents),
        convert.length(tensors),
        outs,
        products,
        c_int64(MAX_RESULTS),
        byref(n),
    )
    return addresses(outs[: n.value]), addresses(products[: n.value])


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Returns a function that returns (the gradient of func, func's result).

    argnums: the arguments to differentiate; a tuple gives a tuple of gradients. has_aux: func
    returns (result, aux), and the value is that pair.
    """

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        c = Call(func, args, kwargs, argnums, has_aux, "grad")
        for i, t in enumerate(c.tensors):
            if not (t.is_floating_point() or t.is_complex()):
                raise DtypeError(f"grad: tensor {i} is {t.dtype}: must be floating or complex")

        def one_number(tensors: tuple[Tensor, ...]) -> list[Tensor]:
            results = c.flat(tensors)
            if c.flat.number != 1 or c.flat.result.__class__.__name__ != "Place":
                raise RuntimeError("grad: the function must return one Tensor, of one element")
            if results[0].ndim or not results[0].dtype.is_floating_point:
                raise RuntimeError(
                    f"grad: the function returned {results[0].dtype} of shape "
                    f"{tuple(results[0].shape)}: must be a floating number without dimensions"
                )
            return results

        outs, grads = run_vjp(Wrapped(one_number), c.tensors, ())
        gradient = with_tensors(c.structure, grads)
        value = outs[0]
        return gradient, (value, with_tensors(c.flat.aux, outs)) if has_aux else value

    return wrapper


class Wrapped(Flat):
    """A function that takes and returns lists of tensors."""

    def __init__(self, function: Callable[[Any], list[Tensor]]) -> None:
        self.function = function

    def __call__(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        return self.function(tensors)


def grad(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Returns a function that returns the gradient of func, which returns one number.

    argnums: the arguments to differentiate; a tuple gives a tuple of gradients. has_aux: func
    returns (result, aux), and the new function returns (gradient, aux).
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Returns (func(*primals), a function that computes vector-Jacobian products).

    The new function takes cotangents in the structure of the result and returns a tuple with a
    product for each primal. has_aux: func returns (result, aux), and vjp returns aux as its third
    result.
    """
    tensors: list[Tensor] = []
    without_tensors(primals, tensors)
    check_differentiable(tensors, "vjp")
    find = recomputed_vjp if depth.vmap else recorded_vjp
    return find(func, primals, has_aux, "vjp")


def recorded_vjp(func: Callable[..., Any], primals: Any, has_aux: bool, name: str) -> Any:
    """vjp with the graph of one call of func, whose results may be integers unless name is "vjp".
    name: the transform, for messages."""
    tensors: list[Tensor] = []
    structure = without_tensors(primals, tensors)
    if not tensors:
        return recomputed_vjp(func, primals, has_aux, name)
    flat = Flat(func, (structure, {}), has_aux)
    given: list[Tensor] = []
    results: list[Tensor] = []

    def tracked(inputs: tuple[Tensor, ...]) -> list[Tensor]:
        given.extend(inputs)
        results.extend(flat(inputs))
        check_results(flat, results, name)
        return results

    shown, _ = run_vjp(Wrapped(tracked), tensors, (None,))
    recorded = any(r.requires_grad for r in shown)  # they depend on more than the primals

    def product(cotangents: Any, *more: Any) -> tuple[Any, ...]:
        weights = cotangents_of(flat, (cotangents, *more), results)
        pairs = [(r, w) for r, w in zip(results, weights) if r.requires_grad]
        products: Sequence[Any] = [None] * len(given)
        if pairs:
            products = gradients(
                [r for r, _ in pairs],
                given,
                [w for _, w in pairs],
                retain_graph=True,
                create_graph=is_grad_enabled()
                and (recorded or any(w.requires_grad for w in weights)),
                allow_unused=True,
            )
        filled = [ops.zeros_like(t) if g is None else g for g, t in zip(products, given)]
        return with_tensors(structure, filled)

    output = flat.results_of(shown)
    return (output, product, with_tensors(flat.aux, shown)) if has_aux else (output, product)


def check_results(flat: Flat, results: Sequence[Tensor], name: str) -> None:
    """Checks that a function returned tensors alone, floating or complex ones for vjp."""
    check_tensors(flat.result, name, RuntimeError)
    for i, r in enumerate(results[: flat.number] if name == "vjp" else ()):
        if not (r.is_floating_point() or r.is_complex()):
            raise RuntimeError(f"{name}: result {i} is {r.dtype}: must be floating or complex")


def cotangents_of(
    flat: Flat, cotangents: tuple[Any, ...], results: Sequence[Tensor]
) -> list[Tensor]:
    """Returns the cotangents of the results, which are in the structure of flat's result, or the
    items of a tuple."""
    structure = cotangents[0] if len(cotangents) == 1 else cotangents
    weights = leaves_like(structure, flat.result, "vjp: the cotangents")
    for i, (w, r) in enumerate(zip(weights, results)):
        if not isinstance(w, Tensor) or w.shape != r.shape:
            what = tuple(w.shape) if isinstance(w, Tensor) else type(w).__name__
            raise RuntimeError(
                f"vjp: cotangent {i} is {what}: must have its result's shape {tuple(r.shape)}"
            )
    return weights


def recomputed_vjp(func: Callable[..., Any], primals: Any, has_aux: bool, name: str) -> Any:
    """vjp inside vmap, where C tracks the samples. Each product calls func again."""
    tensors: list[Tensor] = []
    structure = without_tensors(primals, tensors)
    flat = Flat(func, (structure, {}), has_aux)
    outs = flat(tuple(tensors))
    check_results(flat, outs, name)

    def product(*cotangents: Any) -> tuple[Any, ...]:
        weights = cotangents_of(flat, cotangents, outs)
        _, grads = run_vjp(Flat(func, (structure, {}), has_aux), tensors, weights)
        return with_tensors(structure, grads)

    output = flat.results_of(outs)
    return (output, product, with_tensors(flat.aux, outs)) if has_aux else (output, product)


def check_differentiable(tensors: Sequence[Tensor], name: str) -> None:
    for i, t in enumerate(tensors):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"{name}: tensor {i} is {t.dtype}: must be floating or complex")


def check_tensors(result: Any, name: str, error: type[Exception]) -> None:
    """Checks that the structure of a function's result holds tensors alone, and some."""
    leaves: list[Any] = []
    mapped(result, leaves.append)
    for leaf in leaves:
        if not isinstance(leaf, Place):
            raise error(f"{name}: the function returned {type(leaf).__name__}: must return tensors")
    if not leaves:
        raise error(f"{name}: the function returned no tensors")


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """Returns (func(*primals), the derivative in the direction of tangents).

    primals, tangents: tuples of equal structure. has_aux: func returns (result, aux), and jvp
    returns aux as its third result. strict is ignored.
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp: primals and tangents must be tuples of arguments")
    given: list[Tensor] = []
    structure = without_tensors(primals, given)
    directions = tangents_of(tangents, structure, "jvp")
    flat = Flat(func, (structure, {}), has_aux)
    outs, products = run_jvp(flat, given, directions)
    check_tensors(flat.result, "jvp", RuntimeError)
    output, product = flat.results_of(outs), flat.results_of(products)
    return (output, product, with_tensors(flat.aux, outs)) if has_aux else (output, product)


def tangents_of(tangents: Any, primals: Any, name: str) -> list[Tensor]:
    """Returns the tangents in the order of the places in the structure of the primals."""
    directions = leaves_like(tangents, primals, f"{name}: the tangents")
    for i, t in enumerate(directions):
        if not isinstance(t, Tensor):
            raise RuntimeError(f"{name}: tangent {i} is {type(t).__name__}: must be a Tensor")
    return directions


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Returns (func(*primals), a function that computes Jacobian-vector products). It calls func
    twice, as PyTorch does, and no product calls it again, except inside vmap and where a tensor
    that requires a gradient takes part.
    """
    tensors: list[Tensor] = []
    structure = without_tensors(primals, tensors)
    check_differentiable(tensors, "linearize")
    output = func(*primals)
    results: list[Tensor] = []
    result_structure = without_tensors(output, results)
    if depth.vmap or any(r.requires_grad for r in results):

        def directional_again(*tangents: Any) -> Any:
            return jvp(func, primals, tangents)[1]

        return output, directional_again

    _, pull_back = recorded_vjp(func, primals, False, "linearize")
    with enable_grad():
        # Products with Jacobian matrices from the left are linear in the cotangents: the gradient
        # of them in the direction of the tangents is the product from the right.
        cotangents = [ops.zeros_like(r) for r in results]
        weights = {
            i: c.requires_grad_()
            for i, c in enumerate(cotangents)
            if c.is_floating_point() or c.is_complex()
        }
        products: list[Tensor] = []
        without_tensors(pull_back(with_tensors(result_structure, cotangents)), products)
    recorded = [i for i, p in enumerate(products) if p.requires_grad]

    def directional(*tangents: Any) -> Any:
        directions = tangents_of(tangents, structure, "linearize")
        check_tangents(directions, tensors)
        found: dict[int, Any] = {}
        if recorded:
            derivatives = gradients(
                [products[i] for i in recorded],
                list(weights.values()),
                [directions[i] for i in recorded],
                retain_graph=True,
                create_graph=any(t.requires_grad for t in directions),
                allow_unused=True,
            )
            found = dict(zip(weights, derivatives))
        filled = [
            ops.zeros_like(r) if found.get(i) is None else found[i] for i, r in enumerate(results)
        ]
        return with_tensors(result_structure, filled)

    return output, directional


def check_tangents(tangents: Sequence[Tensor], primals: Sequence[Tensor]) -> None:
    for i, (t, p) in enumerate(zip(tangents, primals)):
        if t.shape != p.shape or t.dtype != p.dtype:
            raise RuntimeError(
                f"linearize: tangent {i} is {t.dtype} of shape {tuple(t.shape)}: must be {p.dtype} "
                f"of shape {tuple(p.shape)}, as its primal"
            )


def detached(structure: Any) -> Any:
    return mapped(structure, lambda x: x.detach() if isinstance(x, Tensor) else x)


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Returns a function that returns the Jacobian matrices of func: the result's structure, with
    the arguments' structure in place of each tensor. One backward pass in vmap takes the elements
    of the result, at most chunk_size at once. has_aux: func returns (result, aux)."""
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"jacrev: chunk_size is {chunk_size}: must be at least 1")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        c = Call(func, args, kwargs, argnums, has_aux, "jacrev")
        check_real(c.tensors, "jacrev", "tensor")
        rows, aux = row_by_row(c) if depth.vmap else rows_at_once(c, chunk_size)
        jacobian = c.flat.results_of([with_tensors(c.structure, row) for row in rows])
        return (jacobian, aux) if has_aux else jacobian

    return wrapper


def check_real(tensors: Sequence[Tensor], name: str, what: str) -> None:
    for i, t in enumerate(tensors):
        if not t.is_floating_point():
            raise DtypeError(f"{name}: {what} {i} is {t.dtype}: must be floating")


def rows_at_once(c: Call, chunk_size: int | None) -> tuple[list[list[Tensor]], Any]:
    """Returns the Jacobian matrices by the tensors for each result, and the auxiliary result."""

    def with_rest(*tensors: Tensor) -> Any:
        results = c.flat(tensors)
        check_tensors(c.flat.result, "jacrev", RuntimeError)
        return tuple(results[: c.flat.number]), results[c.flat.number :]

    outs, product, rest = recorded_vjp(with_rest, c.tensors, True, "jacrev")
    check_real(outs, "jacrev", "result")
    if sum(o.numel() for o in outs) == 1:
        products = product(tuple(ops.ones_like(o) for o in outs))
        columns = [p.unsqueeze(0) for p in products]
    else:
        columns = vmap(product, chunk_size=chunk_size)(tuple(unit_directions(outs)))
    numbers = [o.numel() for o in outs]
    parts = [column.split(numbers) for column in columns]
    rows = [
        [p[i].reshape((*o.shape, *t.shape)) for p, t in zip(parts, c.tensors)]
        for i, o in enumerate(outs)
    ]
    return rows, detached(with_tensors(c.flat.aux, [None] * len(outs) + list(rest)))


def row_by_row(c: Call) -> tuple[list[list[Tensor]], Any]:
    """The same inside vmap, by a backward pass for each element of the results."""
    aux: list[Any] = []

    def without_aux(tensors: tuple[Tensor, ...]) -> list[Tensor]:
        results = c.flat(tensors)
        check_tensors(c.flat.result, "jacrev", RuntimeError)
        check_real(results[: c.flat.number], "jacrev", "result")
        aux.append(detached(with_tensors(c.flat.aux, results)))
        return results[: c.flat.number]

    outs, n = (c_void_p * MAX_MATRICES)(), c_int64()
    call(
        "tt_jacobian",
        *Wrapped(without_aux).user(),
        convert.pointers(c.tensors),
        convert.length(c.tensors),
        outs,
        c_int64(MAX_MATRICES),
        byref(n),
    )
    matrices: Any = addresses(outs[: n.value])
    size = len(c.tensors)
    return [matrices[i : i + size] for i in range(0, len(matrices), size)], aux[0]


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Returns the same as jacrev, but in forward mode, by one call of func in vmap, over the
    directions of all elements of the arguments. It is faster unless the result has far fewer
    elements. randomness: as in vmap."""

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        c = Call(func, args, kwargs, argnums, has_aux, "jacfwd")
        check_differentiable(c.tensors, "jacfwd")

        def push(*directions: Tensor) -> Any:
            outs, products = run_jvp(c.flat, c.tensors, directions)
            pairs = list(zip(outs, products))[: c.flat.number]
            found = [ops.zeros_like(out) if p is None else p for out, p in pairs]
            return found, outs[c.flat.number :]

        directions = unit_directions(c.tensors)
        try:
            columns, rest = vmap(push, randomness=randomness)(*directions)
        except InvalidArgumentError as error:
            if WRITES_SHARED not in str(error):
                raise
            columns, rest = one_by_one(push, directions, randomness)
        results = []
        for column in columns:
            parts = column.movedim(0, -1).split([t.numel() for t in c.tensors], -1)
            sizes = tuple(column.shape[1:])
            row = [p.reshape(sizes + tuple(t.shape)) for p, t in zip(parts, c.tensors)]
            results.append(with_tensors(c.structure, row))
        jacobian = c.flat.results_of(results)
        if not has_aux:
            return jacobian
        outs = [None] * c.flat.number + [r.select(0, 0) for r in rest]
        return jacobian, detached(with_tensors(c.flat.aux, outs))

    return wrapper


def one_by_one(push: Callable[..., Any], directions: Sequence[Tensor], randomness: str) -> Any:
    """Returns what vmap(push)(*directions) does, for functions that vmap refuses: those that write
    into a tensor that they made without the arguments, as `y = tt.zeros(3); y[0] = x`."""
    if not directions[0].shape[0]:  # the arguments have no elements
        products, rest = push(*[d.new_zeros(d.shape[1:]) for d in directions])
        return [p.new_zeros((0, *p.shape)) for p in products], [r.unsqueeze(0) for r in rest]
    generator = thread_generator()
    start = generator.get_state()
    found = []
    for direction in zip(*directions):
        if randomness == "same":
            generator.set_state(start)
        found.append(push(*direction))
        if randomness == "error" and not generator.get_state().equal(start):
            raise InvalidArgumentError("jacfwd: the function draws random numbers: set randomness")
    products, rest = zip(*found)
    return [ops.stack(p) for p in zip(*products)], [ops.stack(r) for r in zip(*rest)]


def unit_directions(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Returns the directions of all elements of the tensors: for each tensor those of its own
    elements are the rows of an identity matrix, the others are 0."""
    total = sum(t.numel() for t in tensors)
    directions, start = [], 0
    for t in tensors:
        rows = ops.zeros(total, t.numel(), dtype=t.dtype, device=t.device)
        rows.diagonal(-start).fill_(1)
        directions.append(rows.reshape((total, *t.shape)))
        start += t.numel()
    return directions


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Returns a function that returns the Hessian matrices of func."""
    return jacfwd(jacrev(func, argnums), argnums)


# ---- vmap ----


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Vectorizes func, a function of one sample, over a batch of samples.

    in_dims: the batch dimension of the arguments: a number for all, or a structure of numbers like
    the arguments; None passes the whole argument to each sample. Keyword arguments are passed
    whole. out_dims: the batch dimension of the result. randomness: "error", "same" (for all
    samples) or "different". chunk_size: the maximum number of samples at once. An operator without
    a batching rule is called once per sample. func cannot read elements of its tensors, as item()
    does.
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"vmap: randomness is {randomness!r}: must be 'error', 'different' or 'same'"
        )
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size is {chunk_size}: must be at least 1")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        structure = without_tensors((args, kwargs), leaves, is_batchable)
        dims = dims_of(in_dims, args, kwargs)
        size = batch_size(dims, leaves)
        if chunk_size is None or size <= chunk_size:
            return Vmap(func, structure, leaves, dims, size, randomness).run(out_dims)
        parts = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            some = [narrowed(leaf, d, start, n) for leaf, d in zip(leaves, dims)]
            parts.append(Vmap(func, structure, some, dims, n, randomness).run(out_dims))
        return joined(parts, out_dims)

    return wrapper


def dims_of(in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int | None]:
    """Returns the batch dimension of each tensor or container."""
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap: in_dims is {in_dims!r}: must be an int or a tuple")
    if isinstance(in_dims, tuple) and len(in_dims) != len(args):
        raise ValueError(
            f"vmap: in_dims has length {len(in_dims)}: must be the number of positional arguments, "
            f"{len(args)}"
        )
    dims = broadcast(in_dims, args, "vmap: in_dims", is_batchable)
    return dims + broadcast(None, kwargs, "vmap: in_dims", is_batchable)


def batch_size(dims: Sequence[int | None], leaves: Sequence[Any]) -> int:
    """Returns the batch size. Raises ValueError if the tensors disagree."""
    sizes = set()
    for t, d in zip(leaves, dims):
        if d is None:
            continue
        if not isinstance(d, int) or isinstance(d, bool):
            raise ValueError(f"vmap: in_dims has {d!r}: must be integers or None")
        if not -t.ndim <= d < t.ndim:
            raise ValueError(f"vmap: in_dims has {d} for a tensor of shape {tuple(t.shape)}")
        sizes.add(t.shape[d])
    if not sizes:
        raise ValueError("vmap: at least one argument must have a dimension of samples")
    if len(sizes) > 1:
        raise ValueError(f"vmap: arguments have {sorted(sizes)} samples: must be equal")
    return sizes.pop()


def narrowed(leaf: Any, dim: int | None, start: int, size: int) -> Any:
    """Returns some samples of a tensor or container."""
    if dim is None:
        return leaf
    return leaf[(slice(None),) * (dim % leaf.ndim) + (slice(start, start + size),)]


class Vmap:
    """One call of vmap: func over samples of leaves, which are tensors and containers of them."""

    def __init__(
        self,
        func: Callable[..., Any],
        structure: Any,
        leaves: Sequence[Any],
        dims: Sequence[int | None],
        size: int,
        randomness: str,
    ) -> None:
        self.func, self.structure, self.size, self.randomness = func, structure, size, randomness
        self.leaves, self.dims = leaves, dims
        self.result: Any = None
        self.result_leaves: list[Any] = []

    def arguments(self) -> list[tuple[Tensor, int | None]]:
        """Returns the tensors that C batches, with the dimension of each."""
        found: list[tuple[Tensor, int | None]] = []
        for leaf, dim in zip(self.leaves, self.dims):
            if isinstance(leaf, Tensor):
                found.append((leaf, dim))
            elif dim is not None:
                found.extend(containers.parts(leaf, dim % leaf.ndim))
        return found

    def __call__(self, tensors: tuple[Tensor, ...]) -> list[Tensor]:
        """Calls func with batched tensors; called by C."""
        given = iter(tensors)
        leaves = []
        for leaf, dim in zip(self.leaves, self.dims):
            if isinstance(leaf, Tensor):
                leaves.append(next(given))
            elif dim is None:
                leaves.append(leaf)
            else:
                next_given = lambda t, d: next(given)
                leaves.append(containers.changed(leaf, next_given, in_dim=dim % leaf.ndim))
        args, kwargs = with_tensors(self.structure, leaves)
        outer = depth.randomness
        depth.vmap += 1
        depth.functions += 1
        depth.randomness = self.randomness
        try:
            self.result = without_tensors(
                self.func(*args, **kwargs), self.result_leaves, is_batchable
            )
            results: list[Tensor] = []
            for leaf in self.result_leaves:
                one = isinstance(leaf, Tensor)
                results += [leaf] if one else containers.results(leaf, self.size)
            return results
        finally:
            depth.vmap -= 1
            depth.functions -= 1
            depth.randomness = outer

    def run(self, out_dims: Any) -> Any:
        """Calls tt_vmap and returns the results with the samples in out_dims."""
        arguments = self.arguments()
        tensors = [t for t, _ in arguments]
        numbers = [NOT_BATCHED if d is None else d for _, d in arguments]
        held: list[Any] = []
        dims = convert.list_field(numbers, "vmap", "in_dims", held)
        options = VMAP_OPTIONS(0b101, *dims, 0, 0, RANDOMNESS[self.randomness])
        outs, n = (c_void_p * MAX_RESULTS)(), c_int64()
        call(
            "tt_vmap",
            *Wrapped(self).user(),
            convert.pointers(tensors),
            convert.length(tensors),
            options,
            outs,
            c_int64(MAX_RESULTS),
            byref(n),
        )
        check_tensors(self.result, "vmap", ValueError)
        results = iter(addresses(outs[: n.value]))
        if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(self.result, Place):
            out_dims = out_dims[0]
        structure = with_tensors(self.result, self.result_leaves)
        places = broadcast(out_dims, structure, "vmap: out_dims", is_batchable)
        leaves = [self.placed(leaf, d, results) for leaf, d in zip(self.result_leaves, places)]
        return with_tensors(self.result, leaves)

    def placed(self, leaf: Any, dim: int | None, results: Iterator[Any]) -> Any:
        """Returns a leaf of func's result with its samples in dim, or without them."""
        if isinstance(leaf, Tensor):
            return with_samples_in(next(results), dim)
        whole = 0 if dim is None else dim % (leaf.ndim + 1)
        put = lambda t, d: with_samples_in(next(results), d)
        full = containers.changed(leaf, put, out_dim=whole, batch_size=self.size)
        return full[0] if dim is None else full


def with_samples_in(t: Tensor, dim: int | None) -> Tensor:
    """Moves the samples of a result from dimension 0; None takes the one that all samples have."""
    if dim is None:
        if t.stride(0) and t.shape[0] > 1 and t.numel():  # C expands what samples share
            raise ValueError("vmap: out_dims is None for a result that differs between the samples")
        return t.select(0, 0)
    if not isinstance(dim, int):
        raise ValueError(f"vmap: out_dims has {dim!r}: must be integers or None")
    return t.movedim(0, int(dim)) if dim else t


def joined(parts: Sequence[Any], out_dims: Any) -> Any:
    """Joins the results of chunks."""
    lists: list[list[Any]] = []
    structure: Any = None
    for part in parts:
        leaves: list[Any] = []
        structure = without_tensors(part, leaves, is_batchable)
        lists.append(leaves)
    places = broadcast(out_dims, parts[0], "vmap: out_dims", is_batchable)
    columns = zip(places, *lists)
    return with_tensors(structure, [c[0] if d is None else tt.cat(list(c), d) for d, *c in columns])


# ---- modules ----


def functional_call(
    module: tt.nn.Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other tensors in place of its parameters and buffers.

    parameter_and_buffer_dicts: tensors by name, as in named_parameters(); or a tuple of such dicts.
    args: the argument, or a tuple of them. tie_weights: a tensor replaces a shared parameter under
        all its names. strict: all parameters and buffers must be given. The module itself is
        unchanged, except for its running statistics.
    """
    from .nn.utils import stateless

    dicts = parameter_and_buffer_dicts
    if not isinstance(dicts, (dict, list, tuple)):
        raise ValueError(
            "functional_call: parameter_and_buffer_dicts must be a dict or a tuple of dicts, not "
            f"{type(dicts).__name__}"
        )
    given: dict[str, Tensor] = {}
    for part in [dicts] if isinstance(dicts, dict) else dicts:
        if not isinstance(part, dict):
            raise ValueError(
                f"functional_call: parameter_and_buffer_dicts has {class_name(part)}: must be dicts"
            )
        for name, t in part.items():
            if name in given:
                raise ValueError(f"functional_call: {name} is in two dicts")
            given[name] = t
    return stateless.functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models: Sequence[tt.nn.Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the parameters and the buffers of models of one class, stacked by name, for vmap over
    functional_call."""
    if not models:
        raise RuntimeError("stack_module_state: there are no models")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: all models must be of the same class")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: all models must be in the same training mode")
    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    stacked: dict[str, Any] = {}
    for name in params[0]:
        parts = [p[name] for p in params]
        stack = ops.stack([p.detach() for p in parts])
        stacked[name] = stack.requires_grad_(parts[0].requires_grad)
    return stacked, {name: ops.stack([b[name] for b in buffers]) for name in buffers[0]}


def replace_all_batch_norm_modules_(root: tt.nn.Module) -> tt.nn.Module:
    """Removes the running statistics of all batch normalizations, in place: they use those of each
    batch then. Returns root."""
    for m in root.modules():
        if type(m).__name__.startswith(("BatchNorm", "SyncBatchNorm")):
            m.running_mean = m.running_var = m.num_batches_tracked = None
            m.track_running_stats = False
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Returns func: transforms of tt take functions that write in place."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(f"functionalize: remove is {remove!r}: must be 'mutations'")
    return func


def __dir__() -> list[str]:
    return __all__
