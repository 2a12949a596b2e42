"""tt.distributions: densities against those of the definitions, samples against their moments,
divergences and entropies against sums and averages of log_prob."""
import json
from math import erf, exp, inf, isfinite, isnan, log, nan, pi, sqrt
from pathlib import Path

import pytest

import tt
from tt import distributions as D
from tt.distributions import transforms

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


def of_each_class():
    return {
        "beta": D.Beta(2.0, 3.0),
        "share": D.ContinuousBernoulli(0.3),
        "exponential": D.Exponential(2.0),
        "gamma": D.Gamma(2.0, 3.0),
        "gumbel": D.Gumbel(0.5, 2.0),
        "laplace": D.Laplace(0.5, 2.0),
        "normal": D.Normal(0.5, 2.0),
        "pareto": D.Pareto(0.1, 4.0),
        "poisson": D.Poisson(2.0),
        "bernoulli": D.Bernoulli(0.3),
        "uniform": D.Uniform(0.2, 0.7),
    }


# those of PyTorch
DIVERGENCES = {
    "beta": {"share": 0.179913, "exponential": 0.341759, "gamma": 0.321015, "normal": 1.853242},
    "share": {"exponential": 0.196684, "normal": 1.652134, "uniform": inf},
    "exponential": {"gamma": 0.266285, "gumbel": 1.413515, "normal": 1.336483, "beta": inf},
    "gamma": {"exponential": 0.161583, "gumbel": 1.241243, "normal": 1.164732, "uniform": inf},
    "gumbel": {"normal": 0.330779, "exponential": inf},
    "laplace": {"normal": 0.225791, "gamma": inf},
    "normal": {"gumbel": 0.229783, "laplace": 0.072093, "pareto": inf, "share": inf},
    "pareto": {"exponential": 2.012399, "gamma": 2.69424, "normal": 4.068049, "uniform": inf},
    "poisson": {"bernoulli": inf},
    "bernoulli": {"poisson": 1.181192},
    "uniform": {
        "beta": 0.333102,
        "share": 0.680518,
        "exponential": 0.9,
        "gamma": 0.701492,
        "gumbel": 2.389282,
        "normal": 2.30815,
        "pareto": 4.239344,
    },
}


def test_divergences_of_different_classes():
    made = of_each_class()
    for p, values in DIVERGENCES.items():
        for q, value in values.items():
            found = D.kl_divergence(made[p], made[q]).item()
            assert found == pytest.approx(value, rel=1e-4), (p, q)
    for p in (D.Uniform(-1.0, 0.5), D.Uniform(0.5, 2.0)):
        assert D.kl_divergence(p, made["beta"]).item() == inf
    many = D.kl_divergence(D.Normal(tt.zeros(3, 1), 1.0), D.Uniform(tt.zeros(2), 1.0))
    assert many.tolist() == [[inf] * 2] * 3
    p, q = D.Weibull(1.5, 2.0), D.Weibull(2.0, 1.3)
    assert D.kl_divergence(p, q).item() == pytest.approx(0.2220, abs=1e-4)
    assert isnan(made["uniform"].mode.item())


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


# ---- what PyTorch gives: distributions.json ----


def T64(values):
    return tt.tensor(values, dtype=tt.float64)


COVARIANCE = [[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]]


