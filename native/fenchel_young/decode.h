// Playing on a point of a polytope: the nearest vertex, a random one, or Algorithm 1.
#pragma once
#include "polytopes/birkhoff.h"
#include "polytopes/chain.h"
#include "polytopes/cube.h"
#include "polytopes/permutahedron.h"
#include "polytopes/simplex.h"

namespace skb::SKB_LEVEL {
namespace {

template <int STRUCTURE> struct PolytopeOf;
template <> struct PolytopeOf<SIMPLEX> { using type = Simplex<false>; };
template <> struct PolytopeOf<EUCLIDEAN_SIMPLEX> { using type = Simplex<true>; };
template <> struct PolytopeOf<CUBE> { using type = CubeOfLabels; };
template <> struct PolytopeOf<CHAIN> { using type = Chain; };
template <> struct PolytopeOf<PERMUTAHEDRON> { using type = Permutahedron; };
template <> struct PolytopeOf<BIRKHOFF> { using type = Birkhoff; };

// P(1) when Algorithm 1 is run on one coordinate.
inline double law_of_coordinate(double u) {
    return u <= 0.5 ? 2.0 * u * u : 1.0 - 2.0 * (1.0 - u) * (1.0 - u);
}

// Fills a play with a draw, and mean with E[vertex] of the decoding.
//
// Algorithm 1 draws the nearest vertex (Prop. 3.2, C.1) with probability 1 - p, where
// p = min(1, 2 |y* - u| / nu), and otherwise a random vertex of mean u, so that its mean is
// (1 - p) y* + p u. Norms are l1 with nu = 2 (simplex) and nu = 4 (birkhoff), l2 with
// nu = 1 (cube, chain) and nu = sqrt 2 (permutahedron, simplex of the sparsemax loss).
// Ties of the nearest: the lower class, label 0, the earlier item below.
template <class Polytope>
void decode(int decoding, const double *u, index n, const double *uniform, Target *play,
            index n_targets, double *mean, Memory memory) {
    if (decoding == COORDINATEWISE) {
        for (index i = 0; i < n; ++i) mean[i] = law_of_coordinate(u[i]);
        Polytope::sample(mean, n, uniform, play, n_targets, memory);
        return;
    }
    const bool sampled = decoding == SAMPLE;
    if (sampled || (decoding == RANDOMIZED && Polytope::surely_randomises(u, n_targets))) {
        for (index i = 0; i < n; ++i) mean[i] = u[i];
        Polytope::sample(u, n, sampled ? uniform : uniform + 1, play, n_targets, memory);
        return;
    }
    Polytope::nearest(u, n, play, n_targets, memory);
    Polytope::vertex(play, n_targets, mean, n);
    if (decoding == ARGMAX) return;
    const double rate = Polytope::mixing_rate(u, n, play, n_targets);
    for (index i = 0; i < n; ++i) mean[i] += rate * (u[i] - mean[i]);
    if (uniform[0] < rate)
        Polytope::sample(u, n, uniform + 1, play, n_targets, memory);
}

}  // namespace
}  // namespace skb::SKB_LEVEL
