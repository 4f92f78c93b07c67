// The loops over the rows of a stream.
#include "stream.h"

#include "looks.h"

namespace skb::SKB_LEVEL {
namespace {

template <class T> SKB_INLINE Target *play_of(const Stream<T> &s, const Draws &draws, index i) {
    return draws.plays.rows > 0 ? draws.plays.row(i) : s.play;
}

// Calls f with a function that plays and learns one row.
template <class T, class F> void with_round(const Stream<T> &s, F &&f) {
    const int loss = s.settings.loss;
    if (s.settings.learner == MIXTURE) {
        with_width(s.table.cols, [&](auto width) {
            if (loss == LOGISTIC) f(mixture_round<LOGISTIC, width.value, T>);
            else f(mixture_round<CUBE_SIGMOID, width.value, T>);
        });
    } else {
        with_loss(loss, [&](auto kind) { f(single_round<kind.value, T>); });
    }
}

// Elementary steps of a row with n entries, roughly.
template <class T> index steps(const Stream<T> &s, index n) {
    return 2 * n * s.table.cols + 100 * s.n_outputs;
}

template <class T>
void dense(Stream<T> &s, Mat<const T> X, const Draws &draws, Pulse &pulse) {
    const Settings &settings = s.settings;
    const index n = X.cols + (settings.intercept ? 1 : 0);
    for (index j = 0; j < n; ++j) s.idx[j] = std::int32_t(j);
    with_round(s, [&](auto round) {
        for (index i = 0; i < X.rows; ++i) {
            fill_dense(settings.scaling, X.row(i), X.cols, s.scalars[ROWS] + 1.0,
                       settings.clip, s.mean.data, s.square.data, s.robust,
                       settings.intercept, s.val);
            round(s, n, draws, i, play_of(s, draws, i));
            if (stops(pulse, steps(s, n))) return;
        }
    });
}

template <class T> void sparse(Stream<T> &s, Csr<T> X, const Draws &draws, Pulse &pulse) {
    const index column = magnitude_column(s);
    with_round(s, [&](auto round) {
        for (index i = 0; i + 1 < X.indptr.size; ++i) {
            prefetch_row(s, X, i + 1);
            const index n = fill_sparse(s, X, i, column);
            round(s, n, draws, i, play_of(s, draws, i));
            if (stops(pulse, steps(s, n))) return;
        }
    });
}

template <class T>
void try_dense(Stream<T> &s, Mat<const T> X, const Trial &trial, Memory memory) {
    const Settings &settings = s.settings;
    const index n = X.cols + (settings.intercept ? 1 : 0);
    for (index j = 0; j < n; ++j) s.idx[j] = std::int32_t(j);
    detach(s, memory);
    fill_dense(settings.scaling, X.row(0), X.cols, s.scalars[ROWS] + 1.0, settings.clip,
               s.mean.data, s.square.data, s.robust, settings.intercept, s.val);
    try_row(s, n, trial);
}

template <class T>
void try_sparse(Stream<T> &s, Csr<T> X, const Trial &trial, Memory memory) {
    detach(s, memory);
    const index n = fill_sparse<AS_IF>(s, X, 0, magnitude_column(s));
    try_row(s, n, trial);
}

template <class T> void points_dense(Stream<T> &s, Mat<const T> X, Mat<double> u) {
    const index n = X.cols + (s.settings.intercept ? 1 : 0);
    for (index j = 0; j < n; ++j) s.idx[j] = std::int32_t(j);
    for (index i = 0; i < X.rows; ++i) {
        fill_still(s, X.row(i), X.cols);
        point(s, n, u.row(i));
    }
}

template <class T> void points_sparse(Stream<T> &s, Csr<T> X, Mat<double> u) {
    for (index i = 0; i + 1 < X.indptr.size; ++i)
        point(s, fill_sparse<STAYS>(s, X, i, magnitude_column(s)), u.row(i));
}

template <class T>
void features(int scaling, bool intercept, double clip, Mat<const T> X, Vec<double> mean,
              Vec<double> square, Mat<double> robust, double first, Mat<double> out) {
    for (index i = 0; i < X.rows; ++i)
        fill_dense(scaling, X.row(i), X.cols, first + double(i) + 1.0, clip, mean.data,
                   square.data, robust, intercept, out.row(i));
}

}  // namespace

extern const StreamKernels<float> stream_kernels_float;
extern const StreamKernels<double> stream_kernels_double;
const StreamKernels<float> stream_kernels_float{
    dense<float>,        sparse<float>,        try_dense<float>, try_sparse<float>,
    points_dense<float>, points_sparse<float>, features<float>};
const StreamKernels<double> stream_kernels_double{
    dense<double>,        sparse<double>,        try_dense<double>, try_sparse<double>,
    points_dense<double>, points_sparse<double>, features<double>};

}  // namespace skb::SKB_LEVEL
