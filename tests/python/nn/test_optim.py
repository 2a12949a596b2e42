"""tt.optim, tt.optim.lr_scheduler and tt.nn.utils: what the conformance cases do not cover."""
import copy
import math
import pickle
import warnings
from collections import defaultdict

import pytest
import tt
from tt import optim
from tt.optim import lr_scheduler as lrs
from tt.optim import swa_utils

CLASSES = [
    *(optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta),
    *(optim.Adamax, optim.NAdam, optim.RAdam, optim.ASGD, optim.Rprop, optim.Lion),
    *(optim.Adafactor, optim.Muon, optim.LBFGS),
]


def leaves(n=2):
    return [tt.arange(3, dtype=tt.float64).add_(float(i)).requires_grad_() for i in range(n)]


def descend(opt, params, steps=3):
    for _ in range(steps):
        opt.zero_grad()
        sum((p * p).sum() for p in params).backward()
        opt.step()


def descend_by_closure(opt, params, steps=3):
    def closure():
        opt.zero_grad()
        loss = sum(((p - 0.3) ** 4).sum() for p in params)
        loss.backward()
        return loss

    for _ in range(steps):
        opt.step(closure)


def test_groups_are_live():
    a, b = leaves()
    opt = tt.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in opt.param_groups] == [0.1, 0.5] and opt.param_groups[0][
        "momentum"
    ] == 0.9
    assert opt.param_groups[1]["params"][0] is b
    opt.param_groups[0]["lr"] = 0.25
    (a.sum() + b.sum()).backward()
    opt.step()
    assert a.tolist() == [-0.25, 0.75, 1.75] and b.tolist() == [0.5, 1.5, 2.5]
    assert dict(opt.param_groups[0])["lr"] == 0.25 and "initial_lr" not in opt.param_groups[0]
    opt.param_groups[0]["note"] = "kept"
    assert opt.state_dict()["param_groups"][0]["note"] == "kept"


def test_betas_are_a_pair():
    opt = tt.optim.AdamW(leaves(), betas=(0.5, 0.75))
    group = opt.param_groups[0]
    assert (
        group["betas"] == (0.5, 0.75)
        and group["decoupled_weight_decay"] is True
        and group["amsgrad"] is False
    )
    group["betas"] = (0.25, 0.5)
    assert group["betas"] == (0.25, 0.5) and "beta1" not in group
    with pytest.raises(ValueError):
        group["betas"] = (0.5,)
    with pytest.raises(ValueError, match="betas is .0.9,.: must have 2 numbers"):
        tt.optim.Adam(leaves(), betas=(0.9,))


@pytest.mark.parametrize("cls", CLASSES)
def test_a_resumed_run_is_bit_equal(cls):
    options = {optim.SGD: {"momentum": 0.9}, optim.ASGD: {"t0": 1}, optim.LBFGS: {"max_iter": 2}}
    make = lambda ps: cls(ps, **options.get(cls, {}))
    a = leaves()
    if cls is optim.Muon:
        a = [p.detach().reshape(3, 1).requires_grad_() for p in a]
    opt = make(a)
    descend_by_closure(opt, a)
    b = [p.detach().clone().requires_grad_() for p in a]
    other = make(b)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    descend_by_closure(opt, a)
    descend_by_closure(other, b)
    assert [p.tolist() for p in a] == [p.tolist() for p in b]
    assert a[0].tolist() != leaves()[0].reshape(a[0].shape).tolist()


def test_loading_removes_absent_state():
    a, b = leaves(), leaves()
    opt, other = tt.optim.Adam(a), tt.optim.Adam(b, amsgrad=True)
    descend(opt, a)
    descend(other, b)
    assert set(other.state_dict()["state"][0]) == {
        "step",
        "exp_avg",
        "exp_avg_sq",
        "max_exp_avg_sq",
    }
    other.load_state_dict(opt.state_dict())
    assert (
        set(other.state[b[0]]) == {"step", "exp_avg", "exp_avg_sq"}
        and other.param_groups[0]["amsgrad"] is False
    )
    assert other.state[b[0]]["step"].item() == 3
    with pytest.raises(ValueError):
        tt.optim.Adam(leaves(3)).load_state_dict(opt.state_dict())


def test_closure():
    (x,) = leaves(1)
    opt, calls = tt.optim.SGD([x], lr=0.5), []

    def closure():
        calls.append(1)
        opt.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with tt.no_grad():
        assert opt.step(closure).item() == 5.0
    assert x.tolist() == [0, 0, 0] and calls == [1]


