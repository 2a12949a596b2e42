"""Schedules of learning rates, for test_schedules.py. `python schedule_cases.py`, with PyTorch,
records what they do there: schedules.json."""
import copy
import json
import warnings
from pathlib import Path

RECORDED = Path(__file__).with_name("schedules.json")
STEPS = 27
METRICS = [
    5,
    4,
    4,
    4.1,
    4,
    4,
    3.9,
    3.9995,
    3.9,
    3.9,
    3.9,
    3.9,
    2,
    2.5,
    2.5,
    2.5,
    2.5,
    2.5,
    2.5,
    2.5,
    float("nan"),
    1,
    1,
    1,
    1,
    1,
    1,
]
OWN = {
    "_get_lr_called_within_step",
    "_is_initial",
    "_scale_fn_ref",
}  # of a state, what only one library has


class Scale:
    """A scale_fn that is an object, whose attributes are saved."""

    def __init__(self):
        self.base = 0.5

    def __call__(self, x):
        return self.base ** (x - 1)


def halving(s, optimizer):
    class Halving(s.LRScheduler):
        def get_lr(self):
            return [
                g["lr"] * (0.5 if self.last_epoch and self.last_epoch % 4 == 0 else 1.0)
                for g in self.optimizer.param_groups
            ]

    return Halving(optimizer)


def quarter(i):
    return i / 4


def jumps(i):
    return i * 7 % 11 if i % 3 == 0 else None


# name -> optimizer, the schedule of it (s: the module), what its step is given
CASES = {
    "warm restarts": ("SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 4), None),
    "warm restarts, longer": (
        "SGD",
        lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.01),
        None,
    ),
    "warm restarts, fractions": (
        "SGD",
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
        quarter,
    ),
    "warm restarts, jumps": ("SGD", lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 1), jumps),
    "cyclic": ("SGD", lambda s, o: s.CyclicLR(o, 0.01, 0.1, step_size_up=4), None),
    "cyclic, lower": (
        "SGD",
        lambda s, o: s.CyclicLR(
            o,
            [0.01, 0.02],
            [0.1, 0.3],
            3,
            5,
            mode="triangular2",
            base_momentum=[0.7, 0.8],
            max_momentum=[0.9, 0.95],
        ),
        None,
    ),
    "cyclic, exponential": (
        "Adam",
        lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9),
        None,
    ),
    "cyclic, function": (
        "Adagrad",
        lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / x, cycle_momentum=False),
        None,
    ),
    "cyclic, function of steps": (
        "SGD",
        lambda s, o: s.CyclicLR(
            o, 0.01, 0.1, 3, scale_fn=lambda x: 0.5**x, scale_mode="iterations"
        ),
        None,
    ),
    "cyclic, object": ("SGD", lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, scale_fn=Scale()), None),
    "plateau": ("SGD", lambda s, o: s.ReduceLROnPlateau(o, patience=2), METRICS.__getitem__),
    "plateau, max abs": (
        "SGD",
        lambda s, o: s.ReduceLROnPlateau(
            o,
            "max",
            factor=0.5,
            patience=1,
            threshold=0.2,
            threshold_mode="abs",
            cooldown=2,
            min_lr=[0.01, 0.05],
        ),
        METRICS.__getitem__,
    ),
    "plateau, min abs": (
        "Adam",
        lambda s, o: s.ReduceLROnPlateau(
            o, "min", factor=0.3, patience=0, threshold=0.05, threshold_mode="abs", eps=1e-3
        ),
        METRICS.__getitem__,
    ),
    "plateau, max rel": (
        "Adam",
        lambda s, o: s.ReduceLROnPlateau(
            o, "max", factor=0.3, patience=0, threshold=0.05, min_lr=1e-3
        ),
        METRICS.__getitem__,
    ),
    "linear": ("SGD", lambda s, o: s.LinearLR(o, 0.25, 0.75, 6), None),
    "constant": ("SGD", lambda s, o: s.ConstantLR(o, 0.25, 6), None),
    "polynomial": ("SGD", lambda s, o: s.PolynomialLR(o, 8, 2.0), None),
    "one cycle": (
        "Adam",
        lambda s, o: s.OneCycleLR(o, [0.3, 0.5], total_steps=40, three_phase=True),
        None,
    ),
    "multiplicative": (
        "SGD",
        lambda s, o: s.MultiplicativeLR(o, [lambda e: 0.9, lambda e: 0.5 + e / 20]),
        None,
    ),
    "in sequence": (
        "SGD",
        lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingWarmRestarts(o, 5, 2)], [4]
        ),
        None,
    ),
    "three in sequence": (
        "SGD",
        lambda s, o: s.SequentialLR(
            o, [s.CyclicLR(o, 0.01, 0.2, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 3, 0.5)], [7, 12]
        ),
        None,
    ),
    "one's own in sequence": (
        "SGD",
        lambda s, o: s.SequentialLR(o, [halving(s, o), s.PolynomialLR(o, 10)], milestones=[5]),
        None,
    ),
    "one's own in a chain": (
        "SGD",
        lambda s, o: s.ChainedScheduler([s.ExponentialLR(o, 0.9), halving(s, o)]),
        None,
    ),
    "a chain": (
        "SGD",
        lambda s, o: s.ChainedScheduler(
            [s.CosineAnnealingWarmRestarts(o, 5), s.ConstantLR(o, 0.5, 6)], o
        ),
        None,
    ),
}
# whose states tt keeps as PyTorch does: those that only Python has
PYTHONS = [name for name in CASES if name.startswith(("warm", "cyclic", "plateau"))]


def start(m, name):
    kind, build, _ = CASES[name]
    groups = [{"params": [m.ones(2, requires_grad=True)], "lr": 0.1 * (i + 1)} for i in range(2)]
    optimizer = getattr(m.optim, kind)(
        groups, lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {})
    )
    return optimizer, build(m.optim.lr_scheduler, optimizer)


def rates(optimizer):
    """Returns each group's rate and its momentum or beta1, 0 if it has neither."""
    return [[g["lr"], g.get("momentum", g.get("betas", [0.0])[0])] for g in optimizer.param_groups]


def plain(x):
    """A state as JSON has it."""
    return json.loads(json.dumps({k: v for k, v in x.items() if k not in OWN}))


def run(m, name, resume=None):
    """(rates before and after every step, the state at the end); resume: after so many steps
    another optimizer and schedule take over."""
    optimizer, schedule = start(m, name)
    rows, given = [rates(optimizer)], CASES[name][2]
    for i in range(STEPS):
        if i == resume:
            states = copy.deepcopy(optimizer.state_dict()), copy.deepcopy(schedule.state_dict())
            optimizer, schedule = start(m, name)
            optimizer.load_state_dict(states[0])
            schedule.load_state_dict(states[1])
        optimizer.step()
        x = given(i) if given else None
        schedule.step() if x is None else schedule.step(x)
        rows.append(rates(optimizer))
        assert schedule.get_last_lr() == [lr for lr, _ in rows[-1]]
    return rows, plain(schedule.state_dict())


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    found = {name: run(torch, name) for name in CASES}
    rows = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(rows)}" for name, (rows, _) in found.items()
    )
    states = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name][1])}" for name in PYTHONS)
    RECORDED.write_text(
        f'{{"torch": "{torch.__version__}",\n"rates": {{\n{rows}}},\n"states": {{\n{states}}}}}\n'
    )
