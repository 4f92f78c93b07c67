"""Certificates: limits that fail with probability delta at most."""

from functools import partial

import numpy as np
from sklearn.frozen import FrozenEstimator

from guarantees.populations import (
    POPULATIONS,
    Centres,
    Column,
    Memory,
    Population,
)
from guarantees.table import Guarantee, Together, lines, repeat
from skbounds.pac_bayes import (
    PACBayesEnsembleClassifier,
    PACBayesSVMEnsemble,
    VoteMonitor,
    binomial_tail_bound,
    c_bound,
    occam_bound,
    optimal_posterior,
    pac_bayes_bound,
    renyi_bound,
    tandem_bound,
)
from skbounds.pac_bayes._monitor import log_mixture_evalue

DELTA = 0.1

# ---------------------------------------------------------------- fitted ensembles


def svm(seed, **options):
    options = {"Cs": 3, "inner_cv": 2, "cert_size": 0.5, "delta": DELTA} | options
    return PACBayesSVMEnsemble(random_state=seed, **options)


def ensemble(seed, **options):
    """Two centres, and a member that knows its training rows by heart."""
    options = {"inner_cv": 2, "cert_size": 0.5, "delta": DELTA} | options
    members = [Centres(0), Centres(1), Memory()]
    return PACBayesEnsembleClassifier(members, random_state=seed, **options)


def sample(population, rng, n):
    """Return rows of a population that have all of its labels.

    The others, one in hundred at most, would leave nothing to learn or another task.
    """
    while True:
        X, y = population.draw(rng, n)
        if len(np.unique(y)) == population.n_labels:
            return X, y


def member_risks(clf, population):
    codes = clf._member_codes(population.points, np.arange(len(clf.estimators_)))
    return np.mean(codes[population.at] != population.y[:, None], axis=0)


def false_limits(clf, population):
    """Return which limits are below the truth."""
    risks = member_risks(clf, population)
    found = {
        "vote": population.risk(clf.predict) > clf.vote_bound_,
        "gibbs": clf.posterior_ @ risks > clf.risk_bound_ + 1e-12,
        "best": risks[clf.best_index_] > clf.occam_bound_,
    }
    return found | {"all": any(found.values())}


def fitted(make, population, order=None, n=64):
    """Return a simulation of all statements on fits: whether each is false."""

    def once(rng):
        X, y = sample(population, rng, n)
        if order == "sorted":
            rows = np.lexsort((X[:, 0], y))
            X, y = X[rows], y[rows]
        clf = make(int(rng.integers(2**31))).fit(X, y)
        found = false_limits(clf, population)
        if isinstance(clf, PACBayesEnsembleClassifier) and clf._evidence_.is_fixed:
            found |= by_class(clf, population) | by_cost(clf, population)
        return found

    return once


def by_class(clf, population):
    """Return which limits of classes are false: each, and any of all together."""
    voted = clf.predict(population.points)[population.at]
    wrong, found = voted != population.y, {}
    for together in (False, True):
        limits = clf.class_bounds(simultaneous=together)
        false = {}
        for what, given in (("recall", population.y), ("precision", voted)):
            for k, limit in zip(clf.classes_, limits[f"{what}_error"], strict=True):
                inside = given == k
                false[what, int(k)] = inside.any() and wrong[inside].mean() > limit
        found |= {"all classes": any(false.values())} if together else false
    return found


COSTS = {
    "five to one": [[0, 5], [1, 0]],
    "one cost": [[0, 3], [0, 0]],
    "right ones cost, too": [[2, 1.9], [1.9, 2]],
}


def by_cost(clf, population):
    if len(clf.classes_) > 2:
        return {}
    voted, found = clf.predict(population.points)[population.at], {}
    for name, costs in COSTS.items():
        true = np.array(costs, dtype=float)[population.y, voted].mean()
        found[name] = true > clf.cost_bound(costs) + 1e-12
    return found


NOISY = ("a line, labels flipped", "noise", "rare label")


