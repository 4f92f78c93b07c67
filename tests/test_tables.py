"""Every public estimator on tables as people have them.

`fit` and what a fitted estimator offers give numbers that are what they claim to be, or
an error in words that leaves the estimator as it was; never a warning of NumPy's.
`tables.py` makes the tables. ``--hypothesis-profile=deep`` tries many more.
"""

import inspect
import linecache
import pickle
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from common import public_estimators
from fuzz import fuzz
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import PoissonRegressor
from sklearn.utils import get_tags
from tables import (
    FORMS,
    LABELS,
    MATRICES,
    NUMBERS,
    SAME,
    SPARSE,
    Memory,
    Table,
    any_target,
    pd,
    pl,
    tables,
)
from tables_found import FOUND

import skbounds
from skbounds.fenchel_young.structures import KSubsets

# ---------------------------------------------------------------------- estimators


@dataclass(frozen=True)
class Case:
    """An estimator, and what it is given.

    Attributes
    ----------
    estimator : estimator
        With parameters that make fits quick.
    targets : tuple of dict
        Tables of targets that suit it; none for densities.
    d : int or None
        The number of columns, where only one will do.
    base : str
        Of `tables.BASES`, of the rows that fit well.
    """

    estimator: object
    targets: tuple = ()
    d: int | None = None
    base: str = "normal"

    @property
    def pairwise(self):
        return get_tags(self.estimator).input_tags.pairwise


_S = skbounds
_LOGISTIC = _S.SMPLogisticRegression(method="one-step")
_QUICK = {"stopping": "cp", "gamma": 0.5, "relevance": None, "random_state": 0}
_QUICK_CLASSES = {"stopping": "alo", "gamma": 0.5, "random_state": 0}
_ONLINE = {"random_state": 0}
_RANKS = {"ranks": None, **MATRICES}
_SUBSETS = {"two of four": None, **MATRICES}

