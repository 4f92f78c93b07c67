"""What parses, given what is damaged: the right result, or one line that says why.

Files of the commands, checkpoints, and states as JSON has them. Whatever a state says,
levels that follow must be within the procedure's budget, as `Audit` counts it.
"""

import contextlib
import copy
import io
import json
import os
import pickle
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from damaged import (
    VALUES,
    damage_bytes,
    damage_csv,
    damage_text_of_json,
    damage_tree,
    listing,
    nested,
    places,
    replaced,
)
from fuzz import fuzz
from hypothesis import given
from hypothesis import strategies as st

import skbounds._tour
from skbounds.__main__ import main
from skbounds.fenchel_young import FenchelYoungOnlineClassifier
from skbounds.pac_bayes._monitor import VoteMonitor
from skbounds.sequential import (
    ADDIS,
    ELOND,
    LOND,
    LORD,
    MABFDR,
    SAFFRON,
    AlphaInvesting,
    AlphaSpending,
    BatchBH,
    BestArmTest,
    LORDPlusPlus,
    LORDPrime,
    Uncorrected,
)

SEEDS = st.integers(0, 2**64 - 1)


def one_line(text):
    """Tell whether a text is a line of a length that people read."""
    return 10 < len(text) < 900 and len(text.splitlines()) == 1


# ---------------------------------------------------------------------------- commands


def call(*arguments):
    """Run a command in this process; return its status, output and errors."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code
    return status, out.getvalue(), errors.getvalue()


def check_command(folder, *arguments, checkpoint=None):
    """Run a command; it has a result, or an error of one line, and writes no file.

    But for the checkpoint, if it has a result.
    """
    before = listing(folder)
    status, out, errors = call(*arguments)
    after = listing(folder)
    if status == 0 and checkpoint is not None:
        for found in (before, after):
            del found[str(checkpoint)]
    assert after == before
    if status == 0:
        assert errors == ""
        json.loads(out)
    else:
        assert status == 2, errors
        assert out == ""
        assert errors.startswith("skbounds: ") and errors.endswith("\n")
        assert one_line(errors), errors
    return status, out, errors


def table(n=60):
    pd = pytest.importorskip("pandas", reason="test extra not installed")
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=n).round(3), "b": rng.integers(0, 5, n)})
    data["k"] = rng.choice(["red", "blue", "é"], n)
    data["w"] = 1.0
    data["y"] = np.where(data.a + rng.normal(size=n) > 0, "yes", "no")
    return data


def file_of(kind):
    """Return the bytes of a table as a file of a kind."""
    pa = pytest.importorskip("pyarrow", reason="test extra not installed")
    feather = pytest.importorskip("pyarrow.feather")
    pq = pytest.importorskip("pyarrow.parquet")
    found = io.BytesIO()
    data = pa.Table.from_pandas(table())
    if kind == "parquet":
        pq.write_table(data, found, row_group_size=20)
    elif kind == "feather":
        feather.write_feather(data, found, compression="uncompressed", chunksize=20)
    else:
        found.write(table().to_csv(index=False).encode())
    return found.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder, and tables as texts and files; the tour stops before its fits."""
    folder = tmp_path_factory.mktemp("damaged")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(skbounds._tour, "run_tour", lambda *_, **__: {"parsed": True})
        texts = {sep: table().to_csv(index=False, sep=sep) for sep in ",;\t|"}
        raw = {kind: file_of(kind) for kind in ("parquet", "feather")}
        yield folder, texts, raw


OPTIONS = (
    (), (), ("--sep", ";"), ("--decimal", ","), ("--encoding", "utf-16"),
    ("--missing", "x", "é"), ("--encoding", "cp1252"), ("--sep", "tab"),
)  # fmt: skip


@fuzz(150)
@given(seed=SEEDS)
def test_damaged_csv_of_the_tour(seed, files):
    folder, texts, _ = files
    draw = random.Random(seed)
    sep = draw.choice(list(texts))
    (folder / "t.csv").write_bytes(damage_csv(texts[sep], draw, sep))
    check_command(
        folder, "--data", "t.csv", "--target", "y", "--json", *draw.choice(OPTIONS)
    )


@fuzz(150)
@given(seed=SEEDS)
def test_damaged_csv_of_a_stream(seed, files):
    folder, texts, _ = files
    draw = random.Random(seed)
    sep = draw.choice(list(texts))
    (folder / "t.csv").write_bytes(damage_csv(texts[sep], draw, sep))
    more = draw.choice((*OPTIONS, ("--weight", "w"), ("--drop", "a", "k")))
    check_command(folder, "stream", "t.csv", "--target", "y", "--json", *more)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@fuzz(150)
@given(seed=SEEDS)
def test_damaged_files_of_a_stream(kind, seed, files):
    folder, _, raw = files
    draw = random.Random(seed)
    name = f"t.{kind}"
    (folder / name).write_bytes(damage_bytes(raw[kind], draw))
    more = draw.choice(((), (), ("--weight", "w"), ("--drop", "a", "k")))
    check_command(folder, "stream", name, "--target", "y", "--json", *more)


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
@fuzz(60)
@given(seed=SEEDS)
def test_damaged_files_of_play_batches(kind, seed, files):
    """In Python: ValueError or TypeError of one line."""
    folder, texts, raw = files
    draw = random.Random(seed)
    if kind == "csv":
        content = damage_csv(texts[","], draw)
    else:
        content = damage_bytes(raw[kind], draw)
    (folder / f"p.{kind}").write_bytes(content)
    model = FenchelYoungOnlineClassifier(random_state=0)
    before = listing(folder)
    try:
        model.play_batches(folder / f"p.{kind}", target="y", classes="grow")
    except (ValueError, TypeError) as error:
        assert type(error) in (ValueError, TypeError)
        assert str(error) and len(str(error).splitlines()) == 1
    assert listing(folder) == before


