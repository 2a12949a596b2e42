"""torch.compile and torch.compiler: records functions once and replays them.

A record holds the operators of one call, as kernel launches in memory of its own. Replays run no
Python code: they do not print or change counters and lists. A function that reads elements of
tensors (`if loss.item() < 1`) is not recorded and runs unchanged. A record is valid for tensors of
the same shapes, strides, dtypes and devices, equal values of other arguments and of closed-over and
global numbers, the same closed-over and global objects, and modules with the same attributes,
parameters, buffers and children. A function that sets one of these, such as a global that counts
its calls, runs unchanged: two calls of it are recorded to find that out. Attributes of other
objects, items of containers, and what is written into the dicts of a module are not watched: call
`tt.compiler.reset()` after a change.
"""
from __future__ import annotations

import weakref
from ctypes import byref, c_int64, c_void_p, create_string_buffer, string_at
from functools import update_wrapper
from struct import Struct
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Callable, Iterator

from . import _convert as convert
from ._lib import Handle, call, fail, finalizer, lib, local, quick
from ._position_views import without_copies
from ._positions import EXACT, LOOSE, Positions
from ._tensor_facts import TensorHandle
from ._tensor import Tensor, from_address, on_exchange
from ._tree import Place, mapped, with_tensors, without_tensors

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]
MODES = "default lite reduce-overhead max-autotune max-autotune-no-cudagraphs".split()
STANCES = "default eager_then_compile eager_on_recompile fail_on_recompile force_eager".split()
MAX_RESULTS = 1024  # of a function in C
LIMIT = 8  # records of one function, and structures of its arguments
SETTING_CALLS = 2  # recorded calls in a row that set what they read: none is recorded then
OPTIONS = Struct("Qqii").pack  # tt_compile_opts
INFO = Struct("qqqP")  # tt_compiled_info
NOTES = {"_single", "_held", "_watches"}  # of layers
HOOKS = {  # dicts of modules
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_state_hooks",
}
PLAIN = (int, float, complex, str, bytes, bool, type(None))  # watched by value
NUMBERS = [c_int64.from_param(n) for n in range(16)]
ONE, TWO = NUMBERS[1:3]
MISSED: Any = object()  # what a replay returns if it would not be the function's
compiled_call = lib.tt_compiled_call
new = object.__new__
recording = 0  # how many functions are being recorded
every: weakref.WeakSet[Compiled] = weakref.WeakSet()


