// The entropic projection on doubly stochastic matrices.
#pragma once
#include "assignment.h"

namespace skb::SKB_LEVEL {
namespace {

// Matrix scaling stops when every row sum is this close to one.
constexpr double SINKHORN_TOLERANCE = 1e-10;
constexpr int SINKHORN_MAX_ITER = 60, NEWTON_MAX_ITER = 200;
// Beyond this range of scores exponentials lose digits and scaling is slow anyway.
constexpr double SINKHORN_RANGE = 30.0;

// Scales exp(mu (theta - high)) alternately; returns whether it converged. `left` becomes
// the logarithms of the row factors.
inline bool scale_matrix(const double *theta, double mu, double high, index n, double *left,
                         Memory memory) {
    double *kernel = take<double>(memory, n * n), *rows = take<double>(memory, n);
    double *right = take<double>(memory, n), *columns = take<double>(memory, n);
    for (index i = 0; i < n * n; ++i) kernel[i] = exp(mu * (theta[i] - high));
    for (index i = 0; i < n; ++i) rows[i] = 1.0;
    // Row sums tell something only where the column sums are right.
    for (index j = 0; j < n; ++j) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) total += kernel[i * n + j];
        right[j] = 1.0 / total;
    }
    bool converged = false;
    for (int iteration = 0; iteration < SINKHORN_MAX_ITER; ++iteration) {
        double worst = 0.0;
        for (index j = 0; j < n; ++j) columns[j] = 0.0;
        for (index i = 0; i < n; ++i) {
            const double *row = kernel + i * n;
            double total = 0.0;
            for (index j = 0; j < n; ++j) total += row[j] * right[j];
            worst = larger(worst, fabs(rows[i] * total - 1.0));
            rows[i] = 1.0 / total;
            for (index j = 0; j < n; ++j) columns[j] += row[j] * rows[i];
        }
        if (worst <= SINKHORN_TOLERANCE) {
            converged = true;
            break;
        }
        for (index j = 0; j < n; ++j) right[j] = 1.0 / columns[j];
    }
    for (index i = 0; i < n; ++i) left[i] = log(rows[i]);
    return converged;
}

// Fills the matrix whose columns sum to one; returns the dual objective.
inline double normalise_columns(const double *theta, double mu, index n, const double *left,
                                double *matrix) {
    double value = 0.0;
    for (index i = 0; i < n; ++i) value += left[i];
    for (index j = 0; j < n; ++j) {
        double top = -INFINITE;
        for (index i = 0; i < n; ++i) top = larger(top, mu * theta[i * n + j] + left[i]);
        double total = 0.0;
        for (index i = 0; i < n; ++i) {
            matrix[i * n + j] = exp(mu * theta[i * n + j] + left[i] - top);
            total += matrix[i * n + j];
        }
        for (index i = 0; i < n; ++i) matrix[i * n + j] /= total;
        value -= top + log(total);
    }
    return value;
}

// Solves the dual's Newton system, a graph Laplacian; the first entry stays 0.
//
// Couplings sum_j P_ij P_kj may be tiny, and are the reason why alternate scaling is slow:
// elimination on the couplings loses nothing to cancellation.
inline void newton_direction(const double *matrix, index n, const double *gradient,
                             double *step, Memory memory) {
    double *system = take<double>(memory, n * n), *diagonal = take<double>(memory, n);
    for (index i = 0; i < n; ++i) {
        step[i] = gradient[i];
        diagonal[i] = 0.0;
        for (index k = 0; k < n; ++k) {
            double total = 0.0;
            if (k != i)
                for (index j = 0; j < n; ++j) total += matrix[i * n + j] * matrix[k * n + j];
            system[i * n + k] = total;
        }
    }
    for (index i = n - 1; i > 0; --i) {
        for (index k = 0; k < i; ++k) diagonal[i] += system[i * n + k];
        if (diagonal[i] <= 0.0) continue;
        for (index k = 0; k < i; ++k) {
            const double ratio = system[k * n + i] / diagonal[i];
            step[k] += ratio * step[i];
            for (index m = 0; m < i; ++m)
                if (m != k) system[k * n + m] += ratio * system[i * n + m];
        }
    }
    step[0] = 0.0;
    for (index i = 1; i < n; ++i) {
        if (diagonal[i] <= 0.0) {
            step[i] = 0.0;
            continue;
        }
        for (index k = 0; k < i; ++k) step[i] += system[i * n + k] * step[k];
        step[i] /= diagonal[i];
    }
}

