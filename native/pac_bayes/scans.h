// Extremes over many entries, in vectors. The order of maxima does not matter.
#pragma once
#include "../common/levels.h"

namespace skb::SKB_LEVEL {
namespace {

// A register of the instruction set: maxima of wider vectors would be taken apart.
#ifdef __AVX__
constexpr index LANES = 4;
typedef double Doubles __attribute__((vector_size(32), aligned(8), may_alias));
typedef std::int64_t Bits __attribute__((vector_size(32)));
#else
constexpr index LANES = 2;
typedef double Doubles __attribute__((vector_size(16), aligned(8), may_alias));
typedef std::int64_t Bits __attribute__((vector_size(16)));
#endif
// Registers that are worked on together, to hide the latency of a maximum.
constexpr int AT_ONCE = 4;
constexpr double FAR = 1e300;
// Least curvature along a pair, for kernels that are not positive definite.
constexpr double MIN_CURVATURE = 1e-12;

SKB_INLINE Doubles read(const double *from) {
    return *reinterpret_cast<const Doubles *>(from);
}
SKB_INLINE void write(Doubles values, double *to) {
    *reinterpret_cast<Doubles *>(to) = values;
}
SKB_INLINE Doubles all(double value) { return value - Doubles{}; }
SKB_INLINE Doubles larger_of(Doubles a, Doubles b) { return a > b ? a : b; }
SKB_INLINE Doubles smaller_of(Doubles a, Doubles b) { return a < b ? a : b; }
SKB_INLINE double largest(Doubles a) {
    double found = a[0];
    for (int k = 1; k < LANES; ++k) found = larger(found, a[k]);
    return found;
}
SKB_INLINE double smallest(Doubles a) {
    double found = a[0];
    for (int k = 1; k < LANES; ++k) found = smaller(found, a[k]);
    return found;
}
SKB_INLINE bool any(Bits found) {
    std::int64_t bits = found[0];
    for (int k = 1; k < LANES; ++k) bits |= found[k];
    return bits != 0;
}

// Largest v of an entry that may rise, and least v of an entry that may fall.
struct Extremes {
    double top = -FAR, bottom = FAR;
};

// Subtracts step (K_i - K_j) from v; returns its extremes.
inline Extremes step_and_scan(const double *__restrict k_i, const double *__restrict k_j,
                              double step, double *__restrict v,
                              const double *__restrict rise,
                              const double *__restrict fall, index n) {
    Extremes found;
    Doubles top[AT_ONCE], bottom[AT_ONCE];
    for (int a = 0; a < AT_ONCE; ++a) {
        top[a] = all(-FAR);
        bottom[a] = all(FAR);
    }
    const Doubles steps = all(step);
    index t = 0;
    for (; t + AT_ONCE * LANES <= n; t += AT_ONCE * LANES)
        for (int a = 0; a < AT_ONCE; ++a) {
            const index at = t + a * LANES;
            const Doubles value =
                read(v + at) - steps * (read(k_i + at) - read(k_j + at));
            write(value, v + at);
            top[a] = larger_of(value + read(rise + at), top[a]);
            bottom[a] = smaller_of(value + read(fall + at), bottom[a]);
        }
    found.top = largest(larger_of(larger_of(top[0], top[1]), larger_of(top[2], top[3])));
    found.bottom = smallest(
        smaller_of(smaller_of(bottom[0], bottom[1]), smaller_of(bottom[2], bottom[3])));
    for (; t < n; ++t) {
        const double value = v[t] - step * (k_i[t] - k_j[t]);
        v[t] = value;
        found.top = larger(found.top, value + rise[t]);
        found.bottom = smaller(found.bottom, value + fall[t]);
    }
    return found;
}

// Where the sum of two arrays has a value that is known to be there.
inline index position(const double *values, const double *others, double wanted, index n) {
    const Doubles target = all(wanted);
    index t = 0;
    for (; t + AT_ONCE * LANES <= n; t += AT_ONCE * LANES) {
        Bits found{};
        for (int a = 0; a < AT_ONCE; ++a) {
            const index at = t + a * LANES;
            found |= read(values + at) + read(others + at) == target;
        }
        if (any(found)) break;
    }
    while (t < n - 1 && values[t] + others[t] != wanted) ++t;
    return t;
}

// What a pair gains (twice), from its violation and its curvature.
SKB_INLINE double gain(double difference, double curvature) {
    difference = larger(0.0, difference);
    curvature = larger(MIN_CURVATURE, curvature);
    return difference * difference / curvature;
}
SKB_INLINE Doubles gain(Doubles difference, Doubles curvature) {
    difference = larger_of(difference, all(0.0));
    curvature = larger_of(curvature, all(MIN_CURVATURE));
    return difference * difference / curvature;
}

// Gains of pairs (i, t), t in an array.
struct Gains {
    const double *k_i, *diagonal, *v, *fall;
    double v_i, k_ii;

    SKB_INLINE double one(index t) const {
        return gain(v_i - (v[t] + fall[t]), k_ii + diagonal[t] - 2.0 * k_i[t]);
    }
    SKB_INLINE Doubles four(index t) const {
        return gain(all(v_i) - (read(v + t) + read(fall + t)),
                    all(k_ii) + read(diagonal + t) - all(2.0) * read(k_i + t));
    }
    double best(index n) const {
        Doubles top[2] = {all(0.0), all(0.0)};
        index t = 0;
        for (; t + 2 * LANES <= n; t += 2 * LANES)
            for (int a = 0; a < 2; ++a) top[a] = larger_of(four(t + a * LANES), top[a]);
        double found = largest(larger_of(top[0], top[1]));
        for (; t < n; ++t) found = larger(found, one(t));
        return found;
    }
    // Where the gain is the best one. Writing the gains down would cost more than this.
    index place(double wanted, index n) const {
        const Doubles target = all(wanted);
        index t = 0;
        for (; t + LANES <= n; t += LANES)
            if (any(four(t) == target)) break;
        while (t < n - 1 && one(t) != wanted) ++t;
        return t;
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
