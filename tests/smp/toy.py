"""The toy sample and the reference numbers of the tests.

The numbers were computed by a primal Newton method and, independently, by the dual
root-finder of the augmented problems (logistic), by (31)-(32), by Sherman-Morrison and
by numerical integration of Theorem 2 (ridge); agreement there was 1e-15.
"""

import numpy as np

X = np.array([[1, 0.5], [-0.3, 1.2], [0.8, -1], [-1.5, 0.2], [0.1, 0.9], [2, -0.4]])
SIGNS = np.array([1, -1, 1, -1, 1, -1])
CODES = np.array([0, 1, 2, 1, 0, 2])
Y = np.array([0.7, -1.1, 2.3, 0.4, -0.6, 1.9])
ROWS = np.array([[0.5, 0.5], [-1, 2], [3, -3], [0, 0]], dtype=float)
WEIGHTS = np.array([2.0, 1, 0, 3, 1, 1])


def C_of(lambda_, n=6):
    """Return the C with penalty ``lambda_`` per observation at n rows."""
    return 1.0 / ((n + 1) * lambda_)
