// One row of each structure: prediction, loss, decoding and exact draws.
//
// Five polytopes, seven losses, one interface. Scores theta and points u are vectors of
// length D; a target or play is a vector of integers in the user's form:
//
// structure      D              target and play
// simplex        classes        one entry: the class code
// cube           labels         the 0/1 labels
// chain          levels - 1     one entry: the level code; its vertex starts with that
//                               many ones
// permutahedron  items          the values 1..D, the largest on top
// birkhoff       items squared  the position of each item, from 0
//
// Equation, theorem and algorithm numbers: Sakaue, Bao, Tsuchiya and Oki (2024).
#pragma once
#include "../common/view.h"

namespace skb {

// The two simplices differ in the norm of Algorithm 1.
enum Structure { SIMPLEX, EUCLIDEAN_SIMPLEX, CUBE, CHAIN, PERMUTAHEDRON, BIRKHOFF, N_STRUCTURES };
enum Decoding { RANDOMIZED, ARGMAX, SAMPLE, COORDINATEWISE, N_DECODINGS };
enum Loss {
    LOGISTIC,
    SPARSEMAX,
    CUBE_SPARSEMAP,
    CUBE_SIGMOID,
    CHAIN_SPARSEMAP,
    PERMUTAHEDRON_SPARSEMAP,
    BIRKHOFF_ENTROPIC,
    N_LOSSES
};
inline constexpr Structure STRUCTURE_OF[N_LOSSES] = {
    SIMPLEX, EUCLIDEAN_SIMPLEX, CUBE, CUBE, CHAIN, PERMUTAHEDRON, BIRKHOFF};

using Target = std::int64_t;

struct RowKernels {
    // exp of non-positive numbers, as the mixture computes it.
    void (*exponential)(Vec<const double> x, Vec<double> out);
    void (*predict)(int loss, double mu, Mat<const double> theta, Mat<double> u, Memory,
                    Pulse &);
    void (*respond)(int loss, double mu, Mat<const double> theta, Mat<const Target> targets,
                    Vec<double> values, Mat<double> residual, Memory, Pulse &);
    void (*nearest)(int structure, Mat<const double> u, Mat<Target> vertices, Memory,
                    Pulse &);
    void (*decode)(int structure, int decoding, Mat<const double> u,
                   Mat<const double> uniforms, Mat<Target> plays, Mat<double> means, Memory,
                   Pulse &);
};

}  // namespace skb
