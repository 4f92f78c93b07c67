"""What members' mistakes on certification rows prove, and the weights they allow."""

from __future__ import annotations

import numpy as np

from skbounds.pac_bayes._bounds import complexity, make_rule
from skbounds.pac_bayes._constants import invert_upper
from skbounds.pac_bayes._posteriors import optimal_posterior
from skbounds.pac_bayes._sample import RowSample
from skbounds.pac_bayes._second_order import (
    best_vote,
    c_limit,
    second_order,
    tandem_limit,
)
from skbounds.pac_bayes._stacking import plurality, vote_shares
from skbounds.pac_bayes._tails import occam_limits, randomized_tail_limit

# Values of Catoni's constant tried where no training rows can fix it.
CATONI_GRID = np.logspace(-2.0, 1.0, 20)


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
    codes : ndarray of int of shape (n_rows, n_members)
        Predictions of the members.
    truth : ndarray of int of shape (n_rows,)
        Classes; -1 for labels that are none.
    sample : RowSample or GroupSample
        What of these rows is independent.
    prior, posterior : ndarrays of shape (n_members,)
    n_classes : int
    kind : {'prior', 'bound', 'tandem'}
        Which weights vote: the prior's, which did not see these rows; the posterior's
        that minimise the Gibbs bound; or those that minimise the vote's.
    rule_options : dict
        divergence, distance, constants and catoni_c of the Gibbs bound.
    n_tried : int
        Number of Gibbs bounds that the one reported was chosen from.
    simultaneous : bool
        Whether the bounds are to hold together at twice the level each is given.
    tail_u : float or None
        The number that randomises the tail of the vote; None: the exact tail.
    """

    def __init__(
        self, codes, truth, sample, prior, posterior, n_classes, *, kind, rule_options,
        n_tried, simultaneous, tail_u=None,
    ):  # fmt: skip
        wrong = codes != truth[:, None]
        self.sample, self.n_units, self.truth = sample, sample.size, truth
        self.risks = sample.mean(wrong)
        self.prior, self.posterior, self.kind = prior, posterior, kind
        self.gibbs_risk = float(min(posterior @ self.risks, 1.0))
        self.vote_weights = prior if kind == "prior" else posterior
        self.voted = plurality(vote_shares(codes, self.vote_weights, n_classes))
        self.rule_options, self.n_tried = rule_options, n_tried
        self.simultaneous, self.tail_u = simultaneous, tail_u
        self.n_classes = n_classes
        self.joint_risk, self.disagreement = second_order(
            wrong, codes, self.vote_weights, sample.shares
        )

    @property
    def is_grouped(self):
        """Whether groups of rows are what is independent."""
        return self.sample.grouped

    @property
    def is_fixed(self):
        """Whether the vote was fixed before the rows were looked at."""
        return self.kind == "prior"

    @property
    def vote_wrong(self):
        """Which rows the vote errs on."""
        return self.voted != self.truth

    @property
    def vote_errors(self):
        """Mistakes of the vote."""
        return int(np.sum(self.vote_wrong))

    def _gibbs(self, delta, risks, posterior):
        rule = make_rule(
            n_samples=self.n_units, delta=delta / self.n_tried, **self.rule_options
        )
        cost = complexity(posterior, self.prior, self.rule_options["divergence"])
        return rule(np.asarray(risks), np.asarray(cost))

    def risk_bound(self, delta: float) -> float:
        """Bound the risk of the Gibbs classifier."""
        return float(self._gibbs(delta, self.gibbs_risk, self.posterior))

    def vote_bound(self, delta: float) -> float:
        """Bound the risk of the vote."""
        if self.is_fixed and self.tail_u is not None:
            return randomized_tail_limit(
                self.vote_errors, self.n_units, delta, self.tail_u
            )
        if self.is_fixed:
            return self.sample.limit(self.vote_wrong, delta)
        by_gibbs = self.vote_bound_by_gibbs
        if self.kind == "bound":
            return by_gibbs(delta)
        # The smallest of several bounds, each at its share of the level.
        share = delta / 4.0 if self.n_classes == 2 else delta / 2.0
        found = [by_gibbs(delta / 2.0), self.tandem_bound(share)]
        if self.n_classes == 2:
            found.append(self.c_bound(share))
        return min(found)

    def vote_bound_by_gibbs(self, delta: float) -> float:
        """Bound the risk of the vote by twice that of drawing one of its voters."""
        weights = self.vote_weights
        return 2.0 * float(self._gibbs(delta, weights @ self.risks, weights))

    def tandem_bound(self, delta: float) -> float:
        """Bound the risk of the vote by the members' joint mistakes."""
        kl = complexity(self.vote_weights, self.prior, "kl")
        return 4.0 * float(tandem_limit(self.joint_risk, kl, self.n_units, delta))

    def c_bound(self, delta: float) -> float:
        """Bound the risk of a vote of two classes by risk and disagreement."""
        weights = self.vote_weights
        risk = min(float(weights @ self.risks), 1.0)
        kl = complexity(weights, self.prior, "kl")
        return c_limit(risk, self.disagreement, kl, self.n_units, delta)

    def member_bounds(self, delta: float) -> np.ndarray:
        """Bound the risks of all members at once.

        Where three bounds are to hold at two levels, the event of the Gibbs bound
        covers the single members, as it covers all posteriors.
        """
        if self.simultaneous and self.is_fixed:
            return self._gibbs(delta, self.risks, np.eye(len(self.prior)))
        return self.sample.limits(self.risks, delta * self.prior)

    def terms(self, delta: float) -> dict:
        """Return every bound by name, each at the level delta on its own."""
        options = self.rule_options
        gibbs_name = f"gibbs_{options['divergence']}_{options['distance']}"
        terms = {
            gibbs_name: self.risk_bound(delta),
            "vote_twice_gibbs": self.vote_bound_by_gibbs(delta),
            "vote_tandem": self.tandem_bound(delta),
            "occam": float(np.min(self.member_bounds(delta))),
        }
        if self.n_classes == 2:
            terms["vote_c_bound"] = self.c_bound(delta)
        if self.is_fixed:
            name = "vote_groups_kl" if self.sample.grouped else "vote_binomial_tail"
            terms[name] = self.sample.limit(self.vote_wrong, delta)
            if self.tail_u is not None:
                terms["vote_randomized_tail"] = self.vote_bound(delta)
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
        self.n_units = sum(block["n_rows"] for block in blocks) // n_orders
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
        self.is_fixed = self.is_grouped = False
        self.kind = "mixture"

    def risk_bound(self, delta: float) -> float:
        """Bound the risk of the mixture of Gibbs classifiers."""
        return mixture_bound(
            self.weights, self.catoni_c, self.block_risks, self.divergences,
            self.n_orders, self.n_units, delta,
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
            self.weights, self.catoni_c, risks, divergences, self.n_orders,
            self.n_units, delta,
        )  # fmt: skip

    def member_bounds(self, delta: float) -> np.ndarray:
        """Bound the risks of all members of all blocks and orders at once."""
        return np.concatenate(
            [
                occam_limits(risks, n_rows, delta * prior)
                for risks, n_rows, prior in self.limits_of
            ]
        )

    def terms(self, delta: float) -> dict:
        """Return every bound by name, each at the level delta on its own."""
        return {
            "gibbs_mixture": self.risk_bound(delta),
            "vote_twice_gibbs": self.vote_bound_by_gibbs(delta),
            "occam": float(np.min(self.member_bounds(delta))),
        }


