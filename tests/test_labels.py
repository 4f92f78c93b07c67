"""Labels as positions among sorted classes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbounds._labels import code_labels


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 1, 2, 7, -5], [1, 3, 7]),
        (["b", "z", "", "a"], ["a", "b"]),
        ([2.5, np.nan, 1.0], [1.0, 2.5]),
        (np.array(["a", 1, 2.5, "b"], dtype=object), ["a", "b"]),
        (np.array(["a", 1, 2, None], dtype=object), [1, 2]),
        (["1", "2"], [1, 2]),
        ([1, 2], ["1", "2"]),
        ([True, False, True], [False, True]),
        ([], [0, 1]),
    ],
    ids=str,
)
def test_positions_are_those_of_a_list(labels, classes):
    """And -1 for whatever is not in it, of any kind."""
    classes = np.array(classes)
    known = classes.tolist()
    given = np.asarray(labels).tolist()
    expected = [known.index(v) if v in known else -1 for v in given]
    assert_array_equal(code_labels(labels, classes), expected)
