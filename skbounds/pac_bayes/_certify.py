"""What members' mistakes on certification rows prove, and the weights they allow."""

from __future__ import annotations

import numpy as np

from skbounds.pac_bayes._bounds import (
    c_bound,
    complexity,
    make_rule,
    occam_limits,
    tail_limit,
)
from skbounds.pac_bayes._constants import invert_lower, invert_upper, kl_complexity
from skbounds.pac_bayes._posteriors import optimal_posterior

# Prior weights below this share of the largest are set to zero.
_NEGLIGIBLE = 1e-3
# Values of Catoni's constant tried where no training rows can fix it.
CATONI_GRID = np.logspace(-2.0, 1.0, 20)


def informed_prior(errors: np.ndarray, eta: float) -> np.ndarray:
    """Return weights proportional to exp(-eta errors), negligible ones removed.

    Infinitely many errors give weight zero, also with ``eta = 0``.
    """
    excess = errors - np.min(errors)
    weight = np.zeros(len(errors))
    finite = np.isfinite(excess)
    weight[finite] = np.exp(-eta * excess[finite])
    weight[weight < _NEGLIGIBLE * weight.max()] = 0.0
    return weight / weight.sum()


def catoni_constant(
    risk: float, n_samples: int, n_certification: int, delta: float
) -> float:
    """Return Catoni's constant for a risk that is expected from the training part.

    It is the best one if that is the empirical risk and posterior and prior agree.

    Parameters
    ----------
    risk : float
    n_samples : int
        Rows that the members certified together by it are measured on.
    n_certification : int
        All rows that share the one delta.
    delta : float
    """
    risk = min(max(risk, 0.5 / n_samples), 0.49)
    upper = invert_upper(np.array(risk), np.array(-np.log(delta) / n_certification))
    upper = min(float(upper), 1.0 - 1e-12)
    return float(np.log(upper * (1.0 - risk) / (risk * (1.0 - upper))))


def mixture_bound(
    weights: np.ndarray,
    catoni_c: np.ndarray,
    gibbs_risks: np.ndarray,
    divergences: np.ndarray,
    n_orders: int,
    n_certification: int,
    delta: float,
) -> float:
    r"""Bound the risk of the mixture of Gibbs classifiers certified block by block.

    With :math:`a_b = 1 / (1 - e^{-c_b})` the mixture's risk is at most

    .. math:: \sum_b w_b a_b - \exp\Bigl(\sum_b w_b (\ln a_b - c_b L_b)
        - \frac{\sum_b KL_b / J + \ln(1/\delta)}{m}\Bigr).

    The product over blocks of :math:`\sum_i P_b(i) \exp(m_b[-\ln(1 - R_{b,i}/a_b) - c_b
    l_{b,i}])` has mean at most one, as each block is independent of what its factor was
    built from; over several orders the logarithms are averaged, which Jensen's
    inequality allows; -ln(1 - R/a) is convex, and the mean of the R_b is maximised
    under the constraint that results.

    Parameters
    ----------
    weights : ndarray of shape (n_blocks,)
        Probability of each block of each order, in proportion to its rows.
    catoni_c : ndarray of shape (n_blocks,)
        Catoni's constants, each fixed on rows before its block.
    gibbs_risks, divergences : ndarrays of shape (n_blocks,)
        Empirical risk and KL(Q, P) of each block's posterior.
    n_orders : int
        Number J of orders.
    n_certification : int
        Rows m of one order's blocks.
    delta : float
    """
    a = -1.0 / np.expm1(-catoni_c)
    cost = (np.sum(divergences) / n_orders - np.log(delta)) / n_certification
    exponent = np.sum(weights * (np.log(a) - catoni_c * gibbs_risks)) - cost
    return float(np.sum(weights * a) - np.exp(exponent))


