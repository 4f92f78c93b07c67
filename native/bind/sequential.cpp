#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "arrays.h"

namespace skb {
namespace {

std::pair<double, double> gap_radius(double x, double n_arm, double n_control,
                                     index n_alternatives, double sigma) {
    double slope = 0.0;
    const double value =
        level->sequential->gap_radius(x, n_arm, n_control, n_alternatives, sigma, &slope);
    return {value, slope};
}

double log_p_value(double gap, double n_arm, double n_control, index n_alternatives,
                   double sigma, double known) {
    return level->sequential->log_p_value(gap, n_arm, n_control, n_alternatives, sigma,
                                          known);
}

void radii(Array1<const double> counts, double x_lower, double x_upper, double sigma,
           Array1<double> lower, Array1<double> upper) {
    same_shape(counts, lower, "lower: wrong length");
    same_shape(counts, upper, "upper: wrong length");
    level->sequential->radii(view(counts), x_lower, x_upper, sigma, view(lower),
                             view(upper));
}

std::pair<index, index> decide(Array1<const double> means, Array1<const double> lower,
                               Array1<const double> upper, double epsilon,
                               Array1<index> arms) {
    require(means.shape(0) > 1, "means: fewer than two arms");
    same_shape(means, lower, "lower: wrong length");
    same_shape(means, upper, "upper: wrong length");
    has_length(arms, 4, "arms: wrong length");
    const Decision found = level->sequential->decide(view(means), view(lower), view(upper),
                                                     epsilon, view(arms));
    return {found.certified, found.n_arms};
}

double watch(Array1<const double> means, Array1<const double> counts,
             Array1<const bool> changed, double sigma, double epsilon, double log_p) {
    require(means.shape(0) > 0, "means: no arms");
    same_shape(means, counts, "counts: wrong length");
    same_shape(means, changed, "changed: wrong length");
    return level->sequential->watch(view(means), view(counts), view(changed), sigma, epsilon,
                                    log_p);
}

index arm_bytes(index n) { return pieces(4, n) + pieces(1, 4); }

void watch_arms(Array1<const double> means, Array1<const double> counts,
                Array1<const bool> changed, double sigma, double epsilon,
                Array1<double> log_p) {
    require(means.shape(0) > 1, "means: fewer than two arms");
    same_shape(means, counts, "counts: wrong length");
    same_shape(means, changed, "changed: wrong length");
    has_length(log_p, index(means.shape(0)) - 1, "log_p: wrong length");
    level->sequential->watch_arms(view(means), view(counts), view(changed), sigma, epsilon,
                                  view(log_p));
}

void check_pulled(Vec<const index> pulled, Vec<const double> rewards, index n) {
    require(rewards.size == pulled.size, "rewards: wrong length");
    bool good = true;
    for (index t = 0; t < pulled.size; ++t) good &= 0 <= pulled[t] && pulled[t] < n;
    require(good, "arms: out of range");
}

std::pair<index, double> replay(Array1<const index> arms, Array1<const double> rewards,
                                Array1<double> counts, Array1<double> sums, double x_lower,
                                double x_upper, double sigma, double epsilon, double log_p,
                                Array1<double> log_p_arms) {
    const auto pulled = view(arms);
    const auto values = view(rewards);
    const auto n = view(counts);
    const auto total = view(sums);
    require(n.size > 1 && total.size == n.size, "counts, sums: wrong length");
    check_pulled(pulled, values, n.size);
    const auto own = view(log_p_arms);
    require(own.size == n.size - 1, "log_p_arms: wrong length");
    const Scratch scratch(arm_bytes(n.size));
    const Found found = run([&](Pulse &pulse) {
        return level->sequential->replay(pulled, values, n, total, x_lower, x_upper, sigma,
                                         epsilon, log_p, own, scratch.memory(), pulse);
    });
    return {found.certified, found.log_p};
}

std::tuple<index, index, index, double>
simulate(Array1<const double> expected, double sigma, double epsilon, double x_lower,
         double x_upper, index max_pulls, bool uniform, bool bernoulli, std::uint32_t seed,
         Array1<double> counts, Array1<double> sums) {
    const SimulationPlan plan{view(expected), sigma,   epsilon,   x_lower, x_upper,
                              max_pulls,      uniform, bernoulli, seed};
    const auto n = view(counts);
    const auto total = view(sums);
    require(plan.expected.size > 1 && n.size == plan.expected.size &&
                total.size == n.size,
            "counts, sums: wrong length");
    const Scratch scratch(arm_bytes(n.size));
    const Found found = run([&](Pulse &pulse) {
        return level->sequential->simulate(plan, n, total, scratch.memory(), pulse);
    });
    return {found.certified, found.best, found.n_pulls, found.log_p};
}

double sum_of_gamma(index now, Array1<const index> recent, Array1<const double> sizes,
                    Array1<const double> points,
                    Array1<const double> weights, Array1<const double> table,
                    double scale, double power) {
    const auto at = view(recent);
    const auto gamma = view(table);
    same_shape(points, weights, "weights: wrong length");
    bool good = true;
    for (index k = 0; k < at.size; ++k)
        good &= now - at[k] >= 1 && now - at[k] <= gamma.size;
    require(good, "recent: an age is not in the table");
    has_length(sizes, at.size, "sizes: wrong length");
    return level->sequential->sum_of_gamma(now, at, view(sizes), view(points),
                                           view(weights), gamma, scale, power);
}

void check_bets(Rewards rewards, Vec<const double> bets, Mat<const double> weights) {
    require(bets.size > 0, "bets: none");
    require(weights.rows == bets.size && weights.cols == bets.size,
            "weights: not one for each pair of bets");
    bool good = true;
    for (index k = 0; k < bets.size; ++k)
        good &= bets[k] > 0.0 && bets[k] < (rewards == BOUNDED ? 1.0 : 1e300);
    require(good, "bets: out of range");
}

Rewards rewards_of(int number) {
    require(NORMAL <= number && number <= BOUNDED, "rewards: unknown");
    return Rewards(number);
}

index betting_bytes(index n_bets) { return pieces(9, n_bets); }

PairState pair_state(Array1<const double> values, Rewards rewards) {
    has_length(values, 3, "a state has three numbers");
    const auto numbers = view(values);
    const PairState state{numbers[0], numbers[1], numbers[2]};
    require(state.n >= 1.0, "a state: no rewards");
    require(rewards != NORMAL || state.spread > 0.0, "a state: no spread");
    return state;
}

double log_evalue(int rewards, Array1<const double> bets, Array2<const double> weights,
                  double scale, Array1<const double> arm, Array1<const double> control,
                  double shift) {
    const Betting betting{rewards_of(rewards), view(bets), view(weights), scale};
    check_bets(betting.rewards, betting.bets, betting.weights);
    const Scratch scratch(betting_bytes(betting.bets.size));
    return level->sequential->log_evalue(betting, pair_state(arm, betting.rewards),
                                         pair_state(control, betting.rewards), shift,
                                         scratch.memory());
}

double lift_bound(int rewards, Array1<const double> bets, Array2<const double> weights,
                  double scale, Array1<const double> arm, Array1<const double> control,
                  double threshold) {
    const Betting betting{rewards_of(rewards), view(bets), view(weights), scale};
    check_bets(betting.rewards, betting.bets, betting.weights);
    require(threshold > 0.0, "threshold: not positive");
    const Scratch scratch(betting_bytes(betting.bets.size));
    return level->sequential->lift_bound(betting, pair_state(arm, betting.rewards),
                                         pair_state(control, betting.rewards), threshold,
                                         scratch.memory());
}

// A test by e-processes, of which it keeps arrays of the state.
class TrialBinding {
  public:
    TrialBinding(int rewards, double epsilon, Array1<const double> bets,
                 Array2<const double> weights, Array1<const double> arm_weights,
                 Array1<const double> sigma, bool estimated, bool relative,
                 double least_count, Array1<double> counts, Array1<double> sums,
                 Array1<double> spread, Array1<double> log_e, Array1<double> peak,
                 Array1<bool> exact)
        : bets_(bets), weights_(weights), arm_weights_(arm_weights), sigma_(sigma),
          counts_(counts), sums_(sums), spread_(spread), log_e_(log_e), peak_(peak),
          exact_(exact),
          plan_{rewards_of(rewards), epsilon,     view(bets), view(weights),
                view(arm_weights),   view(sigma), estimated,  relative,
                least_count},
          arms_{view(counts), view(sums), view(spread)},
          looks_{view(log_e), view(peak), view(exact)}, n_(arms_.counts.size) {
        require(n_ > 1, "counts: fewer than two arms");
        require(arms_.sums.size == n_ && arms_.spread.size == n_,
                "sums, spread: wrong length");
        const index K = n_ - 1;
        require(plan_.arm_weights.size == K && looks_.log_e.size == K &&
                    looks_.peak.size == K && looks_.exact.size == K,
                "alternatives: wrong length");
        check_bets(plan_.rewards, plan_.bets, plan_.weights);
        const bool known = plan_.rewards == NORMAL && !estimated;
        require(!known || plan_.sigma.size == n_, "sigma: wrong length");
        for (index i = 0; known && i < n_; ++i)
            require(plan_.sigma[i] > 0.0, "sigma: not positive");
    }

