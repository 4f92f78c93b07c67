"""What the theory says of resubstitution and of kernels, in numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp


def log_pseudo_likelihood(points: ArrayLike, kernels: ArrayLike) -> float:
    """Return the log pseudo-likelihood of rows under the kernels of the others.

    The sum over rows j of the log of the mean over i of N(z_j; z_i, S_i), without the
    row's own kernel: equation (22) of [1]_, which Algorithm 1 (kernel "mpe") does not
    maximise. It is unbounded in two or more dimensions.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    points : array-like of shape (n_samples, d)
        Rows.
    kernels : array-like of shape (n_samples, d, d) or (d, d)
        Their regular covariance matrices, as in `BolsteredScorer.kernel_`.

    Returns
    -------
    value : float
        The log pseudo-likelihood.

    See Also
    --------
    BolsteredScorer : Chooses kernels.

    References
    ----------
    .. [1] D. Marcondes and U. Braga-Neto, "Generalized resubstitution for regression
       error estimation", section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.bolstering import log_pseudo_likelihood
    >>> X = np.array([[0.0], [1.0]])
    >>> round(log_pseudo_likelihood(X, np.ones((2, 1, 1))), 4)
    -4.2242
    """
    points = np.asarray(points, dtype=np.float64)
    if points.ndim == 1:
        points = points[:, None]
    n, d = points.shape
    kernels = np.asarray(kernels, dtype=np.float64)
    if kernels.shape not in ((d, d), (n, d, d)):
        raise ValueError(
            f"kernels must be of shape ({d}, {d}) or ({n}, {d}, {d}); got "
            f"{kernels.shape}."
        )
    roots = np.linalg.cholesky(np.broadcast_to(kernels, (n, d, d)))
    offsets = points[None] - points[:, None]
    scaled = np.linalg.solve(roots, offsets.transpose(0, 2, 1))
    logdet = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    terms = -0.5 * (scaled**2).sum(axis=1) - logdet[:, None]
    terms -= 0.5 * d * np.log(2.0 * np.pi)
    np.fill_diagonal(terms, -np.inf)
    return float((logsumexp(terms, axis=0) - np.log(n)).sum())


def increment_bound(kernels: ArrayLike, curvature: float) -> float:
    """Bound how far smoothing moves a mean loss from resubstitution.

    A loss whose second derivatives in the features have a matrix with eigenvalues of at
    most `curvature` in absolute value everywhere changes on average by at most half of
    `curvature` times the mean trace of the kernels, as their means are the rows
    (the argument of Proposition 12 in [1]_). It vanishes with the kernels: that is why
    smoothed estimates are consistent where resubstitution is. For 0-1 loss and for
    trees there are no such derivatives, and for squared loss the curvature grows with
    the residual: as a number the bound is far above what is observed.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    kernels : array-like of shape (n_samples, d, d) or (d, d)
        Covariance matrices, as in `BolsteredScorer.kernel_`.
    curvature : float
        Bound on the loss' second derivatives in any direction.

    Returns
    -------
    bound : float
        Of the absolute difference of smoothed and plain mean loss.

    See Also
    --------
    vc_bound : How far resubstitution is from the error.

    References
    ----------
    .. [1] D. Marcondes and U. Braga-Neto, "Generalized resubstitution for regression
       error estimation", section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skbounds.bolstering import increment_bound
    >>> increment_bound(0.1 * np.eye(2), curvature=2.0)
    0.2
    """
    kernels = np.asarray(kernels, dtype=np.float64)
    if kernels.ndim not in (2, 3) or kernels.shape[-1] != kernels.shape[-2]:
        raise ValueError(
            f"kernels must be square in their last axes; got shape {kernels.shape}."
        )
    if not curvature >= 0.0:
        raise ValueError(f"curvature must not be negative; got {curvature!r}.")
    trace = np.trace(kernels, axis1=-2, axis2=-1)
    return float(0.5 * curvature * np.mean(trace))


def vc_bound(n_samples: int, vc_dimension: int, *, delta: float = 0.05) -> float:
    """Bound how far resubstitution is from the error, for all predictors of a class.

    The inequality of Vapnik and Chervonenkis for a loss with values 0 and 1: with
    probability ``1 - delta`` no classifier of the class has an error that differs from
    its resubstitution error by more than this. For a loss bounded by B multiply by B
    and take the pseudo-dimension. It is what makes resubstitution consistent, and
    vacuous at the sizes where an error estimate is needed: above 1 for a line in the
    plane (dimension 3) below some 800 rows.

    Read more in the :ref:`User Guide <bolstering>`.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_samples : int
        Number of rows.
    vc_dimension : int
        Dimension of the class of predictors.
    delta : float, default=0.05
        Probability, in (0, 1), that the bound may fail.

    Returns
    -------
    bound : float
        May exceed 1.

    See Also
    --------
    BolsteredScorer : Estimates that are of use.

    References
    ----------
    .. [1] L. Devroye, L. Gyorfi and G. Lugosi (1996). "A probabilistic theory of
       pattern recognition", Theorems 12.5 and 13.3.

    Examples
    --------
    >>> from skbounds.bolstering import vc_bound
    >>> print(f"{vc_bound(100, 3):.2f} {vc_bound(100_000, 3):.2f}")
    2.44 0.11
    """
    n, dimension = int(n_samples), int(vc_dimension)
    if n < 1 or dimension < 1:
        raise ValueError(
            "n_samples and vc_dimension must be positive; got "
            f"{n_samples!r} and {vc_dimension!r}."
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie in (0, 1); got {delta!r}.")
    # Sauer's lemma, in the form that holds for every n.
    log_shatter = dimension * np.log1p(n)
    if n >= dimension:
        log_shatter = min(log_shatter, dimension * np.log(np.e * n / dimension))
    log_shatter = min(log_shatter, n * np.log(2.0))
    return float(np.sqrt(32.0 / n * (np.log(8.0 / delta) + log_shatter)))