def fits_of(title, make, names=tuple(POPULATIONS)):
    """Return simulations of fits of a kind, by their laws."""
    first = POPULATIONS["a line, labels flipped"]
    once = {name: fitted(make, POPULATIONS[name]) for name in names}
    once["rows sorted by label"] = fitted(make, first, "sorted")
    return {name: Together(f"{title}, {name}", law) for name, law in once.items()}


PAPER = {"prior": "uniform", "posterior": "bound", "divergence": "chi2",
         "distance": "kl"}  # fmt: skip
SCHEMES = {
    'posterior="bound"': partial(svm, prior="uniform", posterior="bound"),
    "the paper's": partial(svm, **PAPER),
    'scheme="progressive"': partial(svm, scheme="progressive", n_blocks=2, n_orders=2),
    'scheme="per_member"': partial(svm, scheme="per_member", **PAPER),
}
SVMS = fits_of("SVMs", svm)
UNIFORM = fits_of("uniform", partial(svm, prior="uniform"), NOISY)
SIMULTANEOUS = fits_of("simultaneous", partial(svm, simultaneous=True), NOISY)
MEMBERS_ANY = fits_of("any members", ensemble)
OTHERS = {
    f"{scheme}, {name}": Together(f"{scheme}, {name}", fitted(make, POPULATIONS[name]))
    for scheme, make in SCHEMES.items()
    for name in ("a line, labels flipped", "noise")
}
TANDEM = {
    f"tandem weights, {name}": Together(
        f"tandem weights, {name}",
        fitted(partial(ensemble, posterior="tandem"), POPULATIONS[name]),
    )
    for name in ("noise", "a line, labels flipped")
}

# --------------------------------------------------------------- votes that are known


def known_vote(n_members=1, classes=(0, 1)):
    return [FrozenEstimator(Column(i, classes).fit()) for i in range(n_members)]


def edge_of(k, m, delta=DELTA):
    """Return a risk just above the limit for k mistakes on m rows."""
    return binomial_tail_bound(k, m, delta=delta) * (1.0 + 1e-9)


def fresh_law(risk, m, **options):
    """Certificates of a fixed vote that errs with this probability."""
    clf = PACBayesEnsembleClassifier(known_vote(), delta=DELTA)
    clf.fit(np.tile([[0.0], [1.0]], (20, 1)), np.tile([0, 1], 20))

    def once(rng):
        X = rng.integers(2, size=(m, 1)).astype(float)
        y = X[:, 0].astype(int) ^ (rng.random(m) < risk)
        return clf.certificate(X, y)["bound"] < risk

    return repeat(once)


def randomized_law(risk, m):
    def once(rng):
        X = rng.integers(2, size=(m, 1)).astype(float)
        X[:2, 0] = 0, 1
        y = X[:, 0].astype(int) ^ (rng.random(m) < risk)
        if len(np.unique(y)) < 2:
            return risk > 1.0
        clf = PACBayesEnsembleClassifier(
            known_vote(), delta=DELTA, tail="randomized",
            random_state=int(rng.integers(2**31)),
        )  # fmt: skip
        return clf.fit(X, y).vote_bound_ < risk

    return repeat(once)


def tail_law(k, m):
    risk = edge_of(k, m)

    def law(rng, n):
        return binomial_tail_bound(rng.binomial(m, risk, n), m, delta=DELTA) < risk

    return law


def group_law(rates_of, sizes_of, mean, n_groups=30):
    """Certificates over groups; the truth is the mean of the groups' rates."""
    clf = PACBayesEnsembleClassifier(known_vote(), delta=DELTA)
    clf.fit(np.tile([[0.0], [1.0]], (20, 1)), np.tile([0, 1], 20))

    def once(rng):
        rates = rates_of(rng, n_groups)
        groups = np.repeat(np.arange(n_groups), sizes_of(rng, rates))
        y = (rng.random(len(groups)) < rates[groups]).astype(int)
        X = np.zeros((len(y), 1))
        return clf.certificate(X, y, groups=groups)["bound"] < mean

    return repeat(once)


