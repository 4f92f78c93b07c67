// The loops over the rows of a stream.
#include "stream.h"

#include "features.h"
#include "mixture.h"
#include "single.h"

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
void features(int scaling, bool intercept, double clip, Mat<const T> X, Vec<double> mean,
              Vec<double> square, Mat<double> robust, double first, Mat<double> out) {
    for (index i = 0; i < X.rows; ++i)
        fill_dense(scaling, X.row(i), X.cols, first + double(i) + 1.0, clip, mean.data,
                   square.data, robust, intercept, out.row(i));
}

}  // namespace

extern const StreamKernels<float> stream_kernels_float;
extern const StreamKernels<double> stream_kernels_double;
const StreamKernels<float> stream_kernels_float{dense<float>, sparse<float>,
                                                features<float>};
const StreamKernels<double> stream_kernels_double{dense<double>, sparse<double>,
                                                  features<double>};

}  // namespace skb::SKB_LEVEL
