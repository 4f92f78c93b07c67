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
enum Scaling { RAW, STANDARDIZE, FIRST_MAGNITUDE, N_SCALINGS };

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
    Mat<double> weights;  // of the experts, one row per mixed prediction
    Vec<double> rates;    // step multipliers of the experts
    Vec<double> scalars;
    index n_outputs, n_targets;
    // Memory for one row.
    std::int32_t *idx;
    T *val, *rate, *out, *fast, *slow;
    double *score, *power, *delta, *u, *means, *chance;
    Target *play;
    Memory memory;
};

// What comes with the rows.
struct Draws {
    Mat<const Target> targets;
    Mat<const double> uniforms;
    Mat<Target> plays;          // without rows: plays are only accounted for
    bool log;                   // whether to account
    Vec<const double> weights;  // of the rows, positive; without entries: 1

    double weight(index i) const { return weights.size > 0 ? weights[i] : 1.0; }
};

template <class T> struct Csr {
    Vec<const T> data;
    Vec<const std::int32_t> indices;
    Vec<const std::int64_t> indptr;
};

template <class T> struct StreamKernels {
    void (*dense)(Stream<T> &, Mat<const T> X, const Draws &, Pulse &);
    void (*sparse)(Stream<T> &, Csr<T>, const Draws &, Pulse &);
    // Fills out with rows of a dense stream as the learner sees them, after `first` rows.
    void (*features)(int scaling, bool intercept, double clip, Mat<const T> X,
                     Vec<double> mean, Vec<double> square, double first, Mat<double> out);
};

}  // namespace skb
