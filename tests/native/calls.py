"""Valid calls of every compiled function, to be spoilt or repeated."""

import numpy as np

from skbounds import _core


def _hmm(rng):
    n, s = 12, 3
    density = rng.random((n, s)) + 0.1
    starts = np.array([0, 5, n])
    start, A = np.full(s, 1 / s), np.full((s, s), 1 / s)
    filtered, posterior = rng.random((n, s)), np.zeros((n, s))
    model = {"density": density, "starts": starts}
    logs = {"log_density": np.log(density)}
    return {
        "subtract_largest": {
            "values": density,
            "result": np.zeros((n, s)),
            "largest": np.zeros(n),
        },
        "forward": {
            **model,
            "start": start,
            "transition": A,
            "careful": True,
            "filtered": np.zeros((n, s)),
            "scale": np.zeros(n),
        },
        "backward": {
            **model,
            "transition": A,
            "filtered": filtered,
            "scale": rng.random(n) + 0.1,
            "posterior": posterior,
            "pairs": np.zeros((s, s)),
        },
        "log_pass": {
            **logs,
            "first": 2,
            "stop": 9,
            "log_start": np.log(start),
            "log_transition": np.log(A),
            "posterior": posterior.copy(),
            "pairs": np.zeros((s, s)),
            "rows": np.zeros(7),
        },
        "linear_step": {
            "columns": rng.normal(size=(n, 4)),
            "starts": starts,
            "start": start,
            "transition": A,
            "weights": rng.normal(size=(4, s)),
            "constant": rng.normal(size=s),
            "first": np.zeros(s),
            "size": np.zeros(s),
            "pairs": np.zeros((s, s)),
            "sums": np.zeros((s, 4)),
        },
        "viterbi": {
            **logs,
            "starts": starts,
            "log_start": np.log(start),
            "log_transition": np.log(A),
            "states": np.zeros(n, np.int64),
        },
        "windows": {
            **model,
            "start": start,
            "stationary": start,
            "transition": A,
            "careful": True,
            "reach": 2,
            "posterior": posterior.copy(),
            "pairs": np.zeros((s, s)),
            "failed": np.zeros(n, bool),
        },
        "fields": {
            "lean": rng.uniform(-1, 1, n),
            "starts": starts,
            "tilt": 0.5,
            "left": np.zeros(n),
            "right": np.zeros(n),
        },
        "fields_in_blocks": {
            "lean": rng.uniform(-1, 1, n),
            "tilt": 0.5,
            "overlap": 3,
            "n_lanes": 4,
            "left": np.zeros(n),
            "right": np.zeros(n),
        },
    }


def _fenchel_young(rng):
    n, K = 7, 4
    theta, u = rng.normal(size=(n, K)), rng.dirichlet(np.ones(K), size=n)
    labels = rng.integers(K, size=(n, 1))
    return {
        "exponential": {"x": -rng.random(n), "out": np.zeros(n)},
        "predict_rows": {
            "loss": 0,
            "mu": 1.0,
            "theta": theta,
            "u": np.zeros((n, K)),
        },
        "respond_rows": {
            "loss": 0,
            "mu": 1.0,
            "theta": theta,
            "targets": labels,
            "values": np.zeros(n),
            "residual": np.zeros((n, K)),
        },
        "nearest_rows": {
            "structure": 0,
            "u": u,
            "vertices": np.zeros((n, 1), np.int64),
        },
        "decode_rows": {
            "structure": 0,
            "decoding": 0,
            "u": u,
            "uniforms": rng.random((n, 2)),
            "plays": np.zeros((n, 1), np.int64),
            "means": np.zeros((n, K)),
        },
        "features_dense": {
            "scaling": _core.fenchel_young.ROBUST,
            "intercept": True,
            "clip": 3.0,
            "X": rng.normal(size=(n, 3)),
            "mean": np.zeros(3),
            "square": np.zeros(3),
            "robust": np.zeros((_core.fenchel_young.N_ROBUST, 3)),
            "first": 0.0,
            "out": np.zeros((n, 4)),
        },
    }


