"""Slow reference for the error estimate from balanced part fits, 0-1 loss.

Follows the project's own description (part A of the specification of "auto"): six fits
on halves (below 60 rows) or on two thirds of the rows, every row held out three or two
times, folds that know nothing of the labels but the class counts, and one factor that
takes out the pessimism of the smaller parts. Everything is a loop over rows written
from the definitions. Nothing is imported from the package under test.

Notation: n rows, labels `targets`, or `codes` 0, 1, ... for them; `folds[i]` is the
fold of row i; fit j predicts the rows it held out; L[j, i] is its loss at row i.

Conventions:

* `predictions` and `losses` have shape (n_fits, n), or (n_deals, n_fits, n) for several
  deals; a row that fit j trained on has None in the one and nan in the other;
* `weight` holds positive numbers; None means ones where it is allowed;
* class counts and fold sizes of a deal are numbers of rows, never weighted;
* `level` is the nominal coverage, two-sided.
"""

from itertools import permutations
from math import sqrt

import numpy as np
from scipy.stats import norm, t

# ---------------------------------------------------------------- groups of four


def _weights(weight, n):
    """Weights as floats, ones if there are none."""
    if weight is None:
        return np.ones(n)
    weight = np.asarray(weight, dtype=float)
    if weight.shape != (n,):
        raise ValueError("one weight for every row")
    return weight


def standardised(X, weight=None, categorical=None):
    """Columns minus weighted mean, over weighted standard deviation (divisor sum w).

    Columns that are constant over the rows of positive weight, and those marked in the
    mask `categorical`, are dropped.
    """
    X = np.asarray(X, dtype=float)
    n, d = X.shape
    w = _weights(weight, n)
    columns = []
    for k in range(d):
        x = X[:, k]
        if categorical is not None and categorical[k]:
            continue
        if len(set(x[w > 0].tolist())) <= 1:
            continue
        centred = x - (w * x).sum() / w.sum()
        columns.append(centred / sqrt((w * centred**2).sum() / w.sum()))
    return np.column_stack(columns) if columns else np.empty((n, 0))


def closest_pairs(points):
    """Closest unused pair, again and again: pairs (i, j), i < j, and who is left.

    Squared Euclidean distance, compared as it comes out of the floating point sum; ties
    go to the smallest (i, j). Pairs come in the order in which they are taken.
    """
    points = [np.asarray(point, dtype=float) for point in points]
    n = len(points)
    gap = {}
    for i in range(n):
        for j in range(i + 1, n):
            gap[i, j] = ((points[i] - points[j]) ** 2).sum()
    unused = list(range(n))
    pairs = []
    while len(unused) >= 2:
        closest = None
        for i in unused:
            for j in unused:
                if i < j and (closest is None or gap[i, j] < gap[closest]):
                    closest = (i, j)
        pairs.append(closest)
        unused = [i for i in unused if i not in closest]
    return pairs, unused


def groups_of_four(points):
    """Pairs of pairs by the distance of their mid-points, and the left over rows.

    Pairs are numbered in the order in which they were taken, so that a tie between
    mid-points goes to the pairs taken first. Groups are sorted tuples of rows in the
    order found. Left over: the two rows of a pair without partner, then the odd row.
    """
    points = np.asarray(points, dtype=float)
    if points.shape[1] == 0:
        raise ValueError("no numeric column: the groups come from a random order")
    pairs, single = closest_pairs(points)
    middles = [(points[i] + points[j]) / 2 for i, j in pairs]
    doubles, unpaired = closest_pairs(middles)
    groups = [tuple(sorted(pairs[a] + pairs[b])) for a, b in doubles]
    leftover = []
    for a in unpaired:
        leftover += list(pairs[a])
    return groups, leftover + single


def random_groups(n, rng):
    """Groups without a numeric column: fours of a random order, and the rest."""
    order = [int(i) for i in rng.permutation(n)]
    full = n - n % 4
    groups = [tuple(sorted(order[k : k + 4])) for k in range(0, full, 4)]
    return groups, order[full:]


# ---------------------------------------------------------------- deals


def _by_fours(rows):
    """Cut a list into fours; the last piece may be shorter."""
    return [tuple(rows[k : k + 4]) for k in range(0, len(rows), 4)]


def _cost(rows, chosen, count, size, codes):
    """Return 1000 sum_j (2 count[fold_j, class_j] + 1e-3 size[fold_j]), an integer.

    The factor only keeps rounding out of the comparison of two assignments.
    """
    total = 0
    for i, k in zip(rows, chosen, strict=True):
        total += 2000 * int(count[k, codes[i]]) + int(size[k])
    return total


