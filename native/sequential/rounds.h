// Rounds of Algorithm 1 from radii that hold at all times.
#pragma once
#include "../common/levels.h"
#include "sequential.h"

namespace skb::SKB_LEVEL {
namespace {

void radii(Vec<const double> counts, double x_lower, double x_upper, double sigma,
           Vec<double> lower, Vec<double> upper) {
    for (index i = 0; i < counts.size; ++i) {
        const double growth = 1.5 * log1p(log(counts[i]));
        const double scale = 2.0 * sigma * sigma / counts[i];
        lower[i] = sqrt(scale * (x_lower + growth));
        upper[i] = sqrt(scale * (x_upper + growth));
    }
}

// The arms of the next round: of largest mean and of largest upper bound among the others,
// and with epsilon > 0 the control and the alternative of largest upper bound.
index round_of(Vec<const double> means, Vec<const double> upper, double epsilon,
               Vec<index> arms) {
    const index n = means.size;
    index best = 0, rival = -1;
    for (index i = 1; i < n; ++i)
        if (means[i] > means[best]) best = i;
    for (index i = 0; i < n; ++i)
        if (i != best && (rival < 0 || means[i] + upper[i] > means[rival] + upper[rival]))
            rival = i;
    arms[0] = best;
    arms[1] = rival;
    index count = 2;
    if (epsilon > 0.0) {
        index top = 1;
        for (index i = 2; i < n; ++i)
            if (means[i] + upper[i] > means[top] + upper[top]) top = i;
        const index more[2] = {0, top};
        for (const index arm : more) {
            bool known = false;
            for (index k = 0; k < count; ++k) known = known || arms[k] == arm;
            if (!known) arms[count++] = arm;
        }
    }
    return count;
}

Decision decide(Vec<const double> means, Vec<const double> lower, Vec<const double> upper,
                double epsilon, Vec<index> arms) {
    const index n = means.size;
    const index count = round_of(means, upper, epsilon, arms);
    const index best = arms[0], rival = arms[1];
    bool control_wins = true;
    for (index i = 1; i < n; ++i)
        if (!(means[0] - lower[0] > means[i] + upper[i] - epsilon)) control_wins = false;
    if (control_wins) return {0, 0};
    const double least = means[best] - lower[best];
    if (least > means[rival] + upper[rival] - epsilon &&
        least > means[0] + upper[0] + epsilon)
        return {best, 0};
    return {GO_ON, count};
}

}  // namespace
}  // namespace skb::SKB_LEVEL