def _pac_bayes(rng):
    n = 20
    X = rng.normal(size=(n, 2))
    K = np.exp(-np.square(X[:, None] - X).sum(axis=-1))
    y = np.where(np.arange(n) < 8, -1.0, 1.0)
    pool = {
        "pool": K,
        "slot_of": np.arange(n),
        "stamp": np.zeros(n, np.int64),
        "clock": np.zeros(1, np.int64),
    }
    segments = np.array([[0, 0, n]])
    return {
        "solve": {
            **pool,
            "diagonal": np.ones(n),
            "segments": segments,
            "weight": y,
            "beta": np.zeros(n),
            "v": y.copy(),
            "beta_seen": np.zeros(n),
            "outputs": np.zeros(n),
            "work": np.zeros((4, n)),
            "settings": np.array([1.0, 1e-3, 1000.0, 0, 0, 0, 0, 0]),
        },
        "update_outputs": {
            **{name: array.copy() for name, array in pool.items()},
            "row_numbers": np.arange(n),
            "beta": rng.normal(size=n),
            "beta_seen": np.zeros(n),
            "targets": segments,
            "outputs": np.zeros(n),
        },
    }


def _smp(rng):
    n, K, m = 9, 3, 4
    p = rng.random(n)
    A = rng.normal(size=(n, K - 1, K - 1))
    leverage = A @ A.transpose(0, 2, 1)
    contrasts = np.linalg.qr(np.eye(K)[:, 1:] - 1 / K)[0]
    return {
        "binary_increments": {
            "change": rng.normal(size=(m, n)),
            "proba": p,
            "curvature": p * (1 - p),
            "largest": np.zeros(m),
        },
        "softmax_increments": {
            "change": rng.normal(size=(m, K, n)),
            "proba": rng.dirichlet(np.ones(K), size=n).T.copy(),
            "weight": np.ones(n),
            "largest": np.zeros(m),
        },
        "second_order_terms": {
            "change": rng.normal(size=(m, n)),
            "second": p,
            "out": np.zeros((m, n)),
        },
        "third_order_terms": {
            "change": rng.normal(size=(m, n)),
            "bend": rng.normal(size=(m, n)),
            "second": p,
            "third": p.copy(),
        },
        "one_step_roots": {
            "eta": rng.normal(size=n),
            "leverage": rng.random(n),
            "slope": rng.choice([1.0, -1.0], size=(n, 2)),
            "target": rng.random((n, 2)),
            "root": np.zeros((n, 2)),
        },
        "softmax_roots": {
            "raw": rng.normal(size=(n, K)),
            "leverage": leverage.copy(),
            "slope": np.tile([0.3, 1.0, -0.2], (n, 1)),
            "target": rng.random((n, 3, K)),
            "contrasts": contrasts,
            "solution": np.zeros((n, 3, K)),
        },
        "softmax_downdates": {
            "raw": rng.normal(size=(n, K)),
            "leverage": leverage / 4,
            "removed": np.full(n, 0.5),
            "codes": rng.integers(K, size=n),
            "contrasts": contrasts,
        },
    }


def _kernel_boost(rng):
    n, m, b = 10, 2, 6
    A = rng.normal(size=(b, b))
    poles = rng.normal(size=3) + 1j * rng.random(3)
    return {
        "accept_pivots": {
            "matrix": A @ A.T,
            "uniforms": rng.random(b),
            "accepted": np.zeros(b, np.int64),
        },
        "filtered": {
            "spacing": rng.random(n - 1) + 0.1,
            "ground": 1.5,
            "weight": np.ones(n),
            "source": rng.normal(size=(n, m)),
            "scale": 0.3,
            "poles": poles,
            "factors": poles.conj().copy(),
            "values": np.zeros((n, m)),
            "leverage": np.zeros(n),
        },
    }


