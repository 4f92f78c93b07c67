// Loops of the sample minmax predictors' virtual fits.
//
// *Increments.* Between two matrix products the chord iteration needs, for every training
// row, how much the gradient of the loss changes when the raw prediction changes by a:
// softmax(eta + a) - softmax(eta). Written through e = exp(a) - 1 the difference has no
// cancellation however small a is, and needs no exponential of the raw prediction itself:
// with p = softmax(eta) and E = sum_l p_l e_l,
//
//     softmax_k(eta + a) - p_k = p_k (e_k - E) / (1 + E),
//
// which is p (1 - p) e / (1 + p e) for two classes with a single raw prediction. Rows with
// a change beyond MAX_CHANGE, or NaN, are refused: they become zero, and their largest
// change infinity. The frozen curvature of the chord iteration is worthless there, and the
// bound lets one short polynomial serve for exp(a) - 1, which vectorises.
//
// *Roots.* The scalar equations of one-step fits, one safeguarded Halley iteration each.
//
// *Several classes.* With the leverage B = L L' of a row and G = Q L (Q orthonormal
// contrasts), the raw predictions of a one-step fit are raw_0 + G z, where z minimises the
// strictly convex |z|^2 / 2 + slope logsumexp(raw) - <target, raw>. Its Hessian is the
// identity plus a covariance, which stays well conditioned whatever B is; Newton's method
// in these coordinates needs no inverse of anything that can be singular.
#pragma once
#include "../common/view.h"

namespace skb {

inline constexpr double MAX_CHANGE = 4.0;

struct SmpKernels {
    // Overwrites changes of the raw prediction, a row per problem, by weighted changes of
    // the gradient. curvature: sample weight times proba (1 - proba).
    void (*binary_increments)(Mat<double> change, Vec<const double> proba,
                              Vec<const double> curvature, Vec<double> largest);
    // The same for several classes: change (n_problems, n_classes, n_samples).
    void (*softmax_increments)(Cube<double> change, Mat<const double> proba,
                               Vec<const double> weight, Vec<double> largest);
    // second change^2, the loss's second-order term in the changes.
    void (*second_order_terms)(Mat<const double> change, Vec<const double> second,
                               Mat<double> out);
    // Overwrites second-order changes `bend` by the loss's third-order term.
    void (*third_order_terms)(Mat<const double> change, Mat<double> bend,
                              Vec<const double> second, Vec<const double> third);
    // Solves x = eta + leverage (target - slope sigmoid(x)) elementwise. A negative slope
    // (an observation taken out) takes one Newton step from eta, the usual downdate.
    void (*one_step_roots)(Vec<const double> eta, Vec<const double> leverage,
                           Mat<const double> slope, Mat<const double> target,
                           Mat<double> root);
    // Minimises the above for every tilt of every row. raw (n, K), leverage (n, K - 1,
    // K - 1), slope (n, W), target and solution (n, W L, K); contrasts (K, K - 1). The L
    // tilts with the same slope are solved four at a time, from their solutions with the
    // slope before where that is better. Negative slopes take one Newton step.
    void (*softmax_roots)(Mat<const double> raw, Cube<const double> leverage,
                          Mat<const double> slope, Cube<const double> target,
                          Mat<const double> contrasts, Cube<double> solution,
                          Memory memory);
    // Takes the amount `removed` of each row's own observation out by one Newton step:
    // overwrites raw predictions and leverages. codes: the rows' classes.
    void (*softmax_downdates)(Mat<double> raw, Cube<double> leverage,
                              Vec<const double> removed, Vec<const index> codes,
                              Mat<const double> contrasts, Memory memory);
};

// Bytes that these two take.
SKB_INLINE index softmax_bytes(index n_classes) {
    return 2 * lines(8 * n_classes * n_classes) + 3 * lines(32 * n_classes * n_classes) +
           16 * lines(32 * n_classes);
}

}  // namespace skb
