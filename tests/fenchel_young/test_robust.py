"""Scaling that survives bad rows and follows changes; draws and errors at any time."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import fenchel_young as reference
from scipy.special import logsumexp

from skbounds import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineOrdinalClassifier,
    FenchelYoungOnlineRanker,
)
from skbounds.fenchel_young import _bounds
from skbounds.fenchel_young._offline import fit_comparator

# ------------------------------------------------ against the rules, feature by feature


def change_of(kind, X, rng):
    """Spoil a stream in its middle."""
    X, h = X.copy(), len(X) // 2
    if kind == "glitch":
        X[h] *= 1e6
    elif kind == "first row":
        X[0] *= 1e6
    elif kind == "cell":
        X[h, 0] = 1e9
    elif kind == "offset":
        X[h:] += 30.0
    elif kind == "smaller":
        X[h:] *= 1e-3
    elif kind == "larger":
        X[h:] *= 1e3
    elif kind == "square wave":
        X += 100.0 * (np.arange(len(X))[:, None] // 600 % 2)
    elif kind == "constants":
        X[:, 0], X[:h, 1] = 7.0, -2.0
    elif kind == "zeros":
        X[rng.random(X.shape) < 0.7] = 0.0
    elif kind == "heavy tails":
        X = rng.standard_cauchy(size=X.shape)
    elif kind == "few values":
        X = rng.integers(3, size=X.shape).astype(float)
    elif kind == "tiny":
        X *= 1e-140
    return X


KINDS = [
    "plain", "glitch", "first row", "cell", "offset", "smaller", "larger",
    "square wave", "constants", "zeros", "heavy tails", "few values", "tiny",
]  # fmt: skip


def learn(X, y=None, **options):
    y = np.arange(len(X)) % 2 if y is None else y
    return FenchelYoungOnlineClassifier(random_state=0, **options).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_scaled_rows_and_resets_equal_the_rules(kind, dtype):
    """1200 rows of eleven features: those of all turns of the eight, and more."""
    rng = np.random.default_rng(0)
    if dtype == np.float32 and kind == "tiny":
        pytest.skip("no single precision number")
    X = change_of(kind, rng.normal(size=(1200, 11)), rng).astype(dtype)
    clf = learn(X)
    expected, resets = reference.robust_stream(X)
    assert_allclose(clf._seen_features(X), expected, rtol=1e-9, atol=1e-9)
    assert_array_equal(clf.n_feature_resets_, resets)
    if kind in ("offset", "smaller", "larger", "square wave"):
        assert (resets > 0).all()
    if kind in ("plain", "glitch", "cell", "constants", "zeros", "few values"):
        assert not resets.any()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_stream_may_be_cut_anywhere(sparse):
    """One by one, in pieces, and through a pickle: the same bits, resets included."""
    import pickle

    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 9))
    X[350:] += 100.0
    y = rng.integers(3, size=700)
    if sparse:
        X = np.where(np.abs(X) > 0.5, X, 0.0)
        X[300:] *= 100.0
    rows = sp.csr_array(X) if sparse else X
    whole = FenchelYoungOnlineClassifier(random_state=0).partial_fit(rows, y)
    parts = FenchelYoungOnlineClassifier(random_state=0)
    parts.partial_fit(rows[:3], y[:3], classes=range(3))
    for begin in range(3, 400, 37):
        parts.partial_fit(
            rows[begin : min(begin + 37, 400)], y[begin : min(begin + 37, 400)]
        )
    parts = pickle.loads(pickle.dumps(parts))
    for i in range(400, 700):
        row = rows[[i]]
        parts.learn_one((row.indices, row.data) if sparse else X[i], y[i])
    for name, array in whole._state_.items():
        assert_array_equal(array, parts._state_[name])
    if not sparse:
        assert (whole.n_feature_resets_ > 0).all()


def test_features_with_few_values_are_followed():
    """Ratings from 1 to 10, half of them 1: after a bad first row, and in other units.

    Values that repeat the one before are no misses: with misses there is no reset.
    """
    rng = np.random.default_rng(0)
    chances = np.r_[0.5, np.full(9, 0.5 / 9)]
    X = rng.choice(np.arange(1.0, 11.0), p=chances, size=(3000, 9))
    y = (X[:, :3].sum(axis=1) + rng.normal(size=3000) > 9).astype(int)
    clean = learn(X, y)
    assert not clean.n_feature_resets_.any()
    first, later = X.copy(), X.copy()
    first[0] *= 1e6
    later[1500:] += 1000.0
    for rows in (first, later):
        clf = learn(rows, y)
        assert (clf.n_feature_resets_ > 0).all()
        extra = clf.cumulative_surrogate_loss_ - clean.cumulative_surrogate_loss_
        assert extra < 0.1 * len(y)
        old = learn(rows, y, feature_scaling="standard")
        assert clf.cumulative_surrogate_loss_ < 0.8 * old.cumulative_surrogate_loss_


def test_stationary_streams_are_left_alone():
    """Laws with tails, gaps and dependence; 200 000 values each, and no reset."""
    rng = np.random.default_rng(2)
    n = 10_000
    noise = rng.normal(size=(n, 20))
    walk = np.zeros((n, 20))
    for t in range(1, n):
        walk[t] = 0.99 * walk[t - 1] + noise[t]
    streams = {
        "normal": noise,
        "uniform": rng.random((n, 20)),
        "exponential": rng.exponential(size=(n, 20)),
        "lognormal": rng.lognormal(size=(n, 20)),
        "t4": rng.standard_t(4, size=(n, 20)),
        "rare ones": (rng.random((n, 20)) < 0.01).astype(float),
        "counts": rng.poisson(0.3, size=(n, 20)).astype(float),
        "ratings": rng.choice(
            [1.0, 2.0, 9.0, 10.0], p=[0.7, 0.1, 0.1, 0.1], size=(n, 20)
        ),
        "zeros and numbers": noise * (rng.random((n, 20)) < 0.3),
        "rare numbers": 10.0 + noise * (rng.random((n, 20)) < 0.02),
        "autoregression": walk,
    }
    for name, X in streams.items():
        assert not learn(X).n_feature_resets_.any(), name


# ------------------------------------------------ what it is for


def stream(n=20_000, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    y = (X @ rng.normal(size=(10, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    return X, y


def second_half(X, y, **options):
    clf = FenchelYoungOnlineClassifier(random_state=0, **options)
    h = len(y) // 2
    clf.partial_fit(X[:h], y[:h], classes=range(3))
    before = clf.cumulative_surrogate_loss_
    clf.partial_fit(X[h:], y[h:])
    return (clf.cumulative_surrogate_loss_ - before) / (len(y) - h)


CHANGES = {
    "row x 1e6": (lambda X, h: X.__setitem__(h // 2, 1e6 * X[h // 2]), 0.005),
    "cell 1e9": (lambda X, h: X.__setitem__((h // 2, 2), 1e9), 0.005),
    "row 0 x 1e6": (lambda X, h: X.__setitem__(0, 1e6 * X[0]), 0.02),
    "row 5 x 1e6": (lambda X, h: X.__setitem__(5, 1e6 * X[5]), 0.02),
    "x 1e3": (lambda X, h: X[h:].__imul__(1e3), 0.02),
    "x .1": (lambda X, h: X[h:].__imul__(0.1), 0.04),
    "x 1e-3": (lambda X, h: X[h:].__imul__(1e-3), 0.04),
    "+ 10": (lambda X, h: X[h:].__iadd__(10.0), 0.02),
    "+ 1e4": (lambda X, h: X[h:].__iadd__(1e4), 0.02),
}


@pytest.mark.parametrize("change", CHANGES)
def test_accidents_cost_little(change):
    """Log-loss of the second half, against that of the clean stream; 20 000 rows."""
    X, y = stream()
    clean = second_half(X, y)
    spoil, allowed = CHANGES[change]
    Z = X.copy()
    spoil(Z, len(y) // 2)
    assert second_half(Z, y) <= clean + allowed
    if "cell" not in change:
        assert second_half(Z, y, feature_scaling="standard") > clean + 0.04


@pytest.mark.parametrize(("seed", "allowed"), [(0, 0.12), (1, 0.03), (2, 0.03)])
def test_a_square_wave_of_offsets(seed, allowed):
    """Five jumps of all features: sixteen rows each are lost, up to 6 nats a row."""
    X, y = stream(seed=seed)
    clean = second_half(X, y)
    X += 100.0 * (np.arange(len(y))[:, None] // 2000 % 2)
    assert second_half(X, y) <= clean + allowed
    assert second_half(X, y, feature_scaling="standard") > clean + 0.2


@pytest.mark.parametrize(
    "make",
    [
        lambda: FenchelYoungOnlineMultilabelClassifier(random_state=0),
        lambda: FenchelYoungOnlineMultilabelClassifier("sparsemap", random_state=0),
        lambda: FenchelYoungOnlineOrdinalClassifier(random_state=0),
        lambda: FenchelYoungOnlineRanker(random_state=0),
    ],
    ids=["sigmoid", "sparsemap", "ordinal", "ranker"],
)
def test_all_estimators_survive_a_row(make):
    """One row of 1e6 among the first hundred, where plain moments never recover."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 4))
    scores = 2.0 * X @ rng.normal(size=(4, 4)) + rng.normal(size=(3000, 4))
    kind = type(make()).__name__
    if "Multilabel" in kind:
        y = (scores > 0).astype(int)
    elif "Ordinal" in kind:
        y = np.digitize(scores[:, 0], [-2.0, 0.0, 2.0])
    else:
        y = scores.argsort(axis=1).argsort(axis=1) + 1
    Z = X.copy()
    Z[100] *= 1e6
    found = {}
    for name, rows, scaling in (
        ("clean", X, "auto"), ("spoilt", Z, "auto"), ("plain", Z, "standard"),
    ):  # fmt: skip
        est = make().set_params(feature_scaling=scaling).fit(rows, y)
        found[name] = est.expected_cumulative_loss_
    # The longest row rules the steps of dual averaging, clipped as it is.
    assert found["spoilt"] < 1.25 * found["clean"]
    assert found["plain"] > 1.25 * found["spoilt"]


