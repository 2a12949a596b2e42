"""Schedules of learning rates compared with PyTorch's, step by step: recorded (schedules.json, by
schedule_cases.py) and, where PyTorch is installed, live."""
import copy
import importlib.util
import json
import pickle
from collections import Counter

import pytest
from schedule_cases import CASES, PYTHONS, RECORDED, rates, run, start

import tt
from tt.optim import lr_scheduler as lrs

EXPECTED = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("resume", [None, 5, 13])
@pytest.mark.parametrize("name", CASES)
def test_every_step(name, resume):
    found, state = run(tt, name, resume)
    assert found == EXPECTED["rates"][name]
    if name in PYTHONS:
        assert repr(state) == repr({key: EXPECTED["states"][name][key] for key in state}) and len(
            state
        ) == len(EXPECTED["states"][name])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch here")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_live(name):
    import torch

    assert run(tt, name)[0] == run(torch, name)[0]


@pytest.mark.parametrize("name", PYTHONS)
def test_a_state_of_pytorch_is_loaded(name):
    optimizer, schedule = start(tt, name)
    schedule.load_state_dict(dict(EXPECTED["states"][name], _get_lr_called_within_step=False))
    assert schedule.last_epoch == EXPECTED["states"][name][
        "last_epoch"
    ] and schedule.get_last_lr() == [lr for lr, _ in EXPECTED["rates"][name][-1]]


@pytest.mark.parametrize(
    "build, error",
    [
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 0), "T_0"),
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 1.5), "T_0"),
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 2, 0), "T_mult"),
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 2).step(-1), "negative"),
        (lambda o: lrs.CyclicLR(o, 0.1, 0.2, mode="square"), "mode"),
        (lambda o: lrs.CyclicLR(o, [0.1], 0.2), "base_lr"),
        (lambda o: lrs.ReduceLROnPlateau(o, "least"), "mode"),
        (lambda o: lrs.ReduceLROnPlateau(o, factor=1.0), "factor"),
        (lambda o: lrs.ReduceLROnPlateau(o, min_lr=[0.1]), "min_lr"),
        (
            lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1), lrs.CyclicLR(o, 0.1, 0.2)], []),
            "milestones",
        ),
        (
            lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1), lrs.ReduceLROnPlateau(o)], [2]),
            "metric",
        ),
        (lambda o: lrs.ChainedScheduler([lrs.ReduceLROnPlateau(o)]), "metric"),
        (
            lambda o: lrs.ChainedScheduler(
                [lrs.CyclicLR(o, 0.1, 0.2), lrs.StepLR(start(tt, "plateau")[0], 1)]
            ),
            "another optimizer",
        ),
        (lambda o: lrs.ChainedScheduler([]), "at least one"),
    ],
)
def test_refusals(build, error):
    with pytest.raises(ValueError, match=error):
        build(start(tt, "plateau")[0])


def test_other_refusals():
    with pytest.raises(TypeError):
        lrs.ReduceLROnPlateau(3)
    with pytest.raises(TypeError):
        lrs.ChainedScheduler([3])
    with pytest.raises(ValueError, match="momentum"):
        lrs.CyclicLR(start(tt, "cyclic, function")[0], 0.1, 0.2)
    with pytest.raises(KeyError):
        lrs.CosineAnnealingWarmRestarts(start(tt, "plateau")[0], 3, last_epoch=2)


def test_metrics_may_be_tensors_and_groups_may_be_added():
    optimizer, schedule = start(tt, "plateau")
    schedule = lrs.ReduceLROnPlateau(optimizer, patience=0, factor=0.5, min_lr=0.01)
    optimizer.add_param_group({"params": [tt.ones(1, requires_grad=True)], "lr": 1.0})
    for metric in (tt.tensor(1.0), tt.tensor([2.0])):
        schedule.step(metric)
    assert [g["lr"] for g in optimizer.param_groups] == [
        0.05,
        0.1,
        0.5,
    ] == schedule.get_last_lr() and not schedule.in_cooldown
    fixed = lrs.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1] * 3)
    optimizer.add_param_group({"params": [tt.ones(1, requires_grad=True)]})
    fixed.step(1)
    with pytest.raises(RuntimeError, match="min_lr"):
        fixed.step(2)


def test_rates_that_are_tensors_stay_tensors():
    class Plain(tt.optim.Optimizer):
        def step(self, closure=None):
            pass

    rate = tt.tensor(0.5)
    optimizer = Plain([tt.ones(1, requires_grad=True)], {"lr": rate, "momentum": 0.0})
    schedule = lrs.CosineAnnealingWarmRestarts(optimizer, 2)
    before = schedule.get_last_lr()[0]
    schedule.step()
    assert (
        optimizer.param_groups[0]["lr"] is rate
        and rate.item() == 0.25
        and before.item() == 0.5
        and optimizer.param_groups[0]["initial_lr"].item() == 0.5
    )


