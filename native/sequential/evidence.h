// E-processes: evidence that one arm is better than another, at any time.
//
// For a bet b > 0, exp(u_b(m)) is a supermartingale if an arm's expectation is at most m,
// and exp(d_b(m)) is one if it is at least m:
//
//   normal    u = b (S - n m) - b^2 V / 2      d = b (n m - S) - b^2 V / 2
//   binary    u = b S - n log1p(m expm1(b))    d = -b S - n log1p(m expm1(-b))
//   bounded   u = b (S - n m) - psi(b) V       d = b (n m - S) - psi(b) V
//
// with psi(b) = -log(1 - b) - b. Of "arm a is at most `shift` better than arm c" the
// evidence is the least mixture, sum_kl W_kl exp(u_k(m + shift) of a + d_l(m) of c), over
// all expectations m that c may have. Its logarithm is convex in m.
#pragma once
#include "../common/levels.h"
#include "sequential.h"

namespace skb::SKB_LEVEL {
namespace {

// How far the logarithm of what is found may be above the minimum, absolute and as a
// share (of sums that large no more is known).
constexpr double EVIDENCE_TOLERANCE = 1e-11, EVIDENCE_ROUNDING = 1e-14;
constexpr int MOST_LOOKS = 200;
// How near the ends of an interval of lifts come, as a share of its width.
constexpr double LIFT_TOLERANCE = 1e-10;

struct State : PairState {
    double mean() const { return sum / n; }
};

inline double log_add(double a, double b) {
    const double most = larger(a, b), least = smaller(a, b);
    return least == -INFINITE ? most : most + log1p(exp(least - most));
}

inline double positive_part(double x) { return x > 0.0 ? x : 0.0; }

inline double kullback_leibler(double p, double q) {
    double total = 0.0;
    if (p > 0.0) total += p * log(p / q);
    if (p < 1.0) total += (1.0 - p) * log((1.0 - p) / (1.0 - q));
    return total;
}

// What any bets could make of it at one m, which is an upper bound of the logarithm of the
// evidence (and says where the minimum is about). Expectations are relative to the
// control's mean but for binary rewards.
struct Screen {
    double bound, at, step, low, high;
};

inline Screen screen(Rewards rewards, const State &arm, const State &control,
                     double shift) {
    const double x = arm.mean() - shift, y = control.mean();
    const double gap = x - y, total = arm.n + control.n;
    if (rewards == BINARY) {
        const double low = larger(0.0, -shift), high = smaller(1.0, 1.0 - shift);
        double at = (arm.n * x + control.n * y) / total;
        at = smaller(larger(at, low), high);
        double bound = 0.0;
        if (gap > 0.0)
            bound = arm.n * kullback_leibler(arm.mean(), smaller(at + shift, 1.0)) +
                    control.n * kullback_leibler(y, at);
        const double step = larger(sqrt(at * (1.0 - at) / total), 0.5 / total);
        return {bound, at, step, low, high};
    }
    double low = -INFINITE, high = INFINITE;
    if (rewards == BOUNDED) {
        low = larger(0.0, -shift) - y;
        high = smaller(1.0, 1.0 - shift) - y;
    }
    // Precisions of the two means.
    const double p = arm.n / arm.spread * arm.n, q = control.n / control.spread * control.n;
    const bool known = arm.spread > 0.0, sure = control.spread > 0.0;
    double at = known && sure ? gap * (p / (p + q)) : known ? 0.0 : sure ? gap
                                                                         : 0.5 * gap;
    at = smaller(larger(at, low), high);
    double bound = 0.0;
    if (gap > 0.0) {
        const double up = positive_part(gap - at), down = positive_part(at);
        if (up > 0.0) bound += known ? 0.5 * up * up * p : INFINITE;
        if (down > 0.0) bound += sure ? 0.5 * down * down * q : INFINITE;
    }
    double step = known && sure ? 1.0 / sqrt(p + q) : 1.0 / total;
    step = larger(step, 1e-12 * fabs(gap));
    return {bound, at, step, low, high};
}

// The logarithm of the mixture at one m, and its derivative.
struct Point {
    double at, value, slope;
};

// Mixtures for a pair of arms.
class Evidence {
  public:
    Evidence(Rewards rewards, Vec<const double> units, Mat<const double> weights,
             Memory &memory)
        : rewards_(rewards), units_(units), weights_(weights), n_bets_(units.size) {
        double **pieces[] = {&bets_,     &up_cost_,    &down_cost_, &up_,   &down_,
                             &up_slope_, &down_slope_, &sum_,       &steep_};
        for (double **piece : pieces) *piece = take<double>(memory, n_bets_);
    }

