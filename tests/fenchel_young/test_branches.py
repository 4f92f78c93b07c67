"""Branches that no other test takes."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from skbounds import (
    FenchelYoungOnlineClassifier,
    FenchelYoungOnlineMultilabelClassifier,
    FenchelYoungOnlineRanker,
    FenchelYoungOnlineStructured,
)
from skbounds.fenchel_young._arrays import adapted_magnitudes
from skbounds.fenchel_young._batches import _text
from skbounds.fenchel_young._bounds import adaptive_bound, constant_step_bound
from skbounds.fenchel_young._growth import with_more_rows
from skbounds.fenchel_young._sparsemap import _nearest_affine, project
from skbounds.fenchel_young.structures import ChainCRF, KSubsets

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
# Of each row the two largest of four scores.
SCORES = X @ RNG.normal(size=(3, 4))
SUBSETS = np.zeros((30, 4))
np.put_along_axis(SUBSETS, np.argsort(-SCORES, axis=1)[:, :2], 1.0, axis=1)


def subsets(**options):
    model = FenchelYoungOnlineStructured(KSubsets(4, 2), random_state=0, **options)
    return model.fit(X, list(SUBSETS))


class TestBounds:
    def test_rows_of_length_zero(self):
        assert constant_step_bound(0.5, 1.0, 1.0, 0.0, 0.1, 2.0) == 0.0

    def test_no_gap(self):
        assert np.isnan(constant_step_bound(0.0, 1.0, 1.0, 1.0, 0.1, 2.0))
        for gap in (0.0, -1.0, 1.5):
            assert np.isnan(adaptive_bound(gap, 1.0, 1.0, 1.0, 1.0))
        # 2 (1 - a) b L^2 D^2 c / a.
        assert_allclose(adaptive_bound(0.25, 3.0, 2.0, 1.5, 0.5), 20.25)


class TestStructures:
    @pytest.mark.parametrize("n", [1, 0, 2.5, "4"])
    def test_numbers_of_items(self, n):
        message = f"n_items must be a whole number above 1; got {n}"
        with pytest.raises(ValueError, match=message):
            KSubsets(n, 1)

    def test_nearest_point_of_one_vertex(self):
        assert_array_equal(_nearest_affine(np.ones((1, 3)), np.zeros(3)), [1.0])

    def test_nearest_point_of_equal_scores(self):
        """Each item with the same share, also where all scores are equal."""
        assert_allclose(KSubsets(5, 2).project(np.full(5, 3.0)), np.full(5, 0.4))
        structure = KSubsets(3, 1)
        theta = np.array([0.3, 0.1, -0.4])
        point, vertices, weights = project(structure.maximise, theta)
        # On the simplex: shifted, and cut at 0.
        assert_allclose(point, [0.6, 0.4, 0.0], atol=1e-12)
        assert_allclose(weights @ vertices, point)
        assert_allclose(structure.project(theta), point, atol=1e-12)

    def test_projection_by_the_definition(self):
        """No vertex is ahead of the nearest point."""
        structure, rng = KSubsets(5, 2), np.random.default_rng(1)
        pairs = [np.isin(np.arange(5), pair) for pair in combinations(range(5), 2)]
        for scale in (0.1, 1.0, 100.0):
            theta = scale * rng.normal(size=5)
            point = structure.project(theta)
            assert_allclose(point.sum(), 2.0)
            ahead = [(theta - point) @ (pair - point) for pair in pairs]
            assert max(ahead) <= 1e-9 * scale

    def test_reach_of_shared_scores(self):
        """Scores that no feature enters have a feature of 1."""
        structure = KSubsets(4, 2)
        norms = np.array([3.0, 4.0])
        assert structure.squared_reach(norms) == 0.5 * structure.most_wrong * 25.0
        structure.n_shared = 1
        small = np.array([0.1])
        assert structure.squared_reach(small) == 0.5 * structure.most_wrong


class TestStructured:
    def test_play_without_weight(self):
        with pytest.raises(ValueError, match="sample_weight must be positive; got"):
            subsets().play_one(X[0], 0.0)

    def test_weight_of_a_ticket(self):
        model = subsets()
        ticket = model.play_one(X[0])
        with pytest.raises(
            ValueError, match="weight of a ticket was given to play_one"
        ):
            model.learn_one(ticket, SUBSETS[0], 2.0)
        model.learn_one(ticket, SUBSETS[0])

    def test_comparator_of_rows_without_weight(self):
        model = subsets()
        coef = RNG.normal(size=(4, 4))
        weight = np.ones(30)
        weight[20:] = 0.0
        found = model.comparator_loss(coef, X, list(SUBSETS), weight)
        expected = model.comparator_loss(coef, X[:20], list(SUBSETS[:20]))
        assert_allclose(found, expected)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_comparator_that_is_not_finite(self, value):
        with pytest.raises(ValueError, match="coef and shared must be finite"):
            subsets().comparator_loss(np.full((4, 4), value), X, list(SUBSETS))

    def test_targets_of_another_length(self):
        model = FenchelYoungOnlineStructured(ChainCRF(2))
        rows, y = [np.ones((3, 2)), np.ones((2, 2))], [[0, 1, 1], [0, 1, 1]]
        with pytest.raises(ValueError, match=r"of 2 positions has \d+ scores, but its"):
            model.fit(rows, y)

    def test_not_fitted(self):
        for model in (
            FenchelYoungOnlineStructured(KSubsets(4, 2)),
            FenchelYoungOnlineClassifier(),
        ):
            with pytest.raises(AttributeError, match="is not fitted yet"):
                _ = model.coef_

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_sparse_rows(self, fit_intercept):
        """As dense ones, where these are not scaled otherwise."""
        model = subsets(fit_intercept=fit_intercept)
        width = 3 + fit_intercept
        assert model._state_["coef"].shape[1] == width
        sparse = FenchelYoungOnlineStructured(
            KSubsets(4, 2), random_state=0, fit_intercept=fit_intercept
        ).fit(sp.csr_array(X), list(SUBSETS))
        assert sparse._state_["coef"].shape[1] == width
        chosen = np.array(sparse.predict(sp.csr_array(X)))
        assert chosen.shape == (30, 4)
        # Better than the one in six by chance.
        assert (chosen == SUBSETS).all(axis=1).mean() > 0.4


class TestLabels:
    def test_names_of_columns(self):
        Y = (X > 0.0).astype(int)
        model = FenchelYoungOnlineMultilabelClassifier()
        with pytest.raises(ValueError, match="classes must not repeat; got"):
            model.partial_fit(X, Y, classes=["a", "b", "a"])
        model.partial_fit(X, Y, classes=["a", "b", "c"])
        model.partial_fit(X, Y, classes=["a", "b", "c"])
        with pytest.raises(ValueError, match=r"but the stream began with \['a', 'b'"):
            model.partial_fit(X, Y, classes=["a", "b", "d"])

    def test_items_that_grow(self):
        ranks = np.argsort(np.argsort(SCORES, axis=1), axis=1) + 1
        model = FenchelYoungOnlineRanker()
        with pytest.raises(TypeError, match="argument 'classes'"):
            model.partial_fit(X, ranks, classes="grow")

    def test_features_of_other_names(self):
        pd = pytest.importorskip("pandas")
        pa = pytest.importorskip("pyarrow")
        y = np.where(X[:, 0] > 0.0, "yes", "no")
        tables = [
            pa.Table.from_pandas(pd.DataFrame(X, columns=names).assign(label=y))
            for names in (list("abc"), list("abd"))
        ]
        model = FenchelYoungOnlineClassifier()
        model.play_batches([tables[0]], target="label", classes=["no", "yes"])
        assert_array_equal(model.feature_names_in_, list("abc"))
        message = r"features \['a', 'b', 'd'\]; the stream began with \['a', 'b', 'c'\]"
        with pytest.raises(ValueError, match=message):
            model.play_batches([tables[1]], target="label")

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_comparator_of_rows_of_another_kind(self, fit_intercept):
        """A stream of sparse rows takes dense ones, and the other way round."""
        y = np.where(X[:, 0] > 0.0, "yes", "no")
        coef = RNG.normal(size=(2, 3 + fit_intercept))
        for kind, other in ((sp.csr_array, np.array), (np.array, sp.csr_array)):
            model = FenchelYoungOnlineClassifier(
                fit_intercept=fit_intercept, random_state=0
            ).partial_fit(kind(X), y, classes=["no", "yes"])
            found = model.comparator_loss(coef, other(X), y)
            assert_allclose(found, model.comparator_loss(coef, kind(X), y))


class TestArrays:
    def test_magnitudes_that_stay(self):
        """Each column's is that of its first entry."""
        columns, values = np.array([2, 0, 2, 0]), np.array([-3.0, 5.0, 100.0, 1e-9])
        found = adapted_magnitudes(columns, values, 4, False)
        assert_array_equal(found, [3.0, 5.0, 3.0, 5.0])

    def test_texts_of_parameters(self):
        assert _text(np.array([1, 2])) == "[1, 2]"
        assert _text(np.float64(0.5)) == "0.5"
        assert _text(len).startswith("<built-in")
        assert " at 0x" not in _text(lambda: None)

    @pytest.mark.parametrize("intercept", [0, 1])
    def test_room_for_features(self, intercept):
        names = ("table", "average", "gradient", "gradients")
        table = np.arange(8.0).reshape(4, 2)
        state = dict.fromkeys(names, table)
        found = with_more_rows(state, 5, intercept)
        rows = 4 - intercept
        for name in names:
            assert_array_equal(found[name][:rows], table[:rows])
            assert len(found[name]) >= 5 + intercept
            # The intercept stays in the last row; without one nothing is there.
            expected = table[-1] if intercept else np.zeros(2)
            assert_array_equal(found[name][-1], expected)
            assert not found[name][rows:-1].any()
