"""Tables as people have them: one strategy for rows, targets and weights.

A `Table` is a recipe, not the numbers: a few plain values from which `Table.rows`,
`Table.targets` and `Table.weight` make the data. Its ``repr`` is what an ``@example``
takes. Most parts of most tables are harmless, so that the odd ones get far; any part
goes with any other, and any table to any estimator.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

pd = pytest.importorskip("pandas", reason="test extra not installed (oldest versions)")
pl = pytest.importorskip("polars", reason="test extra not installed (oldest versions)")

LARGEST = float(np.finfo(float).max)
DATE = np.datetime64("2020-01-01")

# ------------------------------------------------------------------------- numbers

BASES = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "integers": lambda rng, shape: rng.integers(-3, 4, size=shape).astype(float),
    "binary": lambda rng, shape: rng.integers(2, size=shape).astype(float),
    "counts": lambda rng, shape: rng.poisson(2.0, size=shape).astype(float),
    "heavy": lambda rng, shape: rng.standard_cauchy(size=shape),
    "zeros": lambda rng, shape: np.zeros(shape),
    "ones": lambda rng, shape: np.ones(shape),
    "mostly zero": lambda rng, shape: (
        rng.normal(size=shape) * (rng.random(shape) < 0.2)
    ),
}
CELLS = (
    np.nan, np.inf, -np.inf, LARGEST, -LARGEST, 1e300, -1e300, 1e160, 1e154, -1e154,
    1e144, 1e100, 1e20, 999999999.0, -1e7, -0.0, 1e-7, 1e-154, -1e-160, 1e-300, 5e-324,
    -1.0, 0.5, 255.0, 65504.0, 3.5e38,
)  # fmt: skip
FACTORS = (
    1e-300, 1e-200, 1e-160, 1e-100, 1e-20, 1e-7, 1e7, 1e20, 1e100, 1e140, 1e150, 1e154,
    1e160, 1e200, 1e300,
)  # fmt: skip
OFFSETS = (1e7, -1e7, 1e16, 1e100, 1e154, -1e300)


def spoil(X, steps):
    """Return rows after some steps; places wrap around the table."""
    X = X.copy()
    n, d = X.shape
    if X.size == 0:
        return X
    with np.errstate(all="ignore"):
        for step, *given in steps:
            if step == "cell":
                i, j, value = given
                X[i % n, j % d] = value
            elif step == "column":
                j, value = given
                X[:, j % d] = value
            elif step == "scale column":
                j, factor = given
                X[:, j % d] *= factor
            elif step == "scale":
                X *= given[0]
            elif step == "shift column":
                j, offset = given
                X[:, j % d] += offset
            elif step == "shift":
                X += given[0]
            elif step == "copy column":
                j, k = given
                X[:, j % d] = X[:, k % d]
            elif step == "repeat rows":
                X = X[np.arange(n) % given[0]]
            elif step == "sort":
                X = np.sort(X, axis=0)
            elif step == "scale row":
                i, factor = given
                X[i % n] *= factor
    return X


_index = st.integers(0, 7)
_steps = st.one_of(
    st.tuples(st.just("cell"), _index, _index, st.sampled_from(CELLS)),
    st.tuples(st.just("column"), _index, st.sampled_from(CELLS)),
    st.tuples(st.just("scale column"), _index, st.sampled_from(FACTORS)),
    st.tuples(st.just("scale row"), _index, st.sampled_from(FACTORS)),
    st.tuples(st.just("scale"), st.sampled_from(FACTORS)),
    st.tuples(st.just("shift column"), _index, st.sampled_from(OFFSETS)),
    st.tuples(st.just("shift"), st.sampled_from(OFFSETS)),
    st.tuples(st.just("copy column"), _index, _index),
    st.tuples(st.just("repeat rows"), st.integers(1, 5)),
    st.tuples(st.just("sort")),
)

# --------------------------------------------------------------------------- forms

NAMES = ["x", "", " x", "x", "0", "é", "a\nb", "x" * 300]


def _as_integers(dtype):
    def cast(X):
        limits = np.iinfo(dtype)
        whole = np.nan_to_num(np.round(X), nan=0.0)
        # The largest int64 as a double is one above it.
        return np.clip(whole, limits.min / 2, limits.max / 2).astype(dtype)

    return cast


def _as_floats(dtype):
    def cast(X):
        with np.errstate(over="ignore"):
            return X.astype(dtype)

    return cast


def frame(X, names=None):
    """Return a dataframe of pandas."""
    return pd.DataFrame(X, columns=names or [f"x{j}" for j in range(X.shape[1])])


def _nullable(dtype):
    def cast(X):
        X = np.where(np.isfinite(X), X, np.nan)
        if dtype != "Float64":
            X = np.where(np.isnan(X), np.nan, np.clip(np.round(X), -(2**52), 2**52))
        columns = {}
        for j, values in enumerate(X.T):
            missing = np.isnan(values)
            known = np.where(missing, 0.0, values)
            known = known != 0 if dtype == "boolean" else known
            column = pd.array(known.astype({"Int64": np.int64}.get(dtype, known.dtype)))
            column = pd.Series(column).astype(dtype)
            column[missing] = pd.NA
            columns[f"x{j}"] = column
        return pd.DataFrame(columns, index=range(len(X)))

    return cast


def _mixed(X):
    """A column of numbers, one of text, one of categories, one of dates."""
    table = frame(X)
    makers = [
        lambda v: v,
        lambda v: np.where(v > 0, "yes", "no"),
        lambda v: pd.Categorical(np.where(v > 0, "b", "a"), ["a", "b", "unused"]),
        lambda v: pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(len(v)), "D"),
        lambda v: v > 0,
    ]
    for j in range(X.shape[1]):
        table[f"x{j}"] = makers[j % len(makers)](X[:, j])
    return table


def _polars(X):
    return pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})


def _every_other(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    wide[::2, ::3] = X
    return wide[::2, ::3]


def _backwards(X):
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _masked(X):
    return np.ma.masked_array(X, mask=~np.isfinite(X))


class Memory:
    """What only has the array protocol, as memory maps of other libraries."""

    def __init__(self, X):
        self.values = X
        self.shape, self.dtype, self.ndim = X.shape, X.dtype, X.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, key):
        return self.values[key]


def _explicit_zeros(X):
    n, d = X.shape
    places = np.arange(n * d)
    return sparse.csr_matrix(
        (X.ravel(), (places // max(d, 1), places % max(d, 1))), X.shape
    )


def _unsorted(X):
    S = sparse.csr_matrix(X)
    indices, data = S.indices.copy(), S.data.copy()
    for begin, end in zip(S.indptr[:-1], S.indptr[1:], strict=True):
        indices[begin:end] = indices[begin:end][::-1]
        data[begin:end] = data[begin:end][::-1]
    return sparse.csr_matrix((data, indices, S.indptr), S.shape)


def _twice(X):
    """Every entry in two halves, at the same place."""
    S = sparse.coo_matrix(X)
    rows, columns = np.tile(S.row, 2), np.tile(S.col, 2)
    return sparse.coo_matrix((np.tile(0.5 * S.data, 2), (rows, columns)), S.shape)


def _wide_indices(X):
    S = sparse.csr_matrix(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


# Forms in which the numbers are the same ones, of any double.
SAME = {
    "array": lambda X: X,
    "F order": np.asfortranarray,
    "every other": _every_other,
    "backwards": _backwards,
    "read only": _read_only,
    "protocol": Memory,
    "lists": lambda X: X.tolist(),
    "rows": lambda X: [np.array(row) for row in X],
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "object": lambda X: X.astype(object),
    "matrix subclass": lambda X: X.view(np.memmap),
    "other byte order": lambda X: X.astype(">f8"),
    "frame": frame,
    "frame, odd index": lambda X: frame(X).set_axis([5] * len(X)),
    "frame, objects": lambda X: frame(X).astype(object),
    "frame, arrow": lambda X: frame(X).astype("double[pyarrow]"),
    "polars": _polars,
}
SPARSE = {
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "bsr": sparse.bsr_matrix,
    "lil": sparse.lil_matrix,
    "dok": sparse.dok_matrix,
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
    "explicit zeros": _explicit_zeros,
    "unsorted": _unsorted,
    "entries twice": _twice,
    "wide indices": _wide_indices,
}
# Forms that change the numbers, or cannot be taken.
OTHER = {
    "bool": lambda X: X > 0,
    **{
        name: _as_integers(name)
        for name in ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint64")
    },
    "float16": _as_floats(np.float16),
    "float32": _as_floats(np.float32),
    "longdouble": _as_floats(np.longdouble),
    "complex": lambda X: X.astype(complex),
    "text of numbers": lambda X: X.astype(str),
    "objects, text of numbers": lambda X: X.astype(str).astype(object),
    "objects with None": lambda X: np.where(np.isnan(X), None, X.astype(object)),
    "text": lambda X: np.where(X > 0, "yes", "no"),
    "bytes": lambda X: np.where(X > 0, b"yes", b"no"),
    "dates": lambda X: np.where(X > 0, DATE, np.datetime64("NaT")),
    "masked": _masked,
    "vector": lambda X: X.ravel(),
    "cube": lambda X: X[:, :, None],
    "ragged": lambda X: [row[: 1 + i % 2].tolist() for i, row in enumerate(X)],
    "None": lambda X: None,
    "nullable Float64": _nullable("Float64"),
    "nullable Int64": _nullable("Int64"),
    "nullable boolean": _nullable("boolean"),
    "frame, odd names": lambda X: frame(X, (NAMES * X.shape[1])[: X.shape[1]]),
    "frame, mixed names": lambda X: frame(X, ["x", *range(1, 99)][: X.shape[1]]),
    "frame, several types": _mixed,
    "frame, float32": lambda X: frame(_as_floats(np.float32)(X)),
    "frame, sparse": lambda X: frame(X).astype(pd.SparseDtype("float64", 0.0)),
    "csr float32": lambda X: sparse.csr_matrix(_as_floats(np.float32)(X)),
    "csr int": lambda X: sparse.csr_matrix(_as_integers("int32")(X)),
    "csr bool": lambda X: sparse.csr_matrix(X > 0),
}  # fmt: skip
FORMS = SAME | SPARSE | OTHER

# ------------------------------------------------------------------------- targets


def _categories(codes, ordered=False):
    levels = ["never", *[f"level {k}" for k in range(codes.max(initial=0) + 1)], "none"]
    return pd.Series(pd.Categorical.from_codes(codes + 1, levels, ordered=ordered))


def _with(value):
    def change(codes):
        y = np.where(codes > 0, "yes", "no").astype(object)
        y[:1] = value
        return y

    return change


LABELS = {
    "ints": lambda c: c,
    "negative ints": lambda c: -5 * c - 1,
    "-1 and 1": lambda c: np.where(c > 0, 1, -1),
    "uint8": lambda c: c.astype(np.uint8),
    "huge ints": lambda c: c + 2**60,
    "uint64": lambda c: c.astype(np.uint64) + np.uint64(2**63),
    "bool": lambda c: c > 0,
    "text": lambda c: np.array(["no", "yes", "maybe"])[c % 3],
    "objects": lambda c: np.array(["no", "yes", "maybe"])[c % 3].astype(object),
    "list of text": lambda c: np.array(["no", "yes", "maybe"])[c % 3].tolist(),
    "empty text": lambda c: np.array(["", " ", "\n"])[c % 3],
    "bytes": lambda c: np.array([b"no", b"yes"])[(c > 0).astype(int)],
    "whole floats": lambda c: c.astype(float),
    "float32": lambda c: c.astype(np.float32),
    "one class": lambda c: np.zeros(len(c), int),
    "one class, text": lambda c: np.full(len(c), "only"),
    "one row of a class": lambda c: np.arange(len(c)) == 1,
    "a class per row": lambda c: np.arange(len(c)),
    "many classes": lambda c: np.arange(len(c)) // 2,
    "column": lambda c: c[:, None],
    "frame": lambda c: pd.DataFrame({"y": c}),
    "series, odd index": lambda c: pd.Series(c, index=np.arange(len(c))[::-1] * 3),
    "unused categories": _categories,
    "ordered categories": lambda c: _categories(c, ordered=True),
    "nullable": lambda c: pd.Series(c).astype("Int64"),
    "nullable bool": lambda c: pd.Series(c > 0).astype("boolean"),
    "polars": lambda c: pl.Series("y", c),
    "dates": lambda c: DATE + c,
}
BAD_LABELS = {
    "objects mixed": lambda c: np.array([1, "a", 2.5], dtype=object)[c % 3],
    "None among text": _with(None),
    "NaN among text": _with(np.nan),
    "NA among text": _with(pd.NA),
    "None among numbers": lambda c: [None, *c.tolist()[1:]],
    "NaN": lambda c: np.where(np.arange(len(c)) == 0, np.nan, c),
    "all NaN": lambda c: np.full(len(c), np.nan),
    "inf": lambda c: np.where(np.arange(len(c)) == 0, np.inf, c),
    "nullable with NA": lambda c: pd.Series(c).astype("Int64").where(c > 0),
    "NaT": lambda c: np.where(c > 0, DATE, np.datetime64("NaT")),
    "None": lambda c: None,
    "one short": lambda c: c[1:],
    "one long": lambda c: np.append(c, c[:1]),
    "empty": lambda c: c[:0],
    "scalar": lambda c: 1,
    "complex": lambda c: c * 1j,
    "lists": lambda c: [[k] * (1 + k) for k in c.tolist()],
    "sets": lambda c: [{k} for k in c.tolist()],
    "cube": lambda c: c[:, None, None],
    "csr": lambda c: sparse.csr_matrix(c[:, None]),
    "one row": lambda c: c[None, :],
}
NUMBERS = {
    "signal": lambda s: s,
    "constant": lambda s: np.full(len(s), 3.0),
    "zero": lambda s: np.zeros(len(s)),
    "float32 numbers": lambda s: s.astype(np.float32),
    "float16 numbers": lambda s: s.astype(np.float16),
    "rounded": np.round,
    "int numbers": lambda s: np.round(10 * s).astype(int),
    "uint8 numbers": lambda s: np.round(10 * np.abs(s)).astype(np.uint8),
    "list of numbers": lambda s: s.tolist(),
    "object numbers": lambda s: s.astype(object),
    "column of numbers": lambda s: s[:, None],
    "series of numbers": lambda s: pd.Series(s, index=np.arange(len(s))[::-1]),
    "nullable numbers": lambda s: pd.Series(s).astype("Float64"),
    "polars numbers": lambda s: pl.Series("y", s),
    "read-only numbers": _read_only,
    "one far": lambda s: np.where(np.arange(len(s)) == 0, 1e6, s),
    "one huge": lambda s: np.where(np.arange(len(s)) == 0, 1e300, s),
    "offset": lambda s: s + 1e9,
    "counts": lambda s: np.round(np.exp(np.clip(s, -3, 3))),
    **{f"x {factor:g}": lambda s, f=factor: s * f for factor in FACTORS},
}
BAD_NUMBERS = {
    "text of numbers": lambda s: s.astype(str),
    "two columns": lambda s: np.column_stack([s, -s]),
    "number NaN": lambda s: np.where(np.arange(len(s)) == 0, np.nan, s),
    "number inf": lambda s: np.where(np.arange(len(s)) == 0, -np.inf, s),
    "numbers with None": lambda s: [None, *s.tolist()[1:]],
    "nullable numbers with NA": lambda s: pd.Series(s).astype("Float64").where(s > 0),
    "number dates": lambda s: DATE + (10 * s).astype(int),
    "durations": lambda s: (10 * s).astype("timedelta64[s]"),
}
# Of several columns, for estimators that learn them.
MATRICES = {
    "indicators": lambda S: (S > 0).astype(int),
    "indicators, bool": lambda S: S > 0,
    "indicators, csr": lambda S: sparse.csr_matrix((S > 0).astype(int)),
    "indicators, frame": lambda S: pd.DataFrame((S > 0).astype(int)),
    "indicators, floats": lambda S: (S > 0).astype(float),
    "indicators, none set": lambda S: np.zeros(S.shape, int),
    "indicators, all set": lambda S: np.ones(S.shape, int),
    "indicators, lists": lambda S: (S > 0).astype(int).tolist(),
    "ranks": lambda S: S.argsort(axis=1).argsort(axis=1) + 1,
    "ranks, floats": lambda S: S.argsort(axis=1).argsort(axis=1) + 1.0,
    "ranks from 0": lambda S: S.argsort(axis=1).argsort(axis=1),
    "ranks with ties": lambda S: np.minimum(S.argsort(axis=1).argsort(axis=1) + 1, 2),
    "two of four": lambda S: (S.argsort(axis=1).argsort(axis=1) >= S.shape[1] - 2) * 1,
}


def _without_first(S):
    return np.where(np.arange(S.size).reshape(S.shape) > 0, S, np.nan)


BAD_MATRICES = {
    "indicators, NaN": lambda S: _without_first(S > 0),
    "matrix": lambda S: S,
    "matrix of text": lambda S: (S > 0).astype(str),
    "indicators, huge": lambda S: (S > 0) * 1e300,
    "ranks, NaN": lambda S: _without_first(S.argsort(axis=1)),
    "no columns": lambda S: S[:, :0],
}  # fmt: skip
TARGETS = [LABELS, BAD_LABELS, NUMBERS, BAD_NUMBERS, MATRICES, BAD_MATRICES]

# ------------------------------------------------------------------------- weights


def _uniform(n, rng):
    return rng.uniform(0.5, 2.0, size=n)


def _counts(n, rng):
    return rng.integers(0, 3, size=n)


WEIGHTS = {
    "uniform": _uniform,
    "ones": lambda n, rng: np.ones(n),
    "twos": lambda n, rng: np.full(n, 2),
    "counts": _counts,
    "counts, floats": lambda n, rng: _counts(n, rng).astype(float),
    "bools": lambda n, rng: rng.integers(2, size=n).astype(bool),
    "list": lambda n, rng: _uniform(n, rng).tolist(),
    "float32": lambda n, rng: _uniform(n, rng).astype(np.float32),
    "float16": lambda n, rng: _uniform(n, rng).astype(np.float16),
    "object": lambda n, rng: _uniform(n, rng).astype(object),
    "series": lambda n, rng: pd.Series(_uniform(n, rng), index=range(n)[::-1]),
    "nullable": lambda n, rng: pd.Series(_uniform(n, rng)).astype("Float64"),
    "polars": lambda n, rng: pl.Series("w", _uniform(n, rng)),
    "number": lambda n, rng: 2.0,
    "first zero": lambda n, rng: (np.arange(n) > 0).astype(float),
    "last only": lambda n, rng: (np.arange(n) == n - 1).astype(float),
    "first half zero": lambda n, rng: (np.arange(n) >= n // 2).astype(float),
    "one huge": lambda n, rng: np.where(np.arange(n) == 0, 1e300, 1.0),
    "one large": lambda n, rng: np.where(np.arange(n) == 0, 1e12, 1.0),
    "one tiny": lambda n, rng: np.where(np.arange(n) == 0, 1e-300, 1.0),
    "one denormal": lambda n, rng: np.where(np.arange(n) == 0, 5e-324, 1.0),
    "all huge": lambda n, rng: np.full(n, 1e300),
    "all largest": lambda n, rng: np.full(n, LARGEST),
    "all large": lambda n, rng: 1e100 * _uniform(n, rng),
    "all tiny": lambda n, rng: np.full(n, 1e-300),
    "all denormal": lambda n, rng: np.full(n, 5e-324),
    "all small": lambda n, rng: 1e-100 * _uniform(n, rng),
    "spread": lambda n, rng: 10.0 ** rng.uniform(-20, 20, size=n),
}
BAD_WEIGHTS = {
    "zeros": lambda n, rng: np.zeros(n),
    "one negative": lambda n, rng: np.where(np.arange(n) == 0, -1.0, 1.0),
    "negative": lambda n, rng: np.full(n, -1.0),
    "NaN": lambda n, rng: np.where(np.arange(n) == 0, np.nan, 1.0),
    "inf": lambda n, rng: np.where(np.arange(n) == 0, np.inf, 1.0),
    "one short": lambda n, rng: np.ones(max(n - 1, 0)),
    "one long": lambda n, rng: np.ones(n + 1),
    "column": lambda n, rng: np.ones((n, 1)),
    "table": lambda n, rng: np.ones((n, 2)),
    "text": lambda n, rng: np.full(n, "1"),
    "word": lambda n, rng: "balanced",
    "complex": lambda n, rng: np.full(n, 1j),
    "None inside": lambda n, rng: [None, *[1.0] * (n - 1)],
    "minus number": lambda n, rng: -1.0,
    "NaN number": lambda n, rng: np.nan,
    "series with NA": lambda n, rng: pd.Series(np.ones(n)).astype("Float64").shift(),
    "dates": lambda n, rng: np.full(n, DATE),
}

# -------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Table:
    """How to make rows, targets and weights.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    base : str
        Of `BASES`.
    steps : tuple
        What `spoil` does to the numbers.
    form : str
        Of `FORMS`.
    target, weighted : str
        Of `TARGETS`; of `WEIGHTS`, or "" for None.
    classes : int
        How many, where targets are labels.
    seed : int
    """

    n: int = 12
    d: int = 2
    base: str = "normal"
    steps: tuple = ()
    form: str = "array"
    target: str = "ints"
    weighted: str = ""
    classes: int = 2
    seed: int = 0

    def values(self, d=None):
        """Return the numbers, before they are in a form."""
        rng = np.random.default_rng(self.seed)
        return spoil(BASES[self.base](rng, (self.n, d or self.d)), self.steps)

    def rows(self, d=None):
        """Return X, with another number of columns if one is given."""
        return FORMS[self.form](self.values(d))

    def targets(self):
        """Return y, that depends on the rows before they were spoilt."""
        rng = np.random.default_rng(self.seed)
        X = BASES[self.base](rng, (self.n, self.d))
        rng = np.random.default_rng(self.seed + 1)
        scores = 0.5 * rng.normal(size=(self.n, 4))
        scores[:, : self.d] += np.clip(X[:, :4], -5.0, 5.0)
        signal = scores[:, 0]
        codes = signal.argsort().argsort() * self.classes // max(self.n, 1)
        for makers, given in zip(
            TARGETS, [codes, codes, signal, signal, scores, scores], strict=True
        ):
            if self.target in makers:
                return makers[self.target](given)
        raise ValueError(f"no target is called {self.target!r}.")

    def weight(self):
        """Return sample_weight, or None."""
        if not self.weighted:
            return None
        makers = WEIGHTS | {f"bad: {k}": v for k, v in BAD_WEIGHTS.items()}
        return makers[self.weighted](self.n, np.random.default_rng(self.seed + 2))


def _mostly(usual, others):
    """Draw one of the usual values half of the time."""
    return st.one_of(st.sampled_from(list(usual)), st.sampled_from(list(others)))


_no_steps = st.just(())
_some_steps = st.lists(_steps, min_size=1, max_size=3).map(tuple)


@st.composite
def tables(draw, target=None):
    """Draw a `Table`.

    Parameters
    ----------
    target : strategy, optional
        Of names of targets; any by default, half of the time the fitting ones.
    """
    usual_size = draw(st.booleans())
    sizes = (12, 7, 25, 40) if usual_size else (1, 2, 3, 4, 5, 0)
    n = draw(st.sampled_from(sizes))
    d = draw(st.sampled_from((2, 1, 3, 5) if draw(st.booleans()) else (1, 30, 4, 0)))
    return Table(
        n=n,
        d=d,
        base=draw(_mostly(["normal", "integers"], BASES)),
        steps=draw(st.one_of(_no_steps, _some_steps)),
        form=draw(_mostly(["array", "array", "csr", "frame"], FORMS)),
        target=draw(any_target() if target is None else target),
        weighted=draw(
            st.one_of(
                st.just(""),
                st.sampled_from(sorted(WEIGHTS)),
                st.sampled_from([*WEIGHTS, *[f"bad: {name}" for name in BAD_WEIGHTS]]),
            )
        ),
        classes=draw(st.sampled_from((2, 3, 5))),
        seed=draw(st.integers(0, 99)),
    )


def any_target(*fitting):
    """Draw the name of a target: mostly of these tables of names, sometimes any."""
    everything = [name for names in TARGETS for name in names]
    if not fitting:
        return st.sampled_from(everything)
    good = [name for names in fitting for name in names]
    return st.one_of(
        st.sampled_from(good[:1]), st.sampled_from(good), st.sampled_from(good),
        st.sampled_from(everything),
    )  # fmt: skip
