// Fields of the symmetric two-state chain.
#pragma once
#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

void fields(Vec<const double> lean, Vec<const index> starts, double tilt, Vec<double> left,
            Vec<double> right) {
    for (index q = 0; q + 1 < starts.size; ++q) {
        const index first = starts[q], stop = starts[q + 1];
        double value = 0.0;
        left[first] = 0.0;
        for (index i = first; i < stop - 1; ++i) {
            const double u = lean[i];
            value = tilt * (u + value) / (1.0 + u * value);
            left[i + 1] = value;
        }
        value = 0.0;
        right[stop - 1] = 0.0;
        for (index i = stop - 1; i > first; --i) {
            const double u = lean[i];
            value = tilt * (u + value) / (1.0 + u * value);
            right[i - 1] = value;
        }
    }
}

void fields_in_blocks(Vec<const double> lean, double tilt, index overlap, index n_lanes,
                      Vec<double> left, Vec<double> right, Memory memory) {
    const index n = lean.size, size = (n + n_lanes - 1) / n_lanes;
    double *ahead = take<double>(memory, n_lanes), *back = take<double>(memory, n_lanes);
    for (index lane = 0; lane < n_lanes; ++lane) ahead[lane] = back[lane] = 0.0;
    for (index step = -overlap; step < size; ++step) {
        for (index lane = 0; lane < n_lanes; ++lane) {
            // The field at row i comes from row i - 1.
            const index i = lane * size + step;
            if (1 <= i && i < n) {
                const double u = lean[i - 1];
                ahead[lane] = tilt * (u + ahead[lane]) / (1.0 + u * ahead[lane]);
            } else {
                ahead[lane] = 0.0;
            }
            if (step >= 0 && i < n) left[i] = ahead[lane];
        }
        for (index lane = 0; lane < n_lanes; ++lane) {
            const index i = (lane + 1) * size - 1 - step;
            if (0 <= i && i < n - 1) {
                const double u = lean[i + 1];
                back[lane] = tilt * (u + back[lane]) / (1.0 + u * back[lane]);
            } else {
                back[lane] = 0.0;
            }
            if (step >= 0 && 0 <= i && i < n) right[i] = back[lane];
        }
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
