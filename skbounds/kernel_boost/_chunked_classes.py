"""Kernel boosting of classes whose rows are in chunks: a pass for each gradient.

The function is known by its coefficients at the landmarks; a pass sends these to all
chunks and brings back, of each path, the risk, its curvature and its gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import linalg
from scipy.special import logsumexp

from skbounds._blocks import row_blocks
from skbounds._chunked_labels import codes_of, join_classes, weights_of_labels
from skbounds._collections import Chunks, set_names
from skbounds._labels import check_several
from skbounds._weights import class_factors
from skbounds.kernel_boost._chunked import ChunkedFit, find_facts
from skbounds.kernel_boost._flow import BaseFlow
from skbounds.kernel_boost._flow_path import ClassLaw, Coordinates
from skbounds.kernel_boost._flow_solver import pilot_path
from skbounds.kernel_boost._fold_paths import eigenvectors
from skbounds.kernel_boost._kernels import Rows
from skbounds.kernel_boost._losses import loss_of
from skbounds.kernel_boost._summed import BLOCK


@dataclass(frozen=True)
class Labels:
    """Makes targets of labels.

    Attributes
    ----------
    classes : ndarray of shape (K,)
    factors : ndarray of shape (K,)
        What rows of a class count, times their weights.
    share : ndarray of shape (K,)
        Of the classes, so weighted.
    """

    classes: np.ndarray
    factors: np.ndarray
    share: np.ndarray

    def codes(self, y):
        """Return numbers of classes."""
        return codes_of(y, self.classes)

    def __call__(self, y, weight):
        """Return the codes, and what rows count."""
        codes = self.codes(y)
        return codes, weight * self.factors[codes]

    def targets(self, codes):
        """Return indicators without their means, (n, 1 or K)."""
        targets = np.eye(len(self.classes))[codes] - self.share
        return targets[:, 1:] if len(self.classes) == 2 else targets


@dataclass(frozen=True)
class ChunkedClasses(ClassLaw):
    """As `ClassProblem`, of rows in chunks.

    Attributes
    ----------
    chunks : Chunks
    plan : Plan
        Its coder is `Labels`.
    loss : class of `_losses`
    with_offset : bool
    n_units : int
        Number of rows.
    fold_shares : ndarray of shape (n_folds, K)
        Shares of all rows that are of a fold and a class.
    """

    chunks: Chunks
    plan: object
    loss: type
    with_offset: bool
    n_units: int
    fold_shares: np.ndarray

    @property
    def share(self):
        return self.plan.coder.share

    @property
    def n_free(self):
        return len(self.share) - 1

    @property
    def n_samples(self):
        return self.plan.total

    @cached_property
    def offset(self):
        return self.constant_of(self.share, self.n_samples)

    def fold_offsets(self):
        """Return the constants without each fold."""
        found = []
        for own in self.fold_shares:
            left = np.maximum(self.share - own, 0.0)
            total = left.sum()
            found.append(self.constant_of(left / total, total * self.n_samples))
        return found

    # Of the rows, which are elsewhere.
    targets = share_of_rows = None

    def mean(self, values):
        """Return the mean loss at the values of one path."""
        return float(values.mean)

    def deviance(self, values):
        """Return the mean log loss of the probabilities."""
        return float(values.deviance)


@dataclass
class FarValues:
    """Stands for the values (n, n_paths) or (n, n_paths, K) of rows in chunks.

    Attributes
    ----------
    risk, mean, deviance, curvature : ndarray of shape (n_paths,)
        What is boosted, the mean loss, and the log loss of the probabilities.
    gradient : ndarray of shape (n_paths, R, K)
        By the features F.
    left_out : ndarray of shape (n_paths, 2)
        Sums over the rows that a path is without: of their losses, and of those for
        labels drawn by chance.
    ndim : int
    """

    risk: np.ndarray
    mean: np.ndarray
    deviance: np.ndarray
    curvature: np.ndarray
    gradient: np.ndarray
    left_out: np.ndarray
    ndim: int

    def _names(self):
        return [name for name in vars(self) if name != "ndim"]

    def __getitem__(self, item):
        _, which = item
        arrays = {name: getattr(self, name)[which] for name in self._names()}
        return FarValues(**arrays, ndim=self.ndim - 1)

    def put(self, which, others, own):
        """Replace what is known of some paths."""
        for name in self._names():
            values = getattr(others, name)
            getattr(self, name)[which] = values if own is None else values[own]


def _pass_of(X, y, weight, place, plan, loss, dual, offset, which):
    """Return what a chunk says at coefficients, see `_of_block`.

    Parameters
    ----------
    dual : ndarray of shape (r, n_paths, K)
    offset : ndarray of shape (n_paths,) or (n_paths, K)
    which : ndarray of int of shape (n_paths,)
        Numbers of the paths: 0 is that of all rows, k that without fold k - 1.
    """
    X, codes, share, fold = plan.of_chunk(X, y, weight, place[1])
    landmarks = plan.landmarks[: len(dual)]
    n_classes = len(plan.coder.classes)
    parts = []
    # A chunk without rows has nothing to say, in arrays of the same shapes.
    for rows in list(row_blocks(X.shape[0], BLOCK)) or [slice(0, 0)]:
        if X.shape[0]:
            K = plan.kernel(X[rows], landmarks)
        else:
            K = np.zeros((0, len(dual)))
        targets = loss.encode(codes[rows], n_classes)
        own_fold = None if fold is None else fold[rows]
        parts.append(
            _of_block(K, targets, share[rows], own_fold, loss, dual, offset, which)
        )
    return _joint(loss, *parts)


def _of_block(K, targets, share, fold, loss, dual, offset, which):
    """Return what some rows say.

    Returns
    -------
    risk : ndarray of shape (n_paths, 1 or K)
        Of each column, where the loss is boosted on logarithms.
    deviance, curvature : ndarray of shape (n_paths,)
    gradient : ndarray of shape (r, n_paths, K)
    left_out : ndarray of shape (n_paths, 2)
    """
    r, q, c = dual.shape
    f = (K @ dual.reshape(r, q * c)).reshape(len(K), *offset.shape) + offset
    w, left_out = np.repeat(share[:, None], q, axis=1), np.zeros((q, 2))
    for j, k in enumerate(which):
        if k == 0:
            continue
        out = np.flatnonzero(fold == k - 1)
        held, values, own = w[out, j], f[out, j], targets[out]
        left_out[j] = loss.deviance(own, values, held), loss.doubt(values, held)
        w[out, j] = 0.0
    y = targets[:, None]
    if not loss.is_logarithm:
        risk = loss.risk(y, f, w)
        slopes = loss.pull(y, f, w).reshape(len(K), q * c)
        gradient = (K.T @ slopes).reshape(r, q, c)
        return risk[:, None], risk, loss.curvature(y, f, w), gradient, left_out
    wide = np.broadcast_to(w[..., None] if f.ndim == 3 else w, f.shape)
    deviance = loss.deviance(y, f, w)
    if not len(K):
        none = np.full((q, c), -np.inf)
        return none, deviance, np.ones(q), np.zeros((r, q, c)), left_out
    with np.errstate(divide="ignore"):
        logs = np.log(wide) - y * f
        risk = logsumexp(logs, axis=0)
    # Paths without any row here have no slopes.
    tilted = np.exp(logs - np.where(np.isfinite(risk), risk, 0.0))
    gradient = K.T @ (-y * tilted).reshape(len(K), q * c)
    return (
        risk.reshape(q, c), deviance, np.ones(q), gradient.reshape(r, q, c), left_out
    )  # fmt: skip


def _joint(loss, *parts):
    """Return what the rows of several parts say."""
    risk, deviance, curvature, gradient, left_out = zip(*parts, strict=True)
    if not loss.is_logarithm:
        sums = (sum(values) for values in (risk, deviance, curvature, gradient))
        return (*sums, sum(left_out))
    risks = np.array(risk)
    total = logsumexp(risks, axis=0)
    share = np.exp(risks - np.where(np.isfinite(total), total, 0.0))
    slopes = sum(g * s for g, s in zip(gradient, share, strict=True))
    return total, sum(deviance), curvature[0], slopes, sum(left_out)


class ChunkedFlow(BaseFlow):
    """The flow of rows in chunks.

    Parameters
    ----------
    problem : ChunkedClasses
    triangle : ndarray of shape (R, R)
        Of the landmarks.
    vectors, eigenvalues
        See `BaseFlow`.
    offset : ndarray of shape (n_paths,) or (n_paths, K)
    """

    def __init__(self, problem, triangle, vectors, eigenvalues, offset):
        offset = np.asarray(offset, dtype=np.float64)
        n_columns = 1 if offset.ndim == 1 else offset.shape[1]
        super().__init__(
            problem.loss, vectors, eigenvalues, len(triangle), offset, n_columns
        )
        self.problem, self.triangle = problem, triangle

    def _solve(self, columns, *, transposed):
        r, q, c = columns.shape
        return linalg.solve_triangular(
            self.triangle, columns.reshape(r, q * c), lower=True,
            trans="T" if transposed else "N",
        ).reshape(r, q, c)  # fmt: skip

    def values(self, theta, which=None):
        """Run a pass at the coordinates of some paths."""
        problem = self.problem
        which = np.arange(self.n_paths) if which is None else np.asarray(which)
        dual = self._solve(self.coefficients(theta, which), transposed=True)
        risk, deviance, curvature, gradient, left_out = problem.chunks.sums(
            _pass_of, problem.plan, problem.loss, dual, self.offset[which], which,
            numbered=True, combine=partial(_joint, problem.loss),
        )  # fmt: skip
        gradient = self._solve(gradient, transposed=False).transpose(1, 0, 2)
        mean = np.exp(risk) if problem.loss.is_logarithm else risk
        return FarValues(
            risk.mean(axis=1), mean.mean(axis=1), deviance, curvature,
            np.ascontiguousarray(gradient), left_out, ndim=1 + self.offset.ndim,
        )  # fmt: skip

    values_at_start = values

    def gradient(self, values):
        """Return g of each path, in its eigenvectors."""
        return self.in_eigenvectors(values.gradient.transpose(1, 0, 2))

    def risk_of(self, values, which=None, f_of=None):
        """Return the risks of some of the paths."""
        if which is None or f_of is not None:
            return values.risk.copy()
        return values.risk[which]

    def curvature_of(self, values):
        """Return the mean curvature of each path."""
        return values.curvature.copy()

    def put(self, values, which, others, own=None):
        """Replace what is known of some of the paths, in place."""
        values.put(which, others, own)


@dataclass
class ChunkedCoordinates(Coordinates):
    """A problem in chunks, in coordinates."""

    def flow(self):
        """Return the flow of the one path."""
        basis, used = self.basis, len(self.mu)
        return ChunkedFlow(
            self.problem, basis.columns.triangle(), [basis.raw.vectors[:, :used]],
            [self.mu], [self.problem.offset],
        )  # fmt: skip


class ChunkedPaths:
    """As `JointPaths`, of rows in chunks.

    Parameters
    ----------
    problem : ChunkedClasses
    basis : Basis
    """

    floor = 0.0

    def __init__(self, problem, basis):
        self.problem = problem
        columns, raw = basis.columns, basis.raw
        r = columns.rank
        parts = [
            eigenvectors(columns.gram - gram[:r, :r])
            for gram in columns.sums.fold_grams
        ]
        flow = ChunkedFlow(
            problem, columns.triangle(), [raw.vectors, *(V for _, V in parts)],
            [basis.eigenvalues, *(mu for mu, _ in parts)],
            [problem.offset, *problem.fold_offsets()],
        )  # fmt: skip
        self.flows, self.stages = [flow], [flow.start()]
        self._held = problem.fold_shares.sum()

    def judge(self):
        """Return the mean loss on the rows left out, and what is added to it."""
        sums = self.stages[0].values.left_out[1:].sum(axis=0) / self._held
        return float(sums[0]), self.problem.penalty(lambda: sums[1])

    def advance(self, step):
        """Take a step on all paths."""
        self.stages = [self.flows[0].advance(self.stages[0], step)]


class ChunkedClassification(ChunkedFit):
    """Mixin: losses of classes in chunks."""

    def _beyond_sums(self):
        plain = self.step_size is not None or self.average
        return [
            ("stopping", self.stopping in ("auto", "alo"), "leaves out no single rows"),
            ("step_size", plain and not self.average, "is for rows in memory"),
            ("average", self.average, "is for rows in memory"),
        ]

    def _fit_chunks(self, X, y, sample_weight, X_val, y_val, sample_weight_val, groups):
        self._check_chunks(groups, X_val)
        chunks = Chunks(X, y, sample_weight, target="labels")
        facts, summaries = find_facts(chunks, weights_of_labels)
        set_names(self, chunks)
        totals = self._find_classes(summaries)
        self._warn_of_weights(facts)
        if self.stopping == "cv":
            self._warn_of_rare(totals)
        n_classes = len(self.classes_)
        self._factors_ = class_factors(
            self.class_weight, self.classes_, np.arange(n_classes), totals
        )
        rng = self._rng()
        found = self._sample(chunks, facts, rng)
        if found is None:
            return self._fit_gathered(
                chunks, X_val, y_val, sample_weight_val, sample_weight is not None
            )
        X_few, y_few, numbers = found
        loss = loss_of(self.loss, n_classes, plain=False)
        held_out = None
        if X_val is not None:
            held_out = self._check_validation(
                X_val, y_val, sample_weight_val, loss, numbers
            )
        counted = totals * self._factors_
        labels = Labels(self.classes_, self._factors_, counted / counted.sum())
        codes = labels.codes(y_few)
        sample = self._problem(X_few, codes, np.ones(len(numbers)), loss)
        kernel, gamma_path = self._choose_scales(sample, rng)
        rows = Rows(self._spread_over_all(kernel, facts), X_few)
        columns, plan = self._summed_columns(
            chunks, rows, codes[:, None], facts, float(counted.sum()), labels, rng
        )
        problem = ChunkedClasses(
            chunks, plan, loss, self.fit_intercept, facts.n,
            fold_shares(columns.sums.fold_totals, labels.share),
        )  # fmt: skip
        found = self._follow_chunks(problem, columns, rows, facts, held_out)
        self._store(found, rows.kernel, problem, X_few, numbers)
        self.stopping_ = self.stopping
        self._store_kernel(rows.kernel, gamma_path)
        self._warn_of_limit(self.n_iter_, self._limit())
        self._warn_of_loss(found.is_unfinished)
        self._warn_of_rank(facts.n)
        return self

    def _find_classes(self, summaries):
        """Set the classes; return their weights."""
        self.classes_, totals = join_classes(summaries)
        check_several(self.classes_, "This solver")
        return totals

    def _follow_chunks(self, problem, columns, rows, facts, held_out):
        options = self._options(self._rule())

        def judge(basis):
            return pilot_path(basis, columns.targets, problem.n_samples)

        def follow(basis, spectrum, reach):
            state = self._state(problem, basis, spectrum, held_out, rows, reach)
            return self._walk(ChunkedCoordinates(**vars(state)), options, None, False)

        timed = options.stopping in (None, "theory", "cv")
        found, basis = self._grow_along(columns, judge, follow, timed=timed)
        self._warn_of_width(basis, facts.n)
        return found

    def _joint_paths(self, state, *, grows):
        if isinstance(state.problem, ChunkedClasses):
            return ChunkedPaths(state.problem, state.basis)
        return super()._joint_paths(state, grows=grows)


def fold_shares(totals, share):
    """Return the shares of all rows that are of a fold and a class.

    Parameters
    ----------
    totals : ndarray of shape (n_folds, 1 + 2 m)
        Of `FactorSums`, of indicators without their means; the second class's for two.
    share : ndarray of shape (K,)
    """
    held, m = totals[:, :1], (totals.shape[1] - 1) // 2
    found = totals[:, 1 : 1 + m]
    if len(share) == 2:
        found = np.hstack([-found, found])
    return found + held * share
