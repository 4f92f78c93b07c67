"""Mean losses of a fitted estimator when rows and targets move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import t as student

from skbounds._blocks import row_blocks
from skbounds._frames import to_array
from skbounds.bolstering._estimators import final_step
from skbounds.bolstering._smoothed import _closed
from skbounds.bolstering._smoothed._kernels import Kernels
from skbounds.bolstering._smoothed._measure import Measure
from skbounds.bolstering._smoothed._models import (
    Linear,
    Polynomial,
    Radial,
    Tree,
    agrees,
    recognise,
)
from skbounds.bolstering._smoothed._nodes import (
    ROWS,
    hermite_nodes,
    integration_nodes,
    stream_sizes,
)

# Points of a product rule per row, at most.
_LARGEST_GRID = 1000


@dataclass(frozen=True)
class Law:
    """A predictive law of the targets at each row: normal, or Student's.

    Attributes
    ----------
    mean, variance : ndarray of shape (n, m)
    dof : float
        Degrees of freedom; infinite for the normal law.
    """

    mean: np.ndarray
    variance: np.ndarray
    dof: float = np.inf

    def at(self, nodes):
        """Return deviations from the mean for standard normal nodes (n, ..., m)."""
        middle = (1,) * (nodes.ndim - 2)
        scale = np.sqrt(self.variance)
        if np.isfinite(self.dof):
            scale = scale * np.sqrt((self.dof - 2.0) / self.dof)
            nodes = student.ppf(ndtr(nodes), self.dof)
        return nodes * scale.reshape(len(nodes), *middle, -1)

    def part(self, rows):
        return Law(self.mean[rows], self.variance[rows], self.dof)


@dataclass
class Smoothed:
    """Losses per row.

    Attributes
    ----------
    losses : dict of ndarray of shape (n, n_streams)
        Means over the nodes of a stream.
    sizes : ndarray of int of shape (n_streams,) or None
        Nodes of the streams; None if the means are exact.
    """

    losses: dict
    sizes: np.ndarray | None = None

    def mean(self, name, weight):
        """Return the mean loss, and the standard error of its integration.

        The error is unknown, nan, with one node a row.
        """
        return self.mean_of(self.losses[name], weight)

    def mean_of(self, losses, weight):
        """Return mean and error as `mean` does, of losses derived from these."""
        streams = np.average(losses, axis=0, weights=weight)
        if self.sizes is None:
            return float(streams[0]), 0.0
        error = np.nan
        if len(streams) > 1:
            with np.errstate(over="ignore"):
                error = float(streams.std(ddof=1) / np.sqrt(len(streams)))
        return float(np.average(streams, weights=self.sizes)), error


def resubstitute(question, mixture) -> Smoothed:
    """Return the losses at the rows themselves, mean over a mixture of targets.

    Parameters
    ----------
    question : Question
    mixture : list of (targets, shares)
        Shares of shape (n,), or 1.
    """
    total: dict[str, np.ndarray] = {}
    for targets, shares in mixture:
        for name, values in question.evaluate(targets, question.at_rows).items():
            total[name] = total.get(name, 0.0) + (shares * values)[:, None]
    return Smoothed(total)


@dataclass(frozen=True)
class Motion:
    """How features and targets move with standard normal nodes.

    Attributes
    ----------
    measure : Measure
        Kernels of the features, or joint ones.
    joint : Joint or None
    law : Law or None
        Targets move by it, independently of the features.
    noise : ndarray of shape (n or 1, m) or None
        Variance of the targets that is accounted for by adding it.
    moves_features : bool
    """

    measure: Measure
    joint: _closed.Joint | None = None
    law: Law | None = None
    noise: np.ndarray | None = None
    moves_features: bool = True

    @property
    def n_dimensions(self):
        if self.joint is not None:
            return self.joint.features.shape[2]
        n = self.measure.n_dimensions if self.moves_features else 0
        return n + (0 if self.law is None else self.law.mean.shape[1])

    def features(self, rows, nodes):
        """Return moves in the coordinates for nodes (n, M, q), or None."""
        if not self.moves_features:
            return None
        if self.joint is None:
            kernels = self.measure.kernels.part(rows)
            return kernels.move(nodes[..., : self.measure.n_dimensions])
        return _apply(self.joint.features, rows, nodes)

    def targets(self, rows, nodes):
        """Return what is added to targets: (n, M, m), or None."""
        if self.joint is not None:
            return _apply(self.joint.targets, rows, nodes)
        if self.law is None:
            return None
        start = self.measure.n_dimensions if self.moves_features else 0
        return self.law.part(rows).at(nodes[..., start:])


def _apply(roots, rows, nodes):
    roots = roots if len(roots) == 1 else roots[rows]
    return nodes @ roots.transpose(0, 2, 1)


def feature_motion(measure, noise=None):
    """Return the motion of features alone."""
    return Motion(measure, noise=noise)


def joint_motion(measure, *, squared_only):
    """Return the motion of features and targets together.

    Targets that move independently of the features need no nodes where all that counts
    is squared losses: their variance is added.
    """
    r, scale = measure.n_dimensions, measure.target_scale
    kernels = measure.kernels
    if kernels.is_diagonal and squared_only:
        deviations = kernels.deviations
        roots = deviations[:, :r] if kernels.roots.ndim == 2 else kernels.roots
        features = Measure(
            measure.table, measure.weight, measure.coordinates, Kernels(roots, r)
        )
        return feature_motion(features, noise=(deviations[:, r:] * scale) ** 2)
    joint = _closed.split_joint(kernels, r, scale)
    noise = None
    if squared_only:
        noise = (joint.targets[:, :, r:] ** 2).sum(axis=2)
        joint = _closed.Joint(joint.features[:, :, :r], joint.targets[:, :, :r])
    return Motion(measure, joint=joint, noise=noise)


def smooth(question, motion, mixture, *, integration, n_nodes, seed) -> Smoothed:
    """Return the mean losses over a motion.

    Parameters
    ----------
    question : Question
    motion : Motion
    mixture : list of (targets, shares)
    integration : {'auto', 'closed', 'qmc', 'mc'}
    n_nodes : int
    seed : int
    """
    if integration in ("auto", "closed"):
        exact = _smooth_exactly(question, motion, mixture)
        if exact is not None:
            return exact
        if integration == "closed":
            names = [loss.name for loss in question.losses]
            raise ValueError(
                f"integration='closed': there is no closed form of {names} for "
                f"{question.estimator!r} with these kernels; integration='qmc' needs "
                "none."
            )
    if question.table.is_sparse:
        raise ValueError(
            "sparse X cannot be moved without becoming dense: there are closed forms "
            "for linear models with loss='squared' and for binary linear classifiers "
            "with loss='zero_one', with kernel='mm' or a width; otherwise give a dense "
            "X."
        )
    return _smooth_numerically(
        question, motion, mixture, kind="mc" if integration == "mc" else "qmc",
        n_nodes=n_nodes, seed=seed,
    )  # fmt: skip


def _smooth_numerically(question, motion, mixture, *, kind, n_nodes, seed):
    n, parts, sizes = question.table.n_rows, [], stream_sizes(n_nodes)
    # What each node counts for in the mean of its stream.
    share = np.repeat(np.eye(len(sizes)) / sizes, sizes, axis=0)
    for rows, nodes in integration_nodes(
        n, n_nodes, motion.n_dimensions, kind=kind, seed=seed
    ):
        parts.append(_mean_over_nodes(question, motion, mixture, rows, nodes, share))
    return Smoothed(_join(parts), sizes)


def _join(parts):
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _mean_over_nodes(question, motion, mixture, rows, nodes, node_shares):
    """Return the mean losses of a block of rows.

    Parameters
    ----------
    rows : slice
    nodes : ndarray of shape (n_block, n_nodes, q)
    node_shares : ndarray of shape (n_nodes, n_streams)
        What a node counts for in each mean.

    Returns
    -------
    losses : dict of ndarray of shape (n_block, n_streams)
    """
    n_block, n_nodes = nodes.shape[:2]
    numbers = np.repeat(np.arange(rows.start, rows.stop), n_nodes)
    moves = motion.features(rows, nodes)
    if moves is None:
        responses = {name: v[numbers] for name, v in question.at_rows.items()}
    else:
        X = motion.measure.moved(numbers, moves.reshape(len(numbers), -1))
        responses = question.responses(X, moved=True)
    lifts = motion.targets(rows, nodes)
    total = {}
    for targets, shares in mixture:
        own = targets[numbers]
        if lifts is not None:
            own = own + lifts.reshape(own.shape)
        for name, values in question.evaluate(own, responses).items():
            means = values.reshape(n_block, n_nodes) @ node_shares
            share = shares if np.ndim(shares) == 0 else shares[rows, None]
            total[name] = total.get(name, 0.0) + share * means
    if motion.noise is not None:
        _add_noise(total, motion.noise, rows)
    return total


def _add_noise(losses, noise, rows=slice(None)):
    """Add the variance of the targets to squared losses, averaged over outputs."""
    noise = noise.mean(axis=1, keepdims=True)
    losses["squared"] = losses["squared"] + (noise if len(noise) == 1 else noise[rows])


def _smooth_exactly(question, motion, mixture):
    """Return exact mean losses, or None if one of the losses has no closed form."""
    if motion.law is not None or not motion.moves_features:
        return None
    if not motion.measure.kernels.is_normal:
        return None
    kinds = {loss.kind for loss in question.losses}
    model = recognise(question.estimator, question.table)
    if model is None:
        return None
    if isinstance(model, Tree):
        size = question.table.n_rows * len(model.leaves)
        if size > _closed.LARGEST_TREE:
            return None
        if motion.joint is not None or not _is_axis_aligned(motion.measure):
            return None
        return _smooth_tree(question, motion, mixture, model)
    zero_one = kinds == {"zero_one"} and isinstance(model, Linear)
    if not zero_one and kinds != {"squared"}:
        return None
    if question.table.is_sparse and not motion.measure.kernels.is_diagonal:
        return None
    if isinstance(model, Radial):
        size = question.table.n_rows * len(model.centers) ** 2
        if size > _closed.LARGEST_RADIAL:
            return None
    if not _verified(question, motion, model):
        return None
    if zero_one:
        return _smooth_linear_classifier(question, motion, mixture, model)
    if isinstance(model, Polynomial) and model.degree > 2:
        return _smooth_by_product_rule(question, motion, mixture, model)
    [(targets, _)] = mixture
    targets = targets.reshape(question.table.n_rows, -1)
    if isinstance(model, Linear):
        losses = _linear_losses(question, motion, targets, model)
    else:
        losses = _curved_losses(question, motion, targets, model)
    return Smoothed({"squared": losses[:, None]})


def _verified(question, motion, model):
    """Compare the model with the estimator at the rows and at moved ones."""
    if question.table.is_sparse:
        moved = question.table.X
    else:
        n = question.table.n_rows
        _, nodes = next(
            iter(integration_nodes(n, 1, motion.n_dimensions, kind="mc", seed=0))
        )
        rows = slice(0, len(nodes))
        moves = motion.features(rows, nodes).reshape(len(nodes), -1)
        moved = motion.measure.moved(np.arange(len(nodes)), moves)
    return agrees(model, question, moved)


def _dense(table):
    return np.asarray(to_array(table.X), dtype=np.float64)


def _columns(motion):
    """Return the columns of X that move."""
    measure = motion.measure
    return measure.table.movable[measure.coordinates.kept]


def _linear_losses(question, motion, targets, model):
    X = question.table.X if question.table.is_sparse else _dense(question.table)
    residuals = targets - model(X)
    slopes = motion.measure.coordinates.slopes(model.coef[:, _columns(motion)])
    if motion.joint is None:
        losses = _closed.linear_squared(residuals, slopes, motion.measure.kernels)
    else:
        turned = slopes @ motion.joint.features - motion.joint.targets
        moved = (turned**2).sum(axis=2)
        losses = (residuals**2 + moved).mean(axis=1)
    return _with_noise(losses, motion)


def _with_noise(losses, motion):
    return losses if motion.noise is None else losses + motion.noise.mean(axis=1)


def _smooth_linear_classifier(question, motion, mixture, model):
    X = question.table.X if question.table.is_sparse else _dense(question.table)
    margins = model(X)[:, 0]
    slopes = motion.measure.coordinates.slopes(model.coef[0, _columns(motion)])
    kernels, total = motion.measure.kernels, 0.0
    for targets, shares in mixture:
        positive = targets == question.classes[1]
        # A margin of 0 is predicted as the first class.
        still = np.where(positive, margins <= 0.0, margins > 0.0)
        signed = np.where(positive, margins, -margins)
        total = total + shares * _closed.linear_zero_one(signed, slopes, kernels, still)
    return Smoothed({"zero_one": total[:, None]})


def _roots_in_model(motion, affine):
    """Return the roots of features and targets in the model's coordinates."""
    axes = motion.measure.coordinates.axes
    map_ = affine.matrix[:, _columns(motion)] @ axes.T
    if motion.joint is not None:
        return map_ @ motion.joint.features, motion.joint.targets
    roots = map_ @ motion.measure.kernels.matrices()
    return roots, None


