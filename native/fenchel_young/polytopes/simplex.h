// The probability simplex: classes.
#pragma once
#include "../../common/sort.h"
#include "../rows.h"

namespace skb::SKB_LEVEL {
namespace {

// Fills u with the softmax; returns the log-sum-exp.
inline double softmax(const double *theta, index n, double *u) {
    double top = theta[0];
    for (index k = 1; k < n; ++k) top = larger(top, theta[k]);
    double total = 0.0;
    for (index k = 0; k < n; ++k) {
        u[k] = exp(theta[k] - top);
        total += u[k];
    }
    for (index k = 0; k < n; ++k) u[k] /= total;
    return top + log(total);
}

// Fills u with the Euclidean projection on the probability simplex.
inline void project_simplex(const double *theta, index n, double *u, Memory memory) {
    index *order = take<index>(memory, n);
    argsort(theta, n, order, take<index>(memory, n));
    // Relative to the largest score, so that 1 does not drown in it.
    const double top = theta[order[n - 1]];
    double total = 0.0, threshold = 0.0;
    for (index k = 0; k < n; ++k) {
        const double score = theta[order[n - 1 - k]] - top;
        total += score;
        const double candidate = (total - 1.0) / double(k + 1);
        if (score <= candidate) break;
        threshold = candidate;
    }
    for (index k = 0; k < n; ++k) u[k] = larger(0.0, theta[k] - top - threshold);
}

template <bool EUCLIDEAN> struct Simplex {
    static void vertex(const Target *target, index, double *y, index n) {
        for (index k = 0; k < n; ++k) y[k] = 0.0;
        y[target[0]] = 1.0;
    }
    static void nearest(const double *u, index n, Target *vertex, index, Memory) {
        index best = 0;
        for (index k = 1; k < n; ++k)
            if (u[k] > u[best]) best = k;
        vertex[0] = best;
    }
    static double mixing_rate(const double *u, index n, const Target *vertex, index) {
        if constexpr (!EUCLIDEAN) return smaller(1.0, 2.0 * (1.0 - u[vertex[0]]));
        double total = 0.0;
        for (index k = 0; k < n; ++k) {
            const double gap = u[k] - (k == vertex[0] ? 1.0 : 0.0);
            total += gap * gap;
        }
        return smaller(1.0, sqrt(2.0 * total));
    }
    static double loss_at(const double *u, index, const Target *target, index) {
        return 1.0 - u[target[0]];
    }
    static double loss_between(const Target *play, const Target *target, index, index) {
        return play[0] == target[0] ? 0.0 : 1.0;
    }
    static bool surely_randomises(const double *, index) { return false; }
    static void sample(const double *u, index n, const double *uniform, Target *play, index,
                       Memory) {
        double total = 0.0;
        play[0] = 0;
        for (index k = 0; k < n; ++k)
            if (u[k] > 0.0) {
                play[0] = k;
                total += u[k];
                if (uniform[0] < total) break;
            }
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