def makers():
    """Each function makes a distribution for a factor of its parameters, in float64."""
    N, t = D.Normal, D.transforms
    return {
        "Gamma": lambda k: D.Gamma(T64([0.3, 2.0, 7.0]) * k, T64([1.0, 2.0, 0.5])),
        "Beta": lambda k: D.Beta(T64([0.5, 2.0, 5.0]) * k, T64([1.0, 3.0, 0.7])),
        "StudentT": lambda k: D.StudentT(T64([5.0, 8.0, 12.0]) * k, T64(1.0), T64(2.0)),
        "Chi2": lambda k: D.Chi2(T64([1.0, 3.0, 9.0]) * k),
        "HalfNormal": lambda k: D.HalfNormal(T64([1.0, 2.0, 0.3]) * k),
        "Gumbel": lambda k: D.Gumbel(T64([0.0, 1.0, 2.0]) * k, T64([1.0, 2.0, 0.5]) * k),
        "Weibull": lambda k: D.Weibull(T64([1.0, 2.0, 3.0]), T64([1.5, 0.9, 0.4]) * k),
        "Pareto": lambda k: D.Pareto(T64([0.1, 0.2, 0.3]), T64([4.0, 6.0, 1.0]) * k),
        "Geometric": lambda k: D.Geometric(T64([0.2, 0.5, 0.4]) * k),
        "Poisson": lambda k: D.Poisson(T64([0.5, 4.0, 60.0]) * k),
        "Binomial": lambda k: D.Binomial(20, T64([0.02, 0.5, 0.4]) * k),
        "NegativeBinomial": lambda k: D.NegativeBinomial(
            T64([3.0, 5.0, 2.0]), T64([0.3, 0.6, 0.1]) * k
        ),
        "Dirichlet": lambda k: D.Dirichlet(T64([[0.5, 2.0, 3.0], [1.0, 1.0, k]])),
        "Multinomial": lambda k: D.Multinomial(5, T64([0.2 * k, 0.3, 0.5])),
        "OneHotCategorical": lambda k: D.OneHotCategorical(T64([0.2 * k, 0.3, 0.5])),
        "Cauchy": lambda k: D.Cauchy(T64([0.0, 1.0, 2.0]) * k, T64([1.0, 2.0, 0.5]) * k),
        "HalfCauchy": lambda k: D.HalfCauchy(T64([1.0, 2.0, 3.0]) * k),
        "RelaxedOneHotCategorical": lambda k: D.RelaxedOneHotCategorical(
            T64(0.7), T64([0.2 * k, 0.3, 0.5])
        ),
        "RelaxedBernoulli": lambda k: D.RelaxedBernoulli(T64(0.7), T64([0.2 * k, 0.3, 0.5])),
        "MVN": lambda k: D.MultivariateNormal(T64([0.0, 1.0, 2.0]) * k, T64(COVARIANCE)),
        "LowRank": lambda k: D.LowRankMultivariateNormal(
            T64([0.0, 1.0, 2.0]) * k,
            T64([[1.0, 0.2], [0.5, -1.0], [0.3, 0.7]]),
            T64([[0.5, 1.0, 2.0], [1.0, 1.0, 0.1]]),
        ),
        "ContinuousBernoulli": lambda k: D.ContinuousBernoulli(T64([0.1 * k, 0.4999, 0.7])),
        "GeneralizedPareto": lambda k: D.GeneralizedPareto(
            T64([0.1, 0.0, 0.2]) * k, T64([1.0, 2.0, 1.0]), T64([0.3, 0.0, -0.5])
        ),
        "LKJCholesky": lambda k: D.LKJCholesky(3, T64([0.5, 1.0, 3.0]) * k),
        "Wishart": lambda k: D.Wishart(T64(5.0) * k, T64(COVARIANCE)),
        "T1": lambda k: D.TransformedDistribution(
            N(T64([0.0, 1.0, 0.4]) * k, T64([1.0, 2.0, 0.5])),
            [t.ExpTransform(), t.AffineTransform(T64(0.0), T64(2.0))],
        ),
        "T2": lambda k: D.TransformedDistribution(
            N(T64([0.0, 1.0]) * k, T64([1.0, 2.0])), [t.StickBreakingTransform()]
        ),
        "T3": lambda k: D.TransformedDistribution(
            D.Uniform(T64([0.0] * 3), T64([1.0] * 3)),
            [t.SigmoidTransform().inv, t.AffineTransform(1.0, -2.0 * k)],
        ),
        "T4": lambda k: D.TransformedDistribution(
            D.Independent(N(T64([[0.0, 1.0, 0.4]]) * k, T64([1.0, 2.0, 0.5])), 1),
            [t.TanhTransform()],
        ),
    }


MAKERS = makers()
RECORDED = json.loads((Path(__file__).parent / "distributions.json").read_text())
COUNTS = ("Poisson", "Binomial", "Geometric", "NegativeBinomial")
VALUES = {
    "Dirichlet": [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]],
    "Multinomial": [1.0, 3.0, 1.0],
    "OneHotCategorical": [0.0, 1.0, 0.0],
    "RelaxedOneHotCategorical": [0.2, 0.3, 0.5],
    "LKJCholesky": [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.28, 0.96]],
    "Wishart": COVARIANCE,
    "T2": [0.2, 0.3, 0.5],
    "T4": [[0.2, 0.3, 0.5]],
    **dict.fromkeys(COUNTS, [0.0, 2.0, 5.0]),
}


def answers(name):
    """What a distribution says of itself: name in distributions.json -> function."""
    d, other = MAKERS[name](1.0), MAKERS[name](1.3)
    value = T64(VALUES.get(name, [0.3, 0.6, 0.9]))
    return {
        "lp": lambda: d.log_prob(value),
        "cdf": lambda: d.cdf(value),
        "icdf": lambda: d.icdf(T64([0.3, 0.6, 0.9])),
        "ent": d.entropy,
        "mean": lambda: d.mean,
        "var": lambda: d.variance,
        "mode": lambda: d.mode,
        "kl": lambda: D.kl_divergence(d, other),
        "ex": lambda: d.expand((2, *d.batch_shape)).log_prob(value),
    }


@pytest.mark.parametrize("name", MAKERS)
def test_recorded_answers_equal_pytorchs(name):
    found = answers(name)
    assert "lp" in RECORDED[name]
    for what, expected in RECORDED[name].items():
        result, expected = found[what](), T64(expected)
        close = tt.isclose(result, expected, 1e-6, 1e-6, equal_nan=True)
        assert result.shape == expected.shape and bool(close.all()), (what, result, expected)