def test_states_can_be_pickled():
    for name in PYTHONS:
        state = start(tt, name)[1].state_dict()
        assert pickle.loads(pickle.dumps(state)).keys() == state.keys()


def again(s):
    """The rates of three steps more."""
    found = []
    for _ in range(3):
        s.optimizer.step()
        s.step(*[1.0] * isinstance(s, lrs.ReduceLROnPlateau))
        found.append(rates(s.optimizer))
    return found


@pytest.mark.parametrize("name", CASES)
def test_copies_continue_alike(name):
    optimizer, schedule = start(tt, name)
    again(schedule)
    copies = [copy.deepcopy((optimizer, schedule))]
    if (
        "own" not in name and "function" not in name and name != "multiplicative"
    ):  # functions without a name
        copies.append(pickle.loads(pickle.dumps((optimizer, schedule))))
    before, want = rates(optimizer), again(schedule)
    for o, s in copies:
        assert (
            type(s) is type(schedule)
            and s.optimizer is o is not optimizer
            and rates(o) == before
            and again(s) == want
        )
        assert s.last_epoch == schedule.last_epoch or isinstance(s, lrs.ChainedScheduler)


# first, then second schedule of a SequentialLR of which libtt computes the first one only: rates of
# 8 steps, from PyTorch
PAIRS = {
    "ExponentialLR": [0.1, 0.09, 0.081],
    "CosineAnnealingLR": [0.1, 0.09045, 0.06545],
    "PolynomialLR": [0.1, 0.08, 0.06],
    "MultiplicativeLR": [0.1, 0.09, 0.081],
}
SECOND = {
    "CosineAnnealingWarmRestarts": [0.1, 0.08536, 0.05, 0.01464, 0.1],
    "CyclicLR": [0.01, 0.0101, 0.01019, 0.01029, 0.01038],
}


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", PAIRS)
def test_sequences_of_both_kinds_begin_at_the_initial_rate(first, second):
    s = tt.optim.lr_scheduler
    o = tt.optim.SGD([tt.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
    makers = {
        "ExponentialLR": lambda: s.ExponentialLR(o, 0.9),
        "CosineAnnealingLR": lambda: s.CosineAnnealingLR(o, 5),
        "PolynomialLR": lambda: s.PolynomialLR(o, 5),
        "MultiplicativeLR": lambda: s.MultiplicativeLR(o, lambda epoch: 0.9),
        "CosineAnnealingWarmRestarts": lambda: s.CosineAnnealingWarmRestarts(o, 4),
        "CyclicLR": lambda: s.CyclicLR(o, 0.01, 0.2),
    }
    schedule = s.SequentialLR(o, [makers[first](), makers[second]()], [3])
    rates = []
    for _ in range(8):
        rates.append(o.param_groups[0]["lr"])
        o.step()
        schedule.step()
    assert rates == pytest.approx(PAIRS[first] + SECOND[second], abs=1e-5)


def test_whole_numbers_may_be_floats_and_initial_rates_be_replaced():
    optimizer = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], lr=0.8)
    schedule = tt.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.5)  # as tutorials call it
    optimizer.step()
    schedule.step()
    assert schedule.step_size == 1 and schedule.get_last_lr() == [0.4]
    with pytest.raises(TypeError, match="step_size"):
        tt.optim.lr_scheduler.StepLR(optimizer, "1.5")

    # a schedule that warms up gives the next one its initial rates
    after = tt.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    after.base_lrs = [2.0]
    assert after.base_lrs == [2.0] == after.state_dict()["base_lrs"]
    after.step(4)
    assert after.get_last_lr() == pytest.approx([0.0])
    after.step(0)
    assert after.get_last_lr() == [2.0]
    with pytest.raises(ValueError, match="base_lrs must have 1 values"):
        after.base_lrs = [1.0, 2.0]


def fractional_rates(library, build, epochs=(None,) * 8):
    optimizer = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.1)
    schedule = build(library.optim.lr_scheduler, optimizer)
    found = schedule.get_last_lr()
    for epoch in epochs:
        optimizer.step()
        schedule.step(epoch)
        found += schedule.get_last_lr()
    return found


# as PyTorch computes them
FRACTIONS = {
    "cosine": (
        lambda s, o: s.CosineAnnealingLR(o, 4.5, eta_min=0.01),
        [0.1, 0.08947199994035401, 0.06281416799501188, 0.032500000000000015]
        + [0.012713832064634126, 0.01271383206463412, 0.03249999999999997]
        + [0.06281416799501184, 0.08947199994035399],
    ),
    "step": (lambda s, o: s.StepLR(o, 2.5), [0.1] * 5 + [0.010000000000000002] * 4),
    "steps": (lambda s, o: s.MultiStepLR(o, [1.5, 3.0]), [0.1] * 3 + [0.010000000000000002] * 6),
    "constant": (lambda s, o: s.ConstantLR(o, 0.5, 2.5), [0.05] * 9),
    "linear": (
        lambda s, o: s.LinearLR(o, 0.5, total_iters=2.5),
        [0.05, 0.06999999999999999] + [0.08999999999999998] * 7,
    ),
    "polynomial": (
        lambda s, o: s.PolynomialLR(o, 2.5, power=1.5),
        [0.1, 0.046475800154489] + [0.008944271909999156] * 7,
    ),
}