@pytest.mark.parametrize(
    "bad",
    [
        lambda: tt.optim.SGD([]),
        lambda: tt.optim.SGD([tt.ones(1).requires_grad_() * 2]),
        lambda: tt.optim.Adam(leaves(), lr=-1),
        lambda: tt.optim.SGD([{"params": (x := leaves())}, {"params": x[:1]}]),
    ],
)
def test_refusals(bad):
    with pytest.raises(ValueError):
        bad()


def test_wrong_kinds():
    with pytest.raises(TypeError):
        tt.optim.SGD(tt.ones(2).requires_grad_())
    with pytest.raises(TypeError):
        tt.optim.SGD(leaves(), learning_rate=1)
    with pytest.raises(TypeError):
        tt.optim.SGD([1.0])


def test_a_custom_optimizer():
    class Sign(tt.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with tt.no_grad():
                for g in self.param_groups:
                    for p in g["params"]:
                        self.state[p]["n"] = self.state[p].get("n", 0) + 1
                        p.sub_(p.grad.sign() * g["lr"])

    (x,) = leaves(1)
    opt = Sign([x], 0.5)
    descend(opt, [x], 2)
    assert x.tolist() == [0, 0, 1] and opt.state_dict()["state"] == {0: {"n": 2}}
    opt.zero_grad()
    assert x.grad is None


# ---- numbers of a parameter ----


def test_the_numbers_of_nadam_and_asgd_are_state():
    (x,) = leaves(1)
    opt = optim.NAdam([x])
    descend(opt, [x])
    assert set(opt.state[x]) == {"step", "mu_product", "exp_avg", "exp_avg_sq"}
    assert opt.state[x]["mu_product"].dtype == tt.float32 and opt.state[x]["step"].item() == 3
    opt.state[x]["mu_product"] = tt.tensor(0.5)
    assert opt.state_dict()["state"][0]["mu_product"].item() == 0.5
    (y,) = leaves(1)
    opt = optim.ASGD([y], lr=0.5, lambd=1.0, alpha=1.0, t0=1)
    descend(opt, [y])
    assert opt.state[y]["eta"].item() == pytest.approx(0.5 / (1 + 0.5 * 3))
    assert opt.state[y]["mu"].item() == 0.5


# ---- LBFGS ----


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def minimized(opt, x, steps, sign=1):
    calls = []

    def closure():
        opt.zero_grad()
        loss = sign * rosenbrock(x)
        loss.backward()
        calls.append(loss.item())
        return loss

    return [opt.step(closure).item() for _ in range(steps)], calls


@pytest.mark.parametrize("maximize", [False, True])
def test_lbfgs_with_a_line_search_finds_the_minimum(maximize):
    x = tt.tensor([-1.2, 1.0, -0.5, 0.8], dtype=tt.float64).requires_grad_()
    opt = optim.LBFGS([x], line_search_fn="strong_wolfe", maximize=maximize)
    losses, calls = minimized(opt, x, 5, -1 if maximize else 1)
    assert abs(losses[-1]) < 1e-9 and x.tolist() == pytest.approx([1, 1, 1, 1], abs=1e-5)
    assert opt.state[x]["func_evals"] == len(calls) and opt.state[x]["n_iter"] > 20


def test_the_line_search_meets_the_wolfe_conditions():
    for scale in (1e-3, 0.1, 1.0, 30.0):
        x = tt.tensor([-1.2, 1.0], dtype=tt.float64).requires_grad_()
        rosenbrock(x).backward()
        before, slope = rosenbrock(x).item(), -(x.grad @ x.grad).item()
        start, gradient = x.detach().clone(), x.grad.clone()
        opt = optim.LBFGS([x], lr=scale, max_iter=1, line_search_fn="strong_wolfe")
        minimized(opt, x, 1)
        t, d = opt.state[x]["t"], opt.state[x]["d"]
        assert (x - (start + d * t)).abs().max().item() < 1e-12 and (d + gradient).norm() == 0
        x.grad = None
        after = rosenbrock(x)
        after.backward()
        assert after.item() <= before + 1e-4 * t * slope
        assert abs((x.grad @ d).item()) <= -0.9 * slope


def test_lbfgs_stops():
    (x,) = leaves(1)
    opt = optim.LBFGS([x], max_iter=1000, max_eval=3)
    descend_by_closure(opt, [x], 1)
    assert opt.state[x]["func_evals"] == 3
    y = tt.ones(2).requires_grad_()
    opt, calls = optim.LBFGS([y]), []
    opt.step(lambda: (calls.append(1), (y * 0).sum())[1])  # no gradient: nothing to do
    assert len(calls) == 1 and y.tolist() == [1, 1]


def test_lbfgs_has_the_state_of_pytorch():
    (x,) = leaves(1)
    opt = optim.LBFGS([x], max_iter=3, history_size=2)
    assert opt.state_dict()["state"] == {} and opt.param_groups[0]["max_eval"] == 3
    descend_by_closure(opt, [x], 2)
    state = opt.state[x]
    assert isinstance(state["n_iter"], int) and isinstance(state["t"], float)
    assert len(state["old_dirs"]) == len(state["old_stps"]) == len(state["ro"]) == 2
    assert state["d"].shape == state["old_dirs"][1].shape == (3,)
    saved = copy.deepcopy(opt.state_dict())
    saved["state"][0].update(al=[None, None], ro=[tt.tensor(r) for r in saved["state"][0]["ro"]])
    opt.load_state_dict(saved)  # as PyTorch saves it
    opt.param_groups[0]["line_search_fn"] = "strong_wolfe"
    assert "strong_wolfe" in repr(opt)
    with pytest.raises(ValueError, match="golden"):
        opt.param_groups[0]["line_search_fn"] = "golden"


def test_a_failing_closure_of_lbfgs_changes_nothing():
    (x,) = leaves(1)
    opt, calls = optim.LBFGS([x]), []

    def closure():
        calls.append(x.tolist())
        if len(calls) == 3:
            raise KeyError("enough")
        opt.zero_grad()
        loss = ((x - 0.3) ** 4).sum()
        loss.backward()
        return loss.item()  # a number is enough

    with pytest.raises(KeyError, match="enough"):
        opt.step(closure)
    assert calls[0] != calls[2] and x.tolist() == calls[0] and not opt.state_dict()["state"]


@pytest.mark.parametrize("kind,key", [("LBFGS", "d"), ("Adagrad", "sum")])
def test_states_must_convert_to_the_dtype(kind, key):
    x = tt.zeros(2, requires_grad=True)
    opt = getattr(tt.optim, kind)([x])

    def closure():
        opt.zero_grad()
        loss = (x - 1).square().sum()
        loss.backward()
        return loss

    opt.step(closure)
    state = opt.state_dict()
    state["state"][0][key] = tt.ones(2, dtype=tt.float64)
    opt.load_state_dict(state)
    assert opt.state[x][key].dtype == tt.float32
    state["state"][0][key] = tt.ones(2, dtype=tt.complex64)
    with pytest.raises(tt.errors.DtypeError, match="float32: must convert to it"):
        opt.load_state_dict(state)


def test_lbfgs_refuses():
    a, b = leaves()
    with pytest.raises(ValueError, match="one group"):
        optim.LBFGS([{"params": [a]}, {"params": [b]}])
    with pytest.raises(ValueError, match="lr is -1"):
        optim.LBFGS([a], lr=-1)
    with pytest.raises(RuntimeError, match="complex"):
        optim.LBFGS([tt.ones(2, dtype=tt.complex64).requires_grad_()])
    with pytest.raises(RuntimeError, match="golden"):
        optim.LBFGS([a], line_search_fn="golden").step(lambda: a.sum())
    with pytest.raises(TypeError):
        optim.LBFGS([a]).step()


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda p: optim.Muon([p]), "matrices"),
        (lambda p: optim.Muon([p.reshape(1, 3).detach()], adjust_lr_fn="x"), "adjust_lr_fn"),
        (lambda p: optim.Adafactor([p], d=0.5), "d is 0.5"),
        (lambda p: optim.Adafactor([p], beta2_decay=1), "beta2_decay"),
    ],
)
def test_what_adafactor_and_muon_refuse(make, word):
    with pytest.raises(ValueError, match=word):
        make(leaves(1)[0])


