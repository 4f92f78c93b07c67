"""A machine of tables in chunks: cut anywhere, fits are those of rows in memory."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from numpy.testing import assert_allclose, assert_array_equal

from skbounds import (
    GaussianSMP,
    MultinomialSMP,
    PoissonSMP,
    RidgeSMP,
    SMPLogisticRegression,
)

RIDGES = [
    {}, {"alpha": 1.0, "sigma": 2.0}, {"fit_intercept": False}, {"width": "bayes"},
    {"penalize_intercept": True},
]  # fmt: skip
LOGISTICS = [
    {}, {"C": 0.5}, {"fit_intercept": False}, {"class_weight": "balanced"},
    {"virtual_weight": 0},
]  # fmt: skip


class ChunkMachine(RuleBasedStateMachine):
    """Rows, and where their chunks end."""

    def __init__(self):
        super().__init__()
        # Chunks one after the other.
        self.scheduler = dask.config.set(scheduler="synchronous")

    def teardown(self):
        self.scheduler.__exit__(None, None, None)

    @initialize(seed=st.integers(0, 2**16), n=st.integers(30, 80))
    def begin(self, seed, n):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.1] + [0.0, 10.0, 0.0]
        self.y = self.X @ [1.0, 0.3, 2.0] + rng.normal(size=n)
        self.counts = rng.poisson(3.0, size=n)
        self.sizes, self.weight = [n], None

    def table(self, values, sizes=None):
        """The values as a collection; chunks may be empty."""
        sizes = tuple(self.sizes if sizes is None else sizes)
        columns = tuple((d,) for d in values.shape[1:])
        return da.from_array(values, chunks=(sizes, *columns))

    def frame(self, values):
        """The same as a dataframe."""
        ends = np.cumsum(self.sizes)
        names = list("abc")[: values.shape[1]]
        whole = pd.DataFrame(values, columns=names)
        rows = [
            whole.iloc[end - n : end] for n, end in zip(self.sizes, ends, strict=True)
        ]
        return dd.from_map(lambda part: part, rows, meta=whole.iloc[:0])

    # Where chunks end

    @rule(data=st.data())
    def cut(self, data):
        k = data.draw(st.integers(0, len(self.sizes) - 1))
        first = data.draw(st.integers(0, self.sizes[k]))
        self.sizes[k : k + 1] = [first, self.sizes[k] - first]

    @precondition(lambda self: len(self.sizes) > 1)
    @rule(data=st.data())
    def join(self, data):
        k = data.draw(st.integers(0, len(self.sizes) - 2))
        self.sizes[k : k + 2] = [self.sizes[k] + self.sizes[k + 1]]

    @rule(data=st.data(), n=st.integers(1, 3))
    def single_rows(self, data, n):
        """Chunks of a row at the beginning."""
        if self.sizes[0] > n:
            self.sizes[0:1] = [1] * n + [self.sizes[0] - n]

    @rule(data=st.data())
    def empty(self, data):
        k = data.draw(st.integers(0, len(self.sizes)))
        self.sizes.insert(k, 0)

    @rule(seed=st.integers(0, 2**16), n=st.integers(1, 5))
    def append(self, seed, n):
        """More rows, of which some are copies."""
        rng = np.random.default_rng(seed)
        rows = rng.integers(len(self.X), size=n)
        self.X = np.vstack([self.X, self.X[rows]])
        self.y = np.append(self.y, self.y[rows] + rng.normal(size=n))
        self.counts = np.append(self.counts, rng.poisson(3.0, size=n))
        self.sizes.append(n)
        self.weight = None

    @rule(seed=st.integers(0, 2**16), kind=st.sampled_from(["none", "zeros", "some"]))
    def weigh(self, seed, kind):
        rng = np.random.default_rng(seed)
        n = len(self.X)
        self.weight = None
        if kind == "zeros":
            # A chunk that does not count.
            self.weight = np.ones(n)
            if self.sizes[0] < n - 20:
                self.weight[: self.sizes[0]] = 0.0
        elif kind == "some":
            self.weight = rng.integers(1, 3, size=n).astype(float)

    # Fits

    def both(self, make, y, form):
        """Fits of chunks and of rows in memory."""
        here = make().fit(self.X, y, self.weight)
        weight = self.weight
        X, targets = (
            (self.frame(self.X), self.table(y))
            if form == "frame"
            else (self.table(self.X), y if form == "rows" else self.table(y))
        )
        if form == "chunks" and weight is not None:
            weight = self.table(weight)
        return make().fit(X, targets, weight), here

    @rule(params=st.sampled_from(RIDGES), form=st.sampled_from(["chunks", "rows"]))
    def ridge(self, params, form):
        there, here = self.both(lambda: RidgeSMP(**params), self.y, form)
        for name in ("coef_", "intercept_", "sigma_"):
            assert_allclose(
                getattr(there, name), getattr(here, name), rtol=1e-7, atol=1e-9,
                err_msg=name,
            )  # fmt: skip
        found = there.predict(self.table(self.X)).compute()
        assert_allclose(found, here.predict(self.X), rtol=1e-7, atol=1e-9)

    @rule(
        params=st.sampled_from(LOGISTICS),
        form=st.sampled_from(["chunks", "rows"]),
        several=st.booleans(),
    )
    def logistic(self, params, form, several):
        labels = (self.y > np.median(self.y)).astype(int) + (
            several * (self.X[:, 0] > 0.0)
        )
        if len(
            np.unique(labels if self.weight is None else labels[self.weight > 0])
        ) < (2 + several):
            return
        make = lambda: SMPLogisticRegression(method="one-step", **params)
        there, here = self.both(make, labels, form)
        assert_array_equal(there.classes_, here.classes_)
        for name in ("coef_", "intercept_", "loo_log_loss_"):
            assert_allclose(
                getattr(there, name), getattr(here, name), rtol=1e-7, atol=1e-9,
                err_msg=name,
            )  # fmt: skip
        found = there.predict_proba(self.table(self.X)).compute()
        assert_allclose(found, here.predict_proba(self.X), rtol=0, atol=1e-8)

    @rule(form=st.sampled_from(["chunks", "frame"]))
    def densities(self, form):
        table = self.frame if form == "frame" else self.table
        weight = None if self.weight is None else self.table(self.weight)
        counts = self.counts[:, None]
        kinds = np.array(["a", "b", "c"])[self.counts % 3][:, None].astype(object)
        for make, values in (
            (GaussianSMP, self.X), (PoissonSMP, counts), (MultinomialSMP, kinds)
        ):  # fmt: skip
            here = make().fit(values, sample_weight=self.weight)
            there = make().fit(table(values), sample_weight=weight)
            found = np.asarray(there.score_samples(table(values)))
            assert_allclose(found, here.score_samples(values), rtol=1e-9, atol=1e-9)

    # What is refused

    @rule(data=st.data(), bad=st.sampled_from([np.nan, np.inf]))
    def refuse(self, data, bad):
        """A bad row somewhere; the fit before is still there."""
        model = RidgeSMP().fit(self.table(self.X), self.table(self.y))
        before = dict(vars(model))
        X = self.X.copy()
        X[data.draw(st.integers(0, len(X) - 1)), 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.fit(self.table(X), self.table(self.y))
        assert vars(model) == before
        if len(self.sizes) > 1:
            with pytest.raises(ValueError, match="y"):
                model.fit(self.table(self.X), self.table(self.y[:-1], [len(X) - 1]))
            assert vars(model) == before

    @invariant()
    def rows(self):
        assert sum(self.sizes) == len(self.X) == len(self.y)
