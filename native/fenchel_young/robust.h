// Standardised features whose scale survives a bad row and follows a change.
//
// Welford's moments of values that are clipped at ten standard deviations. Two counters per
// feature watch for values that the moments do not describe: many that are far away (the
// feature has moved, or grown), and many that are next to each other (it has shrunk, or the
// moments come of an outlier). A counter that is full puts the moments of its own values in
// place of the old ones. Values that repeat the one before are neither hits nor misses:
// constant and one-hot features are left alone, and those with few values are followed.
//
// On a stationary stream with independent rows, while the moments are those of the law,
// hits of the first kind come in runs that a miss ends, as the next value is another one: a
// false alarm has a probability below 1e-17 for each run. Those of the second kind take a
// law of which more than three quarters of the changes lead to within a quarter of a
// deviation of one point; after such a reset the moments are not the law's for a while.
#pragma once
#include "../common/levels.h"
#include "stream.h"

namespace skb::SKB_LEVEL {
namespace {

constexpr double READY = 20.0;                       // values behind moments that count
constexpr double FAR = 5.0, CLIPPED = 10.0;          // standard deviations
constexpr double NEAR = 0.25;
constexpr double FULL_UP = 16.0, FULL_DOWN = 32.0;   // hits
constexpr double LOST = 3.0;                         // hits that a miss takes back
constexpr index TURNS = 8;                           // features take turns in one test
constexpr double LEAST_SQUARE = 2.3e-308;            // less than this is 0

// The moments of one feature, and those of a counter's values.
struct Feature {
    Mat<double> state;
    double *mean, *square;
    index j;

    double &at(int row) const { return state(row, j); }
    bool ready() const { return at(COUNT) >= READY && at(DEVIATION) > 0.0; }

    void forget(int counter) const {
        for (int row = counter; row < counter + 4; ++row) at(row) = 0.0;
    }

    // Counts a hit or a miss; a full counter replaces the moments.
    void count(int counter, bool hit, double full, double x) const {
        double &hits = at(counter), &n = at(counter + 1);
        double &m = at(counter + 2), &s = at(counter + 3);
        if (!hit) {
            if (hits == 0.0) return;
            hits -= LOST;
            if (hits <= 0.0) forget(counter);
            return;
        }
        if (hits + 1.0 >= full && s > 0.0) {
            at(COUNT) = n;
            mean[j] = m;
            square[j] = s;
            at(DEVIATION) = sqrt(s / n);
            at(RESETS) += 1.0;
            forget(UP);
            forget(DOWN);
            return;
        }
        hits += 1.0;
        n += 1.0;
        const double change = x - m;
        m += change / n;
        s += change * (x - m);
    }
};

// Takes a row into the moments, after `before` rows, and fills the scaled row.
template <class T, class Out>
void standardize_robustly(const T *__restrict x_row, index d, double before, double clip,
                          Mat<double> state, double *__restrict mean,
                          double *__restrict square, Out *__restrict val) {
    double *__restrict count = state.row(COUNT), *__restrict deviation = state.row(DEVIATION);
    double *__restrict last = state.row(LAST), *__restrict up = state.row(UP);
    const index turn = index(before) % TURNS;
    for (index j = turn; j < d; j += TURNS) {
        const Feature feature{state, mean, square, j};
        const double x = double(x_row[j]);
        if (!feature.ready() || x == last[j]) continue;
        const bool near = feature.at(DOWN_COUNT) == 0.0 ||
                          fabs(x - feature.at(DOWN_MEAN)) < NEAR * deviation[j];
        feature.count(DOWN, near, FULL_DOWN, x);
    }
    index watched = 0;
#pragma omp simd reduction(+ : watched)
    for (index j = 0; j < d; ++j) {
        const double gap = fabs(double(x_row[j]) - mean[j]);
        watched += (gap > FAR * deviation[j]) | (up[j] > 0.0);
    }
    if (watched > 0) {
        for (index j = 0; j < d; ++j) {
            const Feature feature{state, mean, square, j};
            const double x = double(x_row[j]);
            if (!feature.ready() || x == last[j]) continue;
            const bool far = fabs(x - mean[j]) > FAR * deviation[j];
            feature.count(UP, far, FULL_UP, x);
        }
    }
#pragma omp simd
    for (index j = 0; j < d; ++j) {
        const double x = double(x_row[j]), reach = CLIPPED * deviation[j];
        const double low = mean[j] - reach, high = mean[j] + reach;
        double inside = x > low ? x : low;
        inside = inside < high ? inside : high;
        const bool ready = (count[j] >= READY) & (deviation[j] > 0.0);
        const double v = ready ? inside : x;
        const double n = count[j] + 1.0, change = v - mean[j];
        const double centre = mean[j] + change / n;
        const double spread = square[j] + change * (v - centre);
        const bool varies = spread >= LEAST_SQUARE;
        const double size = sqrt(spread / n);
        count[j] = n;
        mean[j] = centre;
        square[j] = spread;
        last[j] = x;
        deviation[j] = varies ? size : 0.0;
        double z = (x - centre) / size;
        z = varies ? z : 0.0;
        z = z > -clip ? z : -clip;
        val[j] = Out(z < clip ? z : clip);
    }
}

}  // namespace
}  // namespace skb::SKB_LEVEL