    // Bets are the units divided by `scale`.
    void set_bets(double scale) {
        if (scale == scale_) return;
        scale_ = scale;
        for (index k = 0; k < n_bets_; ++k) {
            const double b = units_[k] / scale;
            bets_[k] = b;
            if (rewards_ == BINARY) {
                up_cost_[k] = expm1(b);
                down_cost_[k] = expm1(-b);
            } else {
                up_cost_[k] = rewards_ == NORMAL ? 0.5 * b * b : -log1p(-b) - b;
            }
        }
    }

    // log E of "the arm is at most `shift` better than the control". As soon as it is
    // known to be at most `enough`, something between it and `enough` is returned and
    // `exact` is false.
    double log_evalue(const State &arm, const State &control, double shift, double enough,
                      bool *exact) {
        arm_ = arm;
        control_ = control;
        shift_ = shift;
        gap_ = arm.mean() - shift - control.mean();
        if (is_unbounded(arm, control)) {
            *exact = true;
            return -INFINITE;
        }
        const Screen first = screen(rewards_, arm, control, shift);
        *exact = false;
        if (first.bound <= enough) return first.bound;
        Point left = look(first.at), right = left;
        double best = left.value;
        if (best <= enough) return best;
        *exact = true;
        // Ends where the slope has both signs; at an end of the domain it is the minimum.
        const bool rises = left.slope > 0.0;
        double step = rises ? -first.step : first.step;
        while (rises ? left.slope > 0.0 : right.slope < 0.0) {
            const double end = rises ? first.low : first.high;
            const Point &last = rises ? left : right;
            if (last.at == end) return best;
            double next = last.at + step;
            if (rises ? next < end : next > end) next = end;
            if (next == last.at) next = end;
            step *= 2.0;
            const Point found = look(next);
            best = smaller(best, found.value);
            if (best <= enough) {
                *exact = false;
                return best;
            }
            if (rises) {
                if (found.slope > 0.0) right = found;
                left = found;
            } else {
                if (found.slope < 0.0) left = found;
                right = found;
            }
        }
        for (int turn = 1; turn <= MOST_LOOKS; ++turn) {
            const double steep = right.slope - left.slope;
            if (!(steep > 0.0)) break;
            // Where the tangents meet: nowhere is the function lower.
            const double width = right.at - left.at;
            const double share =
                (left.value - right.value + right.slope * width) / steep;
            const double least = left.value + left.slope * share;
            if (best - least <= EVIDENCE_TOLERANCE + EVIDENCE_ROUNDING * fabs(best)) break;
            double next = left.at + share;
            if (turn % 3 == 0 || !(next > left.at && next < right.at))
                next = left.at + 0.5 * width;
            if (!(next > left.at && next < right.at)) break;
            const Point found = look(next);
            best = smaller(best, found.value);
            if (best <= enough) {
                *exact = false;
                return best;
            }
            if (found.slope == 0.0) break;
            (found.slope < 0.0 ? left : right) = found;
        }
        return best;
    }

    double log_evalue(const State &arm, const State &control, double shift) {
        bool exact;
        return log_evalue(arm, control, shift, -INFINITE, &exact);
    }