    index replay(Array1<const index> pulled, Array1<const double> rewards, bool whole,
                 double threshold, index first) {
        const auto arms = view(pulled);
        const auto values = view(rewards);
        check_pulled(arms, values, n_);
        const Scratch scratch(bytes());
        run([&](Pulse &pulse) {
            level->sequential->replay_trial(plan_, arms_, looks_, arms, values, whole,
                                            threshold, &first, scratch.memory(), pulse);
        });
        return first;
    }

    index look(Array1<const bool> changed, double threshold, index first) {
        has_length(changed, n_, "changed: wrong length");
        const Scratch scratch(bytes());
        level->sequential->look_at_trial(plan_, arms_, looks_, view(changed), threshold,
                                         &first, scratch.memory());
        return first;
    }

    void choose(int sampler, Array1<const double> outstanding, Array1<index> chosen) {
        require(sampler == TOP_TWO || sampler == LIFT, "sampler: not one by one");
        has_length(outstanding, n_, "outstanding: wrong length");
        const Scratch scratch(bytes());
        level->sequential->choose_arms(plan_, arms_, Sampler(sampler), view(outstanding),
                                       view(chosen), scratch.memory());
    }

    index bandit_round(double x_lower, double x_upper, Array1<index> chosen) {
        has_length(chosen, 4, "chosen: wrong length");
        require(plan_.rewards != NORMAL || !plan_.estimated, "sigma: not known");
        for (index i = 0; i < n_; ++i)
            require(arms_.counts[i] >= 1.0, "counts: an arm without rewards");
        const Scratch scratch(bytes());
        return level->sequential->bandit_round(plan_, arms_, x_lower, x_upper, view(chosen),
                                               scratch.memory());
    }