def _sequential(rng):
    K, n = 4, 30
    counts = np.full(K, 10.0)
    common = {"sigma": 1.0, "epsilon": 0.1}
    radii = {"x_lower": 8.0, "x_upper": 6.0}
    return {
        "gap_radius": {
            "x": 3.0,
            "n_arm": 20.0,
            "n_control": 30.0,
            "n_alternatives": 3,
            "sigma": 1.0,
        },
        "log_p_value": {
            "gap": 3.0,
            "n_arm": 20.0,
            "n_control": 30.0,
            "n_alternatives": 3,
            "sigma": 1.0,
            "known": 0.0,
        },
        "radii": {
            "counts": counts,
            **radii,
            "sigma": 1.0,
            "lower": np.zeros(K),
            "upper": np.zeros(K),
        },
        "decide": {
            "means": rng.normal(size=K),
            "lower": np.ones(K),
            "upper": np.ones(K),
            "epsilon": 0.1,
            "arms": np.zeros(4, np.int64),
        },
        "watch": {
            "means": 3 * rng.random(K),
            "counts": counts.copy(),
            "changed": np.ones(K, bool),
            **common,
            "log_p": 0.0,
        },
        "replay": {
            "arms": rng.integers(K, size=n),
            "rewards": rng.normal(size=n),
            "counts": np.zeros(K),
            "sums": np.zeros(K),
            **radii,
            **common,
            "log_p": 0.0,
            "log_p_arms": np.zeros(K - 1),
        },
        "watch_arms": {
            "means": 3 * rng.random(K),
            "counts": counts.copy(),
            "changed": np.ones(K, bool),
            **common,
            "log_p": np.zeros(K - 1),
        },
        "simulate": {
            "expected": np.array([0.0, 1.0, 2.0, 8.0]),
            **common,
            **radii,
            "max_pulls": 1000,
            "uniform": False,
            "bernoulli": False,
            "seed": 7,
            "counts": np.zeros(K),
            "sums": np.zeros(K),
        },
        "sum_of_gamma": {
            "now": 50,
            "recent": np.array([10, 40, 49]),
            "sizes": np.array([1.0, 2.0, 1.0]),
            "points": np.array([3.0, 5.0]),
            "weights": np.array([1.0, 2.0]),
            "table": rng.random(60),
            "scale": 0.5,
            "power": 1.6,
        },
        "log_evalue": {**_pair(), "shift": 0.1},
        "lift_bound": {**_pair(), "threshold": 3.0},
    }


def _pair():
    bets = 2.0 ** np.arange(-5, 2)
    k = np.arange(len(bets))
    return {
        "rewards": _core.sequential.BINARY,
        "bets": bets,
        "weights": 1.0 / (1.0 + (k[:, None] - k) ** 2.0),
        "scale": 1.0,
        "arm": np.array([50.0, 30.0, 0.0]),
        "control": np.array([40.0, 9.0, 0.0]),
    }


def trial_arguments(rewards="NORMAL", n_arms=4, **changes):
    """Return the arguments of a test by e-processes."""
    core, K = _core.sequential, n_arms - 1
    pair = _pair()
    arguments = {
        "rewards": getattr(core, rewards),
        "epsilon": 0.05,
        "bets": pair["bets"][:-2],
        "weights": np.ascontiguousarray(pair["weights"][:-2, :-2]),
        "arm_weights": np.full(K, 1.0 / K),
        "sigma": np.ones(n_arms) if rewards == "NORMAL" else np.empty(0),
        "estimated": False,
        "relative": True,
        "least_count": 1.0,
        "counts": np.zeros(n_arms),
        "sums": np.zeros(n_arms),
        "spread": np.zeros(n_arms),
        "log_e": np.zeros(K),
        "peak": np.zeros(K),
        "exact": np.ones(K, bool),
    }
    return {**arguments, **changes}


_TOPICS = {
    "hmm": _hmm,
    "fenchel_young": _fenchel_young,
    "pac_bayes": _pac_bayes,
    "smp": _smp,
    "kernel_boost": _kernel_boost,
    "sequential": _sequential,
}


