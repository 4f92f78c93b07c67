"""Small models of every emission, rows for them, and short ways to start from them.

Categories of `theta` and of the rows made here are indices, as the reference has them;
`told` writes them as the numbers in `CATEGORIES`, as the estimator has them.
"""

import numpy as np
import pytest
from reference import hmm_more as ref

from hmm.toy import COVARIANCES, covariances, stochastic, unfinished
from skbounds.hmm import BaumWelchHMM

EMISSIONS = ("gaussian", "student", "poisson", "categorical")
KINDS = [
    *[("gaussian", kind) for kind in COVARIANCES],
    *[("student", kind) for kind in COVARIANCES],
    ("poisson", "diag"),
    ("categorical", "diag"),
]
NAMES = {
    "gaussian": ("means", "covariances"),
    "student": ("means", "covariances", "df"),
    "poisson": ("means",),
    "categorical": ("emission_proba",),
}
CATEGORIES = [[1.0, 4.0, 7.0], [-2.0, 0.5]]

every_emission = pytest.mark.parametrize("emission", EMISSIONS)
every_kind = pytest.mark.parametrize(
    ("emission", "covariance_type"), KINDS, ids=["-".join(kind) for kind in KINDS]
)
either = pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])


def width(emission):
    """Number of columns of the small models."""
    return len(CATEGORIES) if emission == "categorical" else 3


def model_of(emission, covariance_type="full", seed=0, s=2, zeros=0):
    """Parameters of a random model."""
    rng = np.random.default_rng(seed)
    d = width(emission)
    theta = {
        "startprob": rng.dirichlet(np.full(s, 2.0)),
        "transmat": stochastic(rng, s, zeros),
    }
    if emission == "categorical":
        theta["emission_proba"] = [
            rng.dirichlet(np.full(len(names), 1.5), size=s) for names in CATEGORIES
        ]
    elif emission == "poisson":
        theta["means"] = rng.gamma(2.0, 2.0, size=(s, d))
    else:
        theta["means"] = rng.normal(size=(s, d))
        theta["covariances"] = covariances(rng, s, d, covariance_type)
    if emission == "student":
        theta["df"] = np.array([2.5, 9.0, 0.8, 30.0])[:s]
    return theta


