#include "smp.h"

#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

// For |x| <= 4: Taylor on x/8 (remainder below 1e-16 relative), then three times
// exp(2u) - 1 = e (2 + e).
inline double expm1_bounded(double x) {
    const double r = x * 0.125;
    double e = 1.0 / 6227020800.0;
    e = e * r + 1.0 / 479001600.0;
    e = e * r + 1.0 / 39916800.0;
    e = e * r + 1.0 / 3628800.0;
    e = e * r + 1.0 / 362880.0;
    e = e * r + 1.0 / 40320.0;
    e = e * r + 1.0 / 5040.0;
    e = e * r + 1.0 / 720.0;
    e = e * r + 1.0 / 120.0;
    e = e * r + 1.0 / 24.0;
    e = e * r + 1.0 / 6.0;
    e = e * r + 0.5;
    e = e * r + 1.0;
    e = e * r;
    e = e * (2.0 + e);
    e = e * (2.0 + e);
    return e * (2.0 + e);
}

// The largest absolute entry, infinity if one is beyond the bound or NaN.
inline double largest_change(const double *row, index n) {
    double lanes[8] = {};
    index outside[8] = {};
    index i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) {
            const double size = fabs(row[i + k]);
            outside[k] += !(size <= MAX_CHANGE);
            lanes[k] = size > lanes[k] ? size : lanes[k];
        }
    for (int k = 0; i < n; ++i, ++k) {
        const double size = fabs(row[i]);
        outside[k] += !(size <= MAX_CHANGE);
        lanes[k] = size > lanes[k] ? size : lanes[k];
    }
    for (int k = 1; k < 8; ++k) {
        outside[0] += outside[k];
        lanes[0] = larger(lanes[0], lanes[k]);
    }
    return outside[0] ? INFINITE : lanes[0];
}

void binary_increments(Mat<double> change, Vec<const double> proba,
                       Vec<const double> curvature, Vec<double> largest) {
    const index n = change.cols;
    const double *__restrict p = proba.data, *__restrict w = curvature.data;
    for (index j = 0; j < change.rows; ++j) {
        double *__restrict row = change.row(j);
        largest[j] = largest_change(row, n);
        if (largest[j] == INFINITE) {
            for (index i = 0; i < n; ++i) row[i] = 0.0;
            continue;
        }
        for (index i = 0; i < n; ++i) {
            const double e = expm1_bounded(row[i]);
            row[i] = w[i] * e / (1.0 + p[i] * e);
        }
    }
}

void softmax_increments(Cube<double> change, Mat<const double> proba,
                        Vec<const double> weight, Vec<double> largest) {
    const index n_classes = change.rows, n = change.cols;
    // Rows in parts whose means stay in the first-level cache.
    constexpr index part = 256;
    double means[part];
    for (index j = 0; j < change.pages; ++j) {
        const Mat<double> rows = change.page(j);
        double top = 0.0;
        for (index k = 0; k < n_classes; ++k)
            top = larger(top, largest_change(rows.row(k), n));
        largest[j] = top;
        if (top == INFINITE) {
            for (index i = 0; i < n_classes * n; ++i) rows.data[i] = 0.0;
            continue;
        }
        for (index first = 0; first < n; first += part) {
            const index size = n - first < part ? n - first : part;
            const double *__restrict w = weight.data + first;
            for (index i = 0; i < size; ++i) means[i] = 0.0;
            for (index k = 0; k < n_classes; ++k) {
                double *__restrict row = rows.row(k) + first;
                const double *__restrict p = proba.row(k) + first;
                for (index i = 0; i < size; ++i) {
                    row[i] = expm1_bounded(row[i]);
                    means[i] += p[i] * row[i];
                }
            }
            for (index k = 0; k < n_classes; ++k) {
                double *__restrict row = rows.row(k) + first;
                const double *__restrict p = proba.row(k) + first;
                for (index i = 0; i < size; ++i)
                    row[i] = p[i] * (row[i] - means[i]) * (w[i] / (1.0 + means[i]));
            }
        }
    }
}

