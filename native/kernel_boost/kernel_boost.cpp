#include "kernel_boost.h"

#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

index accept_pivots(Mat<double> matrix, Vec<const double> uniforms, Vec<index> accepted,
                    Memory memory, Pulse &pulse) {
    const index b = matrix.rows;
    double *proposed = take<double>(memory, b), *column = take<double>(memory, b);
    for (index j = 0; j < b; ++j) proposed[j] = matrix(j, j);
    index n_accepted = 0;
    for (index j = 0; j < b; ++j) {
        const double pivot = matrix(j, j);
        if (pivot <= 1e-12 * proposed[j] || pivot < uniforms[j] * proposed[j]) continue;
        accepted[n_accepted++] = j;
        const double root = sqrt(pivot);
        for (index k = j; k < b; ++k) column[k] = matrix(k, j) = matrix(k, j) / root;
        for (index k = j + 1; k < b; ++k) {
            const double scale = column[k];
            double *__restrict row = matrix.row(k);
            for (index l = j + 1; l <= k; ++l) row[l] -= scale * column[l];
        }
        if (stops(pulse, b * b)) break;
    }
    return n_accepted;
}

inline Complex operator+(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
inline Complex operator*(Complex a, Complex b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
// Smith's algorithm, which does not overflow.
inline Complex operator/(Complex a, Complex b) {
    if (fabs(b.real) >= fabs(b.imag)) {
        const double ratio = b.imag / b.real, denominator = b.real + b.imag * ratio;
        return {(a.real + a.imag * ratio) / denominator,
                (a.imag - a.real * ratio) / denominator};
    }
    const double ratio = b.real / b.imag, denominator = b.real * ratio + b.imag;
    return {(a.real * ratio + a.imag) / denominator,
            (a.imag * ratio - a.real) / denominator};
}
inline Complex real(double value) { return {value, 0.0}; }

void filtered(Vec<const double> spacing, double ground, Vec<const double> weight,
              Mat<const double> source, double scale, Vec<const Complex> poles,
              Vec<const Complex> factors, Mat<double> values, Vec<double> leverage,
              Memory memory, Pulse &pulse) {
    const index n = source.rows, m = source.cols;
    Complex *left = take<Complex>(memory, n), *brought = take<Complex>(memory, m);
    const Mat<Complex> carried{take<Complex>(memory, n * m), n, m};
    for (index p = 0; p < poles.size; ++p) {
        const Complex minus{-poles[p].real, -poles[p].imag}, d = factors[p];
        left[0] = {minus.real / ground, minus.imag / ground};
        for (index j = 0; j < m; ++j) carried(0, j) = {0.0, 0.0};
        for (index i = 1; i < n; ++i) {
            const Complex edge{minus.real / spacing[i - 1], minus.imag / spacing[i - 1]};
            const Complex total = real(scale * weight[i - 1]) + left[i - 1];
            const Complex share = edge / (edge + total);
            left[i] = total * share;
            for (index j = 0; j < m; ++j)
                carried(i, j) = (real(source(i - 1, j)) + carried(i - 1, j)) * share;
        }
        Complex right{0.0, 0.0};
        for (index j = 0; j < m; ++j) brought[j] = {0.0, 0.0};
        for (index i = n - 1; i >= 0; --i) {
            const double own = scale * weight[i];
            const Complex inverse = real(1.0) / (real(own) + left[i] + right);
            leverage[i] += (d * inverse).real * own;
            for (index j = 0; j < m; ++j) {
                const Complex total = real(source(i, j)) + carried(i, j) + brought[j];
                values(i, j) += (d * total * inverse).real * scale;
            }
            if (i == 0) break;
            const Complex edge{minus.real / spacing[i - 1], minus.imag / spacing[i - 1]};
            const Complex total = real(own) + right;
            const Complex share = edge / (edge + total);
            right = total * share;
            for (index j = 0; j < m; ++j)
                brought[j] = (real(source(i, j)) + brought[j]) * share;
        }
        if (stops(pulse, n * (20 * m + 100))) return;
    }
}

}  // namespace

extern const KernelBoostKernels kernel_boost_kernels;
const KernelBoostKernels kernel_boost_kernels{accept_pivots, filtered};

}  // namespace skb::SKB_LEVEL
