// Posteriors from windows around each row.
#pragma once
#include "scaled.h"

namespace skb::SKB_LEVEL {
namespace {

struct Window {
    Mat<const double> density, transition;
    bool careful;
    double *ahead, *before, *next, *after, *back;

    Window(Mat<const double> density, Mat<const double> transition, bool careful,
           Memory &memory)
        : density(density), transition(transition), careful(careful) {
        const index s = density.cols;
        ahead = take<double>(memory, s);
        before = take<double>(memory, s);
        next = take<double>(memory, s);
        after = take<double>(memory, s);
        back = take<double>(memory, s);
    }

    // From the law at row low to row i, not scaled there; false where it underflows.
    bool forwards(const double *law, index low, index i) {
        const index s = density.cols;
        bool good = true;
        for (index k = 0; k < s; ++k) {
            ahead[k] = law[k] * density(low, k);
            before[k] = 0.0;
            if (careful && law[k] > 0.0 && ahead[k] < TINY) good = false;
        }
        for (index t = low; t <= i; ++t) {
            if (t > low) {
                for (index k = 0; k < s; ++k) before[k] = ahead[k];
                for (index k = 0; k < s; ++k) {
                    double value = 0.0;
                    for (index j = 0; j < s; ++j) value += before[j] * transition(j, k);
                    next[k] = value * density(t, k);
                    if (careful && value > 0.0 && next[k] < TINY) good = false;
                }
                for (index k = 0; k < s; ++k) ahead[k] = next[k];
            }
            double total = 0.0;
            for (index k = 0; k < s; ++k) total += ahead[k];
            if (!(good && total > TINY)) return false;
            if (t < i)
                for (index k = 0; k < s; ++k) ahead[k] /= total;
        }
        return true;
    }

    bool backwards(index high, index i) {
        const index s = density.cols;
        for (index k = 0; k < s; ++k) after[k] = 1.0;
        for (index t = high; t > i; --t) {
            double total = 0.0;
            for (index j = 0; j < s; ++j) {
                double value = 0.0;
                for (index k = 0; k < s; ++k)
                    value += transition(j, k) * density(t, k) * after[k];
                back[j] = value;
                total += value;
            }
            if (!(total > TINY)) return false;
            for (index j = 0; j < s; ++j) after[j] = back[j] / total;
        }
        return true;
    }
};

void windows(Mat<const double> density, Vec<const index> starts, Vec<const double> start,
             Vec<const double> stationary, Mat<const double> transition, bool careful,
             index reach, Mat<double> posterior, Mat<double> pairs, Vec<bool> failed,
             Memory memory, Pulse &pulse) {
    const index s = density.cols;
    Window window(density, transition, careful, memory);
    for (index q = 0; q + 1 < starts.size; ++q) {
        const index first = starts[q], stop = starts[q + 1];
        for (index i = first; i < stop; ++i) {
            const index low = first > i - reach ? first : i - reach;
            const index high = stop - 1 < i + reach ? stop - 1 : i + reach;
            if (stops(pulse, 4 * (high - low + 1) * s * s)) return;
            if (!window.forwards((low == first ? start : stationary).data, low, i)) {
                failed[i] = true;
                continue;
            }
            const bool good = window.backwards(high, i);
            double total = 0.0;
            for (index k = 0; k < s; ++k) {
                posterior(i, k) = window.ahead[k] * window.after[k];
                total += posterior(i, k);
            }
            if (!(good && total > TINY)) {
                failed[i] = true;
                continue;
            }
            for (index k = 0; k < s; ++k) posterior(i, k) /= total;
            if (i == first) continue;
            for (index k = 0; k < s; ++k) {
                const double end = density(i, k) * window.after[k] / total;
                for (index j = 0; j < s; ++j)
                    pairs(j, k) += window.before[j] * transition(j, k) * end;
            }
        }
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