def _place(rows, chosen, count, size, codes):
    """Add the rows to the counts and sizes of their folds."""
    for i, k in zip(rows, chosen, strict=True):
        count[k, codes[i]] += 1
        size[k] += 1


def deal_is_greedy(folds, groups_in_order, leftovers_in_order, codes, n_classes):
    """Did every group, then every four leftovers, take a cheapest assignment in turn.

    False as well if the rows of a piece share a fold, a fold is not one of 0, ..., 3,
    or the pieces are not a partition of the rows.
    """
    pieces = [tuple(group) for group in groups_in_order]
    pieces += _by_fours(list(leftovers_in_order))
    if sorted(i for rows in pieces for i in rows) != list(range(len(folds))):
        return False
    count = np.zeros((4, n_classes), dtype=int)
    size = np.zeros(4, dtype=int)
    for rows in pieces:
        assignments = list(permutations(range(4), len(rows)))
        chosen = tuple(int(folds[i]) for i in rows)
        if chosen not in assignments:
            return False
        least = min(_cost(rows, other, count, size, codes) for other in assignments)
        if _cost(rows, chosen, count, size, codes) > least:
            return False
        _place(rows, chosen, count, size, codes)
    return True


def deal(groups, leftovers, codes, rng):
    """Four folds: folds of the rows, groups and leftovers in the order of the deal.

    With all codes 0 the deal is by size only.
    """
    n_classes = int(max(codes)) + 1
    folds = np.full(len(codes), -1)
    count = np.zeros((4, n_classes), dtype=int)
    size = np.zeros(4, dtype=int)
    groups_in_order = [groups[a] for a in rng.permutation(len(groups))]
    leftovers_in_order = [leftovers[a] for a in rng.permutation(len(leftovers))]
    for rows in groups_in_order + _by_fours(leftovers_in_order):
        every = list(permutations(range(4)))
        best, taken = None, None
        for a in rng.permutation(24):
            chosen = every[a][: len(rows)]
            cost = _cost(rows, chosen, count, size, codes)
            if best is None or cost < best:
                best, taken = cost, chosen
        for i, k in zip(rows, taken, strict=True):
            folds[i] = k
        _place(rows, taken, count, size, codes)
    return folds, groups_in_order, leftovers_in_order


def deal_two_thirds(codes, rng):
    """Six folds: random order, stably sorted by class, folds in turn, names permuted.

    The turn goes on across the border of two classes; classes are in random order.
    """
    n_classes = int(max(codes)) + 1
    rows = rng.permutation(len(codes))
    names = rng.permutation(6)
    folds = np.full(len(codes), -1)
    turn = 0
    for c in rng.permutation(n_classes):
        for i in rows:
            if codes[i] == c:
                folds[i] = names[turn % 6]
                turn += 1
    return folds


def _check_counts(folds, codes, n_folds, most):
    """Folds in range, sizes within 1, counts of every class within `most`."""
    folds, codes = np.asarray(folds), np.asarray(codes)
    assert folds.shape == codes.shape, "one fold for every row"
    for k in folds:
        assert k in range(n_folds), f"fold {k}"
    sizes = [int(np.sum(folds == k)) for k in range(n_folds)]
    assert max(sizes) - min(sizes) <= 1, f"sizes of the folds {sizes}"
    for c in np.unique(codes):
        counts = [int(np.sum((folds == k) & (codes == c))) for k in range(n_folds)]
        assert max(counts) - min(counts) <= most, f"class {c}: counts {counts}"


def check_halves(folds, groups, codes):
    """Assert: groups over all four folds, class counts within 2, sizes within 1."""
    _check_counts(folds, codes, n_folds=4, most=2)
    for group in groups:
        found = sorted(int(folds[i]) for i in group)
        assert found == [0, 1, 2, 3], f"group {group} has folds {found}"


def check_two_thirds(folds, codes):
    """Assert: six folds, class counts within 1 and sizes within 1."""
    _check_counts(folds, codes, n_folds=6, most=1)


# ---------------------------------------------------------------- fits


def hold_outs_halves():
    """Folds held out by each of the six fits on halves (four folds)."""
    return [(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)]


def hold_outs_two_thirds():
    """Folds held out by each of the six fits on two thirds (six folds)."""
    return [(k, (k + 1) % 6) for k in range(6)]


def parts_have_two_classes(folds, hold_outs, codes):
    """Has every training part rows of two classes; if not, one has to deal again."""
    for held_out in hold_outs:
        part = {int(c) for k, c in zip(folds, codes, strict=True) if k not in held_out}
        if len(part) < 2:
            return False
    return True


# ---------------------------------------------------------------- the estimate


def _deals(table, dtype):
    """Table with three axes: deals, fits, rows."""
    table = np.asarray(table, dtype=dtype)
    return table[None] if table.ndim == 2 else table


