"""The plain iteration f <- f - alpha K phi'(y, f) of (3.9)."""

from __future__ import annotations

import numpy as np


def iterate(gradient, expand, collect, shape, times, *, average):
    """Yield coefficients and function values after whole numbers of steps.

    Parameters
    ----------
    gradient : callable
        ``gradient(values)`` are the weighted slopes at the rows times the step size.
    expand : callable
        ``expand(coefficients)`` are the function values, with the offset.
    collect : callable
        ``collect(slopes)`` is their part of the coefficients: the slopes themselves
        for dual coefficients, Psi' slopes for coordinates Psi.
    shape : tuple
        Of the coefficients.
    times : ndarray of shape (n_times,)
        Increasing whole numbers.
    average : bool
        Yield the means of the iterates 1, ..., t instead.

    Yields
    ------
    coefficients, values : ndarray
    """
    coefficients, total = np.zeros(shape), np.zeros(shape)
    values = expand(coefficients)
    done = 0
    for time in times:
        while done < time:
            coefficients = coefficients - collect(gradient(values))
            values = expand(coefficients)
            if average:
                total += coefficients
            done += 1
        if average:
            mean = total / done
            yield mean, expand(mean)
        else:
            yield coefficients, values
