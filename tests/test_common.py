"""Checks that hold for every public estimator."""

import inspect
import io
import os
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from common import (
    expected_failures,
    instances,
    make_data,
    prediction_methods,
    public_estimators,
)
from numpy.testing import assert_allclose, assert_array_equal
from packaging.version import parse as parse_version
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

ALL = instances() + instances(outside=True)
SUPERVISED = [est for est in instances() if is_classifier(est) or is_regressor(est)]


def parametrize_checks(estimators):
    """Hide the one difference between versions of ``parametrize_with_checks``."""
    options = {}
    if "xfail_strict" in inspect.signature(parametrize_with_checks).parameters:
        options["xfail_strict"] = True
    return parametrize_with_checks(
        estimators, expected_failed_checks=expected_failures, **options
    )


def by_repr(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=repr)


@parametrize_checks(instances())
def test_sklearn_suite(estimator, check):
    """scikit-learn's own suite."""
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        "check_param_validation",
        "check_dataframe_column_names_consistency",
        "check_inplace_ensure_writeable",
    ],
)
@by_repr(instances())
def test_sklearn_checks_left_out_of_the_suite(estimator, check):
    """Checks that scikit-learn applies to itself but does not hand out."""
    pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")
    if get_tags(estimator).input_tags.pairwise:
        pytest.skip("these checks have no kernel matrix to offer")
    getattr(estimator_checks, check)(type(estimator).__name__, clone(estimator))


@pytest.mark.slow
def test_suite_with_array_api_dispatch():
    """All of the suite passes in a process with SCIPY_ARRAY_API=1."""
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from common import instances, expected_failures\n"
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "for est in instances():\n"
        "    for result in check_estimator(est, on_skip=None, on_fail=None,\n"
        "            expected_failed_checks=expected_failures(est)):\n"
        "        assert result['status'] != 'failed', result\n"
        "        if result['check_name'] == 'check_array_api_input':\n"
        "            print(result['status'])\n"
    )
    folder = os.path.dirname(__file__)
    env = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": folder}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    if parse_version(sklearn.__version__) >= parse_version("1.9"):
        # Older versions run this check only where array API support is claimed.
        pytest.importorskip("array_api_strict", reason="test extra not installed")
        assert run.stdout.split() == ["passed"] * len(instances())


@by_repr(ALL)
def test_pickle_and_joblib_round_trip(estimator, tmp_path):
    """Predictions survive pickle and joblib bit for bit."""
    X, y = make_data(estimator)
    fitted = clone(estimator).fit(X, y)
    joblib.dump(fitted, tmp_path / "model.joblib")
    for copy in (
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "model.joblib"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
    ):
        for name, method in prediction_methods(fitted).items():
            assert_array_equal(getattr(copy, name)(X), method(X))


