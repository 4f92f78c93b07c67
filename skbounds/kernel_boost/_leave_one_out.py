"""Leave-one-out residuals along the boosting path of the squared loss, exactly.

The prediction without row i changes along its own path, so that r_i / (1 - S_ii) is not
exact. With A = I - alpha K, r_i(t) = (A^t y)_i and h_i(t) = (A^t)_ii the residual is

    e_i(t) = sum_{s <= t} u_i(s),    sum_{s <= t} h_i(t - s) u_i(s) = r_i(t).
"""

from __future__ import annotations

import numpy as np

from skbounds.kernel_boost._filters import boosting_filter, residual_filter

# Times up to here are exact, later ones are r_i / h_i.
LONGEST_EXACT = 1000


def leave_one_out_criterion(
    basis, targets, step_size, times, *, with_offset, average=False
):
    """Return the mean squared leave-one-out residuals at some times.

    Parameters
    ----------
    basis : Basis
        Of all eigenvectors, with equal weights.
    targets : ndarray of shape (n, m)
        As given, without an offset subtracted.
    step_size : float
    times : ndarray of shape (n_times,)
    with_offset : bool
        Whether the offset is the mean, left out too.
    average : bool
        Whether the residuals are those of the averaged iterates.

    Returns
    -------
    criterion : ndarray of shape (n_times, m)
    """
    n, m = targets.shape
    U = basis.coordinates() / np.sqrt(n * basis.eigenvalues)
    sides = np.column_stack([targets, np.ones(n)]) if with_offset else targets
    inside = U.T @ sides
    outside = sides - U @ inside
    rest = np.maximum(1.0 - (U**2).sum(axis=1), 0.0)
    last = int(min(times[-1], LONGEST_EXACT))
    left = residual_filter(basis.eigenvalues, step_size, np.arange(last + 1))
    h = left @ (U**2).T + rest
    found = np.empty((last + 1, n, sides.shape[1]))
    for j in range(sides.shape[1]):
        r = (left * inside[:, j]) @ U.T + outside[:, j]
        u = np.empty_like(r)
        for t in range(last + 1):
            u[t] = r[t] - (h[t:0:-1] * u[:t]).sum(axis=0)
        found[:, :, j] = np.cumsum(u, axis=0)
    if average:
        # Residuals are linear in the iterates, of which the first is 1.
        steps = np.maximum(np.arange(last + 1.0), 1.0)[:, None, None]
        found[1:] = np.cumsum(found[1:], axis=0)
        found /= steps
    mean = sides[:, :m].mean(axis=0)
    without = (n * mean - targets) / (n - 1) if with_offset else None
    criterion = np.empty((len(times), m))
    for k, time in enumerate(times):
        if time <= last:
            e = found[int(time)][:, :m]
            if with_offset:
                e = e - without * found[int(time)][:, m:]
        else:
            part = (
                1.0
                - boosting_filter(
                    basis.eigenvalues, step_size, [time], average=average
                )[0]
            )
            centred = inside[:, :m] - inside[:, m:] * mean if with_offset else inside
            beyond = outside[:, :m] - outside[:, m:] * mean if with_offset else outside
            e = (U @ (part[:, None] * centred) + beyond) / ((U**2) @ part + rest)[
                :, None
            ]
        criterion[k] = (e**2).mean(axis=0)
    return criterion
