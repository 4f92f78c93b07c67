"""What the tests would miss: small changes of the numerics, one after the other.

    python tests/mutation/mutate.py map         # which tests run which lines, slow
    python tests/mutation/mutate.py map FILE... # the same of new tests only
    python tests/mutation/mutate.py run -n 200  # resumes where it was stopped
    python tests/mutation/mutate.py run -n 100 --seed 1
    python tests/mutation/mutate.py list        # what survived, and why it may
    python tests/mutation/mutate.py table       # what stands in docs/developers
    python tests/mutation/mutate.py ci          # a fixed 20, without a map

A mutant is one module with one change: an operator, a comparison, a constant, a sign.
The tests of its topic that run the changed line are run on it, one of each test
function first and the quickest of them first, for some 15 seconds. One that fails kills
the mutant; one that hangs does, too. "untested" are those whose line no fast test runs.

Which ones are drawn depends on the seed and on the names of functions and changes, so
that other code may change meanwhile. Results are in results.jsonl beside this file; one
whose function has changed since is tried again. A survivor that makes no difference
that anyone could ask for is argued in equivalent.txt, in one line.

Modules are those of the numerics: private ones that hold no estimators, displays or
parsers, in Python. Needs pytest-cov.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "skbounds"
MAP, RESULTS = HERE / "map.json", HERE / "results.jsonl"
EQUIVALENT = HERE / "equivalent.txt"
TOPICS = ("smp", "bolstering", "pac_bayes", "fenchel_young", "kernel_boost", "hmm")
TOPICS += ("sequential",)
# Names of modules that are no numerics.
OTHERS = ("display", "tour", "checks", "compat", "init", "typing", "record", "report")
SECONDS = 15.0
MOST_TESTS = 150
N_CI = 20


# ---------------------------------------------------------------------------- mutants


class Mutant(NamedTuple):
    """One change: where, what, and which of those of its function."""

    module: str
    scope: str
    what: str
    occurrence: int
    line: int
    offset: int
    number: int
    digest: str

    @property
    def name(self):
        """Return what stays the same while other functions change."""
        return f"{self.module}:{self.scope}:{self.what}:{self.occurrence}"

    @property
    def topic(self):
        """Return the package it is in."""
        return self.module.split("/")[1]


class Mutator(ast.NodeTransformer):
    """Makes the change of a number; without one, lists all."""

    def __init__(self, wanted=None):
        self.wanted, self.found = wanted, []
        self.scopes = []

    def _offer(self, node, kind, make):
        """Note a change; return the changed node if it is the one."""
        self.found.append((node.lineno, kind, tuple(self.scopes)))
        if self.wanted == len(self.found) - 1:
            return ast.copy_location(make(), node)
        return None

    def visit_BinOp(self, node):
        """Exchange operators."""
        self.generic_visit(node)
        other = {
            ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
            ast.FloorDiv: ast.Div, ast.Pow: ast.Mult,
        }.get(type(node.op))  # fmt: skip
        if other is None or (
            isinstance(node.left, ast.Constant | ast.JoinedStr)
            and (isinstance(getattr(node.left, "value", ""), str))
        ):
            return node
        name = f"{type(node.op).__name__} to {other.__name__}"
        make = lambda: ast.BinOp(node.left, other(), node.right)
        return self._offer(node, name, make) or node

    def visit_Compare(self, node):
        """Move bounds by nothing, or turn them."""
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        others = {
            ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt),
            ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
            ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
        }.get(type(node.ops[0]), ())  # fmt: skip
        for other in others:
            name = f"{type(node.ops[0]).__name__} to {other.__name__}"
            make = lambda other=other: ast.Compare(
                node.left, [other()], node.comparators
            )
            changed = self._offer(node, name, make)
            if changed is not None:
                return changed
        return node

    def visit_BoolOp(self, node):
        """Exchange and, or."""
        self.generic_visit(node)
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        make = lambda: ast.BoolOp(other(), node.values)
        return self._offer(node, "and/or", make) or node

    def visit_UnaryOp(self, node):
        """Drop a sign, or a not."""
        self.generic_visit(node)
        if isinstance(node.op, ast.USub | ast.Not):
            return self._offer(node, "drops a sign", lambda: node.operand) or node
        return node

    def visit_Constant(self, node):
        """Change a number."""
        value = node.value
        if isinstance(value, bool):
            make = lambda: ast.Constant(not value)
            return self._offer(node, f"{value} to {not value}", make) or node
        if isinstance(value, int):
            make = lambda: ast.Constant(value + 1)
            return self._offer(node, f"{value} to {value + 1}", make) or node
        if isinstance(value, float):
            other = 2.0 * value if value else 1.0
            make = lambda: ast.Constant(other)
            return self._offer(node, f"{value} to {other}", make) or node
        return node

    def visit_Call(self, node):
        """Exchange the least and the largest, sums and means."""
        self.generic_visit(node)
        pairs = {"minimum": "maximum", "min": "max", "argmin": "argmax", "sum": "mean"}
        pairs |= {other: name for name, other in pairs.items()}
        pairs |= {"log1p": "log", "expm1": "exp", "floor": "ceil", "ceil": "floor"}
        called = node.func
        name = getattr(called, "attr", getattr(called, "id", None))
        if name not in pairs:
            return node
        if isinstance(called, ast.Attribute):
            other = ast.Attribute(called.value, pairs[name], called.ctx)
        elif pairs[name] in ("min", "max"):
            other = ast.Name(pairs[name], called.ctx)
        else:
            return node
        make = lambda: ast.Call(other, node.args, node.keywords)
        return self._offer(node, f"{name} to {pairs[name]}", make) or node

    def visit(self, node):
        """Know where one is: functions, classes, statements outside of them."""
        opens = isinstance(node, ast.FunctionDef | ast.ClassDef) or (
            isinstance(node, ast.stmt) and not self.scopes
        )
        if not opens:
            return super().visit(node)
        self.scopes.append(node)
        visited = super().visit(node)
        self.scopes.pop()
        return visited

    def visit_FunctionDef(self, node):
        """Leave docstrings, decorators and defaults alone."""
        node.body = [self.visit(part) for part in node.body]
        return node

    def visit_AnnAssign(self, node):
        """Leave annotations alone."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Raise(self, node):
        """Leave messages alone."""
        return node


