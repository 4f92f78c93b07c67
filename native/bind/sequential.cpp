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

std::pair<index, double> replay(Array1<const index> arms, Array1<const double> rewards,
                                Array1<double> counts, Array1<double> sums, double x_lower,
                                double x_upper, double sigma, double epsilon,
                                double log_p) {
    const auto pulled = view(arms);
    const auto values = view(rewards);
    const auto n = view(counts);
    const auto total = view(sums);
    require(values.size == pulled.size, "rewards: wrong length");
    require(n.size > 1 && total.size == n.size, "counts, sums: wrong length");
    bool good = true;
    for (index t = 0; t < pulled.size; ++t) good &= 0 <= pulled[t] && pulled[t] < n.size;
    require(good, "arms: out of range");
    const Scratch scratch(arm_bytes(n.size));
    const Found found = run([&](Pulse &pulse) {
        return level->sequential->replay(pulled, values, n, total, x_lower, x_upper, sigma,
                                         epsilon, log_p, scratch.memory(), pulse);
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

double sum_of_gamma(index now, Array1<const index> recent, Array1<const double> points,
                    Array1<const double> weights, Array1<const double> table,
                    double scale) {
    const auto at = view(recent);
    const auto gamma = view(table);
    same_shape(points, weights, "weights: wrong length");
    bool good = true;
    for (index k = 0; k < at.size; ++k)
        good &= now - at[k] >= 1 && now - at[k] <= gamma.size;
    require(good, "recent: an age is not in the table");
    return level->sequential->sum_of_gamma(now, at, view(points), view(weights), gamma,
                                           scale);
}

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
    m.def("replay", replay, array("arms"), array("rewards"), array("counts"),
          array("sums"), nb::arg("x_lower"), nb::arg("x_upper"), nb::arg("sigma"),
          nb::arg("epsilon"), nb::arg("log_p"));
    m.def("simulate", simulate, array("expected"), nb::arg("sigma"), nb::arg("epsilon"),
          nb::arg("x_lower"), nb::arg("x_upper"), nb::arg("max_pulls"), nb::arg("uniform"),
          nb::arg("bernoulli"), nb::arg("seed"), array("counts"), array("sums"));
    m.def("sum_of_gamma", sum_of_gamma, nb::arg("now"), array("recent"), array("points"),
          array("weights"), array("table"), nb::arg("scale"));
}

}  // namespace skb
