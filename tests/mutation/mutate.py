"""What the tests would miss: small changes of the numerics, one after the other.

    python tests/mutation/mutate.py map        # which tests run which lines, 30 minutes
    python tests/mutation/mutate.py run -n 300 # resumes where it was stopped
    python tests/mutation/mutate.py list       # what survived

A mutant is one module with one change: an operator, a comparison, a constant, a sign.
The tests of its topic that run the changed line are run on it, the quickest first, for
some 15 seconds. One that fails kills the mutant; one that hangs does, too. Which ones
are drawn depends on the seed alone. Results are in results.jsonl beside this file;
"untested" are those whose line no fast test runs.

Modules are those of the numerics: private ones that hold no estimators, displays or
parsers, in Python. Needs pytest-cov.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGE = ROOT / "skbounds"
MAP, RESULTS = HERE / "map.json", HERE / "results.jsonl"
TOPICS = ("smp", "bolstering", "pac_bayes", "fenchel_young", "kernel_boost", "hmm")
TOPICS += ("sequential",)
# Names of modules that are no numerics.
OTHERS = ("display", "tour", "checks", "compat", "init", "typing", "record", "report")
SECONDS = 15.0
MOST_TESTS = 150


# ---------------------------------------------------------------------------- mutants


class Mutator(ast.NodeTransformer):
    """Makes the change of a number; without one, lists all."""

    def __init__(self, wanted=None):
        self.wanted, self.found = wanted, []

    def _offer(self, node, kind, make):
        """Note a change; return the changed node if it is the one."""
        self.found.append((node.lineno, kind))
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


def mutants(module):
    """Return [(line, what)] of a module."""
    mutator = Mutator()
    mutator.visit(ast.parse((ROOT / module).read_text()))
    return mutator.found


def source(module, number):
    """Return the text of a mutant."""
    tree = Mutator(number).visit(ast.parse((ROOT / module).read_text()))
    return ast.unparse(ast.fix_missing_locations(tree))


def draw(seed):
    """Yield mutants (module, number, line, what) for ever, topic after topic."""
    rng = random.Random(seed)
    pools = defaultdict(list)
    for module, topic in modules().items():
        for number, (line, what) in enumerate(mutants(module)):
            pools[topic].append((module, number, line, what))
    for pool in pools.values():
        rng.shuffle(pool)
    while any(pools.values()):
        for topic in TOPICS:
            if pools[topic]:
                yield pools[topic].pop()


# ------------------------------------------------------------------------------- tests


def make_map():
    """Run the fast tests of each topic once; keep who runs which line, and how long."""
    found = {}
    for topic in TOPICS:
        with tempfile.TemporaryDirectory() as folder:
            data, report = Path(folder) / "data", Path(folder) / "report.xml"
            command = [
                sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m",
                "not slow", f"tests/{topic}", f"--cov=skbounds.{topic}",
                "--cov-context=test", "--cov-report=", f"--junitxml={report}",
                "-o", "junit_family=xunit2",
            ]  # fmt: skip
            env = dict(os.environ, COVERAGE_FILE=str(data), **ONE_THREAD)
            subprocess.run(command, cwd=ROOT, env=env, check=True)
            found[topic] = _read_map(data, report)
    MAP.write_text(json.dumps(found))


def _read_map(data, report):
    """Return {module: {line: [tests to run]}}."""
    import xml.etree.ElementTree as ElementTree

    from coverage import CoverageData

    seconds = {}
    for case in ElementTree.parse(report).iter("testcase"):
        # tests.hmm.test_em, test_this[that].
        path = case.get("classname").replace(".", "/") + ".py"
        seconds[f"{path}::{case.get('name')}"] = float(case.get("time"))
    coverage, lines = CoverageData(str(data)), {}
    coverage.read()
    for file in coverage.measured_files():
        module = Path(file).relative_to(ROOT).as_posix()
        lines[module] = {
            line: choose_tests(names, seconds)
            for line, names in coverage.contexts_by_lineno(file).items()
        }
    return lines


def choose_tests(contexts, seconds):
    """Return the tests of contexts, quickest first, for some seconds."""
    names = {name.rpartition("|")[0] for name in contexts if "|" in name}
    chosen, total = [], 0.0
    for name in sorted(names, key=lambda name: (seconds.get(name, 1.0), name)):
        total += seconds.get(name, 1.0)
        if chosen and (total > 0.7 * SECONDS or len(chosen) == MOST_TESTS):
            break
        chosen.append(name)
    return chosen


# --------------------------------------------------------------------------- the runs

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
# Imports the copy of the package, whatever is installed.
BEGIN = """
import sys
sys.meta_path = [f for f in sys.meta_path if "Redirecting" not in type(f).__name__]
sys.path.insert(0, sys.argv[1])
import skbounds, pytest
assert skbounds.__file__.startswith(sys.argv[1]), skbounds.__file__
sys.exit(pytest.main([
    "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header",
    "-W", "ignore", *sys.argv[2:],
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

    def try_mutant(self, module, number, tests):
        """Return what became of a mutant: killed, hung, survived or untested."""
        if not tests:
            return "untested"
        place = self.folder / module
        before = place.read_text()
        place.write_text(source(module, number))
        command = [sys.executable, "-B", "-c", BEGIN, str(self.folder), *tests]
        try:
            with subprocess.Popen(
                command, cwd=ROOT, env=dict(os.environ, **ONE_THREAD),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process:  # fmt: skip
                try:
                    status = process.wait(3 * SECONDS)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    return "hung"
        finally:
            place.write_text(before)
        return "survived" if status == 0 else "killed"

    def close(self):
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)


def key_of(module, number):
    """Return a name that is another one once the module has changed."""
    text = (ROOT / module).read_text()
    return f"{module}:{number}:{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def results():
    """Return {key: result} of what has been tried."""
    if not RESULTS.exists():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {row["key"]: row for row in rows}


def run(n, seed, jobs):
    """Try n mutants; those that were tried before count."""
    known, done = json.loads(MAP.read_text()), results()
    todo = []
    for module, number, line, what in draw(seed):
        if n <= 0:
            break
        n -= 1
        if key_of(module, number) not in done:
            todo.append((module, number, line, what))
    shops = [Workshop() for _ in range(jobs)]

    def work(shop):
        while todo:
            module, number, line, what = todo.pop(0)
            topic = modules()[module]
            tests = known[topic].get(module, {}).get(str(line), [])
            begin = time.perf_counter()
            row = {
                "key": key_of(module, number), "topic": topic, "module": module,
                "line": line, "what": what, "seed": seed, "tests": len(tests),
                "result": shop.try_mutant(module, number, tests),
                "seconds": round(time.perf_counter() - begin, 1),
            }  # fmt: skip
            with open(RESULTS, "a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{len(todo)} left: {row['result']:9} {module}:{line} {what}")

    try:
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(work, shops))
    finally:
        for shop in shops:
            shop.close()


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["map", "run", "list"])
    parser.add_argument("-n", type=int, default=300, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.command == "map":
        make_map()
    elif options.command == "run":
        run(options.n, options.seed, options.jobs)
    counts = Counter(row["result"] for row in results().values())
    print(dict(counts))
    if options.command == "list":
        for row in results().values():
            if row["result"] in ("survived", "untested"):
                print(f"{row['module']}:{row['line']} {row['what']} ({row['result']})")


if __name__ == "__main__":
    main()