def rows_for(emission, seed, lengths, missing=False):
    """Rows that no model explains well; about a third is missing, and whole rows."""
    rng = np.random.default_rng(seed + 500)
    d, sequences, whole = width(emission), [], None
    for n in lengths:
        if emission == "categorical":
            sizes = [len(names) for names in CATEGORIES]
            x = np.column_stack([rng.integers(c, size=n) for c in sizes]).astype(float)
        elif emission == "poisson":
            x = rng.poisson(rng.gamma(1.0, 4.0, size=(n, d))).astype(float)
        elif emission == "student":
            x = rng.standard_t(2.0, size=(n, d))
        else:
            x = 1.5 * rng.normal(size=(n, d))
        if missing:
            whole = x[0].copy() if whole is None else whole
            x[rng.random(size=x.shape) < 0.3] = np.nan
        sequences.append(x)
    if missing:
        # A row in the middle, a first and a last one; and some entry in each column.
        sequences[0][0] = whole
        sequences[0][len(sequences[0]) // 2] = np.nan
        sequences[-1][[0, -1]] = np.nan
        assert not np.isnan(np.vstack(sequences)).all(axis=0).any()
    return sequences


def drawn(theta, emission, n, rng, n_sequences=1):
    """Sequences from a model, (n_sequences, n, d), and their states."""
    s = len(theta["startprob"])
    states = np.empty((n_sequences, n), dtype=int)
    edges = np.cumsum(theta["transmat"], axis=1)[:, :-1]
    first = rng.choice(s, p=theta["startprob"], size=n_sequences)
    states[:, 0] = first
    for i in range(1, n):
        u = rng.random((n_sequences, 1))
        states[:, i] = (u >= edges[states[:, i - 1]]).sum(axis=1)
    if emission == "categorical":
        columns = []
        for table in theta["emission_proba"]:
            cuts = np.cumsum(table, axis=1)[:, :-1]
            u = rng.random((*states.shape, 1))
            columns.append((u >= cuts[states]).sum(axis=-1))
        return np.stack(columns, axis=-1).astype(float), states
    if emission == "poisson":
        return rng.poisson(theta["means"][states]).astype(float), states
    roots = np.linalg.cholesky(theta["covariances"])
    d = roots.shape[1]
    noise = np.einsum(
        "...kl,...l->...k", roots[states], rng.normal(size=(*states.shape, d))
    )
    if emission == "student":
        df = theta["df"][states]
        noise *= np.sqrt(df / rng.chisquare(df))[..., None]
    return theta["means"][states] + noise, states


def told(x, emission):
    """The rows as the estimator is given them."""
    if emission != "categorical":
        return np.array(x, dtype=float)
    found = np.full(np.shape(x), np.nan)
    for k, names in enumerate(CATEGORIES):
        there = ~np.isnan(x[:, k])
        found[there, k] = np.array(names)[x[there, k].astype(int)]
    return found


def together(sequences, emission):
    """All rows as the estimator is given them, and the lengths."""
    return told(np.vstack(sequences), emission), [len(x) for x in sequences]


def start_of(theta, emission):
    """The parameters that fix the start."""
    return {
        f"{name}_init": theta[name]
        for name in ("startprob", "transmat", *NAMES[emission])
    }


def general(theta, emission, covariance_type="full", **options):
    """An unfitted estimator that starts at a model."""
    if emission == "categorical":
        options = {"categories": CATEGORIES, **options}
    options = {"reg_covar": 0.0, "tol": 0.0, **start_of(theta, emission), **options}
    return BaumWelchHMM(
        len(theta["startprob"]),
        emission=emission,
        covariance_type=covariance_type,
        **options,
    )


def fit_law(
    sequences, theta, emission, covariance_type="full", n_iter=1, known=None, **options
):
    """The estimator after exactly `n_iter` updates of a given start."""
    X, lengths = together(sequences, emission)
    states = None if known is None else np.concatenate(known)
    model = general(theta, emission, covariance_type, max_iter=n_iter, **options)
    with unfinished():
        return model.fit(X, lengths=lengths, states=states)


def law_at(theta, emission, covariance_type="full", **options):
    """A fitted estimator with these parameters in place of the fitted ones."""
    s = len(theta["startprob"])
    usual = model_of(emission, covariance_type, 1, s)
    x, _ = drawn(usual, emission, 60, np.random.default_rng(1))
    model = fit_law(list(x), usual, emission, covariance_type, **options)
    for name in ("startprob", "transmat", *NAMES[emission]):
        value = theta[name]
        if name == "emission_proba":
            value = [np.array(table, dtype=float) for table in value]
        else:
            value = np.array(value, dtype=float)
            assert getattr(model, f"{name}_").shape == value.shape
        setattr(model, f"{name}_", value)
    return model


def fitted(model, emission):
    """The fitted parameters, as the reference has them."""
    names = ("startprob", "transmat", *NAMES[emission])
    return {name: getattr(model, f"{name}_") for name in names}


def assert_law(found, expected, rtol=1e-9, atol=1e-11):
    """Two sets of parameters agree, tables of categories included."""
    assert set(found) == set(expected)
    for name, value in expected.items():
        pairs = [(found[name], value)]
        if name == "emission_proba":
            pairs = list(zip(found[name], value, strict=True))
        for got, want in pairs:
            # Broadcasting would hide a missing axis.
            assert np.shape(got) == np.shape(want), name
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=name)


def steps_of(sequences, theta, emission):
    """Reference log p(x_t | x_<t) of all rows, from enumerated sequences."""
    found = []
    for x in sequences:
        B = ref.log_outputs(x, theta, emission)
        totals = [
            ref.enumerate_paths(B[: i + 1], theta["startprob"], theta["transmat"])[
                "loglik"
            ]
            for i in range(len(x))
        ]
        found.append(np.diff([0.0, *totals]))
    return np.concatenate(found)