def modules():
    """Return the modules of the numerics, by topic."""
    found = {}
    for topic in TOPICS:
        for path in sorted((PACKAGE / topic).rglob("_*.py")):
            text = path.read_text()
            if any(word in path.stem for word in OTHERS) or "_fit_context" in text:
                continue
            found[path.relative_to(ROOT).as_posix()] = topic
    return found


def _name_of(scope):
    """Return the name of a function, class or assignment."""
    name = getattr(scope, "name", None)
    if name is None and isinstance(scope, ast.Assign):
        name = ast.unparse(scope.targets[0])
    return name or type(scope).__name__


def mutants(module):
    """Return the mutants of a module."""
    mutator, counts, found = Mutator(), Counter(), []
    # Before anything is changed: the texts are those of the functions as they are.
    mutator.visit(ast.parse((ROOT / module).read_text()))
    texts = {}
    for number, (line, what, scopes) in enumerate(mutator.found):
        scope, last = ".".join(map(_name_of, scopes)), scopes[-1]
        if last not in texts:
            texts[last] = hashlib.sha256(ast.unparse(last).encode()).hexdigest()[:8]
        occurrence = counts[scope, what]
        counts[scope, what] += 1
        found.append(
            Mutant(
                module, scope, what, occurrence, line, line - last.lineno, number,
                texts[last],
            )
        )  # fmt: skip
    return found


def all_mutants():
    """Return {name: mutant} of all modules."""
    found = (mutant for module in modules() for mutant in mutants(module))
    return {mutant.name: mutant for mutant in found}


def source(mutant):
    """Return the text of a mutant."""
    tree = ast.parse((ROOT / mutant.module).read_text())
    return ast.unparse(ast.fix_missing_locations(Mutator(mutant.number).visit(tree)))