@pytest.mark.parametrize("name", MAKERS)
def test_samples_follow_the_density(name):
    d = MAKERS[name](1.0)
    x = d.sample((4000,))
    assert tuple(x.shape) == (4000, *d.batch_shape, *d.event_shape) and x.dtype is tt.float64
    assert bool(d.support.check(x).all()) and not x.requires_grad
    if "ent" in RECORDED[name]:
        near(-d.log_prob(x).mean(0), d.entropy(), 0.1)
    moments = RECORDED[name].get("mean"), RECORDED[name].get("var")
    if None not in moments and all(isfinite(v) for v in T64(moments).flatten().tolist()):
        deviation = (x.mean(0) - d.mean).abs()
        assert bool((deviation <= 5 * (d.variance / 4000).sqrt() + 1e-9).all())


def test_counts_of_large_rates_and_numbers():
    for d in (D.Poisson(T([11.0, 500.0])), D.Binomial(400, T([0.3, 0.9]))):
        x = d.sample((20000,))
        assert bool(((x.mean(0) - d.mean).abs() <= 5 * (d.variance / 20000).sqrt()).all())
        near(x.var(0) / d.variance, tt.ones(2), 0.05)


def test_gradients_of_gamma_samples():
    a = T64([0.05, 0.3, 1.0, 5.0, 50.0, 300.0]).requires_grad_()
    x = D.Gamma(a, T64(1.0)).rsample((20000,))
    (g,) = tt.autograd.grad(x.mean(0).sum(), a, retain_graph=True)
    near(g, tt.ones_like(g), 0.1)  # of the mean, which is a
    (g,) = tt.autograd.grad(x.log().mean(0).sum(), a)
    near(g / tt.polygamma(1, a.detach()), tt.ones_like(g), 0.1)
    for d in (D.Beta(a, 2.0), D.StudentT(a), D.Dirichlet(a)):
        assert d.rsample((2,)).requires_grad


def test_wrong_parameters_of_more_distributions():
    wrong = (
        lambda: D.Gamma(-1.0, 1.0),
        lambda: D.Binomial(3),
        lambda: D.Poisson(-1.0),
        lambda: D.Dirichlet(T(1.0)),
        lambda: D.Geometric(0.0),
        lambda: D.Poisson(1.0).log_prob(T(0.5)),
        lambda: D.OneHotCategorical(T([0.5, 0.5])).log_prob(T([1.0, 1.0])),
        lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), [3]),
    )
    for call in wrong:
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("name", [n for n in D.transforms.__all__ if n != "Transform"])
def test_transforms_and_their_inverses(name):
    t = D.transforms
    made = {
        "AffineTransform": lambda: t.AffineTransform(1.0, -2.0),
        "PowerTransform": lambda: t.PowerTransform(2.0),
        "ComposeTransform": lambda: t.ComposeTransform([t.ExpTransform(), t.PowerTransform(0.5)]),
        "IndependentTransform": lambda: t.IndependentTransform(t.TanhTransform(), 1),
        "CatTransform": lambda: t.CatTransform([t.ExpTransform(), t.TanhTransform()], 0, [1, 2]),
        "StackTransform": lambda: t.StackTransform([t.ExpTransform(), t.TanhTransform()] * 2, -1),
        "ReshapeTransform": lambda: t.ReshapeTransform((3,), (3, 1)),
        "CumulativeDistributionTransform": lambda: t.CumulativeDistributionTransform(
            D.Normal(T64(0.0), 1.0)
        ),
        "identity_transform": lambda: t.identity_transform,
    }.get(name, getattr(t, name))()
    x = T64([0.3, 0.1, 0.6])
    if made.event_dim_in == 2:
        x = T64(COVARIANCE)
    if name == "StackTransform":
        x = T64([0.3, 0.1, 0.6, 0.2])
    x.requires_grad_()
    y = made(x)
    assert made == made and made.forward_shape(tuple(x.shape)) == tuple(y.shape)
    if made.event_dim_in == 2:
        near(made.inv(y).detach().tril(), x.detach().tril())
    if not made.bijective:
        return
    near(made.inv(y).detach(), x.detach())
    if made.event_dim_out > 0 and name != "IndependentTransform":
        assert made.inverse_shape(tuple(y.shape)) == tuple(x.shape)
        return
    slopes = [tt.autograd.grad(one, x, retain_graph=True)[0] for one in y.unbind()]
    found = made.log_abs_det_jacobian(x, y)
    if made.event_dim_in == 0:
        near(found.detach(), tt.stack([g[i] for i, g in enumerate(slopes)]).abs().log())
    elif name == "IndependentTransform":
        near(found.detach(), sum(g[i].abs().log() for i, g in enumerate(slopes)))


