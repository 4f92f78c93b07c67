"""Standard errors, from the curvature of the log-likelihood at the estimates.

The gradient of the log-likelihood is that of EM's surrogate at the same parameters
(Fisher's identity), so that one E-step gives it exactly; its differences give the
observed information (Oakes 1999), four E-steps a parameter.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from skbounds.hmm import _em
from skbounds.hmm._emissions._student import LARGEST_DF, LEAST_DF
from skbounds.hmm._mixing import stationary_law

# Probabilities nearer to 0 or 1 are on the boundary.
_BOUNDARY = 1e-6
# Steps of differences, in units of what parameters vary by.
_STEP = 1e-4
# Sequences from which on their scores are added up for the sandwich.
_MANY_SEQUENCES = 20
# Expected counts below which a rate is 0.
_LEAST_COUNT = 1e-3


class Coordinates:
    """Free parameters of a chain, and the chain at given values of them.

    Attributes
    ----------
    point : ndarray of shape (p,)
        Values at the estimates.
    scale : ndarray of shape (p,)
        Sizes in which they vary.
    """

    def __init__(self, problem, chain):
        self.problem, self.chain = problem, chain
        self.shapes = _shapes(chain)
        self.pieces, values, scales = [], [], []
        for piece in self._find():
            first = sum(len(v) for v in values)
            self.pieces.append((piece, slice(first, first + len(piece.values))))
            values.append(piece.values)
            scales.append(piece.scales)
        self.point = np.concatenate(values) if values else np.zeros(0)
        self.scale = np.concatenate(scales) if scales else np.zeros(0)

    def _find(self):
        problem, chain = self.problem, self.chain
        options, fixed = problem.options, problem.options.fixed
        if "transmat" not in fixed:
            if options.structure == "reversible":
                yield _Flows(chain.transition)
            else:
                for j in range(len(chain.transition)):
                    yield _Law("transition", chain.transition[j], (j,))
        tied = options.startprob == "stationary"
        if not tied and "startprob" not in fixed and problem.n_sequences > 1:
            yield _Law("start", chain.start, ())
        for name, value in chain.law.items():
            if name in fixed:
                continue
            if name == "emission_proba":
                for k, table in enumerate(value):
                    for j in range(len(table)):
                        yield _Law(name, table[j], (k, j))
            elif name == "covariances" and self._has_matrices():
                yield _Matrices(name, value)
            elif name == "df":
                inside = (value > 1.01 * LEAST_DF) & (value < 0.999 * LARGEST_DF)
                yield _Numbers(name, value, inside, value)
            else:
                inside = np.ones(value.shape, dtype=bool)
                if "covariances" not in chain.law:
                    # Rates that hardly any count was seen of.
                    inside = value * problem.n_rows > _LEAST_COUNT
                yield _Numbers(name, value, inside, self._sizes(name, value))

    def _has_matrices(self):
        return self.problem.family.covariance_type in ("full", "tied")

    def _sizes(self, name, value):
        if name == "covariances":
            return value
        if "covariances" not in self.chain.law:
            return np.minimum(np.sqrt(value), 1e3 * value)
        family = self.problem.family
        full = family.public(self.chain.law)["covariances"]
        return np.sqrt(np.diagonal(full, axis1=1, axis2=2))

    def build(self, values):
        """Return the chain with these values of the parameters."""
        chain = self.chain
        parts = {
            "transition": chain.transition.copy(),
            "start": chain.start.copy(),
            **{
                name: [t.copy() for t in v] if isinstance(v, list) else v.copy()
                for name, v in chain.law.items()
            },
        }
        for piece, own in self.pieces:
            piece.put(parts, values[own])
        start = parts.pop("start")
        transition = parts.pop("transition")
        if self.problem.options.startprob == "stationary":
            start = stationary_law(transition)
        return _em.Chain(start, transition, parts)

    def raw(self, values):
        """Return all entries of the chain."""
        chain = self.build(values)
        return _flat(chain.transition, chain.start, chain.law)

    def jacobian(self, values):
        """Return the derivatives of all entries by the parameters."""
        columns = []
        for i, size in enumerate(_STEP * self.scale):
            step = np.zeros(len(values))
            step[i] = size
            columns.append(
                (self.raw(values + step) - self.raw(values - step)) / (2.0 * size)
            )
        return np.array(columns).T.reshape(-1, len(values))

    def score(self, values):
        """Return the gradient of the log-likelihood."""
        return self.jacobian(values).T @ gradient(self.problem, self.build(values))

    def spread(self, covariance):
        """Return standard errors of all entries, as the chain has them."""
        slopes = self.jacobian(self.point)
        variances = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
        free = (slopes != 0.0).any(axis=1)
        with np.errstate(invalid="ignore"):
            errors = np.where(free & (variances >= 0.0), np.sqrt(variances), np.nan)
        return _unflat(errors, self.shapes)


class _Law:
    """Probabilities; the largest one makes up for the others."""

    def __init__(self, name, law, index):
        self.name, self.index = name, index
        free = law > _BOUNDARY
        self.rest = int(np.argmax(law))
        free[self.rest] = False
        self.free = np.flatnonzero(free)
        self.values = law[self.free]
        self.scales = np.minimum(self.values, law[self.rest])

    def put(self, parts, values):
        target = parts[self.name]
        for i in self.index:
            target = target[i]
        target[self.rest] -= (values - target[self.free]).sum()
        target[self.free] = values


class _Flows:
    """Logarithms of the flows of a reversible chain, but for the largest."""

    def __init__(self, transition):
        law = stationary_law(transition)
        flows = law[:, None] * transition
        self.flows = 0.5 * (flows + flows.T)
        rows, columns = np.triu_indices(len(law))
        inside = (transition[rows, columns] > _BOUNDARY) & (
            transition[columns, rows] > _BOUNDARY
        )
        inside &= self.flows[rows, columns] > 1e-12 * self.flows.max()
        inside[int(np.argmax(self.flows[rows, columns]))] = False
        self.rows, self.columns = rows[inside], columns[inside]
        self.values = np.log(self.flows[self.rows, self.columns])
        self.scales = np.ones(len(self.values))

    def put(self, parts, values):
        flows = self.flows.copy()
        flows[self.rows, self.columns] = np.exp(values)
        flows[self.columns, self.rows] = np.exp(values)
        size = flows.sum(axis=1, keepdims=True)
        found = flows / np.where(size > 0.0, size, 1.0)
        # States that have no rows keep theirs.
        parts["transition"][:] = np.where(size > 0.0, found, parts["transition"])


class _Numbers:
    """Numbers that are free of each other."""

    def __init__(self, name, value, inside, sizes):
        self.name, self.inside = name, inside
        self.values = value[inside]
        self.scales = np.broadcast_to(sizes, value.shape)[inside]

    def put(self, parts, values):
        parts[self.name][self.inside] = values


class _Matrices:
    """Symmetric matrices L (I + E) L', with L the factor at the estimate.

    Entries of E are of size 1 however columns depend on each other.
    """

    def __init__(self, name, value):
        self.name, self.roots = name, np.linalg.cholesky(value)
        self.rows, self.columns = np.tril_indices(value.shape[-1])
        n_free = len(self.rows) * int(np.prod(value.shape[:-2]))
        self.values, self.scales = np.zeros(n_free), np.ones(n_free)

    def put(self, parts, values):
        target = parts[self.name]
        change = np.zeros(target.shape)
        own = values.reshape(*target.shape[:-2], -1)
        change[..., self.rows, self.columns] = own
        change[..., self.columns, self.rows] = own
        roots = self.roots
        target[...] += roots @ change @ np.swapaxes(roots, -1, -2)


def gradient(problem, chain):
    """Return the derivatives of the log-likelihood by all entries of the chain."""
    s = len(chain.start)
    by_start, by_pair, by_law = np.zeros(s), np.zeros((s, s)), None
    for group in problem.groups:
        log_density = _em.group_log_densities(chain, problem.family, group)
        found = _em.expectation(
            log_density, group.starts, chain.start, chain.transition
        )
        by_start += found.posterior[group.starts[:-1]].sum(axis=0)
        by_pair += found.pairs
        score = problem.family.score(group.rows, found.posterior, chain.law)
        flat = _flat(None, None, score)
        by_law = flat if by_law is None else by_law + flat
    safe = np.where(chain.transition > 0.0, chain.transition, 1.0)
    by_transition = by_pair / safe
    first = by_start / np.where(chain.start > 0.0, chain.start, 1.0)
    # A stationary law is among the entries that the coordinates move.
    return np.concatenate([by_transition.ravel(), first, by_law])


def rows_of(problem, chain):
    """Return log p(x_t | x_<t) of all rows."""
    parts = []
    for group in problem.groups:
        log_density = _em.group_log_densities(chain, problem.family, group)
        parts.append(
            _em.expectation(
                log_density, group.starts, chain.start, chain.transition, rows_only=True
            ).rows
        )
    return np.concatenate(parts)


def observed_information(score, point, scale):
    """Return minus the derivatives of a gradient, by differences of fourth order."""
    matrix = np.empty((len(point), len(point)))
    for i, size in enumerate(_STEP * scale):
        step = np.zeros(len(point))
        step[i] = size
        near = score(point + step) - score(point - step)
        far = score(point + 2.0 * step) - score(point - 2.0 * step)
        matrix[i] = -(8.0 * near - far) / (12.0 * size)
    return 0.5 * (matrix + matrix.T)


def row_scores(coordinates):
    """Return the derivatives of log p(x_t | x_<t) by the parameters, (n, p)."""
    columns = []
    for i, size in enumerate(_STEP * coordinates.scale):
        step = np.zeros(len(coordinates.point))
        step[i] = size
        ahead = rows_of(
            coordinates.problem, coordinates.build(coordinates.point + step)
        )
        behind = rows_of(
            coordinates.problem, coordinates.build(coordinates.point - step)
        )
        columns.append((ahead - behind) / (2.0 * size))
    return np.array(columns).T


def standard_errors(problem, chain, kind):
    """Return standard errors of the entries of a chain.

    Parameters
    ----------
    problem : GeneralModel
    chain : Chain
    kind : {"observed", "sandwich"}

    Returns
    -------
    errors : dict
        "transition", "start" and the parts of the law, in their shapes; nan for what
        is fixed or on the boundary.
    """
    coordinates = Coordinates(problem, chain)
    if not len(coordinates.point):
        return _unflat(np.full(_size(coordinates.shapes), np.nan), coordinates.shapes)
    scale = coordinates.scale
    information = observed_information(coordinates.score, coordinates.point, scale)
    # In units of the parameters, for the inverse's sake.
    scaled = information * np.outer(scale, scale)
    if not np.isfinite(scaled).all():
        return _unflat(np.full(_size(coordinates.shapes), np.nan), coordinates.shapes)
    values, vectors = np.linalg.eigh(scaled)
    # Directions of no curvature, or of a saddle, have no standard error.
    flat = values <= 1e-10 * values[-1]
    inverse = (vectors / np.where(flat, np.inf, values)) @ vectors.T
    covariance = inverse * np.outer(scale, scale)
    if kind == "sandwich":
        scores = row_scores(coordinates)
        if problem.n_sequences >= _MANY_SEQUENCES:
            firsts = np.concatenate(
                [[0], np.cumsum([len(g.rows) for g in problem.groups])[:-1]]
            )
            cuts = np.concatenate(
                [
                    first + group.starts[:-1]
                    for first, group in zip(firsts, problem.groups, strict=True)
                ]
            )
            scores = np.add.reduceat(scores, cuts, axis=0)
        covariance = covariance @ (scores.T @ scores) @ covariance
    errors = coordinates.spread(covariance)
    if flat.any():
        loose = np.abs(vectors[:, flat]).max(axis=1) > 1e-3
        entries = _unflat(
            (np.abs(coordinates.jacobian(coordinates.point)[:, loose]) > 0.0)
            .any(axis=1)
            .astype(np.float64),
            coordinates.shapes,
        )
        for name, value in errors.items():
            parts = value if isinstance(value, list) else [value]
            marks = entries[name] if isinstance(value, list) else [entries[name]]
            for part, mark in zip(parts, marks, strict=True):
                part[mark > 0.0] = np.nan
    return errors


# ------------------------------------------------------------ all entries in one vector


def _flat(transition, start, law):
    parts = [] if transition is None else [transition.ravel(), start]
    for name in sorted(law):
        value = law[name]
        items = value if isinstance(value, list) else [value]
        parts.extend(np.ravel(item) for item in items)
    return np.concatenate(parts)


def _shapes(chain):
    shapes = {"transition": chain.transition.shape, "start": chain.start.shape}
    for name in sorted(chain.law):
        value = chain.law[name]
        shapes[name] = (
            [item.shape for item in value] if isinstance(value, list) else value.shape
        )
    return shapes


def _size(shapes):
    return sum(
        sum(int(np.prod(s)) for s in shape)
        if isinstance(shape, list)
        else int(np.prod(shape))
        for shape in shapes.values()
    )


def _unflat(vector, shapes):
    found, at = {}, 0

    def take(shape):
        nonlocal at
        size = int(np.prod(shape))
        part = vector[at : at + size].reshape(shape).copy()
        at += size
        return part

    for name, shape in shapes.items():
        if isinstance(shape, list):
            found[name] = [take(s) for s in shape]
        else:
            found[name] = take(shape)
    return found


def symmetric_errors(problem, model):
    """Return standard errors of mu and zeta of the symmetric model.

    nan for zeta at the limit that the mixing bound sets; mu is then given zeta.
    """
    rows, starts = problem.rows, problem.starts

    def score(values):
        there = type(model)(values[:-1], values[-1])
        found, _ = problem.whole(there)
        n_observed = float(len(rows))
        if rows.there is not None:
            n_observed = rows.there.sum(axis=0)
        by_mean = (
            found.means @ rows.values * rows.sigma - n_observed * there.mean
        ) / rows.sigma**2
        n_pairs = len(rows) - (len(starts) - 1)
        agreement = found.agreement
        by_stay = agreement / there.stay - (n_pairs - agreement) / (1.0 - there.stay)
        return np.r_[by_mean, by_stay]

    point = np.r_[model.mean, model.stay]
    least = min(model.stay, 1.0 - model.stay)
    scale = np.r_[np.full(len(model.mean), rows.sigma), least]
    matrix = observed_information(score, point, scale)
    variances = np.full(len(point), np.nan)
    free = len(point)
    if abs(2.0 * model.stay - 1.0) >= problem.bound - 1e-12:
        free -= 1
    with suppress(np.linalg.LinAlgError):
        variances[:free] = np.diagonal(np.linalg.inv(matrix[:free, :free]))
    return np.sqrt(np.where(variances > 0.0, variances, np.nan))
