// p-values of a gap between an arm and the control, at any time.
#pragma once
#include "../common/levels.h"
#include "sequential.h"

namespace skb::SKB_LEVEL {
namespace {

// Newton's method for logarithms of p-values has converged, or has failed.
constexpr double RADIUS_TOLERANCE = 1e-14;
constexpr int MOST_STEPS = 100;

inline double gap_radius(double x, double n_arm, double n_control, index n_alternatives,
                         double sigma, double *slope) {
    const double least = log(10.0);
    const double counts[2] = {n_arm, n_control};
    const double shifts[2] = {log(2.0 * double(n_alternatives)), log(2.0)};
    double value = 0.0;
    *slope = 0.0;
    for (int side = 0; side < 2; ++side) {
        const double n = counts[side];
        double u = x + shifts[side];
        // Rounding must not hide that a kink was passed.
        const bool active = u > least + 1e-15;
        u = larger(u, least);
        const double b = u + 3.0 * log(u) + 1.5 * log1p(log(n));
        const double size = sqrt(2.0 * sigma * sigma * b / n);
        value += size;
        if (active) *slope += size * 0.5 * (1.0 + 3.0 / u) / b;
    }
    return value;
}

// P = 1 iff D <= G(1); else the root of G(gamma) = D. In x = -log(gamma) G is concave and
// increasing between kinks, so that Newton's method from the left end of a piece goes up
// to the root and stays below it.
inline double log_p_value(double gap, double n_arm, double n_control, index n_alternatives,
                          double sigma, double known) {
    double slope;
    const auto radius = [&](double x) {
        return gap_radius(x, n_arm, n_control, n_alternatives, sigma, &slope);
    };
    double start = -known;
    if (!(gap > radius(start))) return known;
    // Where the second of the two radii begins to depend on gamma.
    const double kink = log(5.0);
    if (start < kink) {
        const double first = log(5.0 / double(n_alternatives));
        if (gap > radius(kink)) {
            start = kink;
        } else if (first > start) {
            // Constant up to there: gamma jumps from 1 to K / 5.
            start = first;
            if (!(gap > radius(first))) return known;
        }
    }
    // To the right of a kink, where the slope is that of the next piece.
    double x = start + 1e-13 * larger(start, 1.0);
    for (int iteration = 0; iteration < MOST_STEPS; ++iteration) {
        const double value = radius(x);
        const double step = (gap - value) / slope;
        if (!(step > RADIUS_TOLERANCE * larger(x, 1.0))) break;
        x += step;
    }
    // Up to rounding this is below the root: the p-value is not smaller than it is.
    return smaller(-x, known);
}

}  // namespace
}  // namespace skb::SKB_LEVEL