    void settle(Array1<double> adjusted) {
        has_length(adjusted, n_ - 1, "adjusted: wrong length");
        const Scratch scratch(bytes());
        level->sequential->settle_trial(plan_, arms_, looks_, view(adjusted),
                                        scratch.memory());
    }

    void lifts(double threshold, Array1<double> lower, Array1<double> upper) {
        require(threshold > 0.0, "threshold: not positive");
        has_length(lower, n_ - 1, "lower: wrong length");
        has_length(upper, n_ - 1, "upper: wrong length");
        const Scratch scratch(bytes());
        level->sequential->lift_bounds(plan_, arms_, threshold, view(lower), view(upper),
                                       scratch.memory());
    }

    std::tuple<index, index, index, double>
    simulate(Array1<const double> expected, Array1<const double> deviation, int sampler,
             double x_lower, double x_upper, bool until_certified, double threshold,
             index max_pulls, std::uint32_t seed) {
        has_length(expected, n_, "expected: wrong length");
        has_length(deviation, n_, "deviation: wrong length");
        require(TOP_TWO <= sampler && sampler <= UNIFORM, "sampler: unknown");
        require(sampler != LUCB || !plan_.estimated, "sigma: not known");
        const TrialSimulation simulation{view(expected), view(deviation), Sampler(sampler),
                                         x_lower,        x_upper,         until_certified,
                                         threshold,      max_pulls,       seed};
        const Scratch scratch(bytes());
        const Found found = run([&](Pulse &pulse) {
            return level->sequential->simulate_trial(plan_, simulation, arms_, looks_,
                                                     scratch.memory(), pulse);
        });
        return {found.certified, found.best, found.n_pulls, found.log_p};
    }

  private:
    // The arrays whose memory is used.
    Array1<const double> bets_;
    Array2<const double> weights_;
    Array1<const double> arm_weights_, sigma_;
    Array1<double> counts_, sums_, spread_, log_e_, peak_;
    Array1<bool> exact_;
    TrialPlan plan_;
    Arms arms_;
    Looks looks_;
    index n_;

