// The cube: sets of labels.
#pragma once
#include "../../common/levels.h"
#include "../rows.h"

namespace skb::SKB_LEVEL {
namespace {

// log(1 + exp(value)) without overflow.
inline double softplus(double value) {
    return larger(value, 0.0) + log1p(exp(-fabs(value)));
}

// 1 / (1 + exp(-value)) without overflow.
inline double sigmoid(double value) {
    if (value >= 0.0) return 1.0 / (1.0 + exp(-value));
    const double power = exp(value);
    return power / (1.0 + power);
}

struct CubeOfLabels {
    static void vertex(const Target *target, index, double *y, index n) {
        for (index i = 0; i < n; ++i) y[i] = double(target[i]);
    }
    static void nearest(const double *u, index n, Target *vertex, index, Memory) {
        for (index i = 0; i < n; ++i) vertex[i] = u[i] > 0.5 ? 1 : 0;
    }
    static double mixing_rate(const double *u, index n, const Target *vertex, index) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) {
            const double gap = u[i] - double(vertex[i]);
            total += gap * gap;
        }
        return smaller(1.0, 2.0 * sqrt(total));
    }
    static double loss_at(const double *u, index n, const Target *target, index) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) total += fabs(u[i] - double(target[i]));
        return total / double(n);
    }
    static double loss_between(const Target *play, const Target *target, index, index n) {
        double total = 0.0;
        for (index i = 0; i < n; ++i)
            if (play[i] != target[i]) total += 1.0;
        return total / double(n);
    }
    static bool surely_randomises(const double *, index) { return false; }
    static void sample(const double *u, index n, const double *uniform, Target *play, index,
                       Memory) {
        for (index i = 0; i < n; ++i) play[i] = uniform[i] < u[i] ? 1 : 0;
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
