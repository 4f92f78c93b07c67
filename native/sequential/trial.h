// A test of many arms by e-processes: rewards, looks, the arms to be tried next.
#pragma once
#include "../common/sort.h"
#include "evidence.h"
#include "mersenne.h"

namespace skb::SKB_LEVEL {
namespace {

class Trial {
  public:
    Trial(const TrialPlan &plan, const Arms &arms, Memory &memory)
        : plan_(plan), arms_(arms), n_(arms.counts.size),
          evidence_(plan.rewards, plan.bets, plan.weights, memory) {
        sums_ = take<double>(memory, n_);
        totals_ = take<double>(memory, n_);
        index_ = take<double>(memory, n_);
        taken_ = take<double>(memory, n_);
        order_ = take<index>(memory, n_);
        spare_ = take<index>(memory, n_);
    }

    void add(index arm, double reward) const {
        double &n = arms_.counts[arm], &sum = arms_.sums[arm], &spread = arms_.spread[arm];
        if (plan_.rewards == BOUNDED) {
            // From a mean that is known before the reward.
            const double gap = reward - (sum + 0.5) / (n + 1.0);
            spread += gap * gap;
        } else if (plan_.estimated && n > 0.0) {
            const double gap = reward - sum / n;
            spread += gap * gap * (n / (n + 1.0));
        }
        n += 1.0;
        sum += reward;
    }

    // log E of "arm a is at most `shift` better than arm c".
    double log_evalue(index a, index c, double shift, double enough, bool *exact) {
        *exact = true;
        if (!informed(a, c)) return 0.0;
        set_bets(a, c);
        return evidence_.log_evalue(state(a), state(c), shift, enough, exact);
    }

    double lift(index a, index c, double threshold) {
        if (!informed(a, c)) return plan_.rewards == NORMAL ? -INFINITE : -1.0;
        set_bets(a, c);
        return evidence_.lift(state(a), state(c), threshold);
    }

    // Brings the running maxima up to date after new rewards of the arms that changed.
    // Before and after, no adjusted e-value is above its running maximum.
    void look(Vec<const bool> changed, const Looks &looks) {
        const index K = n_ - 1;
        // Whether any evidence has grown, without which no adjusted one has.
        bool grown = false, any = false;
        for (index i = 0; i < K; ++i) {
            const double before = looks.log_e[i];
            if (changed[0] || changed[i + 1]) {
                looks.exact[i] = false;
                looks.log_e[i] = informed(i + 1, 0) ? bound(i + 1, 0, plan_.epsilon) : 0.0;
            }
            // An arm's adjusted e-value is at most its own one.
            if (looks.log_e[i] > looks.peak[i]) {
                settle(i, looks, looks.peak[i]);
                any = any || looks.log_e[i] > looks.peak[i];
            }
            grown = grown || looks.log_e[i] > before;
        }
        if (!any || !grown) return;
        // With upper bounds of other arms' evidence first.
        rank(looks);
        bool better = false;
        for (index i = 0; i < K && !better; ++i)
            better = looks.log_e[i] > looks.peak[i] && adjusted(i, looks) > looks.peak[i];
        if (!better) return;
        settle(looks);
        rank(looks);
        for (index i = 0; i < K; ++i) {
            if (!(looks.log_e[i] > looks.peak[i])) continue;
            looks.peak[i] = larger(looks.peak[i], adjusted(i, looks));
        }
    }

    void settle(const Looks &looks) {
        for (index i = 0; i < n_ - 1; ++i) settle(i, looks, -INFINITE);
    }

    // Orders the arms by their evidence, and adds it up from the least on.
    void rank(const Looks &looks) {
        const index K = n_ - 1;
        argsort(looks.log_e.data, K, order_, spare_);
        double sum = -INFINITE, total = 0.0;
        for (index k = 0; k < K; ++k) {
            const index i = order_[k];
            sum = log_add(sum, log(plan_.arm_weights[i]) + looks.log_e[i]);
            total += plan_.arm_weights[i];
            sums_[k] = sum;
            totals_[k] = total;
        }
    }

