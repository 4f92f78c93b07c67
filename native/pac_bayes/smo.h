// Sequential minimal optimisation of a two-class SVM on shared rows of a kernel matrix.
//
// With beta = y alpha the dual problem is to maximise y'beta - beta'K beta / 2 subject to
// sum(beta) = 0 and low <= beta <= high. Its gradient v = y - K beta is kept up to date. A
// problem's rows are a few *segments* of consecutive rows of the kernel matrix, one row of
// the integer matrix `segments` each: first row of the matrix, first entry of beta and v,
// length.
//
// Rows of K come from a pool that many problems share: pool[slot_of[i]] is row i. If one is
// missing (slot -1), a function returns its number and may be called again when it is
// there; all progress is kept. Working pairs are chosen by second-order information (Fan,
// Chen and Lin 2005, "Working set selection using second order information for training
// support vector machines", JMLR 6).
#pragma once
#include "../common/view.h"

namespace skb {

// What is returned where no row is missing.
enum { DONE = -1, STOPPED = -2 };

// Entries of the vector of settings; from ITERATIONS on they are written.
enum SmoSetting { SMO_C, TOLERANCE, MOST_ITERATIONS, BEGUN, ITERATIONS, BIAS, TOP, BOTTOM, N_SMO_SETTINGS };
// Rows of the scratch matrix: bounds of beta, and marks of entries that may not rise or
// not fall, a huge number to be added to v.
enum { LOW, HIGH, RISE, FALL, N_WORK };

// Entries of the small problem: at most this many, and this share of all; their matrix is
// to stay in the cache.
inline constexpr index FEW = 300;
inline constexpr double FEW_SHARE = 0.6;
inline constexpr int N_FEW_WORK = N_WORK + 1;

struct KernelPool {
    Mat<const double> rows;
    Vec<const index> slot_of;
    Vec<index> stamp;  // when a slot was last used, in units of the clock
    Vec<index> clock;  // one entry
};

struct SmoProblem {
    Vec<const double> diagonal;  // of K
    Mat<const index> segments;
    Vec<const double> weight;  // factor of C for each entry, with the sign of its class
    Vec<double> beta, v;
    Vec<double> beta_seen, outputs;  // see update_outputs; scaled with beta
    Mat<double> work;                // kept until the solution is found
    Vec<double> settings;
};

struct SmoKernels {
    // Improves beta until no pair violates optimality by more than the tolerance.
    index (*solve)(const KernelPool &, const SmoProblem &, Memory, Pulse &);
    // Brings the decision values of other rows (without bias) up to date with beta:
    // row_numbers has the row of each entry, targets are segments of the other rows,
    // beta_seen is what outputs contain already.
    index (*update_outputs)(const KernelPool &, Vec<const index> row_numbers,
                            Vec<const double> beta, Vec<double> beta_seen,
                            Mat<const index> targets, Vec<double> outputs, Pulse &);
};

}  // namespace skb
