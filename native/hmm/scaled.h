// The scaled recursions, forwards and backwards.
#pragma once
#include "states.h"

namespace skb::SKB_LEVEL {
namespace {

// Probabilities below have lost digits, or are about to be lost.
constexpr double TINY = 1e-290;

// What one row's filtered probabilities come from: the start law, or the row before.
template <int S> struct Forward {
    using V = States<S>;
    typename V::type transition[S], now;
    const double *start;

    Forward(Vec<const double> law, Mat<const double> A) : now{}, start(law.data) {
        for (int j = 0; j < S; ++j) transition[j] = V::read(A.row(j));
    }
    // Returns the sum of the row's probabilities before they are scaled.
    template <bool CAREFUL> double step(bool first, const double *density, bool &bad) {
        const typename V::type b = V::read(density);
        typename V::type prior;
        if (first) {
            prior = V::read(start);
        } else {
            prior = now[0] * transition[0];
            for (int j = 1; j < S; ++j) prior += now[j] * transition[j];
        }
        now = prior * b;
        if constexpr (CAREFUL)
            for (int k = 0; k < S; ++k) bad |= prior[k] > 0.0 && b[k] > 0.0 && now[k] < TINY;
        double total = now[0];
        for (int k = 1; k < S; ++k) total += now[k];
        return total;
    }
    void scale(double inverse, double *filtered) {
        now *= V::all(inverse);
        V::write(now, filtered);
    }
};

// Any number of states; probabilities stay in the rows of the result.
template <> struct Forward<0> {
    index s;
    const double *start, *transition;
    const double *before = nullptr;
    double *now = nullptr;

    Forward(Vec<const double> law, Mat<const double> A)
        : s(law.size), start(law.data), transition(A.data) {}
    template <bool CAREFUL> double step(bool first, const double *b, bool &bad) {
        if (first) {
            for (index k = 0; k < s; ++k) now[k] = start[k];
        } else {
            for (index k = 0; k < s; ++k) now[k] = before[0] * transition[k];
            for (index j = 1; j < s; ++j) {
                const double weight = before[j];
                for (index k = 0; k < s; ++k) now[k] += weight * transition[j * s + k];
            }
        }
        if constexpr (CAREFUL)
            for (index k = 0; k < s; ++k) bad |= now[k] > 0.0 && b[k] > 0.0 && now[k] * b[k] < TINY;
        for (index k = 0; k < s; ++k) now[k] *= b[k];
        double total = now[0];
        for (index k = 1; k < s; ++k) total += now[k];
        return total;
    }
    void scale(double inverse, double *) {
        for (index k = 0; k < s; ++k) now[k] *= inverse;
    }
};

template <int S, bool CAREFUL>
index forward_of(Mat<const double> density, Vec<const index> starts, Vec<const double> start,
                 Mat<const double> transition, Mat<double> filtered, Vec<double> scale,
                 Pulse &pulse) {
    Forward<S> rows(start, transition);
    index failed = 0;
    for (index q = 0; q + 1 < starts.size; ++q) {
        bool bad = false;
        for (index i = starts[q]; i < starts[q + 1]; ++i) {
            if constexpr (S == 0) {
                rows.before = rows.now;
                rows.now = filtered.row(i);
            }
            const double total =
                rows.template step<CAREFUL>(i == starts[q], density.row(i), bad);
            scale[i] = total;
            if (bad || !(total > TINY)) {
                if constexpr (S > 0) rows.scale(1.0, filtered.row(i));
                bad = true;
                break;
            }
            rows.scale(1.0 / total, filtered.row(i));
        }
        if (bad) {
            scale[starts[q]] = 0.0;
            ++failed;
        }
        if (stops(pulse, (starts[q + 1] - starts[q]) * density.cols * density.cols)) break;
    }
    return failed;
}

index forward(Mat<const double> density, Vec<const index> starts, Vec<const double> start,
              Mat<const double> transition, bool careful, Mat<double> filtered,
              Vec<double> scale, Pulse &pulse) {
    return with_states(density.cols, [&](auto s) {
        const auto run = careful ? forward_of<s.value, true> : forward_of<s.value, false>;
        return run(density, starts, start, transition, filtered, scale, pulse);
    });
}

template <int S> struct Backward {
    using V = States<S>;
    typename V::type columns[S], sums[S], after;
    Mat<double> pairs;

    Backward(Mat<const double> A, Mat<double> pairs, Memory) : after{}, pairs(pairs) {
        for (int k = 0; k < S; ++k) {
            columns[k] = typename V::type{};
            for (int j = 0; j < S; ++j) columns[k][j] = A(j, k);
            sums[k] = V::read(pairs.row(k));
        }
    }
    void begin() { after = V::all(1.0); }
    void step(const double *density, double inverse, const double *filtered, double *out) {
        const typename V::type ahead = V::read(density) * after * V::all(inverse);
        const typename V::type weights = V::read(filtered);
        after = V::all(0.0);
        for (int k = 0; k < S; ++k) after += columns[k] * V::all(ahead[k]);
        for (int j = 0; j < S; ++j) sums[j] += V::all(weights[j]) * ahead;
        V::write(weights * after, out);
    }
    void finish() {
        for (int j = 0; j < S; ++j) V::write(sums[j], pairs.row(j));
    }
};

template <> struct Backward<0> {
    Mat<const double> A;
    Mat<double> pairs;
    double *after, *ahead;

    Backward(Mat<const double> A, Mat<double> pairs, Memory memory) : A(A), pairs(pairs) {
        after = take<double>(memory, A.cols);
        ahead = take<double>(memory, A.cols);
    }
    void begin() {
        for (index k = 0; k < A.cols; ++k) after[k] = 1.0;
    }
    void step(const double *density, double inverse, const double *filtered, double *out) {
        const index s = A.cols;
        double *__restrict beyond = after, *__restrict next = ahead;
        for (index k = 0; k < s; ++k) next[k] = density[k] * beyond[k] * inverse;
        for (index j = 0; j < s; ++j) {
            const double *__restrict a = A.row(j);
            double *__restrict sums = pairs.row(j);
            double value = 0.0;
            const double weight = filtered[j];
            for (index k = 0; k < s; ++k) {
                value += a[k] * next[k];
                sums[k] += weight * next[k];
            }
            beyond[j] = value;
            out[j] = weight * value;
        }
    }
    void finish() {}
};

template <int S>
void backward_of(Mat<const double> density, Vec<const index> starts,
                 Mat<const double> transition, Mat<const double> filtered,
                 Vec<const double> scale, Mat<double> posterior, Mat<double> pairs,
                 Memory memory, Pulse &pulse) {
    const index s = density.cols;
    Backward<S> rows(transition, pairs, memory);
    for (index q = 0; q + 1 < starts.size; ++q) {
        const index first = starts[q], last = starts[q + 1] - 1;
        if (scale[first] == 0.0) continue;
        rows.begin();
        for (index k = 0; k < s; ++k) posterior(last, k) = filtered(last, k);
        for (index i = last - 1; i >= first; --i)
            rows.step(density.row(i + 1), 1.0 / scale[i + 1], filtered.row(i),
                      posterior.row(i));
        if (stops(pulse, (last - first) * s * s)) break;
    }
    rows.finish();
}

void backward(Mat<const double> density, Vec<const index> starts,
              Mat<const double> transition, Mat<const double> filtered,
              Vec<const double> scale, Mat<double> posterior, Mat<double> pairs,
              Memory memory, Pulse &pulse) {
    with_states(density.cols, [&](auto s) {
        backward_of<s.value>(density, starts, transition, filtered, scale, posterior, pairs,
                             memory, pulse);
    });
}

}  // namespace
}  // namespace skb::SKB_LEVEL
