#include "arrays.h"

namespace skb {
namespace {

void binary_increments(Array2<double> change, Array1<const double> proba,
                       Array1<const double> curvature, Array1<double> largest) {
    const auto rows = view(change);
    const auto p = view(proba);
    const auto w = view(curvature);
    const auto top = view(largest);
    require(p.size == rows.cols && w.size == rows.cols, "proba, curvature: wrong length");
    require(top.size == rows.rows, "largest: wrong length");
    nb::gil_scoped_release nogil;
    level->smp->binary_increments(rows, p, w, top);
}

void softmax_increments(Array3<double> change, Array2<const double> proba,
                        Array1<const double> weight, Array1<double> largest) {
    const auto pages = view(change);
    const auto p = view(proba);
    const auto w = view(weight);
    const auto top = view(largest);
    require(p.rows == pages.rows && p.cols == pages.cols, "proba: wrong shape");
    require(w.size == pages.cols, "weight: wrong length");
    require(top.size == pages.pages, "largest: wrong length");
    nb::gil_scoped_release nogil;
    level->smp->softmax_increments(pages, p, w, top);
}

void second_order_terms(Array2<const double> change, Array1<const double> second,
                        Array2<double> out) {
    same_shape(change, out, "out: wrong shape");
    const auto a = view(change);
    const auto b = view(second);
    const auto to = view(out);
    require(b.size == a.cols, "second: wrong length");
    nb::gil_scoped_release nogil;
    level->smp->second_order_terms(a, b, to);
}

void third_order_terms(Array2<const double> change, Array2<double> bend,
                       Array1<const double> second, Array1<const double> third) {
    same_shape(change, bend, "bend: wrong shape");
    const auto a = view(change);
    const auto to = view(bend);
    const auto b = view(second);
    const auto c = view(third);
    require(b.size == a.cols && c.size == a.cols, "second, third: wrong length");
    nb::gil_scoped_release nogil;
    level->smp->third_order_terms(a, to, b, c);
}

void one_step_roots(Array1<const double> eta, Array1<const double> leverage,
                    Array2<const double> slope, Array2<const double> target,
                    Array2<double> root) {
    same_shape(slope, target, "target: wrong shape");
    same_shape(slope, root, "root: wrong shape");
    const auto e = view(eta);
    const auto h = view(leverage);
    const auto a = view(slope);
    const auto b = view(target);
    const auto x = view(root);
    require(e.size == a.rows && h.size == a.rows, "eta, leverage: wrong length");
    nb::gil_scoped_release nogil;
    level->smp->one_step_roots(e, h, a, b, x);
}

void softmax_roots(Array2<const double> raw, Array3<const double> leverage,
                   Array2<const double> slope, Array3<const double> target,
                   Array2<const double> contrasts, Array3<double> solution) {
    same_shape(target, solution, "solution: wrong shape");
    const auto r = view(raw);
    const auto B = view(leverage);
    const auto a = view(slope);
    const auto b = view(target);
    const auto Q = view(contrasts);
    const auto x = view(solution);
    require(r.cols >= 2, "raw: too few classes");
    has_shape(contrasts, r.cols, r.cols - 1, "contrasts: wrong shape");
    require(B.pages == r.rows && B.rows == Q.cols && B.cols == Q.cols,
            "leverage: wrong shape");
    require(a.rows == r.rows, "slope: wrong shape");
    require(b.pages == r.rows && b.cols == r.cols && a.cols > 0 && b.rows % a.cols == 0,
            "target: wrong shape");
    const Scratch scratch(softmax_bytes(r.cols));
    nb::gil_scoped_release nogil;
    level->smp->softmax_roots(r, B, a, b, Q, x, scratch.memory());
}

void softmax_downdates(Array2<double> raw, Array3<double> leverage,
                       Array1<const double> removed, Array1<const index> codes,
                       Array2<const double> contrasts) {
    const auto r = view(raw);
    const auto B = view(leverage);
    const auto u = view(removed);
    const auto y = view(codes);
    const auto Q = view(contrasts);
    require(r.cols >= 2, "raw: too few classes");
    has_shape(contrasts, r.cols, r.cols - 1, "contrasts: wrong shape");
    require(B.pages == r.rows && B.rows == Q.cols && B.cols == Q.cols,
            "leverage: wrong shape");
    require(u.size == r.rows && y.size == r.rows, "removed, codes: wrong length");
    for (index i = 0; i < y.size; ++i)
        require(y[i] >= 0 && y[i] < r.cols, "codes: not a class");
    const Scratch scratch(softmax_bytes(r.cols));
    nb::gil_scoped_release nogil;
    level->smp->softmax_downdates(r, B, u, y, Q, scratch.memory());
}

}  // namespace

void bind_smp(nb::module_ &m) {
    m.attr("MAX_CHANGE") = MAX_CHANGE;
    m.def("binary_increments", binary_increments, array("change"), array("proba"),
          array("curvature"), array("largest"));
    m.def("softmax_increments", softmax_increments, array("change"), array("proba"),
          array("weight"), array("largest"));
    m.def("second_order_terms", second_order_terms, array("change"), array("second"),
          array("out"));
    m.def("third_order_terms", third_order_terms, array("change"), array("bend"),
          array("second"), array("third"));
    m.def("one_step_roots", one_step_roots, array("eta"), array("leverage"), array("slope"),
          array("target"), array("root"));
    m.def("softmax_roots", softmax_roots, array("raw"), array("leverage"), array("slope"),
          array("target"), array("contrasts"), array("solution"));
    m.def("softmax_downdates", softmax_downdates, array("raw"), array("leverage"),
          array("removed"), array("codes"), array("contrasts"));
}

}  // namespace skb