def weigh_members(
    codes, truth, prior, *, kind, level, divergence, distance, constants, catoni_c,
    simultaneous, n_classes, tail_u=None, sample=None,
):  # fmt: skip
    """Return the evidence of a certification part, with the posterior that fits it.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows, n_members)
    truth : ndarray of int of shape (n_rows,)
        -1 for labels that are no class.
    prior : ndarray of shape (n_members,)
    kind : {'prior', 'bound', 'tandem'}
        Which weights vote.
    level : float
        Level of the bound that the posterior minimises.
    catoni_c : float or None
        None with ``distance="catoni"``: the best of a grid, at the price of trying.
    sample : RowSample, GroupSample or None
        What of the rows is independent; None: each.
    """
    options = {"divergence": divergence, "distance": distance, "constants": constants}
    wrong = codes != truth[:, None]
    sample = RowSample(len(wrong)) if sample is None else sample
    risks, m, n_tried = sample.mean(wrong), sample.size, 1
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
    if kind == "tandem":
        posterior = best_vote(wrong, codes, prior, level, n_classes, sample)
    return HoldoutEvidence(
        codes, truth, sample, prior, posterior, n_classes, kind=kind, n_tried=n_tried,
        rule_options={**options, "catoni_c": catoni_c}, simultaneous=simultaneous,
        tail_u=tail_u,
    )  # fmt: skip