class CompiledHandle(Handle):
    """Owns a tt_compiled."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_compiled_release)


class Entry:
    """The records for one structure of arguments.

    structure: the arguments with places for their tensors. result: the structure of the function's
    result; number: the number of its tensors, None before the first call; has_history: whether one
    of them required a gradient. owner: returns the Compiled whose entry it is, as long as
    that exists. plain: the reason why the function itself runs, or None.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        structure: Any,
        held: Any,
        dynamic: bool = False,
        owner: Callable[[], Compiled | None] = lambda: None,
    ) -> None:
        self.fn, self.structure, self.held = fn, structure, held
        self.result: Any = None
        self.number: int | None = None
        self.has_history = False
        self.plain: str | None = None
        self.handle = CompiledHandle()
        self.n = c_int64()
        self.outs, self.cap, self.n_address = (
            c_void_p * MAX_RESULTS,
            c_int64(MAX_RESULTS),
            byref(self.n),
        )
        self.single = False  # the result is one tensor
        self.owner = owner
        self.changed: list[Any] = []  # the result of the running call, if it has another structure
        self.with_positions: dict[Any, int] = {}  # geometry of arguments -> layout of copies
        self.again = False  # the next call can be recorded
        from .func import Flat

        entry = weakref.ref(
            self
        )  # C keeps the function, and must not keep the entry, which keeps C's

        def traced(*args: Any, **kwargs: Any) -> Any:
            owner = entry()
            assert owner is not None
            return owner.traced(*args, **kwargs)

        flat = Flat(traced, structure, transforms=False)
        call("tt_compile", *flat.user(), OPTIONS(3, LIMIT, dynamic, 0), byref(self.handle))

    def traced(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, from C."""
        global recording
        owner = self.owner()
        is_read = owner is not None and owner.reads((args, kwargs))
        if is_read and self.info()[3] is None:  # the capture that is on is this call's own
            lib.tt_capture_drop(local.ctx)  # a record would take the name for the argument
        geometry = geometry_of((args, kwargs))
        layout = None if is_read else self.with_positions.get(geometry)
        recording += 1
        try:
            with Positions(layout is not None, layout or LOOSE) as positions:
                result = self.fn(*args, **kwargs)
                positions.sync()
        finally:
            recording -= 1
        tensors: list[Tensor] = []
        structure, all_views = without_copies(result, positions, tensors)
        if positions.tensors and not is_read and self.note_positions(positions, tensors, geometry):
            self.changed.append(result)
            return result
        if positions.failure:
            self.plain = positions.failure
            raise RuntimeError(
                f"compile: {self.plain}: the results of this call are wrong, those of later calls "
                "are not"
            )
        if positions.copies:
            result = tensors
        if not all_views and layout == LOOSE:
            self.record_again(geometry, EXACT)
        elif not all_views:
            self.plain = "it returns a view of x[i], with i in a tensor, in another form"
        if self.number is not None and frozen(structure) != frozen(self.result):
            self.plain = "its results have another structure in another call"
            self.changed.append(with_tensors(structure, tensors))
            if owner is not None:
                owner.last = None
            return result
        self.result = structure
        others: list[Any] = []

        def note(x: Any) -> None:
            if not isinstance(x, Place) and x is not None:
                others.append(x)

        mapped(self.result, note)
        if others:
            self.plain = f"it returns a {type(others[0]).__name__}, which a replay would repeat"
        self.number = len(tensors)
        self.has_history = any(x.requires_grad for x in tensors)
        return result

    def note_positions(self, positions: Positions, results: list[Tensor], geometry: Any) -> bool:
        """Takes note of x[i] with i in a tensor, in a call that reads i, which ends its recording.
        Returns whether the next call for such arguments is recorded, with copies in place of the
        views."""
        if len(self.with_positions) >= LIMIT or any(x.requires_grad for x in results):
            return False
        why_not = positions.why_not()
        if why_not:
            self.plain = why_not
            return False
        is_seen = positions.are_written() or positions.are_in(results)
        self.record_again(geometry, EXACT if is_seen else LOOSE)
        return True

    def record_again(self, geometry: Any, layout: int) -> None:
        """Drops the records before the next call. layout: of copies in place of views."""
        self.with_positions[geometry] = layout
        self.again = True
        owner = self.owner()
        if owner is not None:
            owner.last = None

    def run(self, tensors: Any) -> Any:
        if not self.single:
            return self.run_any(tensors)
        handle = TensorHandle()
        n = len(tensors)
        pointers = b"".join([x._as_parameter_ for x in tensors])
        failed = compiled_call(
            local.ctx, self.handle, pointers, NUMBERS[n], byref(handle), ONE, self.n_address
        )
        if self.changed:
            return self.changed.pop()
        if failed:
            fail()
        result = new(Tensor)
        result._as_parameter_ = handle
        return result

    def replay(self, seen: Seen) -> Callable[[Any], Any]:
        """Returns a function of a tuple of arguments: the result, or MISSED if what was seen does
        not hold."""
        if self.single and seen.n == 2:
            return self.replay_of_two(seen)
        holds, run = seen.holds, self.run
        return lambda args: run(args) if holds(args) else MISSED

    def replay_of_two(self, seen: Seen) -> Callable[[Any], Any]:
        """Returns the same for an input and its target, and one result: Seen.holds and run as one
        function whose names are its own, in 0.8 of their time."""
        compiled, n_address, changed = self.handle, self.n_address, self.changed
        cells, mode, modes, names = seen.cells, seen.mode, seen.modes, seen.names

        def replay(args: Any) -> Any:
            if modes[0] is not mode or len(args) != 2:
                return MISSED
            x, y = args
            if type(x) is not Tensor or type(y) is not Tensor:
                return MISSED
            for get, name, value in names:
                if get(name) is not value:
                    return MISSED
            for cell, value in cells:
                try:
                    if cell.cell_contents is not value:
                        return MISSED
                except ValueError:  # not bound any more
                    return MISSED
            pointers = b"".join((x._as_parameter_, y._as_parameter_))  # faster than an array
            handle = TensorHandle()
            failed = compiled_call(
                local.ctx, compiled, pointers, TWO, byref(handle), ONE, n_address
            )
            if changed:
                return changed.pop()
            if failed:
                fail()
            result = new(Tensor)
            result._as_parameter_ = handle
            return result

        return replay

    def run_any(self, tensors: Any) -> Any:
        """Calls C for any number of results."""
        outs = self.outs()
        failed = compiled_call(
            local.ctx,
            self.handle,
            convert.pointers(tensors),
            convert.length(tensors),
            outs,
            self.cap,
            self.n_address,
        )
        if self.changed:
            if not failed:
                for address in outs[: self.n.value]:
                    from_address(address or 0)  # and releases it
            return self.changed.pop()
        if failed:
            fail()
        number = self.number
        if number is not None and number != len(outs):
            self.outs, self.cap = c_void_p * number, c_int64(number)
        if type(self.result) is Place:
            self.single = len(tensors) < len(NUMBERS)
            return from_address(outs[0] or 0)
        return with_tensors(self.result, [from_address(outs[i] or 0) for i in range(number or 0)])

    def info(self) -> tuple[int, int, int, str | None]:
        """Returns the numbers of records, replays and plain runs, and the reason for the last plain
        run."""
        out = create_string_buffer(INFO.size)
        call("tt_compiled_get_info", self.handle, out)
        records, replays, runs, reason = INFO.unpack(out.raw)
        return records, replays, runs, string_at(reason).decode() if reason else None


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yields the code objects of a function and of its nested functions."""
    waiting = [code]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [c for c in code.co_consts if isinstance(c, CodeType)]


class Seen:
    """The objects that names had, and `modes` of modules, in a call of n arguments."""

    __slots__ = ("cells", "mode", "modes", "n", "names")

    def __init__(self, n: int, cells: Any, names: Any, modes: list[object], mode: object) -> None:
        self.n, self.cells, self.names, self.modes, self.mode = n, cells, names, modes, mode

    def holds(self, args: Any) -> bool:
        """Returns whether there are n arguments, all tensors, every name has the same object, and
        no module's attribute has been set."""
        if self.modes[0] is not self.mode or len(args) != self.n:
            return False
        for x in args:
            if type(x) is not Tensor:
                return False
        for get, name, x in self.names:
            if get(name) is not x:
                return False
        for cell, x in self.cells:
            try:
                if cell.cell_contents is not x:
                    return False
            except ValueError:  # not bound any more
                return False
        return True


class Watched:
    """The closed-over and global names that a function, and the Python functions it names, read."""

    def __init__(self, fn: Any) -> None:
        self.cells: list[Any] = []
        self.names: list[tuple[dict[str, Any], str]] = []
        self.roots: list[Any] = []
        self.modes: list[object] = [None]
        self.of_modules: list[Any] = []  # the state of modules
        self.mode: object = Watched  # modes[0] at that time; at first no such object
        seen: set[int] = set()
        waiting = [fn]
        while waiting and len(seen) < 64:
            f = waiting.pop()
            if isinstance(f, MethodType):
                self.add_module(f.__self__)
                f = f.__func__
            if not isinstance(f, FunctionType) or id(f) in seen:
                self.add_module(f)
                continue
            seen.add(id(f))
            waiting += self.read(f)

    def add_module(self, x: Any) -> None:
        from .nn.module import Module, modes

        if isinstance(x, Module):
            self.roots.append(x)
            self.modes = modes

    def read(self, f: FunctionType) -> list[Any]:
        """Adds the names that f reads. Returns the functions and objects among their values."""
        if f.__module__ and f.__module__.partition(".")[0] == __name__.partition(".")[0]:
            return []  # of tt: it has no names that change
        objects = []
        for cell in f.__closure__ or ():
            self.cells.append(cell)
            try:
                objects.append(cell.cell_contents)
            except ValueError:  # not yet bound
                pass
        for code in codes_of(f.__code__):
            for name in code.co_names:
                x = f.__globals__.get(name, Watched)
                if x is not Watched and not isinstance(x, (ModuleType, type)):
                    self.names.append((f.__globals__, name))
                    objects.append(x)
        return objects

    def seen(self, n: int, mode: object) -> Seen:
        """Returns what the names are now, for calls of n arguments. mode: what self.modes had
        before the call."""
        return Seen(
            n,
            [(cell, cell.cell_contents) for cell in self.cells],
            [(space.get, name, space.get(name)) for space, name in self.names],
            self.modes,
            mode,
        )

    def state(self, held: list[Any] | None = None) -> tuple[Any, ...]:
        """Returns the state that must be equal for a record. That of modules is computed anew after
        an attribute has been set, and for held, which receives the objects compared by identity.
        """
        values = [cell.cell_contents for cell in self.cells]
        values += [space.get(name) for space, name in self.names]
        if held is not None:
            held += values
        parts = [(type(x), x) if isinstance(x, PLAIN) else identity(x, held) for x in values]
        if held is not None or self.mode is not self.modes[0]:
            self.mode, self.of_modules = self.modes[0], []
            for m in {id(m): m for root in self.roots for m in root.modules()}.values():
                self.add_attributes(m, self.of_modules, held)
        return (*parts, *self.of_modules)

    def is_given(self, arguments: Any) -> bool:
        """Returns whether a tensor among the arguments is in the memory of one that a name has, or
        a module."""
        given: list[Any] = []
        without_tensors(arguments, given)
        held: list[Any] = []
        self.state(held)
        memories = {memory_of(x) for x in held if isinstance(x, Tensor)} - {0}
        return any(memory_of(x) in memories for x in given)

    @staticmethod
    def add_attributes(module: Any, parts: list[Any], held: list[Any] | None) -> None:
        """Adds the attributes, hooks, parameters, buffers and children of a module but for its own
        notes, and for attributes that hooks compute from parameters, such as weight from
        weight_orig or weight_g."""
        computed = {name.rpartition("_")[0] for name in module._parameters} | NOTES
        for name, x in module.__dict__.items():
            if name in computed:
                continue
            if name in HOOKS:
                parts.append((name, tuple(x)))  # the numbers of hooks
                continue
            parts.append((name, type(x), x) if isinstance(x, PLAIN) else (name, identity(x, held)))
            if held is not None:
                held.append(x)
        for group in (module._parameters, module._buffers, module._modules):
            parts += [(name, identity(x, held)) for name, x in group.items()]
            if held is not None:
                held += group.values()


def identity(x: Any, held: list[Any] | None) -> Any:
    """Returns what differs for another object, and for a tensor that has become another one. held
    receives what must live as long as the result."""
    if not isinstance(x, Tensor):
        return id(x)
    handle = getattr(x, "_as_parameter_", None)
    if held is not None:
        held.append(handle)
    return id(x), id(handle)


def look_again() -> None:
    """Lets compiled functions compute their state anew: a tensor has become another one."""
    for compiled in list(every):
        compiled.last = None
        if compiled.watched is not None:
            compiled.watched.mode = Watched


on_exchange.append(look_again)


def memory_of(x: Tensor) -> int:
    """Returns the address of a tensor's memory, or 0."""
    start = x.data_ptr()
    return start and start - x.storage_offset() * x.element_size()


def geometry_of(arguments: Any) -> Any:
    """Returns the shapes and dtypes of the tensors among the arguments, and for each of them the
    position of the first one that has the same memory."""
    given: list[Any] = []
    without_tensors(arguments, given)
    first: dict[int, int] = {}  # memory -> position
    return tuple(
        (tuple(x.shape), x.dtype, first.setdefault(memory_of(x), i)) for i, x in enumerate(given)
    )


def frozen(structure: Any) -> Any:
    """Returns a structure of arguments as a key, equal for arguments that can use the same
    record."""
    if isinstance(structure, (tuple, list)):
        return (type(structure), *map(frozen, structure))
    if isinstance(structure, dict):
        return (dict, *((k, frozen(v)) for k, v in structure.items()))
    if isinstance(structure, Place):
        return structure.identity()
    return (type(structure), structure)


class Compiled:
    """A function that is recorded once for similar arguments, and replayed."""

    def __init__(
        self, fn: Callable[..., Any], fullgraph: bool = False, dynamic: bool = False
    ) -> None:
        self.fn, self.fullgraph, self.dynamic = fn, fullgraph, dynamic
        self.entries: dict[Any, Entry] = {}
        self.watched: Watched | None = None
        self.last: Callable[[Any], Any] | None = None  # Entry.replay of the last call
        self.n_setting = 0  # the last recorded calls that set what they read
        update_wrapper(self, fn)
        every.add(self)

    def __reduce__(self) -> Any:
        """A copy has no records."""
        return Compiled, (self.fn, self.fullgraph, self.dynamic)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        bound = Compiled(self.fn.__get__(instance, owner), self.fullgraph, self.dynamic)
        name = getattr(self.fn, "__name__", "")
        if hasattr(instance, "__dict__") and getattr(type(instance), name, None) is self:
            instance.__dict__.setdefault(name, bound)
        return bound

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if recording:
            return self.fn(*args, **kwargs)
        last = self.last
        if last is not None and not kwargs:
            result = last(args)
            if result is not MISSED:
                return result
        return self.run_entry(args, kwargs)

    def run_entry(self, args: Any, kwargs: Any) -> Any:
        """Calls the entry for the arguments and the names that are watched."""
        if set_stance.current == "force_eager":
            return self.fn(*args, **kwargs)
        if self.watched is None:
            self.watched = Watched(self.fn)
        mode = self.watched.modes[0]
        tensors: Any = args
        structure: Any = None
        if kwargs or not all(type(x) is Tensor for x in args):
            tensors = []
            structure = without_tensors((args, kwargs), tensors)
        try:
            key = (len(args) if structure is None else frozen(structure), self.watched.state())
            entry = self.entries.get(key)
        except (TypeError, ValueError):  # not hashable, not yet bound
            return self.fn(*args, **kwargs)
        if entry is None:
            if len(self.entries) >= LIMIT or self.n_setting >= SETTING_CALLS:
                return self.fn(*args, **kwargs)
            entry = self.added(key, args, kwargs)
        if entry.plain:
            return self.fn(*args, **kwargs)
        first = entry.number is None or entry.again
        if entry.again:
            entry.again, entry.number, entry.single = False, None, False
            call("tt_compiled_reset", entry.handle)
        result = entry.run(tensors)
        if structure is None and not entry.plain and not entry.again:
            self.last = entry.replay(self.watched.seen(len(args), mode))
        if first and self.fullgraph and not entry.again:
            reason = entry.plain or entry.info()[3]
            if reason and not entry.has_history:  # PyTorch records a call with history
                raise RuntimeError(f"compile: fullgraph is set, but {reason}")
        if first and not entry.plain:
            self.n_setting += 1
            if self.watched.state([]) == key[1]:
                self.n_setting = 0
            else:
                entry.plain = "it sets what it reads: an attribute of a module, or a name"
                self.last = None
        return result

    def added(self, key: Any, args: Any, kwargs: Any) -> Entry:
        held: list[Any] = []
        assert self.watched is not None
        self.watched.state(held)
        structure = without_tensors((args, kwargs), [])
        owner = weakref.ref(self)
        entry = self.entries[key] = Entry(self.fn, structure, held, self.dynamic, owner)
        return entry

    def reads(self, arguments: Any) -> bool:
        """Returns whether the function has a name for the memory of an argument, too."""
        return self.watched is not None and self.watched.is_given(arguments)

    def reset(self) -> None:
        """Drops the records."""
        self.entries.clear()
        self.watched = self.last = None
        self.n_setting = 0


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Returns a function, or a module, whose calls are recorded once and replayed. Without model,
    returns a decorator.

    A model is recorded with its gradients; a whole training step, with backward and the optimizer's
    step, gains more. fullgraph: raises RuntimeError if the first call cannot be recorded, unless
    its result requires a gradient. dynamic: True makes records for further sizes of one dimension,
    such as the batch, from those of three sizes, or of two dimensions from five, without calling
    the function, which must not branch on the sizes. disable: returns model unchanged. The other
    arguments are ignored.
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: give mode or options, not both")
    if mode is not None and mode not in MODES:
        raise RuntimeError(
            f"compile: unrecognized mode {mode!r}: must be one of {', '.join(MODES)}"
        )
    if model is None:
        return lambda fn: compile(fn, fullgraph=fullgraph, dynamic=dynamic, disable=disable)
    if not callable(model):
        raise RuntimeError(f"compile: model is {type(model).__name__}: must be callable")
    if disable:
        return model
    from .nn.module import Module

    if isinstance(model, Module):
        return optimized_module()(model, fullgraph, bool(dynamic))
    return Compiled(model, fullgraph, bool(dynamic))


def optimized_module() -> Any:
    """Returns the class OptimizedModule, which needs tt.nn."""
    from .nn._compiled import OptimizedModule

    return OptimizedModule


def itself(fn: Any) -> Any:
    """Returns fn."""
    return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns fn unchanged. Without fn, returns a decorator that does the same."""
    return itself if fn is None else fn


allow_in_graph = assume_constant_result = itself


def is_compiling() -> bool:
    """Returns whether a function is being recorded."""
    return recording > 0


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Returns whether a call is being captured, as by tt.export."""
    from . import _graph

    return _graph.exporting > 0


def reset() -> None:
    """Drops all records; later calls make new ones."""
    for compiled in list(every):
        compiled.reset()


def cudagraph_mark_step_begin() -> None:
    """Does nothing: results of compiled functions have their own memory."""


class set_stance:
    """Lets compiled functions run unchanged from here on ("force_eager"), or be recorded and
    replayed again ("default"); as a context, until its end. Other stances are as "default"."""

    current = "default"

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, **options: Any
    ) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"set_stance: {stance!r}: must be one of {', '.join(STANCES)}")
        self.before = set_stance.current
        self.change(stance)

    @staticmethod
    def change(stance: str) -> None:
        set_stance.current = stance
        for compiled in every:
            compiled.last = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        self.change(self.before)


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Returns ["inductor"], the name that callers of torch.compile pass. tt has a single
    backend."""
    return ["inductor"]


def __dir__() -> list[str]:
    return __all__
