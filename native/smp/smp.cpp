#include "smp.h"

#include "../common/levels.h"
#include "../common/vexp.h"

namespace skb::SKB_LEVEL {
namespace {

// For |x| <= 4: Taylor on x/8 (remainder below 1e-16 relative), then three times
// exp(2u) - 1 = e (2 + e).
inline double expm1_bounded(double x) {
    const double r = x * 0.125;
    double e = 1.0 / 6227020800.0;
    e = e * r + 1.0 / 479001600.0;
    e = e * r + 1.0 / 39916800.0;
    e = e * r + 1.0 / 3628800.0;
    e = e * r + 1.0 / 362880.0;
    e = e * r + 1.0 / 40320.0;
    e = e * r + 1.0 / 5040.0;
    e = e * r + 1.0 / 720.0;
    e = e * r + 1.0 / 120.0;
    e = e * r + 1.0 / 24.0;
    e = e * r + 1.0 / 6.0;
    e = e * r + 0.5;
    e = e * r + 1.0;
    e = e * r;
    e = e * (2.0 + e);
    e = e * (2.0 + e);
    return e * (2.0 + e);
}

// The largest absolute entry, infinity if one is beyond the bound or NaN.
inline double largest_change(const double *row, index n) {
    double lanes[8] = {};
    index outside[8] = {};
    index i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) {
            const double size = fabs(row[i + k]);
            outside[k] += !(size <= MAX_CHANGE);
            lanes[k] = size > lanes[k] ? size : lanes[k];
        }
    for (int k = 0; i < n; ++i, ++k) {
        const double size = fabs(row[i]);
        outside[k] += !(size <= MAX_CHANGE);
        lanes[k] = size > lanes[k] ? size : lanes[k];
    }
    for (int k = 1; k < 8; ++k) {
        outside[0] += outside[k];
        lanes[0] = larger(lanes[0], lanes[k]);
    }
    return outside[0] ? INFINITE : lanes[0];
}

void binary_increments(Mat<double> change, Vec<const double> proba,
                       Vec<const double> curvature, Vec<double> largest) {
    const index n = change.cols;
    const double *__restrict p = proba.data, *__restrict w = curvature.data;
    for (index j = 0; j < change.rows; ++j) {
        double *__restrict row = change.row(j);
        largest[j] = largest_change(row, n);
        if (largest[j] == INFINITE) {
            for (index i = 0; i < n; ++i) row[i] = 0.0;
            continue;
        }
        for (index i = 0; i < n; ++i) {
            const double e = expm1_bounded(row[i]);
            row[i] = w[i] * e / (1.0 + p[i] * e);
        }
    }
}

void softmax_increments(Cube<double> change, Mat<const double> proba,
                        Vec<const double> weight, Vec<double> largest) {
    const index n_classes = change.rows, n = change.cols;
    // Rows in parts whose means stay in the first-level cache.
    constexpr index part = 256;
    double means[part];
    for (index j = 0; j < change.pages; ++j) {
        const Mat<double> rows = change.page(j);
        double top = 0.0;
        for (index k = 0; k < n_classes; ++k)
            top = larger(top, largest_change(rows.row(k), n));
        largest[j] = top;
        if (top == INFINITE) {
            for (index i = 0; i < n_classes * n; ++i) rows.data[i] = 0.0;
            continue;
        }
        for (index first = 0; first < n; first += part) {
            const index size = n - first < part ? n - first : part;
            const double *__restrict w = weight.data + first;
            for (index i = 0; i < size; ++i) means[i] = 0.0;
            for (index k = 0; k < n_classes; ++k) {
                double *__restrict row = rows.row(k) + first;
                const double *__restrict p = proba.row(k) + first;
                for (index i = 0; i < size; ++i) {
                    row[i] = expm1_bounded(row[i]);
                    means[i] += p[i] * row[i];
                }
            }
            for (index k = 0; k < n_classes; ++k) {
                double *__restrict row = rows.row(k) + first;
                const double *__restrict p = proba.row(k) + first;
                for (index i = 0; i < size; ++i)
                    row[i] = p[i] * (row[i] - means[i]) * (w[i] / (1.0 + means[i]));
            }
        }
    }
}

void second_order_terms(Mat<const double> change, Vec<const double> second,
                        Mat<double> out) {
    const double *__restrict b = second.data;
    for (index j = 0; j < change.rows; ++j) {
        const double *__restrict a = change.row(j);
        double *__restrict to = out.row(j);
        for (index i = 0; i < change.cols; ++i) to[i] = b[i] * a[i] * a[i];
    }
}

void third_order_terms(Mat<const double> change, Mat<double> bend,
                       Vec<const double> second, Vec<const double> third) {
    const double *__restrict b = second.data, *__restrict c = third.data;
    for (index j = 0; j < change.rows; ++j) {
        const double *__restrict a = change.row(j);
        double *__restrict to = bend.row(j);
        for (index i = 0; i < change.cols; ++i)
            to[i] = a[i] * (2.0 * b[i] * to[i] + c[i] * a[i] * a[i]);
    }
}

// Solves eta = offset + gain (1 - sigmoid(eta)) with gain >= 0.
//
// Bracketed Halley iteration. The upper end max(offset, 0) + log(1 + gain) matters:
// leverage near one makes gains of 1e3 and more, where offset + gain alone leaves an
// interval that no bracketing method gets through in a few dozen steps.
double rising_root(double offset, double gain) {
    double low = offset, high = offset + gain;
    if (gain > 1.0) high = smaller(high, larger(offset, 0.0) + log1p(gain));
    // Halley's step from the lower end is nearly exact for the usual small gains.
    double q = 1.0 / (1.0 + exp(offset));
    double curvature = gain * q * (1.0 - q);
    double step = gain * q / (1.0 + curvature);
    double bend = curvature * (1.0 - 2.0 * q) * step / (1.0 + curvature);
    if (fabs(bend) < 0.5) step /= 1.0 - 0.5 * bend;
    double eta = smaller(larger(offset + step, low), high);
    for (int iteration = 0; iteration < 200; ++iteration) {
        q = 1.0 / (1.0 + exp(eta));
        const double value = eta - offset - gain * q;
        (value < 0.0 ? low : high) = eta;
        curvature = gain * q * (1.0 - q);
        const double slope = 1.0 + curvature;
        step = value / slope;
        bend = curvature * (2.0 * q - 1.0) * step / slope;
        if (fabs(bend) < 0.5) step /= 1.0 - 0.5 * bend;
        double trial = eta - step;
        if (!(low <= trial && trial <= high)) trial = 0.5 * (low + high);
        const double change = fabs(trial - eta);
        eta = trial;
        // Cubic convergence: the error left is below gain change^3.
        if ((1.0 + gain) * (change * change * change) <= 1e-16 ||
            change <= 4e-16 * fabs(eta))
            break;
    }
    return eta;
}

void one_step_roots(Vec<const double> eta, Vec<const double> leverage,
                    Mat<const double> slope, Mat<const double> target, Mat<double> root) {
    for (index i = 0; i < slope.rows; ++i) {
        const double e = eta[i], h = leverage[i];
        for (index j = 0; j < slope.cols; ++j) {
            const double a = slope(i, j), b = target(i, j);
            if (a <= 0.0) {
                const double p = 1.0 / (1.0 + exp(-e));
                const double rate = larger(1.0 + h * a * p * (1.0 - p), 1e-12);
                root(i, j) = e + h * (b - a * p) / rate;
            } else if (2.0 * b >= a) {
                // A target nearer to the slope is written as label 1, otherwise mirrored to
                // one: the offset then has no cancellation for huge leverages.
                root(i, j) = rising_root(e + h * (b - a), a * h);
            } else {
                root(i, j) = -rising_root(-e - h * b, a * h);
            }
        }
    }
}

// Four problems at a time, in memory that is aligned for it.
typedef double Four __attribute__((vector_size(32)));

inline Four larger(Four a, Four b) { return b > a ? b : a; }
inline Four smaller(Four a, Four b) { return b < a ? b : a; }
inline double absolute(double x) { return fabs(x); }
inline Four absolute(Four x) { return x < 0.0 ? -x : x; }
inline bool any_above(double x, double limit) { return x > limit; }
inline bool any_above(Four x, double limit) {
    return (x[0] > limit) | (x[1] > limit) | (x[2] > limit) | (x[3] > limit);
}

template <class T> inline void clear(T *a, index size) {
    for (index i = 0; i < size; ++i) a[i] = T{};
}

// Of the raw predictions that solve the equations of several classes.
constexpr double ACCURACY = 1e-11;
// Curvature that makes no difference to a step beside that of the identity.
constexpr double NEGLIGIBLE = 1e-9;

// Overwrites the upper triangle of a matrix A of side k by U with A = U'D^{-1}U and D the
// diagonal of U, which is returned inverted. A pivot below `floor` of what it was counts
// as that.
template <class V> void eliminate(V *A, index k, double floor, V *inverse) {
    for (index j = 0; j < k; ++j) inverse[j] = floor * A[j * k + j];
    for (index j = 0; j < k; ++j) {
        V *pivot = A + j * k;
        pivot[j] = larger(pivot[j], inverse[j]);
        inverse[j] = 1.0 / pivot[j];
        for (index i = j + 1; i < k; ++i) {
            V *__restrict row = A + i * k;
            const V factor = pivot[i] * inverse[j];
            for (index l = i; l < k; ++l) row[l] -= factor * pivot[l];
        }
    }
}

// b <- (U'D^{-1})^{-1} b.
template <class V> void solve_lower(const V *U, const V *inverse, index k, V *b) {
    for (index j = 0; j < k; ++j) {
        const V factor = b[j] * inverse[j];
        for (index i = j + 1; i < k; ++i) b[i] -= U[j * k + i] * factor;
    }
}

// b <- U^{-1} b.
template <class V> void solve_upper(const V *U, const V *inverse, index k, V *b) {
    // A column of U at a time: sums would wait for one another.
    for (index j = k; j-- > 0;) {
        b[j] *= inverse[j];
        for (index i = 0; i < j; ++i) b[i] -= U[i * k + j] * b[j];
    }
}

// The factor L of a row's leverage B = L L', and G = Q L.
void row_factor(Mat<const double> leverage, Mat<const double> contrasts, double *L,
                double *G) {
    const index k = leverage.rows;
    for (index c = 0; c < k; ++c) {
        double *row = L + c * k;
        clear(row, k);
        for (index d = 0; d <= c; ++d) {
            double sum = leverage(c, d);
            for (index l = 0; l < d; ++l) sum -= row[l] * L[d * k + l];
            if (d < c)
                row[d] = L[d * k + d] > 0.0 ? sum / L[d * k + d] : 0.0;
            else
                // Directions that rounding leaves nothing of drop out.
                row[d] = sum > 1e-15 * leverage(c, c) ? sqrt(sum) : 0.0;
        }
    }
    for (index j = 0; j < contrasts.rows; ++j)
        for (index c = 0; c < k; ++c) {
            double sum = 0.0;
            for (index d = c; d < k; ++d) sum += contrasts(j, d) * L[d * k + c];
            G[j * k + c] = sum;
        }
}

// Problems of one row that share their slope, one or (V = Four) four of them.
template <class V> struct Tilted {
    static constexpr index n_lanes = sizeof(V) / sizeof(double);
    index n_classes, k;
    const double *G, *raw0, *p0, *odds0, *mean0;  // of the row; mean0 = G'p0
    V *H, *weighted, *centred;  // (k, k), (n_classes, k)
    V *target, *raw, *p, *change, *trial;  // n_classes
    V *z, *step, *gradient, *mean, *spread, *inverse;  // k

    SKB_INLINE Tilted(index classes, Memory &memory) : n_classes(classes), k(classes - 1) {
        const index n = n_lanes * n_classes;
        H = reinterpret_cast<V *>(take<double>(memory, n * n_classes));
        weighted = reinterpret_cast<V *>(take<double>(memory, n * n_classes));
        centred = reinterpret_cast<V *>(take<double>(memory, n * n_classes));
        V **const vectors[] = {&target, &raw,      &p,    &change, &trial, &z,
                               &step,   &gradient, &mean, &spread, &inverse};
        for (V **vector : vectors)
            *vector = reinterpret_cast<V *>(take<double>(memory, n));
    }

    // Fills p from raw predictions.
    void softmax(const V *raw, V *p) const {
        V top = raw[0], sum{};
        for (index j = 1; j < n_classes; ++j) top = larger(top, raw[j]);
        for (index j = 0; j < n_classes; ++j) p[j] = raw[j] - top;
        double *each = reinterpret_cast<double *>(p);
        for (index i = 0; i < n_lanes * n_classes; ++i) each[i] = exp_nonpositive(each[i]);
        for (index j = 0; j < n_classes; ++j) sum += p[j];
        const V share = 1.0 / sum;
        for (index j = 0; j < n_classes; ++j) p[j] *= share;
    }

    // |z|^2 / 2 + slope logsumexp(raw) - <target, raw> with p = softmax(raw).
    V objective(const V *z, const V *raw, const V *p, double slope) const {
        V value{}, top = raw[0], likely = p[0];
        for (index c = 0; c < k; ++c) value += z[c] * z[c];
        value *= 0.5;
        for (index j = 0; j < n_classes; ++j) {
            value -= target[j] * raw[j];
            top = larger(top, raw[j]);
            likely = larger(likely, p[j]);
        }
        double *each = reinterpret_cast<double *>(&likely);
        for (index i = 0; i < n_lanes; ++i) each[i] = log(each[i]);
        return value + slope * (top - likely);
    }

    // to = G v.
    void expand(const V *v, V *to) const {
        for (index j = 0; j < n_classes; ++j) {
            V sum{};
            for (index c = 0; c < k; ++c) sum += G[j * k + c] * v[c];
            to[j] = sum;
        }
    }

    // The upper triangle of I + slope G' (diag p - p p') G, as a sum about the mean.
    void hessian(const V *p, double slope, double negligible) {
        clear(mean, k);
        for (index j = 0; j < n_classes; ++j)
            for (index c = 0; c < k; ++c) mean[c] += p[j] * G[j * k + c];
        index used = 0;
        for (index j = 0; j < n_classes; ++j) {
            V *d = centred + used * k, *w = weighted + used * k, square{};
            const V weight = slope * p[j];
            for (index c = 0; c < k; ++c) {
                d[c] = G[j * k + c] - mean[c];
                w[c] = weight * d[c];
                square += w[c] * d[c];
            }
            used += any_above(absolute(square), negligible);
        }
        for (index c = 0; c < k; ++c) {
            index d = c;
            for (; d + 3 < k; d += 4) {
                V sums[4] = {};
                for (index j = 0; j < used; ++j) {
                    const V w = weighted[j * k + c];
                    for (index i = 0; i < 4; ++i) sums[i] += w * centred[j * k + d + i];
                }
                for (index i = 0; i < 4; ++i) H[c * k + d + i] = sums[i];
            }
            for (; d < k; ++d) {
                V sum{};
                for (index j = 0; j < used; ++j)
                    sum += weighted[j * k + c] * centred[j * k + d];
                H[c * k + d] = sum;
            }
            H[c * k + c] += 1.0;
        }
    }

    // step <- -H^{-1} gradient and change <- G step, with the gradient at z and p, and the
    // last H that was eliminated.
    void descend(const V *p, double slope) {
        for (index c = 0; c < k; ++c) gradient[c] = z[c];
        for (index j = 0; j < n_classes; ++j) {
            const V residual = slope * p[j] - target[j];
            for (index c = 0; c < k; ++c) gradient[c] += residual * G[j * k + c];
        }
        for (index c = 0; c < k; ++c) step[c] = -gradient[c];
        solve_lower(H, inverse, k, step);
        solve_upper(H, inverse, k, step);
        expand(step, change);
    }

    // The same with H at p.
    void newton(const V *p, double slope, double negligible) {
        hessian(p, slope, negligible);
        // Taking out more curvature than there is, by rounding, leaves a little.
        eliminate(H, k, 1e-9, inverse);
        descend(p, slope);
    }

    V largest(const V *vector) const {
        V size{};
        for (index j = 0; j < n_classes; ++j) size = larger(size, absolute(vector[j]));
        return size;
    }

    void move(V length) {
        for (index c = 0; c < k; ++c) z[c] += length * step[c];
        for (index j = 0; j < n_classes; ++j) raw[j] += length * change[j];
    }

    // Moves to z = start where the objective is below `value`; returns the smaller one.
    V move_if_better(const V *start, V value, double slope) {
        expand(start, trial);
        for (index j = 0; j < n_classes; ++j) trial[j] += raw0[j];
        softmax(trial, change);
        const V other = objective(start, trial, change, slope);
        const auto better = other < value;
        for (index c = 0; c < k; ++c) z[c] = better ? start[c] : z[c];
        for (index j = 0; j < n_classes; ++j) {
            raw[j] = better ? trial[j] : raw[j];
            p[j] = better ? change[j] : p[j];
        }
        return smaller(value, other);
    }

    // Leaves in `spread` about the solution for a single label y if the probabilities of
    // the other classes kept their proportions: with c = 1 - p_y, the residual is
    // c (e_y - q), and c solves the equation of two classes.
    void guess(double slope) {
        V gain{}, low{}, top{};
        for (index i = 0; i < n_lanes; ++i) {
            index y = 0;
            for (index j = 1; j < n_classes; ++j)
                if (target[j][i] > target[y][i]) y = j;
            const double rest = 1.0 - p0[y];
            const double share = rest > 0.0 ? 1.0 / rest : 0.0;
            double square = 0.0;
            for (index d = 0; d < k; ++d) {
                const double direction = (G[y * k + d] - mean0[d]) * share;
                square += direction * direction;
                spread[d][i] = direction;
            }
            gain[i] = slope * square;
            low[i] = odds0[y];
            top[i] = smaller(low[i] + gain[i], larger(low[i], 0.0) + log1p(gain[i]));
        }
        // eta = low + gain c with c = 1 - sigmoid(eta), by Newton's method for
        // log(gain c) = log(eta - low), which is nearly linear; from the upper end.
        V eta = top, c{};
        for (index iteration = 0; iteration < 3; ++iteration) {
            c = -absolute(eta);
            double *each = reinterpret_cast<double *>(&c);
            for (index i = 0; i < n_lanes; ++i) each[i] = exp_nonpositive(each[i]);
            c = (eta > 0.0 ? c : V{} + 1.0) / (1.0 + c);
            if (iteration == 2) break;
            V ratio = gain * c / (eta - low + 1e-300);
            double *log_ratio = reinterpret_cast<double *>(&ratio);
            for (index i = 0; i < n_lanes; ++i) log_ratio[i] = log(log_ratio[i] + 1e-300);
            eta += ratio / (1.0 - c + 1.0 / (eta - low + 1e-300));
            eta = smaller(larger(eta, low), top);
        }
        for (index d = 0; d < k; ++d) spread[d] *= slope * c;
    }

    // Leaves the solutions in raw and z; `start` are those for another slope, or null.
    void solve(double slope, const V *start) {
        clear(z, k);
        for (index j = 0; j < n_classes; ++j) {
            raw[j] = V{} + raw0[j];
            p[j] = V{} + p0[j];
        }
        if (slope == 0.0) {
            for (index j = 0; j < n_classes; ++j)
                for (index c = 0; c < k; ++c) z[c] += target[j] * G[j * k + c];
            expand(z, change);
            for (index j = 0; j < n_classes; ++j) raw[j] += change[j];
            return;
        }
        if (slope < 0.0) {
            newton(p, slope, 0.0);
            for (index j = 0; j < n_classes; ++j) raw[j] += change[j];
            return;
        }
        V value = objective(z, raw, p, slope);
        guess(slope);
        value = move_if_better(spread, value, slope);
        if (start) value = move_if_better(start, value, slope);
        for (index iteration = 0; iteration < 100; ++iteration) {
            newton(p, slope, NEGLIGIBLE);
            // The Hessian changes by less than the factor exp(r).
            const V size = largest(change), r = 2.0 * size;
            if (!any_above(r, 2e-3)) {
                // It may stay: what is left shrinks by r with every step.
                const V rounding = 1e-15 * largest(raw);
                move(V{} + 1.0);
                for (V left = r * size; any_above(left - rounding, ACCURACY);) {
                    softmax(raw, p);
                    descend(p, slope);
                    move(V{} + 1.0);
                    left = smaller(left, largest(change)) * r;
                }
                return;
            }
            V length = V{} + 1.0;
            if (any_above(r, 1.0)) {
                V safe = length, descent{};
                for (index i = 0; i < n_lanes; ++i)
                    if (r[i] > 1.0) safe[i] = log1p(r[i]) / r[i];
                for (index c = 0; c < k; ++c) descent += step[c] * gradient[c];
                for (;;) {
                    for (index j = 0; j < n_classes; ++j)
                        trial[j] = raw[j] + length * change[j];
                    for (index c = 0; c < k; ++c) spread[c] = z[c] + length * step[c];
                    softmax(trial, p);
                    const V next = objective(spread, trial, p, slope);
                    const V limit = value + 1e-4 * length * descent;
                    const V shorter = next <= limit ? length : larger(0.25 * length, safe);
                    const auto done = shorter == length;
                    length = shorter;
                    if (done[0] & done[1] & done[2] & done[3]) break;
                }
            }
            move(length);
            softmax(raw, p);
            value = objective(z, raw, p, slope);
        }
    }
};

void softmax_roots(Mat<const double> raw, Cube<const double> leverage,
                   Mat<const double> slope, Cube<const double> target,
                   Mat<const double> contrasts, Cube<double> solution, Memory memory) {
    const index K = raw.cols, k = K - 1;
    const index period = slope.cols > 0 ? target.rows / slope.cols : 0;
    double *L = take<double>(memory, K * K), *G = take<double>(memory, K * K);
    double *raw0 = take<double>(memory, K), *p0 = take<double>(memory, K);
    double *odds0 = take<double>(memory, K), *mean0 = take<double>(memory, K);
    Four *start = reinterpret_cast<Four *>(take<double>(memory, 4 * K));
    Tilted<Four> tilted(K, memory);
    tilted.G = G;
    tilted.raw0 = raw0;
    tilted.p0 = p0;
    tilted.odds0 = odds0;
    tilted.mean0 = mean0;
    for (index i = 0; i < raw.rows; ++i) {
        row_factor(leverage.page(i), contrasts, L, G);
        double top = raw(i, 0), sum = 0.0;
        for (index j = 1; j < K; ++j) top = larger(top, raw(i, j));
        for (index j = 0; j < K; ++j) {
            raw0[j] = raw(i, j);
            sum += p0[j] = exp_nonpositive(raw0[j] - top);
        }
        clear(mean0, k);
        for (index j = 0; j < K; ++j) {
            p0[j] /= sum;
            // Infinite odds are as good as large ones: it is a guess.
            odds0[j] = log((p0[j] + 1e-300) / (1.0 - p0[j] + 1e-300));
            for (index c = 0; c < k; ++c) mean0[c] += p0[j] * G[j * k + c];
        }
        const Mat<const double> targets = target.page(i);
        const Mat<double> solutions = solution.page(i);
        for (index first = 0; first < period; first += 4) {
            const index n_used = period - first < 4 ? period - first : 4;
            for (index m = 0; m < slope.cols; ++m) {
                const index t = m * period + first;
                for (index lane = 0; lane < 4; ++lane)
                    for (index j = 0; j < K; ++j)
                        tilted.target[j][lane] = targets(t + lane % n_used, j);
                for (index c = 0; c < k; ++c) start[c] = tilted.z[c];
                const bool warm = m > 0 && slope(i, m - 1) > 0.0;
                tilted.solve(slope(i, m), warm ? start : nullptr);
                for (index lane = 0; lane < n_used; ++lane)
                    for (index j = 0; j < K; ++j)
                        solutions(t + lane, j) = tilted.raw[j][lane];
            }
        }
    }
}

void softmax_downdates(Mat<double> raw, Cube<double> leverage, Vec<const double> removed,
                       Vec<const index> codes, Mat<const double> contrasts,
                       Memory memory) {
    const index K = raw.cols, k = K - 1;
    double *L = take<double>(memory, K * K), *G = take<double>(memory, K * K);
    Tilted<double> tilted(K, memory);
    tilted.G = G;
    for (index i = 0; i < raw.rows; ++i) {
        const Mat<double> B = leverage.page(i);
        row_factor({B.data, k, k}, contrasts, L, G);
        tilted.softmax(raw.row(i), tilted.p);
        clear(tilted.target, K);
        tilted.target[codes[i]] = -removed[i];
        clear(tilted.z, k);
        tilted.newton(tilted.p, -removed[i], 0.0);
        for (index j = 0; j < K; ++j) raw(i, j) += tilted.change[j];
        // B without the row: L N^{-1} L' = W'W, W a column at a time.
        double *W = tilted.weighted;
        for (index d = 0; d < k; ++d) {
            double *column = W + d * k;
            for (index c = 0; c < k; ++c) column[c] = L[d * k + c];
            solve_lower(tilted.H, tilted.inverse, k, column);
            for (index c = 0; c < k; ++c) column[c] *= sqrt(tilted.inverse[c]);
        }
        for (index c = 0; c < k; ++c)
            for (index d = 0; d <= c; ++d) {
                double sum = 0.0;
                for (index l = 0; l < k; ++l) sum += W[c * k + l] * W[d * k + l];
                B(c, d) = B(d, c) = sum;
            }
    }
}

}  // namespace

extern const SmpKernels smp_kernels;
const SmpKernels smp_kernels{binary_increments, softmax_increments, second_order_terms,
                             third_order_terms, one_step_roots,
                             softmax_roots, softmax_downdates};

}  // namespace skb::SKB_LEVEL