# ---- averages of models ----


def model_with_statistics():
    return tt.nn.Sequential(tt.nn.Linear(3, 4), tt.nn.BatchNorm1d(4), tt.nn.Linear(4, 1))


def walk(model, average, steps=4):
    """Changes the model and adds it to the average, several times; returns its parameters each
    time."""
    path = []
    for _ in range(steps):
        with tt.no_grad():
            for p in model.parameters():
                p.add_(tt.randn_like(p))
        path.append([p.detach().clone() for p in model.parameters()])
        average.update_parameters(model)
    return path


def test_an_averaged_model_has_the_mean_of_the_parameters():
    model = model_with_statistics()
    average = swa_utils.AveragedModel(model)
    path = walk(model, average)
    for p, *seen in zip(average.module.parameters(), *path):
        assert (p - sum(seen) / 4).abs().max().item() < 1e-6
    assert average.n_averaged.item() == 4 and average.n_averaged.dtype == tt.int64
    assert list(average.state_dict())[:2] == ["n_averaged", "module.0.weight"]
    x = tt.randn(5, 3)
    assert average.eval()(x).tolist() == average.module(x).tolist()


@pytest.mark.parametrize("key", ["avg_fn", "multi_avg_fn"])
def test_an_exponential_average(key):
    make = {"avg_fn": swa_utils.get_ema_avg_fn, "multi_avg_fn": swa_utils.get_ema_multi_avg_fn}
    model = model_with_statistics()
    average = swa_utils.AveragedModel(model, use_buffers=True, **{key: make[key](0.75)})
    path = walk(model, average)
    for p, first, *seen in zip(average.module.parameters(), *path):
        for q in seen:
            first = 0.75 * first + 0.25 * q
        assert (p - first).abs().max().item() < 1e-6
    assert average.module[1].num_batches_tracked.item() == 0
    with pytest.raises(ValueError, match="decay is 1.5"):
        make[key](1.5)


