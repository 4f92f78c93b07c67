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
}

}  // namespace skb
