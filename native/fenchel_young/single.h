// Learners with one weight matrix (Algorithm 2).
//
// The weights are FACTOR times the table; every update adds a multiple of x residual^T to
// the table and may change the factor.
#pragma once
#include "../common/lanes.h"
#include "accounts.h"
#include "losses.h"
#include "table.h"

namespace skb::SKB_LEVEL {
namespace {

constexpr double SMALL_FACTOR = 1e-6;
constexpr double BET_RATE = 2.0 / (2.0 - 1.0986122886681098);  // 2 - log 3

// Moves a small common factor into the table.
template <class T> void rescale(Stream<T> &s) {
    const double factor = s.scalars[FACTOR];
    for (index j = 0; j < s.table.rows; ++j)
        for (index k = 0; k < s.n_outputs; ++k) {
            if (s.average.rows > 0)
                s.average(j, k) += s.scalars[CUMULATED] * double(s.table(j, k));
            s.table(j, k) = T(double(s.table(j, k)) * factor);
        }
    s.scalars[CUMULATED] = 0.0;
    s.scalars[FACTOR] = 1.0;
}

// The table loses coefficient x residual^T; then the factor is multiplied by shrink.
struct Step {
    double coefficient, shrink;
};

// AdaGrad's step size in a ball (E.1).
inline Step adaptive_step(const Settings &settings, double *scalars, double scale,
                          double inner, double squared) {
    scalars[STEP_SUM] += squared;
    if (!(squared > 0.0)) return {0.0, 1.0};
    const double rate = settings.diameter / sqrt(2.0 * scalars[STEP_SUM]);
    double length = scalars[WEIGHT_NORM] - 2.0 * rate * inner + rate * rate * squared;
    const double radius = 0.5 * settings.diameter;
    double shrink = 1.0;
    if (length > radius * radius) {
        shrink = radius / sqrt(length);
        length = radius * radius;
    }
    scalars[WEIGHT_NORM] = larger(length, 0.0);
    return {rate * scale / scalars[FACTOR], shrink};
}

// Coin betting on the magnitude, AdaGrad in the unit ball on the direction (E.2).
template <class T>
Step betting_step(Stream<T> &s, index n, double scale, double squared, double stake) {
    const Settings &settings = s.settings;
    double *scalars = s.scalars.data, *theta = s.score;
    double size = sqrt(squared) / settings.gradient_limit;
    double unit = scale / settings.gradient_limit;
    if (size > 1.0) {
        unit /= size;
        size = 1.0;
    }
    // <g, V>: the scores without the stake; the table itself where that is 0.
    score_single(s.idx, s.val, n, s.table, s.n_outputs, theta);
    double slope = 0.0;
    for (index k = 0; k < s.n_outputs; ++k) slope += theta[k] * s.delta[k];
    slope *= scalars[FACTOR] * unit;
    const double zeta = slope / (1.0 - slope * scalars[BET]);
    scalars[WEALTH] -= slope * stake;
    scalars[BET_SUM] += zeta * zeta;
    const double bet = scalars[BET] - BET_RATE * zeta / scalars[BET_SUM];
    scalars[BET] = smaller(larger(bet, -0.5), 0.5);
    scalars[STEP_SUM] += size * size;
    const double rate = sqrt(2.0 / scalars[STEP_SUM]);
    double length =
        scalars[WEIGHT_NORM] - 2.0 * rate * slope + rate * rate * size * size;
    double shrink = 1.0;
    if (length > 1.0) {
        shrink = 1.0 / sqrt(length);
        length = 1.0;
    }
    scalars[WEIGHT_NORM] = larger(length, 0.0);
    return {rate * unit / scalars[FACTOR], shrink};
}

// What is common to all ways of looking at a row.
struct Look {
    double norm, factor, stake;
};

// Takes a row's length into the state, and fills the scores.
template <class T> Look look_single(Stream<T> &s, index n, double weight) {
    const Settings &settings = s.settings;
    double *scalars = s.scalars.data, *theta = s.score;
    // A row's weight scales its loss as the loss's own scale does.
    const double norm = squared_norm(s.val, 0, n);
    scalars[ROWS] += 1.0;
    scalars[NORM_SUM] += norm;
    scalars[NORM_MAX] = larger(scalars[NORM_MAX], weight * norm);
    scalars[WEIGHT_SUM] += weight;
    scalars[WEIGHT_MAX] = larger(scalars[WEIGHT_MAX], weight);
    if (weight * norm > settings.norm_limit * settings.norm_limit * (1.0 + 1e-12))
        scalars[BEYOND] += 1.0;
    double factor = scalars[FACTOR], stake = 0.0;
    if (settings.learner == DUAL) {
        factor = scalars[NORM_MAX] > 0.0 ? settings.step / scalars[NORM_MAX] : 0.0;
    } else if (settings.learner == PARAMETER_FREE) {
        stake = scalars[BET] * scalars[WEALTH];
        factor *= stake;
    }
    score_single(s.idx, s.val, n, s.table, s.n_outputs, theta);
    for (index k = 0; k < s.n_outputs; ++k) theta[k] *= factor;
    return {norm, factor, stake};
}

template <int LOSS, class T> void try_single(Stream<T> &s, index n, double weight) {
    look_single(s, n, weight);
    predict<LOSS>(s.settings.mu, s.score, s.n_outputs, s.u, s.memory);
}

template <int LOSS, class T>
void single_round(Stream<T> &s, index n, const Draws &draws, index row, Target *play) {
    using Polytope = typename PolytopeOf<STRUCTURE_OF[LOSS]>::type;
    const Settings &settings = s.settings;
    const index size = s.n_outputs;
    const Target *target = draws.targets.row(row);
    double *scalars = s.scalars.data, *theta = s.score, *residual = s.delta;
    const double weight = draws.weight(row), scale = settings.scale * weight;
    const Look look = look_single(s, n, weight);
    const double norm = look.norm, factor = look.factor, stake = look.stake;
    const double value = scale * respond<LOSS>(settings.mu, theta, size, target,
                                               s.n_targets, s.u, residual, s.memory);
    decode<Polytope>(settings.decoding, s.u, size, draws.uniforms.row(row), play,
                     s.n_targets, s.means, s.memory);
    double inner = 0.0, squared = 0.0;
    for (index k = 0; k < size; ++k) {
        inner += theta[k] * residual[k];
        squared += residual[k] * residual[k];
    }
    inner *= scale;
    squared *= scale * scale * norm;
    if (draws.log) {
        account_play<Polytope>(s, draws, row, weight, play);
        scalars[SURROGATE] += value;
        scalars[SURROGATE_BASE] += value;
        scalars[INNER] += inner;
        scalars[GRADIENT_SQUARED] += squared;
    }
    scalars[CUMULATED] += weight * factor;
    Step step{0.0, 1.0};
    if (settings.learner == OGD) step.coefficient = settings.step * weight;
    else if (settings.learner == DUAL) step.coefficient = weight;
    else if (settings.learner == ADAPTIVE)
        step = adaptive_step(settings, scalars, scale, inner, squared);
    else if (squared > 0.0) step = betting_step(s, n, scale, squared, stake);
    add_outer(s.idx, s.val, n, -step.coefficient, residual, size, s.table);
    if (s.average.rows > 0)
        add_outer(s.idx, s.val, n, step.coefficient * scalars[CUMULATED], residual, size,
                  s.average);
    if (s.gradient.rows > 0 && draws.log)
        add_outer(s.idx, s.val, n, scale, residual, size, s.gradient);
    if (step.shrink < 1.0) {
        scalars[FACTOR] *= step.shrink;
        if (scalars[FACTOR] < SMALL_FACTOR) rescale(s);
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
