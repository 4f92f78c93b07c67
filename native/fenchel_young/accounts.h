// The accounts of a stream: what plays have cost.
#pragma once
#include <type_traits>

#include "decode.h"
#include "stream.h"

namespace skb::SKB_LEVEL {
namespace {

// Enters the play of a row. Of a row that was played earlier what it was played by then;
// regret is about what would be played on it now, by s.means.
template <class Polytope, class T>
void account_play(const Stream<T> &s, const Draws &draws, index row, double weight,
                  const Target *play) {
    const index n = s.n_outputs, n_targets = s.n_targets;
    const Target *target = draws.targets.row(row), *vertex = s.vertex;
    double *scalars = s.scalars.data;
    double expected = weight * Polytope::loss_at(s.means, n, target, n_targets);
    scalars[ROUNDS] += 1.0;
    scalars[AT_LEARNING] += expected;
    if (draws.earlier.means.rows > 0) {
        expected =
            weight * Polytope::loss_at(draws.earlier.means.row(row), n, target, n_targets);
        play = draws.earlier.plays.row(row);
        vertex = draws.earlier.vertices.row(row);
    } else if constexpr (!std::is_same_v<Polytope, Birkhoff>) {
        Polytope::nearest(s.u, n, s.vertex, n_targets, s.memory);
    }
    scalars[EXPECTED] += expected;
    scalars[EXPECTED_SQUARED] += expected * expected;
    // Nearest matchings take longer than everything else.
    if constexpr (!std::is_same_v<Polytope, Birkhoff>)
        scalars[PROGRESSIVE] +=
            weight * Polytope::loss_between(vertex, target, n, n_targets);
    scalars[REALISED] += weight * Polytope::loss_between(play, target, n, n_targets);
}

}  // namespace
}  // namespace skb::SKB_LEVEL