def test_buffers_follow_the_model():
    model = model_with_statistics()
    average = swa_utils.AveragedModel(model)
    model(tt.randn(5, 3))
    average.update_parameters(model)
    assert average.module[1].running_mean.tolist() == model[1].running_mean.tolist()
    with pytest.raises(AssertionError):
        swa_utils.AveragedModel(model, avg_fn=lambda *a: a[0], multi_avg_fn=lambda *a: None)


def test_update_bn_gives_the_means_over_all_batches():
    model = model_with_statistics()
    model(tt.randn(5, 3))
    model.eval()
    batches = [tt.randn(5, 3) for _ in range(3)]
    swa_utils.update_bn([(x, "target") for x in batches], model)
    hidden = [model[0](x).detach() for x in batches]
    mean = sum(h.mean(dim=0) for h in hidden) / 3
    var = sum(h.var(dim=0) for h in hidden) / 3
    assert (model[1].running_mean - mean).abs().max().item() < 1e-5
    assert (model[1].running_var - var).abs().max().item() < 1e-5
    assert model[1].momentum == 0.1 and not model.training
    assert model[1].num_batches_tracked.item() == 3


def test_swalr_goes_to_its_rate():
    a, b = leaves()
    opt = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=1.0)
    schedule = swa_utils.SWALR(opt, [0.2, 0.1], anneal_epochs=2)
    rates = [schedule.get_last_lr()]
    for _ in range(3):
        opt.step()
        schedule.step()
        rates.append(schedule.get_last_lr())
    assert rates == [
        [1.0, 0.5],
        pytest.approx([0.6, 0.3]),
        pytest.approx([0.2, 0.1]),
        pytest.approx([0.2, 0.1]),
    ]
    with pytest.raises(ValueError, match="anneal_epochs"):
        swa_utils.SWALR(opt, 0.1, anneal_epochs=-1)


# ---- schedules ----


def test_one_cycle_moves_beta1():
    opt = tt.optim.Adam(leaves(), lr=1.0)
    sched = lrs.OneCycleLR(opt, max_lr=0.5, total_steps=10, anneal_strategy="linear")
    seen = [(opt.param_groups[0]["lr"], opt.param_groups[0]["betas"][0])]
    for _ in range(9):
        sched.step()
        seen.append((opt.param_groups[0]["lr"], opt.param_groups[0]["betas"][0]))
    assert seen[0] == pytest.approx((0.02, 0.95)) and max(lr for lr, _ in seen) == pytest.approx(
        0.5
    )
    assert min(beta for _, beta in seen) == pytest.approx(0.85) and seen[-1] == pytest.approx(
        (0.02 / 1e4, 0.95)
    )
    sched.step()
    with pytest.raises(ValueError):
        sched.step()


def test_cycling_needs_a_momentum():
    with pytest.raises(ValueError):
        lrs.OneCycleLR(tt.optim.Adagrad(leaves()), max_lr=0.5, total_steps=10)


def test_exceptions_of_lambdas_are_passed_on():
    def rate(epoch):
        if epoch == 2:
            raise LookupError("no more")
        return 0.5**epoch

    opt = tt.optim.SGD(leaves(), lr=1.0)
    sched = lrs.LambdaLR(opt, rate)
    sched.step()
    assert opt.param_groups[0]["lr"] == 0.5 and sched.last_epoch == 1
    with pytest.raises(LookupError):
        sched.step()
    assert (
        opt.param_groups[0]["lr"] == 0.5 and sched.last_epoch == 1 and sched.get_last_lr() == [0.5]
    )


def test_closed_form():
    opt = tt.optim.SGD(leaves(), lr=1.0)
    sched = lrs.CosineAnnealingLR(opt, T_max=8)
    sched.step(4)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.5)
    assert sched.last_epoch == 4 and sched.base_lrs == [1.0]


