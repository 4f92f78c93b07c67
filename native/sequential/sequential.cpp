#include "sequential.h"

#include "mersenne.h"
#include "radius.h"
#include "rounds.h"
#include "trial.h"

namespace skb::SKB_LEVEL {
namespace {

double watch(Vec<const double> means, Vec<const double> counts, Vec<const bool> changed,
             double sigma, double epsilon, double log_p) {
    if (counts[0] < 1.0) return log_p;
    const index n = means.size;
    for (index i = 1; i < n; ++i)
        if (counts[i] >= 1.0 && (changed[0] || changed[i]))
            log_p = log_p_value(means[i] - means[0] - epsilon, counts[i], counts[0], n - 1,
                                sigma, log_p);
    return log_p;
}

// The same for each arm by itself.
void watch_arms(Vec<const double> means, Vec<const double> counts, Vec<const bool> changed,
                double sigma, double epsilon, Vec<double> log_p) {
    if (counts[0] < 1.0) return;
    const index n = means.size;
    for (index i = 1; i < n; ++i)
        if (counts[i] >= 1.0 && (changed[0] || changed[i]))
            log_p[i - 1] = log_p_value(means[i] - means[0] - epsilon, counts[i], counts[0],
                                       n - 1, sigma, log_p[i - 1]);
}

// What is known of the arms while rewards come in.
struct Pulled {
    Vec<double> counts, sums, means, lower, upper;
    Vec<bool> changed;

    Pulled(Vec<double> counts, Vec<double> sums, Memory &memory)
        : counts(counts), sums(sums) {
        const index n = counts.size;
        means = {take<double>(memory, n), n};
        lower = {take<double>(memory, n), n};
        upper = {take<double>(memory, n), n};
        changed = {take<bool>(memory, n), n};
        for (index i = 0; i < n; ++i) {
            means[i] = counts[i] > 0.0 ? sums[i] / counts[i] : 0.0;
            changed[i] = false;
        }
    }
    void add(index arm, double reward) {
        counts[arm] += 1.0;
        sums[arm] += reward;
        means[arm] = sums[arm] / counts[arm];
        changed[arm] = true;
    }
    void look_at_each(double sigma, double epsilon, Vec<double> log_p) {
        watch_arms(seen(means), seen(counts), {changed.data, changed.size}, sigma, epsilon,
                   log_p);
    }
    double look(double sigma, double epsilon, double log_p) {
        return watch(seen(means), seen(counts), {changed.data, changed.size}, sigma,
                     epsilon, log_p);
    }
    Decision choose(double x_lower, double x_upper, double sigma, double epsilon,
                    Vec<index> arms) {
        radii(seen(counts), x_lower, x_upper, sigma, lower, upper);
        return decide(seen(means), seen(lower), seen(upper), epsilon, arms);
    }

  private:
    static Vec<const double> seen(Vec<double> values) { return {values.data, values.size}; }
};

Found replay(Vec<const index> pulled, Vec<const double> rewards, Vec<double> counts,
             Vec<double> sums, double x_lower, double x_upper, double sigma,
             double epsilon, double log_p, Vec<double> log_p_arms, Memory memory,
             Pulse &pulse) {
    const index n = counts.size;
    const Vec<index> spare{take<index>(memory, 4), 4};
    Pulled arms(counts, sums, memory);
    index n_tried = 0;
    for (index i = 0; i < n; ++i) n_tried += counts[i] > 0.0;
    Found found{GO_ON, 0, 0, log_p};
    for (index t = 0; t < pulled.size; ++t) {
        const index i = pulled[t];
        n_tried += counts[i] == 0.0;
        arms.add(i, rewards[t]);
        found.log_p = arms.look(sigma, epsilon, found.log_p);
        arms.look_at_each(sigma, epsilon, log_p_arms);
        arms.changed[i] = false;
        if (found.certified < 0 && n_tried == n)
            found.certified =
                arms.choose(x_lower, x_upper, sigma, epsilon, spare).certified;
        if (stops(pulse, 100 * n)) break;
    }
    return found;
}

Found simulate(const SimulationPlan &plan, Vec<double> counts, Vec<double> sums,
               Memory memory, Pulse &pulse) {
    const index n = plan.expected.size;
    Mersenne random(plan.seed);
    const Vec<index> chosen{take<index>(memory, 4), 4};
    Pulled arms(counts, sums, memory);
    Found found{GO_ON, 0, 0, 0.0};
    index size = n;
    bool everything = true;
    while (found.n_pulls + size <= plan.max_pulls) {
        for (index k = 0; k < size; ++k) {
            const index i = everything ? k : chosen[k];
            const double expected = plan.expected[i];
            arms.add(i, plan.bernoulli ? (random.uniform() < expected ? 1.0 : 0.0)
                                       : expected + plan.sigma * random.normal());
        }
        found.n_pulls += size;
        found.log_p = arms.look(plan.sigma, plan.epsilon, found.log_p);
        for (index i = 0; i < n; ++i) arms.changed[i] = false;
        const Decision next =
            arms.choose(plan.x_lower, plan.x_upper, plan.sigma, plan.epsilon, chosen);
        found.certified = next.certified;
        if (next.certified >= 0) break;
        everything = plan.uniform;
        size = plan.uniform ? n : next.n_arms;
        if (stops(pulse, 100 * n)) break;
    }
    for (index i = 1; i < n; ++i)
        if (arms.means[i] > arms.means[found.best]) found.best = i;
    return found;
}

double sum_of_gamma(index now, Vec<const index> recent, Vec<const double> sizes,
                    Vec<const double> points,
                    Vec<const double> weights, Vec<const double> table, double scale,
                    double power) {
    double total = 0.0, far = 0.0;
    for (index k = 0; k < recent.size; ++k) total += sizes[k] * table[now - recent[k] - 1];
    for (index k = 0; k < points.size; ++k) {
        const double x = double(now) - points[k];
        const double u = log(x);
        far += weights[k] * (power > 0.0 ? exp(-power * u) : u / x * exp(-sqrt(u)));
    }
    return total + scale * far;
}

double log_evalue(const Betting &betting, PairState arm, PairState control, double shift,
                  Memory memory) {
    Evidence evidence(betting.rewards, betting.bets, betting.weights, memory);
    evidence.set_bets(betting.scale);
    return evidence.log_evalue({arm},
                               {control}, shift);
}

double lift_bound(const Betting &betting, PairState arm, PairState control,
                  double threshold, Memory memory) {
    Evidence evidence(betting.rewards, betting.bets, betting.weights, memory);
    evidence.set_bets(betting.scale);
    return evidence.lift({arm},
                         {control}, threshold);
}

}  // namespace

extern const SequentialKernels sequential_kernels;
const SequentialKernels sequential_kernels{
    gap_radius,   log_p_value,   radii,       decide,       watch,
    watch_arms,   replay,        simulate,    sum_of_gamma, replay_trial,
    look_at_trial, choose_arms,  bandit_round, settle_trial, lift_bounds,
    log_evalue,   lift_bound,    simulate_trial};

}  // namespace skb::SKB_LEVEL
