"""Many more features than rows: penalties judged by held-out folds.

Leverages of wide rows cost the cube of the number of rows for every penalty. Folds cost
a few passes over the rows each, by L-BFGS from the fit with the penalty before.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from skbounds.smp._base_fit import (
    contrasts,
    log_loss_per_sample,
    raw_predictions,
    raw_to_proba,
)
from skbounds.smp._tilts import label_targets

N_FOLDS = 5
# Up to this many rows leave-one-out takes less than a second, and knows more: with 60
# dense rows of 3000 features its log loss was .70 where that of folds was .76.
_FEW = 500
# Rows that the spectrum of wide data is estimated from, at most.
_SPECTRUM_ROWS = 3000
# Largest entry of the gradient, of the sum of the losses: where folds judge, and at the
# end. Smaller ones changed no log loss of a candidate that counts by more than 1e-4
# (of those with far too little penalty, by .01).
_JUDGING_TOL, _FINAL_TOL = 1e-1, 1e-2
_MAX_STEPS = 100


def is_wide(X) -> bool:
    """Tell whether leave-one-out is too dear."""
    n_samples, n_features = X.shape
    return n_features > max(n_samples, 2000) and n_samples > _FEW


def spectral_scale(X, weight, *, centred: bool) -> float:
    """Return the root of ``tr(S^2) / tr(S)`` of the covariance S; 1 if nothing varies.

    The mean of its eigenvalues, each weighted by itself: the directions of wide data
    that carry something are few. From the Gram matrix of some rows.
    """
    rows = np.arange(X.shape[0])
    if len(rows) > _SPECTRUM_ROWS:
        rows = np.random.default_rng(0).permutation(rows)[:_SPECTRUM_ROWS]
    part, share = X[rows], weight[rows] / weight[rows].sum()
    largest = np.sqrt(row_norms(part, squared=True).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    part = part / largest
    before = centred and not sparse.issparse(part)
    if before:
        part = part - share @ part
    gram = safe_sparse_dot(part, part.T, dense_output=True)
    if sparse.issparse(gram):
        gram = gram.toarray()
    if centred and not before:
        mean = gram @ share
        gram = gram - mean[:, None] - mean + share @ mean
    trace = share @ gram.diagonal()
    squares = share @ gram**2 @ share
    # What rounding leaves of rows that are all the same.
    rounding = 8.0 * np.finfo(float).eps
    if not trace > (rounding**2 if before or not centred else rounding):
        return 1.0
    return float(largest * np.sqrt(squares / trace))


def assign_folds(codes, n_folds=N_FOLDS):
    """Return the fold of each row: of every class about as many in each."""
    rng = np.random.default_rng(0)
    fold = np.empty(len(codes), dtype=int)
    begin = 0
    for code in np.unique(codes):
        rows = rng.permutation(np.flatnonzero(codes == code))
        fold[rows] = (begin + np.arange(len(rows))) % n_folds
        begin += len(rows)
    return fold


def fit_quickly(
    Z, codes, weight, penalty, n_classes, theta, tol=_FINAL_TOL, max_iter=_MAX_STEPS
):
    """Return coefficients that nearly minimise the penalised log loss, by L-BFGS.

    Also the steps taken, and whether they were enough. The last column is a constant;
    where it has no penalty, sparse columns are centred without writing it out.
    """
    onehot = label_targets(n_classes)[codes].T
    Q = contrasts(n_classes)
    shape = theta.shape
    transposed = Z.T.tocsr() if sparse.issparse(Z) else Z.T
    centre = np.zeros(Z.shape[1])
    if sparse.issparse(Z) and penalty[-1] == 0.0:
        centre[:-1] = (np.asarray(Z.T @ weight).ravel() / weight.sum())[:-1]

    def uncentred(theta):
        moved = theta.copy()
        moved[:, -1] -= theta @ centre
        return moved

    def objective(flat):
        theta = flat.reshape(shape)
        raw = raw_predictions(uncentred(theta), Z, n_classes)
        value = weight @ log_loss_per_sample(raw, onehot)
        residual = Q.T @ ((raw_to_proba(raw) - onehot) * weight)
        gradient = np.asarray(transposed @ residual.T).T
        gradient -= np.outer(gradient[:, -1], centre)
        gradient += penalty * theta
        return value + 0.5 * np.sum(penalty * theta**2), gradient.ravel()

    start = theta.copy()
    start[:, -1] += theta @ centre
    options = {"gtol": tol, "maxiter": max_iter}
    found = minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B", options=options
    )
    return uncentred(found.x.reshape(shape)), int(found.nit), bool(found.status != 1)


def held_out_log_proba(Z, codes, weight, penalized, n_classes, Cs):
    """Return log probabilities of rows by fits without their folds, (n_cs, n, K)."""
    k = contrasts(n_classes).shape[1]
    result = np.empty((len(Cs), len(codes), n_classes))
    fold = assign_folds(codes)
    for held in range(N_FOLDS):
        out = fold == held
        if not out.any() or out.all():
            continue
        theta = np.zeros((k, Z.shape[1]))
        part = Z[~out], codes[~out], weight[~out]
        for index in np.argsort(Cs, kind="stable"):
            penalty = penalized / Cs[index]
            theta = fit_quickly(*part, penalty, n_classes, theta, _JUDGING_TOL)[0]
            raw = raw_predictions(theta, Z[out], n_classes)
            labels = label_targets(n_classes)
            for code in range(n_classes):
                target = np.repeat(labels[code][:, None], raw.shape[1], axis=1)
                result[index, out, code] = -log_loss_per_sample(raw, target)
    return result