def draw(seed, known):
    """Yield mutants for ever, topic after topic, in an order that their names make."""

    def key(mutant):
        return hashlib.sha256(f"{seed}:{mutant.name}".encode()).digest()

    pools = defaultdict(list)
    for mutant in sorted(known.values(), key=key, reverse=True):
        pools[mutant.topic].append(mutant)
    while any(pools.values()):
        for topic in TOPICS:
            if pools[topic]:
                yield pools[topic].pop()


# ------------------------------------------------------------------------------- tests


class Scopes:
    """Where the lines of a module are: the innermost function or class."""

    def __init__(self, module):
        tree, self.of_line = ast.parse((ROOT / module).read_text()), {}
        self._note(tree.body, ())

    def _note(self, nodes, outer):
        for node in nodes:
            opens = isinstance(node, ast.FunctionDef | ast.ClassDef)
            if opens or not outer:
                place = (*outer, _name_of(node))
                for line in range(node.lineno, node.end_lineno + 1):
                    self.of_line[line] = ".".join(place), line - node.lineno
            else:
                place = outer
            self._note(ast.iter_child_nodes(node), place)


def make_map(files):
    """Run the fast tests once; keep who runs which line, and how long."""
    found = load_map() if files else {"seconds": {}, "lines": {}}
    with tempfile.TemporaryDirectory() as folder:
        data, report = Path(folder) / "data", Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal",
            "-p", "no:cacheprovider", "-m", "not slow", *(files or ["tests"]), "--cov",
            "--cov-context=test", "--cov-report=", "--cov-fail-under=0",
            f"--junitxml={report}",
            "-o", "junit_family=xunit2",
        ]  # fmt: skip
        env = dict(os.environ, COVERAGE_FILE=str(data), **ONE_THREAD)
        subprocess.run(command, cwd=ROOT, env=env, check=True)
        read_map(data, report, found)
    save_map(found)


def save_map(found):
    """Write a map, with numbers for tests."""
    number = {name: i for i, name in enumerate(found["seconds"])}
    lines = {
        module: {
            scope: {
                offset: [number[name] for name in names if name in number]
                for offset, names in offsets.items()
            }
            for scope, offsets in scopes.items()
        }
        for module, scopes in found["lines"].items()
    }
    MAP.write_text(json.dumps({"seconds": found["seconds"], "lines": lines}))


def load_map():
    """Read it."""
    found = json.loads(MAP.read_text())
    names = list(found["seconds"])
    for scopes in found["lines"].values():
        for offsets in scopes.values():
            for offset, numbers in offsets.items():
                offsets[offset] = [names[i] for i in numbers]
    return found


def read_map(data, report, found):
    """Add {module: {function: {line in it: [tests]}}} and the seconds of tests."""
    import xml.etree.ElementTree as ElementTree

    from coverage import CoverageData

    for case in ElementTree.parse(report).iter("testcase"):
        # tests.hmm.test_em, test_this[that].
        path = case.get("classname").replace(".", "/") + ".py"
        found["seconds"][f"{path}::{case.get('name')}"] = float(case.get("time"))
    coverage, wanted = CoverageData(str(data)), modules()
    coverage.read()
    for file in coverage.measured_files():
        # Editable installs and tests in other folders.
        module = "skbounds" + file.rpartition("/skbounds")[2]
        if module not in wanted:
            continue
        own = f"tests/{wanted[module]}/"
        scopes = Scopes(module)
        lines = found["lines"].setdefault(module, {})
        for line, contexts in coverage.contexts_by_lineno(file).items():
            names = {name.rpartition("|")[0] for name in contexts}
            names = {name for name in names if name.startswith(own)}
            if line in scopes.of_line and names:
                scope, offset = scopes.of_line[line]
                offsets = lines.setdefault(scope, {})
                offsets[str(offset)] = sorted(names.union(offsets.get(str(offset), ())))


