// Steps of the best-arm test, and sums over past rejections.
#pragma once
#include "../common/view.h"

namespace skb {

// What is returned beside an arm that is certified.
inline constexpr index GO_ON = -1;

struct Decision {
    index certified;  // GO_ON for none
    index n_arms;     // number of arms of the next round
};

struct Found {
    index certified, best, n_pulls;
    double log_p;
};

struct SimulationPlan {
    Vec<const double> expected;
    double sigma, epsilon, x_lower, x_upper;
    index max_pulls;
    bool uniform, bernoulli;
    std::uint32_t seed;
};

struct SequentialKernels {
    // G = phi_{n_i}(gamma / 2K) + phi_{n_0}(gamma / 2) at gamma = exp(-x), and its
    // derivative by x.
    double (*gap_radius)(double x, double n_arm, double n_control, index n_alternatives,
                         double sigma, double *slope);
    // log P_{i,t} of an alternative, if it is below a known value; else that.
    double (*log_p_value)(double gap, double n_arm, double n_control, index n_alternatives,
                          double sigma, double known);
    // Radii of the lower and the upper bounds; x_lower, x_upper: log(1/d) + 3 log log(1/d)
    // at delta / 2K and at delta / 2.
    void (*radii)(Vec<const double> counts, double x_lower, double x_upper, double sigma,
                  Vec<double> lower, Vec<double> upper);
    // Stops, or chooses the arms of the next round (Algorithm 1). Ties go to the lowest
    // number; arms has four entries.
    Decision (*decide)(Vec<const double> means, Vec<const double> lower,
                       Vec<const double> upper, double epsilon, Vec<index> arms);
    // The running minimum of the p-value's logarithm; changed: arms that have new rewards.
    double (*watch)(Vec<const double> means, Vec<const double> counts,
                    Vec<const bool> changed, double sigma, double epsilon, double log_p);
    // Takes rewards one by one; returns the first certified arm and the p-value.
    Found (*replay)(Vec<const index> arms, Vec<const double> rewards, Vec<double> counts,
                    Vec<double> sums, double x_lower, double x_upper, double sigma,
                    double epsilon, double log_p, Memory, Pulse &);
    // Runs one test on simulated rewards.
    Found (*simulate)(const SimulationPlan &, Vec<double> counts, Vec<double> sums, Memory,
                      Pulse &);
    // Sum of gamma over recent rejections, whose ages have a table, and over groups of old
    // ones: scale times gamma's formula at weighted points.
    double (*sum_of_gamma)(index now, Vec<const index> recent, Vec<const double> points,
                           Vec<const double> weights, Vec<const double> table,
                           double scale);
};

}  // namespace skb