def predicted_frequency(predictions, c, weight=None):
    """q_c: weighted share of c among the held-out rows, mean over fits, then deals."""
    predictions = _deals(predictions, object)
    w = _weights(weight, predictions.shape[2])
    over_deals = []
    for fits in predictions:
        over_fits = []
        for row in fits:
            held_out = [i for i in range(len(row)) if row[i] is not None]
            said_c = [i for i in held_out if row[i] == c]
            over_fits.append(w[said_c].sum() / w[held_out].sum())
        over_deals.append(sum(over_fits) / len(over_fits))
    return float(sum(over_deals) / len(over_deals))


def no_information(predictions, targets, weight=None):
    """Gamma = sum_c p_c (1 - q_c), p_c the weighted frequency of class c."""
    targets = np.asarray(targets)
    w = _weights(weight, len(targets))
    gamma = 0.0
    for c in np.unique(targets):
        p = w[targets == c].sum() / w.sum()
        gamma += p * (1 - predicted_frequency(predictions, c, weight))
    return float(gamma)


def corrected(H, Gamma, omega):
    """E = H at or above Gamma, else H omega / (1 - (1 - omega) H / Gamma)."""
    if H >= Gamma:
        return H
    return H * omega / (1 - (1 - omega) * H / Gamma)


def held_out_losses(losses):
    """H_i: mean over the fits that held row i out, then over the deals."""
    losses = _deals(losses, float)
    result = []
    for i in range(losses.shape[2]):
        over_deals = []
        for fits in losses:
            values = [fit[i] for fit in fits if not np.isnan(fit[i])]
            over_deals.append(sum(values) / len(values))
        result.append(sum(over_deals) / len(over_deals))
    return np.array(result)


def estimate(losses, predictions, targets, weight=None, omega=0.9):
    """Error E and what it is made of; omega .9 for halves, .95 for two thirds."""
    table, labels = _deals(losses, float), _deals(predictions, object)
    if table.shape != labels.shape:
        raise ValueError("one loss for every prediction")
    for index in np.ndindex(table.shape):
        if np.isnan(table[index]) != (labels[index] is None):
            raise ValueError("a loss where there is a prediction, and only there")
    H_i = held_out_losses(table)
    w = _weights(weight, len(H_i))
    H = float((w * H_i).sum() / w.sum())
    Gamma = no_information(labels, targets, weight)
    return {
        "hold_out": H,
        "no_information": Gamma,
        "relative_error": H / Gamma if Gamma > 0 else float("nan"),
        "losses": H_i,
        "error": corrected(H, Gamma, omega),
        "n_fits": table.shape[0] * table.shape[1],
    }


# ---------------------------------------------------------------- uncertainty


def effective_rows(weight):
    """Return (sum w)^2 / sum w^2, which is n for equal weights."""
    weight = np.asarray(weight, dtype=float)
    return float(weight.sum() ** 2 / (weight**2).sum())


def wilson(E, n_effective, level=0.9):
    """Wilson's score interval for a proportion E of n_effective trials."""
    z = norm.ppf((1 + level) / 2)
    scale = 1 + z**2 / n_effective
    middle = (E + z**2 / (2 * n_effective)) / scale
    root = sqrt(E * (1 - E) / n_effective + z**2 / (4 * n_effective**2))
    return float(middle - z * root / scale), float(middle + z * root / scale)


def interval(E, weight, level=0.9, kappa=1.6):
    """Wilson's interval with n / kappa trials, n = (sum w)^2 / sum w^2."""
    return wilson(E, effective_rows(weight) / kappa, level)


def standard_error(E, n, kappa=1.6):
    """Return sqrt(kappa (E (1 - E) + 1/n) / n)."""
    return sqrt(kappa * (E * (1 - E) + 1 / n) / n)


def paired(H_i_a, H_i_b, level=0.9, kappa2=2.5):
    """Difference of two mean held-out losses on the same folds, Student n - 1.

    se = sqrt(kappa2 (var(d) + 1/n^2) / n), d the differences row by row and var with
    the divisor n - 1; the p-value is two-sided. Without weights.
    """
    d = np.asarray(H_i_a, dtype=float) - np.asarray(H_i_b, dtype=float)
    n = len(d)
    mean = float(d.sum() / n)
    variance = float(((d - mean) ** 2).sum() / (n - 1))
    se = sqrt(kappa2 * (variance + 1 / n**2) / n)
    quantile = float(t.ppf((1 + level) / 2, n - 1))
    return {
        "difference": mean,
        "standard_error": se,
        "interval": (mean - quantile * se, mean + quantile * se),
        "p_value": float(2 * t.sf(abs(mean) / se, n - 1)),
    }
