// Streams: features, play, learning and accounts in one pass over the rows.
//
// Every row is played before it is learnt; nothing that is learnt depends on the draws. A
// stream may be cut anywhere: state lives in arrays that Python owns, and rows are
// processed one by one with the same arithmetic.
//
// Layout. A table has one row per feature and one for the intercept: first the weights of
// all outputs (and experts, side by side), then what belongs to the feature, so that a
// sparse row touches few cache lines. Rows of the mixture's table are padded to multiples
// of 16 entries for vectors; padding never matters.
//
// Equation, theorem and section numbers: Sakaue, Bao, Tsuchiya and Oki (2024).
#pragma once
#include "rows.h"

namespace skb {

// All but the mixture have one weight matrix.
enum Learner { OGD, ADAPTIVE, PARAMETER_FREE, DUAL, MIXTURE, N_LEARNERS };
enum Scaling { RAW, STANDARDIZE, FIRST_MAGNITUDE, ROBUST, MAGNITUDE, N_SCALINGS };

// What is known of a feature beside its mean and sum of squares, for the robust scaling.
enum Robust {
    COUNT,      // values behind the moments
    DEVIATION,  // standard deviation, cached
    LAST,       // value of the row before
    UP,         // counter of values that are far away, and moments of these values
    UP_COUNT,
    UP_MEAN,
    UP_SQUARE,
    DOWN,       // the same of values that are next to each other
    DOWN_COUNT,
    DOWN_MEAN,
    DOWN_SQUARE,
    RESETS,
    N_ROBUST
};

// Entries of the vector of scalar state.
enum Scalar {
    ROWS,              // rows learnt, all passes
    ROUNDS,            // rows played and accounted for
    // Sums and norms count each row by its weight: a row of weight w has a gradient, and
    // losses, of w times the size, and the length of sqrt(w) times its own.
    EXPECTED,          // sum of expected target losses
    REALISED,          // sum of realised target losses
    SURROGATE,         // sum of surrogate losses of what was played
    SURROGATE_BASE,    // the same for the learner that carries the theorem
    INNER,             // sum of <gradient, W_t> of that learner
    GRADIENT_SQUARED,  // sum of its squared gradient norms
    NORM_SUM,          // sum of squared row norms, without weights
    NORM_MAX,          // largest squared row norm
    BEYOND,            // rows longer than the given norm
    FACTOR,            // the weights are this times the table
    WEIGHT_NORM,       // squared norm of the weights (adaptive) or direction (coin betting)
    STEP_SUM,          // sum of squared gradients in the step size
    WEALTH,
    BET,
    BET_SUM,
    CUMULATED,       // sum over rounds of the factor, for averages
    CUMULATED_BASE,  // the same for expert 0 of a mixture
    WEIGHT_SUM,      // sum of the rows' weights, all passes
    WEIGHT_MAX,      // largest of them
    EXPECTED_SQUARED,  // sum of squared expected target losses
    PROGRESSIVE,     // sum of target losses of the nearest vertices
    AT_LEARNING,     // sum of the losses that were to be expected when rows were learnt
    N_SCALARS
};

// What is fixed for a stream.
struct Settings {
    int learner, loss, decoding, scaling;
    bool intercept;
    double mu;
    double step;   // natural step of OGD, or of expert 0
    double scale;  // factor of the surrogate loss
    double norm_limit, diameter, gradient_limit, share, clip;
};

template <class T> struct Stream {
    Settings settings;
    // What changes with every row; arrays that a learner does not use have length 0.
    Mat<T> table;
    Mat<double> average;   // with CUMULATED times the table: the sum of all weights
    Mat<double> gradient;  // sum of the gradients, where the table does not tell it
    Vec<double> mean, square;
    Mat<double> robust;   // moments and counters of the features, N_ROBUST rows
    Mat<double> weights;  // of the experts, one row per mixed prediction
    // Of the experts after the first, side by side: sums of their gradients; and losses
    // and <gradient, weights> of all. Without rows: only the first expert has accounts.
    Mat<double> gradients, accounts;
    Vec<double> rates;    // step multipliers of the experts
    Vec<double> scalars;
    index n_outputs, n_targets;
    // Memory for one row.
    std::int32_t *idx;
    T *val, *rate, *out, *fast, *slow;
    double *score, *power, *delta, *u, *means, *chance, *energies, *own_rate;
    Target *play, *vertex;
    Memory memory;
};

// Whether each AdaGrad expert has its own sums of squares, and rows have unit length for it.
template <class T> bool has_own_sums(const Stream<T> &s) {
    return s.settings.learner == MIXTURE && s.settings.scaling == MAGNITUDE;
}

// Where a sparse feature's magnitude stands in the table: after the weights and sums.
template <class T> index magnitude_column(const Stream<T> &s) {
    if (s.settings.learner != MIXTURE) return s.n_outputs;
    const index n_experts = s.rates.size;
    return s.n_outputs * n_experts + (has_own_sums(s) ? n_experts - 1 : 1);
}

// What was played on rows that are learnt only now; without rows: they are played now.
struct Earlier {
    Mat<const double> means;
    Mat<const Target> plays, vertices;
};

// What comes with the rows.
struct Draws {
    Mat<const Target> targets;
    Mat<const double> uniforms;
    Mat<Target> plays;          // without rows: plays are only accounted for
    bool log;                   // whether to account
    Vec<const double> weights;  // of the rows, positive; without entries: 1
    Earlier earlier;

    double weight(index i) const { return weights.size > 0 ? weights[i] : 1.0; }
};

template <class T> struct Csr {
    Vec<const T> data;
    Vec<const std::int32_t> indices;
    Vec<const std::int64_t> indptr;
};

// A row that is played and leaves no trace: what is played on it as learning it now would.
struct Trial {
    double weight;
    const double *uniforms;
    Target *play, *vertex;
    double *means;
};

template <class T> struct StreamKernels {
    void (*dense)(Stream<T> &, Mat<const T> X, const Draws &, Pulse &);
    void (*sparse)(Stream<T> &, Csr<T>, const Draws &, Pulse &);
    // Play one row; what they change of the state is a copy.
    void (*try_dense)(Stream<T> &, Mat<const T> X, const Trial &, Memory);
    void (*try_sparse)(Stream<T> &, Csr<T>, const Trial &, Memory);
    // Regularised predictions of rows, by the features' moments as they are.
    void (*points_dense)(Stream<T> &, Mat<const T> X, Mat<double> u);
    void (*points_sparse)(Stream<T> &, Csr<T>, Mat<double> u);
    // Fills out with rows of a dense stream as the learner sees them, after `first` rows.
    void (*features)(int scaling, bool intercept, double clip, Mat<const T> X,
                     Vec<double> mean, Vec<double> square, Mat<double> robust,
                     double first, Mat<double> out);
};

}  // namespace skb
