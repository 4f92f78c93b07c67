"""Small models and data, and short ways to start and to read the estimator."""

import warnings
from contextlib import contextmanager

import numpy as np
from numpy.testing import assert_allclose
from reference import hmm as ref
from sklearn.exceptions import ConvergenceWarning

from skbounds.hmm import BaumWelchHMM

COVARIANCES = ("full", "diag", "spherical", "tied")

# The worked examples of the specification (its section 7), by enumeration.
A = {
    "X": np.array([[0.5], [-1.2], [0.3], [2.0]]),
    "mu": np.array([0.8]),
    "zeta": 0.7,
    "sigma": 1.0,
    "loglik": -6.586347917261,
    "posterior": [0.571705678677, 0.238414357971, 0.669562232385, 0.959804976066],
    "pairs": [0.589713007490, 0.516880638246, 0.686765062564],
    "filtered": [0.689974481128, 0.166080039370, 0.483117844495, 0.959804976066],
    "viterbi": [0, 0, 1, 1],
    "viterbi_log_prob": -8.056224005582,
    "new_mu": [0.660117115811],
    "new_zeta": 0.623339677075,
    "new_zeta_classical": 0.597786236100,
    "five_mu": [0.690173452573],
    "five_zeta": 0.482482775730,
    "five_logliks": [
        -6.586347917261,
        -6.456241229877,
        -6.420264780479,
        -6.398515511022,
        -6.383919226866,
    ],
    "lengths": [2, 2],
    "split_loglik": -6.425591055969,
    "split_mu": [0.720992984870],
    "split_zeta": 0.687489864878,
    "windows": {
        1: [0.546363511081, 0.193924145466, 0.654696584971, 0.967357620395],
        2: [0.556118631706, 0.238414357971, 0.669562232385, 0.958769113083],
    },
}
B = {
    "X": np.array([[0.4, -0.2], [1.1, 0.9], [-0.7, 0.1], [-1.3, -0.4], [0.2, 1.5]]),
    "mu": np.array([0.6, -0.3]),
    "zeta": 0.2,
    "sigma": 0.7,
    "loglik": -14.059494857588,
    "posterior": [
        0.552231707119,
        0.803789408553,
        0.199837059988,
        0.295617297964,
        0.377165460411,
    ],
    "pairs": [0.382881398719, 0.149684690731, 0.518172552905, 0.363306552293],
    "viterbi": [0, 1, 0, 1, 0],
    "viterbi_log_prob": -16.075704217252,
    "new_mu": [0.322522277997, 0.052179641481],
    "new_zeta": 0.322809038930,
    "new_zeta_classical": 0.353511298662,
    "five_mu": [0.591332470483, 0.532222902071],
    "five_zeta": 0.378148479696,
    "lengths": [2, 3],
    "split_loglik": -14.158587507288,
    "split_mu": [0.280062381371, 0.033675728914],
    "split_zeta": 0.316805802215,
}
G = {
    "theta": {
        "startprob": np.array([0.5, 0.3, 0.2]),
        "transmat": np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.25, 0.25, 0.5]]),
        "means": np.array([[0.0, 1.0], [1.5, 0.0], [1.0, 0.5]]),
        "covariances": np.array(
            [
                [[0.5, 0.1], [0.1, 0.4]],
                [[0.8, -0.2], [-0.2, 0.6]],
                [[1.0, 0.0], [0.0, 0.3]],
            ]
        ),
    },
    "sequences": [
        np.array([[0.1, 1.0], [1.4, -0.3], [2.1, 0.2], [-0.5, 0.8], [0.9, 0.9]]),
        np.array([[2.0, 0.1], [1.7, -0.6], [0.0, 1.2]]),
    ],
    "loglik_first": -10.517580102605,
    "loglik": -17.451257123207,
    "new_startprob": [0.343601934940, 0.452864629303, 0.203533435757],
    "new_transmat": [
        [0.352532850238, 0.484144785074, 0.163322364688],
        [0.364938872895, 0.482660763879, 0.152400363226],
        [0.238182141504, 0.305929831401, 0.455888027096],
    ],
    "new_means": [
        [0.089748073286, 0.978627889682],
        [1.584169067131, -0.024465754780],
        [1.037270822933, 0.433160904477],
    ],
    "new_covariances": [
        [[0.2382426505557, -4.791994441309e-4], [-4.791994441309e-4, 0.03031779830349]],
        [[0.3567525015189, -0.1509208294096], [-0.1509208294096, 0.2505447692989]],
        [[0.8997741469870, -0.3734795683864], [-0.3734795683864, 0.2921012234546]],
    ],
    "eps_mix": 0.4337349398,
}


# ------------------------------------------------------------------------------- models


def stochastic(rng, s, zeros=0, concentration=1.0):
    """Random transition matrix with `zeros` zeros off the diagonal and the cycle."""
    P = rng.dirichlet(np.full(s, concentration), size=s) + 0.02
    free = [(j, k) for j in range(s) for k in range(s) if k not in (j, (j + 1) % s)]
    for j, k in rng.permutation(free)[:zeros] if free else []:
        P[j, k] = 0.0
    return P / P.sum(axis=1, keepdims=True)


def covariances(rng, s, d, covariance_type="full"):
    """Random covariances of a kind, as full matrices."""
    C = np.empty((s, d, d))
    for j in range(s):
        W = rng.normal(size=(d, d + 2))
        C[j] = W @ W.T / (d + 2) + 0.2 * np.eye(d)
        if covariance_type == "diag":
            C[j] = np.diag(np.diag(C[j]))
        elif covariance_type == "spherical":
            C[j] = C[j, 0, 0] * np.eye(d)
        elif covariance_type == "tied":
            C[j] = C[0]
    return C


