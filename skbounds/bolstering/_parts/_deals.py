"""Which rows each fit is without."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from skbounds.bolstering._parts._matching import groups_of_four

# Deals tried until every part has two classes.
_MOST_DEALS = 20
# What a difference of one in the size of two folds costs, beside one of their classes.
_SIZE_COST = 1e-3
_ORDERS = np.array(list(permutations(range(4))))
# The folds held out together. Halves: all pairs of four, complements in turn.
HALVES = ((0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2))
TWO_THIRDS = tuple((k, (k + 1) % 6) for k in range(6))


@dataclass(frozen=True)
class Scheme:
    """A way to hold out rows.

    Attributes
    ----------
    name : str
        What it is called in `BolsteredEstimate.method`.
    n_folds : int
    held_out : tuple of tuple of int
        Folds that each fit is without.
    learning_ratio : float
        Error on all rows over that on a part, where much has been learnt.
    kind : {'matched', 'random', 'groups'}
        Which rows the folds keep apart or together.
    by_class : bool
        Whether folds are balanced by class.
    """

    name: str
    n_folds: int
    held_out: tuple
    learning_ratio: float
    kind: str
    by_class: bool = True


def _one_by_one(n_folds):
    return tuple((k,) for k in range(n_folds))


SCHEMES = {
    "halves": Scheme("6 matched halves", 4, HALVES, 0.9, "matched"),
    "two-thirds": Scheme("6 two-thirds", 6, TWO_THIRDS, 0.95, "random"),
    "stratified": Scheme("5 stratified folds", 5, _one_by_one(5), 1.0, "random"),
    "matched": Scheme("4 matched folds", 4, _one_by_one(4), 1.0, "matched", False),
    "random": Scheme("5 random folds", 5, _one_by_one(5), 1.0, "random", False),
    "groups, two-thirds": Scheme(
        "6 two-thirds of the groups", 6, TWO_THIRDS, 0.95, "groups"
    ),
    "groups": Scheme("5 folds of groups", 5, _one_by_one(5), 1.0, "groups", False),
}


@dataclass(frozen=True)
class Plan:
    """Rows that each fit is without.

    Attributes
    ----------
    scheme : Scheme
    out : ndarray of bool of shape (n_fits, n_rows)
    """

    scheme: Scheme
    out: np.ndarray

    @property
    def n_fits(self):
        return len(self.out)

    @cached_property
    def key(self):
        """A text that is the same for the same parts only."""
        code = hashlib.blake2b(repr(self.out.shape).encode(), digest_size=16)
        code.update(np.packbits(self.out).tobytes())
        return code.hexdigest()


def make_plan(scheme, rows, *, n_repeats, standardize, seed) -> Plan:
    """Deal the rows to folds.

    Parameters
    ----------
    scheme : str
        A key of `SCHEMES`.
    rows : Rows
    n_repeats : int
        Number of deals.
    standardize : bool
        Whether close rows are found in units of the features' deviations.
    seed : int

    Raises
    ------
    ValueError
        If no deal leaves two classes in every part.
    """
    scheme, n = SCHEMES[scheme], rows.table.n_rows
    rng = np.random.default_rng(seed)
    deal = _dealer(scheme, rows, standardize)
    parts = []
    for _ in range(n_repeats):
        for _ in range(_MOST_DEALS):
            folds = deal(rng)
            out = np.zeros((len(scheme.held_out), n), dtype=bool)
            for part, held_out in zip(out, scheme.held_out, strict=True):
                for fold in held_out:
                    part |= folds == fold
            if _have_two_classes(out, rows.codes):
                break
        else:
            raise ValueError(
                f"None of {_MOST_DEALS} deals leaves two classes in every part that "
                "method='auto' fits: a class has too few rows (three of the second "
                "largest are enough as a rule). Use cross-validation "
                "(cross_val_score), or method='x', which needs one fit."
            )
        # Folds of groups may be empty.
        parts.append(out[out.any(axis=1)])
    return Plan(scheme, np.concatenate(parts))


def _have_two_classes(out, codes):
    if codes is None:
        return True
    n_classes = int(codes.max()) + 1
    if n_classes < 2:
        return False
    present = [np.bincount(codes[~part], minlength=n_classes) > 0 for part in out]
    return bool((np.sum(present, axis=1) >= 2).all())


def _dealer(scheme, rows, standardize):
    """Return a function from a generator of random numbers to a fold per row."""
    n, codes = rows.table.n_rows, rows.codes
    classes = codes if scheme.by_class else None
    if scheme.kind == "groups":
        return lambda rng: deal_groups(rows.groups, classes, scheme.n_folds, rng)
    if scheme.kind == "random":
        return lambda rng: deal_rows(n, classes, scheme.n_folds, rng)
    points = rows.table.points(rows.weight, standardize=standardize)
    if points.shape[1]:
        groups, leftover = groups_of_four(points)
        return lambda rng: deal_matched(groups, leftover, n, classes, rng)

    def deal(rng):
        # Nothing says which rows are close.
        order = rng.permutation(n)
        groups, leftover = order[: n - n % 4].reshape(-1, 4), order[n - n % 4 :]
        return deal_matched(groups, leftover, n, classes, rng)

    return deal


def deal_matched(groups, leftover, n_rows, codes, rng):
    """Deal groups of four to four folds, one row to each.

    Groups come in random order, those left over last; of the 24 ways, tried in random
    order, the first is taken that puts the least rows where their class is already.

    Parameters
    ----------
    groups : ndarray of int of shape (n_groups, 4)
    leftover : ndarray of int
    n_rows : int
    codes : ndarray of int of shape (n_rows,) or None
        Classes; None: only the sizes of folds are balanced.
    rng : Generator

    Returns
    -------
    folds : ndarray of int of shape (n_rows,)
    """
    if codes is None:
        codes = np.zeros(n_rows, dtype=np.intp)
    folds = np.empty(n_rows, dtype=np.intp)
    # The cost of one more row of a class in a fold.
    cost = np.zeros((codes.max() + 1, 4))
    leftover = rng.permutation(leftover)
    chunks = [leftover[i : i + 4] for i in range(0, len(leftover), 4)]
    for group in [*rng.permutation(groups), *chunks]:
        classes, size = codes[group], len(group)
        orders = _ORDERS[rng.permutation(len(_ORDERS)), :size]
        # Rounded: the same rows, added up in another order, cost the same.
        total = np.round(cost[classes[None], orders].sum(axis=1), 6)
        chosen = orders[total.argmin()]
        folds[group] = chosen
        cost[classes, chosen] += 2.0
        cost[:, chosen] += _SIZE_COST
    return folds


def deal_rows(n_rows, codes, n_folds, rng):
    """Deal rows in random order, class by class, to the folds in turn.

    Parameters
    ----------
    n_rows : int
    codes : ndarray of int of shape (n_rows,) or None
    n_folds : int
    rng : Generator

    Returns
    -------
    folds : ndarray of int of shape (n_rows,)
    """
    order = rng.permutation(n_rows)
    if codes is not None:
        place = rng.permutation(codes.max() + 1)
        order = order[np.argsort(place[codes[order]], kind="stable")]
    folds = np.empty(n_rows, dtype=np.intp)
    folds[order] = rng.permutation(n_folds)[np.arange(n_rows) % n_folds]
    return folds


def deal_groups(groups, codes, n_folds, rng):
    """Deal whole groups to folds, balanced by class or by size.

    Raises
    ------
    ValueError
        If there are fewer groups than folds.
    """
    n_groups = len(np.unique(groups))
    if n_groups < n_folds:
        raise ValueError(
            f"groups must have at least {n_folds} different values for method='auto'; "
            f"got {n_groups}. Use cross_val_score with LeaveOneGroupOut."
        )
    kind = GroupKFold if codes is None else StratifiedGroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=int(rng.integers(2**31 - 1)))
    folds = np.empty(len(groups), dtype=np.intp)
    y = np.zeros(len(groups), dtype=np.intp) if codes is None else codes
    with warnings.catch_warnings():
        # A class with fewer rows than folds is absent from some.
        warnings.filterwarnings("ignore", message="The least populated class")
        for fold, (_, test) in enumerate(splitter.split(groups, y, groups)):
            folds[test] = fold
    return rng.permutation(n_folds)[folds]