@by_repr(ALL)
def test_skops_round_trip_trusts_only_this_package(estimator):
    """The fitted state is made of types that skops knows."""
    skops_io = pytest.importorskip("skops.io", reason="test extra not installed")
    X, y = make_data(estimator)
    fitted = clone(estimator).fit(X, y)
    data = skops_io.dumps(fitted)
    untrusted = skops_io.get_untrusted_types(data=data)
    assert all(name.startswith("skbounds.") for name in untrusted), untrusted
    loaded = skops_io.loads(data, trusted=untrusted)
    for name, method in prediction_methods(fitted).items():
        assert_array_equal(getattr(loaded, name)(X), method(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@by_repr(instances())
def test_dataframes(estimator, library):
    """Dataframes give the array's predictions and keep the column names."""
    module = pytest.importorskip(library, reason="test extra not installed")
    X, y = make_data(estimator)
    names = [f"x{j}" for j in range(X.shape[1])]
    frame = module.DataFrame(dict(zip(names, X.T, strict=True)))
    fitted = clone(estimator).fit(frame, y)
    assert_array_equal(fitted.feature_names_in_, names)
    reference = clone(estimator).fit(X, y)
    for name, method in prediction_methods(reference).items():
        # The frame's memory layout may change the order of sums.
        assert_close(getattr(fitted, name)(frame), method(X))


def assert_close(actual, expected):
    """Equal labels, or numbers equal to within rounding."""
    if np.asarray(expected).dtype.kind == "f":
        assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)
    else:
        assert_array_equal(actual, expected)


def _scaler(estimator):
    """Return a scaler whose output is not negative where it must not be."""
    return StandardScaler(with_mean=not get_tags(estimator).input_tags.positive_only)


@by_repr(SUPERVISED)
def test_pipeline_search_and_frozen(estimator):
    """Works in cross_val_predict, GridSearchCV, Pipeline and FrozenEstimator."""
    from sklearn.frozen import FrozenEstimator

    X, y = make_data(estimator)
    out = cross_val_predict(clone(estimator), X, y, cv=3)
    assert len(out) == len(y)
    if not get_tags(estimator).input_tags.pairwise:
        pipeline = make_pipeline(_scaler(estimator), clone(estimator))
        name = pipeline.steps[-1][0]
        pipeline.fit(X, y)
        grids = {
            "C": [0.1, 1.0],
            "alpha": [0.1, 1.0],
            "learning_rate": [0.5, 1.0],
            "delta": [0.05, 0.1],
            "lam": [0.5, 1.0],
            "random_state": [0, 1],
        }
        key, values = next(
            item for item in grids.items() if item[0] in estimator.get_params()
        )
        search = GridSearchCV(pipeline, {f"{name}__{key}": values}, cv=3).fit(X, y)
        assert np.isfinite(search.best_score_)
    fitted = clone(estimator).fit(X, y)
    frozen = FrozenEstimator(fitted).fit(X[:0], y[:0])
    assert_array_equal(frozen.predict(X), fitted.predict(X))


@by_repr(SUPERVISED)
def test_metadata_routing(estimator):
    """sample_weight reaches fit through a pipeline, with routing on and off."""
    if get_tags(estimator).input_tags.pairwise:
        pytest.skip("a kernel matrix cannot be scaled by a pipeline step")
    if "sample_weight" not in inspect.signature(estimator.fit).parameters:
        pytest.skip("has no sample_weight")
    X, y = make_data(estimator)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(y))
    step = type(estimator).__name__.lower()
    plain = make_pipeline(_scaler(estimator), clone(estimator))
    plain.fit(X, y, **{f"{step}__sample_weight": weight})
    with sklearn.config_context(enable_metadata_routing=True):
        requesting = clone(estimator).set_fit_request(sample_weight=True)
        scaler = _scaler(estimator).set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, requesting).fit(X, y, sample_weight=weight)
    assert_array_equal(routed.predict(X), plain.predict(X))
    without = make_pipeline(_scaler(estimator), clone(estimator)).fit(X, y)
    name = "predict_proba" if is_classifier(estimator) else "predict"
    assert not np.array_equal(getattr(plain, name)(X), getattr(without, name)(X))


@by_repr([est for est in instances() if "n_jobs" in est.get_params()])
def test_n_jobs_changes_no_bit_and_no_thread_limit(estimator):
    """The same bits whatever n_jobs is; BLAS threads are left as found."""
    from threadpoolctl import threadpool_info

    X, y = make_data(estimator, n_samples=300)
    before = [pool["num_threads"] for pool in threadpool_info()]
    results = []
    for n_jobs in (1, 2):
        fitted = clone(estimator).set_params(n_jobs=n_jobs).fit(X, y)
        rows = np.random.default_rng(2).normal(size=(2000, X.shape[1]))
        name = "predict_proba" if is_classifier(estimator) else "predict"
        results.append(getattr(fitted, name)(rows))
    assert_array_equal(*results)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@by_repr(ALL)
def test_failed_fit_leaves_nothing_behind(estimator):
    """After an error in fit the estimator is as it was before."""
    X, y = make_data(estimator)
    bad = np.array(X, dtype=float)
    # Missing entries are welcome to some.
    bad[0, 0] = np.inf
    fresh = clone(estimator)
    with pytest.raises(ValueError):
        fresh.fit(bad, y)
    assert vars(fresh).keys() == vars(clone(estimator)).keys()
    fitted = clone(estimator).fit(X, y)
    state = dict(vars(fitted))
    with pytest.raises(ValueError):
        fitted.fit(bad, y)
    assert vars(fitted).keys() == state.keys()
    assert all(vars(fitted)[name] is value for name, value in state.items())