    // log of min over sets S with i of the mean of E over S (closed testing). Beside i
    // the best set has those arms of least evidence that are below the mean so far; i
    // itself is beyond them. `rank` comes before.
    double adjusted(index i, const Looks &looks) const {
        const double weight = plan_.arm_weights[i];
        const double own = log(weight) + looks.log_e[i];
        const auto mean = [&](index size) {
            if (size == 0) return looks.log_e[i];
            return log_add(own, sums_[size - 1]) - log(weight + totals_[size - 1]);
        };
        // Arms with less evidence than i.
        index low = 0, high = n_ - 1;
        while (low < high) {
            const index middle = (low + high) / 2;
            if (looks.log_e[order_[middle]] < looks.log_e[i]) low = middle + 1;
            else high = middle;
        }
        high = low;
        low = 0;
        while (low < high) {
            const index middle = (low + high) / 2;
            if (looks.log_e[order_[middle]] < mean(middle)) low = middle + 1;
            else high = middle;
        }
        return smaller(mean(low), looks.log_e[i]);
    }

    // The arm that looks best, if the control has epsilon in hand; ties go to the lowest.
    index leader() const {
        index best = -1;
        double most = 0.0;
        for (index i = 0; i < n_; ++i) {
            if (!(arms_.counts[i] > 0.0)) continue;
            const double mean = value(i);
            if (best < 0 || mean > most) {
                best = i;
                most = mean;
            }
        }
        return best < 0 ? 0 : best;
    }

    // The leader, if evidence against every other arm is large enough: log(1 / delta), the
    // threshold, and the logarithm of 1 / weight of an alternative. Then its own adjusted
    // evidence is at least 1 / delta, and errors of all arms add up to at most delta.
    index certified(double threshold) {
        for (index i = 0; i < n_; ++i)
            if (arms_.counts[i] < plan_.least_count) return GO_ON;
        const index best = leader();
        double weight = plan_.arm_weights[best > 0 ? best - 1 : 0];
        for (index i = 0; best == 0 && i < n_ - 1; ++i)
            weight = smaller(weight, plan_.arm_weights[i]);
        threshold -= log(weight);
        for (index j = 0; j < n_; ++j) {
            if (j == best) continue;
            if (!informed(best, j) || bound(best, j, shift(best, j)) < threshold)
                return GO_ON;
        }
        for (index j = 0; j < n_; ++j) {
            if (j == best) continue;
            bool exact;
            // What is below the threshold need not be known any better.
            const double below = threshold - 1e-15 * threshold;
            if (log_evalue(best, j, shift(best, j), below, &exact) < threshold)
                return GO_ON;
        }
        return best;
    }

    // The arms that are to be tried next, each at its turn as if the earlier ones had been
    // tried; outstanding: rewards that were asked for and have not come.
    void choose(Sampler sampler, Vec<const double> outstanding, Vec<index> chosen) {
        double total = 0.0;
        for (index i = 0; i < n_; ++i) {
            taken_[i] = arms_.counts[i] + outstanding[i];
            total += taken_[i];
        }
        const index best = leader();
        const bool top_two = sampler == TOP_TWO;
        double least = 1.0;
        if (plan_.estimated) least = top_two ? plan_.least_count : 2.0;
        bool tried = true;
        for (index i = 0; i < n_; ++i) tried = tried && arms_.counts[i] >= least;
        if (tried && top_two) {
            for (index j = 0; j < n_; ++j)
                index_[j] = j == best ? 0.0 : bound(best, j, shift(best, j));
        } else if (tried) {
            estimate_variances();
        }
        for (index k = 0; k < chosen.size; ++k) {
            index arm = 0;
            if (!tried) {
                for (index i = 1; i < n_; ++i)
                    if (taken_[i] < taken_[arm]) arm = i;
            } else {
                arm = top_two ? next_of_two(best) : next_of_lift(total);
            }
            chosen[k] = arm;
            taken_[arm] += 1.0;
            total += 1.0;
        }
    }

  private:
    const TrialPlan &plan_;
    const Arms arms_;
    const index n_;
    Evidence evidence_;
    double *sums_, *totals_, *index_, *taken_;
    index *order_, *spare_;