def _curved_losses(question, motion, targets, model):
    """Return squared losses of quadratic and of radial models."""
    X = _dense(question.table)
    points = model.affine(X)
    roots, lifts = _roots_in_model(motion, model.affine)
    n, m = targets.shape
    if lifts is None:
        lifts = np.zeros((1, m, roots.shape[2]))
    noise = np.zeros((1, m)) if motion.noise is None else motion.noise
    if isinstance(model, Radial):
        return _closed.radial_squared(
            model, points, targets,
            np.broadcast_to(roots, (n, *roots.shape[1:])),
            np.broadcast_to(lifts, (n, *lifts.shape[1:])),
            np.broadcast_to(noise, (n, m)),
        )  # fmt: skip
    slopes, matrices = model.quadratic()
    gradients = slopes + 2.0 * np.einsum("mab,nb->nma", matrices, points)
    return _closed.quadratic_squared(
        targets - model(X), gradients, matrices, roots, lifts, noise
    )


def _smooth_by_product_rule(question, motion, mixture, model):
    n_points, q = model.degree + 1, motion.n_dimensions
    if n_points**q > _LARGEST_GRID:
        return None
    nodes, weight = hermite_nodes(n_points, q)
    parts = []
    for rows in row_blocks(question.table.n_rows, ROWS // len(nodes)):
        block = np.broadcast_to(nodes, (rows.stop - rows.start, *nodes.shape))
        parts.append(
            _mean_over_nodes(question, motion, mixture, rows, block, weight[:, None])
        )
    return Smoothed(_join(parts))


def _is_axis_aligned(measure):
    return measure.kernels.is_diagonal and measure.coordinates.rotation is None


def _smooth_tree(question, motion, mixture, model):
    table, measure = question.table, motion.measure
    centers = model.affine(_dense(table))
    deviations = np.zeros((len(measure.kernels.roots), table.n_columns))
    scale = measure.coordinates.scale
    deviations[:, _columns(motion)] = measure.kernels.deviations * scale
    stretch = np.abs(model.affine.matrix[np.arange(len(model.columns)), model.columns])
    deviations = deviations[:, model.columns] * stretch
    # The trees compare single precision numbers.
    sharp = centers.astype(np.float32).astype(np.float64)
    mass = lambda spread, losses: _closed.box_losses(
        centers, sharp, spread, model.lows, model.highs, losses
    )
    n, n_leaves = table.n_rows, len(model.leaves)
    responses = _leaf_responses(question, model)
    still = question.evaluate(question.targets, question.at_rows)
    total = {}
    for targets, shares in mixture:
        repeated = np.repeat(targets, n_leaves, axis=0)
        tiled = {k: np.concatenate([v] * n) for k, v in responses.items()}
        for name, values in question.evaluate(repeated, tiled).items():
            values = values.reshape(n, n_leaves)
            if targets is question.targets and not np.allclose(
                mass(np.zeros_like(deviations), values), still[name]
            ):
                return None
            means = mass(deviations, values)
            total[name] = total.get(name, 0.0) + shares * means
    if motion.noise is not None:
        total["squared"] = _with_noise(total["squared"], motion)
    return Smoothed({name: values[:, None] for name, values in total.items()})


def _leaf_responses(question, model):
    """Return what the tree predicts in each leaf, by name of the method."""
    _, tree = final_step(question.estimator)
    values = tree.tree_.value[model.leaves]
    if question.classes is None:
        values = values[:, :, 0]
        return {"predict": values[:, 0] if values.shape[1] == 1 else values}
    shares = values[:, 0] / values[:, 0].sum(axis=1, keepdims=True)
    return {
        "predict": question.classes[shares.argmax(axis=1)],
        "predict_proba": shares,
    }
