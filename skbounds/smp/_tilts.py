"""Which observations come and go at a row: virtual labels and leave-one-out.

Labels are counted 0..L-1; binary problems have L = 2 labels but one raw prediction
(of class 1), so their targets have a last axis of length one. ``solve_virtual`` says
what a tilt is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp


def label_targets(n_classes: int) -> np.ndarray:
    """Return the 0/1 target of each label, shape (L, 1 or K)."""
    return np.array([[0.0], [1.0]]) if n_classes == 2 else np.eye(n_classes)


def virtual_tilts(n_rows: int, virtual_weights, n_classes: int):
    """Return slope (m, W * L) and target (m, W * L, 1 or K) of added observations."""
    targets = label_targets(n_classes)
    w = np.repeat(np.asarray(virtual_weights, dtype=float), len(targets))
    target = w[:, None] * np.tile(targets, (len(w) // len(targets), 1))
    return (
        np.broadcast_to(w, (n_rows, len(w))),
        np.broadcast_to(target, (n_rows, *target.shape)),
    )


def leave_one_out_tilts(codes, removed, added, n_classes: int):
    """Return slope (n, L) and target (n, L, 1 or K) of relabelled training rows.

    Row i loses the amount ``removed[i]`` of its own observation and gains ``added[i]``
    of one with label l, for each l.
    """
    targets = label_targets(n_classes)
    slope = np.repeat((added - removed)[:, None], len(targets), axis=1)
    target = added[:, None, None] * targets
    target = target - (removed[:, None] * targets[codes])[:, None, :]
    return slope, target


def label_scores(raw: np.ndarray) -> np.ndarray:
    """Return log probabilities that fits give to their own virtual labels.

    Parameters
    ----------
    raw : ndarray of shape (..., L, 1 or K)
        Raw predictions of the fit with virtual label l at index l.

    Returns
    -------
    scores : ndarray of shape (..., L)
    """
    if raw.shape[-1] == 1:
        return np.stack([log_expit(-raw[..., 0, 0]), log_expit(raw[..., 1, 0])], -1)
    return np.diagonal(log_softmax(raw, axis=-1), axis1=-2, axis2=-1)


def log_normalize(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log probabilities and log normalisers of scores over the last axis."""
    if scores.shape[-1] == 2:
        log_normalizer = np.logaddexp(scores[..., 0], scores[..., 1])
    else:
        log_normalizer = logsumexp(scores, axis=-1)
    return scores - log_normalizer[..., None], log_normalizer
