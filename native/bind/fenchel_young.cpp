#include <nanobind/stl/optional.h>

#include <atomic>
#include <cmath>
#include <optional>

#include "arrays.h"

namespace skb {
namespace {

// Items of a Birkhoff polytope with n entries; 0 where n is no square.
index items_of(index n) {
    const index m = index(std::sqrt(double(n)) + 0.5);
    return m * m == n ? m : 0;
}

// Bytes for one row: prediction, decoding and draws take less whatever the structure.
index row_bytes(int structure, index n) {
    const index items = structure == BIRKHOFF ? items_of(n) : 0;
    return pieces(10, n) + pieces(40, items + 1);
}

index targets_of(int structure, index n) {
    if (structure == CUBE || structure == PERMUTAHEDRON) return n;
    return structure == BIRKHOFF ? items_of(n) : 1;
}

void check_targets(int structure, index n, Mat<const Target> targets) {
    require(targets.cols == targets_of(structure, n), "targets: wrong number of columns");
    Target low = structure == PERMUTAHEDRON ? 1 : 0, high = 1;
    if (structure <= EUCLIDEAN_SIMPLEX) high = n - 1;
    else if (structure == CHAIN || structure == PERMUTAHEDRON) high = n;
    else if (structure == BIRKHOFF) high = targets.cols - 1;
    bool good = true;
    for (index i = 0; i < targets.rows * targets.cols; ++i)
        good &= low <= targets.data[i] && targets.data[i] <= high;
    require(good, "targets: out of range");
}

// Uniform numbers that a row may need.
index uniforms_of(int structure, int decoding, index n) {
    if (decoding == ARGMAX) return 0;
    index sample = 1;
    if (structure == CUBE || structure == BIRKHOFF) sample = n;
    if (structure == PERMUTAHEDRON) sample = n - 1;
    return decoding == RANDOMIZED ? sample + 1 : sample;
}

void check_decoding(int structure, int decoding) {
    require(0 <= decoding && decoding < N_DECODINGS, "decoding: unknown");
    require(decoding != COORDINATEWISE || structure == CUBE || structure == CHAIN,
            "decoding: not for this structure");
}

void check_outputs(int structure, index n) {
    require(0 <= structure && structure < N_STRUCTURES, "structure: unknown");
    require(n > 0 && (structure != BIRKHOFF || items_of(n) > 0),
            "wrong number of outputs for the structure");
}

int check_loss(int loss, index n) {
    require(0 <= loss && loss < N_LOSSES, "loss: unknown");
    check_outputs(STRUCTURE_OF[loss], n);
    return STRUCTURE_OF[loss];
}

void exponential(Array1<const double> x, Array1<double> out) {
    same_shape(x, out, "out: wrong length");
    level->rows->exponential(view(x), view(out));
}

void predict_rows(int loss, double mu, Array2<const double> theta, Array2<double> u) {
    const index n = index(theta.shape(1));
    const int structure = check_loss(loss, n);
    same_shape(theta, u, "u: wrong shape");
    const auto from = view(theta);
    const auto to = view(u);
    const Scratch scratch(row_bytes(structure, n));
    run([&](Pulse &pulse) {
        level->rows->predict(loss, mu, from, to, scratch.memory(), pulse);
    });
}

void respond_rows(int loss, double mu, Array2<const double> theta,
                  Array2<const Target> targets, Array1<double> values,
                  Array2<double> residual) {
    const index rows = index(theta.shape(0)), n = index(theta.shape(1));
    const int structure = check_loss(loss, n);
    same_shape(theta, residual, "residual: wrong shape");
    has_length(values, rows, "values: wrong length");
    has_length(targets, rows, "targets: wrong number of rows");
    const auto y = view(targets);
    check_targets(structure, n, y);
    const auto scores = view(theta);
    const auto losses = view(values);
    const auto out = view(residual);
    const Scratch scratch(row_bytes(structure, n) + pieces(1, n));
    run([&](Pulse &pulse) {
        level->rows->respond(loss, mu, scores, y, losses, out, scratch.memory(), pulse);
    });
}

void nearest_rows(int structure, Array2<const double> u, Array2<Target> vertices) {
    const index rows = index(u.shape(0)), n = index(u.shape(1));
    check_outputs(structure, n);
    has_shape(vertices, rows, targets_of(structure, n), "vertices: wrong shape");
    const auto points = view(u);
    const auto out = view(vertices);
    const Scratch scratch(row_bytes(structure, n));
    run([&](Pulse &pulse) {
        level->rows->nearest(structure, points, out, scratch.memory(), pulse);
    });
}

void decode_rows(int structure, int decoding, Array2<const double> u,
                 Array2<const double> uniforms, Array2<Target> plays,
                 Array2<double> means) {
    const index rows = index(u.shape(0)), n = index(u.shape(1));
    check_outputs(structure, n);
    check_decoding(structure, decoding);
    has_shape(plays, rows, targets_of(structure, n), "plays: wrong shape");
    same_shape(u, means, "means: wrong shape");
    has_length(uniforms, rows, "uniforms: wrong number of rows");
    require(index(uniforms.shape(1)) >= uniforms_of(structure, decoding, n),
            "uniforms: too few columns");
    const auto points = view(u);
    const auto numbers = view(uniforms);
    const auto out = view(plays);
    const auto laws = view(means);
    const Scratch scratch(row_bytes(structure, n));
    run([&](Pulse &pulse) {
        level->rows->decode(structure, decoding, points, numbers, out, laws,
                            scratch.memory(), pulse);
    });
}

// Of the rows of a call; nothing where all are 1.
using RowWeights = std::optional<Array1<const double>>;
// Of rows that were played before.
using Matrix = std::optional<Array2<const double>>;
using Targets = std::optional<Array2<const Target>>;

// A stream under way. It looks into arrays that Python owns, and keeps them alive; it is
// made again after unpickling. Not to be used by several threads at once.
template <class T> class StreamBinding {
  public:
    StreamBinding(int learner, int loss, int decoding, int scaling, bool intercept,
                  double mu, double step, double scale, double norm_limit, double diameter,
                  double gradient_limit, double share, double clip, index n_outputs,
                  Array2<T> table, Array2<double> average, Array2<double> gradient,
                  Array1<double> mean, Array1<double> square, Array2<double> robust,
                  Array2<double> weights, Array2<double> gradients,
                  Array2<double> accounts, Array1<double> rates, Array1<double> scalars)
        : table_(table), average_(average), gradient_(gradient), mean_(mean),
          square_(square), robust_(robust), weights_(weights), gradients_(gradients),
          accounts_(accounts), rates_(rates), scalars_(scalars),
          structure_(check_loss(loss, n_outputs)) {
        s_.settings = {learner, loss,       decoding, scaling,        intercept, mu,   step,
                       scale,   norm_limit, diameter, gradient_limit, share,     clip};
        s_.table = view(table);
        s_.average = view(average);
        s_.gradient = view(gradient);
        s_.mean = view(mean);
        s_.square = view(square);
        s_.robust = view(robust);
        s_.weights = view(weights);
        s_.gradients = view(gradients);
        s_.accounts = view(accounts);
        s_.rates = view(rates);
        s_.scalars = view(scalars);
        s_.n_outputs = n_outputs;
        s_.n_targets = targets_of(structure_, n_outputs);
        check();
        fixed_ = std::make_unique<Scratch>(fixed_bytes());
        lay_out(s_, fixed_->memory());
    }

    void dense(Array2<const T> X, Array2<const Target> targets,
               Array2<const double> uniforms, Array2<Target> plays, bool log,
               RowWeights weights, Matrix means, Targets played, Targets vertices) {
        const Alone alone(busy_);
        const Mat<const T> rows = check_dense(X);
        Draws draws = check(rows.rows, targets, uniforms, plays, log, weights);
        draws.earlier = check_earlier(rows.rows, means, played, vertices);
        reserve(rows.cols);
        run([&](Pulse &pulse) { kernels().dense(s_, rows, draws, pulse); });
    }

    void sparse(Array1<const T> data, Array1<const std::int32_t> indices,
                Array1<const std::int64_t> indptr, Array2<const Target> targets,
                Array2<const double> uniforms, Array2<Target> plays, bool log,
                RowWeights weights, Matrix means, Targets played, Targets vertices) {
        const Alone alone(busy_);
        index longest = 0;
        const Csr<T> X = check_sparse(data, indices, indptr, longest);
        const index n = X.indptr.size - 1;
        Draws draws = check(n, targets, uniforms, plays, log, weights);
        draws.earlier = check_earlier(n, means, played, vertices);
        reserve(longest);
        run([&](Pulse &pulse) { kernels().sparse(s_, X, draws, pulse); });
    }

    // The functions from here on have memory of their own and change nothing: any number
    // of threads may call them.

    void try_dense(Array2<const T> X, double weight, Array1<const double> uniforms,
                   Array1<Target> play, Array1<Target> vertex, Array1<double> means) const {
        const Mat<const T> rows = check_dense(X);
        require(rows.rows == 1, "X: one row at a time");
        const Trial trial = check_trial(weight, uniforms, play, vertex, means);
        look(rows.cols, detached_bytes(), [&](Stream<T> &s, Memory memory) {
            kernels().try_dense(s, rows, trial, memory);
        });
    }

    void try_sparse(Array1<const T> data, Array1<const std::int32_t> indices,
                    Array1<const std::int64_t> indptr, double weight,
                    Array1<const double> uniforms, Array1<Target> play,
                    Array1<Target> vertex, Array1<double> means) const {
        index longest = 0;
        const Csr<T> X = check_sparse(data, indices, indptr, longest);
        require(X.indptr.size == 2, "indptr: one row at a time");
        const Trial trial = check_trial(weight, uniforms, play, vertex, means);
        look(longest, detached_bytes(), [&](Stream<T> &s, Memory memory) {
            kernels().try_sparse(s, X, trial, memory);
        });
    }

    void points_dense(Array2<const T> X, Array2<double> u) const {
        const Mat<const T> rows = check_dense(X);
        has_shape(u, rows.rows, s_.n_outputs, "u: wrong shape");
        const Mat<double> to = view(u);
        look(rows.cols, 0, [&](Stream<T> &s, Memory) { kernels().points_dense(s, rows, to); });
    }

    void points_sparse(Array1<const T> data, Array1<const std::int32_t> indices,
                       Array1<const std::int64_t> indptr, Array2<double> u) const {
        index longest = 0;
        const Csr<T> X = check_sparse(data, indices, indptr, longest);
        has_shape(u, X.indptr.size - 1, s_.n_outputs, "u: wrong shape");
        const Mat<double> to = view(u);
        look(longest, 0, [&](Stream<T> &s, Memory) { kernels().points_sparse(s, X, to); });
    }

  private:
    index n_experts() const { return s_.rates.size; }

    index fixed_bytes() const {
        const index width = s_.n_outputs * (n_experts() > 0 ? n_experts() : 1);
        return pieces(3, s_.table.cols) + pieces(3, width) + pieces(2, s_.n_outputs) +
               pieces(1, s_.weights.rows * n_experts()) + pieces(2, s_.n_targets) +
               pieces(1, n_experts() + 1) + row_bytes(structure_, s_.n_outputs);
    }

    // Gives a stream its memory for one row, without what grows with the row's length.
    void lay_out(Stream<T> &s, Memory memory) const {
        const index columns = s.table.cols;
        const index width = s.n_outputs * (n_experts() > 0 ? n_experts() : 1);
        s.out = take<T>(memory, columns);
        s.fast = take<T>(memory, columns);
        s.slow = take<T>(memory, columns);
        for (index k = 0; k < columns; ++k) s.out[k] = s.fast[k] = s.slow[k] = T(0);
        s.score = take<double>(memory, width);
        s.power = take<double>(memory, width);
        s.delta = take<double>(memory, width);
        s.u = take<double>(memory, s.n_outputs);
        s.means = take<double>(memory, s.n_outputs);
        s.chance = take<double>(memory, s.weights.rows * n_experts());
        s.play = take<Target>(memory, s.n_targets);
        s.vertex = take<Target>(memory, s.n_targets);
        s.energies = take<double>(memory, n_experts() + 1);
        for (index k = 0; k < s.n_targets; ++k) s.play[k] = 0;
        s.memory = memory;
    }

    index row_memory(index n) const {
        const index experts = n_experts() > 1 ? n_experts() - 1 : 0;
        return pieces(3, n) + pieces(1, experts * n);
    }

    // Gives a stream its memory for the n entries of a row.
    void lay_out_row(Stream<T> &s, index n, Memory &memory) const {
        const index experts = n_experts() > 1 ? n_experts() - 1 : 0;
        s.val = take<T>(memory, n);
        s.rate = take<T>(memory, n);
        s.idx = take<std::int32_t>(memory, n);
        s.own_rate = take<double>(memory, experts * n);
    }

    // Of copies of what changes before a row is learnt.
    index detached_bytes() const {
        return pieces(1, s_.mean.size) + pieces(1, s_.square.size) +
               pieces(1, s_.robust.rows * s_.robust.cols) +
               pieces(1, s_.weights.rows * s_.weights.cols) + pieces(1, s_.scalars.size);
    }

    // Calls f with a stream of the same arrays and memory of its own, and more memory.
    template <class F> void look(index longest, index more, F &&f) const {
        const Scratch fixed(fixed_bytes()), rest(row_memory(longest + 1) + more);
        Stream<T> s = s_;
        lay_out(s, fixed.memory());
        Memory memory = rest.memory();
        lay_out_row(s, longest + 1, memory);
        nb::gil_scoped_release nogil;
        f(s, memory);
    }

    Mat<const T> check_dense(const Array2<const T> &X) const {
        const Mat<const T> rows = view(X);
        require(rows.cols + s_.settings.intercept == s_.table.rows,
                "X: wrong number of columns");
        const int scaling = s_.settings.scaling;
        require(scaling == RAW || scaling == STANDARDIZE || scaling == ROBUST,
                "scaling: not for dense rows");
        require(scaling == RAW ||
                    (s_.mean.size == rows.cols && s_.square.size == rows.cols),
                "mean, square: wrong length");
        require(scaling != ROBUST ||
                    (s_.robust.rows == N_ROBUST && s_.robust.cols == rows.cols),
                "robust: wrong shape");
        return rows;
    }

    Csr<T> check_sparse(const Array1<const T> &data,
                        const Array1<const std::int32_t> &indices,
                        const Array1<const std::int64_t> &indptr, index &longest) const {
        const Csr<T> X{view(data), view(indices), view(indptr)};
        const index n = X.indptr.size - 1;
        require(n >= 0, "indptr: empty");
        require(X.data.size == X.indices.size, "data, indices: lengths differ");
        const int scaling = s_.settings.scaling;
        require(scaling == RAW || s_.table.cols > magnitude_column(s_), "table: too narrow");
        index before = X.indptr[0];
        require(before >= 0 && X.indptr[n] <= X.data.size, "indptr: beyond the data");
        bool good = true;
        for (index i = 1; i <= n; ++i) {
            const index length = X.indptr[i] - before;
            good &= length >= 0;
            longest = length > longest ? length : longest;
            before = X.indptr[i];
        }
        require(good, "indptr: decreases");
        const index n_features = s_.table.rows - s_.settings.intercept;
        for (index p = X.indptr[0]; p < X.indptr[n]; ++p)
            good &= 0 <= X.indices[p] && X.indices[p] < n_features;
        require(good, "indices: out of range");
        return X;
    }

    // Plays of rows that are learnt later than they were played.
    Earlier check_earlier(index n, const Matrix &means, const Targets &played,
                          const Targets &vertices) const {
        require(means.has_value() == played.has_value() &&
                    means.has_value() == vertices.has_value(),
                "means, played, vertices: all or none");
        if (!means) return {};
        has_shape(*means, n, s_.n_outputs, "means: wrong shape");
        has_shape(*played, n, s_.n_targets, "played: wrong shape");
        has_shape(*vertices, n, s_.n_targets, "vertices: wrong shape");
        const Earlier earlier{view(*means), view(*played), view(*vertices)};
        check_targets(structure_, s_.n_outputs, earlier.plays);
        check_targets(structure_, s_.n_outputs, earlier.vertices);
        return earlier;
    }

    Trial check_trial(double weight, const Array1<const double> &uniforms,
                      const Array1<Target> &play, const Array1<Target> &vertex,
                      const Array1<double> &means) const {
        require(0.0 < weight && std::isfinite(weight), "weight: not positive and finite");
        has_length(play, s_.n_targets, "play: wrong length");
        has_length(vertex, s_.n_targets, "vertex: wrong length");
        has_length(means, s_.n_outputs, "means: wrong length");
        require(index(uniforms.shape(0)) >=
                    uniforms_of(structure_, s_.settings.decoding, s_.n_outputs),
                "uniforms: too few");
        return {weight, view(uniforms).data, view(play).data, view(vertex).data,
                view(means).data};
    }

    // Rows of a stream come one after the other: its scratch memory is that of one call.
    class Alone {
      public:
        explicit Alone(std::atomic_flag &busy) : busy_(busy) {
            if (busy_.test_and_set())
                throw std::runtime_error("a stream cannot be learnt by two threads at once");
        }
        ~Alone() { busy_.clear(); }

      private:
        std::atomic_flag &busy_;
    };

    static const StreamKernels<T> &kernels() {
        if constexpr (sizeof(T) == 4) return *level->stream_float;
        else return *level->stream_double;
    }

    void check() const {
        const Settings &settings = s_.settings;
        const index n_experts = s_.rates.size;
        const bool mixture = settings.learner == MIXTURE;
        const index width = s_.n_outputs * (mixture ? n_experts : 1);
        require(0 <= settings.learner && settings.learner < N_LEARNERS, "learner: unknown");
        require(0 <= settings.scaling && settings.scaling < N_SCALINGS, "scaling: unknown");
        check_decoding(structure_, settings.decoding);
        require(s_.scalars.size == N_SCALARS, "scalars: wrong length");
        require(s_.table.rows >= settings.intercept, "table: no row for the intercept");
        if (mixture) {
            require(settings.loss == LOGISTIC || settings.loss == CUBE_SIGMOID,
                    "learner: the mixture needs a log-loss");
            const index groups = settings.loss == LOGISTIC ? 1 : s_.n_outputs;
            require(n_experts > 0 && s_.weights.rows == groups &&
                        s_.weights.cols == n_experts,
                    "weights: wrong shape");
            require(s_.table.cols % 16 == 0 && s_.table.cols > magnitude_column(s_),
                    "table: wrong number of columns");
            require(s_.accounts.rows == 0 ||
                        (s_.accounts.rows == 2 && s_.accounts.cols == n_experts &&
                         s_.gradients.rows == s_.table.rows &&
                         s_.gradients.cols == s_.n_outputs * (n_experts - 1)),
                    "accounts, gradients: wrong shape");
        } else {
            require(n_experts == 0, "rates: not for this learner");
            require(s_.table.cols >= width, "table: too narrow");
            require(s_.gradient.rows == 0 || (s_.gradient.rows == s_.table.rows &&
                                              s_.gradient.cols == s_.n_outputs),
                    "gradient: wrong shape");
        }
        require(s_.average.rows == 0 ||
                    (s_.average.rows == s_.table.rows && s_.average.cols == width),
                "average: wrong shape");
    }

    Draws check(index n, const Array2<const Target> &targets,
                const Array2<const double> &uniforms, const Array2<Target> &plays,
                bool log, const RowWeights &weights) const {
        Draws draws{view(targets), view(uniforms), view(plays), log, {}, {}};
        if (weights) {
            has_length(*weights, n, "weights: wrong length");
            draws.weights = view(*weights);
            bool good = true;
            for (index i = 0; i < n; ++i)
                good &= 0.0 < draws.weights[i] && std::isfinite(draws.weights[i]);
            require(good, "weights: not positive and finite");
        }
        require(draws.targets.rows == n, "targets: wrong number of rows");
        check_targets(structure_, s_.n_outputs, draws.targets);
        require(draws.uniforms.rows == n &&
                    draws.uniforms.cols >=
                        uniforms_of(structure_, s_.settings.decoding, s_.n_outputs),
                "uniforms: wrong shape");
        require(draws.plays.rows == 0 ||
                    (draws.plays.rows == n && draws.plays.cols == s_.n_targets),
                "plays: wrong shape");
        return draws;
    }

    // Makes room for rows with so many entries, and the intercept.
    void reserve(index longest) {
        if (rows_ && longest <= longest_) return;
        longest_ = longest > 2 * longest_ ? longest : 2 * longest_;
        rows_ = std::make_unique<Scratch>(row_memory(longest_ + 1));
        Memory memory = rows_->memory();
        lay_out_row(s_, longest_ + 1, memory);
    }

    Array2<T> table_;
    Array2<double> average_, gradient_;
    Array1<double> mean_, square_;
    Array2<double> robust_, weights_, gradients_, accounts_;
    Array1<double> rates_, scalars_;
    int structure_;
    std::unique_ptr<Scratch> fixed_, rows_;
    index longest_ = 0;
    std::atomic_flag busy_;
    Stream<T> s_{};
};

template <class T> void bind_stream(nb::module_ &m, const char *name) {
    using Binding = StreamBinding<T>;
    nb::class_<Binding>(m, name)
        .def(nb::init<int, int, int, int, bool, double, double, double, double, double,
                      double, double, double, index, Array2<T>, Array2<double>,
                      Array2<double>, Array1<double>, Array1<double>, Array2<double>,
                      Array2<double>, Array2<double>, Array2<double>, Array1<double>,
                      Array1<double>>(),
             nb::kw_only(), nb::arg("learner"), nb::arg("loss"), nb::arg("decoding"),
             nb::arg("scaling"), nb::arg("intercept"), nb::arg("mu"), nb::arg("step"),
             nb::arg("scale"), nb::arg("norm_limit"), nb::arg("diameter"),
             nb::arg("gradient_limit"), nb::arg("share"), nb::arg("clip"),
             nb::arg("n_outputs"), array("table"), array("average"), array("gradient"),
             array("mean"), array("square"), array("robust"), array("weights"),
             array("gradients"), array("accounts"), array("rates"), array("scalars"))
        .def("dense", &Binding::dense, array("X"), array("targets"), array("uniforms"),
             array("plays"), nb::arg("log"), array("weights") = nb::none(),
             array("means") = nb::none(), array("played") = nb::none(),
             array("vertices") = nb::none())
        .def("sparse", &Binding::sparse, array("data"), array("indices"), array("indptr"),
             array("targets"), array("uniforms"), array("plays"), nb::arg("log"),
             array("weights") = nb::none(), array("means") = nb::none(),
             array("played") = nb::none(), array("vertices") = nb::none())
        .def("try_dense", &Binding::try_dense, array("X"), nb::arg("weight"),
             array("uniforms"), array("play"), array("vertex"), array("means"))
        .def("try_sparse", &Binding::try_sparse, array("data"), array("indices"),
             array("indptr"), nb::arg("weight"), array("uniforms"), array("play"),
             array("vertex"), array("means"))
        .def("points_dense", &Binding::points_dense, array("X"), array("u"))
        .def("points_sparse", &Binding::points_sparse, array("data"), array("indices"),
             array("indptr"), array("u"));
}

template <class T>
void features_dense(int scaling, bool intercept, double clip, Array2<const T> X,
                    Array1<double> mean, Array1<double> square, Array2<double> robust,
                    double first, Array2<double> out) {
    const index n = index(X.shape(0)), d = index(X.shape(1));
    require(scaling == RAW || scaling == STANDARDIZE || scaling == ROBUST,
            "scaling: not for dense rows");
    has_shape(out, n, d + intercept, "out: wrong shape");
    if (scaling != RAW) {
        has_length(mean, d, "mean: wrong length");
        has_length(square, d, "square: wrong length");
    }
    if (scaling == ROBUST) has_shape(robust, N_ROBUST, d, "robust: wrong shape");
    const auto rows = view(X);
    const auto m = view(mean);
    const auto s = view(square);
    const auto r = view(robust);
    const auto to = view(out);
    nb::gil_scoped_release nogil;
    if constexpr (sizeof(T) == 4)
        level->stream_float->features(scaling, intercept, clip, rows, m, s, r, first, to);
    else
        level->stream_double->features(scaling, intercept, clip, rows, m, s, r, first, to);
}

template <class T> void bind_features(nb::module_ &m) {
    m.def("features_dense", features_dense<T>, nb::arg("scaling"), nb::arg("intercept"),
          nb::arg("clip"), array("X"), array("mean"), array("square"), array("robust"),
          nb::arg("first"), array("out"));
}

void name(nb::module_ &m, const char *const *names, int n) {
    for (int code = 0; code < n; ++code) m.attr(names[code]) = code;
}

}  // namespace

void bind_fenchel_young(nb::module_ &m) {
    const char *structures[] = {"SIMPLEX", "EUCLIDEAN_SIMPLEX", "CUBE",
                                "CHAIN",   "PERMUTAHEDRON",     "BIRKHOFF"};
    const char *losses[] = {"LOGISTIC",        "SPARSEMAX",
                            "CUBE_SPARSEMAP",  "CUBE_SIGMOID",
                            "CHAIN_SPARSEMAP", "PERMUTAHEDRON_SPARSEMAP",
                            "BIRKHOFF_ENTROPIC"};
    const char *learners[] = {"OGD", "ADAPTIVE", "PARAMETER_FREE", "DUAL", "MIXTURE"};
    const char *scalings[] = {"RAW", "STANDARDIZE", "FIRST_MAGNITUDE", "ROBUST",
                              "MAGNITUDE"};
    const char *robust[] = {"COUNT",      "DEVIATION",  "LAST",     "UP",
                            "UP_COUNT",   "UP_MEAN",    "UP_SQUARE", "DOWN",
                            "DOWN_COUNT", "DOWN_MEAN",  "DOWN_SQUARE", "RESETS",
                            "N_ROBUST"};
    const char *scalars[] = {
        "ROWS",      "ROUNDS",        "EXPECTED", "REALISED",         "SURROGATE",
        "SURROGATE_BASE", "INNER",    "GRADIENT_SQUARED", "NORM_SUM", "NORM_MAX",
        "BEYOND",    "FACTOR",        "WEIGHT_NORM", "STEP_SUM",      "WEALTH",
        "BET",       "BET_SUM",       "CUMULATED", "CUMULATED_BASE",  "WEIGHT_SUM",
        "WEIGHT_MAX", "EXPECTED_SQUARED", "PROGRESSIVE", "AT_LEARNING", "N_SCALARS"};
    name(m, structures, N_STRUCTURES);
    name(m, losses, N_LOSSES);
    name(m, learners, N_LEARNERS);
    name(m, scalings, N_SCALINGS);
    name(m, scalars, N_SCALARS + 1);
    name(m, robust, N_ROBUST + 1);
    m.def("exponential", exponential, array("x"), array("out"));
    m.def("predict_rows", predict_rows, nb::arg("loss"), nb::arg("mu"), array("theta"),
          array("u"));
    m.def("respond_rows", respond_rows, nb::arg("loss"), nb::arg("mu"), array("theta"),
          array("targets"), array("values"), array("residual"));
    m.def("nearest_rows", nearest_rows, nb::arg("structure"), array("u"),
          array("vertices"));
    m.def("decode_rows", decode_rows, nb::arg("structure"), nb::arg("decoding"), array("u"),
          array("uniforms"), array("plays"), array("means"));
    bind_features<float>(m);
    bind_features<double>(m);
    bind_stream<float>(m, "StreamFloat");
    bind_stream<double>(m, "StreamDouble");
}

}  // namespace skb
