// The mixture of experts.
//
// Expert 0 is dual-averaged OGD (Theorem 4.2 for an unknown norm), the others are AdaGrad
// with one accumulator per feature.
#pragma once
#include "../common/lanes.h"
#include "../common/vexp.h"
#include "accounts.h"
#include "losses.h"
#include "table.h"

namespace skb::SKB_LEVEL {
namespace {

// Of expert 0: its log-loss, and <delta, theta>.
struct BaseLosses {
    double loss, inner;
};

// Runs softmax experts and mixes them. chance[m] becomes the probability that expert m gave
// to the label y, delta the residuals of all experts, u the mixed probabilities.
template <class T> BaseLosses softmax_experts(const Stream<T> &s, Target y) {
    const index n_outputs = s.n_outputs, n_experts = s.rates.size;
    const index n = n_outputs * n_experts;
    double *__restrict score = s.score, *__restrict power = s.power, *__restrict u = s.u;
    double *__restrict delta = s.delta, *__restrict chance = s.chance;
    const double *__restrict weights = s.weights.data;
    for (index m = 0; m < n_experts; ++m) {
        double *of = score + m * n_outputs;
        double top = of[0];
        for (index k = 1; k < n_outputs; ++k) top = larger(top, of[k]);
        for (index k = 0; k < n_outputs; ++k) of[k] -= top;
    }
    for (index k = 0; k < n; ++k) power[k] = exp_nonpositive(score[k]);
    for (index m = 0; m < n_experts; ++m) {
        double total = 0.0;
        for (index k = m * n_outputs; k < (m + 1) * n_outputs; ++k) total += power[k];
        chance[m] = 1.0 / total;
    }
    const double base = -log(chance[0]) - score[y];
    for (index k = 0; k < n_outputs; ++k) u[k] = 0.0;
    for (index m = 0; m < n_experts; ++m) {
        const double inverse = chance[m], weight = weights[m];
        for (index k = 0; k < n_outputs; ++k) {
            const double probability = power[m * n_outputs + k] * inverse;
            delta[m * n_outputs + k] = probability;
            u[k] += weight * probability;
        }
    }
    for (index m = 0; m < n_experts; ++m) {
        chance[m] = delta[m * n_outputs + y];
        delta[m * n_outputs + y] -= 1.0;
    }
    double inner = 0.0;
    for (index k = 0; k < n_outputs; ++k) inner += delta[k] * score[k];
    return {base, inner};
}

// Runs independent sigmoid experts per label and mixes them label by label; chance has one
// row per label.
template <class T> BaseLosses sigmoid_experts(const Stream<T> &s, const Target *target) {
    const index n_outputs = s.n_outputs, n_experts = s.rates.size;
    const index n = n_outputs * n_experts;
    const double *__restrict score = s.score;
    double *__restrict power = s.power, *__restrict delta = s.delta;
    double *__restrict u = s.u, *__restrict chance = s.chance;
    const double *__restrict weights = s.weights.data;
    for (index k = 0; k < n; ++k) power[k] = exp_nonpositive(-fabs(score[k]));
    for (index k = 0; k < n_outputs; ++k) u[k] = 0.0;
    for (index m = 0; m < n_experts; ++m) {
        const index begin = m * n_outputs;
        for (index k = 0; k < n_outputs; ++k) {
            const double tail = power[begin + k];
            const double upper = 1.0 / (1.0 + tail), lower = tail * upper;
            const double one = score[begin + k] >= 0.0 ? upper : lower;
            const double zero = score[begin + k] >= 0.0 ? lower : upper;
            u[k] += weights[k * n_experts + m] * one;
            chance[k * n_experts + m] = target[k] == 1 ? one : zero;
            delta[begin + k] = target[k] == 1 ? -zero : one;
        }
    }
    double base = 0.0, inner = 0.0;
    for (index k = 0; k < n_outputs; ++k) {
        base += softplus(target[k] == 1 ? -score[k] : score[k]);
        inner += delta[k] * score[k];
    }
    return {base, inner};
}

// Updates the Bayes weights of one prediction's experts; returns the mixed log-loss. The
// weights are shared in proportion to the loss.
//
// A row of a share of the largest weight so far counts by this power of its likelihoods:
// for powers of at most one the mixed loss is paid for (Jensen), and the mixture costs
// ln(n_experts) times the largest weight.
template <int LOSS, class T>
double reweigh(const Stream<T> &s, index group, Target label, double power) {
    const index n_experts = s.rates.size, n_outputs = s.n_outputs;
    const double share = s.settings.share * power, n = double(n_experts);
    double *weights = s.weights.row(group), *chance = s.chance + group * n_experts;
    double mixed = 0.0;
    for (index m = 0; m < n_experts; ++m) mixed += weights[m] * chance[m];
    if (mixed > 1e-290) {
        const double alpha = share * (1.0 - smaller(mixed, 1.0));
        double total = mixed;
        if (power < 1.0) {
            total = 0.0;
            for (index m = 0; m < n_experts; ++m) {
                chance[m] = pow(chance[m], power);
                total += weights[m] * chance[m];
            }
        }
        const double factor = (1.0 - alpha) / total;
        for (index m = 0; m < n_experts; ++m) {
            weights[m] *= factor * chance[m];
            weights[m] += alpha / n;
            // Without sharing, underflow would remove an expert for good.
            weights[m] = larger(weights[m], 1e-300);
        }
        return -log(mixed);
    }
    // All experts' probabilities underflow: the same with logarithms.
    double top = -INFINITE, top_posterior = -INFINITE;
    for (index m = 0; m < n_experts; ++m) {
        const index begin = m * n_outputs;
        double value;
        if constexpr (LOSS == LOGISTIC) {
            double total = 0.0;
            for (index k = begin; k < begin + n_outputs; ++k) total += s.power[k];
            value = s.score[begin + label] - log(total);
        } else {
            const double margin = s.score[begin + group];
            value = -softplus(label == 1 ? -margin : margin);
        }
        chance[m] = value;
        const double prior = log(larger(weights[m], 1e-300));
        top = larger(top, value + prior);
        top_posterior = larger(top_posterior, power * value + prior);
    }
    double total = 0.0, posterior = 0.0;
    for (index m = 0; m < n_experts; ++m) {
        const double value = chance[m], prior = log(larger(weights[m], 1e-300));
        total += exp(value + prior - top);
        chance[m] = exp(power * value + prior - top_posterior);
        posterior += chance[m];
    }
    for (index m = 0; m < n_experts; ++m)
        weights[m] = (1.0 - share) * chance[m] / posterior + share / n;
    return -top - log(total);
}

// Takes over a larger weight than all before: the Bayes weights become those that the same
// losses would have led to with it.
template <class T> void raise_largest_weight(const Stream<T> &s, double weight) {
    const double power = s.scalars[WEIGHT_MAX] / weight;
    s.scalars[WEIGHT_MAX] = weight;
    if (!(power > 0.0)) return;
    for (index group = 0; group < s.weights.rows; ++group) {
        double *weights = s.weights.row(group), total = 0.0;
        for (index m = 0; m < s.rates.size; ++m) {
            weights[m] = larger(pow(weights[m], power), 1e-300);
            total += weights[m];
        }
        for (index m = 0; m < s.rates.size; ++m) weights[m] /= total;
    }
}

// Losses, <gradient, weights> and gradients of all experts.
template <int LOSS, class T>
void account_experts(const Stream<T> &s, index n, const Target *target, double weight) {
    const index n_outputs = s.n_outputs, n_experts = s.rates.size;
    double *losses = s.accounts.row(0), *inner = s.accounts.row(1);
    for (index m = 0; m < n_experts; ++m) {
        const index begin = m * n_outputs;
        double loss = 0.0, product = 0.0;
        if constexpr (LOSS == LOGISTIC) {
            double total = 0.0;
            for (index k = begin; k < begin + n_outputs; ++k) total += s.power[k];
            loss = log(total) - s.score[begin + target[0]];
        } else {
            for (index k = 0; k < n_outputs; ++k) {
                const double margin = s.score[begin + k];
                loss += softplus(target[k] == 1 ? -margin : margin);
            }
        }
        for (index k = begin; k < begin + n_outputs; ++k) product += s.delta[k] * s.score[k];
        losses[m] += weight * loss;
        inner[m] += weight * product;
    }
    const index width = (n_experts - 1) * n_outputs;
    const double *residual = s.delta + n_outputs;
    add_outer(s.idx, s.val, n, weight, residual, width, s.gradients);
}

// The step of all experts on the row's features.
template <int W, class T>
void learn_mixture(Stream<T> &s, index n, double feature, double base, double weight) {
    const index n_experts = s.rates.size, n_outputs = s.n_outputs;
    const index width = n_outputs * n_experts;
    double *scalars = s.scalars.data;
    if (weight != 1.0)
        for (index k = 0; k < width; ++k) s.delta[k] *= weight;
    for (index k = 0; k < n_outputs; ++k) s.slow[k] = T(s.delta[k]);
    for (index m = 1; m < n_experts; ++m)
        for (index k = m * n_outputs; k < (m + 1) * n_outputs; ++k)
            s.fast[k] = T(s.rates[m] * s.delta[k]);
    if (has_own_sums(s)) {
        for (index m = 1; m < n_experts; ++m)
            s.energies[m - 1] = squared_norm(s.delta, m * n_outputs, (m + 1) * n_outputs);
        own_step_sizes(s.idx, s.val, n, s.table, width, feature, scalars[WEIGHT_MAX],
                       s.energies, n_experts, s.own_rate);
        own_descend(s.idx, s.val, n, s.own_rate, s.fast, s.slow, n_outputs, n_experts,
                    s.table);
        // Weights act on rows of unit length: their mean is over time alone.
        scalars[CUMULATED] += weight;
        scalars[CUMULATED_BASE] += weight * base;
        if (s.average.rows == 0) return;
        for (index j = 0; j < n; ++j) {
            double *__restrict average = s.average.row(s.idx[j]);
            const double slow = scalars[CUMULATED_BASE] * double(s.val[j]);
            for (index k = 0; k < n_outputs; ++k) average[k] += slow * double(s.slow[k]);
            for (index m = 1; m < n_experts; ++m) {
                const double c = scalars[CUMULATED] * double(T(s.own_rate[(m - 1) * n + j]));
                for (index k = m * n_outputs; k < (m + 1) * n_outputs; ++k)
                    average[k] += c * double(s.fast[k]);
            }
        }
        return;
    }
    double energy = 0.0;
    if (n_experts > 1)
        energy = squared_norm(s.delta, n_outputs, width) / double(n_experts - 1);
    step_sizes(s.idx, s.val, n, s.table, width, feature, scalars[WEIGHT_MAX], energy,
               s.rate);
    descend<W>(s.idx, s.val, n, s.rate, s.fast, s.slow, s.table);
    scalars[CUMULATED] += weight * feature;
    scalars[CUMULATED_BASE] += weight * base;
    if (s.average.rows == 0) return;
    for (index j = 0; j < n; ++j) {
        double *__restrict average = s.average.row(s.idx[j]);
        const double first = scalars[CUMULATED] * double(s.rate[j]);
        const double second = scalars[CUMULATED_BASE] * double(s.val[j]);
        for (index k = 0; k < width; ++k)
            average[k] += first * double(s.fast[k]) + second * double(s.slow[k]);
    }
}

// A row's length, and the factors that its scores have.
struct Factors {
    double norm, feature, base;
    bool active;
};

// Takes a row's length and weight into the state, and fills the scores.
template <int W, class T> Factors look_mixture(Stream<T> &s, index n, double weight) {
    const index n_outputs = s.n_outputs, width = n_outputs * s.rates.size;
    double *scalars = s.scalars.data;
    const double norm = squared_norm(s.val, 0, n);
    scalars[ROWS] += 1.0;
    scalars[NORM_SUM] += norm;
    scalars[NORM_MAX] = larger(scalars[NORM_MAX], weight * norm);
    scalars[WEIGHT_SUM] += weight;
    if (weight > scalars[WEIGHT_MAX]) raise_largest_weight(s, weight);
    const bool own = has_own_sums(s);
    const bool active = own ? norm > 0.0 : scalars[NORM_SUM] > 0.0;
    double feature = 0.0, base = 0.0;
    if (active) {
        feature = own ? 1.0 / sqrt(norm) : sqrt(scalars[ROWS] / scalars[NORM_SUM]);
        base = s.settings.step / scalars[NORM_MAX];
        score_rows<W>(s.idx, s.val, n, s.table, s.out);
        for (index k = 0; k < n_outputs; ++k) s.score[k] = base * double(s.out[k]);
        for (index k = n_outputs; k < width; ++k) s.score[k] = feature * double(s.out[k]);
    } else {
        for (index k = 0; k < width; ++k) s.score[k] = 0.0;
    }
    return {norm, feature, base, active};
}

// Fills u, the mixed prediction; what belongs to the target is meant for learning.
template <int LOSS, class T> BaseLosses mix(const Stream<T> &s, const Target *target) {
    if constexpr (LOSS == LOGISTIC) return softmax_experts(s, target[0]);
    else return sigmoid_experts(s, target);
}

template <int LOSS, int W, class T>
void try_mixture(Stream<T> &s, index n, double weight) {
    look_mixture<W>(s, n, weight);
    for (index k = 0; k < s.n_targets; ++k) s.vertex[k] = 0;
    mix<LOSS>(s, s.vertex);
}

// Plays and learns one row of n entries.
template <int LOSS, int W, class T>
void mixture_round(Stream<T> &s, index n, const Draws &draws, index row, Target *play) {
    using Polytope = typename PolytopeOf<STRUCTURE_OF[LOSS]>::type;
    const index n_outputs = s.n_outputs;
    const Target *target = draws.targets.row(row);
    double *scalars = s.scalars.data;
    const double weight = draws.weight(row);
    const Factors factors = look_mixture<W>(s, n, weight);
    const BaseLosses losses = mix<LOSS>(s, target);
    decode<Polytope>(s.settings.decoding, s.u, n_outputs, draws.uniforms.row(row), play,
                     s.n_targets, s.means, s.memory);
    if (s.accounts.rows > 0 && draws.log) account_experts<LOSS>(s, n, target, weight);
    double value = 0.0;
    const double power = weight / scalars[WEIGHT_MAX];
    for (index group = 0; group < s.weights.rows; ++group)
        value += reweigh<LOSS>(s, group, target[group], power);
    if (draws.log) {
        account_play<Polytope>(s, draws, row, weight, play);
        scalars[SURROGATE] += weight * value;
        scalars[SURROGATE_BASE] += weight * losses.loss;
        scalars[INNER] += weight * losses.inner;
        scalars[GRADIENT_SQUARED] +=
            weight * weight * squared_norm(s.delta, 0, n_outputs) * factors.norm;
    }
    if (factors.active) learn_mixture<W>(s, n, factors.feature, factors.base, weight);
}

}  // namespace
}  // namespace skb::SKB_LEVEL
