// One E-step of outputs whose log-densities are linear in given columns, and the sums of
// the columns that the M-step needs: nothing but the sums leaves it.
#pragma once
#include "../common/vexp.h"
#include "scaled.h"

namespace skb::SKB_LEVEL {
namespace {

// Rows whose sums are added to the others' at once, so that rounding errors do not pile up.
constexpr index CHUNK = 512;
// Rows of a block, at most, unless a sequence is longer.
constexpr index BLOCK = 2048;

// density(i, k) = exp(constant_k + sum_m columns(i, m) weights(m, k) - the row's largest);
// returns the sum of the largest.
template <int S>
double linear_densities(Mat<const double> columns, Mat<const double> weights,
                        Vec<const double> constant, Mat<double> density) {
    const index s = S ? S : constant.size, m = columns.cols;
    double total = 0.0;
    for (index begin = 0; begin < columns.rows; begin += CHUNK) {
        const index end = begin + CHUNK < columns.rows ? begin + CHUNK : columns.rows;
        double part = 0.0;
        for (index i = begin; i < end; ++i) {
            const double *__restrict x = columns.row(i);
            double *__restrict out = density.row(i);
            for (index k = 0; k < s; ++k) out[k] = constant[k];
            for (index l = 0; l < m; ++l) {
                const double *__restrict w = weights.row(l);
                for (index k = 0; k < s; ++k) out[k] += x[l] * w[k];
            }
            double top = out[0];
            for (index k = 1; k < s; ++k) top = out[k] > top ? out[k] : top;
            for (index k = 0; k < s; ++k) out[k] -= top;
            part += top;
        }
        double *__restrict values = density.row(begin);
        const index n = (end - begin) * s;
        for (index k = 0; k < n; ++k) values[k] = exp_nonpositive(values[k]);
        total += part;
    }
    return total;
}

// Sum of logarithms of numbers between TINY and a few.
double sum_of_logs(Vec<const double> values) {
    double total = 0.0;
    for (index begin = 0; begin < values.size; begin += CHUNK) {
        const index end = begin + CHUNK < values.size ? begin + CHUNK : values.size;
        double product = 1.0;
        index exponent = 0;
        for (index i = begin; i < end; ++i) {
            int own;
            product *= frexp(values[i], &own);
            exponent += own;
        }
        total += log(product) + double(exponent) * 0.693147180559945309417;
    }
    return total;
}

// One block of sequences; adds the pairs over their transition probabilities.
double linear_block(Mat<const double> columns, Vec<const index> starts,
                    Vec<const double> start, Mat<const double> transition,
                    Mat<const double> weights, Vec<const double> constant,
                    Vec<double> first, Vec<double> size, Mat<double> pairs,
                    Mat<double> sums, Memory memory, Pulse &pulse) {
    const index n = columns.rows, m = columns.cols, s = constant.size;
    const Mat<double> density{take<double>(memory, n * s), n, s};
    const Mat<double> filtered{take<double>(memory, n * s), n, s};
    const Vec<double> scale{take<double>(memory, n), n};
    double *part = take<double>(memory, s * (m + 1));
    double value = with_states(s, [&](auto states) {
        return linear_densities<states.value>(columns, weights, constant, density);
    });
    const Mat<const double> b{density.data, n, s}, ahead{filtered.data, n, s};
    if (!(value - value == 0.0) ||
        forward(b, starts, start, transition, false, filtered, scale, pulse))
        return -INFINITE;
    value += sum_of_logs({scale.data, n});
    // Posteriors take the places of the filtered probabilities.
    backward(b, starts, transition, ahead, {scale.data, n}, filtered, pairs, memory, pulse);
    for (index q = 0; q + 1 < starts.size; ++q)
        for (index k = 0; k < s; ++k) first[k] += filtered(starts[q], k);
    for (index begin = 0; begin < n; begin += CHUNK) {
        const index end = begin + CHUNK < n ? begin + CHUNK : n;
        for (index k = 0; k < s * (m + 1); ++k) part[k] = 0.0;
        for (index i = begin; i < end; ++i) {
            const double *__restrict x = columns.row(i);
            const double *__restrict p = filtered.row(i);
            for (index k = 0; k < s; ++k) {
                double *__restrict out = part + k * (m + 1);
                for (index l = 0; l < m; ++l) out[l] += p[k] * x[l];
                out[m] += p[k];
            }
        }
        for (index k = 0; k < s; ++k) {
            for (index l = 0; l < m; ++l) sums(k, l) += part[k * (m + 1) + l];
            size[k] += part[k * (m + 1) + m];
        }
    }
    return value;
}

// In blocks of whole sequences, which stay in the cache from one loop to the next.
double linear_step(Mat<const double> columns, Vec<const index> starts,
                   Vec<const double> start, Mat<const double> transition,
                   Mat<const double> weights, Vec<const double> constant,
                   Vec<double> first, Vec<double> size, Mat<double> pairs,
                   Mat<double> sums, Memory memory, Pulse &pulse) {
    const index n_sequences = starts.size - 1, m = columns.cols, s = constant.size;
    index *own = take<index>(memory, starts.size);
    double value = 0.0;
    for (index q = 0; q < n_sequences;) {
        const index base = starts[q];
        index count = 0;
        own[0] = 0;
        while (q < n_sequences && (count == 0 || starts[q + 1] - base <= BLOCK)) {
            own[++count] = starts[q + 1] - base;
            ++q;
        }
        const Mat<const double> rows{columns.data + base * m, own[count], m};
        value += linear_block(rows, {own, count + 1}, start, transition, weights, constant,
                              first, size, pairs, sums, memory, pulse);
        if (value == -INFINITE) return value;
    }
    for (index j = 0; j < s; ++j)
        for (index k = 0; k < s; ++k) pairs(j, k) *= transition(j, k);
    return value;
}

}  // namespace
}  // namespace skb::SKB_LEVEL
