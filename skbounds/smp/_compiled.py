"""Compiled loops of the virtual fits.

*Increments.* Between two matrix products the chord iteration needs, for every training
row, how much the gradient of the loss changes when the raw prediction changes by ``a``:
``softmax(eta + a) - softmax(eta)``. Written through ``e = exp(a) - 1`` the difference
has no cancellation however small ``a`` is, and needs no exponential of the raw
prediction itself: with ``p = softmax(eta)`` and ``E = sum_l p_l e_l``,

    softmax_k(eta + a) - p_k = p_k (e_k - E) / (1 + E),

which is ``p (1 - p) e / (1 + p e)`` for two classes with a single raw prediction.
Rows with a change beyond ``MAX_CHANGE`` are refused: the frozen curvature of the chord
iteration is worthless there, and the bound lets one short polynomial serve for
``exp(a) - 1``, which the compiler turns into vector instructions.

*Roots.* The scalar equations of one-step fits, one safeguarded Halley iteration each.
"""

import math

import numpy as np

from skbounds._jit import compile_nogil

MAX_CHANGE = 4.0

_INVERSE_FACTORIALS = tuple(1.0 / math.factorial(i) for i in range(1, 14))


@compile_nogil(inline="always")
def _expm1_bounded(x):
    # |x| <= 4: Taylor on x/8 (remainder below 1e-16 relative), then three times
    # exp(2u) - 1 = e (2 + e).
    r = x * 0.125
    e = _INVERSE_FACTORIALS[12]
    e = e * r + _INVERSE_FACTORIALS[11]
    e = e * r + _INVERSE_FACTORIALS[10]
    e = e * r + _INVERSE_FACTORIALS[9]
    e = e * r + _INVERSE_FACTORIALS[8]
    e = e * r + _INVERSE_FACTORIALS[7]
    e = e * r + _INVERSE_FACTORIALS[6]
    e = e * r + _INVERSE_FACTORIALS[5]
    e = e * r + _INVERSE_FACTORIALS[4]
    e = e * r + _INVERSE_FACTORIALS[3]
    e = e * r + _INVERSE_FACTORIALS[2]
    e = e * r + _INVERSE_FACTORIALS[1]
    e = e * r + 1.0
    e = e * r
    e = e * (2.0 + e)
    e = e * (2.0 + e)
    return e * (2.0 + e)


@compile_nogil()
def _count_outside(row):
    outside = 0
    for i in range(row.shape[0]):
        if not abs(row[i]) <= MAX_CHANGE:  # also catches NaN
            outside += 1
    return outside


@compile_nogil(fastmath={"nnan", "nsz", "reassoc"})
def _max_abs(row):
    largest = 0.0
    for i in range(row.shape[0]):
        size = abs(row[i])
        largest = size if size > largest else largest
    return largest


@compile_nogil()
def _largest(row):
    """Return the largest absolute entry, infinity if one is beyond the bound or NaN."""
    return np.inf if _count_outside(row) else _max_abs(row)


@compile_nogil(fastmath={"contract", "reassoc"}, error_model="numpy")
def binary_increments(change, proba, curvature, largest):
    """Overwrite changes of the raw prediction by weighted changes of the gradient.

    Parameters
    ----------
    change : ndarray of shape (n_problems, n_samples)
        Changes of the raw prediction; overwritten. Refused rows become zero.
    proba : ndarray of shape (n_samples,)
        Probability of the positive class at the base fit.
    curvature : ndarray of shape (n_samples,)
        Sample weight times ``proba * (1 - proba)``.
    largest : ndarray of shape (n_problems,)
        Receives the largest absolute change; infinity for refused rows.
    """
    for j in range(change.shape[0]):
        row = change[j]
        largest[j] = _largest(row)
        if largest[j] == np.inf:
            row[:] = 0.0
            continue
        for i in range(row.shape[0]):
            e = _expm1_bounded(row[i])
            row[i] = curvature[i] * e / (1.0 + proba[i] * e)


