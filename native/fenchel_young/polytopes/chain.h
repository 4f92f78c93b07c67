// The chain 1 >= u_1 >= u_2 >= ... >= 0: levels.
#pragma once
#include "../rows.h"
#include "isotonic.h"

namespace skb::SKB_LEVEL {
namespace {

struct Chain {
    static void vertex(const Target *target, index, double *y, index n) {
        for (index i = 0; i < n; ++i) y[i] = i < target[0] ? 1.0 : 0.0;
    }
    static void nearest(const double *u, index n, Target *vertex, index, Memory) {
        index level = 0;
        for (index i = 0; i < n; ++i)
            if (u[i] > 0.5) ++level;
        vertex[0] = level;
    }
    static double mixing_rate(const double *u, index n, const Target *vertex, index) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) {
            const double gap = u[i] - (i < vertex[0] ? 1.0 : 0.0);
            total += gap * gap;
        }
        return smaller(1.0, 2.0 * sqrt(total));
    }
    static double loss_at(const double *u, index n, const Target *target, index) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) total += i < target[0] ? 1.0 - u[i] : u[i];
        return total / double(n);
    }
    static double loss_between(const Target *play, const Target *target, index n, index) {
        const Target gap = play[0] - target[0];
        return double(gap < 0 ? -gap : gap) / double(n);
    }
    static bool surely_randomises(const double *, index) { return false; }
    static void sample(const double *u, index n, const double *uniform, Target *play, index,
                       Memory) {
        index level = 0;
        while (level < n && uniform[0] < u[level]) ++level;
        play[0] = level;
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
