// The assignment of largest gain (Hungarian method).
#pragma once
#include "../../common/levels.h"
#include "../rows.h"

namespace skb::SKB_LEVEL {
namespace {

// Fills columns with the assignment of largest gain; gain is an n by n matrix.
//
// `prices` becomes the rows' dual variables: with some column prices,
// gain_ij + row_i + column_j <= 0, and 0 on the assignment.
inline void assign(const double *gain, index n, Target *columns, double *prices,
                   Memory memory) {
    double *row_price = take<double>(memory, n + 1);
    double *column_price = take<double>(memory, n + 1);
    double *slack = take<double>(memory, n + 1);
    index *row_of = take<index>(memory, n + 1), *before = take<index>(memory, n + 1);
    bool *used = take<bool>(memory, n + 1);
    for (index k = 0; k <= n; ++k) {
        row_price[k] = column_price[k] = 0.0;
        row_of[k] = before[k] = 0;
    }
    for (index i = 1; i <= n; ++i) {
        row_of[0] = i;
        index j = 0;
        for (index k = 0; k <= n; ++k) {
            slack[k] = INFINITE;
            used[k] = false;
        }
        do {
            used[j] = true;
            const index at = row_of[j];
            double step = INFINITE;
            index best = 0;
            for (index k = 1; k <= n; ++k) {
                if (used[k]) continue;
                const double reduced =
                    -gain[(at - 1) * n + k - 1] - row_price[at] - column_price[k];
                if (reduced < slack[k]) {
                    slack[k] = reduced;
                    before[k] = j;
                }
                if (slack[k] < step) {
                    step = slack[k];
                    best = k;
                }
            }
            if (best == 0) {
                // Gains that are no numbers: any assignment will do.
                for (index k = 0; k < n; ++k) {
                    columns[k] = k;
                    prices[k] = 0.0;
                }
                return;
            }
            for (index k = 0; k <= n; ++k) {
                if (used[k]) {
                    row_price[row_of[k]] += step;
                    column_price[k] -= step;
                } else {
                    slack[k] -= step;
                }
            }
            j = best;
        } while (row_of[j] != 0);
        while (j != 0) {
            row_of[j] = row_of[before[j]];
            j = before[j];
        }
    }
    for (index k = 1; k <= n; ++k) {
        columns[row_of[k] - 1] = k - 1;
        prices[k - 1] = row_price[k];
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
