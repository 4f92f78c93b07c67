"""What the boosted regressor and classifier share."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
)

from skbounds._base import KnowsItsError, SkboundsEstimator, warn_user
from skbounds._blocks import memory_limit, row_blocks
from skbounds._callbacks import current_task
from skbounds._distances import check_spread
from skbounds._labels import refuse_missing
from skbounds._magnitude import SMALLEST, check_magnitude
from skbounds._sklearn_compat import Interval, StrOptions, check_sample_weight
from skbounds._validation import check_array, validate_data
from skbounds.kernel_boost import _solvers
from skbounds.kernel_boost._anova import MOST_FEATURES, WIDTHS, with_anova
from skbounds.kernel_boost._factor import KernelFactor
from skbounds.kernel_boost._folds import given_folds, hash_folds, numbers_of_split
from skbounds.kernel_boost._gamma import choose_gamma, typical_distance
from skbounds.kernel_boost._hashes import count_originals
from skbounds.kernel_boost._kernels import (
    DENSE,
    NAMES,
    POSITIVE,
    WITH_SCALES,
    WITH_WIDTH,
    Kernel,
    scale_gamma,
)
from skbounds.kernel_boost._relevance import (
    draw_sample,
    find_relevance,
    inverse_of,
    make_scale,
)
from skbounds.kernel_boost._stopping import LONGEST

_FIRST_RANK = 32
# From this rank on a small gain of the criterion is believed.
_RELIABLE_RANK = 128
# What max_rank="auto" goes on from and up to, in columns and in multiplications, while
# more than this share of the degrees of freedom found may be missing. Where it was more
# at the cap, doubling the rank lowered the criterion by 1.4 to 350 % (nine fits), where
# it was less, by at most .9 % (four).
_USUAL_RANK, _LARGEST_RANK, _LARGEST_WORK, _MUCH = 512, 2048, 4e10, 0.5
# Up to so many rows all eigenvectors are computed.
FEW_ROWS = 500
# Rules that count rows, copies as well, and how often rows must be there on average for
# a word; copies are looked for among so many rows.
COUNTS_ROWS = ("gcv", "cp", "aicc", "loo", "discrepancy", "auto", "alo", "aic")
OFTEN, _FEW_TO_COMPARE = 1.2, 20_000
# Folds of intervals.
INTERVAL_FOLDS = 10
# Steps of the plain iteration where no limit is given.
LONGEST_PLAIN = 10_000


def _held_rank(n):
    """Return how many columns a factor of n rows may have that is held in memory."""
    return max(memory_limit() // n, _RELIABLE_RANK)


def improvement(before, now):
    """Return by what share a criterion has become less; inf where that is unknown."""
    if not (np.isfinite(before) and np.isfinite(now)):
        return np.inf
    return (before - now) / max(abs(now), 1e-300)


class BaseKernelBoost(KnowsItsError, SkboundsEstimator):
    """Parameters, kernels and solvers of early-stopped kernel boosting."""

    _parameter_constraints: dict = {
        "kernel": [StrOptions(set(NAMES)), callable],
        "gamma": [
            StrOptions({"auto", "scale"}),
            Interval(Real, 0, None, closed="left"),
            None,
        ],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "learning_rate": [Interval(Real, 0, 2, closed="neither")],
        "step_size": [Interval(Real, 0, None, closed="neither"), None],
        "df_margin": [Interval(Real, 0, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left"), None],
        "norm": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "average": ["boolean"],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "lowrank", "banded", "eigh", "gd"})],
        "max_rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "rank_tol": [Interval(Real, 0, None, closed="left")],
        "rank_gain_tol": [Interval(Real, 0, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "relevance": [StrOptions({"auto", "ard"}), "array-like", None],
        "clip": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _check_stopping(self, X_val, y_val, sample_weight_val, groups):
        """Refuse combinations of parameters that say nothing."""
        if groups is not None and not self._needs_folds():
            raise ValueError(
                "groups are for stopping='cv' and intervals=True; got "
                f"stopping={self.stopping!r}."
            )
        if self.stopping is None and self.max_iter is None:
            raise ValueError(
                "stopping=None takes exactly max_iter steps, and max_iter is None; "
                "give a number."
            )
        if (X_val is None) != (y_val is None):
            given, missing = ("X_val", "y_val") if y_val is None else ("y_val", "X_val")
            raise ValueError(f"{given} is given, but {missing} is not.")
        if sample_weight_val is not None and X_val is None:
            raise ValueError("sample_weight_val is given without X_val and y_val.")
        if X_val is not None and self._rule() != "validation":
            raise ValueError(
                "X_val and y_val are for stopping='validation'; got "
                f"stopping={self.stopping!r}."
            )

    def _check_rows(self, X):
        """Return new rows, checked."""
        X = validate_data(
            self, X, accept_sparse=self._accepts_sparse(), dtype=np.float64, reset=False
        )
        X = _in_order(X)
        if self._kernel_name() not in WITH_WIDTH:
            # Far from all rows the others vanish.
            check_magnitude(X, "X")
        return self._check_domain(X)

    def _check_training(self, X):
        """Return rows to fit, checked."""
        X = _in_order(X)
        if self.kernel in ("rbf", "laplacian", "anova"):
            check_spread(X)
        else:
            check_magnitude(X, "X")
        return self._check_gram(self._check_domain(X))

    def _kernel_name(self):
        """Return the kernel of the fit, or that which is to be fitted."""
        fitted = getattr(self, "_kernel_", None)
        return self.kernel if fitted is None else fitted.kernel

    def _accepts_sparse(self):
        return False if self._kernel_name() in DENSE else "csr"

    def _accepts(self):
        """Return what `validate_data` is to accept, beside arrays."""
        return {
            "accept_sparse": self._accepts_sparse(),
            "dtype": np.float64,
        }

    def _check_domain(self, X):
        if self._kernel_name() == "sobolev" and X.min(initial=0.0) < 0.0:
            raise ValueError(
                "Negative values in data passed to a model with kernel='sobolev', "
                "which is defined for features that are not negative."
            )
        return X

    def _check_gram(self, X):
        """Return a kernel matrix without rounding errors; refuse what is none."""
        if self.kernel != "precomputed":
            return X
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. Input is a "
                f"{X.shape[0]}x{X.shape[1]} matrix."
            )
        difference = np.abs(X - X.T).max(initial=0.0)
        if difference > _solvers.INDEFINITE * np.abs(X).max(initial=0.0):
            raise ValueError(
                "the kernel matrix is not symmetric: entries differ from their mirror "
                f"images by up to {difference:.3g}."
            )
        largest = float(X.diagonal().max(initial=0.0))
        if 0.0 < largest < SMALLEST**2:
            raise ValueError(
                f"the kernel matrix has entries of at most {largest:.3g}, whose "
                "inverses are beyond the range of doubles. Multiply by a constant."
            )
        X = 0.5 * (X + X.T) if difference else X
        root = np.sqrt(np.maximum(X.diagonal(), 0.0))
        excess = (np.abs(X) - np.outer(root, root)).max(initial=0.0)
        if excess > _solvers.INDEFINITE * np.abs(X).max(initial=0.0):
            raise ValueError(
                "the kernel matrix is not positive semidefinite: it has an entry that "
                f"is {excess:.3g} larger than sqrt(k(x, x) k(x', x'))."
            )
        return X

    def _rule(self):
        """Return the stopping rule."""
        return self.stopping

    def _needs_folds(self):
        return self._rule() == "cv"

    def _numbers_of_cv(self, X, y, groups):
        """Return the test set of each row where cv is a splitter; None otherwise."""
        if self.cv is None or isinstance(self.cv, Integral):
            return None
        splits = self.cv
        if hasattr(splits, "split"):
            splits = splits.split(X, y, groups)
        return numbers_of_split(splits, X.shape[0], complete=self._wants_intervals())

    def _wants_intervals(self):
        return False

    def _check_folds(self, X, y, groups):
        """Return the rows' test sets of a splitter or None, and the groups or None."""
        if not self._needs_folds():
            return None, None
        if groups is not None:
            groups = column_or_1d(groups)
            refuse_missing(groups, "groups")
            check_consistent_length(X, groups)
        return self._numbers_of_cv(X, y, groups), groups

    def _make_folds(
        self, X, targets, weight, kept, rng, numbers, groups, *, codes=None
    ):
        """Return the folds of rows that are kept.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n, d)
        targets : ndarray of shape (n, m)
        weight : ndarray of shape (n,)
        kept : ndarray of int of shape (n,)
            Their numbers among all rows.
        rng : Generator
            Left as it is.
        numbers : ndarray of shape (n_all,) or None
            Of the rows' test sets.
        groups : ndarray of shape (n_all,) or None
        codes : ndarray of shape (n,) or None
            Classes.
        """
        complete = self._wants_intervals()
        if numbers is not None:
            folds = given_folds(numbers[kept], weight)
        else:
            if len(weight) < 2 and weight.sum() < 2.0:
                raise ValueError(
                    "stopping='cv', intervals=True and Huber's delta='auto' leave rows "
                    f"out, and need at least 2; got n_samples={len(weight)}."
                )
            folds = hash_folds(
                X, targets, weight,
                INTERVAL_FOLDS if complete else (self.cv or 5),
                self._hash_seed(rng, 0),
                codes=codes,
                groups=None if groups is None else groups[kept],
                kernel_matrix=self.kernel == "precomputed",
                all_folds=complete,
            )  # fmt: skip
        for held in folds.held:
            if held.sum() >= weight.sum():
                raise ValueError("cv leaves no row to learn from.")
        return folds

    def _check_relevance(self, X):
        """Refuse a relevance that has no meaning for the kernel or the rows."""
        given = self.relevance
        if self.kernel == "anova":
            self._check_anova(X)
        if given is None or (isinstance(given, str) and given == "auto"):
            return
        name = "relevance='ard'" if isinstance(given, str) else "an array as relevance"
        if callable(self.kernel) or self.kernel not in WITH_SCALES:
            raise ValueError(
                f"{name} is for kernel='rbf' and 'anova'; got kernel={self.kernel!r}."
            )
        if issparse(X):
            raise ValueError(f"{name} is for dense X; got a sparse matrix.")
        if isinstance(given, str):
            if self.kernel == "rbf" and self.gamma != "auto":
                raise ValueError(
                    "relevance='ard' chooses a scale for each feature in place of "
                    f"gamma: leave gamma='auto'; got gamma={self.gamma!r}."
                )
            return
        given = check_array(
            given, ensure_2d=False, dtype=np.float64, input_name="relevance"
        )
        if given.shape != (X.shape[1],):
            raise ValueError(
                "relevance must have a number for each feature, shape "
                f"({X.shape[1]},); got shape {given.shape}."
            )
        if (given < 0.0).any() or not given.any():
            raise ValueError(
                "relevance must not have negative numbers, nor zeros only; got "
                f"{given.tolist()}."
            )

    def _check_anova(self, X):
        if X.shape[1] > MOST_FEATURES:
            raise ValueError(
                f"kernel='anova' is for at most {MOST_FEATURES} features; got "
                f"n_features={X.shape[1]}."
            )
        if self.gamma is None or self.gamma == "scale":
            raise ValueError(
                "kernel='anova' takes gamma='auto' or the number g of its parts; got "
                f"gamma={self.gamma!r}."
            )

    def _scale_of(self, relevance, X, weight):
        """Return how features are scaled for a relevance."""
        relevance = np.asarray(relevance, dtype=np.float64)
        return make_scale(relevance, X, weight, clip=self.clip)

    def _scaled_kernel(self, X, targets, weight, rng):
        """Return the kernel with scales of greatest evidence; None if nothing varies.

        For an array as relevance it is that of "anova" with the array's scales.
        """
        sample = draw_sample(X, targets, weight, self._hash_seed(rng, 1))
        if sample is None:
            return None
        relevance = self.relevance
        if relevance is None or isinstance(relevance, str):
            relevance = find_relevance(sample)
        scale = self._scale_of(relevance, X, weight)
        if self.kernel == "rbf":
            return replace(self._kernel(scale), gamma=1.0)
        widths = WIDTHS if isinstance(self.gamma, str) else (float(self.gamma),)
        return with_anova(
            self._kernel(), sample, scale, inverse_of(sample.deviation), widths
        )

    def _keep(self, X, y, sample_weight):
        """Return rows of positive weight, their targets, weights and numbers."""
        weight = check_sample_weight(sample_weight, X)
        kept = np.flatnonzero(weight)
        self._warn_of_small_weights(weight.sum(), len(kept))
        if len(kept) < len(weight):
            X = self._rows_of(X, kept)
            y, weight = y[kept], weight[kept]
        return X, y, weight, kept

    def _warn_of_small_weights(self, total, n):
        if total < 0.5 * n:
            warn_user(
                f"The weights of {n} rows sum to {total:.3g}. They are taken for "
                "numbers of rows, of which there would be too few to learn from; "
                "multiply weights that are relative importances."
            )

    def _warn_of_repetition(self, times):
        warn_user(
            f"Rows count {times:.3g} times on average, by their weights or as copies, "
            f"which stopping={self._rule()!r} takes for as many other rows: it may "
            "stop too late. stopping='cv' leaves copies out together; weights of mean "
            "one are importances."
        )

    def _warn_of_copies(self, X, targets, weight):
        """Tell where rows count more than once, and the rule takes that for more rows.

        Where features are continuous equal rows are no other observations, and an
        error on rows that are the training rows as well says nothing.
        """
        if self._rule() not in COUNTS_ROWS or self.kernel == "precomputed":
            return
        n, total = len(weight), weight.sum()
        if n > _FEW_TO_COMPARE and total < OFTEN * n:
            return
        distinct = count_originals(X, targets, weight)
        if distinct is not None and total >= OFTEN * distinct:
            self._warn_of_repetition(total / distinct)

    def _rows_of(self, X, rows):
        return X[np.ix_(rows, rows)] if self.kernel == "precomputed" else X[rows]

    def _rng(self):
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed)

    def _kernel(self, scale=None):
        """Return the kernel without a gamma."""
        return Kernel(
            self.kernel, None, self.degree, self.coef0, self.kernel_params, scale
        )

    def _hash_seed(self, rng, purpose):
        """Return a seed for hashes: always the same one without a random_state.

        The generator's own stream is left as it is.
        """
        if self.random_state is None:
            return purpose
        return int(rng.spawn(1)[0].integers(2**63))

    def _choose_kernel(self, X, targets, weight, rng, scale=None):
        """Return the kernel with its gamma, and the path of a search or None.

        Parameters
        ----------
        scale : FeatureScale or None
            Of the features, which gamma is chosen for.
        """
        kernel = self._kernel(scale)
        if kernel.kernel == "anova":
            # Where it is not worth while, or nothing varies.
            kernel = replace(kernel, kernel="rbf")
        gamma, path = self.gamma, None
        if isinstance(gamma, str):
            X = X if scale is None else scale(X)
            if gamma == "scale":
                gamma = scale_gamma(X, weight)
            else:
                gamma = None
                name = kernel.kernel
                if not callable(name) and name in WITH_WIDTH:
                    start = 1.0 / typical_distance(
                        X, weight, rng, squared=name == "rbf"
                    )
                    make = lambda gamma: replace(kernel, gamma=gamma, scale=None)
                    gamma, path = choose_gamma(make, X, targets, weight, rng, start)
        if callable(self.kernel) or self.kernel == "precomputed":
            return kernel, path
        gamma = 1.0 / X.shape[1] if gamma is None else float(gamma)
        return replace(kernel, gamma=gamma), path

    def _rank_limit(self, n):
        """Return the largest number of landmarks for so many rows."""
        if self.max_rank != "auto":
            return self.max_rank
        affordable = int(np.sqrt(_LARGEST_WORK / n))
        return max(_USUAL_RANK, min(n, _LARGEST_RANK, affordable))

    def _tolerated(self, rank):
        """Return the share of degrees of freedom that may be missing at a rank."""
        if self.max_rank == "auto" and rank >= _USUAL_RANK:
            return max(self.rank_tol, _MUCH)
        return self.rank_tol

    def _warn_of_rank(self, n, *, streams=True):
        """Tell that the factor was cut off where the kernel was not exhausted.

        Parameters
        ----------
        streams : bool
            Whether the factor was free to be larger than the memory of a block.
        """
        limit, rank = self._rank_limit(n), len(self.landmark_indices_)
        most = limit if streams else min(limit, _held_rank(n))
        df = float(np.max(self.df_))
        if most <= rank < n and self.missing_df_ > _MUCH * df:
            if most < limit:
                cause = (
                    "scikit-learn's working_memory holds no more columns; raise it, "
                    "or give the rows as a collection of dask"
                )
            else:
                more = "give a larger one" if self.max_rank == "auto" else "raise it"
                cause = f"max_rank={self.max_rank!r} is too small; {more}"
            warn_user(
                f"The factor of rank {rank} may miss up to {self.missing_df_:.0f} "
                f"degrees of freedom, {df:.0f} were found: {cause}.",
                ConvergenceWarning,
            )

    def _columns(self, rows, weight, targets, rng, *, streams=False, limit=None):
        """Return a factor of rank 0 that can grow.

        Parameters
        ----------
        targets : ndarray of shape (n, m)
            Centred.
        streams : bool
            Whether factors that are too large for memory may be streamed.
        limit : int or None
            Largest rank.
        """
        n = len(rows)
        max_rank = min(self._rank_limit(n), limit or n)
        largest = self._check_diagonal(rows)
        most = memory_limit() // n
        if most >= min(max_rank, n) or not streams:
            rank = min(max_rank, _held_rank(n))
            factor = KernelFactor(rows.block, largest, weight, rank, rng)
            return _solvers.Columns(factor, weight)
        return _solvers.StreamedColumns(rows, weight, targets, max_rank, rng)

    def _check_diagonal(self, rows):
        """Return k(x, x) of all rows; refuse what no kernel has."""
        n = len(rows)
        largest = rows.diagonal()
        if not largest.any():
            some = slice(0, 100)
            if rows.block(some, np.arange(min(n, 100))).any():
                raise ValueError(
                    "the kernel is not positive semidefinite: k(x, x) is 0 for all "
                    "rows, and k(x, x') is not."
                )
        if largest.min() < -_solvers.INDEFINITE * np.abs(largest).max():
            raise ValueError(
                "the kernel is not positive semidefinite: k(x, x) is as low as "
                f"{largest.min():.3g}."
            )
        return largest

    def _grow(self, columns, judge, *, least=0):
        """Return a basis of as many landmarks as it takes.

        Parameters
        ----------
        columns : Columns or StreamedColumns
        judge : callable
            ``judge(basis)`` returns ``(found, reach, df, criterion)``: what to keep,
            alpha T, the degrees of freedom and the criterion's value at T, or nan.
        least : int
            Rank that is wanted at least.

        Returns
        -------
        basis : Basis
        found
        is_enough : bool
            Whether it was the certificate that ended the growth.
        """
        rank, before = max(_FIRST_RANK, min(2 * columns.rank, least)), np.inf
        growth = current_task().begin("factor", None)
        while True:
            task = growth.begin(f"rank {rank}")
            columns.grow(rank)
            columns.check_definite()
            basis = _solvers.factor_basis(columns)
            found, reach, df, criterion = judge(basis)
            if self.verbose:
                print(
                    f"[{type(self).__name__}] rank {columns.rank}: criterion "
                    f"{criterion:.6g}, df {df:.4g}"
                )
            # A small rank may not show that there is anything to learn.
            reliable = columns.rank >= max(_RELIABLE_RANK, least)
            tolerated = self._tolerated(columns.rank)
            enough = reach * basis.residual_trace <= tolerated * df
            small = improvement(before, criterion) < self.rank_gain_tol
            task.end()
            if columns.complete or (reliable and (enough or small)):
                growth.end()
                return basis, found, enough or columns.complete
            rank, before = 2 * columns.rank, criterion

    def _store_factor(self, factor, step_size, kernel, X, kept):
        """Set what the fit knows of the kernel matrix.

        Parameters
        ----------
        factor : Basis or solution
        step_size : float
        kernel : Kernel
        X : {ndarray, sparse matrix} of shape (n, d)
        kept : ndarray of int of shape (n,)
            Numbers of its rows among all.
        """
        landmarks = factor.landmarks
        self.landmark_indices_ = kept[landmarks]
        self.X_fit_ = X if kernel.kernel == "precomputed" else X[landmarks]
        self._kernel_ = kernel
        self.step_size_ = step_size
        self.eigenvalues_ = factor.eigenvalues
        self.rank_ = len(factor.eigenvalues)
        self.residual_trace_ = float(factor.residual_trace)

    def _store_kernel(self, kernel, gamma_path):
        """Set what was chosen of the kernel, and tell where the path was stopped."""
        self.gamma_, self.gamma_path_ = kernel.gamma, gamma_path
        self.relevance_ = None if kernel.scale is None else kernel.scale.relevance
        self.anova_weights_ = None if kernel.anova is None else kernel.anova.weights
        if self.verbose:
            print(
                f"[{type(self).__name__}] stopped at T = {self.n_iter_} with "
                f"{self.df_} degrees of freedom"
            )

    def _warn_of_width(self, basis, n_rows):
        trace = basis.eigenvalues.sum() + basis.residual_trace
        # Other kernels may well be of rank one.
        one = self.kernel in ("rbf", "laplacian", "chi2", "sobolev")
        _solvers.warn_of_width(basis.eigenvalues, trace, n_rows, rank_one=one)

    def _check_step(self, smoothness, largest):
        """Refuse a step size at which the iteration would grow."""
        limit = 2.0 / (smoothness * largest) if largest > 0.0 else np.inf
        if self.step_size is not None and self.step_size >= limit:
            raise ValueError(
                f"step_size={self.step_size:g} is too large: the iteration is stable "
                f"below 2 / (M mu_1) = {limit:.6g} for this kernel matrix. "
                "learning_rate sets it in units of half of that."
            )

    def _warn_of_limit(self, times, limit):
        if self.stopping is None or limit >= LONGEST:
            return
        if np.any(np.asarray(times) >= limit):
            warn_user(
                f"The stopping time reached its limit {limit:g} (max_iter="
                f"{self.max_iter}); more steps may fit better.",
                ConvergenceWarning,
            )

    def _warn_of_loss(self, is_unfinished):
        if is_unfinished:
            warn_user(
                "The loss on the rows that were left out still fell at the longest "
                "time: the classes or targets may be a function of X without noise.",
                ConvergenceWarning,
            )

    def _at_landmarks(self, X, coefficients):
        """Return k(X, landmarks) @ coefficients, block by block."""
        check_is_fitted(self)
        X = self._check_rows(X)
        n, landmarks = X.shape[0], self.landmark_indices_
        values = np.zeros((n, *coefficients.shape[1:]))
        if not len(landmarks):
            return values
        size = memory_limit() // (4 * max(len(landmarks), 1))
        for rows in row_blocks(n, size):
            if self._kernel_.kernel == "precomputed":
                K = X[rows][:, landmarks]
            else:
                K = self._kernel_(X[rows], self.X_fit_)
            values[rows] = K @ coefficients
        return values

    def _check_times(self, t):
        """Return the times of staged predictions."""
        check_is_fitted(self)
        last = np.max(self.n_iter_)
        if t is None:
            times = np.unique(self.stopping_path_["t"])
            return np.unique(np.append(times[times < last], last))
        times = np.asarray(t, dtype=np.float64)
        if times.ndim != 1 or not len(times):
            raise ValueError(f"t must be a one-dimensional array of times; got {t!r}.")
        whole = np.isfinite(times) & (times == np.round(times)) & (times >= 0.0)
        if not whole.all() or (np.diff(times) <= 0.0).any():
            raise ValueError(
                f"t must be increasing whole numbers, 0 or more; got {t!r}."
            )
        return times

    def _knowledge(self):
        df = float(np.max(self.df_))
        return f"stopped at T = {self.n_iter_}, with {df:.3g} degrees of freedom"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in POSITIVE
        scaled = not (self.relevance is None or isinstance(self.relevance, str))
        scaled = scaled or self.relevance == "ard"
        tags.input_tags.sparse = self.kernel not in DENSE and not scaled
        return tags


def _in_order(X):
    """Return sparse rows as kernels ask for them, without touching those given.

    With the entries in order and, where they fit, 32-bit indices: scikit-learn's
    Manhattan distances know no others.
    """
    if not issparse(X):
        return X
    if X.indices.dtype != np.int32 and max(*X.shape, X.nnz) < 2**31:
        parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = type(X)(parts, shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