def test_files_that_are_not_damaged(files):
    """What the damage is done to is read, the same from every kind of file."""
    folder, texts, raw = files
    found = []
    for name, content in (
        ("t.csv", texts[","].encode()), ("t.parquet", raw["parquet"]),
        ("t.feather", raw["feather"]),
    ):  # fmt: skip
        (folder / name).write_bytes(content)
        status, out, errors = check_command(
            folder, "stream", name, "--target", "y", "--json"
        )
        assert status == 0, errors
        account = json.loads(out)
        assert account["rows"] == 60 and account["classes"] == ["yes", "no"]
        found.append([account[key] for key in ("error", "low", "high", "certificate")])
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert found[1] == found[2]


# What was found by the tests above.


@pytest.mark.parametrize("first", ["--data", "stream"])
@pytest.mark.parametrize("name", ['"a\nb\nc"', "a" * 4000, '"\x1b[2J\x85\u2028"'])
def test_names_of_columns_that_are_shown(first, name, files):
    """Names with line breaks, of any length, and with what a terminal obeys."""
    folder, _, _ = files
    (folder / "t.csv").write_text(f"{name},k\n1,2\n3,4\n")
    status, _, errors = check_command(folder, first, "t.csv", "--target", "y")
    assert status == 2 and "no column 'y'" in errors
    assert errors[:-1].isprintable()


