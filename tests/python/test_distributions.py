"""tt.distributions: densities against those of the definitions, samples against their moments,
divergences and entropies against sums and averages of log_prob."""
from math import erf, exp, inf, isnan, log, pi, sqrt

import pytest

import tt
from tt import distributions as D

T = tt.tensor
CONTINUOUS = [
    D.Normal(T([0.5, -1.0]), T([2.0, 0.5])),
    D.LogNormal(T([0.2, -0.3]), T([0.4, 0.2])),
    D.Uniform(T([-1.0, 2.0]), T([2.0, 2.5])),
    D.Exponential(T([0.5, 3.0])),
    D.Laplace(T([0.5, -1.0]), T([2.0, 0.5])),
]
OTHERS = [
    D.Normal(T([0.0, -1.5]), T([1.5, 1.0])),
    D.LogNormal(T([0.0, -0.5]), T([0.5, 0.5])),
    D.Uniform(T([-2.0, 1.0]), T([2.0, 3.0])),
    D.Exponential(T([1.5, 2.0])),
    D.Laplace(T([0.0, -1.5]), T([1.5, 1.0])),
]
names = [type(d).__name__ for d in CONTINUOUS]
DENSITIES = {
    "Normal": lambda x, m, s: exp(-(((x - m) / s) ** 2) / 2) / (s * sqrt(2 * pi)),
    "LogNormal": lambda x, m, s: exp(-(((log(x) - m) / s) ** 2) / 2) / (x * s * sqrt(2 * pi)),
    "Uniform": lambda x, a, b: 1 / (b - a),
    "Exponential": lambda x, r: r * exp(-r * x),
    "Laplace": lambda x, m, s: exp(-abs(x - m) / s) / (2 * s),
}


def near(found, expected, tolerance=1e-5):
    assert tt.allclose(found, expected, rtol=tolerance, atol=tolerance), (found, expected)


@pytest.mark.parametrize("d", CONTINUOUS, ids=names)
def test_densities_are_those_of_the_definitions(d):
    x = d.sample((3,))
    density = DENSITIES[type(d).__name__]
    parameters = [getattr(d, n).tolist() for n in d.arg_constraints]
    for row, found in zip(x.tolist(), d.log_prob(x).tolist()):
        for i in range(2):
            assert found[i] == pytest.approx(
                log(density(row[i], *(p[i] for p in parameters))), 1e-4
            )


@pytest.mark.parametrize("d", CONTINUOUS, ids=names)
def test_samples_have_the_moments(d):
    x = d.sample((100000,))
    assert x.shape == (100000, 2) and not x.requires_grad and bool(d.support.check(x).all())
    near(x.mean(0), d.mean, 0.03)
    near(x.std(0), d.stddev, 0.05)
    near(d.variance, d.stddev**2)
    near((x <= d.mean).float().mean(0), d.cdf(d.mean), 0.01)
    near(-d.log_prob(x).mean(0), d.entropy(), 0.02)
    near(d.perplexity(), d.entropy().exp())


@pytest.mark.parametrize("p, q", zip(CONTINUOUS, OTHERS), ids=names)
def test_divergences_are_averages(p, q):
    x = p.sample((200000,))
    near((p.log_prob(x) - q.log_prob(x)).mean(0), D.kl_divergence(p, q), 0.02)
    near(D.kl_divergence(p, p), tt.zeros(2))


@pytest.mark.parametrize("which", range(5), ids=names)
def test_gradients_flow_through_samples(which):
    parameters = [T([0.5, 1.0], requires_grad=True), T([2.0, 1.5], requires_grad=True)]
    cls = type(CONTINUOUS[which])
    d = cls(*parameters[: len(cls.arg_constraints)])
    d.rsample((3,)).sum().backward()
    d.entropy().sum().backward()
    d.log_prob(d.sample()).sum().backward()
    assert all(p.grad is not None for p in parameters[: len(cls.arg_constraints)])


@pytest.mark.parametrize("d", [CONTINUOUS[i] for i in (2, 3, 4)], ids=lambda d: type(d).__name__)
def test_icdf_is_the_inverse_of_cdf(d):
    x = d.sample((5,))
    near(d.icdf(d.cdf(x)), x, 1e-3)


def test_normal_of_numbers():
    d = D.Normal(0, 1)
    assert d.batch_shape == () and d.sample().shape == () and d.sample((2, 3)).shape == (2, 3)
    assert d.log_prob(T(0.0)).item() == pytest.approx(-0.9189385)
    assert d.cdf(T(1.0)).item() == pytest.approx(0.5 * (1 + erf(1 / sqrt(2))))
    assert repr(d) == "Normal(loc: 0.0, scale: 1.0)"
    wide = D.Normal(T([0.0, 1.0]), 2).expand((3, 2))
    assert wide.batch_shape == (3, 2) and wide.sample((4,)).shape == (4, 3, 2)
    assert repr(wide) == "Normal(loc: tt.Size([3, 2]), scale: tt.Size([3, 2]))"
    tt.manual_seed(4)
    first = d.sample((3,))
    tt.manual_seed(4)
    assert tt.equal(d.sample((3,)), first)


def test_uniform_outside_is_impossible():
    d = D.Uniform(0.0, 2.0, validate_args=False)
    assert d.log_prob(T([-1.0, 1.0, 2.0])).tolist() == pytest.approx([-inf, -log(2), -inf])
    assert D.kl_divergence(D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)).item() == inf