    // The largest shift at which log E is at least a positive threshold. Where there is
    // none, minus infinity, or -1 for rewards in [0, 1].
    double lift(const State &arm, const State &control, double threshold) {
        bool exact;
        const auto enough = [&](double shift) {
            return log_evalue(arm, control, shift, threshold * (1.0 - 1e-15), &exact) >=
                   threshold;
        };
        if (is_unbounded(arm, control)) return -INFINITE;
        // At a gap of 0 there is no evidence.
        double high = arm.mean() - control.mean(), low = high;
        double width = 1.0 / sqrt(arm.n + control.n);
        if (rewards_ != BINARY && arm.spread + control.spread > 0.0)
            width = sqrt(arm.spread / arm.n / arm.n +
                         control.spread / control.n / control.n);
        double step = width * sqrt(2.0 * threshold);
        const double end = rewards_ == NORMAL ? -INFINITE : -1.0;
        while (low > end) {
            low = larger(low - step, end);
            if (low == -INFINITE || enough(low)) break;
            if (low == end) return end;
            high = low;
            step *= 2.0;
        }
        while (high - low > LIFT_TOLERANCE * width) {
            const double middle = low + 0.5 * (high - low);
            if (!(middle > low && middle < high)) break;
            (enough(middle) ? low : high) = middle;
        }
        return low;
    }

  private:
    Rewards rewards_;
    Vec<const double> units_;
    Mat<const double> weights_;
    index n_bets_;
    double *bets_, *up_cost_, *down_cost_, *up_, *down_, *up_slope_, *down_slope_;
    double *sum_, *steep_;
    double scale_ = 0.0;
    State arm_{}, control_{};
    double shift_ = 0.0, gap_ = 0.0;

    // Whether some m far away makes the mixture as small as one likes: where the counts of
    // normal rewards differ by more than the bets, which would have to balance them.
    bool is_unbounded(const State &arm, const State &control) const {
        if (rewards_ != NORMAL) return false;
        const double least = bets_[0], most = bets_[n_bets_ - 1];
        return arm.n * most < control.n * least || control.n * most < arm.n * least;
    }

    Point look(double m) {
        if (rewards_ == BINARY) {
            const double level = smaller(larger(m + shift_, 0.0), 1.0);
            for (index k = 0; k < n_bets_; ++k) {
                const double e = up_cost_[k], f = down_cost_[k];
                up_[k] = bets_[k] * arm_.sum - arm_.n * log1p(level * e);
                up_slope_[k] = -arm_.n * e / (1.0 + level * e);
                down_[k] = -bets_[k] * control_.sum - control_.n * log1p(m * f);
                down_slope_[k] = -control_.n * f / (1.0 + m * f);
            }
        } else {
            for (index k = 0; k < n_bets_; ++k) {
                const double b = bets_[k];
                up_[k] = b * (arm_.n * (gap_ - m)) - up_cost_[k] * arm_.spread;
                up_slope_[k] = -arm_.n * b;
                down_[k] = b * (control_.n * m) - up_cost_[k] * control_.spread;
                down_slope_[k] = control_.n * b;
            }
        }
        const double up_most = exponentials(up_), down_most = exponentials(down_);
        for (index k = 0; k < n_bets_; ++k) sum_[k] = steep_[k] = 0.0;
        for (index l = 0; l < n_bets_; ++l) {
            // Weights are symmetric.
            const double *weight = weights_.row(l);
            const double size = down_[l], tilt = size * down_slope_[l];
            for (index k = 0; k < n_bets_; ++k) {
                sum_[k] += weight[k] * size;
                steep_[k] += weight[k] * tilt;
            }
        }
        double total = 0.0, slope = 0.0;
        for (index k = 0; k < n_bets_; ++k) {
            total += up_[k] * sum_[k];
            slope += up_[k] * (up_slope_[k] * sum_[k] + steep_[k]);
        }
        return {m, up_most + down_most + log(total), slope / total};
    }

    // Replaces values by exponentials relative to the largest, which is returned.
    double exponentials(double *values) const {
        double most = values[0];
        for (index k = 1; k < n_bets_; ++k) most = larger(most, values[k]);
        for (index k = 0; k < n_bets_; ++k) values[k] = exp(values[k] - most);
        return most;
    }
};

}  // namespace
}  // namespace skb::SKB_LEVEL
