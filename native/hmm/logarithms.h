// Recursions with logarithms: nothing underflows, and maxima take the place of sums.
#pragma once
#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

inline double log_sum(const double *values, index n) {
    double largest = -INFINITE;
    for (index k = 0; k < n; ++k) largest = larger(largest, values[k]);
    if (largest == -INFINITE) return largest;
    double total = 0.0;
    for (index k = 0; k < n; ++k) total += exp(values[k] - largest);
    return largest + log(total);
}

void log_pass(Mat<const double> log_density, index first, index stop,
              Vec<const double> log_start, Mat<const double> log_transition,
              Mat<double> posterior, Mat<double> pairs, Vec<double> rows, Memory memory,
              Pulse &pulse) {
    const index s = log_density.cols, n = stop - first;
    const Mat<double> ahead{take<double>(memory, n * s), n, s};
    double *work = take<double>(memory, s), *after = take<double>(memory, s);
    double *next = take<double>(memory, s);
    double before = 0.0;
    for (index i = 0; i < n; ++i) {
        for (index k = 0; k < s; ++k) {
            if (i == 0) {
                ahead(0, k) = log_start[k] + log_density(first, k);
                continue;
            }
            for (index j = 0; j < s; ++j) work[j] = ahead(i - 1, j) + log_transition(j, k);
            ahead(i, k) = log_sum(work, s) + log_density(first + i, k);
        }
        const double total = log_sum(ahead.row(i), s);
        rows[i] = total - before;
        before = total;
        if (stops(pulse, 20 * s * s)) return;
    }
    for (index k = 0; k < s; ++k) after[k] = 0.0;
    for (index i = n - 1; i >= 0; --i) {
        if (i < n - 1) {
            for (index j = 0; j < s; ++j) {
                for (index k = 0; k < s; ++k) {
                    work[k] =
                        log_transition(j, k) + log_density(first + i + 1, k) + after[k];
                    pairs(j, k) += exp(ahead(i, j) + work[k] - before);
                }
                next[j] = log_sum(work, s);
            }
            for (index k = 0; k < s; ++k) after[k] = next[k];
        }
        for (index k = 0; k < s; ++k)
            posterior(first + i, k) = exp(ahead(i, k) + after[k] - before);
        if (stops(pulse, 40 * s * s)) return;
    }
}

double viterbi(Mat<const double> log_density, Vec<const index> starts,
               Vec<const double> log_start, Mat<const double> log_transition,
               Vec<index> states, Memory memory, Pulse &pulse) {
    const index n = log_density.rows, s = log_density.cols;
    const Mat<std::int32_t> back{take<std::int32_t>(memory, n * s), n, s};
    double *best = take<double>(memory, s), *next = take<double>(memory, s);
    double joint = 0.0;
    for (index q = 0; q + 1 < starts.size; ++q) {
        const index first = starts[q], stop = starts[q + 1];
        for (index k = 0; k < s; ++k) best[k] = log_start[k] + log_density(first, k);
        for (index i = first + 1; i < stop; ++i) {
            for (index k = 0; k < s; ++k) {
                index at = 0;
                double value = best[0] + log_transition(0, k);
                for (index j = 1; j < s; ++j) {
                    const double other = best[j] + log_transition(j, k);
                    if (other > value) {
                        at = j;
                        value = other;
                    }
                }
                back(i, k) = std::int32_t(at);
                next[k] = value + log_density(i, k);
            }
            for (index k = 0; k < s; ++k) best[k] = next[k];
            if (stops(pulse, 2 * s * s)) return joint;
        }
        index state = 0;
        for (index k = 1; k < s; ++k)
            if (best[k] > best[state]) state = k;
        joint += best[state];
        for (index i = stop - 1; i >= first; --i) {
            states[i] = state;
            if (i > first) state = back(i, state);
        }
    }
    return joint;
}

}  // namespace
}  // namespace skb::SKB_LEVEL
