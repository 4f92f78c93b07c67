// Regularised predictions and the losses that go with them.
#pragma once
#include "decode.h"

namespace skb::SKB_LEVEL {
namespace {

// Fills u with the regularised prediction (Definition 2.2); returns the log-sum-exp of the
// scores for the logistic loss, else 0.
template <int LOSS>
double predict(double mu, const double *theta, index n, double *u, Memory memory) {
    if constexpr (LOSS == LOGISTIC) return softmax(theta, n, u);
    if constexpr (LOSS == SPARSEMAX) project_simplex(theta, n, u, memory);
    if constexpr (LOSS == CUBE_SPARSEMAP)
        for (index i = 0; i < n; ++i) u[i] = smaller(larger(theta[i], 0.0), 1.0);
    if constexpr (LOSS == CUBE_SIGMOID)
        for (index i = 0; i < n; ++i) u[i] = sigmoid(theta[i]);
    if constexpr (LOSS == CHAIN_SPARSEMAP) {
        pool_adjacent(theta, n, u, memory);
        for (index i = 0; i < n; ++i) u[i] = smaller(larger(u[i], 0.0), 1.0);
    }
    if constexpr (LOSS == PERMUTAHEDRON_SPARSEMAP) project_permutahedron(theta, n, u, memory);
    if constexpr (LOSS == BIRKHOFF_ENTROPIC)
        project_birkhoff(theta, mu, index(sqrt(double(n)) + 0.5), u, memory);
    (void)mu;
    (void)memory;
    return 0.0;
}

// Fills u and the residual u - y; returns the unscaled loss S(theta; y).
template <int LOSS>
double respond(double mu, const double *theta, index n, const Target *target,
               index n_targets, double *u, double *residual, Memory memory) {
    const double normalizer = predict<LOSS>(mu, theta, n, u, memory);
    PolytopeOf<STRUCTURE_OF[LOSS]>::type::vertex(target, n_targets, residual, n);
    double value = 0.0;
    if constexpr (LOSS == LOGISTIC) {
        value = normalizer - theta[target[0]];
    } else if constexpr (LOSS == CUBE_SIGMOID) {
        for (index i = 0; i < n; ++i)
            value += softplus(residual[i] == 1.0 ? -theta[i] : theta[i]);
    } else if constexpr (LOSS == BIRKHOFF_ENTROPIC) {
        for (index i = 0; i < n; ++i) {
            value += theta[i] * (u[i] - residual[i]);
            if (u[i] > 0.0) value -= u[i] * log(u[i]) / mu;
        }
    } else {
        // |y - theta|^2 / 2 - |u - theta|^2 / 2, as a product: no cancellation.
        for (index i = 0; i < n; ++i)
            value += 0.5 * (residual[i] - u[i]) * (residual[i] + u[i] - 2.0 * theta[i]);
    }
    for (index i = 0; i < n; ++i) residual[i] = u[i] - residual[i];
    return larger(value, 0.0);
}

// Calls f with the loss as a compile-time constant.
template <class F> void with_loss(int loss, F &&f) {
    switch (loss) {
    case LOGISTIC: return f(Const<LOGISTIC>{});
    case SPARSEMAX: return f(Const<SPARSEMAX>{});
    case CUBE_SPARSEMAP: return f(Const<CUBE_SPARSEMAP>{});
    case CUBE_SIGMOID: return f(Const<CUBE_SIGMOID>{});
    case CHAIN_SPARSEMAP: return f(Const<CHAIN_SPARSEMAP>{});
    case PERMUTAHEDRON_SPARSEMAP: return f(Const<PERMUTAHEDRON_SPARSEMAP>{});
    default: return f(Const<BIRKHOFF_ENTROPIC>{});
    }
}

template <class F> void with_structure(int structure, F &&f) {
    switch (structure) {
    case SIMPLEX: return f(Const<SIMPLEX>{});
    case EUCLIDEAN_SIMPLEX: return f(Const<EUCLIDEAN_SIMPLEX>{});
    case CUBE: return f(Const<CUBE>{});
    case CHAIN: return f(Const<CHAIN>{});
    case PERMUTAHEDRON: return f(Const<PERMUTAHEDRON>{});
    default: return f(Const<BIRKHOFF>{});
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
