// Rows as the learner sees them.
#pragma once
#include "../common/levels.h"
#include "robust.h"

namespace skb::SKB_LEVEL {
namespace {

// Welford's update with the row itself, then the clipped standardised row.
template <class T, class Out>
void standardize(const T *__restrict x_row, index d, double count, double clip,
                 double *__restrict mean, double *__restrict square, Out *__restrict val) {
    const double inverse = 1.0 / count;
#pragma omp simd
    for (index j = 0; j < d; ++j) {
        const double x = double(x_row[j]);
        const double change = x - mean[j];
        const double centre = mean[j] + change * inverse;
        const double spread = square[j] + change * (x - centre);
        mean[j] = centre;
        square[j] = spread;
        double z = (x - centre) * sqrt(count / spread);
        z = spread > 0.0 ? z : 0.0;
        z = z > -clip ? z : -clip;
        val[j] = Out(z < clip ? z : clip);
    }
}

template <class T, class Out>
void fill_dense(int scaling, const T *row, index d, double count, double clip,
                double *mean, double *square, Mat<double> robust, bool intercept,
                Out *__restrict val) {
    if (scaling == ROBUST)
        standardize_robustly(row, d, count - 1.0, clip, robust, mean, square, val);
    else if (scaling == STANDARDIZE)
        standardize(row, d, count, clip, mean, square, val);
    else
        for (index j = 0; j < d; ++j) val[j] = Out(row[j]);
    if (intercept) val[d] = Out(1);
}

constexpr double UNLIKE = 8.0;  // magnitudes of one scale differ by less than this factor

// What happens to a sparse feature's magnitude: it follows the entry, or only looks as if
// it did, or stays.
enum Following { FOLLOWS, AS_IF, STAYS };

// Fills idx and val with a sparse row; returns its length. A feature's scale is its first
// non-zero magnitude, in a column of the table; with MAGNITUDE it goes half the way (of
// logarithms) to one that is unlike it.
template <Following HOW = FOLLOWS, class T>
index fill_sparse(const Stream<T> &s, const Csr<T> &X, index i, index column) {
    index n = 0;
    const T clip = T(s.settings.clip);
    for (index position = X.indptr[i]; position < X.indptr[i + 1]; ++position) {
        T x = X.data[position];
        if (x == T(0)) continue;
        const std::int32_t j = X.indices[position];
        if (s.settings.scaling == FIRST_MAGNITUDE || s.settings.scaling == MAGNITUDE) {
            T scale = s.table(j, column);
            if constexpr (HOW != STAYS) {
                const T size = x < T(0) ? -x : x;
                if (scale == T(0)) scale = size;
                else if (s.settings.scaling == MAGNITUDE &&
                         (size > T(UNLIKE) * scale || T(UNLIKE) * size < scale))
                    scale = T(double(scale) * sqrt(double(size) / double(scale)));
            }
            if constexpr (HOW == FOLLOWS) s.table(j, column) = scale;
            // Features that were never seen.
            if (scale == T(0)) continue;
            x = x / scale;
            x = x > -clip ? x : -clip;
            x = x < clip ? x : clip;
        }
        s.idx[n] = j;
        s.val[n] = x;
        ++n;
    }
    if (s.settings.intercept) {
        s.idx[n] = std::int32_t(s.table.rows - 1);
        s.val[n] = T(1);
        ++n;
    }
    return n;
}

// Loads the table's rows for row i while the one before is worked on.
template <class T> SKB_INLINE void prefetch_row(const Stream<T> &s, const Csr<T> &X, index i) {
    constexpr index line = 64 / sizeof(T);
    if (i + 1 >= X.indptr.size) return;
    for (index position = X.indptr[i]; position < X.indptr[i + 1]; ++position) {
        const T *row = s.table.row(X.indices[position]);
        for (index k = 0; k < s.table.cols; k += line) __builtin_prefetch(row + k, 0, 2);
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