CASES = {
    "SMPLogisticRegression": Case(_S.SMPLogisticRegression(), (LABELS,)),
    "SMPLogisticRegression, one-step": Case(_LOGISTIC, (LABELS,)),
    "SMPLogisticRegression, theory": Case(
        _S.SMPLogisticRegression("theory", penalize_intercept=True), (LABELS,)
    ),
    "SMPLogisticRegression, loo": Case(
        _S.SMPLogisticRegression("loo", Cs=3, fit_intercept=False), (LABELS,)
    ),
    "SMPLogisticRegression, balanced": Case(
        _S.SMPLogisticRegression(class_weight="balanced", method="one-step"), (LABELS,)
    ),
    "SMPLogisticRegressionCV": Case(_S.SMPLogisticRegressionCV(Cs=3), (LABELS,)),
    "SMPLogisticRegressionCV, best": Case(
        _S.SMPLogisticRegressionCV(Cs=2, aggregation="best", loo="one-step"), (LABELS,)
    ),
    "SMPClassifier": Case(_S.SMPClassifier(_LOGISTIC), (LABELS,)),
    "SMPClassifier, influence": Case(_S.SMPClassifier(method="influence"), (LABELS,)),
    "SMPRegressor": Case(_S.SMPRegressor(_S.RidgeSMP(sigma=1.0)), (NUMBERS,)),
    "SMPRegressor, influence": Case(
        _S.SMPRegressor(PoissonRegressor(alpha=0.1), method="influence"),
        ({"counts": NUMBERS["counts"], **NUMBERS},),
    ),
    "RidgeSMP": Case(_S.RidgeSMP(), (NUMBERS,)),
    "RidgeSMP, loo": Case(_S.RidgeSMP("loo", penalize_intercept=True), (NUMBERS,)),
    "RidgeSMP, theory": Case(
        _S.RidgeSMP("theory", sigma=1.0, fit_intercept=False), (NUMBERS,)
    ),
    "RidgeSMP, joint": Case(_S.RidgeSMP(0.0, sigma="joint"), (NUMBERS,)),
    "RidgeSMP, bayes": Case(_S.RidgeSMP(width="bayes"), (NUMBERS,)),
    "RidgeSMPCV": Case(_S.RidgeSMPCV(3), (NUMBERS,)),
    "KernelRidgeSMP": Case(_S.KernelRidgeSMP(), (NUMBERS,)),
    "KernelRidgeSMP, rbf": Case(
        _S.KernelRidgeSMP("loo", kernel="rbf", alphas=3), (NUMBERS,)
    ),
    "KernelRidgeSMP, precomputed": Case(
        _S.KernelRidgeSMP(kernel="precomputed"), (NUMBERS,)
    ),
    "GaussianSMP": Case(_S.GaussianSMP()),
    "GaussianSMP, mle": Case(_S.GaussianSMP(variant="mle")),
    "MultinomialSMP": Case(_S.MultinomialSMP(), d=1, base="integers"),
    "PoissonSMP": Case(_S.PoissonSMP(), d=1, base="counts"),
    "FenchelYoungOnlineClassifier": Case(
        _S.FenchelYoungOnlineClassifier(**_ONLINE), (LABELS,)
    ),
    "FenchelYoungOnlineClassifier, ogd": Case(
        _S.FenchelYoungOnlineClassifier(learner="ogd", average=True, **_ONLINE),
        (LABELS,),
    ),
    "FenchelYoungOnlineClassifier, adaptive": Case(
        _S.FenchelYoungOnlineClassifier(learner="adaptive", diameter=20.0, **_ONLINE),
        (LABELS,),
    ),
    "FenchelYoungOnlineClassifier, parameter_free": Case(
        _S.FenchelYoungOnlineClassifier(
            learner="parameter_free", decoding="argmax", **_ONLINE
        ),
        (LABELS,),
    ),
    "FenchelYoungOnlineClassifier, sparsemax": Case(
        _S.FenchelYoungOnlineClassifier(
            "sparsemax", learner="auto", feature_scaling="none", max_iter=2, **_ONLINE
        ),
        (LABELS,),
    ),
    "FenchelYoungOnlineMultilabelClassifier": Case(
        _S.FenchelYoungOnlineMultilabelClassifier(**_ONLINE), (MATRICES,)
    ),
    "FenchelYoungOnlineMultilabelClassifier, sparsemap": Case(
        _S.FenchelYoungOnlineMultilabelClassifier("sparsemap", **_ONLINE), (MATRICES,)
    ),
    "FenchelYoungOnlineOrdinalClassifier": Case(
        _S.FenchelYoungOnlineOrdinalClassifier(**_ONLINE), (LABELS,)
    ),
    "FenchelYoungOnlineRanker": Case(_S.FenchelYoungOnlineRanker(**_ONLINE), (_RANKS,)),
    "FenchelYoungOnlineRanker, birkhoff": Case(
        _S.FenchelYoungOnlineRanker("birkhoff", learner="ogd", **_ONLINE),
        (_RANKS,),
    ),
    "FenchelYoungOnlineStructured": Case(
        _S.FenchelYoungOnlineStructured(KSubsets(4, 2), **_ONLINE),
        (_SUBSETS,),
    ),
    "BaumWelchHMM": Case(_S.BaumWelchHMM(max_iter=5, random_state=0)),
    "BaumWelchHMM, full": Case(
        _S.BaumWelchHMM(
            covariance_type="full", max_iter=5, decoder="viterbi", random_state=0
        )
    ),
    "BaumWelchHMM, student": Case(
        _S.BaumWelchHMM(emission="student", max_iter=5, random_state=0)
    ),
    "BaumWelchHMM, poisson": Case(
        _S.BaumWelchHMM(emission="poisson", max_iter=5, random_state=0), base="counts"
    ),
    "BaumWelchHMM, categorical": Case(
        _S.BaumWelchHMM(emission="categorical", max_iter=5, random_state=0),
        base="counts",
        d=1,
    ),
    "BaumWelchHMM, symmetric": Case(
        _S.BaumWelchHMM(structure="symmetric", sigma=1.0, max_iter=5, random_state=0)
    ),
    "EarlyStoppedKernelBoost": Case(_S.EarlyStoppedKernelBoost(**_QUICK), (NUMBERS,)),
    "EarlyStoppedKernelBoost, gcv": Case(
        _S.EarlyStoppedKernelBoost(
            stopping="gcv", gamma="scale", relevance=None, random_state=0
        ),
        (NUMBERS,),
    ),
    "EarlyStoppedKernelBoost, lowrank": Case(
        _S.EarlyStoppedKernelBoost(
            **(_QUICK | {"stopping": "theory", "gamma": "auto"}), solver="lowrank"
        ),
        (NUMBERS,),
    ),
    "EarlyStoppedKernelBoost, gd": Case(
        _S.EarlyStoppedKernelBoost(
            **(_QUICK | {"stopping": "gcv"}), solver="gd", max_iter=50
        ),
        (NUMBERS,),
    ),
    "EarlyStoppedKernelBoost, sobolev": Case(
        _S.EarlyStoppedKernelBoost("sobolev", stopping="cp", relevance=None),
        (NUMBERS,),
        d=1,
        base="counts",
    ),
    "EarlyStoppedKernelBoost, validation": Case(
        _S.EarlyStoppedKernelBoost(
            "laplacian", **(_QUICK | {"stopping": "validation"})
        ),
        (NUMBERS,),
    ),
    "EarlyStoppedKernelBoost, huber": Case(
        _S.EarlyStoppedKernelBoost(
            loss="huber", **(_QUICK | {"stopping": "validation"})
        ),
        (NUMBERS,),
    ),
    "EarlyStoppedKernelBoost, precomputed": Case(
        _S.EarlyStoppedKernelBoost("precomputed", stopping="gcv", relevance=None),
        (NUMBERS,),
    ),
    "EarlyStoppedKernelBoostClassifier": Case(
        _S.EarlyStoppedKernelBoostClassifier(**_QUICK_CLASSES), (LABELS,)
    ),
    "EarlyStoppedKernelBoostClassifier, exponential": Case(
        _S.EarlyStoppedKernelBoostClassifier(
            loss="exponential", **(_QUICK_CLASSES | {"stopping": "aic"})
        ),
        (LABELS,),
    ),
    "EarlyStoppedKernelBoostClassifier, scale": Case(
        _S.EarlyStoppedKernelBoostClassifier(
            **(_QUICK_CLASSES | {"gamma": "scale", "stopping": "theory"}),
            solver="lowrank",
        ),
        (LABELS,),
    ),
    "PACBayesSVMEnsemble": Case(_S.PACBayesSVMEnsemble(3, random_state=0), (LABELS,)),
    "PACBayesSVMEnsemble, bound": Case(
        _S.PACBayesSVMEnsemble(
            3,
            standardize=True,
            prior="uniform",
            posterior="bound",
            gamma="sigest",
            random_state=0,
        ),
        (LABELS,),
    ),
    "PACBayesSVMEnsemble, progressive": Case(
        _S.PACBayesSVMEnsemble(
            2, kernel="linear", scheme="progressive", n_blocks=2, random_state=0
        ),
        (LABELS,),
    ),
    "PACBayesSVMEnsemble, precomputed": Case(
        _S.PACBayesSVMEnsemble(2, kernel="precomputed", random_state=0), (LABELS,)
    ),
    "PACBayesEnsembleClassifier": Case(
        _S.PACBayesEnsembleClassifier([_LOGISTIC], inner_cv=2, random_state=0),
        (LABELS,),
    ),
    "PACBayesEnsembleClassifier, tandem": Case(
        _S.PACBayesEnsembleClassifier(
            [_LOGISTIC, clone(_LOGISTIC).set_params(C=0.1)],
            prior="uniform",
            posterior="tandem",
            random_state=0,
        ),
        (LABELS,),
    ),
    "BolsteredSearchCV": Case(
        _S.BolsteredSearchCV(_LOGISTIC, {"C": [0.1, 1.0]}, error_score="raise"),
        (LABELS,),
    ),
    "BolsteredSearchCV, ridge": Case(
        _S.BolsteredSearchCV(
            _S.RidgeSMP(sigma=1.0),
            {"alpha": [0.1, 1.0]},
            method="x",
            error_score="raise",
        ),
        (NUMBERS,),
    ),
    "BolsteredScorer": Case(_S.BolsteredScorer(method="x"), (LABELS, NUMBERS)),
    "BolsteredScorer, xy": Case(_S.BolsteredScorer(method="xy"), (NUMBERS,)),
}