// Maximises the entropic projection's dual in the row factors' logarithms: damped Newton
// steps; where one does not ascend, a step of alternate scaling.
inline void newton_dual(const double *theta, double mu, index n, double *left,
                        Memory memory) {
    double *matrix = take<double>(memory, n * n), *other = take<double>(memory, n * n);
    double *gradient = take<double>(memory, n), *step = take<double>(memory, n);
    double *trial = take<double>(memory, n);
    double value = normalise_columns(theta, mu, n, left, matrix);
    for (int iteration = 0; iteration < NEWTON_MAX_ITER; ++iteration) {
        double worst = 0.0;
        for (index i = 0; i < n; ++i) {
            double total = 0.0;
            for (index j = 0; j < n; ++j) total += matrix[i * n + j];
            gradient[i] = 1.0 - total;
            worst = larger(worst, fabs(gradient[i]));
        }
        if (worst <= SINKHORN_TOLERANCE) break;
        newton_direction(matrix, n, gradient, step, memory);
        double slope = 0.0, longest = 0.0, fresh = 0.0;
        for (index i = 0; i < n; ++i) {
            slope += step[i] * gradient[i];
            longest = larger(longest, fabs(step[i]));
        }
        double rate = longest > 0.0 ? smaller(1.0, 30.0 / longest) : 0.0;
        bool accepted = false;
        while (slope > 0.0 && rate > 1e-4) {
            for (index i = 0; i < n; ++i) trial[i] = left[i] + rate * step[i];
            fresh = normalise_columns(theta, mu, n, trial, other);
            // Close to the optimum the gain drowns in rounding.
            if (fresh >= value + 0.1 * rate * slope - 1e-12 * (1.0 + fabs(value))) {
                accepted = true;
                break;
            }
            rate *= 0.3;
        }
        if (!accepted) {
            for (index i = 0; i < n; ++i)
                trial[i] = left[i] - log(larger(1.0 - gradient[i], 1e-300));
            fresh = normalise_columns(theta, mu, n, trial, other);
        }
        value = fresh;
        for (index i = 0; i < n; ++i) left[i] = trial[i];
        double *const swap = matrix;
        matrix = other;
        other = swap;
    }
}

// Scales rows and columns down where they sum to more than one, and adds the missing mass
// as a rank-one matrix: both marginals become exact.
inline void repair_marginals(double *matrix, index n, double *u, Memory memory) {
    double *rows = take<double>(memory, n), *columns = take<double>(memory, n);
    for (index i = 0; i < n; ++i) {
        double total = 0.0;
        for (index j = 0; j < n; ++j) total += matrix[i * n + j];
        const double factor = total > 0.0 ? smaller(1.0, 1.0 / total) : 1.0;
        for (index j = 0; j < n; ++j) matrix[i * n + j] *= factor;
    }
    for (index j = 0; j < n; ++j) {
        double total = 0.0;
        for (index i = 0; i < n; ++i) total += matrix[i * n + j];
        const double factor = total > 0.0 ? smaller(1.0, 1.0 / total) : 1.0;
        for (index i = 0; i < n; ++i) matrix[i * n + j] *= factor;
    }
    double missing = 0.0;
    for (index i = 0; i < n; ++i) {
        rows[i] = 1.0;
        for (index j = 0; j < n; ++j) rows[i] -= matrix[i * n + j];
        missing += rows[i];
    }
    for (index j = 0; j < n; ++j) {
        columns[j] = 1.0;
        for (index i = 0; i < n; ++i) columns[j] -= matrix[i * n + j];
    }
    for (index i = 0; i < n; ++i)
        for (index j = 0; j < n; ++j) {
            const double extra = missing > 0.0 ? rows[i] * columns[j] / missing : 0.0;
            u[i * n + j] = larger(0.0, matrix[i * n + j] + extra);
        }
}

// Fills u with the projection of n by n scores: alternate scaling of exp(mu theta)
// (Sinkhorn), then Newton's method where that is slow.
inline void project_birkhoff(const double *theta, double mu, index n, double *u,
                             Memory memory) {
    double low = theta[0], high = theta[0];
    for (index i = 0; i < n * n; ++i) {
        low = smaller(low, theta[i]);
        high = larger(high, theta[i]);
    }
    double *left = take<double>(memory, n), *matrix = take<double>(memory, n * n);
    bool converged = false;
    if (mu * (high - low) <= SINKHORN_RANGE) {
        converged = scale_matrix(theta, mu, high, n, left, memory);
    } else {
        // The assignment's prices are the optimal factors without regularisation.
        Target *columns = take<Target>(memory, n);
        assign(theta, n, columns, left, memory);
        for (index i = 0; i < n; ++i) left[i] *= mu;
    }
    if (!converged) newton_dual(theta, mu, n, left, memory);
    normalise_columns(theta, mu, n, left, matrix);
    repair_marginals(matrix, n, u, memory);
}

}  // namespace
}  // namespace skb::SKB_LEVEL