@pytest.mark.parametrize("size", [1e-6, 1e3, 1e6])
def test_sparse_scales_forget_a_first_row(size):
    rng = np.random.default_rng(4)
    n, d = 8000, 30
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = (X @ rng.normal(size=(d, 3)) + rng.gumbel(size=(n, 3))).argmax(axis=1)
    clean = second_half(sp.csr_array(X), y)
    X[0] *= size
    assert second_half(sp.csr_array(X), y) <= clean + 0.03


def test_dense_and_sparse_rows_of_one_fitted_model():
    """Predictions do not depend on the form of the rows."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 8)) * (rng.random((500, 8)) < 0.5)
    y = rng.integers(3, size=500)
    for rows in (X, sp.csr_array(X)):
        clf = FenchelYoungOnlineClassifier(random_state=0).fit(rows, y)
        assert_allclose(
            clf.predict_proba(X), clf.predict_proba(sp.csr_array(X)), rtol=1e-9
        )


# ------------------------------------------------ certificates


@pytest.mark.parametrize("sparse", [False, True])
def test_certificates_of_all_experts_are_closer_and_hold(sparse):
    """For comparators of five strengths; `comparator_loss` tells the regret itself."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 6)) * (rng.random((2000, 6)) < 0.6)
    X[1000:] *= 50.0
    y = (X @ rng.normal(size=(6, 3)) + 3 * rng.gumbel(size=(2000, 3))).argmax(axis=1)
    rows = sp.csr_array(X) if sparse else X
    safe, every = (
        FenchelYoungOnlineClassifier(random_state=0, certificate=c).fit(rows, y)
        for c in ("safe", "all")
    )
    assert safe.cumulative_surrogate_loss_ == every.cumulative_surrogate_loss_
    features = every._seen_features(rows)
    targets = every._encode(y, None, False, False)
    for alpha in (0.1, 1.0, 10.0, 100.0, 1e4):
        U = fit_comparator(every._make_loss(), features, targets, alpha)
        norm = float(np.linalg.norm(U))
        regret = every.expected_cumulative_loss_ - every.comparator_loss(U, rows, y)
        by_coef = every.surrogate_regret_certificate(coef=U)
        by_norm = every.surrogate_regret_certificate(norm)
        assert regret <= by_coef + 1e-8 <= by_norm + 2e-8
        assert by_norm <= safe.surrogate_regret_certificate(norm) + 1e-8
        margin = every.draw_margin(0.05)
        assert_allclose(
            every.surrogate_regret_certificate(norm, delta=0.05), by_norm + margin
        )
    default = FenchelYoungOnlineClassifier(random_state=0).fit(rows, y)
    same = safe if sparse else every
    assert default.surrogate_regret_certificate(
        1.0
    ) == same.surrogate_regret_certificate(1.0)


