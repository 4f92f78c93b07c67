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

enum Rewards : int { NORMAL, BINARY, BOUNDED };
enum Sampler : int { TOP_TWO, LIFT, LUCB, UNIFORM };

// Number of rewards of an arm, their sum, and V.
struct PairState {
    double n, sum, spread;
};

// Bets are units / scale.
struct Betting {
    Rewards rewards;
    Vec<const double> bets;
    Mat<const double> weights;
    double scale;
};

struct TrialPlan {
    Rewards rewards;
    double epsilon;
    Vec<const double> bets;
    Mat<const double> weights;      // of pairs of bets
    Vec<const double> arm_weights;  // of alternatives
    Vec<const double> sigma;        // of arms; only for normal rewards of known scale
    bool estimated;                 // the scale of normal rewards is not known
    bool relative;                  // bets are in units of 1 / scale
    double least_count;             // rewards of an arm before there is evidence
};

// spread: V for bounded rewards, squared deviations from the mean where the scale is
// estimated.
struct Arms {
    Vec<double> counts, sums, spread;
};

// log_e: of the alternatives as of now, or an upper bound of it that is not above what
// matters, if it is not exact; peak: the largest logarithm of an adjusted e-value so far,
// at least 0.
struct Looks {
    Vec<double> log_e, peak;
    Vec<bool> exact;
};

struct TrialSimulation {
    Vec<const double> expected, deviation;
    Sampler sampler;
    double x_lower, x_upper;
    bool until_certified;  // otherwise until an adjusted e-value is that large
    double threshold;
    index max_pulls;
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
    // The running minima of the arms' own p-values.
    void (*watch_arms)(Vec<const double> means, Vec<const double> counts,
                       Vec<const bool> changed, double sigma, double epsilon,
                       Vec<double> log_p);
    // Takes rewards one by one; returns the first certified arm and the p-value.
    Found (*replay)(Vec<const index> arms, Vec<const double> rewards, Vec<double> counts,
                    Vec<double> sums, double x_lower, double x_upper, double sigma,
                    double epsilon, double log_p, Vec<double> log_p_arms, Memory, Pulse &);
    // Runs one test on simulated rewards.
    Found (*simulate)(const SimulationPlan &, Vec<double> counts, Vec<double> sums, Memory,
                      Pulse &);
    // Sum of gamma over recent rejections, whose ages have a table, and over groups of old
    // ones: scale times gamma's formula at weighted points. power: of "power", 0 for "log".
    double (*sum_of_gamma)(index now, Vec<const index> recent, Vec<const double> sizes,
                           Vec<const double> points,
                           Vec<const double> weights, Vec<const double> table,
                           double scale, double power);

    // Tests by e-processes. Takes rewards one by one, with a look after each, or one look
    // after the last; first: the first certified arm, if it was none before.
    void (*replay_trial)(const TrialPlan &, const Arms &, const Looks &,
                         Vec<const index> pulled, Vec<const double> rewards, bool whole,
                         double threshold, index *first, Memory, Pulse &);
    // A look at states that were changed otherwise.
    void (*look_at_trial)(const TrialPlan &, const Arms &, const Looks &,
                          Vec<const bool> changed, double threshold, index *first, Memory);
    // The next arms one by one ("top two" or "lift").
    void (*choose_arms)(const TrialPlan &, const Arms &, Sampler,
                        Vec<const double> outstanding, Vec<index> chosen, Memory);
    // The next round of Algorithm 1; chosen has four entries. Returns its size.
    index (*bandit_round)(const TrialPlan &, const Arms &, double x_lower, double x_upper,
                          Vec<index> chosen, Memory);
    // Logarithms of all arms' e-values, adjusted for their number.
    void (*settle_trial)(const TrialPlan &, const Arms &, const Looks &,
                         Vec<double> adjusted, Memory);
    // Bounds of the alternatives' lifts over the control.
    void (*lift_bounds)(const TrialPlan &, const Arms &, double threshold,
                        Vec<double> lower, Vec<double> upper, Memory);
    // log E of "the arm is at most `shift` better than the control".
    double (*log_evalue)(const Betting &, PairState arm, PairState control, double shift,
                         Memory);
    // The largest shift at which log E is at least a positive threshold.
    double (*lift_bound)(const Betting &, PairState arm, PairState control,
                         double threshold, Memory);
    Found (*simulate_trial)(const TrialPlan &, const TrialSimulation &, const Arms &,
                            const Looks &, Memory, Pulse &);
};

}  // namespace skb