@by_repr(ALL)
def test_html_and_text_representation(estimator):
    """Displaying a fitted estimator computes nothing and warns of nothing."""
    X, y = make_data(estimator)
    fitted = clone(estimator).fit(X, y)
    before = set(vars(fitted))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(estimator).__name__ in repr(fitted)
        fitted._repr_html_()
    assert set(vars(fitted)) == before


def check_clone(estimator, X, y):
    fitted = clone(estimator).fit(X, y)
    assert not any(name.endswith("_") for name in vars(clone(fitted)))


def check_parameters(estimator, X, y):
    names = set(inspect.signature(type(estimator)).parameters)
    assert set(type(estimator)._parameter_constraints) == names
    assert set(estimator.get_params()) == names


def check_idempotent(estimator, X, y):
    fitted = clone(estimator).fit(X, y)
    first = {name: call(X) for name, call in prediction_methods(fitted).items()}
    assert fitted.fit(X, y) is fitted
    for name, values in first.items():
        assert_array_equal(getattr(fitted, name)(X), values)


def check_unfitted(estimator, X, y):
    for method in prediction_methods(clone(estimator)).values():
        with pytest.raises(sklearn.exceptions.NotFittedError):
            method(X)


def check_nan(estimator, X, y):
    bad = np.array(X, dtype=float)
    bad[-1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(bad, y)
    fitted = clone(estimator).fit(X, y)
    for method in prediction_methods(fitted).values():
        with pytest.raises(ValueError, match="NaN"):
            method(bad)


def check_feature_names(estimator, X, y):
    pandas = pytest.importorskip("pandas", reason="test extra not installed")
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    fitted = clone(estimator).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(fitted.fit(X, y), "feature_names_in_")


def check_feature_count(estimator, X):
    with pytest.raises(ValueError, match="column"):
        clone(estimator).fit(np.hstack([X, X]))
    assert clone(estimator).fit(X).n_features_in_ == 1


def check_column_and_vector_agree(estimator, X):
    one = clone(estimator).fit(X).score_samples(X)
    two = clone(estimator).fit(X[:, 0]).score_samples(X[:, 0])
    assert_array_equal(one, two)


def check_weights_are_counts(estimator, X):
    counts = np.random.default_rng(0).integers(0, 3, size=len(X))
    weighted = clone(estimator).fit(X, sample_weight=counts)
    repeated = clone(estimator).fit(np.repeat(X, counts, axis=0))
    seen = X[counts > 0]
    assert_allclose(
        weighted.score_samples(seen), repeated.score_samples(seen), rtol=1e-12
    )


OUTSIDE_CHECKS = [
    check_clone,
    check_parameters,
    check_idempotent,
    check_unfitted,
    check_nan,
    check_feature_names,
]
DENSITY_CHECKS = [
    check_feature_count,
    check_column_and_vector_agree,
    check_weights_are_counts,
]


@pytest.mark.parametrize("check", OUTSIDE_CHECKS, ids=lambda check: check.__name__)
@by_repr(instances(outside=True))
def test_estimators_outside_the_suite(estimator, check):
    """The suite's ideas for estimators that it has no data for."""
    check(estimator, *make_data(estimator))


@pytest.mark.parametrize("check", DENSITY_CHECKS, ids=lambda check: check.__name__)
@by_repr([est for est in instances(outside=True) if hasattr(est, "score_samples")])
def test_densities_outside_the_suite(estimator, check):
    """The same for densities of single observations."""
    check(estimator, make_data(estimator)[0])


def test_every_public_estimator_is_checked():
    """No estimator escapes both lists."""
    checked = {type(est).__name__ for est in ALL}
    assert checked == set(public_estimators())


def test_verbose_prints_only_on_request(capsys):
    """Silence is the default; verbose prints lines."""
    for estimator in ALL:
        X, y = make_data(estimator)
        clone(estimator).fit(X, y)
        assert capsys.readouterr().out == ""
        if "verbose" in estimator.get_params():
            clone(estimator).set_params(verbose=1).fit(X, y)
            assert capsys.readouterr().out != ""


def test_skbounds_types_load_from_bytes():
    """joblib reads what it wrote to a stream, not only to a path."""
    for estimator in ALL:
        X, y = make_data(estimator)
        stream = io.BytesIO()
        joblib.dump(clone(estimator).fit(X, y), stream)
        stream.seek(0)
        assert type(joblib.load(stream)) is type(estimator)