def test_a_custom_schedule():
    class Root(lrs.LRScheduler):
        def get_lr(self):
            return [base / math.sqrt(self.last_epoch + 1) for base in self.base_lrs]

    opt = tt.optim.SGD(leaves(), lr=1.0)
    sched = Root(opt)
    sched.step()
    assert opt.param_groups[0]["lr"] == sched.get_last_lr()[0] == 1 / math.sqrt(2)


def test_resuming_needs_initial_lr():
    with pytest.raises(KeyError):
        lrs.StepLR(tt.optim.SGD(leaves()), 3, last_epoch=5)


# ---- gradients ----


def with_grads(*grads):
    params = [tt.zeros(len(g), dtype=tt.float64).requires_grad_() for g in grads]
    for p, g in zip(params, grads):
        p.grad = tt.tensor(g, dtype=tt.float64)
    return params


def test_clip_grad_norm():
    params = with_grads([3.0, 0.0], [4.0])
    assert tt.nn.utils.clip_grad_norm_(params, 1.0).item() == 5.0
    assert params[1].grad.item() == pytest.approx(0.8, rel=1e-6)
    assert tt.nn.utils.get_total_norm([p.grad for p in params]).item() == pytest.approx(1, rel=1e-6)
    before = params[0].grad.tolist()
    tt.nn.utils.clip_grad_norm_(params, 10.0)
    assert params[0].grad.tolist() == before


@pytest.mark.parametrize("norm_type, want", [(1.0, 7.0), (3.0, 91 ** (1 / 3)), (math.inf, 4.0)])
def test_other_norms(norm_type, want):
    params = with_grads([3.0, 0.0], [-4.0])
    assert tt.nn.utils.clip_grad_norm_(params, 1.0, norm_type).item() == pytest.approx(want)


def test_nonfinite():
    params = with_grads([math.nan], [1.0])
    with pytest.raises(RuntimeError):
        tt.nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert params[1].grad.item() == 1.0
    tt.nn.utils.clip_grad_norm_(params, 1.0)
    assert math.isnan(params[1].grad.item())


def test_clip_grad_value_and_vectors():
    params = with_grads([3.0, -0.5], [-4.0])
    tt.nn.utils.clip_grad_value_(params, 1)
    assert [p.grad.tolist() for p in params] == [[1.0, -0.5], [-1.0]]
    tt.nn.utils.vector_to_parameters(tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64), params)
    assert tt.nn.utils.parameters_to_vector(params).tolist() == [1, 2, 3]


def test_state_is_live():
    p = tt.nn.Parameter(tt.ones(2))
    opt = optim.Adam([p], lr=0.1)
    p.grad = tt.ones(2)
    opt.step()
    opt.state[p]["exp_avg"] = tt.zeros(2)
    assert opt.state[p]["exp_avg"].tolist() == [0, 0]
    opt.state[p]["step"] += 4
    assert (
        opt.state_dict()["state"][0]["step"].item() == 5
        and type(opt.state_dict()["state"][0]) is dict
    )
    kept = copy.deepcopy(opt.state_dict())
    opt.state = defaultdict(dict)  # as scripts that start again do
    assert not opt.state
    twin = optim.Adam([tt.nn.Parameter(p.detach().clone())], lr=0.1)
    twin.param_groups[0]["params"][0].grad = p.grad
    opt.step()
    twin.step()
    assert p.tolist() == twin.param_groups[0]["params"][0].tolist()
    opt.load_state_dict(kept)
    opt.state.clear()
    assert not opt.state and opt.state[p] == {}
    with pytest.raises(tt.TtError):
        opt.state[p]["unheard of"] = tt.ones(2)


def test_groups_are_printed_separately():
    a, b = tt.nn.Parameter(tt.ones(1)), tt.nn.Parameter(tt.ones(1))
    text = repr(optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.1))
    assert (
        "weight_decay: 0\n\nParameter Group 1\n    dampening: 0\n    differentiable" in text
        and "capturable" not in text
    )
    with pytest.raises(TypeError):
        optim.SGD([a], capturable=True)