void second_order_terms(Mat<const double> change, Vec<const double> second,
                        Mat<double> out) {
    const double *__restrict b = second.data;
    for (index j = 0; j < change.rows; ++j) {
        const double *__restrict a = change.row(j);
        double *__restrict to = out.row(j);
        for (index i = 0; i < change.cols; ++i) to[i] = b[i] * a[i] * a[i];
    }
}

void third_order_terms(Mat<const double> change, Mat<double> bend,
                       Vec<const double> second, Vec<const double> third) {
    const double *__restrict b = second.data, *__restrict c = third.data;
    for (index j = 0; j < change.rows; ++j) {
        const double *__restrict a = change.row(j);
        double *__restrict to = bend.row(j);
        for (index i = 0; i < change.cols; ++i)
            to[i] = a[i] * (2.0 * b[i] * to[i] + c[i] * a[i] * a[i]);
    }
}

// Solves eta = offset + gain (1 - sigmoid(eta)) with gain >= 0.
//
// Bracketed Halley iteration. The upper end max(offset, 0) + log(1 + gain) matters:
// leverage near one makes gains of 1e3 and more, where offset + gain alone leaves an
// interval that no bracketing method gets through in a few dozen steps.
double rising_root(double offset, double gain) {
    double low = offset, high = offset + gain;
    if (gain > 1.0) high = smaller(high, larger(offset, 0.0) + log1p(gain));
    // Halley's step from the lower end is nearly exact for the usual small gains.
    double q = 1.0 / (1.0 + exp(offset));
    double curvature = gain * q * (1.0 - q);
    double step = gain * q / (1.0 + curvature);
    double bend = curvature * (1.0 - 2.0 * q) * step / (1.0 + curvature);
    if (fabs(bend) < 0.5) step /= 1.0 - 0.5 * bend;
    double eta = smaller(larger(offset + step, low), high);
    for (int iteration = 0; iteration < 200; ++iteration) {
        q = 1.0 / (1.0 + exp(eta));
        const double value = eta - offset - gain * q;
        (value < 0.0 ? low : high) = eta;
        curvature = gain * q * (1.0 - q);
        const double slope = 1.0 + curvature;
        step = value / slope;
        bend = curvature * (2.0 * q - 1.0) * step / slope;
        if (fabs(bend) < 0.5) step /= 1.0 - 0.5 * bend;
        double trial = eta - step;
        if (!(low <= trial && trial <= high)) trial = 0.5 * (low + high);
        const double change = fabs(trial - eta);
        eta = trial;
        // Cubic convergence: the error left is below gain change^3.
        if ((1.0 + gain) * (change * change * change) <= 1e-16 ||
            change <= 4e-16 * fabs(eta))
            break;
    }
    return eta;
}

void one_step_roots(Vec<const double> eta, Vec<const double> leverage,
                    Mat<const double> slope, Mat<const double> target, Mat<double> root) {
    for (index i = 0; i < slope.rows; ++i) {
        const double e = eta[i], h = leverage[i];
        for (index j = 0; j < slope.cols; ++j) {
            const double a = slope(i, j), b = target(i, j);
            if (a <= 0.0) {
                const double p = 1.0 / (1.0 + exp(-e));
                const double rate = larger(1.0 + h * a * p * (1.0 - p), 1e-12);
                root(i, j) = e + h * (b - a * p) / rate;
            } else if (2.0 * b >= a) {
                // A target nearer to the slope is written as label 1, otherwise mirrored to
                // one: the offset then has no cancellation for huge leverages.
                root(i, j) = rising_root(e + h * (b - a), a * h);
            } else {
                root(i, j) = -rising_root(-e - h * b, a * h);
            }
        }
    }
}

}  // namespace

extern const SmpKernels smp_kernels;
const SmpKernels smp_kernels{binary_increments, softmax_increments, second_order_terms,
                             third_order_terms, one_step_roots};

}  // namespace skb::SKB_LEVEL
