"""Machines of the online learners: batches beside single rows, and the references."""

import copy
import pickle
from math import sqrt

import numpy as np
import pytest
from fenchel_young.test_streams import (
    ACCOUNTS,
    DIAMETER,
    LEARNERS,
    PROBLEMS,
    all_classes,
    seen_features,
)
from fenchel_young.test_structured import STRUCTURES
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from reference import fenchel_young as reference
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skbounds.fenchel_young import FenchelYoungOnlineStructured
from skbounds.fenchel_young.structures import ChainCRF

try:
    import pandas as pd
except ImportError:
    # Not in the tests of the oldest versions.
    pd = None

# Length of the longest row that learners on plain features are told of, in units.
LONGEST = 8.0
# Of which nothing depends but time.
CACHES = ("_light", "_codes")
# Arrays of the state with a row for each feature.
BY_FEATURE = ("table", "average", "gradient", "gradients")
ROWS = st.tuples(
    st.integers(0, 2**16),
    st.sampled_from(["normal", "copies", "zeros", "outliers", "counts"]),
)


def make_rows(rng, n, d, kind):
    """Rows that are alike, or not."""
    X = rng.normal(size=(n, d)) * [1.0, 0.3, 1.5, 0.7][:d]
    if kind == "copies":
        X = np.repeat(X[:1], n, axis=0)
    if kind == "zeros":
        X *= rng.random(X.shape) < 0.4
    if kind == "outliers":
        X[rng.random(X.shape) < 0.2] *= 50.0
    if kind == "counts":
        X = np.round(2.0 * X)
    return X


def snapshot(model):
    """Copies of all that a model knows."""

    def copied(value):
        if isinstance(value, dict):
            return {key: copied(item) for key, item in value.items()}
        return value.copy() if isinstance(value, np.ndarray) else value

    return {k: copied(v) for k, v in vars(model).items() if k not in CACHES}


def assert_unchanged(model, before):
    now = snapshot(model)
    assert now.keys() == before.keys()
    for key, value in before.items():
        assert_equal(now[key], value, err_msg=key)