    State state(index i) const {
        return {{arms_.counts[i], arms_.sums[i], spread(i)}};
    }
    double spread(index i) const {
        const double n = arms_.counts[i];
        if (plan_.rewards != NORMAL) return arms_.spread[i];
        if (!plan_.estimated) return n * plan_.sigma[i] * plan_.sigma[i];
        return n > 1.0 ? n / (n - 1.0) * arms_.spread[i] : 0.0;
    }
    // Whether there is evidence at all.
    bool informed(index a, index c) const {
        const double least = larger(plan_.least_count, 1.0);
        if (arms_.counts[a] < least || arms_.counts[c] < least) return false;
        return !plan_.estimated || (arms_.spread[a] > 0.0 && arms_.spread[c] > 0.0);
    }
    void set_bets(index a, index c) {
        double scale = 1.0;
        if (plan_.relative && plan_.rewards == NORMAL) {
            if (plan_.estimated) {
                const double u = arms_.spread[a] / (arms_.counts[a] - 1.0);
                const double v = arms_.spread[c] / (arms_.counts[c] - 1.0);
                scale = sqrt(0.5 * (u + v));
            } else {
                scale = larger(plan_.sigma[a], plan_.sigma[c]);
            }
        }
        evidence_.set_bets(scale);
    }
    double bound(index a, index c, double shift) const {
        if (!(arms_.counts[a] > 0.0 && arms_.counts[c] > 0.0)) return 0.0;
        return screen(plan_.rewards, state(a), state(c), shift).bound;
    }
    double shift(index best, index j) const {
        return best != 0 && j == 0 ? plan_.epsilon : -plan_.epsilon;
    }
    double value(index i) const {
        const double mean = arms_.sums[i] / arms_.counts[i];
        return i == 0 ? mean + plan_.epsilon : mean;
    }
    void settle(index i, const Looks &looks, double enough) {
        if (looks.exact[i]) return;
        bool exact;
        looks.log_e[i] = log_evalue(i + 1, 0, plan_.epsilon, enough, &exact);
        looks.exact[i] = exact;
    }

