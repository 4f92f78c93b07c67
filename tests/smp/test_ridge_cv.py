"""RidgeSMPCV against refits; cdf, draws and scores of all regressors."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, optimize, sparse, stats
from scipy.special import softmax
from sklearn.linear_model import BayesianRidge, Ridge

from skbounds import KernelRidgeSMP, RidgeSMP, RidgeSMPCV
from skbounds.smp import _student
from skbounds.smp._pool import pool_leave_one_out_loss


def make_rows(n=30, d=3, seed=0, outputs=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    shape = (n,) if outputs is None else (n, outputs)
    signal = X @ rng.normal(size=(d,) if outputs is None else (d, outputs))
    return (
        X,
        signal + 1.0 + 0.7 * rng.standard_t(4, size=shape),
        rng.normal(size=(6, d)),
    )


def t_scale(r, nu, weight):
    """The scale of greatest likelihood, by a general minimiser."""

    def loss(log_tau):
        tau = np.exp(log_tau)
        return -weight @ (stats.t.logpdf(r / tau, nu) - log_tau)

    best = optimize.minimize_scalar(loss, bracket=(-1.0, 0.0), tol=1e-12)
    return np.exp(best.x)


def slow_pool(X, y, alphas, weight):
    """Return loo losses by refits of the mean, and candidates, from the definitions."""
    n = weight.sum()
    mean = weight @ X / n
    center = X - mean
    A = (center.T * weight) @ center
    candidates, losses = [], []
    unit = np.minimum(weight, 1.0)
    for alpha in alphas:
        inverse = np.linalg.inv(A + alpha * np.eye(X.shape[1]))
        H = np.einsum("ij,jk,ik->i", center, inverse, center) + 1.0 / n
        dof = n - weight @ H
        residual, h = np.empty(len(X)), np.empty(len(X))
        for i in range(len(X)):
            rest = weight.copy()
            rest[i] -= unit[i]
            part = Ridge(alpha).fit(X, y, sample_weight=rest)
            residual[i] = y[i] - part.predict(X[[i]])[0]
            m = rest @ X / rest.sum()
            B = ((X - m).T * rest) @ (X - m) + alpha * np.eye(X.shape[1])
            h[i] = (X[i] - m) @ np.linalg.solve(B, X[i] - m) + 1.0 / rest.sum()
        model = Ridge(alpha).fit(X, y, sample_weight=weight)
        for u in (0.5, 1.0):
            r = residual / (1.0 + h) ** u
            for nu in (max(dof, 1.0), 4.0, 8.0):
                tau = t_scale(r, nu, weight)
                loss = np.empty(len(X))
                for i in range(len(X)):
                    rest = weight.copy()
                    rest[i] -= unit[i]
                    without = t_scale(r, nu, rest)
                    width = (1.0 + h[i]) ** u
                    loss[i] = -stats.t.logpdf(residual[i], nu, scale=without * width)
                losses.append(loss)

                def law(x, tau=tau, nu=nu, u=u, inverse=inverse, model=model):
                    spread = 1.0 + (x - mean) @ inverse @ (x - mean) + 1.0 / n
                    return nu, model.predict(x[None])[0], tau * spread**u

                candidates.append(law)
    return np.array(losses), candidates


@pytest.mark.parametrize("weighted", [False, True])
def test_the_pool_is_near_that_of_refits(weighted):
    """Means and leverages exactly; scales without a row by one step.

    The losses of single rows differ by up to .017.
    """
    X, y, rows = make_rows()
    weight = np.ones(30)
    if weighted:
        weight = np.random.default_rng(1).choice([1.0, 2.0, 0.5], size=30)
    alphas = np.array([0.3, 3.0, 30.0])
    model = RidgeSMPCV(alphas).fit(X, y, sample_weight=weight)
    losses, candidates = slow_pool(X, y, alphas, weight)
    path = losses @ weight / weight.sum()
    assert_allclose(model.loo_log_loss_path_.ravel(), path, atol=6e-3)
    q = softmax(-losses @ weight)
    assert_allclose(
        model.weights_.ravel(), np.where(q < 1e-3 * q.max(), 0, q), atol=0.02
    )
    slow = pool_leave_one_out_loss(losses, weight, 1.0, "pool")
    assert model.loo_log_loss_ == pytest.approx(slow, abs=6e-3)
    targets = rows[:, 0] * 2.0
    # With the model's own weights the rest is exact.
    own = model.weights_.ravel()
    for x, target, found, low_high, p in zip(
        rows,
        targets,
        model.log_density(rows, targets),
        model.predict_interval(rows, 0.8),
        model.cdf(rows, targets),
        strict=True,
    ):
        laws = [law(x) for law in candidates]
        density = sum(
            w * stats.t.pdf(target, nu, m, s)
            for w, (nu, m, s) in zip(own, laws, strict=True)
        )
        assert found == pytest.approx(np.log(density), abs=1e-6)

        def cdf(value, laws=laws):
            return sum(
                w * stats.t.cdf(value, nu, m, s)
                for w, (nu, m, s) in zip(own, laws, strict=True)
            )

        assert p == pytest.approx(cdf(target), abs=1e-6)
        assert_allclose([cdf(low_high[0]), cdf(low_high[1])], [0.1, 0.9], atol=1e-6)
    mean, std = model.predict(rows, return_std=True)
    assert_allclose(mean, rows @ model.coef_ + model.intercept_, rtol=1e-10)
    for x, m, s in zip(rows, mean, std, strict=True):
        laws = [law(x) for law in candidates]
        expected = sum(w * law[1] for w, law in zip(own, laws, strict=True))
        assert m == pytest.approx(expected, rel=1e-8)
        second = sum(
            w * (stats.t.var(nu, m_, s_) + m_**2)
            for w, (nu, m_, s_) in zip(own, laws, strict=True)
            if w > 0
        )
        assert s == pytest.approx(np.sqrt(second - expected**2), rel=1e-6)


@given(
    seed=st.integers(0, 10**6),
    freedom=st.lists(
        st.sampled_from([1.3, 2.5, 4.0, 8.0, 60.0]), min_size=1, max_size=3
    ),
)
def test_mixtures_are_laws(seed, freedom):
    """Densities, cdf, quantiles and scores of mixtures, by quadrature."""
    rng = np.random.default_rng(seed)
    k = len(freedom)
    freedom = np.array(freedom)
    location = rng.normal(size=(1, k)) * 0.3
    scale = rng.uniform(0.5, 2.0, size=(1, k))
    weight = rng.dirichlet(np.ones(k))
    y = rng.normal(size=1) * 3.0
    law = (location, scale, freedom, weight)

    def cdf(value):
        return float(_student.mixture_cdf(np.array([value]), *law)[0])

    density = np.exp(
        _student.mixture_log_density(y, location, scale, freedom, np.log(weight))
    )[0]
    step = 1e-4
    slope = (cdf(y[0] + step) - cdf(y[0] - step)) / (2 * step)
    assert density == pytest.approx(slope, rel=1e-5)
    levels = np.array([0.001, 0.3, 0.5, 0.97])
    found = _student.mixture_quantiles(levels, *law)[0]
    assert_allclose([cdf(value) for value in found], levels, rtol=1e-10)
    below = integrate.quad(lambda v: cdf(v) ** 2, -np.inf, y[0], epsabs=1e-9, limit=400)
    above = integrate.quad(
        lambda v: (1 - cdf(v)) ** 2, y[0], np.inf, epsabs=1e-9, limit=400
    )
    score = _student.mixture_crps(y, *law)[0]
    assert score == pytest.approx(below[0] + above[0], abs=2e-6)


def test_scales_are_of_greatest_likelihood():
    rng = np.random.default_rng(0)
    for nu in (1.0, 4.0, 30.0):
        r, weight = rng.standard_t(4, size=50), rng.choice([1.0, 2.0], size=50)
        found = np.sqrt(_student.scale_by_likelihood(r, nu, weight))
        assert found == pytest.approx(t_scale(r, nu, weight), rel=1e-6)
    assert _student.scale_by_likelihood(np.zeros(3), 4.0, np.ones(3)) == 0.0


@pytest.mark.parametrize("outputs", [None, 2])
def test_draws_have_the_law(outputs):
    X, y, rows = make_rows(25, 2, outputs=outputs)
    models = [
        RidgeSMPCV().fit(X, y),
        RidgeSMP(1.0, sigma=0.8).fit(X, y),
        RidgeSMP(0, sigma="joint").fit(X, y),
        KernelRidgeSMP(kernel="rbf").fit(X, y),
    ]
    for model in models:
        drawn = model.sample(rows[:2], 4000, random_state=0)
        shape = (2, 4000) if outputs is None else (2, 4000, 2)
        assert drawn.shape == shape
        again = model.sample(rows[:2], 4000, random_state=0)
        assert_allclose(drawn, again, rtol=0)
        for i in range(2):
            values = drawn[i]
            tiled = np.repeat(rows[[i]], 4000, axis=0)
            p = model.cdf(tiled, values)
            for column in np.reshape(p.T, (-1, 4000)):
                assert stats.kstest(column, "uniform").pvalue > 1e-4
        with pytest.raises(ValueError, match="n_samples must be"):
            model.sample(rows, 0)
        with pytest.raises(ValueError, match="level must lie"):
            model.predict_interval(rows, 1.0)
        with pytest.raises(ValueError, match="numbers of rows"):
            model.cdf(rows, y[:2])


def test_normal_scores_and_intervals():
    X, y, rows = make_rows()
    model = RidgeSMP(1.0, sigma=0.7).fit(X, y)
    mean, std = model.predict(rows, return_std=True)
    targets = np.linspace(-2, 2, 6)
    for t, m, s, found in zip(
        targets, mean, std, model.crps(rows, targets), strict=True
    ):
        law = stats.norm(m, s)
        below = integrate.quad(lambda v, law=law: law.cdf(v) ** 2, m - 20 * s, t)[0]
        above = integrate.quad(lambda v, law=law: law.sf(v) ** 2, t, m + 20 * s)[0]
        assert found == pytest.approx(below + above, rel=1e-6)
    assert_allclose(model.cdf(rows, targets), stats.norm.cdf(targets, mean, std))
    low, high = model.predict_interval(rows, 0.8).T
    assert_allclose(high - low, 2 * stats.norm.ppf(0.9) * std)
    joint = RidgeSMP(0, sigma="joint").fit(X, y)
    assert np.isinf(joint.crps(rows, targets)).all()
    low, high = joint.predict_interval(rows, 0.8).T
    assert_allclose(joint.cdf(rows, low), 0.1, atol=1e-8)
    assert_allclose(joint.cdf(rows, high), 0.9, atol=1e-8)
    far = joint.predict_quantiles(rows, [1e-4])[:, 0]
    assert_allclose(joint.cdf(rows, far), 1e-4, rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_units_weights_outputs_and_wide_rows(container):
    X, Y, rows = make_rows(outputs=2)
    model = RidgeSMPCV().fit(container(X), Y)
    assert model.weights_.shape == (2, 11, 2, 3)
    assert_allclose(model.weights_.sum(axis=(1, 2, 3)), 1.0)
    for j in range(2):
        single = RidgeSMPCV().fit(container(X), Y[:, j])
        assert_allclose(single.weights_, model.weights_[j], atol=1e-9)
        assert_allclose(
            single.predict(container(rows)), model.predict(container(rows))[:, j]
        )
        assert_allclose(single.coef_, model.coef_[j], rtol=1e-8)
    for unit in (1e-150, 1 / 64, 1e120):
        other = RidgeSMPCV().fit(container(X * unit), Y * 7.0)
        assert_allclose(
            other.predict_interval(container(rows * unit)),
            7.0 * model.predict_interval(container(rows)),
            rtol=1e-6,
        )
    count = np.random.default_rng(0).integers(0, 3, size=30)
    weighted = RidgeSMPCV([1.0, 10.0]).fit(container(X), Y, sample_weight=count)
    repeated = RidgeSMPCV([1.0, 10.0])
    repeated.fit(container(np.repeat(X, count, axis=0)), np.repeat(Y, count, axis=0))
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-8)
    assert_allclose(weighted.loo_log_loss_, repeated.loo_log_loss_, rtol=1e-8)
    # More features than rows: what is outside the rows' span widens the law.
    rng = np.random.default_rng(0)
    W = rng.normal(size=(12, 40))
    wide = RidgeSMPCV([5.0]).fit(container(W), Y[:12])
    x = rng.normal(size=(1, 40))
    H = (W - W.mean(axis=0)).T @ (W - W.mean(axis=0)) + 5.0 * np.eye(40)
    h = (x - W.mean(axis=0)) @ np.linalg.solve(H, (x - W.mean(axis=0)).T) + 1 / 12
    _, parts = next(wide._laws(container(x)))
    for j, (_, scale, _, _) in enumerate(parts):
        positive = wide._weights_[j, 0] > 0
        tau = wide._scales_[j, 0] * wide._law_["unit"][j]
        expected = (tau * (1 + h) ** np.array([[0.5], [1.0]]))[positive]
        assert_allclose(scale[0], expected, rtol=1e-8)


def test_few_rows_and_constant_targets():
    X, y, rows = make_rows()
    with pytest.raises(ValueError, match="more than 3 samples"):
        RidgeSMPCV().fit(X[:3], y[:3])
    with pytest.warns(UserWarning, match="zero to working precision"):
        constant = RidgeSMPCV().fit(X, np.full(30, 2.0))
    assert_allclose(constant.predict(rows), 2.0)
    small = RidgeSMPCV().fit(X[:4], y[:4])
    assert np.isfinite(small.predict_interval(rows)).all()
    assert small.crps(rows, rows[:, 0]).shape == (6,)
    heavy = RidgeSMPCV([1e-9]).fit(X[:5], y[:5])
    assert heavy.weights_[0, :, 0].sum() > 0.0
    with pytest.raises(ValueError, match="standard deviation"):
        heavy.predict(rows, return_std=True)
    assert np.isinf(heavy.crps(rows, rows[:, 0])).all()
    with pytest.raises(ValueError, match="alphas must hold positive"):
        RidgeSMPCV([-1.0]).fit(X, y)


@pytest.mark.slow
def test_it_is_better_than_its_peers_where_noise_is_not_normal():
    """Mean log density over 20 samples of 30 rows."""
    rng = np.random.default_rng(0)
    differences = {"t3": [], "heteroscedastic": [], "normal": []}
    for _ in range(20):
        X, test = rng.normal(size=(30, 5)), rng.normal(size=(500, 5))
        theta = rng.normal(size=5)
        for kind, values in differences.items():

            def noise(rows, kind=kind):
                if kind == "t3":
                    return rng.standard_t(3, size=len(rows))
                spread = np.exp(rows[:, 0]) if kind == "heteroscedastic" else 1.0
                return spread * rng.normal(size=len(rows))

            y, target = X @ theta + noise(X), test @ theta + noise(test)
            ours = RidgeSMPCV().fit(X, y).log_density(test, target).mean()
            mean, std = BayesianRidge().fit(X, y).predict(test, return_std=True)
            values.append(ours - stats.norm.logpdf(target, mean, std).mean())
    mean = {kind: np.mean(values) for kind, values in differences.items()}
    assert mean["t3"] > 0.05
    assert mean["heteroscedastic"] > 0.05
    assert mean["normal"] > -0.03


def test_no_warning_of_numpy_at_the_edges():
    X, y, rows = make_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RidgeSMPCV([1e-12, 1.0, 1e12]).fit(X, y)
        far = np.array([1e80, -1e80, 0, 0, 0, 0])
        assert np.isfinite(model.log_density(rows, far)).all()
        assert_allclose(model.cdf(rows, far)[:2], [1.0, 0.0])


def test_targets_of_any_size_and_offset():
    """Seconds since 1970, tiny and huge targets: the same laws in their units."""
    X, y, rows = make_rows(80)
    plain = RidgeSMPCV().fit(X, y).predict_interval(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unit in (1e-200, 1e-100, 1e140):
            other = RidgeSMPCV().fit(X, unit * y)
            assert_allclose(other.predict_interval(rows), unit * plain, rtol=1e-6)
        later = RidgeSMPCV().fit(X, 1.7e9 + y)
        assert_allclose(later.predict_interval(rows) - 1.7e9, plain, atol=1e-3)
        single = RidgeSMP("loo").fit(X, 1.7e9 + y)
        assert single.sigma_[0] == pytest.approx(
            RidgeSMP("loo").fit(X, y).sigma_[0], rel=1e-3
        )
    with pytest.raises(ValueError, match="y"):
        later.crps(rows, np.full(6, 1e200))


def test_draws_do_not_depend_on_the_memory_of_blocks():
    import sklearn

    X, y, rows = make_rows(30, outputs=2)
    model = RidgeSMPCV().fit(X, y)
    rows = np.repeat(rows, 50, axis=0)
    drawn = model.sample(rows, 3, random_state=0)
    with sklearn.config_context(working_memory=0.01):
        again = model.sample(rows, 3, random_state=0)
    assert_allclose(again, drawn, rtol=1e-10)


@pytest.mark.parametrize(
    ("location", "scale", "freedom", "y"),
    [
        ([0.0, 100.0], [1.0, 1.0], [4.0, 8.0], 30.0),
        ([0.0, 3.0], [1.0, 0.01], [4.0, 50.0], 3.0),
        ([0.0, 0.0, 5.0], [1.0, 30.0, 2.0], [4.0, 2.5, 8.0], -2.0),
    ],
)
def test_scores_of_mixtures_that_are_far_apart(location, scale, freedom, y):
    weight = np.full(len(location), 1.0 / len(location))
    law = (np.array([location]), np.array([scale]), np.array(freedom), weight)
    rng = np.random.default_rng(0)

    def cdf(value):
        return float(_student.mixture_cdf(np.array([value]), *law)[0])

    marks = sorted({*location, *(m + s * k for m, s in zip(location, scale, strict=True)
                                 for k in (-8, -2, -0.5, 0.5, 2, 8)), y})  # fmt: skip
    edges = [-np.inf, *marks, np.inf]
    total = 0.0
    for a, b in pairwise(edges):

        def part(v, b=b):
            return cdf(v) ** 2 if b <= y else (1 - cdf(v)) ** 2

        total += integrate.quad(part, a, b, epsabs=1e-10, limit=200)[0]
    found = _student.mixture_crps(np.array([y]), *law)[0]
    assert found == pytest.approx(total, rel=1e-5)
    uniforms = rng.random((2, 1, 4000))
    drawn = _student.mixture_draws(*law, uniforms)[0]
    p = np.array([cdf(value) for value in drawn])
    assert stats.kstest(p, "uniform").pvalue > 1e-4
