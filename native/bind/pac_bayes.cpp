#include <cmath>

#include "arrays.h"

namespace skb {
namespace {

KernelPool check_pool(const Array2<const double> &rows, const Array1<const index> &slot_of,
                      const Array1<index> &stamp, const Array1<index> &clock) {
    const KernelPool pool{view(rows), view(slot_of), view(stamp), view(clock)};
    require(pool.rows.rows > 0, "pool: no slots");
    require(pool.rows.cols == pool.slot_of.size, "slot_of: wrong length");
    require(pool.stamp.size == pool.rows.rows, "stamp: wrong length");
    require(pool.clock.size == 1, "clock: wrong length");
    bool good = true;
    for (index i = 0; i < pool.slot_of.size; ++i)
        good &= pool.slot_of[i] < pool.rows.rows;
    require(good, "slot_of: beyond the pool");
    return pool;
}

void check_segments(Mat<const index> segments, index n_columns, index n_entries) {
    require(segments.cols == 3, "segments: wrong shape");
    bool good = true;
    for (index s = 0; s < segments.rows; ++s) {
        const index column = segments(s, 0), first = segments(s, 1), length = segments(s, 2);
        good &= column >= 0 && first >= 0 && length >= 0 && length <= n_columns - column &&
                length <= n_entries - first;
    }
    require(good, "segments: out of range");
}

index solve(Array2<const double> pool, Array1<const index> slot_of, Array1<index> stamp,
            Array1<index> clock, Array1<const double> diagonal,
            Array2<const index> segments, Array1<const double> weight, Array1<double> beta,
            Array1<double> v, Array1<double> beta_seen, Array1<double> outputs,
            Array2<double> work, Array1<double> settings) {
    const KernelPool rows = check_pool(pool, slot_of, stamp, clock);
    const SmoProblem p{view(diagonal), view(segments),  view(weight),
                       view(beta),     view(v),         view(beta_seen),
                       view(outputs),  view(work),      view(settings)};
    const index n = p.beta.size;
    require(p.diagonal.size == rows.rows.cols, "diagonal: wrong length");
    require(p.weight.size == n && p.v.size == n && p.beta_seen.size == n && n > 0,
            "weight, v, beta_seen: wrong length");
    require(p.work.rows == N_WORK && p.work.cols == n, "work: wrong shape");
    require(p.settings.size == N_SMO_SETTINGS, "settings: wrong length");
    check_segments(p.segments, rows.rows.cols, n);
    index covered = 0;
    for (index s = 0; s < p.segments.rows; ++s) {
        require(p.segments(s, 1) == covered, "segments: not one after the other");
        covered += p.segments(s, 2);
    }
    require(covered == n, "segments: not all entries");
    for (index k = 0; k <= MOST_ITERATIONS; ++k)
        require(std::isfinite(p.settings[k]), "settings: not finite");
    const index share = index(FEW_SHARE * double(n)) + 1;
    const index few = share < FEW ? share : FEW;
    const Scratch scratch(pieces(5, few) + pieces(2, few * few) +
                          pieces(1, N_FEW_WORK * few));
    return run([&](Pulse &pulse) {
        return level->smo->solve(rows, p, scratch.memory(), pulse);
    });
}

index update_outputs(Array2<const double> pool, Array1<const index> slot_of,
                     Array1<index> stamp, Array1<index> clock,
                     Array1<const index> row_numbers, Array1<const double> beta,
                     Array1<double> beta_seen, Array2<const index> targets,
                     Array1<double> outputs) {
    const KernelPool rows = check_pool(pool, slot_of, stamp, clock);
    const auto numbers = view(row_numbers);
    const auto b = view(beta);
    const auto seen = view(beta_seen);
    const auto at = view(targets);
    const auto out = view(outputs);
    require(numbers.size == b.size && seen.size == b.size,
            "row_numbers, beta_seen: wrong length");
    bool good = true;
    for (index t = 0; t < numbers.size; ++t)
        good &= 0 <= numbers[t] && numbers[t] < rows.slot_of.size;
    require(good, "row_numbers: out of range");
    check_segments(at, rows.rows.cols, out.size);
    return run([&](Pulse &pulse) {
        return level->smo->update_outputs(rows, numbers, b, seen, at, out, pulse);
    });
}

}  // namespace

void bind_pac_bayes(nb::module_ &m) {
    m.attr("DONE") = int(DONE);
    m.def("solve", solve, array("pool"), array("slot_of"), array("stamp"), array("clock"),
          array("diagonal"), array("segments"), array("weight"), array("beta"), array("v"),
          array("beta_seen"), array("outputs"), array("work"), array("settings"));
    m.def("update_outputs", update_outputs, array("pool"), array("slot_of"),
          array("stamp"), array("clock"), array("row_numbers"), array("beta"),
          array("beta_seen"), array("targets"), array("outputs"));
}

}  // namespace skb
