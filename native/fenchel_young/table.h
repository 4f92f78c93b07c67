// Rows of the table of weights: scores, and steps.
#pragma once
#include "../common/levels.h"
#include "stream.h"

namespace skb::SKB_LEVEL {
namespace {

constexpr double UNIT_DAMPING = 0.03;  // of rows of unit length, in squared gradients

// out = sum_j val_j table[idx_j], rows of W entries (0: known at run time). In the table's
// precision; columns in groups whose sums stay in registers.
template <int W, class T>
void score_rows(const std::int32_t *idx, const T *val, index n, Mat<T> table,
                T *__restrict out) {
    using B = typename Block<T>::type;
    constexpr int size = Block<T>::size;
    constexpr int group = W > 0 ? (W / size <= 8 ? W / size : 8) : 4;
    const index width = W > 0 ? W : table.cols;
    index first = 0;
    for (; first + group * size <= width; first += group * size) {
        B sum[group];
        for (int g = 0; g < group; ++g) sum[g] = B{};
        for (index j = 0; j < n; ++j) {
            const T *row = table.row(idx[j]) + first;
            const T x = val[j];
            for (int g = 0; g < group; ++g) sum[g] += x * load<T>(row + g * size);
        }
        for (int g = 0; g < group; ++g) store<T>(sum[g], out + first + g * size);
    }
    for (; first < width; first += size) {
        B sum{};
        for (index j = 0; j < n; ++j) sum += val[j] * load<T>(table.row(idx[j]) + first);
        store<T>(sum, out + first);
    }
}

// table[idx_j] -= rate_j fast + val_j slow.
template <int W, class T>
void descend(const std::int32_t *idx, const T *val, index n, const T *rate,
             const T *__restrict fast, const T *__restrict slow, Mat<T> table) {
    const index width = W > 0 ? W : table.cols;
    for (index j = 0; j < n; ++j) {
        T *__restrict row = table.row(idx[j]);
        const T c = rate[j], x = val[j];
        for (index k = 0; k < width; ++k) row[k] -= c * fast[k] + x * slow[k];
    }
}

// Updates the features' accumulators and fills their step sizes:
// G_i += g^2 energy; rate_i = g / sqrt(G_i + 2 feature^2) with g = feature x_i. The damping
// is the largest squared gradient of a unit feature in a row of the largest weight.
template <class T>
void step_sizes(const std::int32_t *idx, const T *__restrict val, index n, Mat<T> table,
                index column, double feature_, double weight, double energy_,
                T *__restrict rate) {
    const T damping = T(2.0 * feature_ * feature_ * (weight * weight));
    const T feature = T(feature_);
    const T energy = T(energy_);
    for (index j = 0; j < n; ++j) {
        const T g = feature * val[j];
        T &entry = table(idx[j], column);
        const T squares = entry + g * g * energy;
        entry = squares;
        rate[j] = squares + damping;
    }
    for (index j = 0; j < n; ++j)
        rate[j] = T(double(feature * val[j]) / sqrt(double(rate[j])));
}

// The same where each expert after the first has sums of its own, from the column on, and
// energies of its own; the rates of an expert follow those of the one before.
template <class T>
void own_step_sizes(const std::int32_t *idx, const T *__restrict val, index n, Mat<T> table,
                    index column, double feature, double weight, const double *energies,
                    index n_experts, double *__restrict rate) {
    const double damping = UNIT_DAMPING * feature * feature * (weight * weight);
    for (index j = 0; j < n; ++j) {
        T *sums = table.row(idx[j]) + column;
        const double g = feature * double(val[j]);
        for (index m = 0; m + 1 < n_experts; ++m) {
            const double squares = double(sums[m]) + g * g * energies[m];
            sums[m] = T(squares);
            rate[m * n + j] = g / sqrt(squares + damping);
        }
    }
}

// table[idx_j] -= rate_j fast, expert by expert, + val_j slow.
template <class T>
void own_descend(const std::int32_t *idx, const T *val, index n, const double *rate,
                 const T *__restrict fast, const T *__restrict slow, index n_outputs,
                 index n_experts, Mat<T> table) {
    for (index j = 0; j < n; ++j) {
        T *__restrict row = table.row(idx[j]);
        const T x = val[j];
        for (index k = 0; k < n_outputs; ++k) row[k] -= x * slow[k];
        for (index m = 1; m < n_experts; ++m) {
            const T c = T(rate[(m - 1) * n + j]);
            const index end = (m + 1) * n_outputs;
            for (index k = m * n_outputs; k < end; ++k) row[k] -= c * fast[k];
        }
    }
}

// Rows of the table are padded to multiples of 16 entries.
template <class F> void with_width(index width, F &&f) {
    switch (width) {
    case 16: return f(Const<16>{});
    case 32: return f(Const<32>{});
    case 48: return f(Const<48>{});
    case 64: return f(Const<64>{});
    case 80: return f(Const<80>{});
    case 96: return f(Const<96>{});
    case 112: return f(Const<112>{});
    case 128: return f(Const<128>{});
    default: return f(Const<0>{});
    }
}

// theta = sum_j val_j table[idx_j], in double precision.
template <class T>
void score_single(const std::int32_t *idx, const T *val, index n, Mat<T> table, index size,
                  double *__restrict theta) {
    for (index k = 0; k < size; ++k) theta[k] = 0.0;
    for (index j = 0; j < n; ++j) {
        const T *row = table.row(idx[j]);
        const double x = double(val[j]);
        for (index k = 0; k < size; ++k) theta[k] += x * double(row[k]);
    }
}

// table += coefficient x residual^T on the row's features.
template <class T, class Entry>
void add_outer(const std::int32_t *idx, const T *val, index n, double coefficient,
               const double *__restrict residual, index size, Mat<Entry> table) {
    for (index j = 0; j < n; ++j) {
        Entry *__restrict row = table.row(idx[j]);
        const double x = coefficient * double(val[j]);
        for (index k = 0; k < size; ++k) row[k] = Entry(double(row[k]) + x * residual[k]);
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