class HoldoutEvidence:
    """What one certification part says about a vote and its members.

    Parameters
    ----------
    wrong : ndarray of bool of shape (n_rows, n_members)
        Mistakes of the members.
    codes : ndarray of int of shape (n_rows, n_members)
        Their predictions.
    prior, posterior : ndarrays of shape (n_members,)
    vote_errors : int or None
        Mistakes of the vote with the prior's weights; None if it has the posterior's,
        which depend on these rows.
    rule_options : dict
        divergence, distance, constants and catoni_c of the Gibbs bound.
    n_tried : int
        Number of Gibbs bounds that the one reported was chosen from.
    simultaneous : bool
        Whether the bounds are to hold together at twice the level each is given.
    """

    def __init__(
        self, wrong, codes, prior, posterior, *, vote_errors, rule_options, n_tried,
        simultaneous,
    ):  # fmt: skip
        self.n_rows = len(wrong)
        self.risks = wrong.mean(axis=0)
        self.prior, self.posterior = prior, posterior
        self.gibbs_risk = float(min(posterior @ self.risks, 1.0))
        self.vote_errors = vote_errors
        self.vote_weights = posterior if vote_errors is None else prior
        self.rule_options, self.n_tried = rule_options, n_tried
        self.simultaneous = simultaneous
        share, one = wrong @ self.vote_weights, (codes == 1) @ self.vote_weights
        self.joint_risk = float(min(np.mean(share**2), 1.0))
        self.disagreement = float(np.clip(np.mean(2.0 * one * (1.0 - one)), 0.0, 0.5))

    def _gibbs(self, delta, risks, posterior):
        rule = make_rule(
            n_samples=self.n_rows, delta=delta / self.n_tried, **self.rule_options
        )
        cost = complexity(posterior, self.prior, self.rule_options["divergence"])
        return rule(np.asarray(risks), np.asarray(cost))

    def risk_bound(self, delta: float) -> float:
        """Bound the risk of the Gibbs classifier."""
        return float(self._gibbs(delta, self.gibbs_risk, self.posterior))

    def vote_bound(self, delta: float) -> float:
        """Bound the risk of the vote."""
        if self.vote_errors is None:
            return self.vote_bound_by_gibbs(delta)
        return float(tail_limit(self.vote_errors, self.n_rows, delta))

    def vote_bound_by_gibbs(self, delta: float) -> float:
        """Bound the risk of the vote by twice that of drawing one of its voters."""
        weights = self.vote_weights
        return 2.0 * float(self._gibbs(delta, weights @ self.risks, weights))

    def member_bounds(self, delta: float) -> np.ndarray:
        """Bound the risks of all members at once.

        Where three bounds are to hold at two levels, the event of the Gibbs bound
        covers the single members, as it covers all posteriors.
        """
        if self.simultaneous and self.vote_errors is not None:
            return self._gibbs(delta, self.risks, np.eye(len(self.prior)))
        return occam_limits(self.risks, self.n_rows, delta * self.prior)

    def terms(self, delta: float, n_classes: int) -> dict:
        """Return every bound by name, each at the level delta on its own."""
        options, m, weights = self.rule_options, self.n_rows, self.vote_weights
        kl, level = complexity(weights, self.prior, "kl"), kl_complexity(m, "exact")
        budget = (2.0 * kl + level - np.log(delta)) / m
        gibbs_name = f"gibbs_{options['divergence']}_{options['distance']}"
        terms = {
            gibbs_name: self.risk_bound(delta),
            "vote_twice_gibbs": self.vote_bound_by_gibbs(delta),
            "vote_tandem": 4.0 * float(invert_upper(self.joint_risk, budget)),
            "occam": float(np.min(self.member_bounds(delta))),
        }
        if n_classes == 2:
            half = level - np.log(0.5 * delta)
            risk = min(float(weights @ self.risks), 1.0)
            terms["vote_c_bound"] = c_bound(
                invert_upper(risk, (kl + half) / m),
                invert_lower(self.disagreement, (2.0 * kl + half) / m),
            )
        if self.vote_errors is not None:
            terms["vote_binomial_tail"] = self.vote_bound(delta)
        return terms


