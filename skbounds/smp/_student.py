"""Mixtures of Student laws: what a pool of Gaussian models predicts.

Components along the last axis; ``location`` and ``scale`` have one line per law,
``freedom`` and ``weight`` are the same for all laws.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, logsumexp, roots_legendre, stdtr, stdtrit

# Spacing and reach of the double exponential rule: nodes as far as 1e250 scales.
_STEP, _REACH = 0.04, 6.6
# Distances from components, in their scales, at which integrals are taken apart.
_MARKS = np.array([0.0, 0.5, 1.5, 4.0, 12.0, 40.0, 150.0, 600.0, 3e3, 2e4, 2e5, 2e6])
# Laws whose components are within so many of their smallest widths are alike.
_ALIKE = 4.0
# Degrees of freedom with which a mean is infinite for all purposes.
_NO_MEAN = 1.01


def log_density(z, freedom):
    """Return the log density of Student laws at standardised distances."""
    constant = -0.5 * np.log(freedom) - betaln(0.5, 0.5 * freedom)
    return constant - 0.5 * (freedom + 1.0) * np.log1p(z**2 / freedom)


def scale_by_likelihood(r, freedom, weight, tol=1e-9, max_iter=200):
    """Return tau^2, the squared scale of greatest likelihood of centred residuals.

    The fixed point ``tau^2 = mean(w r^2)``, ``w = (nu + 1) / (nu + r^2 / tau^2)``.
    """
    total = weight.sum()
    square = r**2
    tau2 = float(weight @ square / total)
    for _ in range(max_iter):
        # Most of the weight may be on residuals of 0, from where it goes on to 0.
        if tau2 == 0.0:
            return 0.0
        with np.errstate(over="ignore"):
            w = (freedom + 1.0) / (freedom + square / tau2)
        new = float(weight @ (w * square) / total)
        done = abs(new - tau2) <= tol * tau2
        tau2 = new
        if done:
            break
    return tau2


def mixture_log_density(y, location, scale, freedom, log_weight):
    """Return log densities of mixtures at y, one per line."""
    z = (y[:, None] - location) / scale
    parts = log_density(z, freedom) - np.log(scale) + log_weight
    return logsumexp(parts, axis=1)


def mixture_cdf(y, location, scale, freedom, weight):
    """Return distribution functions of mixtures at y, one per line."""
    return stdtr(freedom, (y[:, None] - location) / scale) @ weight


def mixture_quantiles(probabilities, location, scale, freedom, weight):
    """Return quantiles of mixtures, (n_laws, n_quantiles), by bisection."""
    columns = []
    for p in probabilities:
        # Those of the components enclose that of the mixture.
        each = location + scale * stdtrit(freedom, p)
        low, high = each.min(axis=1), each.max(axis=1)
        for _ in range(200):
            middle = 0.5 * (low + high)
            below = mixture_cdf(middle, location, scale, freedom, weight) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if np.all(high - low <= 1e-15 * (np.abs(low) + np.abs(high))):
                break
        columns.append(0.5 * (low + high))
    return np.stack(columns, axis=1)


def mixture_variance(location, scale, freedom, weight):
    """Return variances of mixtures; infinite where a component's is."""
    if (freedom <= 2.0).any():
        return np.full(len(location), np.inf)
    mean = location @ weight
    inner = scale**2 * freedom / (freedom - 2.0)
    return inner @ weight + (location - mean[:, None]) ** 2 @ weight


def mixture_crps(y, location, scale, freedom, weight):
    """Return continuous ranked probability scores ``E|Y - y| - E|Y - Y'| / 2``.

    The first in closed form, the second by `mixture_spread`; infinite where a component
    has no mean.
    """
    if (freedom <= _NO_MEAN).any():
        return np.full(len(y), np.inf)
    z = (y[:, None] - location) / scale
    density = np.exp(log_density(z, freedom))
    away = z * (2.0 * stdtr(freedom, z) - 1.0)
    away = away + 2.0 * density * (freedom + z**2) / (freedom - 1.0)
    first = (scale * away) @ weight
    return first - mixture_spread(location, scale, freedom, weight)


def mixture_spread(location, scale, freedom, weight):
    """Return ``E|Y - Y'| / 2`` of mixtures, the integral of F (1 - F).

    By the double exponential rule around the mean; where components differ much in
    place or width, in pieces around each of them.
    """
    t = np.arange(-_REACH, _REACH + 0.5 * _STEP, _STEP)
    x = np.sinh(0.5 * np.pi * np.sinh(t))
    slope = 0.5 * np.pi * np.cosh(t) * np.cosh(0.5 * np.pi * np.sinh(t))
    centre, width = location @ weight, scale @ weight
    narrow = scale.min(axis=1)
    apart = np.ptp(location, axis=1) + width
    mixed = apart > _ALIKE * narrow
    result = np.zeros(len(location))

    def both_tails(at, rows):
        scores = (at[:, None] - location[rows]) / scale[rows]
        return (stdtr(freedom, scores) @ weight) * (stdtr(freedom, -scores) @ weight)

    rows = np.flatnonzero(~mixed)
    for node, factor in zip(x, slope, strict=True):
        at = centre[rows] + width[rows] * node
        result[rows] += _STEP * width[rows] * factor * both_tails(at, rows)
    for row in np.flatnonzero(mixed):
        result[row] = _spread_in_pieces(
            location[row], scale[row], freedom, weight, x, slope
        )
    return result


def _spread_in_pieces(location, scale, freedom, weight, x, slope):
    """Return the integral of F (1 - F) of one mixture, piece by piece.

    Between points at growing distances from every component the integrand is smooth;
    the ends go by the double exponential rule.
    """

    def both_tails(at):
        scores = (at[:, None] - location) / scale
        return (stdtr(freedom, scores) @ weight) * (stdtr(freedom, -scores) @ weight)

    edges = np.unique(location + scale * np.concatenate([-_MARKS, _MARKS])[:, None])
    nodes, shares = roots_legendre(12)
    lengths = 0.5 * np.diff(edges)
    middles = 0.5 * (edges[1:] + edges[:-1])
    at = middles[:, None] + lengths[:, None] * nodes
    total = (lengths[:, None] * shares).ravel() @ both_tails(at.ravel())
    reach = scale.max() + np.ptp(location)
    outward = x > 0.0
    # Of sinh the half line: half of the node at 0 is not there.
    distance, factor = reach * x[outward], reach * slope[outward] * _STEP
    half = 0.5 * reach * 0.5 * np.pi * _STEP
    for end, sign in ((edges[0], -1.0), (edges[-1], 1.0)):
        total += factor @ both_tails(end + sign * distance)
        total += half * both_tails(np.array([end]))[0]
    return total


def mixture_draws(location, scale, freedom, weight, uniforms):
    """Return draws of mixtures, (n_laws, size), from uniform numbers (2, n_laws, size).

    Of a row always the same ones, whatever else is drawn.
    """
    ends = np.cumsum(weight)
    chosen = np.searchsorted(ends, uniforms[0] * ends[-1], side="right")
    chosen = np.minimum(chosen, len(weight) - 1)
    rows = np.arange(len(location))[:, None]
    return location[rows, chosen] + scale[rows, chosen] * stdtrit(
        freedom[chosen], uniforms[1]
    )
