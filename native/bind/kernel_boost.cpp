#include <nanobind/stl/complex.h>

#include <complex>

#include "arrays.h"

namespace skb {
namespace {

Vec<const Complex> view_complex(const Array1<const std::complex<double>> &a) {
    return {reinterpret_cast<const Complex *>(aligned(a)), index(a.shape(0))};
}

index accept_pivots(Array2<double> matrix, Array1<const double> uniforms,
                    Array1<index> accepted) {
    const auto residual = view(matrix);
    const auto numbers = view(uniforms);
    const auto out = view(accepted);
    const index b = residual.rows;
    require(residual.cols == b, "matrix: not square");
    require(numbers.size == b && out.size == b, "uniforms, accepted: wrong length");
    const Scratch scratch(pieces(2, b));
    return run([&](Pulse &pulse) {
        return level->kernel_boost->accept_pivots(residual, numbers, out, scratch.memory(),
                                                  pulse);
    });
}

void filtered(Array1<const double> spacing, double ground, Array1<const double> weight,
              Array2<const double> source, double scale,
              Array1<const std::complex<double>> poles,
              Array1<const std::complex<double>> factors, Array2<double> values,
              Array1<double> leverage) {
    const auto d = view(spacing);
    const auto w = view(weight);
    const auto y = view(source);
    const auto z = view_complex(poles);
    const auto f = view_complex(factors);
    const auto out = view(values);
    const auto diagonal = view(leverage);
    const index n = y.rows, m = y.cols;
    require(n > 0 && d.size == n - 1, "spacing: wrong length");
    require(w.size == n && diagonal.size == n, "weight, leverage: wrong length");
    require(z.size == f.size, "poles, factors: lengths differ");
    same_shape(source, values, "values: wrong shape");
    const Scratch scratch(pieces(1, 2 * n) + pieces(1, 2 * m) + pieces(1, 2 * n * m));
    run([&](Pulse &pulse) {
        level->kernel_boost->filtered(d, ground, w, y, scale, z, f, out, diagonal,
                                      scratch.memory(), pulse);
    });
}

}  // namespace

void bind_kernel_boost(nb::module_ &m) {
    m.def("accept_pivots", accept_pivots, array("matrix"), array("uniforms"),
          array("accepted"));
    m.def("filtered", filtered, array("spacing"), nb::arg("ground"), array("weight"),
          array("source"), nb::arg("scale"), array("poles"), array("factors"),
          array("values"), array("leverage"));
}

}  // namespace skb