class MixtureEvidence:
    """What blocks that are certified one after the other say about their mixture.

    Parameters
    ----------
    blocks : list of dict
        One per block of each order: "risks", "prior", "posterior" of its members,
        "n_rows" and "catoni_c".
    n_orders : int
    vote_is_posterior : bool
        Whether the vote has the posteriors' weights or the priors'.
    """

    def __init__(self, blocks, n_orders, vote_is_posterior):
        self.n_orders, self.vote_is_posterior = n_orders, vote_is_posterior
        self.n_rows = sum(block["n_rows"] for block in blocks) // n_orders
        self.weights = np.array([block["n_rows"] for block in blocks], dtype=np.float64)
        self.weights /= self.weights.sum()
        self.catoni_c = np.array([block["catoni_c"] for block in blocks])
        self.block_risks = np.array([b["posterior"] @ b["risks"] for b in blocks])
        self.prior_risks = np.array([b["prior"] @ b["risks"] for b in blocks])
        self.divergences = np.array(
            [complexity(b["posterior"], b["prior"], "kl") for b in blocks]
        )
        self.gibbs_risk = float(self.weights @ self.block_risks)
        self.risks = np.concatenate([block["risks"] for block in blocks])
        spread = list(zip(self.weights, blocks, strict=True))
        self.prior = np.concatenate([w * block["prior"] for w, block in spread])
        self.posterior = np.concatenate([w * block["posterior"] for w, block in spread])
        self.limits_of = [
            (block["risks"], block["n_rows"], block["prior"] / len(blocks))
            for block in blocks
        ]
        self.vote_errors = None

    def risk_bound(self, delta: float) -> float:
        """Bound the risk of the mixture of Gibbs classifiers."""
        return mixture_bound(
            self.weights, self.catoni_c, self.block_risks, self.divergences,
            self.n_orders, self.n_rows, delta,
        )  # fmt: skip

    def vote_bound(self, delta: float) -> float:
        """Bound the risk of the vote over all members."""
        return self.vote_bound_by_gibbs(delta)

    def vote_bound_by_gibbs(self, delta: float) -> float:
        """Bound the risk of the vote by twice that of drawing one of its voters."""
        risks, divergences = self.block_risks, self.divergences
        if not self.vote_is_posterior:
            risks, divergences = self.prior_risks, np.zeros(len(divergences))
        return 2.0 * mixture_bound(
            self.weights, self.catoni_c, risks, divergences, self.n_orders, self.n_rows,
            delta,
        )  # fmt: skip

    def member_bounds(self, delta: float) -> np.ndarray:
        """Bound the risks of all members of all blocks and orders at once."""
        return np.concatenate(
            [
                occam_limits(risks, n_rows, delta * prior)
                for risks, n_rows, prior in self.limits_of
            ]
        )

    def terms(self, delta: float, n_classes: int) -> dict:
        """Return every bound by name, each at the level delta on its own."""
        return {
            "gibbs_mixture": self.risk_bound(delta),
            "vote_twice_gibbs": self.vote_bound_by_gibbs(delta),
            "occam": float(np.min(self.member_bounds(delta))),
        }


def weigh_members(
    wrong, codes, truth, prior, *, fixed_vote, level, divergence, distance, constants,
    catoni_c, simultaneous, n_classes,
):  # fmt: skip
    """Return the evidence of a certification part, with the posterior that fits it.

    Parameters
    ----------
    wrong, codes : ndarrays of shape (n_rows, n_members)
    truth : ndarray of int of shape (n_rows,)
    prior : ndarray of shape (n_members,)
    fixed_vote : bool
        Whether the vote uses the prior's weights.
    level : float
        Level of the bound that the posterior minimises.
    catoni_c : float or None
        None with ``distance="catoni"``: the best of a grid, at the price of trying.
    """
    options = {"divergence": divergence, "distance": distance, "constants": constants}
    risks, m, n_tried = wrong.mean(axis=0), len(wrong), 1
    if distance == "catoni" and catoni_c is None:
        n_tried = len(CATONI_GRID)
        found = [
            optimal_posterior(
                risks, m, delta=level / n_tried, prior=prior, catoni_c=c, **options
            )
            for c in CATONI_GRID
        ]
        best = int(np.argmin([bound for _, bound in found]))
        posterior, catoni_c = found[best][0], float(CATONI_GRID[best])
    else:
        posterior, _ = optimal_posterior(
            risks, m, delta=level, prior=prior, catoni_c=catoni_c, **options
        )
    vote_errors = None
    if fixed_vote:
        voted = plurality(vote_shares(codes, prior, n_classes))
        vote_errors = int(np.sum(voted != truth))
    return HoldoutEvidence(
        wrong, codes, prior, posterior, vote_errors=vote_errors, n_tried=n_tried,
        rule_options={**options, "catoni_c": catoni_c}, simultaneous=simultaneous,
    )  # fmt: skip


def vote_shares(codes: np.ndarray, weights: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the weight of the members that predict each class, to 12 digits.

    Rounding makes equal weights exact ties.
    """
    shares = np.column_stack([(codes == k) @ weights for k in range(n_classes)])
    return np.round(shares, 12)


def plurality(shares: np.ndarray) -> np.ndarray:
    """Return the class with the largest share, ties to the smaller one."""
    return np.argmax(shares, axis=1)