GROUPS = {
    "rates Beta(.3, .7)": group_law(
        lambda r, n: r.beta(0.3, 0.7, n), lambda r, p: r.integers(1, 31, len(p)), 0.3
    ),
    "right or wrong together": group_law(
        lambda r, n: (r.random(n) < 0.2).astype(float),
        lambda r, p: r.integers(1, 31, len(p)), 0.2,
    ),
    "large groups are easy": group_law(
        lambda r, n: np.where(r.random(n) < 0.5, 0.6, 0.05),
        lambda r, p: np.where(p < 0.1, 40, 1), 0.325,
    ),
    "all groups wrong, but one in 15": group_law(
        lambda r, n: (r.random(n) < 14 / 15).astype(float),
        lambda r, p: np.full(len(p), 2), 14 / 15,
    ),
}  # fmt: skip


# ------------------------------------------------------------ classes, costs, unseen


def three_classes():
    """Two common classes and one of one row in twelve, all overlapping."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [110, 110, 20])
    return Population(np.round(rng.normal(size=(240, 2)) + y[:, None], 1), y)


RARE_CLASS = Together(
    "any members, three classes", fitted(ensemble, three_classes(), n=120)
)
CLASS_LAWS = {
    "recall of a rare class": RARE_CLASS.line(("recall", 2)),
    "precision of a rare class": RARE_CLASS.line(("precision", 2)),
    "recall, noise": MEMBERS_ANY["noise"].line(("recall", 1)),
    "recall, rare label": MEMBERS_ANY["rare label"].line(("recall", 0)),
    "precision, labels flipped": MEMBERS_ANY["a line, labels flipped"].line(
        ("precision", 1)
    ),
    "all together, rare class": RARE_CLASS.line("all classes"),
    "all together, noise": MEMBERS_ANY["noise"].line("all classes"),
}
COST_LAWS = {
    f"{name}, {costs}": MEMBERS_ANY[name].line(costs)
    for name in ("noise", "a line, labels flipped")
    for costs in COSTS
}


def unseen_law(weights, n):
    """Classes of these probabilities, of which some are not among the training rows."""
    weights = np.asarray(weights) / np.sum(weights)

    def once(rng):
        y = rng.choice(len(weights), p=weights, size=n)
        X = rng.normal(size=(n, 2))
        clf = PACBayesEnsembleClassifier(
            [Centres(0)], prior="uniform", cert_size=0.5, delta=DELTA,
            random_state=int(rng.integers(2**31)),
        ).fit(X, y)  # fmt: skip
        return 1.0 - weights[clf.trained_classes_].sum() > clf.unseen_class_bound_

    return repeat(once)


UNSEEN_LAWS = {
    "40 equal classes, 40 rows": unseen_law(np.ones(40), 40),
    "Zipf's law, 60 rows": unseen_law(1.0 / np.arange(1, 200), 60),
    "two large, many rare": unseen_law([40, 40, *[1.0] * 20], 50),
    "one class at the edge": unseen_law([0.45, 0.45, 0.1], 30),
}

# ---------------------------------------------------- functions of members' mistakes

M = 60


def independent(risks):
    return lambda rng, n: rng.binomial(M, risks, (n, len(risks))) / M


def alike(risk, n_members=20):
    """All members err on the same rows."""
    return lambda rng, n: np.repeat(rng.binomial(M, risk, (n, 1)) / M, n_members, 1)


def in_turn(n_members=20):
    """Exactly one member errs on each row."""
    shares = np.full(n_members, 1.0 / n_members)
    return lambda rng, n: rng.multinomial(M, shares, n) / M


# Name: true risks, and their law.
MEMBERS = {
    "independent, risk 1/2": (np.full(20, 0.5), independent(np.full(20, 0.5))),
    "independent, from .02 to .4": (
        np.linspace(0.02, 0.4, 20),
        independent(np.linspace(0.02, 0.4, 20)),
    ),
    "one member at the edge": (np.array([edge_of(0, M)]), independent([edge_of(0, M)])),
    "one member, risk 1/2": (np.array([0.5]), independent([0.5])),
    "all alike": (np.full(20, 0.1), alike(0.1)),
    "one errs on each row": (np.full(20, 0.05), in_turn()),
}


def adversarial_posteriors(true, risks):
    """Return posteriors that know the truth, and lean towards what looks too good."""
    gaps = true - risks
    rates = np.array([0.0, 3.0, 10.0, 30.0, 100.0, 1e4])
    powers = rates[:, None] * (gaps - gaps.max(axis=1, keepdims=True))[:, None, :]
    q = np.exp(powers)
    return q / q.sum(axis=-1, keepdims=True)


def posterior_law(bound, true, draw):
    """Is the bound false for any of the posteriors?"""

    def law(rng, n):
        risks = draw(rng, n)
        q = adversarial_posteriors(true, risks)
        limits = bound(q, risks[:, None, :])
        return (q @ true > limits + 1e-12).any(axis=1)

    return law


def posterior_laws(bound):
    return {name: posterior_law(bound, *law) for name, law in MEMBERS.items()}


def optimal_law(divergence, distance, true, draw):
    """The posterior of the least bound."""

    def law(rng, n):
        q, bound = optimal_posterior(
            draw(rng, n), M, delta=DELTA, divergence=divergence, distance=distance
        )
        return q @ true > bound + 1e-12

    return law


def occam_law(true, draw):
    def law(rng, n):
        risks = draw(rng, n)
        bound = occam_bound(risks, M, delta=DELTA)
        # The adversary among those that attain the limit.
        return (np.where(risks <= risks.min(1, keepdims=True), true, 0.0).max(1)
                > bound)  # fmt: skip

    return law


def rule(divergence, distance):
    options = {"catoni_c": 0.3} if distance == "catoni" else {}
    return partial(
        pac_bayes_bound, n_samples=M, delta=DELTA, divergence=divergence,
        distance=distance, **options,
    )  # fmt: skip


PAC_BAYES = [
    Guarantee(
        f"pac_bayes_bound, {divergence}, {distance}",
        "the risk of every posterior is at most this, also of one that knows the truth",
        "limits", "frequency", DELTA, posterior_laws(rule(divergence, distance)), 5.0,
    )
    for divergence, distances in (
        ("kl", ("kl", "catoni", "lambda", "squared", "linear")),
        ("chi2", ("kl", "squared", "linear")),
    )
    for distance in distances
]  # fmt: skip

PATTERNS = {
    "independent, .1 to .45": (
        np.random.default_rng(2).random((400, 7)) < np.linspace(0.1, 0.45, 7)
    ),
    "four of seven err, or none": np.vstack([
        *[np.isin(np.arange(7), (i + np.arange(4)) % 7) for i in range(7)],
        np.zeros((13, 7), bool),
    ]),
    "all alike": np.repeat((np.arange(10) < 2)[:, None], 7, axis=1),
    "noise": np.random.default_rng(3).random((400, 7)) < 0.5,
}  # fmt: skip


def candidate_weights(rng, size, n_members):
    """Equal weights, single members, and some at random."""
    fixed = [np.full(n_members, 1.0 / n_members), *np.eye(n_members)]
    return np.vstack([fixed, rng.dirichlet(np.full(n_members, 0.5), size=size)])


def tandem_law(patterns, m=100):
    """Of many weights, is the vote of any worse than its bound?"""

    def law(rng, n):
        q = candidate_weights(rng, 12, patterns.shape[1])
        truth = np.mean(patterns.astype(float) @ q.T >= 0.5 - 1e-12, axis=0)
        counts = rng.multinomial(m, np.full(len(patterns), 1 / len(patterns)), n) / m
        pairs = patterns[:, :, None] & patterns[:, None, :]
        joint = np.tensordot(counts, pairs.astype(float), axes=1)
        joint = np.clip(joint, 0.0, 1.0)
        bounds = tandem_bound(q, joint[:, None], m, delta=DELTA)
        return (truth > bounds).any(axis=1)

    return law


def cantelli_law(draw):
    """The C-bound of true values, for votes of random weights."""

    def law(rng, n):
        found = []
        for _ in range(n):
            patterns, q = draw(rng)
            weight = patterns @ q
            risk, apart = weight.mean(), 2.0 * np.mean(weight * (1.0 - weight))
            # Rounding of one half.
            found.append((np.mean(weight >= 0.5), c_bound(risk, min(apart, 0.5))))
        return np.array(found)

    return law


def random_vote(rng, share=0.3):
    patterns = (rng.random((50, 5)) < share * rng.random(5)).astype(float)
    return patterns, rng.dirichlet(np.ones(5))


def extreme_vote(rng):
    """Errors of two weights, 1/2 and 0, where Cantelli's inequality is an equality."""
    a = int(rng.integers(1, 25))
    patterns = np.zeros((50, 2))
    patterns[:a, 0] = 1.0
    return patterns, np.array([0.5, 0.5])