@pytest.mark.parametrize("name", FRACTIONS)
@pytest.mark.filterwarnings("ignore")
def test_fractional_numbers_of_steps(name):
    build, expected = FRACTIONS[name]
    assert fractional_rates(tt, build) == expected
    closed = fractional_rates(tt, build, range(8))
    if importlib.util.find_spec("torch") is not None:
        import torch

        assert expected == fractional_rates(torch, build)
        assert closed == fractional_rates(torch, build, range(8))

    optimizer = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], lr=0.1)
    schedule = build(lrs, optimizer)
    assert isinstance(schedule, lrs.LRScheduler)
    for copied in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
        assert type(copied) is type(schedule) and copied.get_last_lr() == expected[:1]
        copied.step()
        assert copied.get_last_lr() == expected[1:2] and schedule.last_epoch == 0


def test_fractional_schedules_in_others():
    optimizer = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], lr=0.1)
    parts = [lrs.LinearLR(optimizer, 0.1, total_iters=2.5), lrs.CosineAnnealingLR(optimizer, 6.5)]
    schedule = lrs.SequentialLR(optimizer, parts, [3])
    for _ in range(3):
        optimizer.step()
        schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1])
    with pytest.raises(ValueError, match="start_factor is 1.5"):
        lrs.LinearLR(optimizer, 1.5, total_iters=2.5)


def test_state_dicts_hold_the_arguments():
    """As PyTorch's do, whose state dicts also load."""
    optimizer = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], lr=1.0)
    schedule = lrs.StepLR(optimizer, 2, gamma=0.5)
    state = schedule.state_dict()
    assert state["step_size"] == 2 and state["gamma"] == 0.5 and state["last_epoch"] == 0
    schedule.load_state_dict({**state, "gamma": 0.1, "step_size": 1})
    assert schedule.gamma == 0.1 and optimizer.param_groups[0]["lr"] == 1
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == pytest.approx([0.1])
    assert pickle.loads(pickle.dumps(schedule)).state_dict() == schedule.state_dict()
    steps = lrs.MultiStepLR(optimizer, [5, 7])
    steps.load_state_dict({**steps.state_dict(), "milestones": Counter([1, 3])})
    assert steps.state_dict()["milestones"] == {1: 1, 3: 1}


def test_state_dicts_of_functions():
    """They hold the attributes of callable objects, as PyTorch's do."""

    class Decay:
        def __init__(self, base):
            self.base = base

        def __call__(self, epoch):
            return self.base**epoch

    optimizer = tt.optim.SGD([{"params": [tt.nn.Parameter(tt.ones(1))]} for _ in range(2)], lr=1.0)
    schedule = lrs.LambdaLR(optimizer, [lambda epoch: 1.0, Decay(0.5)])
    state = schedule.state_dict()
    assert state["lr_lambdas"] == [None, {"base": 0.5}]
    state["lr_lambdas"][1]["base"] = 0.25
    schedule.load_state_dict(state)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [1, 0.25]


def test_counters_can_be_read_and_set():
    opt = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], lr=1.0)
    cycle = lrs.OneCycleLR(opt, max_lr=1.0, epochs=3, steps_per_epoch=4)
    assert (cycle.total_steps, cycle._step_count, cycle.last_epoch) == (12, 1, 0)
    opt.step()
    cycle.step()
    assert cycle._step_count == 2 and cycle._last_lr == cycle.get_last_lr()
    steps = lrs.StepLR(opt, 2, gamma=0.5)
    steps.last_epoch = 2
    steps._step_count = 7
    opt.step()
    steps.step()
    assert steps.state_dict()["last_epoch"] == 3 and steps._step_count == 8


def test_milestones_are_counted_in_states():
    opt = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], 0.1)
    schedule = lrs.MultiStepLR(opt, [2, 4, 4])
    state = schedule.state_dict()
    assert state["milestones"] == {2: 1, 4: 2}  # as PyTorch's, which looks steps up in it
    other = lrs.MultiStepLR(opt, [1])
    other.load_state_dict(state)
    assert other.milestones == [2, 4, 4]


def test_a_state_that_does_not_fit_changes_nothing():
    opt = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], 0.1)
    schedule = lrs.StepLR(opt, 2)
    before = schedule.state_dict()
    for wrong in ({"base_lrs": [1.0, 2.0]}, {"_last_lr": "x"}):
        with pytest.raises((TypeError, tt.errors.TtError)):
            schedule.load_state_dict({**before, "last_epoch": 7, "gamma": 0.5, **wrong})
        assert schedule.state_dict() == before