@pytest.mark.parametrize("target", ["y", "k"])
def test_texts_that_are_no_utf8(target, files):
    """As a feature and as labels; pyarrow finds them late."""
    pa = pytest.importorskip("pyarrow", reason="test extra not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    folder, _, _ = files
    texts = pa.array([b"blue", b"re\xff"] * 30).view(pa.string())
    data = {"a": np.arange(60), "k": texts, "y": ["yes", "no"] * 30}
    pq.write_table(pa.table(data), folder / "t.parquet")
    status, _, _ = check_command(folder, "stream", "t.parquet", "--target", target)
    assert status == 2
    model = FenchelYoungOnlineClassifier()
    with pytest.raises(ValueError) as caught:
        model.play_batches(folder / "t.parquet", target=target, classes="grow")
    assert type(caught.value) is ValueError and one_line(str(caught.value))


def test_offsets_of_a_feather_file_that_point_anywhere(files):
    """Not read: they would be what is beside the file's bytes in memory."""
    pa = pytest.importorskip("pyarrow", reason="test extra not installed")
    ipc = pytest.importorskip("pyarrow.ipc")
    folder, _, raw = files
    content = raw["feather"]
    with ipc.open_file(pa.BufferReader(content)) as reader:
        column = reader.get_batch(0).column(2)
    offsets = column.buffers()[1].to_pybytes()[: 4 * 21]
    assert content.count(offsets) == 1
    far = np.frombuffer(offsets, dtype=np.int32).copy()
    far[7:] += 2**28
    (folder / "t.feather").write_bytes(content.replace(offsets, far.tobytes()))
    status, _, errors = check_command(folder, "stream", "t.feather", "--target", "y")
    assert status == 2 and "not readable" in errors


# ---------------------------------------------------------------- states of procedures

FINITE = [0.1 * 0.9**k for k in range(40)]
PROCEDURES = [
    LORD(0.1), LORD(0.2, gamma="power", w0=0.15), LORD(0.1, horizon=60),
    LORD(0.1, gamma=FINITE), LORDPrime(0.1), LORDPrime(0.1, lag=2),
    LORDPlusPlus(0.1), LORDPlusPlus(0.1, gamma="power"),
    LORDPlusPlus(0.1, memory=0.9), LORDPlusPlus(0.1, gamma=FINITE),
    AlphaSpending(0.1), SAFFRON(0.1), SAFFRON(0.1, gamma=FINITE), ADDIS(0.1),
    ADDIS(0.1, lag=3), AlphaInvesting(0.1), LOND(0.1), LOND(0.1, dependent=True),
    ELOND(0.1), Uncorrected(0.1),
]  # fmt: skip
IDS = [f"{k}-{type(item).__name__}" for k, item in enumerate(PROCEDURES)]
KINDS = {type(item).__name__: type(item) for item in PROCEDURES}


def some_value(draw, kind):
    """Return a p-value, or an e-value, as of a study with discoveries."""
    value = draw.random() ** draw.choice((1, 1, 1, 8, 30))
    return 1.0 / max(value, 1e-12) if kind is ELOND else value


def lived(item, draw):
    """Return a procedure after some tests, a third of them with tests that go on."""
    found = type(item)(**item.get_params())
    way = draw.choice(("plain", "plain", "running", "weights"))
    if way == "running" and item.get_params().get("memory", 1.0) < 1.0:
        way = "plain"
    running = []
    for _ in range(draw.choice((0, 1, 3, 20, 200))):
        weight = draw.choice((1.0, 0.5, 3.0)) if way == "weights" else 1.0
        if way == "running" and draw.random() < 0.5:
            running.append(found.begin(weight))
        elif running and draw.random() < 0.8:
            place = draw.randrange(len(running))
            found.finish(running.pop(place), some_value(draw, type(item)))
        else:
            found.test(some_value(draw, type(item)), weight)
    return found


def load(kind, state, *others):
    """Return what a state is of, or None where it is refused in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Of w0 close to its ends.
            warnings.filterwarnings("ignore", "w0=.* is close to", UserWarning)
            return kind.from_dict(state, *others)
    except (ValueError, TypeError) as error:
        assert type(error) in (ValueError, TypeError)
        assert one_line(str(error)), str(error)[:2000]
        return None


class Audit:
    """What a procedure may spend, by the rule of its paper, and what tests have cost.

    Begins with what a state says: sums so far, and the tests that go on.

    Parameters
    ----------
    state : dict
    params : dict
    """

    def __init__(self, state, params):
        self.kind, self.params = state["procedure"], params
        self.alpha = self.params["alpha"]
        w0 = self.params.get("w0")
        self.w0 = 0.5 * self.alpha if w0 is None else w0
        self.n, self.R, own = state["n_tests"], state["n_rejections"], state["state"]
        self.memory = self.params.get("memory", 1.0)
        self.spent = state["spent"]
        self.waiting = {entry[0]: entry[1:] for entry in state.get("pending", [])}
        self.lag = self.params.get("lag", 0)
        self.recent = own.get("remembered", 0.0)
        if self.kind == "LORDPrime":
            self.spent -= own["spent_at_tau"]
        if self.kind in ("LOND", "ELOND"):
            self.spent = own["shares"]
        self.adaptive = self.kind in ("SAFFRON", "ADDIS", "AlphaInvesting")
        if self.adaptive:
            # Those that wait count, until it is known that they do not.
            self.spent += sum(self.cost(level) for level, *_ in self.waiting.values())

    def cost(self, level):
        if self.kind in ("LOND", "ELOND"):
            size = self.alpha * (self.R + 1)
            if self.params.get("dependent"):
                size /= sum(1.0 / j for j in range(1, self.n + 1))
            return level / size
        if self.kind == "SAFFRON":
            return level / (1.0 - self.params["lam"])
        if self.kind == "ADDIS":
            return level / (self.params["tau"] - self.params["lam"])
        return level / (1.0 - level) if self.kind == "AlphaInvesting" else level

    def begin(self, level):
        assert 0.0 <= level <= 1.0
        self.n += 1
        self.spent = self.memory * self.spent + self.cost(level)
        self.recent *= self.memory
        self.waiting[self.n] = [level, None, None]
        self.check()
        if self.lag:
            self.release(None)

    def end(self, number, rejected, p):
        self.waiting[number][1:] = rejected, p
        self.release(number)
        self.check()

    def release(self, number):
        for other in sorted(self.waiting):
            level, rejected, p = self.waiting[other]
            late = other > self.n - self.lag if self.lag else other != number
            if rejected is None or late:
                continue
            del self.waiting[other]
            self.R += rejected
            self.recent += rejected
            if self.adaptive and not self.counts(rejected, p):
                self.spent -= self.cost(level)
            if self.kind == "LORDPrime" and rejected:
                self.spent = 0.0

    def counts(self, rejected, p):
        if self.kind == "SAFFRON":
            return p > self.params["lam"]
        if self.kind == "ADDIS":
            return self.params["lam"] < p <= self.params["tau"]
        return not rejected

    def budget(self):
        if self.kind == "Uncorrected":
            # There is none; with weights levels are at most 1.
            return self.n
        if self.kind in ("AlphaSpending", "LORDPrime"):
            return self.alpha
        if self.kind in ("LOND", "ELOND"):
            return 1.0
        if self.kind == "LORD":
            return self.w0 + (self.alpha - self.w0) * self.R
        if self.memory < 1.0:
            return self.alpha * max(self.recent, 1.0)
        return self.alpha * self.R if self.R else self.w0

    def check(self):
        assert self.spent <= self.budget() * (1.0 + 1e-6) + 1e-15


def check_budget(procedure, state, draw, n=30):
    """Go on from a state that was accepted; whatever comes is within the budget."""
    audit = Audit(state, procedure.get_params())
    audit.check()
    for number, entry in sorted(audit.waiting.items()):
        if entry[1] is None and draw.random() < 0.5:
            p = some_value(draw, type(procedure))
            audit.end(number, procedure.finish(number, p), p)
    # At most a test that goes on, for those with a memory.
    most = 1 if audit.memory < 1.0 else 4
    weighted = draw.random() < 0.3
    spend = draw.random() < 0.5
    for _ in range(n):
        if audit.memory < 1.0 and audit.waiting:
            break
        weight = draw.choice((1.0, 100.0)) if weighted else 1.0
        running = [procedure.begin(weight) for _ in range(draw.randrange(1, most + 1))]
        if weight == 1.0 and len(running) == 1:
            assert running[0].level <= 1.0
        for one in running:
            audit.begin(one.level)
        for one in running:
            # Found or not, and of those that are charged.
            p = some_value(draw, type(procedure)) if draw.random() < 0.3 else 0.4
            if spend:
                p = 0.4
            audit.end(one.number, procedure.finish(one, p), p)
    for name in ("next_level_", "wealth_", "fdp_estimate_"):
        assert not np.isnan(getattr(procedure, name))


@pytest.mark.parametrize("item", PROCEDURES, ids=IDS)
@fuzz(40)
@given(seed=SEEDS)
def test_damaged_states_of_procedures(item, seed):
    draw = random.Random(seed)
    state = json.loads(json.dumps(lived(item, draw).to_dict()))
    bad = damage_tree(state, draw)
    given_state = copy.deepcopy(bad)
    found = load(KINDS[type(item).__name__], bad)
    # Reading changes nothing in what is read. (nan is not equal to itself.)
    assert repr(bad) == repr(given_state)
    if found is not None:
        check_budget(found, bad, draw)


@pytest.mark.parametrize("item", PROCEDURES, ids=IDS)
def test_states_of_procedures_are_accepted(item):
    """Those that are not damaged, and they are within the budget of the audit."""
    for seed in range(12):
        draw = random.Random(seed)
        procedure = lived(item, draw)
        state = json.loads(json.dumps(procedure.to_dict()))
        found = load(type(item), state)
        assert found is not None
        assert found.to_dict() == procedure.to_dict()
        check_budget(found, state, draw)


@pytest.mark.parametrize("item", PROCEDURES, ids=IDS)
def test_every_value_at_every_place(item):
    """Each node of a state, and every kind of value in its place."""
    draw = random.Random(3)
    found = type(item)(**item.get_params())
    for _ in range(6):
        found.test(some_value(draw, type(item)))
    if found.get_params().get("memory", 1.0) == 1.0:
        found.begin()
    state = json.loads(json.dumps(found.to_dict()))
    for path in places(state):
        for value in (*VALUES, nested(500)):
            bad = replaced(state, path, value)
            again = load(type(item), bad)
            if again is not None:
                check_budget(again, bad, draw, 3)


def study_state(item, n=40):
    """Return the state after tests one by one, with discoveries."""
    found = type(item)(**item.get_params())
    for k in range(n):
        # Some are candidates of SAFFRON, some are discarded by ADDIS.
        p = 1e-9 if k % 10 == 3 else 0.4 if k % 2 else 0.7
        found.test(1.0 / p if isinstance(item, ELOND) else p)
    return json.loads(json.dumps(found.to_dict()))


# What a stranger might do to spend more, after 40 tests with 4 discoveries.
FORGED = {
    "spent less": lambda s: s.update(spent=0.5 * s["spent"]),
    "nothing spent": lambda s: s.update(spent=0.0),
    "spent is a loan": lambda s: s.update(spent=-1.0),
    "lost a lot": lambda s: s.update(lost=0.5),
    "lost the other way": lambda s: s.update(lost=-0.5),
    "more discoveries": lambda s: s.update(n_rejections=s["n_rejections"] + 5),
    "more of them than tests": lambda s: s.update(n_rejections=41),
    "fewer tests": lambda s: s.update(n_tests=s["n_tests"] - 7),
    "no tests": lambda s: s.update(n_tests=0),
    "another alpha": lambda s: s["params"].update(alpha=0.15),
    "another gamma": lambda s: s["params"].update(gamma=[0.9]),
    "another w0": lambda s: s["params"].update(w0=0.09),
    "a later rejection": lambda s: s["state"].update(tau=39),
    "one in the future": lambda s: s["state"].update(tau=45),
    "wealth at the last one": lambda s: s["state"].update(
        wealth_at_tau=2.0 * s["state"]["wealth_at_tau"]
    ),
    "spent before the last one": lambda s: s["state"].update(
        spent_at_tau=1.3 * s["state"]["spent_at_tau"]
    ),
    "a later first one": lambda s: s["state"].update(first=s["state"]["first"] + 3),
    "rejections in the future": lambda s: s["state"].update(recent=[14, 24, 50]),
    "later rejections": lambda s: s["state"].update(recent=[37, 38, 39]),
    "rejections without order": lambda s: s["state"]["recent"].reverse(),
    "rejections that count twice": lambda s: s["state"].update(counts=[2.0, 2.0, 2.0]),
    "groups from nowhere": lambda s: s["state"].update(
        groups=[{"first": 1, "last": 9, "points": [5.0], "weights": [9.0]}]
    ),
    "fewer tests that count": lambda s: s["state"].update(used=s["state"]["used"] - 5),
    "remembers more": lambda s: s["state"].update(
        remembered=s["state"]["remembered"] + 1.0
    ),
    "smaller shares": lambda s: s["state"].update(shares=0.1 * s["state"]["shares"]),
    "a smaller harmonic sum": lambda s: s["state"].update(harmonic=1.0),
    "a level that is pending": lambda s: s.update(pending=[[40, 0.9, None, None]]),
}
# What levels do not depend on, and no number of the state contradicts. Where tests
# overlap, levels are less than the state's numbers say, by what is not in the state.
NO_MATTER = {
    ("another gamma", "AlphaSpending"), ("another gamma", "Uncorrected"),
    ("more discoveries", "AlphaSpending"), ("more discoveries", "Uncorrected"),
    ("more discoveries", "LORDPrime"), ("more discoveries", "LOND"),
    ("more discoveries", "ELOND"), ("spent less", "LOND"),
    ("spent before the last one", "LORDPrime"), ("fewer tests", "SAFFRON"),
    ("fewer tests", "ADDIS"), ("another alpha", "LOND"), ("another alpha", "ELOND"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("item", PROCEDURES, ids=IDS)
def test_states_that_spend_more_are_refused(name, item):
    state = study_state(item)
    before = copy.deepcopy(state)
    try:
        FORGED[name](state)
    except KeyError:
        # Other procedures have no such entry.
        return
    known = set(item._get_param_names())
    if state == before or not set(state["params"]) <= known:
        return
    if set(state["state"]) != set(before["state"]):
        # Entries that are not read change nothing.
        assert load(type(item), state).to_dict() == before
        return
    found = load(type(item), state)
    if found is None:
        return
    overlap = isinstance(item, ADDIS) and item.lag
    assert overlap or (name, type(item).__name__) in NO_MATTER
    check_budget(found, state, random.Random(0))


# ------------------------------------------------- states of experiments and others


def batches_state(draw):
    found = BatchBH(draw.choice((0.05, 0.2)), gamma=draw.choice(("power", "log")))
    for _ in range(draw.choice((0, 1, 4, 9))):
        found.test([draw.random() ** draw.choice((1, 20)) for _ in range(20)])
    return json.loads(json.dumps(found.to_dict()))


@fuzz(150)
@given(seed=SEEDS)
def test_damaged_states_of_batches(seed):
    """Of alpha no more is spent than gamma allows, whatever comes."""
    draw = random.Random(seed)
    state = damage_tree(batches_state(draw), draw)
    found = load(BatchBH, state)
    if found is None:
        return
    for _ in range(6):
        found.test([draw.random() ** draw.choice((1, 20)) for _ in range(5)])
        batches = found.to_dict()["batches"]
        R = sum(found for _, found, _ in batches)
        spent = sum(level * m / (m + R - r) for level, r, m in batches if m)
        share = sum(found._gamma_[s] for s in range(1, len(batches) + 1))
        assert spent <= found.alpha * share * (1.0 + 1e-6)


def test_forged_batches_are_refused():
    """Levels that the batches before did not leave."""
    found = BatchBH(0.1)
    for _ in range(3):
        found.test([1e-4, 0.3, 1e-3, 0.5])
    state = found.to_dict()
    assert load(BatchBH, state).to_dict() == state
    for k in range(3):
        for factor in (0.1, 3.0):
            bad = copy.deepcopy(state)
            bad["batches"][k][0] *= factor
            assert load(BatchBH, bad) is None
    for change in ([0.5, 2, 1], [0.05, -1, 2], [0.0, 0, 3], [0.05, 1], [0.05, 1.5, 2]):
        assert load(BatchBH, {**state, "batches": [change]}) is None


EXPERIMENTS = {
    "normal": {"sigma": 1.0}, "each sigma": {"sigma": [1.0, 2.0, 0.5]},
    "binary": {"rewards": "binary", "max_pulls": 500},
    "bounded": {"rewards": "bounded", "bounds": [-1.0, 2.0], "epsilon": 0.1},
    "estimated": {}, "covariate": {"covariate_mean": 0.0},
    "coefficient": {"covariate_coef": 0.5}, "ratio": {"ratio": True},
    "thesis": {"evidence": "lil", "sigma": 1.0, "max_pulls": 400},
    "names": {"n_arms": ["a", "b", "c"], "rewards": "binary", "weights": [0.7, 0.3]},
}  # fmt: skip


def go_on(test, draw, n=30):
    """Ask and tell, or observe, as far as the test takes it."""
    rng = np.random.default_rng(draw.randrange(2**32))
    arms = rng.integers(0, len(test.counts_), n)
    low, high = map(float, test.bounds) if test.rewards != "normal" else (0.0, 1.0)
    rewards = low + (high - low) * rng.integers(0, 2, n) * 1.0
    if test.rewards == "normal":
        rewards = rng.normal(0.3 * arms, 0.5)
    others = {}
    if test.covariate_coef is not None or test.covariate_mean is not None:
        others["covariates"] = rng.normal(size=n)
    if test.ratio:
        others["denominators"] = rng.integers(1, 4, n) * 1.0
    if test._asked_ is not None:
        asked = test.ask()
        test.tell(asked, rewards[: len(asked)])
        return test
    names = test._settings_.names
    named = arms if names is None else [names[arm] for arm in arms]
    return test.observe(named, rewards, **others)


def experiment_state(name, draw):
    given = {"n_arms": 3, "random_state": draw.choice((None, 1)), **EXPERIMENTS[name]}
    if draw.random() < 0.3:
        kind = draw.choice(("PCG64", "Philox", "MT19937", "SFC64"))
        bits = getattr(np.random, kind)(draw.randrange(100))
        given["random_state"] = np.random.Generator(bits)
    found = BestArmTest(**given)
    for _ in range(draw.choice((0, 1, 2))):
        go_on(found, draw, draw.choice((1, 5, 400)))
    if draw.random() < 0.5 and not found.done_:
        found.ask()
    return json.loads(json.dumps(found.to_dict()))


def check_experiment(test, draw):
    """Look at all that a test knows, and go on."""
    before = test.log_p_value_
    assert before <= 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for _ in range(2):
            try:
                go_on(test, draw)
            except ValueError as error:
                # Rewards that the parameters do not allow, say.
                assert str(error)
        assert not np.isnan(test.log_p_value_)
        assert test.log_p_value_ <= before + 1e-12
        p_values = test.p_values_[1:]
        assert ((p_values >= 0.0) & (p_values <= 1.0)).all()
        if test.evidence == "eprocess":
            assert (test.evalues_[1:] >= 0.0).all()
        assert test.recommendation_ in range(len(test.counts_)) or test.recommendation_
        lower, upper = test.lift_intervals()
        assert (lower[1:] <= upper[1:]).all()
        assert len(json.dumps(test.to_dict())) > 10


@pytest.mark.parametrize("name", EXPERIMENTS)
@fuzz(40)
@given(seed=SEEDS)
def test_damaged_states_of_experiments(name, seed):
    draw = random.Random(seed)
    state = experiment_state(name, draw)
    bad = damage_tree(state, draw)
    found = load(BestArmTest, bad)
    if found is not None:
        check_experiment(found, draw)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_states_of_experiments_are_accepted(name):
    for seed in range(20):
        state = experiment_state(name, random.Random(seed))
        found = load(BestArmTest, state)
        assert found is not None
        assert json.loads(json.dumps(found.to_dict())) == state
        check_experiment(found, random.Random(seed))


IMPOSSIBLE = {
    "p-values without rewards": lambda s: s.update(log_peaks=[9.0, 9.0]),
    "half a reward": lambda s: s["counts"].__setitem__(1, 0.5),
    "fewer than none": lambda s: s["counts"].__setitem__(1, -1.0),
    "more than there are": lambda s: s["sums"].__setitem__(1, 1e9),
    "more arms": lambda s: s["params"].update(n_arms=4),
    "as many as memory has not": lambda s: s["params"].update(n_arms=10**12),
    "another evidence": lambda s: s["params"].update(evidence="lil"),
    "an arm beyond": lambda s: s.update(certified=3),
    "an arm below": lambda s: s.update(certified=-1),
    "arms that nobody has": lambda s: s.update(asked=[7]),
    "a generator of none": lambda s: s.update(rng={"bit_generator": "os"}),
    "another generator": lambda s: s.update(rng={"bit_generator": "PCG64"}),
    "a generator with half a state": lambda s: s.update(
        rng={"bit_generator": "PCG64", "state": {"state": 1}}
    ),
    "an end that is none": lambda s: s.update(until="never"),
    "a word for a truth": lambda s: s.update(done="no"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_states_that_no_experiment_has_are_refused(name):
    test = BestArmTest(3, rewards="binary", max_pulls=10**6, random_state=0)
    if name != "p-values without rewards":
        go_on(test, random.Random(0))
    state = json.loads(json.dumps(test.to_dict()))
    assert load(BestArmTest, state) is not None
    IMPOSSIBLE[name](state)
    assert load(BestArmTest, state) is None


@pytest.mark.parametrize(
    "bounds", [[0, 10**400], ["0", 1], [float("nan"), 1], [[0], 1], 5, [0, 1, 2]]
)
@pytest.mark.parametrize("rewards", ["normal", "binary"])
def test_bounds_that_are_none(bounds, rewards):
    """In a state, and as a parameter, where rewards have any."""
    state = BestArmTest(2, rewards=rewards).to_dict()
    state["params"]["bounds"] = bounds
    if rewards == "binary":
        assert load(BestArmTest, state) is None
        with pytest.raises(ValueError, match="bounds must be two finite numbers"):
            BestArmTest(2, rewards=rewards, bounds=bounds).ask()
        return
    # No rewards are compared with them.
    test = BestArmTest(2, bounds=bounds)
    test.tell(test.ask(), [0.5])
    assert test.p_value_ == 1.0


@pytest.mark.parametrize("options", [{}, {"evidence": "lil", "max_pulls": 100}])
def test_improvements_beyond_rewards(options):
    """Larger ones made e-values of nan."""
    for value in (1e308, 1.1e150, 10**400, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="epsilon must be a number from 0 to 1e"):
            BestArmTest(2, sigma=1.0, epsilon=value, **options).ask()
    for sigma in (1e-145, 1.0, 1e145):
        test = BestArmTest(2, sigma=sigma, epsilon=1e150, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            test.observe([0, 1, 1, 0], [0.5, 1.0, -1.0, 2.0])
            assert test.p_value_ == 1.0
            assert options or (test.evalues_[1:] < 1e-3).all()


@pytest.mark.parametrize("name", ["horizon", "lag"])
def test_parameters_beyond_doubles(name):
    for value in (10**400, 2**53 + 1):
        with pytest.raises(ValueError, match=rf"{name} must be an? .*integer"):
            _ = LORD(**{name: value}).next_level_
    assert LORD(**{name: 2**53}).next_level_ > 0.0


def test_arrays_of_gamma_forget():
    """Rejections that are older than the array are not in the state."""
    procedure = SAFFRON(0.5, gamma=[0.5, 0.25, 0.1])
    for _ in range(12):
        procedure.test(1e-9)
        procedure.test(0.9)
    state = json.loads(json.dumps(procedure.to_dict()))
    assert len(state["state"]["recent"]) < 11
    assert load(SAFFRON, state).to_dict() == state


STUDIES = {
    "default": {"rewards": "binary"},
    "overlap": {"rewards": "binary", "overlap": True},
    "spending": {"rewards": "binary", "procedure": LORDPlusPlus(0.2)},
    "e-values": {"rewards": "binary", "procedure": ELOND(0.2)},
    "thesis": {"evidence": "lil", "sigma": 0.5},
    "overlap of LORD": {"rewards": "binary", "overlap": True, "procedure": LORD(0.2)},
}


def study_of(name, draw, n=4):
    """Return a study with some discoveries, and maybe experiments that are open."""
    study = MABFDR(max_pulls=300, random_state=0, **STUDIES[name])
    overlap = STUDIES[name].get("overlap", False)
    rng = np.random.default_rng(draw.randrange(2**32))
    waiting = []
    for k in range(n):
        test = study.begin(2)
        good = rng.random(200) < np.tile([0.05, 0.9 if k % 2 else 0.05], 100)
        test.observe([0, 1] * 100, good * 1.0)
        if overlap and draw.random() < 0.4:
            waiting.append(test)
        else:
            study.finish(test)
    for test in waiting[:1]:
        study.finish(test)
    if draw.random() < 0.5 and not (waiting and not overlap):
        study.begin(2)
    return study


def check_study(study, draw):
    state = study.to_dict()["procedure"]
    assert study.history_ is not None and study.report() is not None
    audit = Audit(state, study._procedure_.get_params())
    audit.check()
    for _ in range(3):
        for number, test in list(study.open_experiments_.items()):
            p = np.nanmax(test.evalues_) if audit.kind == "ELOND" else test.p_value_
            audit.end(number, study.finish(test), p)
        test = study.begin(2)
        (number,) = study.open_experiments_
        audit.begin(study._open_[number][1])


@pytest.mark.parametrize("name", STUDIES)
@fuzz(30)
@given(seed=SEEDS)
def test_damaged_states_of_studies(name, seed):
    draw = random.Random(seed)
    state = STATES[name][draw.randrange(len(STATES[name]))]
    bad = damage_tree(state, draw)
    found = load(MABFDR, bad)
    if found is not None:
        check_study(found, draw)


STATES = {
    name: [
        json.loads(json.dumps(study_of(name, random.Random(k), k).to_dict()))
        for k in (0, 1, 4, 6)
    ]
    for name in STUDIES
}


@pytest.mark.parametrize("name", STUDIES)
def test_states_of_studies_are_accepted(name):
    for k in range(8):
        study = study_of(name, random.Random(k), k)
        state = json.loads(json.dumps(study.to_dict()))
        found = load(MABFDR, state)
        assert found is not None
        assert json.loads(json.dumps(found.to_dict())) == state
        check_study(found, random.Random(k))


REWRITTEN = {
    "a discovery that was none": lambda s: s["history"][0].update(rejected=True),
    "none that was a discovery": lambda s: s["history"][1].update(rejected=False),
    "a smaller p-value": lambda s: s["history"][0].update(
        p_value=1e-9, log_p_value=float(np.log(1e-9)), rejected=True
    ),
    "a larger level": lambda s: s["history"][2].update(level=0.09),
    "a p-value of its own": lambda s: s["history"][0].update(p_value=0.5),
    "a better estimate": lambda s: s["history"][3].update(fdp_estimate=0.0),
    "more wealth by then": lambda s: s["history"][3].update(wealth=0.5),
    "rewards that are none": lambda s: s["history"][0].update(n_pulls={}),
    "an arm that is none": lambda s: s["history"][0].update(recommendation=2),
    "a lift of words": lambda s: s["history"][0].update(lift_interval=["a", "b"]),
    "a seed of words": lambda s: s["open"][0][2]["params"].update(random_state="1"),
    "an experiment less": lambda s: s["history"].pop(),
    "an experiment twice": lambda s: s["history"].__setitem__(0, s["history"][1]),
    "a procedure that forgets": lambda s: s.update(procedure={**ADDIS(0.05).to_dict()}),
    "another procedure": lambda s: s.update(
        procedure=json.loads(json.dumps(lived(LORD(0.05), random.Random(1)).to_dict()))
    ),
    "another alpha": lambda s: s["procedure"]["params"].update(alpha=0.06),
    "weights that were none": lambda s: s["procedure"].update(weighted=True, spent=0.0),
    "more wealth": lambda s: s["procedure"].update(spent=0.0),
    "an experiment that nobody began": lambda s: s["open"].append(s["open"][0]),
    "a level for the open one": lambda s: s["open"][0].__setitem__(1, 0.5),
    "more discoveries": lambda s: s["procedure"].update(
        n_rejections=s["procedure"]["n_rejections"] + 1
    ),
    "another number": lambda s: s["open"][0].__setitem__(0, 9),
    "open ones forgotten": lambda s: s.update(open=[]),
    "open ones as of the first version": lambda s: s.update(open=s["open"][0][2]),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_studies_whose_history_says_otherwise_are_refused(name):
    study = study_of("spending", random.Random(0), 4)
    if not study.open_experiments_:
        study.begin(2)
    state = json.loads(json.dumps(study.to_dict()))
    assert [entry["rejected"] for entry in state["history"]] == [False, True] * 2
    assert load(MABFDR, state) is not None
    REWRITTEN[name](state)
    assert load(MABFDR, state) is None


class Zeros:
    """A classifier that says 0."""

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def monitor_state(draw):
    found = VoteMonitor(Zeros(), draw.choice((0.05, 0.3)), draw.choice((0.05, 1e-3)))
    n = draw.choice((0, 1, 50))
    if n:
        y = [int(draw.random() < draw.choice((0.05, 0.9))) for _ in range(n)]
        found.update(np.zeros((n, 1)), y)
    return json.loads(json.dumps(found.to_dict()))


@fuzz(100)
@given(seed=SEEDS)
def test_damaged_states_of_monitors(seed):
    draw = random.Random(seed)
    bad = damage_tree(monitor_state(draw), draw)
    found = load(VoteMonitor, bad, Zeros())
    if found is None:
        return
    assert 0 <= found.n_errors_ <= found.n_seen_
    reached = found.log_evalue_ >= -np.log(found.alpha)
    assert found.alarm_ >= reached
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.update(np.zeros((3, 1)), [0, 1, 0])


def test_monitors_that_cannot_be_are_refused():
    """Alarms that the errors do not raise, and errors without the alarm."""
    monitor = VoteMonitor(Zeros(), 0.05).update(np.zeros((50, 1)), np.ones(50, int))
    state = monitor.to_dict()
    assert state["alarm"] and load(VoteMonitor, state, Zeros()) is not None
    for change in (
        {"alarm": False}, {"n_errors": 0}, {"n_errors": 51}, {"n_seen": True},
        {"n_seen": 10**400}, {"alarm": "yes"}, {"bound": "0.05"}, {"alpha": None},
        {"bound": float("nan")},
    ):  # fmt: skip
        assert load(VoteMonitor, {**state, **change}, Zeros()) is None
    assert load(VoteMonitor, [], Zeros()) is None


# -------------------------------------------------------------------- texts of states


@fuzz(150)
@given(seed=SEEDS)
def test_damaged_texts_of_states(seed):
    """Of keys that are there twice the last counts; what JSON reads is read."""
    draw = random.Random(seed)
    item = draw.choice(PROCEDURES)
    text = json.dumps(lived(item, draw).to_dict())
    if draw.random() < 0.5:
        text = damage_text_of_json(text, draw)
    else:
        text = damage_bytes(text.encode(), draw).decode(errors="replace")
    try:
        state = json.loads(text)
    except ValueError:
        return
    found = load(type(item), state)
    if found is not None:
        check_budget(found, state, draw)


@pytest.mark.parametrize(
    "kind", [*KINDS.values(), BatchBH, BestArmTest, MABFDR], ids=lambda k: k.__name__
)
def test_what_is_no_state(kind):
    for value in (*VALUES, nested(900), {"procedure": nested(900)}, {1: 2}):
        assert load(kind, value) is None
    for name in ("params", "state", "history", "procedure", "counts", "batches"):
        state = {"procedure": kind.__name__, "params": {}, name: nested(900)}
        assert load(kind, state) is None


HOOKED = """
import json, random, sys
sys.path.insert(0, sys.argv[1])
import test_damaged as t
from skbounds.sequential import MABFDR

seen = []
def watch(event, args):
    if event == "open" and not set("wax+") & set(str(args[1] or "r")):
        return
    if event.startswith(("exec", "compile", "import", "open", "os.", "subprocess",
                         "socket", "pickle", "ctypes", "code", "marshal", "shutil")):
        seen.append((event, str(args)[:200]))

def load(seeds):
    for seed in seeds:
        draw = random.Random(seed)
        item = draw.choice(t.PROCEDURES)
        state = json.loads(json.dumps(t.lived(item, draw).to_dict()))
        t.load(type(item), t.damage_tree(state, draw))
        name = draw.choice(list(t.EXPERIMENTS))
        t.load(t.BestArmTest, t.damage_tree(t.experiment_state(name, draw), draw))
        name = draw.choice(list(t.STATES))
        t.load(MABFDR, t.damage_tree(draw.choice(t.STATES[name]), draw))
        t.load(t.VoteMonitor, t.damage_tree(t.monitor_state(draw), draw), t.Zeros())
        t.load(t.BatchBH, t.damage_tree(t.batches_state(draw), draw))

# What is imported on first use, by errors as well.
load(range(60))
sys.addaudithook(watch)
open("written", "w").close()
load(range(1000, 1000 + int(sys.argv[2])))
assert seen.pop(0)[0] == "open", "the hook does not see what is written"
print(seen)
"""


def run_hooked(tmp_path, n):
    found = subprocess.run(
        [sys.executable, "-c", HOOKED, str(Path(__file__).parent), str(n)],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout == "[]\n", found.stdout[:2000]
    assert os.listdir(tmp_path) == ["written"]


@pytest.mark.slow
def test_states_run_no_code(tmp_path):
    """Nothing is executed, imported, written or sent while damaged states are read."""
    run_hooked(tmp_path, 600)


# ------------------------------------------------------------- checkpoints and pickles


@pytest.fixture(scope="module")
def checkpoint(files):
    folder, texts, _ = files
    (folder / "c.csv").write_text(texts[","])
    arguments = ["stream", "c.csv", "--target", "y", "--checkpoint", "kept", "--json"]
    assert call(*arguments)[0] == 0
    content = (folder / "kept").read_bytes()
    (folder / "kept").unlink()
    return folder, arguments, content


@fuzz(60)
@given(seed=SEEDS)
def test_damaged_checkpoints(seed, checkpoint):
    folder, arguments, content = checkpoint
    bad = damage_bytes(content, random.Random(seed))
    (folder / "c.csv").write_text(files_text())
    (folder / "kept").write_bytes(bad)
    try:
        status, _, _ = check_command(folder, *arguments)
        assert (status == 0) == (bad == content)
    finally:
        (folder / "kept").unlink()


def files_text():
    return table().to_csv(index=False)


@fuzz(60)
@given(seed=SEEDS)
def test_checkpoints_that_hold_something_else(seed, checkpoint):
    """Of the right form, with entries missing, of another kind or version."""
    import hashlib

    folder, arguments, content = checkpoint
    draw = random.Random(seed)
    begin = len(b"skbounds stream\n")
    found = pickle.loads(content[begin + 32 :])
    what = draw.choice(("format", "fixed", "n_rows", "state", "batches", "all"))
    value = draw.choice((*VALUES, nested(50)))
    if what == "all":
        found = value
    elif draw.random() < 0.3:
        del found[what]
    elif what == "batches" and draw.random() < 0.5:
        found[what][draw.choice(("asked", "names", "plan"))] = value
    elif what == "fixed" and draw.random() < 0.5:
        found[what][draw.choice(list(found[what]))] = value
    else:
        found[what] = value
    body = pickle.dumps(found)
    digest = hashlib.sha256(body).digest()
    (folder / "c.csv").write_text(files_text())
    (folder / "kept").write_bytes(content[:begin] + digest + body)
    try:
        check_command(folder, *arguments, checkpoint=folder / "kept")
    finally:
        (folder / "kept").unlink()


def test_states_of_pickles():
    """Of another kind, without a version, or with a version that is none."""
    for value in (None, 5, "state", [1], [("alpha", 1)]):
        with pytest.raises(TypeError, match="state of LORD must be a dict; got"):
            LORD.__new__(LORD).__setstate__(value)
    state = LORD(0.1).__getstate__()
    with pytest.raises(ValueError, match=r"LORD lacks the parameters \['alpha'"):
        less = {name: value for name, value in state.items() if name != "alpha"}
        LORD.__new__(LORD).__setstate__(less)
    for version in ("99.0", "", None, 5, "0.1\n"):
        with pytest.warns(UserWarning, match="when using version"):
            LORD.__new__(LORD).__setstate__({**state, "_skbounds_version": version})


@fuzz(60)
@given(seed=SEEDS)
def test_truncated_pickles(seed):
    """Are an error of pickle's, or what they were before their end."""
    draw = random.Random(seed)
    content = pickle.dumps(lived(draw.choice(PROCEDURES), draw), protocol=5)
    end = draw.randrange(len(content))
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        pickle.loads(content[:end])


# ------------------------------------------------------------------------- processes


def command(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "skbounds", *arguments], cwd=folder,
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("level", ["nonsense", "é", "v3\n", "x" * 5000, "-1"])
def test_unknown_cpu_levels(level, tmp_path):
    """The environment variable is named, in a line."""
    (tmp_path / "t.csv").write_text(files_text())
    arguments = ("stream", "t.csv") if level != "-1" else ("--data", "t.csv")
    found = command(tmp_path, *arguments, "--target", "y", SKBOUNDS_CPU_LEVEL=level)
    assert found.returncode == 2
    assert one_line(found.stderr) and "SKBOUNDS_CPU_LEVEL must be one" in found.stderr
    assert os.listdir(tmp_path) == ["t.csv"]


def test_output_of_another_encoding(tmp_path):
    """Names of columns that the terminal does not have are written as numbers."""
    data = table().rename(columns={"a": "größe"})
    # Left out, which is said, with its name.
    data["größe"] = [f"é{k}" for k in range(len(data))]
    (tmp_path / "t.csv").write_bytes(data.to_csv(index=False).encode())
    found = command(
        tmp_path, "stream", "t.csv", "--target", "y", PYTHONIOENCODING="ascii"
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert "gr\\xf6\\xdfe (60 texts)" in found.stdout


@pytest.mark.slow
def test_damaged_files_of_real_commands(tmp_path):
    """As people run them, the tour's fits included."""
    raw = {kind: file_of(kind) for kind in ("csv", "parquet", "feather")}
    statuses = []
    for seed in range(24):
        draw = random.Random(seed)
        kind = draw.choice(("csv", "csv", "parquet", "feather"))
        content = damage_bytes(raw[kind], draw)
        if kind == "csv":
            content = damage_csv(raw[kind].decode(), draw)
        (tmp_path / f"t.{kind}").write_bytes(content)
        before = listing(tmp_path)
        given_kind = ["stream", f"t.{kind}"]
        if kind == "csv" and seed % 3 == 0:
            given_kind = ["--data", "t.csv"]
        found = command(tmp_path, *given_kind, "--target", "y", "--json")
        statuses.append(found.returncode)
        assert found.returncode in (0, 2), found.stderr[-2000:]
        assert "Traceback" not in found.stderr
        if found.returncode == 2:
            assert one_line(found.stderr), found.stderr
            assert listing(tmp_path) == before
    assert {0, 2} == set(statuses)