    index bytes() const {
        return betting_bytes(plan_.bets.size) + pieces(13, n_) + pieces(2, 4);
    }
};

}  // namespace

void bind_sequential(nb::module_ &m) {
    m.def("gap_radius", gap_radius, nb::arg("x"), nb::arg("n_arm"), nb::arg("n_control"),
          nb::arg("n_alternatives"), nb::arg("sigma"));
    m.def("log_p_value", log_p_value, nb::arg("gap"), nb::arg("n_arm"),
          nb::arg("n_control"), nb::arg("n_alternatives"), nb::arg("sigma"),
          nb::arg("known"));
    m.def("radii", radii, array("counts"), nb::arg("x_lower"), nb::arg("x_upper"),
          nb::arg("sigma"), array("lower"), array("upper"));
    m.def("decide", decide, array("means"), array("lower"), array("upper"),
          nb::arg("epsilon"), array("arms"));
    m.def("watch", watch, array("means"), array("counts"), array("changed"),
          nb::arg("sigma"), nb::arg("epsilon"), nb::arg("log_p"));
    m.def("watch_arms", watch_arms, array("means"), array("counts"), array("changed"),
          nb::arg("sigma"), nb::arg("epsilon"), array("log_p"));
    m.def("replay", replay, array("arms"), array("rewards"), array("counts"),
          array("sums"), nb::arg("x_lower"), nb::arg("x_upper"), nb::arg("sigma"),
          nb::arg("epsilon"), nb::arg("log_p"), array("log_p_arms"));
    m.def("simulate", simulate, array("expected"), nb::arg("sigma"), nb::arg("epsilon"),
          nb::arg("x_lower"), nb::arg("x_upper"), nb::arg("max_pulls"), nb::arg("uniform"),
          nb::arg("bernoulli"), nb::arg("seed"), array("counts"), array("sums"));
    m.def("sum_of_gamma", sum_of_gamma, nb::arg("now"), array("recent"), array("sizes"),
          array("points"),
          array("weights"), array("table"), nb::arg("scale"), nb::arg("power"));

    m.attr("NORMAL") = int(NORMAL);
    m.attr("BINARY") = int(BINARY);
    m.attr("BOUNDED") = int(BOUNDED);
    m.attr("TOP_TWO") = int(TOP_TWO);
    m.attr("LIFT") = int(LIFT);
    m.attr("LUCB") = int(LUCB);
    m.attr("UNIFORM") = int(UNIFORM);
    m.def("log_evalue", log_evalue, nb::arg("rewards"), array("bets"), array("weights"),
          nb::arg("scale"), array("arm"), array("control"), nb::arg("shift"));
    m.def("lift_bound", lift_bound, nb::arg("rewards"), array("bets"), array("weights"),
          nb::arg("scale"), array("arm"), array("control"), nb::arg("threshold"));
    nb::class_<TrialBinding>(m, "Trial")
        .def(nb::init<int, double, Array1<const double>, Array2<const double>,
                      Array1<const double>, Array1<const double>, bool, bool, double,
                      Array1<double>, Array1<double>, Array1<double>, Array1<double>,
                      Array1<double>, Array1<bool>>(),
             nb::arg("rewards"), nb::arg("epsilon"), array("bets"), array("weights"),
             array("arm_weights"), array("sigma"), nb::arg("estimated"),
             nb::arg("relative"), nb::arg("least_count"), array("counts"), array("sums"),
             array("spread"), array("log_e"), array("peak"), array("exact"))
        .def("replay", &TrialBinding::replay, array("arms"), array("rewards"),
             nb::arg("whole"), nb::arg("threshold"), nb::arg("first"))
        .def("look", &TrialBinding::look, array("changed"), nb::arg("threshold"),
             nb::arg("first"))
        .def("choose", &TrialBinding::choose, nb::arg("sampler"), array("outstanding"),
             array("chosen"))
        .def("bandit_round", &TrialBinding::bandit_round, nb::arg("x_lower"),
             nb::arg("x_upper"), array("chosen"))
        .def("settle", &TrialBinding::settle, array("adjusted"))
        .def("lifts", &TrialBinding::lifts, nb::arg("threshold"), array("lower"),
             array("upper"))
        .def("simulate", &TrialBinding::simulate, array("expected"), array("deviation"),
             nb::arg("sampler"), nb::arg("x_lower"), nb::arg("x_upper"),
             nb::arg("until_certified"), nb::arg("threshold"), nb::arg("max_pulls"),
             nb::arg("seed"));
}

}  // namespace skb
