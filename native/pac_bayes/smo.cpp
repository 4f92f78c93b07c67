#include "smo.h"

#include "scans.h"

namespace skb::SKB_LEVEL {
namespace {

// Entries per part of a maximum. Its position is looked for in the best part only.
constexpr index PART = 256;
// Iterations on all entries before (and between): this many, or a share of n if more.
constexpr double ROUND = 16.0, ROUND_SHARE = 0.125;

struct Segment {
    index column, first, length;
};

SKB_INLINE Segment segment_of(Mat<const index> segments, index s) {
    const index *row = segments.row(s);
    return {row[0], row[1], row[2]};
}

SKB_INLINE void touch(const KernelPool &pool, index slot) {
    pool.stamp[slot] = ++pool.clock[0];
}

// Views of a problem's bounds and marks.
struct Bounds {
    double *low, *high, *rise, *fall;

    explicit Bounds(Mat<double> work)
        : low(work.row(LOW)), high(work.row(HIGH)), rise(work.row(RISE)),
          fall(work.row(FALL)) {}
    void mark(const double *beta, index t) const {
        rise[t] = beta[t] < high[t] ? 0.0 : -FAR;
        fall[t] = beta[t] > low[t] ? 0.0 : FAR;
    }
    // Raises entry i and lowers entry j as far as the bounds allow; returns how far.
    double move(double *beta, index i, index j, double step) const {
        const double room_i = high[i] - beta[i], room_j = beta[j] - low[j];
        step = smaller(step, smaller(room_i, room_j));
        beta[i] = step == room_i ? high[i] : beta[i] + step;
        beta[j] = step == room_j ? low[j] : beta[j] - step;
        mark(beta, i);
        mark(beta, j);
        return step;
    }
};

// Sets the bounds for a larger C, and stretches the solution along its ray. The best factor
// is y'beta / beta'K beta; it is exact where all entries are at their bounds. Everything
// linear in beta is scaled along.
void raise_bounds(const SmoProblem &p, const Bounds &bounds) {
    const double C = p.settings[SMO_C];
    const index n = p.beta.size;
    double linear = 0.0, quadratic = 0.0, room = INFINITE;
    for (index t = 0; t < n; ++t) {
        const double bound = C * p.weight[t], beta = p.beta[t];
        bounds.low[t] = smaller(bound, 0.0);
        bounds.high[t] = larger(bound, 0.0);
        const double y = bound > 0.0 ? 1.0 : -1.0;
        linear += y * beta;
        quadratic += beta * (y - p.v[t]);
        if (beta != 0.0) room = smaller(room, bound / beta);
    }
    if (!(quadratic > 0.0)) return;
    const double scale = smaller(larger(1.0, linear / quadratic), room);
    for (index t = 0; t < n; ++t) {
        const double y = p.weight[t] > 0.0 ? 1.0 : -1.0;
        p.v[t] = y - scale * (y - p.v[t]);
        // Rounding must not carry an entry over its bound.
        p.beta[t] = smaller(larger(scale * p.beta[t], bounds.low[t]), bounds.high[t]);
        p.beta_seen[t] *= scale;
    }
    for (index t = 0; t < p.outputs.size; ++t) p.outputs[t] *= scale;
}

// Does up to `limit` iterations in all; returns the row that is missing, or DONE.
index iterate(const KernelPool &pool, const SmoProblem &p, const Bounds &bounds,
              double limit, Pulse &pulse) {
    double *beta = p.beta.data, *v = p.v.data, *settings = p.settings.data;
    index slot_i = 0, slot_j = 0;
    double step = 0.0;
    for (;;) {
        double v_i = -FAR, v_least = FAR;
        Segment best_segment{0, 0, 0};
        index best_part = 0, best_size = 0;
        for (index s = 0; s < p.segments.rows; ++s) {
            const Segment segment = segment_of(p.segments, s);
            const double *k_i = pool.rows.row(slot_i) + segment.column;
            const double *k_j = pool.rows.row(slot_j) + segment.column;
            for (index start = 0; start < segment.length; start += PART) {
                const index size =
                    segment.length - start < PART ? segment.length - start : PART;
                const index at = segment.first + start;
                const Extremes found =
                    step_and_scan(k_i + start, k_j + start, step, v + at,
                                  bounds.rise + at, bounds.fall + at, size);
                if (found.top > v_i) {
                    v_i = found.top;
                    best_segment = segment;
                    best_part = at;
                    best_size = size;
                }
                v_least = smaller(v_least, found.bottom);
            }
        }
        settings[TOP] = v_i;
        settings[BOTTOM] = v_least;
        if (v_i - v_least <= settings[TOLERANCE] || settings[ITERATIONS] >= limit)
            return DONE;
        const index i =
            best_part + position(v + best_part, bounds.rise + best_part, v_i, best_size);
        const index row_i = best_segment.column + i - best_segment.first;
        slot_i = pool.slot_of[row_i];
        if (slot_i < 0) return row_i;
        const double *k_row = pool.rows.row(slot_i), *diagonal = p.diagonal.data;
        const double k_ii = diagonal[row_i];
        double best = 0.0;
        index column_j = 0, first_j = 0, size_j = 0;
        for (index s = 0; s < p.segments.rows; ++s) {
            const Segment segment = segment_of(p.segments, s);
            for (index start = 0; start < segment.length; start += PART) {
                const index size =
                    segment.length - start < PART ? segment.length - start : PART;
                const index at = segment.first + start, to = segment.column + start;
                const Gains gains{k_row + to, diagonal + to, v + at, bounds.fall + at,
                                  v_i,        k_ii};
                const double top = gains.best(size);
                if (top > best) {
                    best = top;
                    column_j = to;
                    first_j = at;
                    size_j = size;
                }
            }
        }
        if (best == 0.0) {
            // Only rounding is left to gain.
            settings[BOTTOM] = v_i;
            return DONE;
        }
        const Gains gains{k_row + column_j, diagonal + column_j, v + first_j,
                          bounds.fall + first_j, v_i, k_ii};
        const index place = gains.place(best, size_j);
        const index j = first_j + place, row_j = column_j + place;
        slot_j = pool.slot_of[row_j];
        if (slot_j < 0) return row_j;
        touch(pool, slot_i);
        touch(pool, slot_j);
        const double curvature = k_ii + diagonal[row_j] - 2.0 * k_row[row_j];
        step = (v_i - v[j]) / larger(curvature, MIN_CURVATURE);
        step = bounds.move(beta, i, j, step);
        settings[ITERATIONS] += 1.0;
        if (stops(pulse, 8 * p.beta.size)) return STOPPED;
    }
}

// The same on a small matrix that is all there. Its curvatures come inverted, as dividing
// would take longer than all the rest.
void iterate_few(Mat<const double> matrix, Mat<const double> inverse, Vec<double> beta,
                 Vec<double> v, const Bounds &bounds, double *gains, double *settings,
                 double limit) {
    const index n = v.size;
    index i = 0, j = 0;
    double step = 0.0;
    for (;;) {
        const Extremes found = step_and_scan(matrix.row(i), matrix.row(j), step, v.data,
                                             bounds.rise, bounds.fall, n);
        if (found.top - found.bottom <= settings[TOLERANCE] ||
            settings[ITERATIONS] >= limit)
            return;
        i = position(v.data, bounds.rise, found.top, n);
        const double *inverse_i = inverse.row(i);
        Doubles tops[2] = {all(0.0), all(0.0)};
        index t = 0;
        for (; t + 2 * LANES <= n; t += 2 * LANES)
            for (int a = 0; a < 2; ++a) {
                const index at = t + a * LANES;
                const Doubles gap = larger_of(
                    all(found.top) - (read(v.data + at) + read(bounds.fall + at)),
                    all(0.0));
                const Doubles value = gap * gap * read(inverse_i + at);
                write(value, gains + at);
                tops[a] = larger_of(value, tops[a]);
            }
        double best = largest(larger_of(tops[0], tops[1]));
        for (; t < n; ++t) {
            const double gap = larger(0.0, found.top - (v[t] + bounds.fall[t]));
            gains[t] = gap * gap * inverse_i[t];
            best = larger(best, gains[t]);
        }
        if (best == 0.0) return;
        for (j = 0; j + LANES <= n; j += LANES)
            if (any(read(gains + j) == all(best))) break;
        while (j < n - 1 && gains[j] != best) ++j;
        step = (found.top - v[j]) * inverse_i[j];
        step = bounds.move(beta.data, i, j, step);
        settings[ITERATIONS] += 1.0;
    }
}

// Iterates on the entries only that are able to be in a violating pair. They are few near
// the optimum, and of their rows only these entries are needed. Does nothing if they are
// not few, or if a row is missing.
void shrink(const KernelPool &pool, const SmoProblem &p, const Bounds &bounds,
            double limit, Memory memory) {
    double *v = p.v.data, *settings = p.settings.data;
    const double top = settings[TOP], bottom = settings[BOTTOM];
    const auto active = [&](index t) {
        return v[t] + bounds.rise[t] > bottom || v[t] + bounds.fall[t] < top;
    };
    index m = 0;
    for (index t = 0; t < p.v.size; ++t)
        m += (v[t] + bounds.rise[t] > bottom) | (v[t] + bounds.fall[t] < top);
    if (double(m) > smaller(double(FEW), FEW_SHARE * double(p.v.size))) return;
    index *entries = take<index>(memory, m), *columns = take<index>(memory, m);
    index *slots = take<index>(memory, m);
    index a = 0;
    for (index s = 0; s < p.segments.rows; ++s) {
        const Segment segment = segment_of(p.segments, s);
        for (index t = segment.first; t < segment.first + segment.length; ++t) {
            if (!active(t)) continue;
            entries[a] = t;
            columns[a] = segment.column + t - segment.first;
            slots[a] = pool.slot_of[columns[a]];
            if (slots[a] < 0) return;
            ++a;
        }
    }
    const Mat<double> matrix{take<double>(memory, m * m), m, m};
    const Mat<double> inverse{take<double>(memory, m * m), m, m};
    const Vec<double> few_beta{take<double>(memory, m), m}, few_v{take<double>(memory, m), m};
    const Mat<double> few_work{take<double>(memory, N_FEW_WORK * m), N_FEW_WORK, m};
    for (a = 0; a < m; ++a) {
        const index t = entries[a];
        few_beta[a] = p.beta[t];
        few_v[a] = v[t];
        for (int k = 0; k < N_WORK; ++k) few_work(k, a) = p.work(k, t);
        const double *row = pool.rows.row(slots[a]);
        const double k_ii = p.diagonal[columns[a]];
        double *few = matrix.row(a), *curvatures = inverse.row(a);
        for (index b = 0; b < m; ++b) few[b] = row[columns[b]];
        for (index b = 0; b < m; ++b) {
            const double curvature = k_ii + p.diagonal[columns[b]] - 2.0 * few[b];
            curvatures[b] = 1.0 / larger(curvature, MIN_CURVATURE);
        }
    }
    const Bounds few_bounds(few_work);
    iterate_few({matrix.data, m, m}, {inverse.data, m, m}, few_beta, few_v, few_bounds,
                few_work.row(N_WORK), settings, limit);
    for (a = 0; a < m; ++a) {
        const index t = entries[a];
        const double change = few_beta[a] - p.beta[t];
        if (change == 0.0) continue;
        p.beta[t] = few_beta[a];
        bounds.rise[t] = few_bounds.rise[a];
        bounds.fall[t] = few_bounds.fall[a];
        touch(pool, slots[a]);
        for (index s = 0; s < p.segments.rows; ++s) {
            const Segment segment = segment_of(p.segments, s);
            const double *__restrict row = pool.rows.row(slots[a]) + segment.column;
            double *__restrict part = v + segment.first;
            for (index k = 0; k < segment.length; ++k) part[k] -= change * row[k];
        }
    }
}

index solve(const KernelPool &pool, const SmoProblem &p, Memory memory, Pulse &pulse) {
    const Bounds bounds(p.work);
    double *settings = p.settings.data;
    const index n = p.beta.size;
    if (settings[BEGUN] == 0.0) {
        raise_bounds(p, bounds);
        settings[BEGUN] = 1.0;
    }
    for (index t = 0; t < n; ++t) bounds.mark(p.beta.data, t);
    const double tolerance = settings[TOLERANCE], most = settings[MOST_ITERATIONS];
    const double period = larger(ROUND, ROUND_SHARE * double(n));
    for (;;) {
        const index missing =
            iterate(pool, p, bounds, smaller(most, settings[ITERATIONS] + period), pulse);
        if (missing != DONE) return missing;
        if (settings[TOP] - settings[BOTTOM] <= tolerance || settings[ITERATIONS] >= most)
            break;
        shrink(pool, p, bounds, most, memory);
    }
    double total = 0.0;
    index count = 0;
    for (index t = 0; t < n; ++t)
        if (bounds.low[t] < p.beta[t] && p.beta[t] < bounds.high[t]) {
            total += p.v[t];
            ++count;
        }
    settings[BIAS] =
        count ? total / double(count) : 0.5 * (settings[TOP] + settings[BOTTOM]);
    return DONE;
}

index update_outputs(const KernelPool &pool, Vec<const index> row_numbers,
                     Vec<const double> beta, Vec<double> beta_seen,
                     Mat<const index> targets, Vec<double> outputs, Pulse &pulse) {
    for (index t = 0; t < beta.size; ++t) {
        const double change = beta[t] - beta_seen[t];
        if (change == 0.0) continue;
        const index slot = pool.slot_of[row_numbers[t]];
        if (slot < 0) return row_numbers[t];
        touch(pool, slot);
        for (index u = 0; u < targets.rows; ++u) {
            const Segment segment = segment_of(targets, u);
            const double *__restrict row = pool.rows.row(slot) + segment.column;
            double *__restrict part = outputs.data + segment.first;
            for (index k = 0; k < segment.length; ++k) part[k] += change * row[k];
        }
        beta_seen[t] = beta[t];
        if (stops(pulse, outputs.size)) return STOPPED;
    }
    return DONE;
}

}  // namespace

extern const SmoKernels smo_kernels;
const SmoKernels smo_kernels{solve, update_outputs};

}  // namespace skb::SKB_LEVEL