CONSTRAINTS = {
    "real": D.constraints.real,
    "positive": D.constraints.positive,
    "less_than": D.constraints.less_than(2.0),
    "unit_interval": D.constraints.unit_interval,
    "interval": D.constraints.interval(-1.0, 3.0),
    "independent": D.constraints.independent(D.constraints.greater_than_eq(1.0), 1),
    "simplex": D.constraints.simplex,
    "cat": D.constraints.cat([D.constraints.positive, D.constraints.real], 0, [1, 2]),
    "cat_of_events": D.constraints.cat(
        [
            D.constraints.independent(c, 1)
            for c in (D.constraints.positive, D.constraints.unit_interval)
        ],
        -1,
        [2, 1],
    ),
    "stack": D.constraints.stack(
        [D.constraints.positive, D.constraints.real, D.constraints.less_than(1.0)], -1
    ),
    "corr_cholesky": D.constraints.corr_cholesky,
    "lower_cholesky": D.constraints.lower_cholesky,
    "positive_definite": D.constraints.positive_definite,
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_transforms_to_constraints_equal_pytorchs(name):
    constraint, recorded = CONSTRAINTS[name], RECORDED["constraints"][name]
    x = T64(COVARIANCE if constraint.event_dim == 2 and "corr" not in name else [0.1, 0.2, -0.4])
    if name == "cat_of_events":
        x = x[None]
    for registry, what in ((D.transform_to, "transform_to"), (D.biject_to, "biject_to")):
        if recorded[what] is None:
            with pytest.raises(NotImplementedError):
                registry(constraint)
            continue
        transform = registry(constraint)
        y = transform(x)
        near(y, T64(recorded[what]), 1e-9)
        assert bool(constraint.check(y).all())
    if recorded["biject_to"] is not None:
        near(transform.log_abs_det_jacobian(x, y), T64(recorded["slope"]), 1e-9)


def test_constraints_and_transforms_of_the_application():
    class Multiple(D.constraints.Constraint):
        def __init__(self, of):
            self.of = of

        def check(self, value):
            return value % self.of == 0

    class Around(D.Distribution):
        arg_constraints = {"low": D.constraints.dependent, "high": D.constraints.dependent}

        def __init__(self, low, high):
            self.low, self.high = low, high
            super().__init__(low.shape)

        @D.constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return D.constraints.interval(self.low, self.high)

    d = Around(T(1.0), T(2.0))
    assert repr(d.support) == "Interval(lower_bound=1.0, upper_bound=2.0)"
    assert D.constraints.is_dependent(Around.support)
    with pytest.raises(ValueError):
        d._validate_sample(T(3.0))

    @D.transform_to.register(Multiple)
    def scaled(constraint):
        return D.AffineTransform(0, constraint.of)

    assert D.transform_to(Multiple(3))(T(2.0)) == 6 and repr(Multiple(3)) == "Multiple(of=3)"
    with pytest.raises(NotImplementedError):
        D.biject_to(Multiple(3))
    with pytest.raises(TypeError):
        D.biject_to.register(3, scaled)


def test_wrong_parameters_of_distributions_of_matrices():
    wrong = (
        lambda: D.LKJCholesky(1),
        lambda: D.Wishart(T(1.0), tt.eye(3)),
        lambda: D.Wishart(T(5.0), tt.eye(3), scale_tril=tt.eye(3)),
        lambda: D.Wishart(T(5.0), -tt.eye(3)),
        lambda: D.Wishart(T(5.0), tt.eye(3)).log_prob(-tt.eye(3)),
        lambda: D.LowRankMultivariateNormal(tt.zeros(3), tt.ones(2, 1), tt.ones(3)),
        lambda: D.LowRankMultivariateNormal(tt.zeros(3), tt.ones(3, 1), -tt.ones(3)),
        lambda: D.ContinuousBernoulli(1.5),
        lambda: D.GeneralizedPareto(0.0, -1.0, 0.0),
        lambda: D.GeneralizedPareto(0.0, 1.0, -1.0).log_prob(T(1.5)),
        lambda: D.ReshapeTransform((3,), (2,)),
        lambda: D.CorrCholeskyTransform().forward_shape((4,)),
        lambda: D.CatTransform([D.ExpTransform()], 0, [1, 2]),
        lambda: D.CatTransform([D.ExpTransform()], 0, [2])(T([1.0])),
        lambda: D.StackTransform([D.ExpTransform()], 0)(T([1.0, 2.0])),
    )
    for call in wrong:
        with pytest.raises(ValueError):
            call()


def test_forms_of_the_multivariate_normal():
    loc, tril = T64([1.0, -1.0]), T64([[2.0, 0.0], [0.5, 1.0]])
    covariance = tril @ tril.mT
    forms = (
        D.MultivariateNormal(loc, scale_tril=tril),
        D.MultivariateNormal(loc, covariance),
        D.MultivariateNormal(loc, precision_matrix=tt.linalg.inv(covariance)),
    )
    x = T64([[0.3, 0.4], [1.0, 2.0]])
    for d in forms:
        near(d.log_prob(x), forms[0].log_prob(x))
        near(d.covariance_matrix, covariance)
        near(d.precision_matrix @ covariance, tt.eye(2, dtype=tt.float64))
        assert d.expand((3,)).sample((2,)).shape == (2, 3, 2)

    class Lazy(D.MultivariateNormal):
        """Computes its factor when it is asked, as GPyTorch's does."""

        def __init__(self):
            D.Distribution.__init__(self, (), (2,))
            self.loc = loc

        _unbroadcasted_scale_tril = property(lambda self: tril)

    near(Lazy().log_prob(x), forms[0].log_prob(x))
    near(Lazy().scale_tril, tril)
    several = D.MultivariateNormal(T64([[1.0, -1.0]] * 3), covariance)
    assert several.entropy().shape == (3,) and several.scale_tril.shape == (3, 2, 2)
    leaf = tril.clone().requires_grad_()
    D.MultivariateNormal(loc, scale_tril=leaf).rsample((5,)).sum().backward()
    assert leaf.grad is not None
    for wrong in (
        lambda: D.MultivariateNormal(loc),
        lambda: D.MultivariateNormal(loc, covariance, scale_tril=tril),
        lambda: D.MultivariateNormal(loc, -covariance),
        lambda: D.MultivariateNormal(loc, tt.eye(3)),
    ):
        with pytest.raises(ValueError):
            wrong()


MIXTURE = D.MixtureSameFamily(
    D.Categorical(T64([0.3, 0.7])), D.Normal(T64([0.0, 1.0]), T64([1.0, 2.0]))
)
# log_prob of (0.3, 0.8), mean and variance, of PyTorch; of VonMises by quadrature
OF_OTHERS = [
    (
        D.InverseGamma(T64([1.5, 3.0]), T64([2.0, 0.5])),
        ([-2.496231647, -2.505014517], [4.0, 0.25], [inf, 0.0625]),
    ),
    (
        D.FisherSnedecor(T64([1.5, 3.0]), T64([2.5, 6.0])),
        ([-0.5181640087, -0.7840459834], [5.0, 1.5], [None, 5.25]),
    ),
    (
        D.Kumaraswamy(T64([1.5, 3.0]), T64([2.0, 0.5])),
        ([0.3171202406, 0.317897942], [0.45, 0.8413092632], [0.05464285714, 0.03137288344]),
    ),
    (
        D.VonMises(T64([0.1, 2.0]), T64([0.5, 200.0])),
        ([-1.40939349667, -125.798855525], [0.1, 2.0], [0.757500387419, 0.00250314074836]),
    ),
    (MIXTURE, ([-1.403438623, -1.487924698], [0.7], [3.31])),
]


@pytest.mark.parametrize("d, expected", OF_OTHERS, ids=lambda x: type(x).__name__)
def test_distributions_of_others(d, expected):
    found = d.log_prob(T64([0.3, 0.8])), d.mean, d.variance
    for values, numbers in zip(found, expected):
        for v, n in zip(values.reshape(-1).tolist(), numbers):
            assert isnan(v) if n is None else v == pytest.approx(n, rel=1e-8)
    tt.manual_seed(1)
    drawn = d.expand((3, *d.batch_shape)).sample((4000,))
    assert drawn.shape == (4000, 3, *d.batch_shape) and bool(d.support.check(drawn).all())
    if type(d) is D.VonMises:
        near(drawn.sin().mean((0, 1)), d.mean.sin() * (1 - d.variance), 0.03)
    elif type(d) is not D.InverseGamma and type(d) is not D.FisherSnedecor:
        near(drawn.mean((0, 1)), d.mean, 0.05)


def test_mixtures_of_vectors():
    parts = D.Independent(D.Normal(tt.zeros(2, 3) + T([[0.0], [5.0]]), tt.ones(2, 3)), 1)
    d = D.MixtureSameFamily(D.Categorical(T([0.25, 0.75])), parts)
    assert d.event_shape == (3,) and d.mean.tolist() == [3.75] * 3
    assert d.log_prob(tt.zeros(4, 3)).shape == (4,) and d.sample((5,)).shape == (5, 3)
    near(MIXTURE.cdf(T64(99.0)), T64(1.0))
    logistic = D.LogisticNormal(T64([0.1, 0.2]), T64([1.0, 2.0]))
    near(logistic.log_prob(T64([0.2, 0.3, 0.5])), T64(0.5978332919), 1e-8)
    near(logistic.rsample((7,)).sum(-1), tt.ones(7, dtype=tt.float64))
    for wrong in (
        lambda: D.MixtureSameFamily(parts, parts),
        lambda: D.MixtureSameFamily(D.Categorical(T([0.5, 0.25, 0.25])), parts),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_a_family_of_ones_own():
    """The entropy of an exponential family follows from its normalizer."""

    class Exponential(tt.distributions.ExponentialFamily):
        arg_constraints = {}
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -(-x).log()

    rate = tt.tensor([0.5, 2.0])
    tt.testing.assert_close(Exponential(rate).entropy(), 1 - rate.log())


def test_helpers_of_distributions():
    from tt.distributions import utils

    calls = []

    class Owner:
        @utils.lazy_property
        def value(self):
            calls.append(self)
            return tt.is_grad_enabled()

    owner = Owner()
    with tt.no_grad():
        assert owner.value and owner.value and len(calls) == 1
    vec = tt.arange(1.0, 7.0)
    matrix = utils.vec_to_tril_matrix(vec)
    assert matrix.tolist() == [[1, 0, 0], [2, 3, 0], [4, 5, 6]]
    assert tt.equal(utils.tril_matrix_to_vec(matrix), vec)
    below = utils.vec_to_tril_matrix(tt.arange(1.0, 4.0), -1)
    assert below.tolist() == [[0, 0, 0], [1, 0, 0], [2, 3, 0]]
    with pytest.raises(ValueError, match="no triangle"):
        utils.vec_to_tril_matrix(tt.ones(4))
    probs = tt.tensor([0.25, 0.75])
    for binary in (False, True):
        logits = utils.probs_to_logits(probs, binary)
        tt.testing.assert_close(utils.logits_to_probs(logits, binary), probs)


def test_values_at_the_ends_of_supports():
    relaxed = tt.distributions.RelaxedBernoulli(0.5, tt.tensor([0.3, 0.6]))
    assert relaxed.log_prob(tt.tensor([0.0, 1.0])).isfinite().all()
    assert tt.distributions.Gamma(1.0, 2.0).log_prob(3).item() == pytest.approx(log(2) - 6)
    part = tt.distributions.Multinomial(4, tt.tensor([0.5, 0.5])).log_prob(tt.tensor([1.0, 1.0]))
    assert part.item() == pytest.approx(log(0.5))


def test_transforms_may_be_modules_and_keep_the_last_pair():
    from tt.distributions import constraints, transforms

    class Shift(transforms.Transform, tt.nn.Module):
        """As flows of other packages define theirs."""

        domain = constraints.independent(constraints.real, 1)
        codomain = constraints.independent(constraints.real, 1)
        bijective = True

        def __init__(self):
            super().__init__(cache_size=1)
            self.shift, self.calls = tt.nn.Linear(2, 2), 0

        def _call(self, x):
            self.calls += 1
            return x + self.shift.bias

        def _inverse(self, y):
            self.calls += 1
            return y - self.shift.bias

        def log_abs_det_jacobian(self, x, y):
            return tt.zeros(x.shape[:-1])

    t = Shift()
    assert (t.event_dim, t.event_dim_in, t.event_dim_out) == (1, 1, 1)
    x = tt.randn(3, 2)
    y = t(x)
    assert t(x) is y and t.inv(y) is x and t.calls == 1
    assert len(list(t.parameters())) == 2
    base = D.Normal(tt.zeros(2), 1.0)
    flow = D.TransformedDistribution(base, [t])
    assert flow.event_shape == (2,) and flow.log_prob(y).shape == (3,)
    exp = transforms.ExpTransform().with_cache()
    y = exp(x)
    assert exp.inv(y) is x and exp == transforms.ExpTransform(cache_size=1)
    with pytest.raises(ValueError, match="cache_size"):
        transforms.ExpTransform(cache_size=2)


def test_constraints_have_pytorchs_private_names():
    from tt.distributions import constraints as c

    assert isinstance(c.real, c._Real) and isinstance(c.unit_interval, c._Interval)
    assert isinstance(c.real_vector, c._IndependentConstraint)
    assert isinstance(c.positive, c._GreaterThan) and isinstance(c.simplex, c._Simplex)
    assert c._DependentProperty is c.dependent_property
    assert not hasattr(c, "_Unknown") and not hasattr(c, "__wrapped__")


def test_event_dims_of_composed_transforms():
    reshape = transforms.ReshapeTransform((4,), (2, 2))
    t = transforms.ComposeTransform([reshape, transforms.ExpTransform()])
    x = tt.arange(12.0).reshape(3, 4) / 8
    assert tt.allclose(t.log_abs_det_jacobian(x, t(x)), x.sum(-1))
    assert (t.domain.event_dim, t.codomain.event_dim) == (1, 2)
    d = D.TransformedDistribution(D.Normal(tt.zeros(4), 1.0), [reshape, transforms.ExpTransform()])
    assert (d.batch_shape, d.event_shape) == ((), (2, 2)) and d.sample((3,)).shape == (3, 2, 2)
    rows = D.TransformedDistribution(D.LKJCholesky(3), transforms.CorrCholeskyTransform().inv)
    assert (rows.batch_shape, rows.event_shape, rows.sample((4,)).shape) == ((), (3,), (4, 3))


def test_parameters_of_transforms_are_batches():
    shift = transforms.AffineTransform(tt.tensor([1.0, 2.0]), 1.0)
    d = D.TransformedDistribution(D.Normal(0.0, 1.0), shift)
    assert d.batch_shape == (2,) and tt.unique(d.sample() - shift.loc).numel() == 2
    power = transforms.PowerTransform(tt.tensor([[1.0], [2.0]]))
    d = D.TransformedDistribution(D.Exponential(tt.ones(1)), [power, shift])
    assert d.batch_shape == (2, 2) and d.sample((3,)).shape == (3, 2, 2)


def test_supports_of_batches():
    d = D.Independent(D.Uniform(tt.zeros(2, 3), 1.0), 1)
    t = D.biject_to(d.support)
    x = tt.zeros(2, 3)
    assert d.support.event_dim == 1 and t.log_abs_det_jacobian(x, t(x)).shape == (2,)
    assert D.Independent(D.Normal(0.0, 1.0), 0).support is D.constraints.real
    ends = D.Uniform(tt.tensor([0.0, 0.2]), tt.tensor([1.0, 2.0]))
    mixture = D.MixtureSameFamily(D.Categorical(tt.tensor([0.5, 0.5])), ends)
    assert mixture.log_prob(tt.tensor([0.5, 0.6, 0.7])).shape == (3,)
    assert mixture.support.check(tt.tensor([0.1, 0.5, 1.5])).tolist() == [False, True, False]
    with pytest.raises(ValueError, match="total_count is -1"):
        D.Multinomial(-1, tt.tensor([0.5, 0.5]))


def test_texts_of_transforms_and_mixtures():
    t = transforms.ComposeTransform([transforms.ExpTransform(), transforms.TanhTransform().inv])
    text = "ComposeTransform(\n    ExpTransform(),\n    _InverseTransform(TanhTransform())\n)"
    assert repr(t) == text and repr(transforms.IndependentTransform(t, 1)).endswith("), 1)")
    mixture = D.MixtureSameFamily(D.Categorical(tt.tensor([0.5, 0.5])), D.Normal(tt.zeros(2), 1.0))
    assert repr(mixture).splitlines()[2] == "  Normal(loc: tt.Size([2]), scale: tt.Size([2])))"
    assert D.Normal(tt.zeros(2), 1.0).sample_n(3).shape == (3, 2)


CHECKED = {
    "normal": (D.Normal, lambda: (tt.randn(3), tt.rand(3) + 0.1), lambda: tt.randn(3)),
    "uniform": (D.Uniform, lambda: (tt.zeros(3), tt.rand(3) + 1), lambda: tt.rand(3)),
    "geometric": (D.Geometric, lambda: (tt.rand(3) * 0.9 + 0.05,), lambda: T([1.0, 2, 3])),
    "categorical": (D.Categorical, lambda: (tt.rand(3, 4),), lambda: tt.randint(0, 4, (3,))),
    "bernoulli": (D.Bernoulli, lambda: (tt.rand(3),), lambda: T([1.0, 0, 1])),
    "beta": (D.Beta, lambda: (tt.rand(3) + 0.1, tt.rand(3) + 0.1), lambda: tt.rand(3)),
    "gaussian": (
        D.MultivariateNormal,
        lambda: (tt.zeros(2), tt.eye(2) + tt.rand(1)),
        lambda: tt.randn(2),
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_checks_of_values_in_recorded_functions(name):
    """Each replay checks the values, and fails where the function itself fails."""
    cls, parameters, values = CHECKED[name]

    @tt.compile(fullgraph=True)
    def density(*args):
        return cls(*args[:-1]).log_prob(args[-1])

    for _ in range(3):
        args = (*parameters(), values())
        assert tt.equal(density(*args), density.fn(*args))
    bad = (*parameters()[:-1], parameters()[-1] * nan, values())
    for function in (density.fn, density):
        with pytest.raises(ValueError, match=r"(scale|high|probs|concentration\d|covariance)"):
            function(*bad)
    args = (*parameters(), values())
    assert tt.equal(density(*args), density.fn(*args))
    (entry,) = density.entries.values()
    records, _, runs, reason = entry.info()
    assert (records, runs, reason) == (1, 1, None)


def test_checks_of_values_in_exported_programs(tmp_path):
    class Policy(tt.nn.Module):
        def forward(self, logits, action):
            return D.Categorical(logits=logits).log_prob(action)

    program = tt.export.export(Policy(), (tt.randn(3, 4), T([0, 1, 2])))
    tt.export.save(program, tmp_path / "policy.ttg")
    for p in (program, tt.export.load(tmp_path / "policy.ttg")):
        near(p.run(tt.zeros(3, 4), T([3, 0, 1])), tt.full((3,), -log(4.0)))
        with pytest.raises(ValueError, match="Categorical: value must be within the support"):
            p.run(tt.zeros(3, 4), T([0, 1, 4]))


def test_matrices_that_are_not_symmetric():
    semidefinite, definite = D.constraints.positive_semidefinite, D.constraints.positive_definite
    matrices = T([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]], [[nan, 0.0], [0.0, 1.0]]])
    for constraint in (semidefinite, definite):
        assert constraint.check(matrices).tolist() == [True, False, False]
        assert not constraint.check(tt.ones(2, 3)).any()


DRAWN = {
    "gamma": (D.Gamma, (0.5, 1.0)),
    "beta": (D.Beta, (0.5, 2.0)),
    "dirichlet": (D.Dirichlet, ((0.5, 2.0, 3.0),)),
    "student": (D.StudentT, (3.0,)),
    "poisson of few": (D.Poisson, (2.0,)),
    "poisson of many": (D.Poisson, (50.0,)),
    "binomial": (D.Binomial, (40.0, 0.4)),
    "negative binomial": (D.NegativeBinomial, (5.0, 0.4)),
    "von mises": (D.VonMises, (0.5, 2.0)),
    "wishart": (D.Wishart, (4.0, ((1.0, 0.0), (0.0, 1.0)))),
}


@pytest.mark.parametrize("name", DRAWN)
def test_samplers_with_loops_in_recorded_functions(name):
    """Each run draws anew, what the function itself would draw."""
    cls, numbers = DRAWN[name]
    parameters = [T(x) for x in numbers]

    @tt.compile(fullgraph=True)
    def drawn(*args):
        return cls(*args).sample((5,)) + tt.rand(())

    seen = []
    for seed in range(4):
        tt.manual_seed(seed)
        want = drawn.fn(*parameters)
        tt.manual_seed(seed)
        assert tt.equal(drawn(*parameters), want)
        seen.append(want)
    assert not tt.equal(seen[0], seen[3])
    (entry,) = drawn.entries.values()
    assert entry.info() == (1, 3, 1, None)


def test_samplers_with_loops_in_exported_programs(tmp_path):
    class Noisy(tt.nn.Module):
        def forward(self, rate):
            return D.Poisson(rate).sample() + D.Gamma(rate, 1.0).sample()

    rate = T([2.0, 30.0])
    program = tt.export.export(Noisy(), (rate,))
    tt.export.save(program, tmp_path / "noisy.ttg")
    tt.manual_seed(0)
    want = Noisy()(rate * 2)
    for p in (program, tt.export.load(tmp_path / "noisy.ttg")):
        tt.manual_seed(0)
        assert tt.equal(p.run(rate * 2), want)


def test_gradients_of_samples_in_recorded_functions():
    @tt.compile
    def slope(a):
        return tt.autograd.grad(D.Gamma(a, 1.0).rsample((3,)).sum(), a)[0]

    a = T([0.5, 3.0]).requires_grad_()
    for seed in range(3):
        tt.manual_seed(seed)
        want = slope.fn(a)
        tt.manual_seed(seed)
        assert tt.equal(slope(a), want)


def test_cdf_at_the_ends_of_the_support():
    one = tt.ones(())
    made = [
        D.LogNormal(0.0, 1.0),
        D.Weibull(1.0, 2.0),
        D.InverseGamma(3.0, 1.0),
        D.TransformedDistribution(D.Normal(0.0, 1.0), [transforms.ExpTransform()]),
    ]
    for d in made:
        assert d.cdf(0 * one) == 0 and d.cdf(one) > 0
        with pytest.raises(ValueError):
            d.log_prob(0 * one)
    with pytest.raises(ValueError):
        D.Weibull(1.0, 2.0).cdf(-one)
    with pytest.raises(ValueError):
        D.Kumaraswamy(2.0, 3.0).cdf(2 * one)


def test_vectors_of_too_few_dims_are_refused():
    with pytest.raises(ValueError, match="has 0 dims: must have at least 1"):
        D.constraints.real_vector.check(tt.ones(()))


def test_kl_of_binomials():
    few, many = D.Binomial(5, 0.3), D.Binomial(7, 0.3)
    assert D.kl_divergence(many, few) == float("inf") and D.kl_divergence(few, few) == 0
    with pytest.raises(NotImplementedError):
        D.kl_divergence(few, many)


def test_rates_in_recorded_functions():
    draw = tt.compile(lambda rate: tt.poisson(rate))
    for _ in range(3):
        assert draw(tt.full((4,), 2.0)).shape == (4,)
    for function in (draw.fn, draw):
        with pytest.raises(ValueError, match="poisson: a rate is negative"):
            function(tt.full((4,), -2.0))


def test_samplers_can_be_reloaded():
    import importlib

    from tt.distributions import _gamma

    module = importlib.reload(_gamma)
    draw = tt.compile(lambda x: module.drawn_gamma(x))
    for _ in range(3):
        assert (draw(tt.ones(3)) > 0).all()
