// Recursions along sequences of hidden Markov models.
//
// Rows of several sequences stand one after the other; `starts` has the number of each
// one's first row, and of the row after the last. Densities are those of the states,
// divided by the largest of the row: shape (n, s). A sequence that underflows gets 0 as
// its first scale.
#pragma once
#include "../common/view.h"

namespace skb {

struct HmmKernels {
    void (*subtract_largest)(Mat<const double> values, Mat<double> result,
                             Vec<double> largest);
    // Filtered probabilities, and p(x_t | x_<t) over the row's scale; returns the number of
    // sequences that underflow. Careful: a state that has vanished may be the only way to
    // another, because of transitions that are (nearly) impossible.
    index (*forward)(Mat<const double> density, Vec<const index> starts,
                     Vec<const double> start, Mat<const double> transition, bool careful,
                     Mat<double> filtered, Vec<double> scale, Pulse &);
    // Posteriors; to pairs (s, s) the sums of p(z_i = j, z_{i+1} = k | x) / A(j, k).
    void (*backward)(Mat<const double> density, Vec<const index> starts,
                     Mat<const double> transition, Mat<const double> filtered,
                     Vec<const double> scale, Mat<double> posterior, Mat<double> pairs,
                     Memory, Pulse &);
    // Both for the rows first to stop with logarithms, which nothing can underflow; adds
    // the pairs' posteriors themselves. `rows` become conditional log-likelihoods.
    void (*log_pass)(Mat<const double> log_density, index first, index stop,
                     Vec<const double> log_start, Mat<const double> log_transition,
                     Mat<double> posterior, Mat<double> pairs, Vec<double> rows, Memory,
                     Pulse &);
    // The most probable states; returns their joint log-probability.
    double (*viterbi)(Mat<const double> log_density, Vec<const index> starts,
                      Vec<const double> log_start, Mat<const double> log_transition,
                      Vec<index> states, Memory, Pulse &);
    // Posteriors given the rows at most `reach` away. Each window is started from the
    // stationary law, or from the start law at the first row of its sequence. Pairs are
    // those of a row and the one before it, given the window of the row. Rows whose window
    // underflows are marked.
    void (*windows)(Mat<const double> density, Vec<const index> starts,
                    Vec<const double> start, Vec<const double> stationary,
                    Mat<const double> transition, bool careful, index reach,
                    Mat<double> posterior, Mat<double> pairs, Vec<bool> failed, Memory,
                    Pulse &);
    // Hyperbolic tangents of the fields of the symmetric chain,
    // T_i = t (u_{i-1} + T_{i-1}) / (1 + u_{i-1} T_{i-1}), and the same backwards, with u
    // the tangents of the rows' own fields ("lean") and t = tanh(beta) ("tilt").
    void (*fields)(Vec<const double> lean, Vec<const index> starts, double tilt,
                   Vec<double> left, Vec<double> right);
    // The same for one long sequence, in blocks that are swept in lockstep. Each begins
    // with a field of 0, `overlap` rows before its own rows: the map is a contraction by
    // |t|, so that what is wrong with that is gone by then.
    void (*fields_in_blocks)(Vec<const double> lean, double tilt, index overlap,
                             index n_lanes, Vec<double> left, Vec<double> right, Memory);
    // A whole E-step for densities exp(constant_k + columns(i) weights(k)), up to what does
    // not depend on the state: adds to the probabilities of the sequences' first states, of
    // all states, of pairs, and to the sums of the columns (s, m). Returns the
    // log-likelihood, or -inf where the scaled recursion underflows or something is not
    // finite; the sums are then of no use.
    double (*linear_step)(Mat<const double> columns, Vec<const index> starts,
                          Vec<const double> start, Mat<const double> transition,
                          Mat<const double> weights, Vec<const double> constant,
                          Vec<double> first, Vec<double> size, Mat<double> pairs,
                          Mat<double> sums, Memory, Pulse &);
};

}  // namespace skb
