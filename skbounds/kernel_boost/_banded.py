"""Boosting with the kernel 1 + min(x, x') of one feature, in O(n log n).

The inverse of the kernel matrix of sorted distinct points is tridiagonal: with spacings
d_i it is a chain of conductances 1 / d_i, tied to the ground by 1 / (1 + x_1). A
rational filter of the kernel matrix is a sum of solutions of such chains with complex
conductances.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from skbounds._jit import compile_nogil

_compile = partial(compile_nogil, error_model="numpy", fastmath=False)


@_compile()
def filtered(spacing, ground, weight, source, scale, poles, factors, values, leverage):
    """Add the filtered targets and the diagonal of the filter.

    Solves (c W - z Q) v = source for each pole z by the series rule for conductances,
    which has no differences: spacings may be as small as they like.

    Parameters
    ----------
    spacing : ndarray of shape (N - 1,)
    ground : float
        1 + x_1.
    weight : ndarray of shape (N,)
    source : ndarray of shape (N, m)
        W times the targets.
    scale : float
        c = T alpha / n.
    poles, factors : ndarray of complex of shape (n_poles,)
        z_k, and d_k (doubled for one of a conjugate pair).
    values : ndarray of shape (N, m)
    leverage : ndarray of shape (N,)
    """
    n, m = source.shape
    left = np.empty(n, dtype=np.complex128)
    carried = np.empty((n, m), dtype=np.complex128)
    brought = np.empty(m, dtype=np.complex128)
    for k in range(len(poles)):
        z, d = poles[k], factors[k]
        left[0] = -z / ground
        for j in range(m):
            carried[0, j] = 0.0
        for i in range(1, n):
            edge = -z / spacing[i - 1]
            total = scale * weight[i - 1] + left[i - 1]
            share = edge / (edge + total)
            left[i] = total * share
            for j in range(m):
                carried[i, j] = (source[i - 1, j] + carried[i - 1, j]) * share
        right = 0.0 + 0.0j
        for j in range(m):
            brought[j] = 0.0
        for i in range(n - 1, -1, -1):
            own = scale * weight[i]
            inverse = 1.0 / (own + left[i] + right)
            leverage[i] += (d * inverse).real * own
            for j in range(m):
                total_source = source[i, j] + carried[i, j] + brought[j]
                values[i, j] += (d * total_source * inverse).real * scale
            if i > 0:
                edge = -z / spacing[i - 1]
                total = own + right
                share = edge / (edge + total)
                right = total * share
                for j in range(m):
                    brought[j] = (source[i, j] + brought[j]) * share