class Streams(RuleBasedStateMachine):
    """A model that takes batches, and a twin that takes the same rows one by one."""

    largest_weight = 1e100

    # What subclasses say: rows, targets, and how they are given.

    def x_of(self, X, i):
        """A row as `learn_one` takes it."""
        raise NotImplementedError

    def set_up(self, make, **first):
        """Take the first rows; they name classes and features."""
        self.one, self.twin = make(), make()
        before = snapshot(self.one)
        with pytest.raises(NotFittedError):
            self.one.learn_one(np.zeros(4), 0)
        assert_unchanged(self.one, before)
        # What the first call tells besides rows.
        self.first, self.begun = first, False
        self.tickets, self.n_seen, self.sum_of_weights = [], 0, 0.0
        # Whether nothing happened that the references do not know.
        self.plain, self.told = True, []

    def weights(self, rng, n, kind):
        if kind == "none":
            return None
        values = {
            "zeros": [0.0, 1.0],
            "some": [0.0, 0.5, 1.0, 3.0],
            "huge": [1.0 / self.largest_weight, 1e-6, 1.0, 1e6, self.largest_weight],
        }[kind]
        return rng.choice(values, size=n)

    def take(self, X, y, weight, way):
        """Batch and single rows."""
        first, self.first = self.first, {}
        begun, self.begun = self.begun, True
        given = {} if weight is None else {"sample_weight": weight}
        plays = None
        if way == "play":
            plays = self.one.play(X, y, **first, **given)
        elif way == "batches":
            middle = len(y) // 2
            parts = [slice(0, middle), slice(middle, None)] if middle else [slice(None)]
            parts = [
                (self.part(X, p), y[p], *(() if weight is None else (weight[p],)))
                for p in parts
            ]
            self.one.play_batches(parts, **first)
        else:
            self.one.partial_fit(X, y, **first, **given)
        for i in range(len(y)):
            w = 1.0 if weight is None else float(weight[i])
            if not begun and i == 0:
                given = {} if weight is None else {"sample_weight": weight[:1]}
                begin = self.part(X, slice(0, 1))
                play = self.twin.play(begin, y[:1], **first, **given)[0]
            else:
                play = self.twin.learn_one(self.x_of(X, i), y[i], sample_weight=w)
            if plays is not None:
                assert_array_equal(plays[i], play)
            self.count(w)
        self.told.append((X, y))
        self.plain &= weight is None or bool((weight == 1.0).all())

    def part(self, X, rows):
        return X.iloc[rows] if hasattr(X, "iloc") else X[rows]

    def count(self, w):
        self.n_seen += w > 0.0
        self.sum_of_weights += w

    # Labels that come later

    @rule(data=st.data(), rows=ROWS, w=st.sampled_from([1.0, 1.0, 2.0]))
    def play_one(self, data, rows, w):
        if not self.begun:
            return
        X, y = self.draw(*rows, 1)
        x = self.x_of(X, 0)
        tickets = [m.play_one(x, sample_weight=w) for m in (self.one, self.twin)]
        assert_array_equal(tickets[0].play, tickets[1].play)
        self.tickets.append((*tickets, y[0], w))

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), pickled=st.booleans())
    def learn_ticket(self, data, pickled):
        k = data.draw(st.integers(0, len(self.tickets) - 1))
        ticket, other, y, w = self.tickets.pop(k)
        if pickled:
            ticket = pickle.loads(pickle.dumps(ticket))
        play = self.one.learn_one(ticket, y)
        assert_array_equal(play, ticket.play)
        self.twin.learn_one(other, y)
        self.count(w)
        self.plain = False
        before = snapshot(self.one)
        with pytest.raises(ValueError, match="was learnt before"):
            self.one.learn_one(ticket, y)
        assert_unchanged(self.one, before)

    # Copies, looks, and parameters

    @rule(way=st.sampled_from(["pickle", "deepcopy", "clone"]))
    def replace(self, way):
        if way == "pickle":
            self.one = pickle.loads(pickle.dumps(self.one))
        elif way == "deepcopy":
            self.one = copy.deepcopy(self.one)
        else:
            assert not hasattr(clone(self.one), "_state_")

    @rule(rows=ROWS, n=st.integers(1, 5))
    def look(self, rows, n):
        """Predictions are those of the twin, and change nothing."""
        if not self.begun:
            return
        X, _ = self.draw(*rows, n)
        before = snapshot(self.one)
        models = (self.one, self.twin)
        one, other = (m.predict(X) for m in models)
        assert_equal(one, other)
        one, other = (m.predict_randomized(X, random_state=0) for m in models)
        assert_equal(one, other)
        self.look_more(X)
        repr(self.one)
        assert_unchanged(self.one, before)

    def look_more(self, X):
        return None

    @rule(clip=st.sampled_from([0.5, 3.0]))
    def set_clip(self, clip):
        """What is set later has no effect on the stream."""
        if not self.begun:
            return
        for model in (self.one, self.twin):
            model.set_params(clip=clip)

    # What is refused

    def refuse(self, call, message=r".", error=ValueError):
        before = snapshot(self.one)
        with pytest.raises(error, match=message):
            call()
        assert_unchanged(self.one, before)

    def calls(self):
        names = ["partial_fit", "play"]
        return [getattr(self.one, name) for name in names]

    @rule(rows=ROWS, n=st.integers(1, 4), bad=st.sampled_from([np.nan, np.inf, 1e160]))
    def refuse_numbers(self, rows, n, bad):
        X, y = self.draw(*rows, n, bad=bad)
        for call in self.calls():
            self.refuse(lambda call=call: call(X, y, **self.first), "X|x |[Ii]nput")
        if self.begun:
            x = self.x_of(X, n - 1)
            self.refuse(lambda: self.one.learn_one(x, y[-1]))
            self.refuse(lambda: self.one.play_one(x))

    @rule(rows=ROWS, n=st.integers(1, 4))
    def refuse_lengths(self, rows, n):
        X, y = self.draw(*rows, n)
        for call in self.calls():
            self.refuse(lambda call=call: call(X, y[:-1], **self.first))
            self.refuse(lambda call=call: call(self.part(X, slice(0, 0)), y[:0]))
            self.refuse(lambda call=call: call(X, None, **self.first))

    @rule(
        rows=ROWS,
        bad=st.sampled_from([-1.0, np.nan, np.inf, 1e101, 1e-101, "a", 1j, None]),
    )
    def refuse_weights(self, rows, bad):
        X, y = self.draw(*rows, 2)
        weight = [1.0, bad]
        for call in self.calls():
            self.refuse(
                lambda call=call: call(X, y, sample_weight=weight, **self.first),
                error=(ValueError, TypeError),
            )
            self.refuse(
                lambda call=call: call(X, y, sample_weight=[1.0], **self.first),
                "sample_weight",
            )
        if self.begun and not isinstance(bad, str | complex) and bad is not None:
            x = self.x_of(X, 0)
            call = lambda: self.one.learn_one(x, y[0], sample_weight=bad)
            self.refuse(call, "sample_weight")
            self.refuse(
                lambda: self.one.play_one(x, sample_weight=bad), "sample_weight"
            )
            self.refuse(
                lambda: self.one.play_one(x, sample_weight=0.0), "sample_weight"
            )

    # What holds at all times

    @invariant()
    def same_bits(self):
        if not self.begun:
            return
        one, other = self.one, self.twin
        assert one._state_.keys() == other._state_.keys()
        assert one.n_features_in_ == other.n_features_in_
        for key, value in one._state_.items():
            if key != "robust":
                assert np.isfinite(value).all(), key
            if self.kind in ("dicts", "longer rows") and key in BY_FEATURE:
                # There may be room for others.
                continue
            assert_array_equal(value, other._state_[key], err_msg=key, strict=True)
        if self.kind in ("dicts", "longer rows"):
            assert_array_equal(one.coef_, other.coef_)
            assert_array_equal(one.intercept_, other.intercept_)
        for name in ACCOUNTS:
            assert_equal(getattr(one, name), getattr(other, name), err_msg=name)

    @invariant()
    def counts(self):
        if not self.begun:
            return
        assert self.one.n_samples_seen_ == self.n_seen
        assert_allclose(self.one.sum_of_weights_, self.sum_of_weights, rtol=1e-12)
        assert self.one.n_open_tickets_ == len(self.tickets)
        total = self.one.sum_of_weights_
        for name in ("cumulative_loss_", "expected_cumulative_loss_"):
            found = getattr(self.one, name)
            assert -1e-12 * total <= found <= total * (1.0 + 1e-12), (found, total)
        assert 0.0 <= self.one.cumulative_surrogate_loss_ < np.inf