def test_comparator_loss_of_weighted_streams_and_bad_comparators():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(200, 3)), rng.integers(3, size=200)
    weight = rng.integers(0, 3, size=200).astype(float)
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(X, y, sample_weight=weight)
    U = rng.normal(size=(3, 4))
    kept = weight > 0
    features = clf._seen_features(X[kept])
    scores = features @ U.T
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), y[kept]]
    found = clf.comparator_loss(U, X, y, sample_weight=weight)
    assert_allclose(found, weight[kept] @ losses)
    for bad in (U[:, :3], U[:2], np.full((3, 4), np.nan)):
        with pytest.raises(ValueError, match="coef must be finite and have shape"):
            clf.comparator_loss(bad, X, y)
        with pytest.raises(ValueError, match="coef must be finite and have shape"):
            clf.surrogate_regret_certificate(coef=bad)
    with pytest.raises(ValueError, match="give norm or coef"):
        clf.surrogate_regret_certificate(1.0, coef=U)


# ------------------------------------------------ draws and errors, at any time


@pytest.mark.parametrize(
    ("variance", "margin"), [(10.0, 12.1), (158.65, 43.0), (1e3, 105.0), (1e4, 329.0)]
)
def test_margins_of_the_draws(variance, margin):
    """The numbers that were found beside the theorem."""
    assert_allclose(_bounds.draw_margin(variance, 0.05), margin, rtol=5e-3)


