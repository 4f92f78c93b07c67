"""Outputs of Student's multivariate t law: Gaussians for data with heavy tails."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, stdtr, stdtrit

from skbounds.hmm._emissions._gaussian import Gaussian
from skbounds.hmm._emissions._scatter import LEAST_WEIGHT

# Range of the degrees of freedom; beyond, a law is Gaussian for all that rows can tell.
LEAST_DF, LARGEST_DF = 0.1, 1000.0


class Student(Gaussian):
    """Outputs t(m_j, S_j, nu_j): N(m_j, S_j / u) with u from a gamma law.

    The E-step gives each row a weight for each state, small for rows far away.
    Covariances are the scale matrices; see `Gaussian` for the parameters.
    """

    names = ("means", "covariances", "df")

    def log_densities(self, rows, law):
        """Return log p(x_i | state j), an array (n, s)."""
        forms, logs = self._positive_forms(rows, law)
        df, d = law["df"], rows.n_observed
        half = 0.5 * (df + d)
        result = np.log1p(forms / df)
        result *= -half
        result -= 0.5 * (logs + d * np.log(np.pi * df))
        result += gammaln(half) - gammaln(0.5 * df)
        return result

    def _positive_forms(self, rows, law):
        forms, logs = self._forms(rows, law)
        # Rounding errors of expanded squares may be negative.
        return np.maximum(forms, 0.0, out=forms), logs

    def linear(self, rows, law, reference):
        """Return None: the densities are not of that kind."""

    def weights(self, rows, posterior, law):
        """Return posteriors times the weights of rows, and sums about the weights."""
        forms, _ = self._positive_forms(rows, law)
        df, d = law["df"], rows.n_observed
        half = 0.5 * (df + d)
        u = (df + d) / (df + forms)
        told = np.log(u) - u + (digamma(half) - np.log(half))
        weight = posterior * u
        if rows.observed is None:
            size = posterior.sum(axis=0)
            counts = np.repeat(size[:, None], rows.values.shape[1], axis=1)
            sums = (size, (posterior * told).sum(axis=0), weight.sum(axis=0), counts)
            return weight, sums
        # Rows without any entry say nothing about outputs.
        own = posterior * (rows.n_observed > 0.0)
        sums = (own.sum(axis=0), (own * told).sum(axis=0), (own * u).sum(axis=0))
        return weight, (*sums, self._score_total(rows, posterior))

    def maximise(self, sums, law, reference, fixed=()):
        """Return the next law: likelier, by one conditional step for each part.

        Scale matrices are those of the expanded model (Kent, Tyler and Vardi 1994),
        where u may have another scale: a state's rows have weights of mean `scale`.
        """
        total, first, second, size, told, weight, counts = sums
        some = size > LEAST_WEIGHT
        safe = np.where(some, size, 1.0)
        df = [
            degrees_of_freedom(value) if there else old
            for value, there, old in zip(told / safe, some, law["df"], strict=True)
        ]
        df = law["df"] if "df" in fixed else np.array(df)
        scale = np.where(some, weight / safe, 1.0)
        if self.prior is not None:
            # It is not one of the expanded model.
            scale = np.ones(len(df))
        elif self.covariance_type == "tied":
            # One scale for the states that share a matrix.
            whole = (df * size).sum()
            scale = (df * weight).sum() / whole if whole > LEAST_WEIGHT else 1.0
            scale = np.full(len(df), scale)
        means, products, seen = self._moments_of(
            (total, first, second), law, reference, fixed
        )
        covariances = self._covariances(
            total, counts * scale[:, None], seen, products, law["covariances"]
        )
        return {"means": means, "covariances": covariances, "df": df}

    def distance(self, law, other, unit):
        """Return differences of the means, and of the inverse degrees of freedom."""
        gaps = super().distance(law, other, unit)
        return np.r_[gaps, 1.0 / law["df"] - 1.0 / other["df"]]

    def n_parameters_of(self, name, law):
        """Return the number of free parameters of a part of the law."""
        if name == "df":
            return len(law["df"])
        return super().n_parameters_of(name, law)

    def draw(self, law, states, rng):
        """Draw a row for each state; the law has full matrices."""
        X = super().draw(law, states, rng)
        df = law["df"][states]
        scale = np.sqrt(df / rng.chisquare(df))
        return law["means"][states] + (X - law["means"][states]) * scale[:, None]

    def moments(self, law):
        """Return means and covariances; nan and inf where the law has none."""
        df = law["df"]
        with np.errstate(divide="ignore"):
            factor = np.where(df > 2.0, df / np.maximum(df - 2.0, 0.0), np.inf)
        means = np.where(df[:, None] > 1.0, law["means"], np.nan)
        scales = law["covariances"]
        with np.errstate(invalid="ignore"):
            covariances = factor[:, None, None] * scales
        return means, np.where(scales == 0.0, 0.0, covariances)

    def cdf(self, law, column, values):
        """Return P(X_column <= value | state), an array (..., s)."""
        deviation = np.sqrt(law["covariances"][:, column, column])
        gaps = (values[..., None] - law["means"][:, column]) / deviation
        return stdtr(law["df"], gaps)

    def ppf(self, law, column, levels):
        """Return the states' quantiles of a column, an array (n_levels, s)."""
        deviation = np.sqrt(law["covariances"][:, column, column])
        quantiles = stdtrit(law["df"], levels[:, None])
        return law["means"][:, column] + quantiles * deviation

    def _score_weights(self, rows, posterior, law):
        weight, _ = self.weights(rows, posterior, law)
        return weight, posterior, self._score_total(rows, posterior)

    def score(self, rows, posterior, law):
        """Return the derivatives of the expected log-density by all entries."""
        found = super().score(rows, posterior, law)
        forms, _ = self._positive_forms(rows, law)
        df, d = law["df"], rows.n_observed
        by_df = digamma(0.5 * (df + d)) - digamma(0.5 * df) - d / df
        by_df = by_df - np.log1p(forms / df)
        by_df += (df + d) * forms / (df * (df + forms))
        return {**found, "df": 0.5 * (posterior * by_df).sum(axis=0)}


def degrees_of_freedom(told):
    """Return the root of log(nu / 2) - digamma(nu / 2) + 1 + told, within the range.

    `told` is the mean of log u - u and of E[log u] - log E[u] given the rows.
    """

    def gap(log_df):
        half = 0.5 * np.exp(log_df)
        return np.log(half) - digamma(half) + 1.0 + told

    low, high = np.log(LEAST_DF), np.log(LARGEST_DF)
    # It falls in nu.
    if gap(high) >= 0.0:
        return LARGEST_DF
    if gap(low) <= 0.0:
        return LEAST_DF
    return float(np.exp(brentq(gap, low, high, xtol=1e-12)))
