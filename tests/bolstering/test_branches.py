"""Branches that no other test takes."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from skbounds.bolstering import (
    BolsteredScorer,
    BolsteredSearchCV,
    MomentKernel,
    bolstered_val_score,
    increment_bound,
    log_pseudo_likelihood,
    vc_bound,
)
from skbounds.bolstering._losses import resolve_losses, respond
from skbounds.bolstering._parts import _leave_one_out as loo
from skbounds.bolstering._parts._deals import _have_two_classes
from skbounds.bolstering._parts._matching import match_pairs
from skbounds.bolstering._parts._uncertainty import _variance
from skbounds.bolstering._rows import digest
from skbounds.bolstering._smoothed._measure import _mpe_in_span
from skbounds.bolstering._smoothed._models import _linear, _radial, _rbf_part
from skbounds.bolstering._smoothed._neighbors import (
    _nearest_by_products,
    nearest_rows,
)


def data(n=30, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


def loo_by_definition(model, X, y):
    """Predictions at each row of a fit on all others."""
    n = len(y)
    rest = [np.delete(np.arange(n), i) for i in range(n)]
    return np.array(
        [model.fit(X[r], y[r]).predict(X[[i]])[0] for i, r in enumerate(rest)]
    )


class TestTheory:
    def test_points_of_one_column(self):
        X = np.array([0.0, 1.0, 3.0])
        kernels = np.full((1, 1), 2.0)
        assert log_pseudo_likelihood(X, kernels) == log_pseudo_likelihood(
            X[:, None], kernels
        )
        # By the definition: under the kernels of the others, with shares of one in n.
        density = np.exp(-((X[:, None] - X) ** 2) / 4.0) / np.sqrt(4.0 * np.pi)
        np.fill_diagonal(density, 0.0)
        expected = np.log(density.sum(axis=1) / 3.0).sum()
        assert_allclose(log_pseudo_likelihood(X, kernels), expected)

    @pytest.mark.parametrize("shape", [(2,), (2, 3), (1, 1, 2, 2)])
    def test_kernels_that_are_not_square(self, shape):
        with pytest.raises(
            ValueError, match=r"square in their last axes; got shape \("
        ):
            increment_bound(np.ones(shape), 1.0)

    @pytest.mark.parametrize(("n", "dimension"), [(0, 1), (1, 0), (-3, 2)])
    def test_no_rows_and_no_dimension(self, n, dimension):
        message = f"must be positive; got {n} and {dimension}"
        with pytest.raises(ValueError, match=message):
            vc_bound(n, dimension)

    def test_more_dimensions_than_rows(self):
        """Any labelling of the rows: 2^n of them."""
        expected = np.sqrt(32.0 / 5 * (np.log(8.0 / 0.05) + 5 * np.log(2.0)))
        assert_allclose(vc_bound(5, 9), expected)


class TestInput:
    @pytest.mark.parametrize("name", ["sample_weight", "fit_params"])
    def test_options_that_belong_in_params(self, name):
        X, y = data()
        message = f"bolstered_val_score takes no {name}; give it in params"
        with pytest.raises(TypeError, match=message):
            bolstered_val_score(Ridge(), X, y, **{name: None})

    @pytest.mark.parametrize("method", ["y", "x+posterior"])
    def test_law_of_the_target_without_an_estimator(self, method):
        X, y = data()
        message = f"method={method!r}" + " without an estimator needs a posterior"
        with pytest.raises(ValueError, match=message.replace("+", r"\+")):
            BolsteredScorer(method=method).fit(X, y)

    def test_categorical_features_in_two_dimensions(self):
        X, y = data()
        scorer = BolsteredScorer(method="x", categorical_features=[[0, 1]])
        message = r"categorical_features must be 1-dimensional; got \[\[0, 1\]\]"
        with pytest.raises(ValueError, match=message):
            scorer(Ridge().fit(X, y), X, y)

    def test_shapes_that_cannot_be(self):
        X, y = data(d=2)
        model = Ridge().fit(X, y)
        for shape, message in (
            (np.eye(3), r"finite matrix of shape \(2, 2\); got \(3, 3\)"),
            (np.diag([1.0, np.nan]), r"finite matrix of shape \(2, 2\)"),
            (np.array([[1.0, 0.2], [0.0, 1.0]]), "must be symmetric"),
        ):
            scorer = BolsteredScorer(method="x", kernel=MomentKernel(shape=shape))
            with pytest.raises(ValueError, match=message):
                scorer(model, X, y)

    def test_family_of_zeros(self):
        X, y = data(d=2)
        kernel = MomentKernel(family=lambda draws: np.zeros_like(draws))
        scorer = BolsteredScorer(method="x", kernel=kernel)
        with pytest.raises(ValueError, match="must not return 0 for all draws"):
            scorer(Ridge().fit(X, y), X, y)

    def test_kernels_by_column_of_sparse_rows(self):
        X, y = data()
        X = sparse.csr_array(X)
        scorer = BolsteredScorer(method="x", kernel="mm_diag")
        with pytest.raises(ValueError, match=r"kernel='mm_diag'.*needs a dense X"):
            scorer(Ridge().fit(X, y), X, y)

    def test_posterior_without_deviations(self):
        X, y = data()
        scorer = BolsteredScorer(method="y", posterior=Ridge())
        with pytest.raises(ValueError, match=r"posterior must have.*got Ridge\(\)"):
            scorer(Ridge().fit(X, y), X, y)


class TestSearch:
    @pytest.mark.parametrize(
        ("index", "error", "message"),
        [
            (0.5, TypeError, "best_index_ returned is not an integer"),
            (2, IndexError, "best_index_ index out of range"),
            (-1, IndexError, "best_index_ index out of range"),
        ],
    )
    def test_choices_that_are_none(self, index, error, message):
        X, y = data()
        search = BolsteredSearchCV(
            Ridge(), {"alpha": [0.1, 1.0]}, refit=lambda results: index
        )
        with pytest.raises(error, match=message):
            search.fit(X, y)

    def test_many_losses_without_a_choice(self):
        X, y = data()
        losses = ["squared", "absolute"]
        search = BolsteredSearchCV(
            Ridge(), {"alpha": [0.1, 1.0]}, loss=losses, refit=False
        ).fit(X, y)
        assert not hasattr(search, "best_index_")
        assert len(search.cv_results_["mean_test_neg_squared"]) == 2

    def test_name_that_is_none_of_the_losses(self):
        X, y = data()
        losses = ["squared", "absolute"]
        search = BolsteredSearchCV(
            Ridge(), {"alpha": [0.1, 1.0]}, loss=losses, refit="other"
        )
        with pytest.raises(ValueError, match=r"refit.*other"):
            search.fit(X, y)

    def test_loss_of_ones_own_takes_weights_only(self):
        X, y = data()
        search = BolsteredSearchCV(
            Ridge(), {"alpha": [0.1]}, loss=lambda y, p: np.abs(y - p)
        ).fit(X, y)
        gaps, weight = np.abs(y - search.predict(X)), np.arange(1.0, len(y) + 1.0)
        assert_allclose(search.score(X, y), -gaps.mean())
        found = search.score(X, y, sample_weight=weight)
        assert_allclose(found, -np.average(gaps, weights=weight))
        with pytest.raises(TypeError, match=r"takes no \['other'\]"):
            search.score(X, y, other=1)


class TestLeaveOneOut:
    def test_more_columns_than_rows_without_penalty(self):
        """Every row is met, and none has slack."""
        X, y = data(4, 6)
        fitted, slack = loo._ridge(X, y[:, None], 0.0, True)
        assert_allclose(fitted[:, 0], LinearRegression().fit(X, y).predict(X))
        assert_array_equal(slack, np.zeros(4))

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_columns_that_nearly_depend_on_each_other(self, fit_intercept):
        """With a penalty too small for the pivots of the products."""
        X = data(12, 2)[0]
        X = np.column_stack([X, X[:, 0] + 1e-9 * X[:, 1]])
        alpha = 1e-12
        centred = X - X.mean(axis=0) if fit_intercept else X
        u, lengths, _ = np.linalg.svd(centred, full_matrices=False)
        expected = (u * (lengths**2 / (lengths**2 + alpha))) @ u.T
        root = loo._root_of_hat_matrix(centred, alpha)
        assert_allclose(root @ root.T, expected, atol=1e-6)

    def test_targets_of_one_column(self):
        X, y = data()
        model = Ridge().fit(X, y[:, None])
        found = loo._by_coefficients(model, X)
        assert_allclose(found, X @ np.ravel(model.coef_) + model.intercept_)
        assert found.shape == y.shape
        # Fitted on other columns than these.
        assert loo._by_coefficients(model, X[:, :2]) is None

    def test_kernel_ridge_of_one_column(self):
        X, y = data()
        model = KernelRidge(kernel="rbf", alpha=0.5).fit(X, y[:, None])
        fitted, slack, known = loo._kernel_ridge(model, X, y[:, None])
        assert known.shape == y.shape
        assert_allclose(known, model.predict(X)[:, 0])
        assert_allclose(fitted[:, 0], known)
        left_out = y - (y - fitted[:, 0]) / slack
        again = KernelRidge(kernel="rbf", alpha=0.5)
        assert_allclose(left_out, loo_by_definition(again, X, y), rtol=1e-9)

    def test_process_of_other_rows(self):
        X, y = data()
        model = GaussianProcessRegressor(optimizer=None).fit(X[:20], y[:20])
        fitted, slack, _ = loo._gaussian_process(model, y[:, None])
        assert np.isnan(fitted).all()
        assert not slack.any()


class TestModels:
    def test_kernels_that_are_a_multiple_of_one(self):
        assert _rbf_part(RBF(2.0)) == (1.0, 2.0)
        assert _rbf_part(ConstantKernel(3.0) * RBF(2.0)) == (3.0, 2.0)
        assert _rbf_part(RBF(2.0) * ConstantKernel(3.0)) == (3.0, 2.0)
        assert _rbf_part(WhiteKernel() + RBF(2.0)) == (1.0, 2.0)
        assert _rbf_part(RBF(2.0) * ConstantKernel(3.0) + WhiteKernel()) == (3.0, 2.0)

    @pytest.mark.parametrize(
        "kernel",
        [
            Matern(),
            RBF([1.0, 2.0]),
            RBF() * RBF(),
            RBF() + RBF(),
            RBF() + DotProduct(),
            ConstantKernel() * Matern(),
            WhiteKernel() + Matern(),
        ],
    )
    def test_kernels_that_are_none(self, kernel):
        assert _rbf_part(kernel) is None

    def test_process_of_another_kernel(self):
        X, y = data()
        model = GaussianProcessRegressor(Matern(), optimizer=None).fit(X, y)
        assert _radial(model, None) is None

    def test_sparse_centers(self):
        X, y = data()
        model = KernelRidge(kernel="rbf").fit(sparse.csr_matrix(X), y)
        assert _radial(model, None) is None

    def test_coefficients_that_are_whole_numbers(self):
        model = LinearRegression().fit(*data())
        assert_array_equal(_linear(model, None).coef, model.coef_[None])
        model.coef_ = np.array([1, 2, 3])
        assert _linear(model, None) is None


class TestRows:
    def test_one_class(self):
        out = np.eye(3, dtype=bool)
        assert not _have_two_classes(out, np.zeros(3, dtype=int))
        assert _have_two_classes(out, None)
        assert _have_two_classes(np.zeros((1, 3), dtype=bool), np.array([0, 1, 1]))

    def test_large_rows_are_not_kept(self, monkeypatch):
        from skbounds.bolstering import _rows

        X, y = data()
        assert digest(X, y, None) == digest(X.copy(), y.copy(), None) is not None
        monkeypatch.setattr(_rows, "_LARGEST_KEPT", X.size - 1)
        assert digest(X, y, None) is None

    def test_predictions_of_one_column(self):
        X, y = data()
        model = Ridge().fit(X, y[:, None])
        assert_allclose(respond(model, X, "predict"), Ridge().fit(X, y).predict(X))
        model.coef_ = np.full((1, 3), np.nan)
        with pytest.raises(ValueError, match="Ridge predicts NaN or infinity"):
            respond(model, X, "predict")

    def test_object_rows(self):
        """Numbers in an array of objects are moved as those of an array of floats."""
        X, y = data(20, 2)
        model = Ridge().fit(X, y)
        scorer = BolsteredScorer(method="x", random_state=0)
        plain = scorer.estimate(model, X, y).error
        found = scorer.estimate(model, X.astype(object), y).error
        assert_allclose(found, plain)

    @pytest.mark.parametrize("d", [2, 15])
    def test_many_rows(self, d):
        """By trees, and in many dimensions by products."""
        X = np.random.default_rng(0).normal(size=(650, d))
        gaps = ((X[:, None] - X) ** 2).sum(axis=2)
        np.fill_diagonal(gaps, np.inf)
        order = np.argsort(gaps, axis=1)[:, :3]
        distances, others = nearest_rows(X, 3)
        assert_array_equal(others, order)
        lengths = np.sqrt(np.take_along_axis(gaps, order, axis=1))
        assert_allclose(distances, lengths)
        some = np.array([5, 600])
        found = np.sort(_nearest_by_products(X, some, 4), axis=1)
        expected = np.sort(np.column_stack([some, order[some]]), axis=1)
        assert_array_equal(found, expected)

    @pytest.mark.parametrize("n", [601, 620])
    def test_pairs_of_many_rows(self, n):
        """Each row once, and neighbours that are each other's nearest are together."""
        X = np.random.default_rng(1).normal(size=(n, 2))
        pairs, left = match_pairs(X)
        assert_array_equal(np.sort(np.append(pairs, left)), np.arange(n))
        gaps = ((X[:, None] - X) ** 2).sum(axis=2)
        np.fill_diagonal(gaps, np.inf)
        nearest = gaps.argmin(axis=1)
        mutual = np.flatnonzero(nearest[nearest] == np.arange(n))
        partner = dict(pairs.tolist()) | {b: a for a, b in pairs.tolist()}
        assert len(mutual) > n // 2
        assert all(partner[i] == nearest[i] for i in mutual.tolist())

    def test_rows_that_are_all_the_same(self):
        X, y = np.ones((12, 3)), np.arange(12.0)
        assert_array_equal(_mpe_in_span(X, np.ones(12), 1.0), np.zeros((12, 3, 3)))
        model = Ridge().fit(X, y)
        for kernel in ("mpe", MomentKernel()):
            scorer = BolsteredScorer(method="x", kernel=kernel)
            with pytest.warns(UserWarning, match="resubstitution error"):
                found = scorer.estimate(model, X, y)
            assert_allclose(found.error, ((y - 5.5) ** 2).mean())

    def test_target_law_of_sparse_rows(self):
        X, y = data()
        scorer = BolsteredScorer(method="y", random_state=0)
        # Of sparse rows scikit-learn's solution is one of iterations.
        dense = scorer.estimate(Ridge(tol=1e-12).fit(X, y), X, y).error
        X = sparse.csr_array(X)
        found = scorer.estimate(Ridge(tol=1e-12).fit(X, y), X, y).error
        assert_allclose(found, dense, rtol=1e-9)