def tests_of(mutant, found):
    """Return the tests that run a mutant's line: quickest first, for some seconds."""
    scopes = found["lines"].get(mutant.module, {})
    names = set(scopes.get(mutant.scope, {}).get(str(mutant.offset), ()))
    if not names:
        # Run while the module is imported: whoever runs a function that asks for it.
        words = re.findall(r"\w+", mutant.scope.split(".")[0])
        word = re.compile(rf"\b({'|'.join(words)})\b")
        for module, topic in modules().items():
            if topic != mutant.topic:
                continue
            scopes, where = found["lines"].get(module, {}), Scopes(module).of_line
            for line, content in enumerate((ROOT / module).read_text().splitlines(), 1):
                if word.search(content) and line in where:
                    names.update(*scopes.get(where[line][0], {}).values())
        for scope, offsets in found["lines"].get(mutant.module, {}).items():
            if scope.startswith(f"{mutant.scope}."):
                names.update(*offsets.values())
    if not names:
        # Nobody asks by name: whoever runs anything of the module.
        for offsets in found["lines"].get(mutant.module, {}).values():
            names.update(*offsets.values())
    return choose_tests(names, found["seconds"])


def choose_tests(names, seconds):
    """Return one of each test function, then a second one, until it takes too long."""
    # Tests that vanished or failed have no time.
    names = sorted(names & set(seconds), key=lambda name: (seconds[name], name))
    rounds, ranks = Counter(), {}
    for name in names:
        function = name.partition("[")[0]
        ranks[name] = rounds[function]
        rounds[function] += 1
    chosen, total = [], 0.0
    for name in sorted(names, key=lambda name: (ranks[name], seconds[name], name)):
        if chosen and total + seconds[name] > 0.7 * SECONDS:
            continue
        total += seconds[name]
        chosen.append(name)
        if len(chosen) == MOST_TESTS:
            break
    return chosen


# --------------------------------------------------------------------------- the runs

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Imports the copy of the package, whatever is installed.
BEGIN = """
import sys
sys.meta_path = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
sys.path.insert(0, sys.argv[1])
import skbounds._core, pytest
from skbounds import smp
assert skbounds.__file__.startswith(sys.argv[1]), skbounds.__file__
sys.exit(pytest.main([
    "-q", "-x", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly",
    *sys.argv[2:],
]))
"""