def all_calls(seed=0):
    """Return {"topic.function": arguments} with fresh arrays."""
    rng = np.random.default_rng(seed)
    return {
        f"{topic}.{name}": arguments
        for topic, make in _TOPICS.items()
        for name, arguments in make(rng).items()
    }


def call(name, arguments):
    """Call a compiled function by name; return its result and its arrays."""
    topic, function = name.split(".")
    result = getattr(getattr(_core, topic), function)(**arguments)
    return result, [a for a in arguments.values() if isinstance(a, np.ndarray)]


# Names of arrays that are written to, and the functions that only read one so named.
WRITTEN = {
    "result", "largest", "filtered", "scale", "posterior", "pairs", "rows", "states",
    "failed", "left", "right", "out", "u", "values", "residual", "vertices", "plays",
    "means", "mean", "square", "stamp", "clock", "beta", "v", "beta_seen", "outputs",
    "work", "settings", "change", "bend", "root", "matrix", "accepted", "leverage",
    "lower", "upper", "arms", "counts", "sums", "solution", "raw", "log_p",
    "log_p_arms",
}  # fmt: skip
ONLY_READ = {
    ("hmm.subtract_largest", "values"),
    ("hmm.backward", "filtered"), ("hmm.backward", "scale"),
    ("fenchel_young.nearest_rows", "u"), ("fenchel_young.decode_rows", "u"),
    ("pac_bayes.update_outputs", "beta"), ("smp.second_order_terms", "change"),
    ("smp.third_order_terms", "change"), ("smp.one_step_roots", "leverage"),
    ("smp.softmax_roots", "leverage"), ("smp.softmax_roots", "raw"),
    ("sequential.radii", "counts"), ("sequential.decide", "means"),
    ("sequential.decide", "lower"), ("sequential.decide", "upper"),
    ("sequential.watch", "means"), ("sequential.watch", "counts"),
    ("sequential.replay", "arms"), ("sequential.watch_arms", "means"),
    ("sequential.watch_arms", "counts"),
}  # fmt: skip


def is_written(name, key):
    """Tell whether a function writes to one of its arrays."""
    return key in WRITTEN and (name, key) not in ONLY_READ


def stream_arguments(learner="MIXTURE", loss="LOGISTIC", dtype=np.float64, **changes):
    """Return the arguments of a stream of 3 features, an intercept and 4 outputs."""
    core = _core.fenchel_young
    n_outputs, n_experts = 4, 3 if learner == "MIXTURE" else 0
    width = n_outputs * max(1, n_experts)
    columns = -(-(width + 3) // 16) * 16 if n_experts else width + 1
    every = learner == "MIXTURE"
    groups = 0 if not n_experts else 1 if loss == "LOGISTIC" else n_outputs
    scalars = np.zeros(core.N_SCALARS)
    scalars[[core.FACTOR, core.WEALTH, core.BET_SUM]] = 1.0
    arguments = {
        "learner": getattr(core, learner),
        "loss": getattr(core, loss),
        "decoding": 2,
        "scaling": core.RAW,
        "intercept": True,
        "mu": 1.0,
        "step": 0.5,
        "scale": 1.0,
        "norm_limit": 100.0,
        "diameter": 10.0,
        "gradient_limit": 100.0,
        "share": 1e-3,
        "clip": 3.0,
        "n_outputs": n_outputs,
        "table": np.zeros((4, columns), dtype),
        "average": np.zeros((4, width)),
        "gradient": np.zeros((0 if n_experts else 4, n_outputs)),
        "mean": np.zeros(3),
        "square": np.zeros(3),
        "robust": np.zeros((core.N_ROBUST, 3)),
        "weights": np.full((groups, n_experts), 1 / max(1, n_experts)),
        "gradients": np.zeros((4 if every else 0, n_outputs * max(0, n_experts - 1))),
        "accounts": np.zeros((2 if every else 0, n_experts)),
        "rates": np.arange(float(n_experts)),
        "scalars": scalars,
    }
    return {**arguments, **changes}
