// The Birkhoff polytope of doubly stochastic matrices: assignments.
#pragma once
#include "permutahedron.h"
#include "scaling.h"

namespace skb::SKB_LEVEL {
namespace {

inline bool fractional(double entry) { return 0.0 < entry && entry < 1.0; }

inline double integral(double entry) {
    if (entry < INTEGRAL) return 0.0;
    return entry > 1.0 - INTEGRAL ? 1.0 : entry;
}

// Walks rows and columns through fractional entries, from a row that has one, to a cycle.
// Returns where in the path it begins, or -1 where the walk ends before.
inline index find_cycle(const double *matrix, index n, index line, index *row_step,
                        index *column_step, index *path, index &length) {
    for (index i = 0; i < n; ++i) row_step[i] = column_step[i] = -1;
    index column = -1;
    length = 0;
    for (;;) {
        row_step[line] = length;
        index following = -1;
        for (index j = 0; j < n; ++j)
            if (j != column && fractional(matrix[line * n + j])) {
                following = j;
                break;
            }
        if (following < 0) return -1;
        path[length++] = line * n + following;
        column = following;
        if (column_step[column] >= 0) return column_step[column];
        column_step[column] = length;
        following = -1;
        for (index i = 0; i < n; ++i)
            if (i != line && fractional(matrix[i * n + column])) {
                following = i;
                break;
            }
        if (following < 0) return -1;
        path[length++] = following * n + column;
        line = following;
        if (row_step[line] >= 0) return row_step[line];
    }
}

// Fills a play with a random assignment of mean u (cycle rounding).
//
// While an entry is fractional, mass is shifted alternately along a cycle of fractional
// entries, up or down with the probabilities that keep the mean; each step makes at least
// one entry integral.
inline void draw_assignment(const double *u, index n, const double *uniform, Target *play,
                            Memory memory) {
    double *matrix = take<double>(memory, n * n);
    for (index i = 0; i < n * n; ++i) matrix[i] = integral(u[i]);
    index *row_step = take<index>(memory, n), *column_step = take<index>(memory, n);
    index *path = take<index>(memory, 2 * n + 2);
    index start = 0;
    for (index draw = 0; draw < n * n; ++draw) {
        index found = -1;
        for (index i = start; i < n && found < 0; ++i)
            for (index j = 0; j < n; ++j)
                if (fractional(matrix[i * n + j])) {
                    found = i;
                    break;
                }
        if (found < 0) break;
        start = found;
        index length = 0;
        const index begin =
            find_cycle(matrix, n, found, row_step, column_step, path, length);
        if (begin < 0) {
            // A lone fractional entry is rounding error.
            double &entry = matrix[path[length > 0 ? length - 1 : 0]];
            entry = entry > 0.5 ? 1.0 : 0.0;
            continue;
        }
        double up = 1.0, down = 1.0;
        for (index k = begin; k < length; ++k) {
            const double entry = matrix[path[k]];
            if ((k - begin) % 2 == 0) {
                up = smaller(up, 1.0 - entry);
                down = smaller(down, entry);
            } else {
                up = smaller(up, entry);
                down = smaller(down, 1.0 - entry);
            }
        }
        const double shift = uniform[draw] * (up + down) < down ? up : -down;
        for (index k = begin; k < length; ++k) {
            double &entry = matrix[path[k]];
            entry = integral(entry + ((k - begin) % 2 == 0 ? shift : -shift));
        }
    }
    bool *taken = take<bool>(memory, n);
    for (index j = 0; j < n; ++j) taken[j] = false;
    bool valid = true;
    for (index i = 0; i < n; ++i) {
        index best = 0;
        for (index j = 1; j < n; ++j)
            if (matrix[i * n + j] > matrix[i * n + best]) best = j;
        play[i] = best;
        valid = valid && !taken[best];
        taken[best] = true;
    }
    double *prices = take<double>(memory, n);
    if (!valid) assign(matrix, n, play, prices, memory);
}

struct Birkhoff {
    static void vertex(const Target *target, index items, double *y, index n) {
        for (index i = 0; i < n; ++i) y[i] = 0.0;
        for (index i = 0; i < items; ++i) y[i * items + target[i]] = 1.0;
    }
    static void nearest(const double *u, index n, Target *vertex, index items,
                        Memory memory) {
        // Equal probabilities differ by errors of the scaling, which must not decide.
        double *gain = take<double>(memory, n);
        for (index i = 0; i < n; ++i) gain[i] = rint(u[i] * 1073741824.0);
        double *prices = take<double>(memory, items);
        assign(gain, items, vertex, prices, memory);
    }
    static double mixing_rate(const double *u, index, const Target *vertex, index items) {
        double gap = double(items);
        for (index i = 0; i < items; ++i) gap -= u[i * items + vertex[i]];
        return smaller(1.0, larger(gap, 0.0));
    }
    static double loss_at(const double *u, index, const Target *target, index items) {
        double total = 0.0;
        for (index i = 0; i < items; ++i) total += 1.0 - u[i * items + target[i]];
        return total / double(items);
    }
    static double loss_between(const Target *play, const Target *target, index,
                               index items) {
        double total = 0.0;
        for (index i = 0; i < items; ++i)
            if (play[i] != target[i]) total += 1.0;
        return total / double(items);
    }
    // Tells cheaply that no assignment comes near u: row maxima bound its gain.
    static bool surely_randomises(const double *u, index items) {
        double gap = double(items);
        for (index i = 0; i < items; ++i) {
            double best = u[i * items];
            for (index j = 1; j < items; ++j) best = larger(best, u[i * items + j]);
            gap -= best;
        }
        return gap >= 1.0;
    }
    static void sample(const double *u, index, const double *uniform, Target *play,
                       index items, Memory memory) {
        draw_assignment(u, items, uniform, play, memory);
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