class Plain(optim.Optimizer):
    def __init__(self, params, **defaults):
        super().__init__(params, {"lr": 0.1, **defaults})

    def step(self, closure=None):
        pass


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lrs.StepLR(o, 2, gamma=0.5),
        lambda o: lrs.ExponentialLR(o, 0.9),
        lambda o: lrs.LambdaLR(o, lambda n: 1 / (n + 1)),
        lambda o: lrs.SequentialLR(o, [lrs.ConstantLR(o, 0.1, 2), lrs.StepLR(o, 1)], [2]),
    ],
)
def test_schedules_of_custom_optimizers(make):
    rates = []
    for kind in (Plain, optim.SGD):
        opt = kind([tt.nn.Parameter(tt.ones(1))], lr=0.3)
        schedule, seen = make(opt), []
        for _ in range(5):
            opt.step()
            schedule.step()
            seen.append((opt.param_groups[0]["lr"], schedule.get_last_lr()))
        opt.param_groups[0]["lr"] *= 3
        schedule.step()
        rates.append([*seen, opt.param_groups[0]["lr"], opt.param_groups[0]["initial_lr"]])
    assert rates[0] == rates[1]


def test_a_cycle_in_a_custom_optimizer():
    opt = Plain([tt.nn.Parameter(tt.ones(1))], betas=(0.9, 0.99))
    schedule = lrs.OneCycleLR(opt, max_lr=1.0, total_steps=10)
    assert opt.param_groups[0]["betas"] == (0.95, 0.99) and opt.param_groups[0][
        "lr"
    ] == pytest.approx(0.04)
    assert schedule.total_steps == 10 and lrs.StepLR(opt, 7, gamma=0.5).step_size == 7
    with pytest.raises(ValueError):
        lrs.OneCycleLR(Plain([tt.nn.Parameter(tt.ones(1))]), max_lr=1.0, total_steps=10)
    assert lrs._LRScheduler is lrs.LRScheduler
    assert "step(epoch)" in lrs.EPOCH_DEPRECATION_WARNING


# ---- hooks of steps ----


@pytest.mark.parametrize(
    "make", [lambda ps: tt.optim.SGD(ps, lr=0.5), lambda ps: Steps(ps, {"lr": 0.5})]
)
def test_hooks_of_steps(make):
    (x,) = leaves(1)
    opt, seen = make([x]), []
    other = make(leaves(1))
    before = opt.register_step_pre_hook(
        lambda o, args, kwargs: seen.append(("before", o is opt, args))
    )
    after = opt.register_step_post_hook(
        lambda o, args, kwargs: seen.append(("after", x.tolist()[0]))
    )
    x.sum().backward()
    closure = lambda: None
    opt.step(closure)
    other.step()
    assert seen == [("before", True, (opt, closure)), ("after", -0.5)]
    before.remove()
    opt.step()
    after.remove()
    opt.step()
    assert len(seen) == 3 and x.tolist()[0] == -1.5
    changed = opt.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: "another"), {}))
    assert opt.step() == "another" and opt.step(lambda: "one") == "another"
    changed.remove()
    assert opt.step(lambda: "one") == "one"
    opt.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="a pre-hook returned 3"):
        opt.step()


def test_hooks_of_all_optimizers():
    from tt.optim.optimizer import register_optimizer_step_post_hook as register_after
    from tt.optim.optimizer import register_optimizer_step_pre_hook as register_before

    seen = []
    one, other = (tt.optim.SGD(leaves(1), lr=0.5), Steps(leaves(1), {}))
    before = register_before(lambda o, args, kwargs: seen.append(("before", o)))
    after = register_after(lambda o, args, kwargs: seen.append(("after", o)))
    one.register_step_pre_hook(lambda o, args, kwargs: seen.append(("own before", o)))
    one.register_step_post_hook(lambda o, args, kwargs: seen.append(("own after", o)))
    try:
        one.step()
        other.step()
    finally:
        before.remove()
        after.remove()
    words = [word for word, o in seen if o is one]
    assert words == ["before", "own before", "own after", "after"]
    assert [word for word, o in seen if o is other] == ["before", "after"]
    other.step()
    assert len(seen) == 6


class Steps(tt.optim.Optimizer):
    def step(self, closure=None):
        with tt.no_grad():
            for p in self.param_groups[0]["params"]:
                if p.grad is not None:
                    p.sub_(p.grad * 0.5)
        return closure() if closure else None


def test_hooks_of_one_optimizer_leave_its_class_alone():
    class Plain(tt.optim.Optimizer):
        def step(self, closure=None):
            seen.append("step")

    class Derived(Plain):
        def step(self, closure=None):
            super().step(closure)

    seen = []
    w = tt.ones(2, requires_grad=True)
    for cls in (tt.optim.SGD, Plain, Derived):
        before = cls.step
        one, other = (cls([w], {}) if cls is not tt.optim.SGD else cls([w]) for _ in range(2))
        handle = one.register_step_pre_hook(lambda *_: seen.append("before"))
        one.register_step_post_hook(lambda *_: seen.append("after"))
        assert cls.step is before
        seen.clear()
        other.step()
        assert "before" not in seen and "after" not in seen
        seen.clear()
        one.step()
        assert seen.count("before") == seen.count("after") == 1 and seen[0] == "before"
        handle.remove()
        seen.clear()
        one.step()
        assert "before" not in seen and seen[-1] == "after"