@st.composite
def learners(draw):
    """A problem, a learner, kind and unit of rows, and parameters."""
    name, learner = draw(st.sampled_from(LEARNERS))
    problem = PROBLEMS[name]
    kinds = ["dense", "csr", "dicts", "longer rows", *(["frame"] if pd else [])]
    kind = draw(st.sampled_from(kinds))
    single = draw(st.integers(0, 4)) == 0
    scaled = learner in ("auto", "mixture")
    units = [1.0, 1.0, 1e-3, 1e5]
    if scaled and not single:
        units += [1e-130, 1e130]
    unit = draw(st.sampled_from(units))
    params = {
        "learner": learner, "diameter": DIAMETER / unit,
        "feature_norm": sqrt((LONGEST * unit) ** 2 + 1.0), "random_state": 3,
        "decoding": draw(st.sampled_from(problem.decodings)),
    }  # fmt: skip
    if scaled:
        # Which needs no lengths.
        del params["diameter"], params["feature_norm"]
    if draw(st.integers(0, 2)) == 0:
        params["average"] = True
    if draw(st.integers(0, 2)) == 0:
        params["fit_intercept"] = False
    if scaled and draw(st.integers(0, 2)) == 0:
        params["feature_scaling"] = draw(st.sampled_from(["standard", "none"]))
        if params["feature_scaling"] == "none":
            unit = 1.0
    if problem.mixes(learner) and draw(st.integers(0, 2)) == 0:
        params["experts"] = draw(st.sampled_from([(), (2.0,), (0.5, 1.0, 2.0, 30.0)]))
        params["share"] = draw(st.sampled_from([0.0, 0.1]))
    if kind == "longer rows":
        params["new_features"] = "grow"
    grows = False
    if name == "logistic":
        grows = draw(st.booleans())
    return problem, params, kind, np.float32 if single else np.float64, unit, grows


