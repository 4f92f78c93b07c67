// Sequential loops of kernel boosting.
#pragma once
#include "../common/view.h"

namespace skb {

struct Complex {
    double real, imag;
};

struct KernelBoostKernels {
    // Rejects proposed pivots one by one, and eliminates those that are accepted.
    //
    // A proposal is accepted with probability (residual now) / (residual when proposed),
    // which reproduces the law of sequential random pivoting. `matrix` is the residual
    // kernel matrix of the proposals and is overwritten; `accepted` gets their numbers.
    // Returns how many there are.
    index (*accept_pivots)(Mat<double> matrix, Vec<const double> uniforms,
                           Vec<index> accepted, Memory, Pulse &);
    // Adds the filtered targets and the diagonal of the filter for the kernel
    // 1 + min(x, x') of one feature.
    //
    // Solves (c W - z Q) v = source for each pole z by the series rule for conductances,
    // which has no differences: spacings may be as small as they like. Q, the inverse of
    // the kernel matrix of sorted distinct points, is a chain of conductances 1 / spacing,
    // tied to the ground by 1 / ground. source = W times the targets, shape (N, m);
    // factors are doubled for one of a conjugate pair.
    void (*filtered)(Vec<const double> spacing, double ground, Vec<const double> weight,
                     Mat<const double> source, double scale, Vec<const Complex> poles,
                     Vec<const Complex> factors, Mat<double> values,
                     Vec<double> leverage, Memory, Pulse &);
};

}  // namespace skb
