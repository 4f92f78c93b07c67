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
            if (careful && law[k] > 0.0 && density(low, k) > 0.0 && ahead[k] < TINY)
                good = false;
        }
        for (index t = low; t <= i; ++t) {
            if (t > low) {
                for (index k = 0; k < s; ++k) before[k] = ahead[k];
                for (index k = 0; k < s; ++k) {
                    double value = 0.0;
                    for (index j = 0; j < s; ++j) value += before[j] * transition(j, k);
                    next[k] = value * density(t, k);
                    if (careful && value > 0.0 && density(t, k) > 0.0 && next[k] < TINY)
                        good = false;
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

// One window after the other, each from its first row: O(window) a row.
bool one_window(Window &window, Mat<const double> density, Mat<const double> transition,
                const double *law, index first, index low, index high, index i,
                double *posterior, Mat<double> pairs) {
    const index s = density.cols;
    if (!window.forwards(law, low, i)) return false;
    const bool good = window.backwards(high, i);
    double total = 0.0;
    for (index k = 0; k < s; ++k) {
        posterior[k] = window.ahead[k] * window.after[k];
        total += posterior[k];
    }
    if (!(good && total > TINY)) return false;
    for (index k = 0; k < s; ++k) posterior[k] /= total;
    if (i == first) return true;
    for (index k = 0; k < s; ++k) {
        const double end = density(i, k) * window.after[k] / total;
        for (index j = 0; j < s; ++j)
            pairs(j, k) += window.before[j] * transition(j, k) * end;
    }
    return true;
}

// Products of the steps M_t = A diag(density of row t), of which a window needs those of
// its rows. Rows are cut into blocks as long as the window: what a window needs is the
// end of one block and the beginning of the next, and both are products that grow by one
// factor a row.
struct Steps {
    Mat<const double> density, transition;
    bool careful;
    index s;

    // to = M_t, or to = M_t from, or to = from M_t; scaled. False where something is lost.
    bool step(index t, double *to) const {
        for (index j = 0; j < s; ++j)
            for (index k = 0; k < s; ++k)
                to[j * s + k] = transition(j, k) * density(t, k);
        return scaled(to, s * s);
    }
    bool before(index t, const double *from, double *to) const {
        for (index j = 0; j < s; ++j) {
            double *out = to + j * s;
            for (index k = 0; k < s; ++k) out[k] = 0.0;
            for (index l = 0; l < s; ++l) {
                const double weight = transition(j, l) * density(t, l);
                for (index k = 0; k < s; ++k) out[k] += weight * from[l * s + k];
            }
        }
        return scaled(to, s * s);
    }
    bool after(index t, const double *from, double *to) const {
        for (index j = 0; j < s; ++j) {
            double *out = to + j * s;
            for (index k = 0; k < s; ++k) out[k] = 0.0;
            for (index l = 0; l < s; ++l) {
                const double weight = from[j * s + l];
                for (index k = 0; k < s; ++k) out[k] += weight * transition(l, k);
            }
            for (index k = 0; k < s; ++k) out[k] *= density(t, k);
        }
        return scaled(to, s * s);
    }
    bool scaled(double *values, index n) const {
        double top = 0.0;
        for (index k = 0; k < n; ++k) top = values[k] > top ? values[k] : top;
        if (!(top > TINY)) return false;
        bool good = true;
        for (index k = 0; k < n; ++k) {
            values[k] /= top;
            // In chains with zeros also a zero may be what has been lost.
            if (careful && values[k] < TINY) good = false;
        }
        return good;
    }
};

// Posteriors of one sequence in O(1) products a row. Rows where something is lost are
// marked in `lost`, and nothing is added for them.
void slide(Steps steps, const double *start, const double *law, index first, index stop,
           index reach, Mat<double> posterior, Mat<double> pairs, bool *lost,
           Memory memory, Pulse &pulse) {
    const index s = steps.s, size = s * s, block = reach;
    const Mat<const double> density = steps.density, transition = steps.transition;
    double *ends = take<double>(memory, block * size);
    bool *good_ends = take<bool>(memory, block);
    double *sums = take<double>(memory, (block + 1) * s);
    bool *good_sums = take<bool>(memory, block + 1);
    double *running = take<double>(memory, size), *other = take<double>(memory, size);
    double *vector = take<double>(memory, s), *next = take<double>(memory, s);
    const index base = first + 1;
    const auto begin_of = [&](index t) { return base + (t - base) / block * block; };
    // Suffix products of the block that begins at b: entry t - b is M_t ... M_end.
    const auto fill_ends = [&](index b) {
        index end = b + block - 1;
        if (end > stop - 1) end = stop - 1;
        good_ends[end - b] = steps.step(end, ends + (end - b) * size);
        for (index t = end - 1; t >= b; --t)
            good_ends[t - b] = steps.before(t, ends + (t + 1 - b) * size,
                                            ends + (t - b) * size) &&
                               good_ends[t + 1 - b];
    };
    for (index i = first; i < stop; ++i) lost[i] = false;

    // The backward vectors, kept in the rows of the posteriors. First of the rows whose
    // windows end with the sequence.
    for (index k = 0; k < s; ++k) posterior(stop - 1, k) = 1.0;
    const index clipped = stop - 1 - reach > first ? stop - 1 - reach : first;
    for (index i = stop - 2; i >= clipped; --i) {
        for (index j = 0; j < s; ++j) {
            double value = 0.0;
            for (index k = 0; k < s; ++k)
                value += transition(j, k) * density(i + 1, k) * posterior(i + 1, k);
            posterior(i, j) = value;
        }
        lost[i] = lost[i + 1] || !steps.scaled(posterior.row(i), s);
    }
    for (index b = base; b - 1 < clipped; b += block) {
        // Rows i with i + 1 in the block that begins at b; windows M_{i+1} ... M_{i+reach}.
        fill_ends(b);
        const index after = b + block;
        bool good = true;
        for (index t = after; t < after + block - 1 && t <= stop - 1; ++t) {
            const bool fine = t == after ? steps.step(t, running)
                                         : steps.after(t, running, other);
            if (t > after) {
                double *swap = running;
                running = other;
                other = swap;
            }
            good = good && fine;
            good_sums[t - after] = good;
            for (index j = 0; j < s; ++j) {
                double value = 0.0;
                for (index k = 0; k < s; ++k) value += running[j * s + k];
                sums[(t - after) * s + j] = value;
            }
        }
        for (index i = b - 1; i < b - 1 + block && i < clipped; ++i) {
            const double *end = ends + (i + 1 - b) * size;
            bool fine = good_ends[i + 1 - b];
            const double *factor = nullptr;
            if (i + 1 > b) {
                factor = sums + (i + reach - after) * s;
                fine = fine && good_sums[i + reach - after];
            }
            for (index j = 0; j < s; ++j) {
                double value = 0.0;
                for (index k = 0; k < s; ++k)
                    value += end[j * s + k] * (factor ? factor[k] : 1.0);
                posterior(i, j) = value;
            }
            lost[i] = !fine || !steps.scaled(posterior.row(i), s);
        }
        if (stops(pulse, 2 * block * size * s)) return;
    }

    // Forwards: the vector of the row before, then this row.
    double *ahead = take<double>(memory, s), *plain = take<double>(memory, s);
    bool plain_lost = false, running_good = true;
    index filled = -1;
    for (index i = first; i < stop; ++i) {
        bool fine = true;
        if (i - reach <= first) {
            // From the start of the sequence: `plain` is the vector of the row before.
            if (i > first) {
                for (index k = 0; k < s; ++k) vector[k] = plain[k];
                fine = !plain_lost;
            }
            for (index k = 0; k < s; ++k) {
                double value = i == first ? start[k] : 0.0;
                if (i > first)
                    for (index j = 0; j < s; ++j) value += plain[j] * transition(j, k);
                ahead[k] = value * density(i, k);
            }
            for (index k = 0; k < s; ++k) next[k] = ahead[k];
            plain_lost = plain_lost || !steps.scaled(next, s);
            for (index k = 0; k < s; ++k) plain[k] = next[k];
            fine = fine && !plain_lost;
        }
        const index a = i - reach + 1, c = i - 1;
        if (c >= base) {
            // The running product of the block of c, up to c.
            if (c == begin_of(c)) {
                running_good = steps.step(c, running);
            } else {
                running_good = steps.after(c, running, other) && running_good;
                double *swap = running;
                running = other;
                other = swap;
            }
        }
        if (i - reach > first) {
            const index low = i - reach;
            for (index k = 0; k < s; ++k) vector[k] = law[k] * density(low, k);
            fine = steps.scaled(vector, s);
            if (a <= c) {
                const index b = begin_of(a);
                if (b != filled && !(a == b)) {
                    fill_ends(b);
                    filled = b;
                }
                const auto apply = [&](const double *matrix) {
                    for (index k = 0; k < s; ++k) next[k] = 0.0;
                    for (index j = 0; j < s; ++j)
                        for (index k = 0; k < s; ++k)
                            next[k] += vector[j] * matrix[j * s + k];
                    for (index k = 0; k < s; ++k) vector[k] = next[k];
                    return steps.scaled(vector, s);
                };
                // A block less its last step, less its first, or parts of two.
                if (a > b) fine = good_ends[a - b] && apply(ends + (a - b) * size) && fine;
                if (begin_of(c) != b || a == b) fine = running_good && apply(running) && fine;
            }
            for (index k = 0; k < s; ++k) {
                double value = 0.0;
                for (index j = 0; j < s; ++j) value += vector[j] * transition(j, k);
                ahead[k] = value * density(i, k);
            }
        }
        double total = 0.0;
        for (index k = 0; k < s; ++k) total += ahead[k] * posterior(i, k);
        if (!fine || lost[i] || !(total > TINY)) {
            lost[i] = true;
            continue;
        }
        if (i > first)
            for (index k = 0; k < s; ++k) {
                const double end = density(i, k) * posterior(i, k) / total;
                for (index j = 0; j < s; ++j)
                    pairs(j, k) += vector[j] * transition(j, k) * end;
            }
        for (index k = 0; k < s; ++k) posterior(i, k) *= ahead[k] / total;
        if (stops(pulse, 2 * size * s)) return;
    }
}

void windows(Mat<const double> density, Vec<const index> starts, Vec<const double> start,
             Vec<const double> stationary, Mat<const double> transition, bool careful,
             index reach, Mat<double> posterior, Mat<double> pairs, Vec<bool> failed,
             Memory memory, Pulse &pulse) {
    const index s = density.cols;
    Window window(density, transition, careful, memory);
    // Products of matrices pay for long windows.
    const bool long_enough = reach > 2 * s;
    for (index q = 0; q + 1 < starts.size; ++q) {
        const index first = starts[q], stop = starts[q + 1];
        const bool slides = long_enough && reach < stop - first - 1;
        if (slides)
            slide(Steps{density, transition, careful, s}, start.data, stationary.data,
                  first, stop, reach, posterior, pairs, failed.data, memory, pulse);
        for (index i = first; i < stop; ++i) {
            if (slides && !failed[i]) continue;
            const index low = first > i - reach ? first : i - reach;
            const index high = stop - 1 < i + reach ? stop - 1 : i + reach;
            if (stops(pulse, 4 * (high - low + 1) * s * s)) return;
            const double *law = (low == first ? start : stationary).data;
            failed[i] = !one_window(window, density, transition, law, first, low, high, i,
                                    posterior.row(i), pairs);
        }
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