def test_sparse_adam_refuses_dense_gradients():
    p = tt.nn.Parameter(tt.ones(2))
    opt = tt.optim.SparseAdam([p])
    assert opt.step(lambda: 3) == 3
    p.grad = tt.ones(2)
    before = p.tolist()
    with pytest.raises(RuntimeError, match="dense gradients"):
        opt.step()
    assert p.tolist() == before
    with pytest.raises(ValueError, match="betas"):
        tt.optim.SparseAdam([p], betas=(1.0, 0.9))


@pytest.mark.parametrize("cls", [optim.SGD, optim.Adafactor])
def test_a_parameter_that_appears_twice_is_updated_once(cls):
    (once,), (twice,) = leaves(1), leaves(1)
    with pytest.warns(UserWarning, match="more than once"):
        double = cls([twice, twice], lr=0.1)
    single = cls([once], lr=0.1)
    for p, optimizer in ((once, single), (twice, double)):
        p.grad = tt.ones(3, dtype=tt.float64)
        optimizer.step()
    assert tt.equal(once, twice) and len(double.param_groups[0]["params"]) == 1
    with pytest.warns(UserWarning):
        named = optim.SGD([("a", once), ("b", twice), ("c", once)], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="more than one parameter group"):
        named.add_param_group({"params": [("d", once)]})


def test_schedules_warn_of_what_their_users_mistake():
    """PyTorch's warnings, and get_lr of its classes, which old scripts call."""

    class Constant(lrs.LRScheduler):
        def get_lr(self):
            return [1.0]

    p = tt.ones(1, requires_grad=True)
    for make in (lambda opt: lrs.StepLR(opt, 2), Constant):
        schedule = make(optim.SGD([p], lr=1.0))
        with pytest.warns(UserWarning, match="before optimizer.step"):
            schedule.step()
        opt = optim.SGD([p], lr=1.0)
        schedule = make(opt)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            opt.step()
            schedule.step()
            schedule.step()
    with pytest.warns(UserWarning, match="is deprecated"):
        lrs.StepLR(opt, 1).step(2)
    schedule = lrs.ExponentialLR(optim.SGD([p], lr=2.0), 0.5)
    with pytest.warns(UserWarning, match="get_last_lr"):
        assert schedule.get_lr() == [2.0]


def pruned_and_grown(opt, keep, new):
    """Replaces the parameter of each group and its state by rows of the former ones and new rows,
    as programs that fit sets of points do."""
    for group in opt.param_groups:
        old = group["params"][0]
        stored = opt.state.get(old, None)
        zeros = tt.zeros(len(new), *old.shape[1:])
        for key in ("exp_avg", "exp_avg_sq"):
            stored[key] = tt.cat([stored[key][keep], zeros])
        del opt.state[old]
        rows = tt.cat([old.detach()[keep], new.expand_as(zeros)])
        group["params"][0] = tt.nn.Parameter(rows)
        opt.state[group["params"][0]] = stored


def test_parameters_are_replaced_with_their_states():
    start, keep = tt.arange(4.0) - 2, tt.tensor([True, False, True, True])
    x, plain = tt.nn.Parameter(start.clone()), tt.nn.Parameter(start[keep].clone())
    opt, other = optim.Adam([x], 0.1), optim.Adam([plain], 0.1)
    schedules = [optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (opt, other)]
    for i in range(4):
        if i == 2:
            pruned_and_grown(opt, keep, tt.ones(1))
        for o, schedule in zip((opt, other), schedules):
            (p,) = o.param_groups[0]["params"]
            o.zero_grad()
            (p**2).sum().backward()
            o.step()
            schedule.step()
    assert opt.param_groups[0]["params"][0][:3].tolist() == plain.tolist()
    assert opt.param_groups[0]["lr"] == other.param_groups[0]["lr"] == 0.1 * 0.5**4
    (state,) = opt.state.values()
    assert len(state["exp_avg"]) == 4 and state["step"] == 4
    assert (x.grad is not None) and x.tolist() != start.tolist()