class StreamMachine(Streams):
    """The classifiers and rankers."""

    @initialize(given=learners())
    def begin(self, given):
        self.problem, self.params, self.kind, self.dtype, self.unit, self.grows = given
        first = {"classes": "grow"} if self.grows else all_classes(self.problem)
        self.set_up(lambda: self.problem.estimator(**self.params), **first)
        self.codes = []
        if self.dtype == np.float32:
            self.largest_weight = 1e15

    def draw(self, seed, kind, n, bad=None):
        rng = np.random.default_rng(seed)
        X = make_rows(rng, n, 4, kind)
        size = self.problem.size + (self.problem.structure == "chain")
        if self.problem.structure in ("simplex", "chain"):
            y = rng.integers(size, size=n)
        elif self.problem.structure == "cube":
            y = rng.integers(2, size=(n, size))
        else:
            y = np.array([rng.permutation(size) for _ in range(n)]).reshape(n, size)
            y = y + (self.problem.structure == "permutahedron")
        if self.params["learner"] not in ("auto", "mixture"):
            longest = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
            X *= np.minimum(1.0, 0.9 * LONGEST / longest)
        X = (self.unit * X).astype(self.dtype)
        if bad is not None:
            with np.errstate(over="ignore"):
                X[-1, 1] = bad
        if self.kind == "csr":
            X = sparse.csr_array(X)
        elif self.kind == "frame":
            X = pd.DataFrame(X, columns=list("abcd"))
        elif self.kind in ("dicts", "longer rows"):
            X = self.with_new_features(X, rng)
        return X, y

    def with_new_features(self, X, rng):
        """Rows of a stream whose features become more and more."""
        last = 5 + 2 * min(len(self.codes), 20)
        columns = np.array([rng.choice(last, 4, replace=False) for _ in X])
        if self.kind == "longer rows":
            rows = np.repeat(np.arange(len(X)), 4)
            shape = (len(X), columns.max() + 1)
            given = (X.ravel(), (rows, columns.ravel()))
            return sparse.csr_array(sparse.coo_array(given, shape=shape))
        found = [
            {f"f{j}": float(x) for j, x in zip(*row, strict=True)}
            for row in zip(columns, X, strict=True)
        ]
        found[0]["kind"] = str(rng.choice(["red", "green"]))
        return found

    def x_of(self, X, i):
        if self.kind == "frame":
            return X.iloc[i]
        if self.kind in ("dense", "dicts"):
            return X[i]
        part = slice(X.indptr[i], X.indptr[i + 1])
        return X.indices[part], X.data[part]

    @rule(
        rows=ROWS,
        n=st.integers(1, 7),
        weights=st.sampled_from(["none", "none", "zeros", "zeros", "some", "huge"]),
        way=st.sampled_from(["partial_fit", "play", "batches"]),
    )
    def learn(self, rows, n, weights, way):
        X, y = self.draw(*rows, n)
        weight = self.weights(np.random.default_rng(rows[0]), n, weights)
        if not self.begun and self.params["learner"] == "parameter_free":
            # Which takes the largest weight from the first call.
            weight = None
        self.take(X, y, weight, way)
        self.codes.append(y)

    def look_more(self, X):
        if self.problem.structure == "simplex":
            one, other = self.one.predict_proba(X), self.twin.predict_proba(X)
            assert_array_equal(one, other)
            assert_allclose(one.sum(axis=1), 1.0, rtol=1e-9)
        self.one.surrogate_regret_bound(1.0)
        self.one.surrogate_regret_certificate(1.0)
        self.one.error_interval(kind="play")
        assert np.isfinite(self.one.coef_).all()

    @rule(rows=ROWS, width=st.sampled_from([3, 5]))
    def refuse_other_widths(self, rows, width):
        if not self.begun:
            return
        if self.kind in ("dicts", "longer rows"):
            return
        X, y = self.draw(*rows, 2)
        X = np.zeros((2, width))
        X = sparse.csr_array(X) if self.kind == "csr" else X
        for call in self.calls():
            self.refuse(lambda call=call: call(X, y), "features")
        other = np.zeros((2, 4)) if self.kind == "csr" else sparse.csr_array((2, 4))
        for call in self.calls():
            self.refuse(lambda call=call: call(other, y), "sparse")

    @rule(rows=ROWS, late=st.booleans())
    def refuse_labels(self, rows, late):
        if not self.begun:
            return
        X, y = self.draw(*rows, 3)
        y = y.astype(object)
        x, bad = self.x_of(X, 0), [None, np.nan]
        if not self.grows:
            bad += [99, "x"]
        for wrong in bad:
            y[2 if late else 0] = wrong
            for call in self.calls():
                self.refuse(lambda call=call: call(X, y), error=(ValueError, TypeError))
            self.refuse(
                lambda: self.one.learn_one(x, y[2 if late else 0]),
                error=(ValueError, TypeError),
            )

    def teardown(self):
        """Coefficients and losses are those of the reference."""
        if not hasattr(self, "codes") or not self.codes or not self.plain:
            return
        if self.grows or self.dtype == np.float32 or self.tickets:
            return
        if self.kind in ("dicts", "longer rows"):
            return
        if {"experts", "average", "fit_intercept"} & set(self.params):
            return
        if not 1e-4 < self.unit < 1e6:
            return
        X, y = zip(*self.told, strict=True)
        if self.kind == "csr":
            X = sparse.vstack(X, format="csr").toarray()
        else:
            X = np.vstack(X)
        y = np.concatenate(y)
        self.compare(X, self.problem.vertices(y))

    def compare(self, X, Y):
        problem, learner = self.problem, self.params["learner"]
        scaling = self.params.get("feature_scaling", "auto")
        rows = sparse.csr_array(X) if self.kind == "csr" else X
        F = seen_features(problem, learner, rows, scaling)
        decoding = self.params["decoding"]
        if problem.mixes(learner):
            step = problem.mixture_step(decoding)
            own = self.kind == "csr" and scaling == "auto"
            out = reference.mixture(
                F, Y, problem.loss, decoding, step=step, unit_rows=own
            )
            f = 1.0 if own else 1 / sqrt(out["N"])
            weights = np.vstack(
                [step / out["C2"] * out["Z"].T] + [f * W.T for W in out["W"]]
            )
        else:
            scale = problem.scale(decoding, "sharp")
            arguments = (F, Y, problem.structure, problem.loss, decoding)
            options = {"scale": scale, "mu": problem.mu}
            length = self.params.get("feature_norm")
            if learner == "ogd":
                step = problem.step(decoding, "sharp", length)
                out = reference.ogd(*arguments, step, **options)
            elif learner == "adaptive":
                out = reference.adaptive(*arguments, DIAMETER / self.unit, **options)
            elif learner == "parameter_free":
                limit = problem.gradient_limit(scale, length)
                out = reference.parameter_free(*arguments, limit, **options)
            else:
                step = problem.step(decoding, "sharp", 1.0)
                out = reference.dual_averaging(*arguments, step, **options)
            weights = out["W"][-1]
        found = self.one._weights_of(slice(None)).T
        size = max(np.abs(weights).max(), 1e-12)
        assert_allclose(found, weights, rtol=1e-7, atol=1e-8 * size)
        assert_allclose(
            self.one.cumulative_surrogate_loss_, np.sum(out["surrogate"]), rtol=1e-8
        )


