"""Tables that drive the common tests.

A new public estimator is picked up by itself, with its defaults. Add it here only to
have more configurations checked, or to declare a check that cannot hold.
"""

import inspect
from functools import partial

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.linear_model import (
    LogisticRegression,
    Ridge,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version

import skbounds
from skbounds.fenchel_young.structures import KSubsets

_MEMBERS = [LogisticRegression(), GaussianNB()]

# Instances that the common checks run on; several configurations of each estimator.
INSTANCES = {
    "BolsteredScorer": [
        {},
        {"method": "xy"},
        {"method": "x", "kernel": "mm_diag", "standardize": False},
    ],
    "BolsteredSearchCV": [
        {
            "estimator": GaussianNB(),
            "param_grid": {"var_smoothing": [1e-9, 0.1]},
            "error_score": "raise",
        },
        {
            "estimator": Ridge(),
            "param_grid": {"alpha": [0.1, 1.0]},
            "method": "xy",
            "error_score": "raise",
        },
    ],
    "BaumWelchHMM": [
        {"random_state": 0, **params}
        for params in (
            {},
            {"n_components": 3, "covariance_type": "full"},
            {"covariance_type": "tied", "startprob": "stationary"},
            {"covariance_type": "spherical", "window": 2, "decoder": "viterbi"},
            {"structure": "symmetric", "sigma": 1.0},
            {"emission": "student", "structure": "reversible", "n_init": 2},
        )
    ],
    "EarlyStoppedKernelBoost": [
        {},
        {"kernel": "sobolev", "stopping": "cp"},
        {"solver": "lowrank", "stopping": "theory", "random_state": 0},
        {"solver": "gd", "max_iter": 200, "gamma": "scale"},
        {"stopping": "validation", "random_state": 0, "kernel": "laplacian"},
        {"average": True, "stopping": "cp", "gamma": None},
        {"kernel": "precomputed"},
        {"loss": "huber", "random_state": 0},
        {"stopping": "cv", "intervals": True, "relevance": "ard", "random_state": 0},
        {"kernel": "anova", "random_state": 0},
    ],
    "EarlyStoppedKernelBoostClassifier": [
        {},
        {"loss": "exponential", "stopping": "aic", "gamma": "scale"},
        {"solver": "gd", "max_iter": 100, "stopping": "alo"},
        {"solver": "lowrank", "stopping": "theory", "random_state": 0},
        {"stopping": "validation", "random_state": 0, "kernel": "poly"},
        {"kernel": "precomputed", "loss": "exponential", "learning_rate": 0.5},
        {"stopping": "auto"},
        {"relevance": "ard", "random_state": 0},
    ],
    "SMPLogisticRegression": [
        {},
        {"method": "one-step"},
        {"C": "theory", "penalize_intercept": True},
        {"C": "loo", "Cs": 3},
        {"virtual_weight": 0.5, "fit_intercept": False},
    ],
    "SMPLogisticRegressionCV": [
        {},
        {"method": "one-step"},
        {"Cs": 3, "loo": "exact", "method": "exact"},
        {"aggregation": "best"},
    ],
    "SMPClassifier": [
        {"estimator": LogisticRegression(solver="newton-cholesky")},
        {"method": "influence"},
    ],
    "SMPRegressor": [
        {"estimator": Ridge(solver="sparse_cg", tol=1e-12)},
        {"estimator": Ridge(2.0, solver="sparse_cg", tol=1e-12), "sigma": 1.0},
    ],
    "RidgeSMP": [
        {},
        {"alpha": "loo", "penalize_intercept": True},
        {"alpha": "theory", "sigma": 1.0, "fit_intercept": False},
    ],
    "KernelRidgeSMP": [
        {},
        {"alpha": "loo", "kernel": "rbf", "alphas": 5},
        {"kernel": "precomputed"},
    ],
    "GaussianSMP": [{}, {"variant": "minimax"}, {"variant": "mle"}],
    "FenchelYoungOnlineClassifier": [
        {},
        {"learner": "ogd", "average": True},
        {"learner": "adaptive", "diameter": 20.0},
        {"learner": "parameter_free", "decoding": "argmax"},
        {"loss": "sparsemax", "learner": "auto", "max_iter": 3},
    ],
    "FenchelYoungOnlineMultilabelClassifier": [{}, {"loss": "sparsemap"}],
    "PACBayesSVMEnsemble": [
        {"random_state": 0, **params}
        for params in (
            {},
            {
                "prior": "uniform",
                "posterior": "bound",
                "divergence": "chi2",
                "distance": "kl",
                "cert_size": 0.5,
                "Cs": 4,
            },
            {
                "scheme": "progressive",
                "Cs": 4,
                "kernel": "linear",
                "n_start": 0.8,
                "n_blocks": 2,
            },
            {"kernel": "precomputed", "class_weight": "balanced", "cert_size": 0.05},
            {"refit": True, "standardize": True, "cache_size": 0.001},
            {
                "scheme": "per_member",
                "prior": "uniform",
                "distance": "kl",
                "gamma": "sigest",
                "Cs": 4,
            },
            {"posterior": "tandem", "tail": "randomized", "Cs": 4},
        )
    ],
    "PACBayesEnsembleClassifier": [
        {"estimators": _MEMBERS, "random_state": 0},
        {
            "estimators": [("a", _MEMBERS[0]), ("b", _MEMBERS[1])],
            "posterior": "bound",
            "random_state": 0,
        },
        {"estimators": _MEMBERS, "prior": "cv", "random_state": 0},
        {"estimators": _MEMBERS, "posterior": "tandem", "random_state": 0},
    ],
    "FenchelYoungOnlineStructured": [
        {"structure": KSubsets(4, 2), "random_state": 0},
        {"structure": KSubsets(4, 2), "feature_scaling": "none", "random_state": 0},
    ],
    "FenchelYoungOnlineRanker": [
        {},
        {"structure": "birkhoff", "learner": "ogd", "decoding": "sample"},
    ],
}

# The suite's targets for multilabel classifiers are single columns of labels.
_ONE_COLUMN = "gives one column of class labels; see test_estimators.test_multilabel_{}"
_MEDIAN = (
    "predict is the median level, not the argmax of predict_proba; see "
    "test_estimators.test_ordinal_predicts_the_median"
)
_CLIPPED = (
    "clipped probabilities are exactly 0 and 1 where scores still differ; see "
    "test_estimators.test_multilabel_scores_and_probabilities_agree"
)

_INDEFINITE = (
    "{} of the kernel matrix, which makes it indefinite; see "
    "test_svm_ensemble.test_kernel_matrices"
)

_NO_KERNEL = (
    "{} of the kernel matrix, which makes it indefinite; see kernel_boost.test_input"
)

# (class name, parameters that must be set) -> {check: reason}. Each reason names the
# test that stands in for the check.
EXPECTED_FAILURES = {
    ("BolsteredSearchCV", ("method", "auto")): {
        "check_classifiers_one_label_sample_weights": (
            "passes on what the estimator says of a class of weight 0, and its fit "
            "has no argument named sample_weight; see "
            "test_search.test_fit_parameters_reach_all_fits"
        ),
    },
    ("BaumWelchHMM", ("structure", "symmetric")): {
        f"check_{check}": (
            "sets n_components=1, and this model has two states; see hmm.test_symmetric"
        )
        for check in (
            "dont_overwrite_parameters",
            "fit2d_predict1d",
            "methods_sample_order_invariance",
            "methods_subset_invariance",
        )
    },
    **{
        ("SMPLogisticRegression", bound): {
            "check_class_weight_classifiers": (
                "weights of classes move the intercept, which is penalised or not "
                "there; see test_class_weight"
            ),
        }
        for bound in (("penalize_intercept", True), ("fit_intercept", False))
    },
    ("KernelRidgeSMP", ("kernel", "precomputed")): {
        "check_positive_only_tag_during_fit": (
            "shifts the entries of the kernel matrix, which makes it indefinite; "
            "see test_ridge.test_indefinite_kernel_is_refused"
        ),
        "check_estimators_dtypes": (
            "truncates the entries of the kernel matrix to integers, which makes it "
            "indefinite; see test_ridge.test_float32_kernel_matrix"
        ),
    },
    ("PACBayesSVMEnsemble", ("kernel", "precomputed")): {
        "check_positive_only_tag_during_fit": _INDEFINITE.format("shifts the entries"),
        "check_estimators_dtypes": _INDEFINITE.format("truncates the entries"),
        "check_decision_proba_consistency": (
            "offers no kernel matrix; see test_svm_ensemble.test_outputs_agree"
        ),
    },
    **{
        (name, ("kernel", "precomputed")): {
            "check_positive_only_tag_during_fit": _NO_KERNEL.format(
                "shifts the entries"
            ),
            "check_estimators_dtypes": _NO_KERNEL.format("truncates the entries"),
            **(
                {
                    f"check_{check}": "offers no kernel matrix; see "
                    "kernel_boost.test_classifier"
                    for check in (
                        "decision_proba_consistency",
                        "classifiers_one_label_sample_weights",
                    )
                }
                if name.endswith("Classifier")
                else {}
            ),
        }
        for name in ("EarlyStoppedKernelBoost", "EarlyStoppedKernelBoostClassifier")
    },
    ("FenchelYoungOnlineMultilabelClassifier", ("learner", "auto")): {
        **{
            f"check_{name}": _ONE_COLUMN.format("on_array_likes")
            for name in (
                "estimators_dtypes",
                "estimator_sparse_array",
                "estimator_sparse_matrix",
                "classifier_data_not_an_array",
            )
        },
        **{
            f"check_{name}": _ONE_COLUMN.format("learns")
            for name in (
                "classifiers_classes",
                "classifiers_train",
                "decision_proba_consistency",
                "fit2d_1feature",
            )
        },
    },
    ("FenchelYoungOnlineMultilabelClassifier", ("loss", "sparsemap")): {
        "check_classifier_multioutput": _CLIPPED,
        "check_classifiers_multilabel_output_format_predict_proba": _CLIPPED,
    },
    ("FenchelYoungOnlineOrdinalClassifier", ("learner", "auto")): {
        "check_classifiers_train": _MEDIAN,
    },
}

# Estimators whose targets the suite does not know.
OUTSIDE_TARGETS = {"FenchelYoungOnlineRanker", "FenchelYoungOnlineStructured"}
if parse_version(sklearn.__version__) < parse_version("1.9"):
    # Older suites give columns of other numbers than 0 and 1.
    OUTSIDE_TARGETS.add("FenchelYoungOnlineMultilabelClassifier")

# Estimators whose X is not a table of several features: scikit-learn's suite has no
# data for them. They run the list of checks in test_common.OUTSIDE_CHECKS instead.
OUTSIDE_DATA = {
    "MultinomialSMP": lambda rng: rng.integers(4, size=(30, 1)),
    "PoissonSMP": lambda rng: rng.poisson(3.0, size=(30, 1)),
}


def public_estimators():
    """Return all public estimator classes by name.

    Without the sequential tests, which have no X: see sequential.test_habits.
    """
    found = {}
    for name in skbounds.__all__:
        item = getattr(skbounds, name)
        if inspect.isclass(item) and issubclass(item, BaseEstimator):
            if not item.__module__.startswith("skbounds.sequential."):
                found[name] = item
    return found


def instances(*, outside=False):
    """Return instances of the estimators inside (or outside) scikit-learn's suite."""
    return [
        cls(**params)
        for name, cls in sorted(public_estimators().items())
        for params in INSTANCES.get(name, [{}])
        if _is_outside(cls(**params)) == outside
    ]


def _is_outside(estimator):
    """Tell whether scikit-learn's suite has no data for the estimator."""
    known_rows = get_tags(estimator).input_tags.two_d_array
    return not known_rows or type(estimator).__name__ in OUTSIDE_TARGETS


def expected_failures(estimator):
    """Return the expected failures of one instance."""
    result = {}
    params = estimator.get_params()
    for (name, (key, value)), checks in EXPECTED_FAILURES.items():
        if type(estimator).__name__ == name and params[key] == value:
            result.update(checks)
    return result


def make_data(estimator, n_samples=40, seed=0):
    """Return X and y that suit the estimator (y is None for densities)."""
    rng = np.random.default_rng(seed)
    name = type(estimator).__name__
    if name in OUTSIDE_DATA:
        return OUTSIDE_DATA[name](rng), None
    X = rng.normal(size=(n_samples, 3))
    signal = X[:, 0] - 0.5 * X[:, 1] + 0.5 * rng.normal(size=n_samples)
    if get_tags(estimator).input_tags.pairwise:
        X = X @ X.T
    if get_tags(estimator).input_tags.positive_only:
        X = np.abs(X)
    if name == "FenchelYoungOnlineMultilabelClassifier":
        return X, (X @ rng.normal(size=(3, 4)) > 0).astype(int)
    if name == "FenchelYoungOnlineStructured":
        scores = X @ rng.normal(size=(3, 4))
        return X, np.array([KSubsets(4, 2).maximise(row) for row in scores]).astype(int)
    if name == "FenchelYoungOnlineRanker":
        scores = X @ rng.normal(size=(3, 4))
        return X, scores.argsort(axis=1).argsort(axis=1) + 1
    if is_classifier(estimator):
        return X, np.where(signal > 0, "yes", "no")
    if is_regressor(estimator) or get_tags(estimator).target_tags.required:
        return X, signal
    return X, None


def prediction_methods(estimator):
    """Return the deterministic prediction functions of a fitted estimator."""
    names = (
        "predict",
        "predict_proba",
        "decision_function",
        "predict_quantiles",
        "log_normalizer",
        "score_samples",
    )
    return {
        name: partial(getattr(estimator, name))
        for name in names
        if hasattr(estimator, name)
    }
