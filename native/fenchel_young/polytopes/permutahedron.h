// The permutahedron of (1, ..., D): rankings.
#pragma once
#include "../../common/sort.h"
#include "../rows.h"
#include "isotonic.h"

namespace skb::SKB_LEVEL {
namespace {

// Entries of a point this close to a vertex's count as equal to it.
constexpr double INTEGRAL = 1e-12;

// Fills order with the positions of the values, the largest first.
inline void order_descending(const double *values, index n, index *order, Memory memory) {
    double *negative = take<double>(memory, n);
    for (index i = 0; i < n; ++i) negative[i] = -values[i];
    argsort(negative, n, order, take<index>(memory, n));
}

// Fills u with the projection. Sorted decreasingly it is s - isotonic(s - (D, ..., 1))
// (Appendix C.1).
inline void project_permutahedron(const double *theta, index n, double *u, Memory memory) {
    index *order = take<index>(memory, n);
    order_descending(theta, n, order, memory);
    // Nothing is pooled across a gap of n or more: cutting gaps there changes nothing, and
    // keeps the digits of the small ones beside huge scores.
    double *ordered = take<double>(memory, n), *excess = take<double>(memory, n);
    double *pooled = take<double>(memory, n);
    ordered[n - 1] = 0.0;
    for (index i = n - 2; i >= 0; --i) {
        const double gap = theta[order[i]] - theta[order[i + 1]];
        ordered[i] = ordered[i + 1] + smaller(gap, double(n));
    }
    for (index i = 0; i < n; ++i) excess[i] = ordered[i] - double(n - i);
    pool_adjacent(excess, n, pooled, memory);
    for (index i = 0; i < n; ++i) u[order[i]] = ordered[i] - pooled[i];
}

// Fills a play with a random permutation of mean u (a chain of T-transforms).
//
// Sorted, u is majorised by w = (D, ..., 1). Moving w to u takes at most D - 1 transfers
// between two positions (Hardy, Littlewood and Polya); swapping the two with the matching
// probability, in the same order, has mean u.
inline void draw_permutation(const double *u, index n, const double *uniform, Target *play,
                             Memory memory) {
    index *order = take<index>(memory, n);
    order_descending(u, n, order, memory);
    double *weight = take<double>(memory, n);
    Target *value = take<Target>(memory, n);
    for (index i = 0; i < n; ++i) {
        weight[i] = double(n - i);
        value[i] = n - i;
    }
    for (index step = 0; step < n - 1; ++step) {
        index upper = -1;
        for (index i = 0; i < n; ++i)
            if (u[order[i]] < weight[i] - INTEGRAL * double(n)) upper = i;
        if (upper < 0) break;
        index lower = upper + 1;
        while (lower < n && u[order[lower]] <= weight[lower]) ++lower;
        if (lower == n) break;
        const double shift =
            smaller(weight[upper] - u[order[upper]], u[order[lower]] - weight[lower]);
        const double chance = shift / (weight[upper] - weight[lower]);
        weight[upper] -= shift;
        weight[lower] += shift;
        if (uniform[step] < chance) {
            const Target swap = value[upper];
            value[upper] = value[lower];
            value[lower] = swap;
        }
    }
    for (index i = 0; i < n; ++i) play[order[i]] = value[i];
}

struct Permutahedron {
    static void vertex(const Target *target, index, double *y, index n) {
        for (index i = 0; i < n; ++i) y[i] = double(target[i]);
    }
    static void nearest(const double *u, index n, Target *vertex, index, Memory memory) {
        index *order = take<index>(memory, n);
        argsort(u, n, order, take<index>(memory, n));
        for (index i = 0; i < n; ++i) vertex[order[i]] = i + 1;
    }
    static double mixing_rate(const double *u, index n, const Target *vertex, index) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) {
            const double gap = u[i] - double(vertex[i]);
            total += gap * gap;
        }
        return smaller(1.0, sqrt(2.0 * total));
    }
    static double loss_at(const double *u, index n, const Target *target, index) {
        if (n == 1) return 0.0;
        double total = 0.0;
        for (index i = 0; i < n; ++i)
            total += double(target[i]) * (double(target[i]) - u[i]);
        return 6.0 * total / (double(n) * (double(n * n) - 1.0));
    }
    static double loss_between(const Target *play, const Target *target, index, index n) {
        if (n == 1) return 0.0;
        double total = 0.0;
        for (index i = 0; i < n; ++i)
            total += double((play[i] - target[i]) * (play[i] - target[i]));
        return 3.0 * total / (double(n) * (double(n * n) - 1.0));
    }
    static bool surely_randomises(const double *, index) { return false; }
    static void sample(const double *u, index n, const double *uniform, Target *play, index,
                       Memory memory) {
        draw_permutation(u, n, uniform, play, memory);
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