def test_every_public_estimator_meets_the_tables():
    """New ones are to be added to CASES."""
    assert {type(c.estimator).__name__ for c in CASES.values()} == set(
        public_estimators()
    )


# ------------------------------------------------------------------ what must hold

OWN = str(Path(skbounds.__file__).parent)


class Unclear(AssertionError):
    """An error that people cannot make sense of."""


def check_error(error):
    """Refuse errors that are not raised in words, here or by scikit-learn's checks."""
    if not isinstance(error, (ValueError, TypeError)) or isinstance(
        error, np.linalg.LinAlgError
    ):
        raise Unclear(f"{type(error).__name__}: {error}") from error
    frames, step = [], error.__traceback__
    while step is not None:
        frames.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    # scikit-learn asks NumPy and SciPy for arrays, and explains most of what they say.
    if any("/sklearn/utils/" in path for path, _ in frames):
        return
    path, line = frames[-1]
    said = linecache.getline(path, line).strip().startswith("raise")
    if not said or not (path.startswith(OWN) or "/sklearn/" in path):
        raise Unclear(f"{type(error).__name__}: {error}") from error
    assert len(str(error)) > 15


def bytes_of(estimator):
    """Return what an estimator holds, deeply, but for the names of streams."""
    return pickle.dumps(held_by(estimator))


