"""Classifiers of the user's as members of an ensemble: names, seeds, fits."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from skbounds._seeds import seeded
from skbounds._sklearn_compat import num_samples, safe_indexing
from skbounds._validation import check_array
from skbounds.pac_bayes._decisions import member_codes, member_decisions
from skbounds.pac_bayes._layout import content_keys
from skbounds.pac_bayes._sample import warn_of_copies


class NamedMembers:
    """Mixin: members may be given with names, and their parameters set by them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; those of members given with a name as well.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return the members and their parameters.

        Returns
        -------
        params : dict
            Parameter names and values.
        """
        params = super().get_params(deep=False)  # type: ignore[misc]
        if deep:
            for name, member in self._named_members():
                params[name] = member
                for key, value in member.get_params(deep=True).items():
                    params[f"{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; also members, and their parameters, by name.

        Parameters
        ----------
        **params : dict
            Parameter names and values.

        Returns
        -------
        self : object
            The estimator itself.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        names = {name for name, _ in self._named_members()}
        replaced = {name: params.pop(name) for name in names & params.keys()}
        if replaced:
            self.estimators = [
                (name, replaced.get(name, member))
                for name, member in self._named_members()
            ]
        return super().set_params(**params)  # type: ignore[misc]

    def _named_members(self):
        """Return the (name, member) pairs; none if members have no names."""
        members = self.estimators
        if not isinstance(members, (list, tuple)):
            return []
        pairs = [item for item in members if isinstance(item, tuple)]
        return pairs if len(pairs) == len(members) else []


def row_keys(X, codes, train, cert) -> np.ndarray:
    """Return content keys of rows of numbers; for other rows their positions.

    Warns if certification rows are copies of training rows.
    """
    try:
        rows = check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False
        )
    except (TypeError, ValueError):
        return np.arange(num_samples(X), dtype=np.float64)
    warn_of_copies(rows, codes, train, cert)
    if not hasattr(rows, "tocsr"):
        rows = np.nan_to_num(rows)
    return content_keys(rows, False)


def with_seeds(members, seed):
    """Return clones of the members in which no random state is None.

    Copies of one member get seeds of their own; the order of the list plays no part.
    """
    result, copies = [], Counter()
    for member in members:
        if isinstance(member, FrozenEstimator):
            result.append(member)
            continue
        number = copies[repr(member)]
        copies[repr(member)] += 1
        result.append(seeded(member, (seed + 7919 * number) % np.iinfo(np.int32).max))
    return result


def is_frozen(member):
    return isinstance(member, FrozenEstimator)


def fit_and_hold_out(member, X, labels, seen, held, classes, trained):
    """Return codes and decisions of held rows by a member trained on others.

    None if it fails.
    """
    try:
        member = clone(member).fit(safe_indexing(X, seen), safe_indexing(labels, seen))
        X = safe_indexing(X, held)
        return member_codes(member, X, classes), member_decisions(member, X, trained)
    except Exception:
        # Reported when the member is trained on all rows and fails there, too.
        return None


def fit_one(member, X, labels):
    """Return the fitted member and None, or None and the error."""
    if isinstance(member, FrozenEstimator):
        return member, None
    try:
        return clone(member).fit(X, labels), None
    except Exception as error:
        return None, error