class StructuredMachine(Streams):
    """Subsets, trees, matchings and chains."""

    @initialize(
        name=st.sampled_from([*STRUCTURES, "chain"]),
        kind=st.sampled_from(["dense", "csr"]),
        decoding=st.sampled_from(["randomized", "argmax", "sample"]),
        scaling=st.sampled_from(["auto", "none"]),
        learner=st.sampled_from(["auto", "dual"]),
        intercept=st.booleans(),
    )
    def begin(self, name, kind, decoding, scaling, learner, intercept):
        self.many, self.kind = name == "chain", kind
        self.structure = ChainCRF(3) if self.many else STRUCTURES[name]
        self.set_up(
            lambda: FenchelYoungOnlineStructured(
                self.structure, decoding=decoding, feature_scaling=scaling,
                learner=learner, fit_intercept=intercept, random_state=3,
            )
        )  # fmt: skip

    def draw(self, seed, kind, n, bad=None):
        rng = np.random.default_rng(seed)
        as_kind = sparse.csr_array if self.kind == "csr" else np.asarray
        if self.many:
            X = [make_rows(rng, rng.integers(1, 4), 4, kind) for _ in range(n)]
            y = [rng.integers(3, size=len(x)) for x in X]
            if bad is not None:
                X[-1][0, 0] = bad
            return [as_kind(x) for x in X], y
        X = make_rows(rng, n, 4, kind)
        scores = rng.normal(size=(n, self.structure.n_outputs))
        y = [self.structure.decode(self.structure.maximise(s)) for s in scores]
        if bad is not None:
            X[-1, 0] = bad
        return as_kind(X), np.array(y)

    def x_of(self, X, i):
        return X[i] if self.many or self.kind == "dense" else X[i : i + 1]

    @rule(
        rows=ROWS,
        n=st.integers(1, 4),
        weights=st.sampled_from(["none", "zeros", "zeros", "some", "huge"]),
        way=st.sampled_from(["partial_fit", "play"]),
    )
    def learn(self, rows, n, weights, way):
        X, y = self.draw(*rows, n)
        weight = self.weights(np.random.default_rng(rows[0]), n, weights)
        self.take(X, y, weight, way)

    @rule(rows=ROWS)
    def refuse_targets(self, rows):
        if not self.begun:
            return
        X, y = self.draw(*rows, 2)
        wrong = [y[0], None]
        for call in self.calls():
            self.refuse(lambda call=call: call(X, wrong), error=(ValueError, TypeError))