def held_by(estimator):
    found = vars(estimator).items()
    # Compiled loops that predictions leave behind hold nothing of their own.
    skipped = ("_problem_", "_stream_", "_light")
    return {k: v for k, v in found if k not in skipped}


def numbers_of(given):
    """Return what an argument of a fit holds, but for what it remembers of itself."""
    if sparse.issparse(given):
        names = ("data", "indices", "indptr", "row", "col", "rows")
        parts = [np.asarray(getattr(given, k)) for k in names if hasattr(given, k)]
        return given.format, given.shape, [numbers_of(part) for part in parts]
    if isinstance(given, (pd.DataFrame, pd.Series, pl.DataFrame, pl.Series)):
        given = given.to_numpy()
    if isinstance(given, Memory):
        given = given.values
    if isinstance(given, np.ndarray) and given.dtype.kind != "O":
        return str(given.dtype), given.shape, given.tobytes()
    return repr(given.tolist() if isinstance(given, np.ndarray) else given)


@cache
def fitted_bytes(name):
    """Return the pickle of the case's estimator, fitted to plain rows."""
    case = CASES[name]
    table = Table(n=30, d=case.d or 3, base=case.base)
    if case.targets:
        table = Table(table.n, table.d, table.base, target=next(iter(case.targets[0])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(case.estimator).fit(*data_of(case, table)[:2])
    return pickle.dumps(model)


def data_of(case, table):
    """Return X, y and sample_weight for an estimator."""
    d = case.d if case.d and table.form in WELL_FORMED else None
    X = table.rows(d)
    if case.pairwise and table.form in WELL_FORMED:
        with np.errstate(all="ignore"):
            X = FORMS[table.form](table.values() @ table.values().T)
    y = table.targets() if case.targets else None
    return X, y, table.weight()


WELL_FORMED = {"array", "csr", "frame", "F order", "float32", "polars", "lists"}


def quietly(function, *args, **kwargs):
    """Call a function; what NumPy, SciPy and others warn of is an error."""
    model = getattr(function, "__self__", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Fits and predictions of scikit-learn's estimators are its own.
        warnings.filterwarnings("ignore", module=r"sklearn\.(linear_model|_loss)\.")
        warnings.filterwarnings("ignore", module=r"scipy\.optimize\.")
        # This package's words, and scikit-learn's.
        for category in (UserWarning,):
            warnings.filterwarnings("ignore", category=category)
        if getattr(model, "method", "") == "influence":
            # Its look at large numbers in a member's fit, which is in NumPy's module.
            warnings.filterwarnings("ignore", "invalid value encountered in reduce")
        # Raised inside pandas and polars interchange code.
        warnings.filterwarnings("ignore", ".*interchange protocol.*")
        return function(*args, **kwargs)


def attempt(model, method, *args, **kwargs):
    """Call a method: its value, or None after a clear error that changed nothing."""
    before, held = bytes_of(model), held_by(model)
    try:
        return quietly(getattr(model, method), *args, **kwargs)
    except Warning:
        raise
    except Exception as error:
        check_error(error)
        now = held_by(model)
        assert now.keys() == held.keys(), "an error left attributes behind"
        assert all(now[k] is v for k, v in held.items())
        assert bytes_of(model) == before, "an error changed what was fitted"
        return None


def check_probabilities(p, n):
    assert p.ndim == 2 and len(p) == n
    assert np.isfinite(p).all() and (p >= 0.0).all() and (p <= 1.0).all()


def check_outputs(case, model, X, n, *, must=False):
    """Check what a fitted estimator says of rows, if it says anything."""
    found = {}
    for method in (
        "predict",
        "predict_proba",
        "predict_log_proba",
        "decision_function",
        "predict_interval",
        "predict_quantiles",
        "log_normalizer",
        "score_samples",
    ):
        if not hasattr(model, method):
            continue
        args = ([0.1, 0.5, 0.9],) if method == "predict_quantiles" else ()
        values = attempt(model, method, X, *args)
        if values is None:
            assert not must, f"{method} refuses the rows of the fit"
            continue
        values = found[method] = np.asarray(values)
        assert len(values) == n, method
        if values.dtype.kind in "fc":
            allowed = method == "predict_log_proba"
            good = np.isfinite(values) | (allowed & (values == -np.inf))
            assert good.all(), (method, values[~good][:3])
    several = any("ranks" in names for names in case.targets)
    if is_classifier(model) and not several and "predict" in found:
        assert np.isin(found["predict"], model.classes_).all()
    if "predict_proba" in found:
        p = found["predict_proba"]
        # Expected ranks of the permutahedron are up to the number of items.
        top = p.shape[1] if getattr(model, "structure", "") == "permutahedron" else 1.0
        assert (p >= 0.0).all() and (p <= top).all()
        if not several and p.ndim == 2:
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-9)
        if "predict_log_proba" in found:
            np.testing.assert_allclose(
                np.exp(found["predict_log_proba"]), p, rtol=1e-9, atol=1e-12
            )
    if "predict_quantiles" in found:
        assert (np.diff(found["predict_quantiles"], axis=1) >= 0.0).all()
    if is_regressor(model) and "predict_interval" in found:
        interval = found["predict_interval"]
        assert (interval[:, 0] <= interval[:, 1]).all()
    return found


def check_fit(name, table, new, refit):
    """Fit an estimator to a table and ask it about these rows and those of another."""
    case = CASES[name]
    model = pickle.loads(fitted_bytes(name)) if refit else clone(case.estimator)
    X, y, weight = data_of(case, table)
    given = [numbers_of(part) for part in (X, y, weight)]
    arguments = {}
    if (
        weight is not None
        and "sample_weight" in inspect.signature(model.fit).parameters
    ):
        arguments["sample_weight"] = weight
    done = attempt(model, "fit", X, y, **arguments)
    for part, before in zip((X, y, weight), given, strict=True):
        assert numbers_of(part) == before, "fit changed its arguments"
    if done is None:
        return
    # Of one variable, rows in a vector are taken for a column.
    n = table.n * table.d if table.form == "vector" else table.n
    if isinstance(model, skbounds.BolsteredScorer):
        check_scorer(model, X, y, weight)
        return
    # What has weight 0 was not seen, and members may take dates in fits only.
    seen = weight is None and table.form != "dates"
    # Leverages of larger ones are rounding, and may be beyond what doubles hold.
    seen = seen and bool((np.abs(table.values()) < 1e50).all())
    check_outputs(case, model, X, n, must=seen)
    if hasattr(model, "score"):
        args = (X,) if not case.targets else (X, y)
        value = attempt(model, "score", *args)
        if value is not None:
            # R squared of one row is what nobody knows.
            unknown = n < 2 and is_regressor(model)
            assert np.ndim(value) == 0 and (np.isfinite(value) or unknown), value
    if hasattr(model, "partial_fit"):
        # The same rows once more.
        assert attempt(model, "partial_fit", X, y) is model
        check_outputs(case, model, X, n, must=True)
    others, *_ = data_of(case, new)
    n = new.n * new.d if new.form == "vector" else new.n
    check_outputs(case, model, others, n)


def check_scorer(scorer, X, y, weight):
    """Check an estimate of the error of a model of this package on the rows."""
    if scorer.method == "xy" or np.asarray(y).dtype.kind == "f":
        member = skbounds.RidgeSMP(sigma=1.0)
    else:
        member = clone(_LOGISTIC)
    if attempt(member, "fit", X, y, sample_weight=weight) is None:
        return
    value = attempt(scorer, "__call__", member, X, y, sample_weight=weight)
    assert value is None or np.isfinite(value), value


def targets_for(case):
    return any_target(*case.targets) if case.targets else st.just("ints")


@pytest.mark.parametrize("number", [25, pytest.param(70, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_any_table(name, number):
    """Numbers that are what they claim to be, or an error in words."""

    @fuzz(number)
    @given(tables(targets_for(CASES[name])), tables(st.just("ints")), st.booleans())
    def holds(table, new, refit):
        check_fit(name, table, new, refit)

    holds()


@pytest.mark.parametrize(("name", "table", "new"), FOUND)
def test_what_was_found(name, table, new):
    """Tables that broke something once, unfitted and fitted before."""
    for refit in (False, True):
        check_fit(name, table, new, refit)


# ------------------------------------------------- what must not change the answer


@st.composite
def plain_tables(draw, case):
    """Draw tables of numbers of a size, which any estimator of the case takes."""
    base = case.base
    if base == "normal":
        base = draw(st.sampled_from(["normal", "integers", "binary", "mostly zero"]))
    steps = st.one_of(
        st.tuples(st.just("copy column"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("repeat rows"), st.integers(6, 9)),
        st.tuples(st.just("column"), st.integers(0, 3), st.sampled_from([0.0, 1.0])),
    )
    return Table(
        n=draw(st.sampled_from([20, 12, 30])),
        d=case.d or draw(st.sampled_from([2, 3, 1, 4])),
        base=base,
        steps=draw(st.lists(steps, max_size=2).map(tuple)),
        target=next(iter(case.targets[0])) if case.targets else "ints",
        classes=draw(st.sampled_from([2, 3])),
        seed=draw(st.integers(0, 99)),
    )


def answer(case, X, y, weight=None, new=None):
    """Return what the estimator says of rows after a fit, or the error in words."""
    model = clone(case.estimator)
    weights = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(model, skbounds.BolsteredScorer):
                return np.asarray(model.fit(X, y, **weights).kernel_)
            model.fit(X, y, **weights) if case.targets else model.fit(X, **weights)
            for method in ("predict_proba", "predict", "score_samples"):
                if hasattr(model, method):
                    return np.asarray(getattr(model, method)(X if new is None else new))
        except (TypeError, ValueError) as error:
            check_error(error)
            return str(error)


def assert_same(found, expected, tolerance=1e-6):
    if isinstance(expected, str) or isinstance(found, str):
        assert isinstance(found, str) and isinstance(expected, str), (found, expected)
    elif expected.dtype.kind == "f":
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
    else:
        np.testing.assert_array_equal(found, expected)


# Refits and exact virtual fits of every row: their settings above are enough.
QUICK = [
    name
    for name in CASES
    if name not in ("SMPClassifier", "SMPRegressor", "SMPLogisticRegression, loo")
]
# What takes sparse rows for rows in other units, or solves to a tolerance only.
OTHERWISE_SPARSE = ("FenchelYoung", "PACBayesSVM", "Bolstered", "SMPClassifier")
# States in another order; rows dealt to parts by what they hold, column by column;
# one kernel per column.
ORDERED_COLUMNS = (
    "BaumWelchHMM",
    "PACBayes",
    "BolsteredScorer",
    "EarlyStoppedKernelBoost, huber",
)
# Rows drawn one by one, of which the repeated ones are others; kernels of rows.
OTHER_REPETITIONS = (
    "EarlyStoppedKernelBoost, validation",
    "EarlyStoppedKernelBoost, huber",
    "BolsteredScorer",
)


def well_posed(case, table):
    """Return rows and targets, in numbers that any type and form holds."""
    X = np.round(table.values() * 64.0) / 64.0
    return X @ X.T if case.pairwise else X, table.targets()


@pytest.mark.parametrize("name", QUICK)
def test_the_same_numbers_in_another_form(name):
    """Containers, orders and types of the same numbers; sparse forms of one another."""
    case = CASES[name]
    forms = st.sampled_from(sorted(SAME)), st.sampled_from(sorted(SPARSE))

    @fuzz(6)
    @given(plain_tables(case), *forms)
    def holds(table, form, other):
        X, y = well_posed(case, table)
        plain, rows = answer(case, X, y), answer(case, sparse.csr_matrix(X), y)
        assert_same(answer(case, SAME[form](X), y), plain)
        assert_same(answer(case, SPARSE[other](X), y), rows)
        if not name.startswith(OTHERWISE_SPARSE) and not isinstance(rows, str):
            assert_same(rows, plain)

    holds()


def has_columns_in_any_order(name):
    case = CASES[name]
    return not (case.pairwise or case.d == 1 or name.startswith(ORDERED_COLUMNS))


@pytest.mark.parametrize("name", filter(has_columns_in_any_order, QUICK))
def test_columns_in_another_order(name):
    """Predictions do not know which column came first."""
    case = CASES[name]

    @fuzz(6)
    @given(plain_tables(case), st.randoms(use_true_random=False))
    def holds(table, random):
        X, y = well_posed(case, table)
        columns = random.sample(range(X.shape[1]), X.shape[1])
        assert_same(answer(case, X[:, columns], y), answer(case, X, y))

    holds()


def takes_weights(name):
    case = CASES[name]
    takes = "sample_weight" in inspect.signature(case.estimator.fit).parameters
    return takes and not case.pairwise


@pytest.mark.parametrize("name", filter(takes_weights, QUICK))
def test_weights_are_numbers_of_rows(name):
    """Whole weights are repeated rows; of weight 0 are rows that are not there."""
    case = CASES[name]

    @fuzz(6)
    @given(plain_tables(case), st.integers(0, 99))
    def holds(table, seed):
        X, y = well_posed(case, table)
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 3, size=len(X))
        kept, times = np.flatnonzero(counts), np.repeat(np.arange(len(X)), counts)
        take = lambda rows: (X[rows], None if y is None else y[rows])
        if not name.startswith(OTHER_REPETITIONS):
            assert_same(
                answer(case, X, y, counts, new=X), answer(case, *take(times), new=X)
            )
        weight = counts * rng.uniform(0.5, 2.0, size=len(X))
        assert_same(
            answer(case, X, y, weight, new=X),
            answer(case, *take(kept), weight[kept], new=X),
        )

    holds()