@given(
    variance=st.floats(0.0, 1e6),
    delta=st.floats(1e-6, 0.9),
)
def test_margins_solve_their_equation(variance, delta):
    """The mean of the supermartingales is 1 / delta there."""
    B = _bounds.draw_margin(variance, delta)
    rates = np.geomspace(1e-3, 8.0, 60)
    powers = rates * B - variance * (np.expm1(rates) - rates)
    assert_allclose(
        logsumexp(powers) - np.log(60), -np.log(delta), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize(
    ("total", "n", "limits"),
    [
        (0, 100, (0.0, 0.053)),
        (5, 100, (0.0059, 0.160)),
        (50, 1000, (0.0294, 0.0776)),
        (500, 10_000, (0.0427, 0.0580)),
        (5000, 100_000, (0.0476, 0.0525)),
        (0, 0, (0.0, 1.0)),
        (100, 100, (0.947, 1.0)),
    ],
)
def test_intervals_at_any_time(total, n, limits):
    assert_allclose(_bounds.anytime_interval(total, n, 0.05), limits, atol=6e-4)


def test_intervals_hold_at_all_times_under_drift():
    """300 streams with drifting means, looked at twelve times each: at most alpha."""
    rng = np.random.default_rng(8)
    looks = np.unique(np.geomspace(10, 4000, 12).astype(int))
    missed = 0
    for _ in range(300):
        means = 0.5 + 0.45 * np.sin(np.cumsum(rng.normal(size=4000)) / 20.0)
        total = np.cumsum(rng.random(4000) < means)
        true = np.cumsum(means) / np.arange(1, 4001)
        missed += any(
            not low <= true[T - 1] <= high
            for T in looks
            for low, high in [_bounds.anytime_interval(total[T - 1], T, 0.1)]
        )
    assert missed <= 0.1 * 300


def test_draws_cross_the_margin_rarely():
    """2000 streams of draws with the same probabilities: at most 6 % at delta = .05."""
    rng = np.random.default_rng(9)
    e = rng.beta(0.5, 2.0, size=1000)
    V = np.cumsum(e * (1.0 - e))
    draws = np.cumsum((rng.random((2000, 1000)) < e) - e, axis=1)
    looks = np.arange(49, 1000, 50)
    margins = np.array([_bounds.draw_margin(V[t], 0.05) for t in looks])
    assert np.mean((draws[:, looks] > margins).any(axis=1)) <= 0.06


@pytest.mark.parametrize("decoding", ["randomized", "argmax"])
def test_progressive_errors_are_those_of_predict(decoding):
    """Row by row, on each before it is learnt; for every structure but matchings.

    Features as they are: scaled ones know their own row, which `predict` does not.
    """
    rng = np.random.default_rng(10)
    X = rng.normal(size=(150, 3))
    scores = X @ rng.normal(size=(3, 4)) + 0.5 * rng.normal(size=(150, 4))
    cases = [
        (FenchelYoungOnlineClassifier, {}, scores.argmax(axis=1)),
        (
            FenchelYoungOnlineClassifier,
            {"loss": "sparsemax", "learner": "auto"},
            scores.argmax(axis=1),
        ),
        (FenchelYoungOnlineMultilabelClassifier, {}, (scores > 0).astype(int)),
        (
            FenchelYoungOnlineMultilabelClassifier,
            {"loss": "sparsemap"},
            (scores > 0).astype(int),
        ),
        (
            FenchelYoungOnlineOrdinalClassifier,
            {},
            np.digitize(scores[:, 0], [-1, 0, 1]),
        ),
        (FenchelYoungOnlineRanker, {}, scores.argsort(axis=1).argsort(axis=1) + 1),
    ]
    for cls, params, y in cases:
        options = {"feature_scaling": "none", "decoding": decoding, **params}
        est = cls(random_state=0, **options)
        begin = 8 if y.ndim == 1 else 1
        est.partial_fit(X[:begin], y[:begin], **(
            {"classes": np.unique(y)} if y.ndim == 1 else {}))  # fmt: skip
        before, total = est.progressive_errors_, 0.0
        for i in range(begin, 150):
            score = est.score(X[i : i + 1], y[i : i + 1])
            if cls is FenchelYoungOnlineOrdinalClassifier:
                total += -score / (len(est.classes_) - 1)
            else:
                total += 1.0 - score
            est.partial_fit(X[i : i + 1], y[i : i + 1])
        assert_allclose(est.progressive_errors_ - before, total, atol=1e-9)
        low, high = est.error_interval(0.9)
        assert 0.0 <= low <= est.progressive_errors_ / 150 <= high <= 1.0
        low, high = est.error_interval(0.9, kind="play")
        assert low <= est.expected_cumulative_loss_ / 150 <= high
        if decoding == "argmax":
            assert_allclose(est.progressive_errors_, est.cumulative_loss_, atol=1e-9)


def test_intervals_of_weighted_errors_and_bad_arguments():
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(300, 3)), rng.integers(2, size=300)
    clf = FenchelYoungOnlineClassifier(random_state=0)
    plain = FenchelYoungOnlineClassifier(random_state=0).partial_fit(X, y)
    clf.partial_fit(X, y, sample_weight=np.full(300, 5.0))
    assert_allclose(clf.error_interval(), plain.error_interval(), rtol=1e-9)
    weight = rng.uniform(0.5, 2.0, size=300)
    clf = FenchelYoungOnlineClassifier(random_state=0)
    clf.partial_fit(X, y, sample_weight=weight)
    low, high = clf.error_interval()
    assert low < clf.progressive_errors_ / weight.sum() < high
    for bad in (0.0, 1.0, "a", None):
        with pytest.raises(ValueError, match="confidence must lie"):
            clf.error_interval(bad)
    with pytest.raises(ValueError, match="kind must be"):
        clf.error_interval(kind="fit")
    ranker = FenchelYoungOnlineRanker("birkhoff", random_state=0)
    ranker.fit(X, np.tile([1, 2, 3], (300, 1)))
    with pytest.raises(AttributeError, match="not kept for matchings"):
        _ = ranker.progressive_errors_