class Workshop:
    """A copy of the package that mutants are put into."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="mutants"))
        shutil.copytree(PACKAGE, self.folder / "skbounds")
        core = next(Path(sys.prefix).rglob("skbounds/_core*.so"), None)
        core = core or next(PACKAGE.glob("_core*"))
        shutil.copy(core, self.folder / "skbounds")
        # Otherwise every mutant would be killed.
        command = [sys.executable, "-c", BEGIN, str(self.folder), "--version"]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)

    def try_mutant(self, mutant, tests):
        """Return what became of a mutant, and the test that found it.

        One of killed, hung, survived, untested, and broken where the tests did not run.
        """
        if not tests:
            return "untested", None
        place = self.folder / mutant.module
        before = place.read_text()
        place.write_text(source(mutant))
        command = [sys.executable, "-B", "-c", BEGIN, str(self.folder), *tests]
        try:
            with subprocess.Popen(
                command, cwd=ROOT, env=dict(os.environ, **ONE_THREAD), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process:  # fmt: skip
                try:
                    output, _ = process.communicate(timeout=4 * SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    return "hung", None
        finally:
            place.write_text(before)
        if process.returncode == 0:
            return "survived", None
        killer = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", output, re.M)
        # An import that fails kills as well; tests that are not found do not.
        if killer is None and re.search(r"^ERROR: not found", output, re.M):
            return "broken", None
        return "killed", killer and killer[1]

    def close(self):
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)


def results():
    """Return {name: row} of what has been tried."""
    if not RESULTS.exists():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {row["name"]: row for row in rows}


def arguments():
    """Return {name: why it makes no difference}."""
    if not EQUIVALENT.exists():
        return {}
    lines = [line for line in EQUIVALENT.read_text().splitlines() if line.strip()]
    return dict(line.split(" | ") for line in lines if not line.startswith("#"))


def _write(rows):
    text = "".join(json.dumps(row) + "\n" for row in rows.values())
    RESULTS.write_text(text)


def run(n, seed, jobs, again=False):
    """Bring the mutants of a seed to n; those that were tried before count.

    Tried again are those whose function has changed, and with `again` survivors that
    nothing argues for.
    """
    found, known, rows = load_map(), all_mutants(), results()
    # Functions that are no more.
    rows = {name: row for name, row in rows.items() if name in known}
    mine = [name for name, row in rows.items() if row["seed"] == seed]
    for mutant in draw(seed, known):
        if len(mine) >= n:
            break
        if mutant.name not in rows:
            mine.append(mutant.name)
    open_ends, why = ("survived", "untested", "broken", "hung"), arguments()
    todo = [
        known[name]
        for name in mine
        if name not in rows
        or rows[name]["digest"] != known[name].digest
        or (again and rows[name]["result"] in open_ends and name not in why)
    ]
    shops = [Workshop() for _ in range(jobs)]

    def work(shop):
        while todo:
            mutant = todo.pop(0)
            tests, begin = tests_of(mutant, found), time.perf_counter()
            result, killer = shop.try_mutant(mutant, tests)
            rows[mutant.name] = {
                "name": mutant.name, "line": mutant.line, "digest": mutant.digest,
                "seed": seed, "tests": len(tests), "result": result, "killer": killer,
                "seconds": round(time.perf_counter() - begin, 1),
            }  # fmt: skip
            _write(rows)
            where = f"{mutant.module}:{mutant.line}"
            print(f"{len(todo)} left: {result:9} {where} {mutant.what}", flush=True)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(work, shops))
    finally:
        for shop in shops:
            shop.close()


def run_ci():
    """Try a fixed few, each with the test that found it; return how many survived."""
    known, rows = all_mutants(), results().values()
    fixed = [
        row
        for row in sorted(
            rows, key=lambda row: hashlib.sha256(row["name"].encode()).digest()
        )
        if row["killer"] and row["name"] in known and row["seconds"] < SECONDS
    ][:N_CI]
    if len(fixed) < N_CI:
        sys.exit(f"{len(fixed)} of {N_CI} mutants are still there: run them anew")
    shop, bad = Workshop(), 0
    try:
        for row in fixed:
            result, _ = shop.try_mutant(known[row["name"]], [row["killer"]])
            print(f"{result:9} {row['name']}", flush=True)
            bad += result not in ("killed", "hung")
    finally:
        shop.close()
    return bad


def table():
    """Return the rows of docs/developers/mutation.rst: topic, tried, found, argued."""
    why, lines = arguments(), []
    for seed in sorted({row["seed"] for row in results().values()}):
        total = Counter()
        for topic in (*TOPICS, "all"):
            counts = Counter()
            for name, row in results().items():
                if row["seed"] == seed and name.split("/")[1] == topic:
                    missed = row["result"] in ("survived", "untested", "broken")
                    counts["argued" if missed and name in why else row["result"]] += 1
            counts = total if topic == "all" else counts
            if topic != "all":
                total += counts
            tried, killed = sum(counts.values()), counts["killed"] + counts["hung"]
            rest = tried - killed - counts["argued"]
            rate = killed / max(1, tried - counts["argued"])
            lines.append((seed, topic, tried, killed, counts["argued"], rest, rate))
    return lines


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["map", "run", "list", "table", "ci"])
    parser.add_argument("files", nargs="*", help="tests to map")
    parser.add_argument("-n", type=int, default=200, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="survivors, too")
    options = parser.parse_args()
    if options.command == "map":
        make_map(options.files)
    elif options.command == "run":
        run(options.n, options.seed, options.jobs, options.again)
    elif options.command == "ci":
        sys.exit(run_ci())
    elif options.command == "table":
        for seed, topic, tried, killed, argued, rest, rate in table():
            print(
                f"{seed} {topic:14} {tried:4} {killed:4} {argued:4} {rest:4} {rate:.3f}"
            )
        return
    why = arguments()
    print(dict(Counter(row["result"] for row in results().values())))
    if options.command == "list":
        for name, row in results().items():
            if row["result"] in ("survived", "untested", "broken"):
                print(
                    f"{row['line']:4} {row['result']:9} {name} | {why.get(name, '?')}"
                )


if __name__ == "__main__":
    main()