@pytest.mark.parametrize("how", ["probs", "logits"])
def test_bernoulli(how):
    p = T([0.2, 0.5, 0.9])
    d = D.Bernoulli(**{how: p if how == "probs" else (p / (1 - p)).log()})
    near(d.probs, p)
    near(d.logits, (p / (1 - p)).log())
    x = d.sample((20000,))
    near(x.mean(0), d.mean, 0.02)
    assert set(x.flatten().tolist()) == {0, 1} and d.sample().dtype is tt.float32
    values = d.enumerate_support()
    assert values.tolist() == [[0] * 3, [1] * 3]
    near(d.log_prob(values).exp(), tt.stack([1 - p, p]))
    near(d.entropy(), -(p * p.log() + (1 - p) * (1 - p).log()))
    near(d.variance, p * (1 - p))
    assert isnan(d.mode[1].item()) and d.mode[2].item() == 1
    q = D.Bernoulli(T([0.5, 0.4, 0.0]))
    found = D.kl_divergence(d, q).tolist()
    expected = [
        a * log(a / b) + (1 - a) * log((1 - a) / (1 - b)) for a, b in ((0.2, 0.5), (0.5, 0.4))
    ]
    assert found[:2] == pytest.approx(expected, abs=1e-5) and found[2] == inf
    sure = D.Bernoulli(T([0.0, 1.0]))
    assert D.kl_divergence(sure, D.Bernoulli(T([0.5, 0.5]))).tolist() == pytest.approx([log(2)] * 2)


@pytest.mark.parametrize("how", ["probs", "logits"])
def test_categorical(how):
    weights = T([[1.0, 3.0, 4.0], [2.0, 2.0, 4.0]])
    p = weights / 8
    d = D.Categorical(**{how: weights if how == "probs" else weights.log() + 1})
    near(d.probs, p)
    near(d.logits, p.log())
    assert d.batch_shape == (2,) and d.event_shape == () and d.mode.tolist() == [2, 2]
    x = d.sample((30000,))
    assert x.dtype is tt.int64 and x.shape == (30000, 2) and d.sample().shape == (2,)
    for value in range(3):
        near((x == value).float().mean(0), p[:, value], 0.02)
    values = d.enumerate_support()
    near(d.log_prob(values).exp(), p.T)
    near(d.log_prob(T(1)).exp(), p[:, 1])
    near(d.entropy(), -(p * p.log()).sum(-1))
    q = D.Categorical(T([[1.0, 1.0, 2.0], [0.0, 1.0, 1.0]]))
    first = (p[0] * (p[0] / T([0.25, 0.25, 0.5])).log()).sum().item()
    assert D.kl_divergence(d, q).tolist() == pytest.approx([first, inf], abs=1e-5)
    wide = d.expand((4, 2))
    assert wide.sample().shape == (4, 2) and wide.log_prob(T(0)).shape == (4, 2)
    assert all(map(isnan, d.mean.tolist()))


def test_a_policy_gradient_step_learns():
    tt.manual_seed(1)
    logits = tt.zeros(3, requires_grad=True)
    opt = tt.optim.SGD([logits], lr=0.5)
    for _ in range(200):
        d = D.Categorical(logits=logits)
        action = d.sample()
        reward = float(action.item() == 1)
        opt.zero_grad()
        (-d.log_prob(action) * reward).backward()
        opt.step()
    assert D.Categorical(logits=logits).probs[1].item() > 0.9


def test_independent():
    base = D.Normal(tt.randn(4, 3), tt.ones(4, 3))
    d = D.Independent(base, 1)
    assert d.batch_shape == (4,) and d.event_shape == (3,)
    x = d.rsample((5,))
    assert x.shape == (5, 4, 3)
    near(d.log_prob(x), base.log_prob(x).sum(-1))
    near(d.entropy(), base.entropy().sum(-1))
    other = D.Independent(D.Normal(tt.zeros(4, 3), tt.ones(4, 3)), 1)
    near(D.kl_divergence(d, other), (base.loc**2 / 2).sum(-1))
    assert d.expand((2, 4)).sample().shape == (2, 4, 3)
    with pytest.raises(ValueError):
        D.Independent(base, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Normal(0, -1),
        lambda: D.Normal(float("nan"), 1),
        lambda: D.Normal("a", 1),
        lambda: D.Uniform(1.0, 1.0),
        lambda: D.Exponential(0.0),
        lambda: D.Bernoulli(1.5),
        lambda: D.Bernoulli(),
        lambda: D.Bernoulli(0.5, 0.5),
        lambda: D.Categorical(T([-1.0, 2.0])),
        lambda: D.Categorical(T(1.0)),
        lambda: D.Categorical(T([1.0, 1.0])).log_prob(T(2)),
        lambda: D.Bernoulli(0.5).log_prob(T(0.5)),
        lambda: D.Normal(0, 1).log_prob(1.0),
        lambda: D.Normal(tt.zeros(2), 1).log_prob(tt.zeros(3)),
        lambda: D.Exponential(1.0).log_prob(T(-1.0)),
    ],
)
def test_what_does_not_fit_is_refused(make):
    with pytest.raises(ValueError):
        make()


def test_validation_may_be_off():
    assert D.Normal(0, -1, validate_args=False).scale.item() == -1
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Exponential(1.0).log_prob(T(-1.0)).item() == 1
    finally:
        D.Distribution.set_default_validate_args(True)


def test_formulas_are_found_by_class_and_can_be_added():
    class Mine(D.Normal):
        pass

    class Alone(D.Distribution):
        pass

    assert D.kl_divergence(Mine(0, 1), D.Normal(0, 1)).item() == 0
    with pytest.raises(NotImplementedError, match="Alone"):
        D.kl_divergence(Alone(), D.Normal(0, 1))
    D.register_kl(Alone, D.Normal)(lambda p, q: "found")
    assert D.kl_divergence(Alone(), Mine(0, 1)) == "found"
    with pytest.raises(NotImplementedError, match="rsample"):
        D.Bernoulli(0.5).rsample()
