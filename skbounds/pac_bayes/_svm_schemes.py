"""Which rows train and which certify: the schemes of `PACBayesSVMEnsemble`.

The functions read the ensemble's parameters, under their own names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skbounds._base import warn_user
from skbounds.pac_bayes._calibration import fit_calibration
from skbounds.pac_bayes._certify import (
    HoldoutEvidence,
    MixtureEvidence,
    catoni_constant,
    weigh_members,
)
from skbounds.pac_bayes._layout import (
    assign_folds,
    assign_group_folds,
    split_groups,
    split_rows,
)
from skbounds.pac_bayes._members import ConstantPath
from skbounds.pac_bayes._posteriors import optimal_posterior
from skbounds.pac_bayes._sample import RowSample, make_sample, warn_of_copies
from skbounds.pac_bayes._stacking import MOST_EXCESS_ERRORS, informed_prior
from skbounds.pac_bayes._svm_training import SVMOptions, SVMTrainer


@dataclass
class FittedPaths:
    """Members, and what was found out about them.

    Attributes
    ----------
    evidence : HoldoutEvidence or MixtureEvidence
    paths : list of SVMPath or ConstantPath
    present : list of ndarray of int
        Codes of the classes that each path knows.
    Cs, cv_errors, n_iter, capped : ndarrays of shape (n_members,)
    catoni_c : float, ndarray or None
    train, cert : ndarrays of int
        Rows given to ``fit`` that train, and that certify.
    unseen_limit : float
        How often, at most, a row has a class that the first path does not know.
    calibration : Platt or None
    n_voting : int
        Number of rows behind the members.
    """

    evidence: HoldoutEvidence | MixtureEvidence
    paths: list
    present: list
    Cs: np.ndarray
    cv_errors: np.ndarray
    n_iter: np.ndarray
    capped: np.ndarray
    catoni_c: object
    train: np.ndarray
    cert: np.ndarray
    unseen_limit: float
    calibration: object = field(default=None)
    n_voting: int = 0


def make_trainer(ensemble, X, codes, rows, present, n_first=None):
    """Return the trainer on some rows, all of classes that are present.

    Parameters
    ----------
    X : {ndarray, sparse matrix}
        All rows, or their kernel matrix.
    codes : ndarray of int
        Classes of all rows.
    rows : ndarray of int
    present : ndarray of int
        Codes of the classes that these rows have, sorted.
    n_first : int or None
        Number of rows that decide on the order of classes and rows.
    """
    limit = np.inf
    if ensemble.max_iter_per_C is not None:
        limit = float(ensemble.max_iter_per_C)
    weight = ensemble.class_weight
    if isinstance(weight, dict):
        # Of the others there is nothing to weigh.
        others = set(np.delete(ensemble.classes_, present).tolist())
        weight = {label: w for label, w in weight.items() if label not in others}
    options = SVMOptions(
        kernel=ensemble.kernel,
        gamma=ensemble.gamma,
        degree=ensemble.degree,
        coef0=ensemble.coef0,
        standardize=ensemble.standardize,
        class_weight=weight,
        tol=ensemble.tol,
        max_iter=limit,
        cache_size=ensemble.cache_size,
        n_jobs=ensemble.n_jobs,
        verbose=ensemble.verbose,
    )
    part = X[np.ix_(rows, rows)] if ensemble.kernel == "precomputed" else X[rows]
    local = np.searchsorted(present, codes[rows])
    return SVMTrainer(
        part, local, rows, ensemble.classes_[present], options, X.shape[1], n_first
    )


def fit_holdout(ensemble, X, codes, groups, X_cert, cert_codes, Cs, prior, level, rng):
    """Train on one part, certify on the other."""
    cert_groups = train_groups = None
    if X_cert is None:
        if groups is None:
            train, cert = split_rows(X.shape[0], ensemble.cert_size, rng)
            if ensemble.kernel != "precomputed":
                warn_of_copies(X, codes, train, cert)
        else:
            train, cert = split_groups(groups, ensemble.cert_size, rng)
            train_groups, cert_groups = groups[train], groups[cert]
        X_cert, cert_codes = X[cert], codes[cert]
    else:
        train, cert = np.arange(X.shape[0]), np.arange(0)
    present = np.unique(codes[train])
    learned = prior is None and ensemble.prior == "cv"
    if len(present) == 1:
        members, errors, calibration = _constant(Cs[:1]), np.full(1, np.nan), None
        path = ConstantPath(1, X.shape[1])
        Cs, prior = Cs[:1], np.ones(1)
    else:
        trainer = make_trainer(ensemble, X, codes, train, present)
        # The constant of Catoni's bound is fixed by the inner folds as well.
        wanted = learned or ensemble.distance == "catoni"
        n_folds = _arrange_folds(
            ensemble, trainer, len(train), wanted, learned, rng, groups=train_groups
        )
        errors, held_out = np.full(len(Cs), np.nan), None
        if n_folds:
            # A given prior may have its mass where the path would not come.
            early_end = ensemble.early_end and learned
            errors, *held_out = trainer.cross_validate(Cs, early_end)
        if learned and n_folds:
            prior = informed_prior(errors, ensemble.prior_eta, MOST_EXCESS_ERRORS)
        elif prior is None:
            prior = np.full(len(Cs), 1.0 / len(Cs))
        # Members of a given or uniform prior are all kept.
        kept = prior > 0.0 if learned and n_folds else np.ones(len(Cs), dtype=bool)
        calibration = _calibrate(held_out, prior)
        Cs, errors, prior = Cs[kept], errors[kept], prior[kept]
        members = trainer.fit_members(Cs, range(max(n_folds, 1)))
        path = trainer.make_path(members["dual"], members["intercepts"])
    sample, catoni_c = make_sample(len(cert_codes), cert_groups), None
    if ensemble.distance == "catoni" and not np.isnan(errors).any():
        guess = (prior @ errors + 0.5) / (len(train) + 1.0)
        catoni_c = catoni_constant(guess, sample.size, sample.size, level)
    tail_u = None
    if ensemble.tail == "randomized":
        tail_u = float(rng.uniform())
    evidence = weigh_members(
        present[path.codes(X_cert)],
        cert_codes,
        prior,
        kind=ensemble.posterior,
        level=level,
        divergence=ensemble.divergence,
        distance=ensemble.distance,
        constants=ensemble.constants,
        catoni_c=catoni_c,
        simultaneous=ensemble.simultaneous,
        n_classes=len(ensemble.classes_),
        tail_u=tail_u,
        sample=sample,
    )
    return FittedPaths(
        evidence, [path], [present], Cs, errors, members["n_iter"], members["capped"],
        evidence.rule_options["catoni_c"], train, cert,
        sample.limit(~np.isin(cert_codes, present), level), calibration,
        len(train),
    )  # fmt: skip


def _constant(Cs):
    return {
        "n_iter": np.ones(len(Cs), dtype=np.intp),
        "capped": np.zeros(len(Cs), dtype=bool),
    }


def _arrange_folds(
    ensemble, trainer, n_known, wanted, learned, rng, after=None, groups=None
):
    """Arrange the rows by inner folds; return their number, 0 where there are none.

    Parameters
    ----------
    n_known : int
        Number of rows, from the first, that are dealt to folds.
    after : ndarray of int or None
        Numbers of later parts of the other rows, from 0.
    groups : ndarray of int of shape (n_known,) or None
        Rows that stay together.
    """
    n_units = n_known if groups is None else len(np.unique(groups))
    n_folds = min(ensemble.inner_cv, n_units) if wanted else 0
    parts = np.zeros(len(trainer.codes), dtype=np.intp)
    if n_folds >= 2:
        if groups is None:
            parts[:n_known] = assign_folds(
                trainer.codes[:n_known],
                trainer.keys[:n_known],
                trainer.class_order,
                n_folds,
                rng,
            )
        else:
            parts[:n_known] = assign_group_folds(groups, n_folds, rng)
        if not _has_one_class_parts(trainer.codes[:n_known], parts[:n_known], n_folds):
            if after is not None:
                parts[n_known:] = n_folds + after
            trainer.arrange(parts, n_folds)
            return n_folds
    if wanted and learned:
        warn_user(
            "The prior is uniform: without some inner fold, only one class is left to "
            "train on."
        )
    parts[:] = 0
    if after is not None:
        parts[n_known:] = 1 + after
    trainer.arrange(parts, 1)
    return 0


def _has_one_class_parts(codes, folds, n_folds):
    """Tell whether the rows without some fold are all of one class."""
    return any(len(np.unique(codes[folds != k])) < 2 for k in range(n_folds))


def _calibrate(held_out, prior):
    """Return the calibration of the average decision of rows held out, or None."""
    if held_out is None:
        return None
    scores, truth = held_out
    voters = np.flatnonzero(prior)
    if not all(i in scores for i in voters.tolist()):
        return None
    average = sum(prior[i] * scores[i] for i in voters.tolist())
    return fit_calibration(average, truth)


def fit_per_member(ensemble, X, codes, Cs, prior, level, rng):
    """Train each member on a part of its own; the other rows certify it (Section 7).

    No part may decide on the prior, and no rows are fresh for the vote.
    """
    n = X.shape[0]
    n_cert = max(1, round(ensemble.cert_size * n))
    paths, presents, wrong, members = [], [], [], []
    trains, certifies = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for C in Cs:
        train, cert = split_rows(n, ensemble.cert_size, rng)
        present = np.unique(codes[train])
        if len(present) == 1:
            found = _constant(Cs[:1])
            path = ConstantPath(1, X.shape[1])
        else:
            trainer = make_trainer(ensemble, X, codes, train, present)
            trainer.arrange(np.zeros(len(train), dtype=np.intp), 1)
            found = trainer.fit_members(np.array([C]), [0])
            path = trainer.make_path(found["dual"], found["intercepts"])
        wrong.append(present[path.codes(X[cert])[:, 0]] != codes[cert])
        if not paths:
            unseen = RowSample(n_cert).limit(~np.isin(codes[cert], present), level)
        paths.append(path)
        presents.append(present)
        members.append(found)
        trains[train], certifies[cert] = True, True
    prior = np.full(len(Cs), 1.0 / len(Cs)) if prior is None else prior
    risks = np.mean(wrong, axis=1)
    evidence = SeparateEvidence(
        risks, n_cert, prior, level, kind=ensemble.posterior,
        divergence=ensemble.divergence, distance=ensemble.distance,
        constants=ensemble.constants,
    )  # fmt: skip
    return FittedPaths(
        evidence, paths, presents, Cs, np.full(len(Cs), np.nan),
        np.concatenate([found["n_iter"] for found in members]),
        np.concatenate([found["capped"] for found in members]),
        None, np.flatnonzero(trains), np.flatnonzero(certifies), unseen, None,
        n - n_cert,
    )  # fmt: skip


class SeparateEvidence(HoldoutEvidence):
    """What the members' own certification parts say about them.

    Each member's risk is measured on rows of its own; those of two members are about
    different rows, so that nothing is known of joint mistakes.
    """

    def __init__(
        self, risks, n_rows, prior, level, *, kind, divergence, distance, constants
    ):
        options = {
            "divergence": divergence,
            "distance": distance,
            "constants": constants,
            "catoni_c": None,
        }
        self.sample, self.n_units = RowSample(n_rows), n_rows
        self.risks, self.prior = risks, prior
        self.posterior, _ = optimal_posterior(
            risks, n_rows, delta=level, prior=prior, **options
        )
        self.kind, self.simultaneous, self.n_tried = "bound", False, 1
        self.gibbs_risk = float(min(self.posterior @ risks, 1.0))
        self.vote_weights = prior if kind == "prior" else self.posterior
        self.rule_options = options

    def terms(self, delta: float) -> dict:
        """Return every bound by name, each at the level delta on its own."""
        options = self.rule_options
        gibbs_name = f"gibbs_{options['divergence']}_{options['distance']}"
        return {
            gibbs_name: self.risk_bound(delta),
            "vote_twice_gibbs": self.vote_bound_by_gibbs(delta),
            "occam": float(np.min(self.member_bounds(delta))),
        }


def fit_progressive(ensemble, X, codes, Cs, level, rng):
    """Train on growing parts of random orders; the next block certifies each."""
    n = X.shape[0]
    n_start = round(ensemble.n_start * n)
    m = n - n_start
    if n_start < 2 or m < ensemble.n_blocks:
        raise ValueError(
            f"n_samples={n} is too small for n_start={ensemble.n_start!r} and "
            f"n_blocks={ensemble.n_blocks!r}: {n_start} rows to start with and {m} to "
            "certify."
        )
    sizes = np.full(ensemble.n_blocks, m // ensemble.n_blocks)
    sizes[: m % ensemble.n_blocks] += 1
    order, blocks, paths, presents = None, [], [], []
    trains, certifies = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for j in range(ensemble.n_orders):
        # Every other order is the one before reversed: with n_start = 1/2, each row
        # then certifies in one of the two.
        order = rng.permutation(n) if j % 2 == 0 else order[::-1]
        present = np.unique(codes[order[:n_start]])
        if j == 0:
            strange = ~np.isin(codes[order[n_start:]], present)
            unseen = RowSample(m).limit(strange, level)
        found, path = _fit_order(
            ensemble, X, codes, order, sizes, present, Cs, level, rng, is_first=j == 0
        )
        blocks += found
        paths.append(path)
        presents.append(present)
        trains[order[: n - sizes[-1]]] = True
        certifies[order[n_start:]] = True
    evidence = MixtureEvidence(blocks, ensemble.n_orders, ensemble.posterior == "bound")
    columns = (
        np.concatenate([block[name] for block in blocks])
        for name in ("Cs", "cv_errors", "n_iter", "capped")
    )
    return FittedPaths(
        evidence, paths, presents, *columns, evidence.catoni_c,
        np.flatnonzero(trains), np.flatnonzero(certifies), unseen, None, n_start,
    )  # fmt: skip


def _fit_order(ensemble, X, codes, order, sizes, present, Cs, level, rng, is_first):
    """Run through one order; return what its blocks say, and all its members.

    Rows of classes that the first part does not have train nobody, and are mistakes.
    """
    m = int(sizes.sum())
    n_start = len(order) - m
    block_of = np.repeat(np.arange(len(sizes)), sizes)
    known = np.isin(codes[order], present)
    strange = np.bincount(block_of[~known[n_start:]], minlength=len(sizes))
    if len(present) == 1:
        return _constant_order(sizes, strange, Cs, m, level, X.shape[1])
    rows, after = order[known], block_of[known[n_start:]]
    trainer = make_trainer(ensemble, X, codes, rows, present, n_start)
    learned = ensemble.prior == "cv"
    n_folds = _arrange_folds(
        ensemble, trainer, n_start, True, learned and is_first, rng, after
    )
    n_known = max(n_folds, 1)
    errors = np.zeros(len(Cs))
    learned = learned and n_folds > 0
    if n_folds:
        errors, *_ = trainer.cross_validate(Cs, ensemble.early_end and learned)
    kept, counted = np.arange(len(Cs)), n_start if n_folds else 0
    inner_errors, blocks, duals, intercepts = errors, [], [], []
    for b, size in enumerate(sizes.tolist()):
        if learned:
            prior = informed_prior(errors, ensemble.prior_eta, MOST_EXCESS_ERRORS)
        else:
            prior = informed_prior(errors, 0.0)
        # What a member did not reach in the inner folds it never gets mass for.
        kept, errors, prior = kept[prior > 0.0], errors[prior > 0.0], prior[prior > 0.0]
        guess = (prior @ errors + 0.5) / (counted + 1.0)
        catoni_c = catoni_constant(guess, size, m, level)
        members = trainer.fit_members(Cs[kept], range(n_known + b), target=n_known + b)
        mistakes = members["wrong"].sum(axis=0) + strange[b]
        blocks.append(
            _certify_block(mistakes / size, prior, size, catoni_c, level)
            | {
                "Cs": Cs[kept],
                "cv_errors": inner_errors[kept],
                "n_iter": members["n_iter"],
                "capped": members["capped"],
            }
        )
        duals.append(members["dual"])
        intercepts.append(members["intercepts"])
        errors = errors + mistakes
        counted += size
    path = trainer.make_path(np.concatenate(duals), np.concatenate(intercepts))
    return blocks, path


def _constant_order(sizes, strange, Cs, m, level, n_features):
    """Return what blocks say of an order whose first part has one class."""
    blocks = []
    for size, mistakes in zip(sizes.tolist(), strange.tolist(), strict=True):
        catoni_c = catoni_constant(0.5 / (m + 1.0), size, m, level)
        risks = np.array([mistakes / size])
        block = _certify_block(risks, np.ones(1), size, catoni_c, level)
        blocks.append(
            block | _constant(Cs[:1]) | {"Cs": Cs[:1], "cv_errors": np.full(1, np.nan)}
        )
    return blocks, ConstantPath(len(sizes), n_features)


def _certify_block(risks, prior, size, catoni_c, level):
    posterior, _ = optimal_posterior(
        risks, size, delta=level, divergence="kl", distance="catoni", prior=prior,
        catoni_c=catoni_c,
    )  # fmt: skip
    return {
        "risks": risks,
        "prior": prior,
        "posterior": posterior,
        "n_rows": size,
        "catoni_c": catoni_c,
    }
