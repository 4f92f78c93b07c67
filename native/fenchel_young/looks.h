// Looking at rows without a trace: as if they were learnt next, or with all as it is.
#pragma once
#include "features.h"
#include "mixture.h"
#include "single.h"

namespace skb::SKB_LEVEL {
namespace {

template <class T> Vec<T> copied(Vec<T> from, Memory &memory) {
    const Vec<T> to{take<T>(memory, from.size), from.size};
    for (index k = 0; k < from.size; ++k) to[k] = from[k];
    return to;
}

template <class T> Mat<T> copied(Mat<T> from, Memory &memory) {
    const Vec<T> flat = copied(Vec<T>{from.data, from.rows * from.cols}, memory);
    return {flat.data, from.rows, from.cols};
}

// Makes copies of what changes before a row is learnt.
template <class T> void detach(Stream<T> &s, Memory &memory) {
    s.mean = copied(s.mean, memory);
    s.square = copied(s.square, memory);
    s.robust = copied(s.robust, memory);
    s.weights = copied(s.weights, memory);
    s.scalars = copied(s.scalars, memory);
}

// Plays the row that is filled in.
template <class T> void try_row(Stream<T> &s, index n, const Trial &trial) {
    const index size = s.n_outputs;
    const int loss = s.settings.loss;
    if (s.settings.learner == MIXTURE) {
        with_width(s.table.cols, [&](auto width) {
            if (loss == LOGISTIC) try_mixture<LOGISTIC, width.value>(s, n, trial.weight);
            else try_mixture<CUBE_SIGMOID, width.value>(s, n, trial.weight);
        });
    } else {
        with_loss(loss, [&](auto kind) { try_single<kind.value>(s, n, trial.weight); });
    }
    with_loss(loss, [&](auto kind) {
        constexpr int structure = STRUCTURE_OF[kind.value];
        using Polytope = typename PolytopeOf<structure>::type;
        decode<Polytope>(s.settings.decoding, s.u, size, trial.uniforms, trial.play,
                         s.n_targets, trial.means, s.memory);
        for (index k = 0; k < s.n_targets; ++k) trial.vertex[k] = trial.play[k];
        if constexpr (structure != BIRKHOFF)
            Polytope::nearest(s.u, size, trial.vertex, s.n_targets, s.memory);
    });
}

// Fills a dense row by the features' moments as they are.
template <class T> void fill_still(const Stream<T> &s, const T *row, index d) {
    const Settings &settings = s.settings;
    for (index j = 0; j < d; ++j) {
        if (settings.scaling == RAW) {
            s.val[j] = row[j];
            continue;
        }
        const bool robust = settings.scaling == ROBUST;
        const double count = robust ? s.robust(COUNT, j) : s.scalars[ROWS];
        const double square = s.square[j];
        double z = 0.0;
        if (square >= LEAST_SQUARE)
            z = (double(row[j]) - s.mean[j]) / sqrt(square / count);
        z = larger(smaller(z, settings.clip), -settings.clip);
        s.val[j] = T(z);
    }
    if (settings.intercept) s.val[d] = T(1);
}

// Fills u with the regularised prediction for the row that is filled in.
template <class T> void point(Stream<T> &s, index n, double *u) {
    const Settings &settings = s.settings;
    const index size = s.n_outputs, n_experts = s.rates.size;
    const index width = size * (n_experts > 0 ? n_experts : 1);
    const double *scalars = s.scalars.data;
    const double longest = scalars[NORM_MAX], total = scalars[NORM_SUM];
    const double base = longest > 0.0 ? settings.step / longest : 0.0;
    score_single(s.idx, s.val, n, s.table, width, s.score);
    double factor = scalars[FACTOR], first = factor;
    if (settings.learner == MIXTURE) {
        factor = total > 0.0 ? sqrt(scalars[ROWS] / total) : 0.0;
        if (has_own_sums(s)) {
            const double norm = squared_norm(s.val, 0, n);
            factor = norm > 0.0 ? 1.0 / sqrt(norm) : 0.0;
        }
        first = base;
    } else if (settings.learner == DUAL) {
        first = base;
    } else if (settings.learner == PARAMETER_FREE) {
        first *= scalars[BET] * scalars[WEALTH];
    }
    for (index k = 0; k < width; ++k) s.score[k] *= k < size ? first : factor;
    if (settings.learner == MIXTURE) {
        for (index k = 0; k < s.n_targets; ++k) s.vertex[k] = 0;
        if (settings.loss == LOGISTIC) mix<LOGISTIC>(s, s.vertex);
        else mix<CUBE_SIGMOID>(s, s.vertex);
    } else {
        with_loss(settings.loss, [&](auto kind) {
            predict<kind.value>(settings.mu, s.score, size, s.u, s.memory);
        });
    }
    for (index k = 0; k < size; ++k) u[k] = s.u[k];
}

}  // namespace
}  // namespace skb::SKB_LEVEL
