#include "arrays.h"

namespace skb {
namespace {

void check_starts(const Array1<const index> &starts, index n) {
    const Vec<const index> at = view(starts);
    require(at.size > 0 && at[0] >= 0 && at[at.size - 1] <= n, "starts: beyond the rows");
    for (index q = 0; q + 1 < at.size; ++q)
        require(at[q] < at[q + 1], "starts: an empty sequence");
}

void check_model(index s, const Array1<const double> &start,
                 const Array2<const double> &transition) {
    require(s > 0, "density: no states");
    has_length(start, s, "start: wrong length");
    has_shape(transition, s, s, "transition: wrong shape");
}

void subtract_largest(Array2<const double> values, Array2<double> result,
                      Array1<double> largest) {
    same_shape(values, result, "result: wrong shape");
    has_length(largest, index(values.shape(0)), "largest: wrong length");
    require(values.shape(1) > 0, "values: no columns");
    const auto from = view(values);
    const auto to = view(result);
    const auto top = view(largest);
    nb::gil_scoped_release nogil;
    level->hmm->subtract_largest(from, to, top);
}

index forward(Array2<const double> density, Array1<const index> starts,
              Array1<const double> start, Array2<const double> transition, bool careful,
              Array2<double> filtered, Array1<double> scale) {
    check_starts(starts, index(density.shape(0)));
    check_model(index(density.shape(1)), start, transition);
    same_shape(density, filtered, "filtered: wrong shape");
    has_length(scale, index(density.shape(0)), "scale: wrong length");
    const auto b = view(density);
    const auto at = view(starts);
    const auto law = view(start);
    const auto A = view(transition);
    const auto out = view(filtered);
    const auto c = view(scale);
    return run([&](Pulse &pulse) {
        return level->hmm->forward(b, at, law, A, careful, out, c, pulse);
    });
}

void backward(Array2<const double> density, Array1<const index> starts,
              Array2<const double> transition, Array2<const double> filtered,
              Array1<const double> scale, Array2<double> posterior, Array2<double> pairs) {
    const index n = index(density.shape(0)), s = index(density.shape(1));
    check_starts(starts, n);
    require(s > 0, "density: no states");
    has_shape(transition, s, s, "transition: wrong shape");
    same_shape(density, filtered, "filtered: wrong shape");
    has_length(scale, n, "scale: wrong length");
    same_shape(density, posterior, "posterior: wrong shape");
    has_shape(pairs, s, s, "pairs: wrong shape");
    const auto b = view(density);
    const auto at = view(starts);
    const auto A = view(transition);
    const auto ahead = view(filtered);
    const auto c = view(scale);
    const auto out = view(posterior);
    const auto sums = view(pairs);
    const Scratch scratch(pieces(2, s));
    run([&](Pulse &pulse) {
        level->hmm->backward(b, at, A, ahead, c, out, sums, scratch.memory(), pulse);
    });
}

void log_pass(Array2<const double> log_density, index first, index stop,
              Array1<const double> log_start, Array2<const double> log_transition,
              Array2<double> posterior, Array2<double> pairs, Array1<double> rows) {
    const index n = index(log_density.shape(0)), s = index(log_density.shape(1));
    require(0 <= first && first < stop && stop <= n, "first, stop: no rows of the data");
    check_model(s, log_start, log_transition);
    same_shape(log_density, posterior, "posterior: wrong shape");
    has_shape(pairs, s, s, "pairs: wrong shape");
    has_length(rows, stop - first, "rows: wrong length");
    const auto b = view(log_density);
    const auto law = view(log_start);
    const auto A = view(log_transition);
    const auto out = view(posterior);
    const auto sums = view(pairs);
    const auto r = view(rows);
    const Scratch scratch(pieces(1, (stop - first) * s) + pieces(3, s));
    run([&](Pulse &pulse) {
        level->hmm->log_pass(b, first, stop, law, A, out, sums, r, scratch.memory(), pulse);
    });
}

double viterbi(Array2<const double> log_density, Array1<const index> starts,
               Array1<const double> log_start, Array2<const double> log_transition,
               Array1<index> states) {
    const index n = index(log_density.shape(0)), s = index(log_density.shape(1));
    check_starts(starts, n);
    check_model(s, log_start, log_transition);
    has_length(states, n, "states: wrong length");
    const auto b = view(log_density);
    const auto at = view(starts);
    const auto law = view(log_start);
    const auto A = view(log_transition);
    const auto z = view(states);
    const Scratch scratch(pieces(1, (n * s + 1) / 2 + 8) + pieces(2, s));
    return run([&](Pulse &pulse) {
        return level->hmm->viterbi(b, at, law, A, z, scratch.memory(), pulse);
    });
}

void windows(Array2<const double> density, Array1<const index> starts,
             Array1<const double> start, Array1<const double> stationary,
             Array2<const double> transition, bool careful, index reach,
             Array2<double> posterior, Array2<double> pairs, Array1<bool> failed) {
    const index n = index(density.shape(0)), s = index(density.shape(1));
    check_starts(starts, n);
    check_model(s, start, transition);
    has_length(stationary, s, "stationary: wrong length");
    require(reach >= 0, "reach: negative");
    same_shape(density, posterior, "posterior: wrong shape");
    has_shape(pairs, s, s, "pairs: wrong shape");
    has_length(failed, n, "failed: wrong length");
    const auto b = view(density);
    const auto at = view(starts);
    const auto law = view(start);
    const auto other = view(stationary);
    const auto A = view(transition);
    const auto out = view(posterior);
    const auto sums = view(pairs);
    const auto bad = view(failed);
    // Farther away than all rows changes nothing, and must not overflow.
    const index most = reach < n ? reach : n;
    const Scratch scratch(pieces(9, s) + pieces(3, (most + 1) * s * s) +
                          pieces(4, most + 8));
    run([&](Pulse &pulse) {
        level->hmm->windows(b, at, law, other, A, careful, most, out, sums, bad,
                            scratch.memory(), pulse);
    });
}

void fields(Array1<const double> lean, Array1<const index> starts, double tilt,
            Array1<double> left, Array1<double> right) {
    const index n = index(lean.shape(0));
    check_starts(starts, n);
    has_length(left, n, "left: wrong length");
    has_length(right, n, "right: wrong length");
    const auto u = view(lean);
    const auto at = view(starts);
    const auto a = view(left);
    const auto b = view(right);
    nb::gil_scoped_release nogil;
    level->hmm->fields(u, at, tilt, a, b);
}

void fields_in_blocks(Array1<const double> lean, double tilt, index overlap, index n_lanes,
                      Array1<double> left, Array1<double> right) {
    const index n = index(lean.shape(0));
    require(n_lanes > 0 && n_lanes <= n, "n_lanes: not between 1 and the number of rows");
    require(overlap >= 0, "overlap: negative");
    has_length(left, n, "left: wrong length");
    has_length(right, n, "right: wrong length");
    const auto u = view(lean);
    const auto a = view(left);
    const auto b = view(right);
    const Scratch scratch(pieces(2, n_lanes));
    nb::gil_scoped_release nogil;
    level->hmm->fields_in_blocks(u, tilt, overlap, n_lanes, a, b, scratch.memory());
}

double linear_step(Array2<const double> columns, Array1<const index> starts,
                   Array1<const double> start, Array2<const double> transition,
                   Array2<const double> weights, Array1<const double> constant,
                   Array1<double> first, Array1<double> size, Array2<double> pairs,
                   Array2<double> sums) {
    const index n = index(columns.shape(0)), m = index(columns.shape(1));
    const index s = index(constant.shape(0));
    check_starts(starts, n);
    require(index(starts(0)) == 0 && index(starts(starts.shape(0) - 1)) == n,
            "starts: not all of the rows");
    check_model(s, start, transition);
    has_shape(weights, m, s, "weights: wrong shape");
    has_length(first, s, "first: wrong length");
    has_length(size, s, "size: wrong length");
    has_shape(pairs, s, s, "pairs: wrong shape");
    has_shape(sums, s, m, "sums: wrong shape");
    const auto x = view(columns);
    const auto at = view(starts);
    const auto law = view(start);
    const auto A = view(transition);
    const auto w = view(weights);
    const auto c = view(constant);
    const auto out_first = view(first);
    const auto out_size = view(size);
    const auto out_pairs = view(pairs);
    const auto out_sums = view(sums);
    const Scratch scratch(pieces(2, n * s) + pieces(2, n + 1) + pieces(1, s * (m + 1)) +
                          pieces(2, s));
    return run([&](Pulse &pulse) {
        return level->hmm->linear_step(x, at, law, A, w, c, out_first, out_size, out_pairs,
                                       out_sums, scratch.memory(), pulse);
    });
}

}  // namespace

void bind_hmm(nb::module_ &m) {
    m.def("subtract_largest", subtract_largest, array("values"), array("result"),
          array("largest"));
    m.def("forward", forward, array("density"), array("starts"), array("start"),
          array("transition"), nb::arg("careful"), array("filtered"), array("scale"));
    m.def("backward", backward, array("density"), array("starts"), array("transition"),
          array("filtered"), array("scale"), array("posterior"), array("pairs"));
    m.def("log_pass", log_pass, array("log_density"), nb::arg("first"), nb::arg("stop"),
          array("log_start"), array("log_transition"), array("posterior"), array("pairs"),
          array("rows"));
    m.def("viterbi", viterbi, array("log_density"), array("starts"), array("log_start"),
          array("log_transition"), array("states"));
    m.def("windows", windows, array("density"), array("starts"), array("start"),
          array("stationary"), array("transition"), nb::arg("careful"), nb::arg("reach"),
          array("posterior"), array("pairs"), array("failed"));
    m.def("fields", fields, array("lean"), array("starts"), nb::arg("tilt"), array("left"),
          array("right"));
    m.def("fields_in_blocks", fields_in_blocks, array("lean"), nb::arg("tilt"),
          nb::arg("overlap"), nb::arg("n_lanes"), array("left"), array("right"));
    m.def("linear_step", linear_step, array("columns"), array("starts"), array("start"),
          array("transition"), array("weights"), array("constant"), array("first"),
          array("size"), array("pairs"), array("sums"));
}

}  // namespace skb
