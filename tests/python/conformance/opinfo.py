"""tt beside PyTorch on the samples of PyTorch's own tests (OpInfo), in one process: values,
gradients and second gradients on dense and strided inputs of every dtype, methods, in-place forms,
errors. More than the recorded cases, and for new operators before there are any.

    python opinfo.py [NAME…]      names of OpInfo, default: every one that tt has. Needs torch,
    expecttest, numpy

An element must be near PyTorch's, by the rule of ttcase.py. What differs is printed, at most twice
of a kind; exit 1 if anything does. Random operators, and factors that are unique up to signs only,
are compared by shape.
"""
import json
import random
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from run import ALSO_GOOD
from ttcase import Missing, Subject, compare_arrays, load

CASES = Path(__file__).resolve().parent / "cases/ops"
DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
]
WIDER = {
    torch.float32: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float16: torch.float64,
    torch.complex64: torch.complex128,
}
SAMPLES = 40  # of an operator, a dtype and a kind of sample
subject = Subject()
tt = subject.module


class Unlike(Exception):
    """tt has nothing of this kind."""


# ---- trees of arguments ----


def mapped(f, x):
    """f of every leaf of lists, tuples and dicts."""
    if isinstance(x, dict):
        return {k: mapped(f, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        return (
            type(x)(*(mapped(f, v) for v in x))
            if hasattr(x, "_fields")
            else type(x)(mapped(f, v) for v in x)
        )
    return f(x)


def tensors(x, kind):
    if isinstance(x, kind):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    if not isinstance(x, (list, tuple)):
        return []
    return [t for child in x for t in tensors(child, kind)]


def on_tensors(f):
    return lambda tree: mapped(lambda x: f(x) if isinstance(x, torch.Tensor) else x, tree)


fresh = on_tensors(lambda t: t.detach().requires_grad_(t.requires_grad))
wide = on_tensors(
    lambda t: t.detach().to(WIDER.get(t.dtype, t.dtype), copy=True).requires_grad_(t.requires_grad)
)


@on_tensors
def strided(t):
    """The same values with gaps between them, half of the time with the dimensions in another
    order."""
    if t.ndim == 0 or t.numel() == 0:
        return t
    shape = [*t.shape[:-1], 2 * t.shape[-1]]
    gaps = torch.full(shape, 1 if not t.is_floating_point() else float("nan"), dtype=t.dtype)[
        ..., ::2
    ]
    if t.ndim > 1 and random.random() < 0.5:
        gaps = torch.empty_like(
            t.detach().transpose(0, -1), memory_format=torch.contiguous_format
        ).transpose(0, -1)
    return gaps.copy_(t.detach()).requires_grad_(t.requires_grad)


def leaf_for_tt(x):
    if isinstance(x, torch.Tensor):
        flat = x.detach().resolve_conj().resolve_neg()
        if flat.dtype not in DTYPES:
            raise Unlike
        dtype = getattr(tt, str(flat.dtype)[6:])
        if not flat.numel():
            return tt.empty(tuple(flat.shape), dtype=dtype).requires_grad_(x.requires_grad)
        raw = torch.tensor([], dtype=torch.uint8).set_(flat.untyped_storage()).numpy().tobytes()
        made = tt.frombuffer(bytearray(raw), dtype=dtype).as_strided(
            tuple(flat.shape), flat.stride(), flat.storage_offset()
        )
        return made.requires_grad_() if x.requires_grad else made
    if (
        isinstance(x, (torch.layout, torch.Generator))
        or isinstance(x, torch.dtype)
        and x not in DTYPES
    ):
        raise Unlike
    if isinstance(x, (torch.dtype, torch.memory_format)):
        return getattr(tt, str(x)[6:])
    if isinstance(x, torch.device):
        return str(x)
    return tuple(x) if isinstance(x, torch.Size) else x


# ---- comparison ----


def array(t):
    t = t.detach().resolve_conj().resolve_neg()
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy(force=True)


def difference(got, want, exact, shape_only=False):
    """None, or how got is not as want; exact: the same in float64, or None."""
    if isinstance(want, torch.Tensor):
        if (
            not isinstance(got, tt.Tensor)
            or subject.dtype(got) != str(want.dtype)[6:]
            or tuple(got.shape) != tuple(want.shape)
        ):
            return f"is {getattr(got, 'dtype', type(got))} {list(getattr(got, 'shape', ()))}, must be {want.dtype} {list(want.shape)}"
        if shape_only:
            return None
        reference = (
            array(exact) if isinstance(exact, torch.Tensor) and exact.shape == want.shape else None
        )
        with np.errstate(all="ignore"):
            return compare_arrays(subject.numpy(got), array(want), reference, subject.dtype(got))
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"is {type(got).__name__}, must be a sequence of {len(want)}"
        refs = exact if isinstance(exact, (list, tuple)) else [None] * len(want)
        free = [
            shape_only or hasattr(want, "indices") and x is want.indices for x in want
        ]  # indices may be those of equal elements
        return next((r for item in zip(got, want, refs, free) if (r := difference(*item))), None)
    if want is None:
        return None if got is None or not np.any(subject.numpy(got)) else "must be None or zero"
    same = (
        shape_only
        or str(got).replace("tt.", "torch.") == str(want)
        or got == want
        or abs(got - want) <= 1e-7 + 1e-6 * abs(want)
    )
    return None if same else f"is {got!r}, must be {want!r}"


class Derived:
    """A call, and where `order` says so its first and second gradients, with cotangents that depend
    on shapes alone."""

    def __init__(self, lib, kind, function, args, kwargs):
        self.lib, self.kind = lib, kind
        self.out = function(*args, **kwargs)
        self.inputs = [t for t in tensors([args, kwargs], kind) if t.requires_grad]

    def gradients(self, of, cotangents, again):
        return self.lib.autograd.grad(
            of, self.inputs, cotangents, create_graph=again, allow_unused=True
        )


def cotangents(outs):
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(t.shape, dtype=torch.float64, generator=generator).to(t.dtype) for t in outs
    ]


def stages(call, narrow, converted):
    """Yields the result, its gradients, and theirs; narrow: PyTorch's own call, whose shapes and
    dtypes the cotangents have."""
    yield call.out
    picked = [i for i, t in enumerate(tensors(narrow.out, torch.Tensor)) if t.requires_grad]
    if not picked or not narrow.inputs:
        return
    outs = tensors(narrow.out, torch.Tensor)
    first = cotangents([outs[i] for i in picked])
    if not hasattr(narrow, "first"):
        narrow.first = narrow.gradients([outs[i] for i in picked], first, True)
    mine = [tensors(call.out, call.kind)[i] for i in picked]
    grads = narrow.first if call is narrow else call.gradients(mine, converted(first), True)
    yield grads
    again = [i for i, g in enumerate(narrow.first) if g is not None and g.requires_grad]
    if again:
        second = cotangents([narrow.first[i] for i in again])
        yield call.gradients([grads[i] for i in again], converted(second), False)


class Report:
    def __init__(self):
        self.kinds, self.counts = Counter(), Counter()

    def add(self, name, what, args, kwargs, reason):
        self.counts["differ" if reason else "same"] += 1
        if (
            reason
            and self.kinds.update([(name, what, reason[:40])]) is None
            and self.kinds[name, what, reason[:40]] <= 2
        ):
            shown = on_tensors(lambda t: f"{str(t.dtype)[6:]}{list(t.shape)}")([args, kwargs])
            print(f"{name} [{what}] {shown}: {reason}"[:500], flush=True)


def compare_call(report, name, what, args, kwargs, shape_only):
    args, kwargs = fresh(args), fresh(kwargs)
    wider = wide([args, kwargs])  # before a call in place changes them
    try:
        theirs = mapped(leaf_for_tt, [args, kwargs])
    except Unlike:
        return
    try:
        want = Derived(torch, torch.Tensor, torch_callable(name), args, kwargs)
        wanted = list(stages(want, want, list))
    except Exception:
        return  # PyTorch refuses it, or has no second gradient
    try:
        exact = Derived(torch, torch.Tensor, torch_callable(name), *wider)
        references = list(stages(exact, want, wide))
    except Exception:
        references = []
    references += [None] * (len(wanted) - len(references))
    order = -1
    try:
        got = Derived(tt, tt.Tensor, subject.resolve(name), *theirs)
        for order, result in enumerate(stages(got, want, lambda c: mapped(leaf_for_tt, c))):
            if reason := difference(result, wanted[order], references[order], shape_only):
                return report.add(name, f"{what}, order {order}", args, kwargs, reason)
            if shape_only:
                break
    except Exception as e:
        return report.add(
            name, f"{what}, order {order + 1}", args, kwargs, f"{type(e).__name__}: {e}"
        )
    report.add(name, what, args, kwargs, None)


def compare_error(report, name, args, kwargs):
    try:
        theirs = mapped(leaf_for_tt, [args, kwargs])
        torch_callable(name)(*args, **kwargs)
    except Unlike:
        return
    except Exception as e:
        want = type(e).__name__
    else:
        return
    try:
        subject.resolve(name)(*theirs[0], **theirs[1])
        reason = f"does not raise, must raise {want}"
    except Exception as e:
        fine = want in [c.__name__ for c in type(e).__mro__] or isinstance(
            e, ALSO_GOOD.get(want, ())
        )
        reason = None if fine else f"raises {type(e).__name__} ({e}), must raise {want}"
    report.add(name, "error", args, kwargs, reason)


# ---- operators ----


def torch_callable(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found if callable(found) else found.__get__


def compare_samples(report, op, names, kind, dtype, shape_only):
    differentiable = (
        op.supports_autograd
        and (dtype.is_floating_point or dtype.is_complex)
        and dtype != torch.float16
    )
    try:
        samples = list(getattr(op, kind + "_inputs")("cpu", dtype, requires_grad=differentiable))
    except Exception:
        return
    for s in samples if len(samples) <= SAMPLES else random.sample(samples, SAMPLES):
        args, kwargs, what = [s.input, *s.args], dict(s.kwargs), f"{kind} {str(dtype)[6:]}"
        compare_call(report, names[0], what, args, kwargs, shape_only)
        if kind == "sample":
            compare_call(
                report, names[0], "strided " + what, strided(args), strided(kwargs), shape_only
            )
            for name in names[1:]:
                in_place = name.endswith("_") and not name.endswith("__")
                copies = on_tensors(
                    lambda t: t.detach().clone().requires_grad_(t.requires_grad and not in_place)
                )(args)
                compare_call(report, name, what, copies, kwargs, shape_only)


def compare_operator(report, op):
    cases = load(CASES / f"{op.full_name}.safetensors")[0]
    names = sorted(
        {c["call"] for c in cases if "raises" not in c},
        key=lambda n: (n.endswith("_"), "Tensor." in n),
    )
    shape_only = any(
        c.get("random") or c.get("compare", "close") not in ("close", "exact")
        for c in cases
        if "raises" not in c
    )
    for dtype in DTYPES:
        if op.supports_dtype(dtype, "cpu"):
            random.seed(0)
            for kind in ("sample", "reference"):
                compare_samples(report, op, names, kind, dtype, shape_only)
    for e in op.error_inputs("cpu") if op.error_inputs_func else ():
        compare_error(
            report,
            names[0],
            [e.sample_input.input, *e.sample_input.args],
            dict(e.sample_input.kwargs),
        )


def main(wanted):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    report = Report()
    for op in op_db:
        if (CASES / f"{op.full_name}.safetensors").exists() and (
            not wanted or op.full_name in wanted
        ):
            try:
                compare_operator(report, op)
            except Missing as e:
                print(f"{op.full_name}: {e} is missing")
    print(json.dumps(report.counts))
    return bool(report.counts["differ"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