class TestMore:
    def test_deviation_of_one_row(self):
        assert np.isnan(_variance(np.array([3.0, 4.0]), np.array([1.0, 0.0])))
        found = _variance(np.array([3.0, 4.0, 9.0]), np.array([1.0, 1.0, 0.0]))
        assert_allclose(found, 0.5)

    def test_many_dimensions(self):
        X, y = data(40, 6)
        scorer = BolsteredScorer(method="x", kernel="mm", random_state=0)
        with pytest.warns(UserWarning, match="kernel='mm' in 6 dimensions moves rows"):
            found = scorer.estimate(Ridge().fit(X, y), X, y)
        assert found.error > found.resubstitution

    def test_targets_of_one_column(self):
        X, y = data()
        scorer = BolsteredScorer(random_state=0)
        found = scorer.estimate(Ridge().fit(X, y), X, y[:, None]).error
        assert_allclose(found, scorer.estimate(Ridge().fit(X, y), X, y).error)

    def test_covariances_of_a_family_by_its_draws(self):
        """Those of normal draws are the normal member's, up to their number."""
        X, y = data(40, 2)
        own = MomentKernel(family=lambda draws: draws)
        kernels = [
            BolsteredScorer(method="x", kernel=kernel).fit(X, y).kernel_
            for kernel in (own, MomentKernel(family="normal"))
        ]
        assert_allclose(kernels[0], kernels[1], rtol=0.02, atol=0.01)

    def test_candidates_that_a_function_chose(self):
        X, y = data()
        search = BolsteredSearchCV(
            Ridge(),
            {"alpha": [0.1, 1.0]},
            loss=["squared", "absolute"],
            refit=lambda results: 1,
        ).fit(X, y)
        assert search.best_params_ == {"alpha": 1.0}
        with pytest.raises(ValueError, match="score needs refit to be the name"):
            search.score(X, y)
        search = BolsteredSearchCV(
            Ridge(),
            {"alpha": [0.1, 1.0]},
            scoring=["r2", "neg_mean_squared_error"],
            refit=lambda results: 1,
        ).fit(X, y)
        with pytest.raises(ValueError, match="name of one of the scores; got refit="):
            search.score(X, y)

    @pytest.mark.parametrize("options", [{"weights": "distance"}, {"n_neighbors": 30}])
    def test_neighbours_without_a_short_cut(self, options):
        X, y = data()
        model = KNeighborsRegressor(**options).fit(X, y)
        table = SimpleNamespace(X=X)
        question = SimpleNamespace(estimator=model, targets=y, table=table)
        assert loo._of_neighbors(question) is None

    def test_losses_that_are_not_finite(self):
        loss = resolve_losses("squared", False)[0]
        y = np.array([1.0, 2.0])
        assert_array_equal(loss(y, np.array([1.0, 4.0])), [0.0, 4.0])
        with pytest.raises(ValueError, match="loss='squared' is not finite for some"):
            loss(y, np.array([1.0, np.inf]))