def random_theta(seed, s, d, covariance_type="full", zeros=0, spread=1.0):
    """A random model."""
    rng = np.random.default_rng(seed)
    return {
        "startprob": rng.dirichlet(np.full(s, 2.0)),
        "transmat": stochastic(rng, s, zeros),
        "means": spread * rng.normal(size=(s, d)),
        "covariances": covariances(rng, s, d, covariance_type),
    }


def random_sequences(seed, lengths, d, scale=1.5):
    """Rows that no model explains well."""
    rng = np.random.default_rng(seed + 1000)
    return [scale * rng.normal(size=(n, d)) for n in lengths]


def separated(seed, n=300, n_sequences=3, gap=4.0):
    """Sequences of two features from three clear states, and their true model."""
    theta = {
        "startprob": np.array([0.6, 0.3, 0.1]),
        "transmat": np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]),
        "means": gap * np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]),
        "covariances": np.array([np.eye(2), np.diag([0.5, 1.5]), 0.7 * np.eye(2)]),
    }
    rng = np.random.default_rng(seed)
    drawn = [ref.sample(n // n_sequences, theta, rng) for _ in range(n_sequences)]
    return [x for x, _ in drawn], [z for _, z in drawn], theta


def symmetric_data(seed, n, mu, zeta, sigma=1.0):
    """One sequence of the symmetric model and its states, -1 or 1."""
    rng = np.random.default_rng(seed)
    mu = np.atleast_1d(np.asarray(mu, dtype=float))
    z = np.empty(n)
    z[0] = rng.choice([-1.0, 1.0])
    stays = rng.random(n) < zeta
    for i in range(1, n):
        z[i] = z[i - 1] if stays[i] else -z[i - 1]
    return z[:, None] * mu + sigma * rng.normal(size=(n, len(mu))), z


# ------------------------------------------------------------------------ the estimator


@contextmanager
def unfinished():
    """Few iterations are wanted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def caught(action, *args, **kwargs):
    """Return the warnings of a call that are not about convergence."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action(*args, **kwargs)
    return [w for w in found if not issubclass(w.category, ConvergenceWarning)]


def rows(sequences):
    """All rows, and the lengths."""
    return np.vstack(sequences), [len(x) for x in sequences]


def start(theta):
    """The parameters that fix the start."""
    return {
        "means_init": theta["means"],
        "covariances_init": theta["covariances"],
        "transmat_init": theta["transmat"],
        "startprob_init": theta["startprob"],
    }


def fit_from(sequences, theta, n_iter=1, **options):
    """A general model after exactly `n_iter` updates of a given start."""
    X, lengths = rows(sequences)
    options = {"covariance_type": "full", "reg_covar": 0.0, "tol": 0.0, **options}
    model = BaumWelchHMM(
        len(theta["means"]), max_iter=n_iter, **start(theta), **options
    )
    with unfinished():
        return model.fit(X, lengths=lengths)


def fit_symmetric(sequences, mu, zeta, sigma, n_iter=1, **options):
    """A symmetric model after exactly `n_iter` updates of a given start."""
    X, lengths = rows(sequences)
    options = {"tol": 0.0, "transmat_init": ref.symmetric_transmat(zeta), **options}
    model = BaumWelchHMM(
        structure="symmetric", sigma=sigma, means_init=mu, max_iter=n_iter, **options
    )
    with warnings.catch_warnings():
        # Short runs, small data off centre, and zeta at its limit.
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, lengths=lengths)


def at(theta, **options):
    """A fitted general model with these parameters in place of the fitted ones."""
    s, d = np.shape(theta["means"])
    X = np.random.default_rng(0).normal(size=(5 * s * (d + 1), d))
    safe = {**theta, "covariances": np.array([np.eye(d)] * s)}
    safe["means"] = np.arange(s)[:, None] / s + np.zeros((s, d))
    model = fit_from([X], safe, **options)
    return _replace(model, theta)


def symmetric_at(mu, zeta, sigma, **options):
    """A fitted symmetric model with these parameters in place of the fitted ones."""
    mu = np.asarray(mu, dtype=float)
    X = np.random.default_rng(0).normal(size=(20, len(mu)))
    X = sigma * np.vstack([X, -X])
    model = fit_symmetric([X], sigma * np.ones(len(mu)), 0.6, sigma, **options)
    return _replace(model, ref.symmetric_theta(mu, zeta, sigma))


def _replace(model, theta):
    for name, value in theta.items():
        assert getattr(model, f"{name}_").shape == np.shape(value)
        setattr(model, f"{name}_", np.array(value, dtype=float))
    return model


def parameters(model):
    """The fitted parameters, as the reference has them."""
    return {
        name: getattr(model, f"{name}_")
        for name in ("startprob", "transmat", "means", "covariances")
    }


def assert_parameters(model, theta, rtol=1e-9, atol=1e-12):
    """The fitted parameters are these."""
    for name, value in parameters(model).items():
        assert_allclose(value, theta[name], rtol=rtol, atol=atol, err_msg=name)


def posteriors(sequences, theta, **options):
    """Reference posteriors of all rows."""
    return np.vstack([ref.evaluate(x, theta, **options)["gamma"] for x in sequences])