@compile_nogil(fastmath={"contract", "reassoc"}, error_model="numpy")
def softmax_increments(change, proba, weight, largest):
    """Multiclass version of :func:`binary_increments`.

    Parameters
    ----------
    change : ndarray of shape (n_problems, n_classes, n_samples)
        Changes of the raw predictions; overwritten.
    proba : ndarray of shape (n_classes, n_samples)
        Probabilities at the base fit.
    weight : ndarray of shape (n_samples,)
        Sample weights.
    largest : ndarray of shape (n_problems,)
        Receives the largest absolute change; infinity for refused rows.
    """
    n_classes = change.shape[1]
    n_samples = change.shape[2]
    for j in range(change.shape[0]):
        largest[j] = 0.0
        for k in range(n_classes):
            largest[j] = max(largest[j], _largest(change[j, k]))
        if largest[j] == np.inf:
            change[j] = 0.0
            continue
        for k in range(n_classes):
            row = change[j, k]
            for i in range(n_samples):
                row[i] = _expm1_bounded(row[i])
        for i in range(n_samples):
            mean = 0.0
            for k in range(n_classes):
                mean += proba[k, i] * change[j, k, i]
            factor = weight[i] / (1.0 + mean)
            for k in range(n_classes):
                change[j, k, i] = proba[k, i] * (change[j, k, i] - mean) * factor


@compile_nogil(fastmath={"contract"}, error_model="numpy")
def second_order_terms(change, second, out):
    """Write ``second * change**2``, the loss's second-order term in the changes."""
    for j in range(change.shape[0]):
        for i in range(change.shape[1]):
            out[j, i] = second[i] * change[j, i] * change[j, i]


@compile_nogil(fastmath={"contract"}, error_model="numpy")
def third_order_terms(change, bend, second, third):
    """Overwrite second-order changes ``bend`` by the loss's third-order term."""
    for j in range(change.shape[0]):
        for i in range(change.shape[1]):
            a = change[j, i]
            bend[j, i] = a * (2.0 * second[i] * bend[j, i] + third[i] * a * a)


@compile_nogil(error_model="numpy")
def rising_root(offset, gain):
    """Solve ``eta = offset + gain * (1 - sigmoid(eta))`` with ``gain >= 0``.

    Bracketed Halley iteration. The upper end ``max(offset, 0) + log(1 + gain)``
    matters: leverage near one makes gains of 1e3 and more, where ``offset + gain``
    alone leaves an interval that no bracketing method gets through in a few dozen
    steps.
    """
    low = offset
    high = offset + gain
    if gain > 1.0:
        high = min(high, max(offset, 0.0) + math.log1p(gain))
    # Halley's step from the lower end is nearly exact for the usual small gains.
    q = 1.0 / (1.0 + math.exp(offset))
    curvature = gain * q * (1.0 - q)
    step = gain * q / (1.0 + curvature)
    bend = curvature * (1.0 - 2.0 * q) * step / (1.0 + curvature)
    if abs(bend) < 0.5:
        step /= 1.0 - 0.5 * bend
    eta = min(max(offset + step, low), high)
    for _ in range(200):
        q = 1.0 / (1.0 + math.exp(eta))
        value = eta - offset - gain * q
        if value < 0.0:
            low = eta
        else:
            high = eta
        curvature = gain * q * (1.0 - q)
        slope = 1.0 + curvature
        step = value / slope
        bend = curvature * (2.0 * q - 1.0) * step / slope
        if abs(bend) < 0.5:
            step /= 1.0 - 0.5 * bend
        trial = eta - step
        if not low <= trial <= high:
            trial = 0.5 * (low + high)
        change = abs(trial - eta)
        eta = trial
        # Cubic convergence: the error left is below gain * change^3.
        if (1.0 + gain) * change**3 <= 1e-16 or change <= 4e-16 * abs(eta):
            break
    return eta


@compile_nogil(error_model="numpy")
def one_step_roots(eta, leverage, slope, target, root):
    """Solve ``x = eta + leverage * (target - slope * sigmoid(x))`` elementwise.

    A negative slope (an observation taken out) takes one Newton step from ``eta``, the
    usual downdate.

    Parameters
    ----------
    eta, leverage : ndarray of shape (n_rows,)
    slope, target : ndarray of shape (n_rows, n_tilts)
    root : ndarray of shape (n_rows, n_tilts)
        Receives the solutions.
    """
    for i in range(slope.shape[0]):
        e, h = eta[i], leverage[i]
        for j in range(slope.shape[1]):
            a, b = slope[i, j], target[i, j]
            if a <= 0.0:
                p = 1.0 / (1.0 + math.exp(-e))
                rate = max(1.0 + h * a * p * (1.0 - p), 1e-12)
                root[i, j] = e + h * (b - a * p) / rate
            # A target nearer to the slope is written as label 1, otherwise mirrored to
            # one: the offset then has no cancellation for huge leverages.
            elif 2.0 * b >= a:
                root[i, j] = rising_root(e + h * (b - a), a * h)
            else:
                root[i, j] = -rising_root(-e - h * b, a * h)
