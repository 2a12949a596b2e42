"""Tensors are printed as PyTorch prints them: against texts recorded from PyTorch (printing.json,
by printing_cases.py)."""
import json

import pytest
from printing_cases import RECORDED, cases

import tt

EXPECTED = json.loads(RECORDED.read_text())["cases"]


def test_every_recorded_case():
    wrong = []
    found = {name: repr(t) for name, t in cases(tt)}
    assert list(found) == list(EXPECTED) and len(found) > 400
    for name, text in found.items():
        if text != EXPECTED[name].replace("torch.", "tt."):
            wrong.append(f"{name}\n{EXPECTED[name]}\n{text}")
    assert not wrong, f"{len(wrong)} of {len(found)}:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize(
    "text, tensor",
    [
        ("<MulBackward0 object at 0x", lambda: (tt.ones(2, requires_grad=True) * 2).grad_fn),
        ("<ExpBackward0 object", lambda: tt.ones(2, requires_grad=True).exp().grad_fn),
        ("<AddmmBackward0", lambda: tt.nn.Linear(2, 2)(tt.ones(1, 2)).grad_fn),
        ("<MmBackward0", lambda: (tt.ones(2, 2, requires_grad=True) @ tt.ones(2, 2)).grad_fn),
        ("<PowBackward0", lambda: tt.ones(2, requires_grad=True).pow(2).grad_fn),
        ("<SoftmaxBackward0", lambda: tt.ones(2, requires_grad=True).softmax(0).grad_fn),
    ],
)
def test_nodes(text, tensor):
    assert repr(tensor()).startswith(text)


def test_several_results_print_as_pytorchs():
    assert repr(tt.ones(2).max(0)) == "tt.return_types.max(\nvalues=tensor(1.),\nindices=tensor(0))"
    assert (
        str(tt.ones(2).sort())
        == "tt.return_types.sort(\nvalues=tensor([1., 1.]),\nindices=tensor([0, 1]))"
    )


def test_types_and_switches():
    assert str(type(tt.ones(1))) == "<class 'tt.Tensor'>"
    switch = tt.set_grad_enabled(True)
    assert repr(switch) == "tt.autograd.grad_mode.set_grad_enabled(mode=True)"
    assert repr(tt.ops.aten.add) == "<OpOverloadPacket(op='aten.add')>"
