"""Which learning time the squared loss is stopped at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skbounds.kernel_boost import _stopping
from skbounds.kernel_boost._radius import critical_radius, theory_time

# Rules that use the noise; they were tuned with that of greatest marginal likelihood.
_BY_LIKELIHOOD = ("cp", "theory", "discrepancy")


@dataclass(frozen=True)
class StoppingOptions:
    """The parameters of the estimators that decide when to stop."""

    stopping: str | None
    df_margin: float
    noise: float | None
    norm: float | None
    max_iter: int | None
    patience: int
    n_offset: int


@dataclass(frozen=True)
class Choice:
    """Times chosen, one per output, and why.

    Attributes
    ----------
    times : ndarray of shape (m,)
        Whole numbers.
    path : Statistics
    noise : ndarray of shape (m,)
        Standard deviations.
    norm : ndarray of shape (m,)
    radius : ndarray of shape (m,)
    is_logarithm : bool
        Whether the criterion is that of something.
    """

    times: np.ndarray
    path: object
    noise: np.ndarray
    norm: np.ndarray
    radius: np.ndarray
    is_logarithm: bool = False

    @property
    def criterion(self):
        """The mean over the outputs of the criterion's least values; nan for none.

        Of criteria that are logarithms, the exponentials: they have units as well.
        """
        if self.path.criterion is None:
            return np.nan
        least = np.min(self.path.criterion, axis=0)
        return float((np.exp(least) if self.is_logarithm else least).mean())

    @property
    def df(self):
        """The degrees of freedom at the longest of the times, from the path."""
        last = np.searchsorted(self.path.times, self.times.max())
        return float(self.path.df[min(last, len(self.path.df) - 1)])


def choose_times(path, options, *, left_out=None, held_out=None) -> Choice:
    """Choose the time of each output.

    Parameters
    ----------
    path : SpectralPath or ChainPath
    options : StoppingOptions
    left_out, held_out : callable or None
        ``left_out(times)``, of shape (n_times, m), is the leave-one-out criterion for
        "loo"; ``held_out(times)`` the loss on rows left out for "validation" and "cv".
    """
    n, m, rule = path.n_samples, path.n_outputs, options.stopping
    longest = float(options.max_iter or _stopping.LONGEST)
    noise: Any = noise_of(path, options) if _is_given(options) else None
    generalised = lambda found: _stopping.gcv(
        found, n, options.n_offset, options.df_margin
    )
    judges = {
        "gcv": generalised,
        "cp": lambda found: _stopping.cp(found, n, noise**2),
        "aicc": lambda found: _stopping.aicc(found, n),
        "discrepancy": lambda found: found.rss,
        "loo": lambda found: left_out(found.times),
        "validation": lambda found: held_out(found.times),
        "cv": lambda found: held_out(found.times),
        # Its time needs no criterion; this is where its pilot stops.
        "theory": generalised,
        None: lambda found: None,
    }
    judge = aim = judges[rule]
    if rule == "discrepancy":
        # Zero from the first time on whose residual is that of noise.
        aim = lambda found: np.maximum(found.rss - noise**2, 0.0)
    found = path.explore(judge, longest, None if rule is None else aim)
    if rule is None:
        return describe(path, np.full(m, longest), found, options, noise)
    if rule == "discrepancy":
        chosen = found.times[_stopping.discrepancy(found, noise**2)]
    elif rule == "validation":
        best = _stopping.patient_minimum(found.criterion, options.patience)
        chosen = found.times[best]
    else:
        chosen = found.times[_stopping.first_minimum(found.criterion)]
    if rule != "theory":
        return describe(path, chosen, found, options, noise)
    pilot = path.norms(chosen, average=False)
    radius = radii(path, noise, norm_of(pilot, options))
    times = np.array([theory_time(r, path.step_size) for r in radius])
    # Without noise there is no time at which to stop before all is learnt.
    times = np.where(np.isinf(times), found.times[-1], times)
    return describe(
        path, np.minimum(times, longest), replace(found, criterion=None), options,
        noise, pilot,
    )  # fmt: skip


def describe(path, times, found, options, noise=None, norm=None) -> Choice:
    """Return a choice with the noise, norm and radius that go with its times."""
    if noise is None:
        given = _is_given(options)
        noise = (
            noise_of(path, options) if given else residual_noise(path, times, options)
        )
    norm = norm_of(path.norms(times) if norm is None else norm, options)
    return Choice(
        times, found, noise, norm, radii(path, noise, norm), options.stopping == "aicc"
    )


def _is_given(options):
    """Tell whether the noise is known before the path is stopped."""
    return options.noise is not None or options.stopping in _BY_LIKELIHOOD


def noise_of(path, options) -> np.ndarray:
    """Return the noise's standard deviations: given, or of greatest likelihood."""
    if options.noise is None:
        return np.sqrt(path.noise())
    return np.full(path.n_outputs, float(options.noise))


def residual_noise(path, times, options):
    """Return the noise's standard deviations by the residuals at a time per output.

    ``E |y - S y|^2`` of pure noise is its variance times ``tr (I - S)'(I - S)``: what a
    fit takes of the noise is given back, and what it misses of the function is not
    subtracted.
    """
    rss = np.diagonal(path.at(np.asarray(times)).rss)
    left = path.residual_df(np.asarray(times)) - options.n_offset
    return np.sqrt(path.n_samples * rss / np.maximum(left, 1.0))


def norm_of(norm, options):
    """Return the norms: given, or those that were found."""
    return norm if options.norm is None else np.full(len(norm), float(options.norm))


def radii(path, noise, norm):
    """Return the critical radii."""
    return np.array(
        [
            critical_radius(path.eigenvalues, s, rho, path.n_samples)
            for s, rho in zip(noise, norm, strict=True)
        ]
    )