CANTELLI = {
    "random votes": cantelli_law(random_vote),
    "votes near one half": cantelli_law(lambda rng: random_vote(rng, 0.9)),
    "ties on some rows, none elsewhere": cantelli_law(extreme_vote),
}

# ------------------------------------------------------------------------ the monitor


class Echo:
    """A vote that says what the rows say."""

    def predict(self, X):
        return X[:, 0].astype(int)


def watch(errors, bound, alpha):
    monitor = VoteMonitor(Echo(), bound, alpha)
    return monitor.update(np.zeros((len(errors), 1)), errors.astype(int)).alarm_


def monitor_law(rates, bound=0.2, alpha=DELTA, n_rows=400):
    def once(rng):
        return watch(rng.random(n_rows) < rates(rng, n_rows), bound, alpha)

    return repeat(once)


def adversary_law(bound, alpha=DELTA, n_rows=300):
    """Whoever sees the errors: at the bound while evidence is near its largest."""
    t = np.arange(n_rows + 1)
    table = log_mixture_evalue(t[:, None], np.maximum(t, t[:, None]), bound)

    def law(rng, n):
        errors, top = np.zeros(n, int), np.zeros(n)
        for seen in range(n_rows):
            near = table[errors, seen] > top - 1.5
            errors += near & (rng.random(n) < bound)
            top = np.maximum(top, table[errors, seen + 1])
        return top >= -np.log(alpha)

    return law