def test_groups_and_parameters_are_edited():
    a, b, c = (tt.nn.Parameter(tt.ones(2)) for _ in range(3))
    opt = optim.SGD([a, b], 1.0, momentum=0.5)

    def step():
        for p in (a, b, c):
            p.grad = tt.ones(2)
        opt.step()
        return [p[0].item() for p in (a, b, c)]

    assert step() == [0, 0, 1]
    opt.param_groups[0]["params"].pop()
    assert step() == [-1.5, 0, 1]
    opt.param_groups[0]["params"].append(b)  # with the momentum that it had
    opt.param_groups.append({**opt.param_groups[0], "params": [c], "lr": 0.25})
    assert step() == [-3.25, -1.5, 0.75]
    removed = opt.param_groups.pop(0)
    removed["lr"] = 7.0
    assert step() == [-3.25, -1.5, 0.375] and opt.param_groups[0]["lr"] == 0.25
    opt.param_groups = []
    assert step() == [-3.25, -1.5, 0.375]
    opt.param_groups.append({"params": [a, a]})
    with pytest.raises(ValueError, match="more than one"):
        opt.step()


def test_a_state_of_another_shape_is_refused_by_the_step():
    p = tt.nn.Parameter(tt.ones(2))
    opt = optim.Adam([p], 0.1)
    p.grad = tt.ones(2)
    opt.step()
    opt.state[p]["exp_avg"] = tt.zeros(3)
    with pytest.raises(tt.errors.ShapeError):
        opt.step()
    opt.state[p]["exp_avg"] = tt.zeros(2)
    opt.step()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state["state"][1].update(exp_avg=tt.zeros(3)),
        lambda state: state["state"][1].update(step=tt.tensor(-1.0)),
        lambda state: state["param_groups"][0].update(lr="x"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(spoil):
    params = [tt.nn.Parameter(tt.ones(2)) for _ in range(2)]
    opt = optim.Adam(params, 0.1)
    for p in params:
        p.grad = tt.ones(2)
    opt.step()
    bad = copy.deepcopy(opt.state_dict())
    bad["state"][0]["exp_avg"].fill_(7)
    bad["param_groups"][0].update(eps=0.5, initial_lr=0.5)
    spoil(bad)
    before = repr(opt.state_dict())
    with pytest.raises((ValueError, tt.errors.TtError)):
        opt.load_state_dict(bad)
    assert repr(opt.state_dict()) == before


def test_rates_that_are_tensors():
    p, rate = tt.nn.Parameter(tt.ones(2)), tt.tensor(0.5)
    opt = optim.SGD([p], lr=rate)
    p.grad = tt.ones(2)
    opt.step()
    rate.mul_(2)
    opt.step()
    assert p.tolist() == [-0.5, -0.5] and opt.param_groups[0]["lr"] is rate
    schedule = optim.lr_scheduler.ExponentialLR(opt, 0.25)
    opt.step()
    schedule.step()
    assert rate.item() == 0.25 and p.tolist() == [-1.5, -1.5]
    state = opt.state_dict()
    assert state["param_groups"][0]["lr"] is rate
    opt.load_state_dict(state)
    assert opt.param_groups[0]["lr"].item() == 0.25


def test_groups_are_copied_and_pickled_as_dicts():
    p = tt.nn.Parameter(tt.ones(2))
    opt = optim.Adam([p], 0.1)
    for groups in (copy.deepcopy(opt.param_groups), pickle.loads(pickle.dumps(opt.param_groups))):
        assert type(groups) is list and type(groups[0]) is dict
        assert groups[0]["lr"] == 0.1 and groups[0]["params"][0].tolist() == [1, 1]
        groups[0]["lr"] = 5.0
    assert opt.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize("dtype", [tt.float64, tt.float16, tt.bfloat16])
@pytest.mark.parametrize(
    "kind", [optim.SGD, optim.RMSprop, optim.Adagrad, optim.Adadelta, optim.Rprop]
)
def test_states_follow_the_dtype_of_their_parameter(kind, dtype):
    """As in PyTorch, training goes on after module.double(), within the precision of the dtypes."""
    given = {"lr": 0.125, **({"momentum": 0.5} if kind is optim.SGD else {})}
    found = []
    for converts in (False, True):
        m = tt.nn.Linear(3, 1, bias=False)
        with tt.no_grad():
            m.weight.copy_(tt.tensor([[1.0, -2.0, 0.5]]))
        opt = kind(m.parameters(), **given)
        for step in range(4):
            if step == 2 and converts:
                m.to(dtype)
            opt.zero_grad()
            m(tt.tensor([[1.0, 2.0, 4.0]], dtype=m.weight.dtype)).square().sum().backward()
            opt.step()
        found.append(m.weight.double().flatten().tolist())
    assert m.weight.dtype is dtype
    assert all(not s.ndim or s.dtype is dtype for s in opt.state[m.weight].values())
    precision = {tt.float64: 1e-5, tt.float16: 2e-2, tt.bfloat16: 1e-1}[dtype]
    assert found[1] == pytest.approx(found[0], rel=precision, abs=precision)