    index next_of_two(index best) const {
        index rival = -1;
        double least = 0.0;
        for (index j = 0; j < n_; ++j) {
            if (j == best) continue;
            const double size = index_[j] + log(larger(taken_[j], 1.0));
            if (rival < 0 || size < least) {
                rival = j;
                least = size;
            }
        }
        return taken_[rival] < taken_[best] ? rival : best;
    }
    index next_of_lift(double total) const {
        // The control at every other turn, once each arm had one.
        if (fmod(total - double(n_), 2.0) == 0.0) return 0;
        index top = 1;
        double most = -INFINITE;
        for (index i = 1; i < n_; ++i) {
            const double n = larger(taken_[i], 1.0);
            const double mean =
                arms_.counts[i] > 0.0 ? arms_.sums[i] / arms_.counts[i] : 0.0;
            const double size = mean + sqrt(2.0 * index_[i] * log1p(total) / n);
            if (size > most) {
                top = i;
                most = size;
            }
        }
        return top;
    }
    // Never 0, so that an arm without successes is tried again.
    void estimate_variances() {
        double pooled = 0.0, freedom = 0.0;
        for (index i = 0; i < n_; ++i) {
            pooled += arms_.spread[i];
            freedom += arms_.counts[i] - 1.0;
        }
        pooled /= larger(freedom, 1.0);
        for (index i = 0; i < n_; ++i) {
            const double n = arms_.counts[i];
            if (plan_.rewards == BINARY) {
                const double q = (arms_.sums[i] + 1.0) / (n + 2.0);
                index_[i] = q * (1.0 - q);
            } else if (plan_.rewards == BOUNDED) {
                index_[i] = (arms_.spread[i] + 0.25) / (n + 1.0);
            } else if (plan_.estimated) {
                index_[i] = (arms_.spread[i] + pooled) / n;
            } else {
                index_[i] = plan_.sigma[i] * plan_.sigma[i];
            }
        }
    }
};

// Takes rewards one by one, with a look after each, or one after all of them if `whole`.
void replay_trial(const TrialPlan &plan, const Arms &arms, const Looks &looks,
                  Vec<const index> pulled, Vec<const double> rewards, bool whole,
                  double threshold, index *first, Memory memory, Pulse &pulse) {
    const index n = arms.counts.size;
    const Vec<bool> changed{take<bool>(memory, n), n};
    for (index i = 0; i < n; ++i) changed[i] = false;
    Trial trial(plan, arms, memory);
    for (index t = 0; t < pulled.size; ++t) {
        trial.add(pulled[t], rewards[t]);
        changed[pulled[t]] = true;
        if (whole && t + 1 < pulled.size) continue;
        trial.look({changed.data, n}, looks);
        if (*first < 0) *first = trial.certified(threshold);
        for (index i = 0; i < n; ++i) changed[i] = false;
        if (stops(pulse, 1000 * n)) break;
    }
}

void look_at_trial(const TrialPlan &plan, const Arms &arms, const Looks &looks,
                   Vec<const bool> changed, double threshold, index *first,
                   Memory memory) {
    Trial trial(plan, arms, memory);
    trial.look(changed, looks);
    if (*first < 0) *first = trial.certified(threshold);
}

void choose_arms(const TrialPlan &plan, const Arms &arms, Sampler sampler,
                 Vec<const double> outstanding, Vec<index> chosen, Memory memory) {
    Trial(plan, arms, memory).choose(sampler, outstanding, chosen);
}

// All e-values as of now, adjusted for the number of arms.
void settle_trial(const TrialPlan &plan, const Arms &arms, const Looks &looks,
                  Vec<double> adjusted, Memory memory) {
    Trial trial(plan, arms, memory);
    trial.settle(looks);
    trial.rank(looks);
    for (index i = 0; i < adjusted.size; ++i) adjusted[i] = trial.adjusted(i, looks);
}

void lift_bounds(const TrialPlan &plan, const Arms &arms, double threshold,
                 Vec<double> lower, Vec<double> upper, Memory memory) {
    Trial trial(plan, arms, memory);
    for (index i = 1; i < arms.counts.size; ++i) {
        lower[i - 1] = trial.lift(i, 0, threshold);
        upper[i - 1] = -trial.lift(0, i, threshold);
    }
}

// The round of Algorithm 1, whatever it would certify.
index bandit_round(const TrialPlan &plan, const Arms &arms, double x_lower, double x_upper,
                   Vec<index> chosen, Memory memory) {
    const index n = arms.counts.size;
    double *pieces[3];
    for (double *&piece : pieces) piece = take<double>(memory, n);
    const Vec<double> means{pieces[0], n}, lower{pieces[1], n}, upper{pieces[2], n};
    radii({arms.counts.data, n}, x_lower, x_upper, 1.0, lower, upper);
    for (index i = 0; i < n; ++i) {
        means[i] = arms.sums[i] / arms.counts[i];
        const double sigma = plan.rewards == NORMAL ? plan.sigma[i] : 0.5;
        lower[i] *= sigma;
        upper[i] *= sigma;
    }
    return round_of({means.data, n}, {upper.data, n}, plan.epsilon, chosen);
}

Found simulate_trial(const TrialPlan &plan, const TrialSimulation &simulation,
                     const Arms &arms, const Looks &looks, Memory memory, Pulse &pulse) {
    const index n = arms.counts.size, most = n > 4 ? n : 4;
    Mersenne random(simulation.seed);
    const Vec<bool> changed{take<bool>(memory, n), n};
    const Vec<double> none{take<double>(memory, n), n};
    const Vec<index> chosen{take<index>(memory, most), most};
    for (index i = 0; i < n; ++i) {
        changed[i] = false;
        none[i] = 0.0;
    }
    Trial trial(plan, arms, memory);
    Found found{GO_ON, 0, 0, 0.0};
    bool ends = false;
    while (!ends) {
        index size = 1;
        const bool rounds = simulation.sampler == UNIFORM || simulation.sampler == LUCB;
        if (rounds && (simulation.sampler == UNIFORM || found.n_pulls == 0)) {
            size = n;
            for (index i = 0; i < n; ++i) chosen[i] = i;
        } else if (rounds) {
            size = bandit_round(plan, arms, simulation.x_lower, simulation.x_upper, chosen,
                                memory);
        } else {
            trial.choose(simulation.sampler, {none.data, n}, {chosen.data, 1});
        }
        if (found.n_pulls + size > simulation.max_pulls) break;
        for (index k = 0; k < size; ++k) {
            const index i = chosen[k];
            const double expected = simulation.expected[i];
            trial.add(i, plan.rewards == BINARY
                             ? (random.uniform() < expected ? 1.0 : 0.0)
                             : expected + simulation.deviation[i] * random.normal());
            changed[i] = true;
        }
        found.n_pulls += size;
        trial.look({changed.data, n}, looks);
        for (index i = 0; i < n; ++i) changed[i] = false;
        if (simulation.until_certified) {
            found.certified = trial.certified(simulation.threshold);
            ends = found.certified >= 0;
        } else {
            for (index i = 0; i < n - 1; ++i)
                ends = ends || looks.peak[i] >= simulation.threshold;
        }
        if (stops(pulse, 1000 * n)) break;
    }
    for (index i = 0; i < n - 1; ++i) found.log_p = smaller(found.log_p, -looks.peak[i]);
    found.best = trial.leader();
    return found;
}

}  // namespace
}  // namespace skb::SKB_LEVEL