def certified_then_used(risk, m=60, n_rows=300):
    """Certificate and use: delta and alpha together."""

    def once(rng):
        bound = binomial_tail_bound(int(rng.binomial(m, risk)), m, delta=DELTA / 2)
        return watch(rng.random(n_rows) < risk, bound, DELTA / 2)

    return repeat(once)


# -------------------------------------------------------------------------- the table


TABLE = [
    Guarantee(
        "vote_bound_, SVMs", "the error of predict is at most this",
        "limits", "frequency", DELTA, lines(SVMS, "vote"),
    ),
    Guarantee(
        "vote_bound_, any members", "the error of predict is at most this",
        "limits", "frequency", DELTA, lines(MEMBERS_ANY | TANDEM, "vote"),
    ),
    Guarantee(
        "vote_bound_, other schemes", "the error of predict is at most this",
        "limits", "frequency", DELTA, lines(OTHERS, "vote"),
    ),
    Guarantee(
        'vote_bound_, tail="randomized"', "fails with probability delta exactly",
        "limits", "frequency", DELTA,
        {
            "risk 1/2": randomized_law(0.5, 40),
            "at the edge of one mistake": randomized_law(edge_of(1, 40), 40),
            "risk .1": randomized_law(0.1, 40),
        },
    ),
    Guarantee(
        "vote_bound_, groups", "the mean over groups of the error rate is at most this",
        "limits", "frequency", DELTA, GROUPS,
    ),
    Guarantee(
        "risk_bound_", "the error of predict_randomized is at most this",
        "limits", "frequency", DELTA,
        lines(SVMS, "gibbs") | {
            f"any members, {name}": MEMBERS_ANY[name].line("gibbs") for name in NOISY
        },
    ),
    Guarantee(
        "risk_bound_, other schemes", "the error of predict_randomized is at most this",
        "limits", "frequency", DELTA, lines(OTHERS, "gibbs"),
    ),
    Guarantee(
        "occam_bound_", "the error of the member best_index_ is at most this",
        "limits", "frequency", DELTA,
        lines(UNIFORM, "best") | {
            f"any members, {name}": MEMBERS_ANY[name].line("best") for name in NOISY
        },
    ),
    Guarantee(
        "simultaneous=True", "the three hold together",
        "limits", "frequency", DELTA, lines(SIMULTANEOUS, "all"),
    ),
    Guarantee(
        "class_bounds()", "recall and precision errors are at most these",
        "limits", "frequency", DELTA, CLASS_LAWS,
    ),
    Guarantee(
        "cost_bound()", "the expected cost is at most this",
        "limits", "frequency", DELTA, COST_LAWS,
    ),
    Guarantee(
        "unseen_class_bound_", "classes that were not trained have at most this",
        "limits", "frequency", DELTA, UNSEEN_LAWS,
    ),
    Guarantee(
        "certificate()", "the error of a classifier fixed before is at most this",
        "limits", "frequency", DELTA,
        {
            "at the edge of no mistake": fresh_law(edge_of(0, 40), 40),
            "at the edge of five": fresh_law(edge_of(5, 60), 60),
            "risk 1/2": fresh_law(0.5, 50),
        },
    ),
    Guarantee(
        "binomial_tail_bound", "the error of a classifier fixed before is at most this",
        "limits", "frequency", DELTA,
        {
            "at the edge of no mistake in 50": tail_law(0, 50),
            "at the edge of 5 in 100": tail_law(5, 100),
            "at the edge of 25 in 40": tail_law(25, 40),
            "at the edge of 39 in 40": tail_law(39, 40),
        },
        20.0,
    ),
    *PAC_BAYES,
    Guarantee(
        "optimal_posterior", "the risk of the posterior of the least bound",
        "limits", "frequency", DELTA,
        {
            f"{divergence}, {distance}, {name}": optimal_law(
                divergence, distance, *MEMBERS[name]
            )
            for divergence, distance in (("kl", "kl"), ("chi2", "kl"))
            for name in ("independent, risk 1/2", "all alike", "one errs on each row")
        },
    ),
    *[
        Guarantee(
            f"renyi_bound, order {order:g}",
            "the risk of every posterior is at most this",
            "limits", "frequency", DELTA,
            posterior_laws(
                partial(
                    renyi_bound, n_samples=M, order=order, delta=DELTA, distance="kl"
                )
            ),
            5.0,
        )
        for order in (1.3, 4.0)
    ],
    Guarantee(
        "occam_bound", "the risk of the member of the least limit is at most this",
        "limits", "frequency", DELTA,
        {name: occam_law(*law) for name, law in MEMBERS.items()}, 20.0,
    ),
    Guarantee(
        "tandem_bound", "the risk of every vote is at most this",
        "limits", "frequency", DELTA,
        {name: tandem_law(patterns) for name, patterns in PATTERNS.items()}, 3.0,
    ),
    Guarantee(
        "c_bound", "of true values: the vote's risk is at most this",
        "limits", "never", 0.0, CANTELLI, 3.0,
    ),
    Guarantee(
        "monitor()", "an alarm, ever, while each error has at most the bound",
        "limits", "frequency", DELTA,
        {
            "errors at the bound": monitor_law(lambda r, n: 0.2, n_rows=1500),
            "bursts at the bound": monitor_law(
                lambda r, n: 0.2 * (np.arange(n) // 20 % 2)
            ),
            "random walk below it": monitor_law(
                lambda r, n: 0.1 + 0.1 * np.sin(r.normal(size=n).cumsum() / 5)
            ),
            "whoever sees the errors": adversary_law(0.2),
            "certified first: alpha + delta": certified_then_used(0.1),
            "certified at the edge: alpha + delta": certified_then_used(
                edge_of(0, 60, DELTA / 2)
            ),
        },
    ),
]  # fmt: skip
