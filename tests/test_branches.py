"""Branches that no other test takes."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import skbounds
from skbounds._collections import Kind, _checked
from skbounds._copies import copy_ids
from skbounds._distances import check_spread
from skbounds._frames import is_vector
from skbounds._labels import code_groups


def test_topics_are_attributes():
    assert skbounds.__getattr__("smp") is skbounds.smp
    assert skbounds.smp.__name__ == "skbounds.smp"
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = skbounds.other


@pytest.mark.parametrize("n", [0, 1])
def test_copies_among_no_rows(n):
    assert_array_equal(copy_ids(np.ones((n, 2)), np.zeros(n, int)), np.arange(n))


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_spread_of_rows(kind):
    check_spread(kind(np.empty((0, 2))))
    check_spread(kind(np.zeros((3, 2))))
    X = np.zeros((3, 2))
    X[0, 0] = 1e-200
    with pytest.raises(ValueError, match="X varies by 1e-200 only"):
        check_spread(kind(X))


def test_vectors():
    assert is_vector(3.0)
    assert is_vector(np.float64(3.0))
    assert is_vector([1, 2])
    assert not is_vector([[1, 2]])
    assert not is_vector([[1], [1, 2]])
    assert not is_vector(["a", "b"])


def test_groups_in_two_dimensions():
    message = r"groups must have shape \(n_samples,\); got \(2, 2\)"
    with pytest.raises(ValueError, match=message):
        code_groups([[1, 2], [3, 4]])
    assert_array_equal(code_groups(["b", "a", "b"]), [1, 0, 1])


def test_chunks_that_are_not_what_they_were_said_to_be():
    kind = Kind(np.float64, "csr", None)
    with pytest.raises(ValueError, match="X has 2 columns here, and 3 as said"):
        _checked(np.ones((4, 2)), None, None, 3, kind)
    for name, given in (
        ("y", (np.ones(3), None)),
        ("sample_weight", (None, np.ones(3))),
    ):
        message = f"inconsistent numbers of samples: X has 4, {name} has 3"
        with pytest.raises(ValueError, match=message):
            _checked(np.ones((4, 2)), *given, 2, kind)


def test_collections_in_three_dimensions():
    da = pytest.importorskip("dask.array", reason="extra scale not installed")
    from skbounds._collections import Chunks

    with pytest.raises(ValueError, match=r"Expected 2D array, got 3D collection"):
        Chunks(da.ones((4, 2, 2)))


def test_dates_in_chunks():
    from skbounds._chunked_labels import _kind

    assert _kind(np.array(["2020-01-01"], dtype="M8[D]")) == "dates"
    assert _kind(np.array([1.0])) == "numbers"
    assert _kind(np.array(["a"])) == "texts"
    assert _kind(np.array([None, 1], dtype=object)) == "objects"


class TestArrowColumns:
    @pytest.fixture
    def pa(self):
        return pytest.importorskip("pyarrow", reason="extra data not installed")

    def test_numbers(self, pa):
        from decimal import Decimal

        from skbounds._stream_command import _as_floats

        for column, expected in (
            (pa.array([1, 2, 1]).dictionary_encode(), [1.0, 2.0, 1.0]),
            (pa.nulls(2), [np.nan, np.nan]),
            (pa.array([Decimal("1.5"), None]), [1.5, np.nan]),
            (pa.array([True, False]), [1.0, 0.0]),
        ):
            assert_array_equal(_as_floats(column), expected)
        assert _as_floats(pa.array(["1", "2"])) is None
        assert _as_floats(pa.array(["1", "2"]).dictionary_encode()) is None

    def test_texts(self, pa):
        from skbounds._stream_command import _as_texts

        column = pa.array(["a", None, "a"])
        expected = _as_texts(column)
        assert_array_equal(expected, ["a", "", "a"])
        assert_array_equal(_as_texts(column.dictionary_encode()), expected)
        assert _as_texts(pa.array([1, 2])) is None
        assert _as_texts(pa.array([1, 2]).dictionary_encode()) is None

    def test_chunked_columns(self, pa):
        from skbounds._record_batches import _to_numpy

        parts = pa.chunked_array([[1.0, None], [3.0]])
        assert_array_equal(_to_numpy(parts), [1.0, np.nan, 3.0])
        words = pa.chunked_array([["a"], ["b", "a"]])
        assert_array_equal(_to_numpy(words.dictionary_encode()), ["a", "b", "a"])

    @pytest.mark.parametrize("format", ["feather", "parquet"])
    def test_batches_of_datasets_and_scanners(self, pa, tmp_path, format):
        """All rows come in their order, whichever way they are read."""
        dataset = pytest.importorskip("pyarrow.dataset")
        from skbounds._record_batches import _items

        table = pa.table({"x": np.arange(10.0)})
        dataset.write_dataset(table, tmp_path / "rows", format=format)
        found = dataset.dataset(tmp_path / "rows", format=format)
        for batches in (found, found.scanner(batch_size=4)):
            parts = [part["x"].to_numpy() for part in _items(batches, 4, [])]
            assert [len(part) for part in parts] == [4, 4, 2]
            assert_array_equal(np.concatenate(parts), np.arange(10.0))


class TestTables:
    @pytest.fixture(autouse=True)
    def _pandas(self):
        pytest.importorskip("pandas", reason="test extra not installed")

    def write(self, path, rows):
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
        return str(path)

    def test_more_than_fifty_classes(self, tmp_path):
        from skbounds.__main__ import InputError, own_task

        rows = [[i, f"c{i % 51}"] for i in range(255)]
        path = self.write(tmp_path / "t.csv", [["x", "label"], *rows])
        with pytest.raises(InputError, match="'label' has 51 classes; at most 50 are"):
            own_task(path, "label", None)

    def test_no_feature_with_a_value(self, tmp_path):
        from skbounds.__main__ import InputError, own_task

        rows = [["", "ab"[i % 2]] for i in range(40)]
        path = self.write(tmp_path / "t.csv", [["x", "label"], *rows])
        with pytest.raises(InputError, match="has no feature with a value"):
            own_task(path, "label", None)

    def test_empty_column_without_name(self, tmp_path):
        from skbounds.__main__ import own_task

        rows = [[i, "", "ab"[i % 2]] for i in range(40)]
        path = self.write(tmp_path / "t.csv", [["x", "", "label"], *rows])
        task, _ = own_task(path, "label", None)
        assert list(task.X_train) == list(task.X_test) == ["x"]

    def test_a_file_in_the_way(self, tmp_path, monkeypatch, capsys):
        from skbounds.__main__ import main

        monkeypatch.chdir(tmp_path)
        (tmp_path / "skbounds-tour").write_text("")
        assert main([]) != 0
        said = capsys.readouterr().err
        assert "'skbounds-tour' is in the way: it is not a folder" in said
