"""What the tests would miss in the compiled core: small changes, one after the other.

    python tests/mutation/mutate_native.py map         # how long tests take; once
    python tests/mutation/mutate_native.py run -n 80   # resumes where it was stopped
    python tests/mutation/mutate_native.py again       # survivors, after new tests
    python tests/mutation/mutate_native.py list        # what survived

As mutate.py does for Python. A mutant is one file of `native/` with one change: an
operator, a comparison, a constant, a sign, a loop's bound. What includes the file is
compiled anew, for one instruction set and hardly optimised (`SKB_QUICK` of
CMakeLists.txt), with the views' bounds checked; what does not compile is no mutant. The
tests of its topic are run on it, the quickest first, for some 15 seconds. Which ones
are drawn depends on the seed alone. Results are in native.jsonl beside this file. In
equivalent_native.txt are those that no test can tell from the original, and why.

Left alone are bindings, types, comments, and bookkeeping that has no numbers in it: how
much memory is taken, and how often interrupts are looked for. Needs cmake, ninja and
nanobind where the tests run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from mutate import BEGIN, ONE_THREAD, PACKAGE, ROOT, SECONDS

HERE = Path(__file__).parent
MAP, RESULTS = HERE / "native_map.json", HERE / "native.jsonl"
EQUIVALENT = HERE / "equivalent_native.txt"
NATIVE, BUILD = ROOT / "native", ROOT / "build/mutants"
# Tests that reach the core, by folder of `native`. Those that compare instruction sets
# with one another are not among them: here is only one.
TESTS = {
    "hmm": [
        "steps",
        "identities",
        "oracles",
        "transitions",
        "fit",
        "outputs",
        "theory",
    ],
    "sequential": ["exactness", "evidence", "adaptive", "experiments"],
    "fenchel_young": [
        "streams",
        "losses",
        "structured",
        "batches",
        "robust",
        "weights",
    ],
    "kernel_boost": ["banded", "factor"],
    "pac_bayes": ["smo", "svm_ensemble"],
    "smp": ["numerics", "any", "logistic", "folds"],
}
TESTS = {
    topic: [f"tests/{topic}/test_{name}.py" for name in names]
    for topic, names in TESTS.items()
}
TESTS["common"] = [
    "tests/hmm/test_steps.py", "tests/smp/test_numerics.py",
    "tests/fenchel_young/test_streams.py",
]  # fmt: skip
for topic in ("common", "sequential"):
    TESTS[topic].append("tests/native/test_definitions.py")
TOPICS = tuple(TESTS)
# Processor time after which a mutant hangs: other programs may keep it waiting.
LIMIT = int(5 * SECONDS)


# ---------------------------------------------------------------------------- mutants

NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-zA-Z])'(?:\\.|[^'\\])'"
    r"|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*",
    re.MULTILINE | re.DOTALL,
)
# Lines of types and of bookkeeping.
NO_NUMBERS = re.compile(
    r"template\s*<|^\s*using |static_assert|take<|stops\(|SKB_CHECK|_bytes\(|namespace"
    r"|^\s*(?:double|float|index|int|bool|T|V)\s+\w+\[[^\]]*\](?: = \{\})?;"
    r"|reinterpret_cast|pulse\."
)
BYTES = re.compile(r"^SKB_INLINE index \w+_bytes\(.*?^\}", re.MULTILINE | re.DOTALL)
SPACED = {
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "+=": ["-="], "-=": ["+="],
    "*=": ["/="], "/=": ["*="], "<": ["<=", ">="], "<=": ["<", ">"],
    ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="], "&&": ["||"],
    "||": ["&&"],
}  # fmt: skip
NAMES = {
    "larger": "smaller", "smaller": "larger", "log1p": "log", "expm1": "exp",
    "floor": "ceil", "ceil": "floor", "true": "false", "false": "true",
}  # fmt: skip
OPERATOR = re.compile(r"(?<=\s)(?:[-+*/]=?|[<>]=?|[=!]=|&&|\|\|)(?=\s)")
SIGN = re.compile(r"(?<=[\s(,{\[])[-!](?=[\w(])")
STEP = re.compile(r"\+\+|--")
NAME = re.compile(r"\b(?:" + "|".join(NAMES) + r")\b")
NUMBER = re.compile(
    r"(?<![\w.<'])(?:\d[\d']*\.\d*(?:[eE][-+]?\d+)?|\d[\d']*[eE][-+]?\d+|\d[\d']*)"
    r"(?![\w.'])"
)


def code(text):
    """Return text with all that is left alone replaced by blanks."""
    blank = lambda match: re.sub(r"[^\n]", " ", match[0])
    lines = BYTES.sub(blank, NOT_CODE.sub(blank, text)).split("\n")
    return "\n".join(" " * len(x) if NO_NUMBERS.search(x) else x for x in lines)


def changes(text):
    """Return [(line, what, begin, end, new)] of a file's text, in order."""
    found, source = [], code(text)

    def offer(match, new, what=None):
        line = text.count("\n", 0, match.start()) + 1
        what = what or f"{match[0]} to {new}"
        found.append((match.start(), line, what, match.end(), new))

    for match in OPERATOR.finditer(source):
        for new in SPACED.get(match[0], ()):
            offer(match, new)
    for match in SIGN.finditer(source):
        offer(match, "", f"drops {match[0]}")
    for match in STEP.finditer(source):
        offer(match, "--" if match[0] == "++" else "++")
    for match in NAME.finditer(source):
        offer(match, NAMES[match[0]])
    for match in NUMBER.finditer(source):
        number = match[0].replace("'", "")
        if number.isdigit():
            offer(match, str(int(number) + 1))
        else:
            offer(match, repr(2.0 * float(number) or 1.0))
    found.sort(key=lambda each: each[0])
    return [(line, what, begin, end, new) for begin, line, what, end, new in found]


def files():
    """Return {file: topic} of what is changed."""
    found = {}
    for topic in TOPICS:
        for path in sorted((NATIVE / topic).rglob("*")):
            if path.suffix in (".h", ".cpp") and path.name != "view.h":
                found[path.relative_to(ROOT).as_posix()] = topic
    return found


@cache
def mutants(file):
    """Return the changes of a file."""
    return changes((ROOT / file).read_text())


def source(file, number):
    """Return the text of a mutant."""
    text = (ROOT / file).read_text()
    _, _, begin, end, new = mutants(file)[number]
    return text[:begin] + new + text[end:]


def draw(seed):
    """Yield (file, number) for ever, topic after topic."""
    rng = random.Random(seed)
    pools = defaultdict(list)
    for file, topic in files().items():
        pools[topic] += [(file, number) for number in range(len(mutants(file)))]
    for pool in pools.values():
        rng.shuffle(pool)
    while any(pools.values()):
        for topic in TOPICS:
            if pools[topic]:
                yield pools[topic].pop()


def key_of(file, number):
    """Return a name that is another one once the file has changed."""
    text = (ROOT / file).read_text()
    return f"{file}:{number}:{hashlib.sha256(text.encode()).hexdigest()[:8]}"


# ----------------------------------------------------------------------------- builds


class Workshop:
    """A copy of the package, whose core mutants are compiled into."""

    def __init__(self):
        self._build()
        self.folder = Path(tempfile.mkdtemp(prefix="skbnative"))
        skip = shutil.ignore_patterns("_core*.so", "__pycache__")
        shutil.copytree(PACKAGE, self.folder / "skbounds", ignore=skip)
        shutil.copytree(NATIVE, self.folder / "native")
        self.core = next(BUILD.glob("_core*.so")).name
        shutil.copy(BUILD / self.core, self.folder / "skbounds")
        lines = self._ask("commands", self.core).splitlines()
        self.link = lines[-1]
        self.compile = {
            re.search(r" -o (\S+)", line)[1]: line for line in lines if " -c " in line
        }
        self.parts = {}
        for block in self._ask("deps").split("\n\n"):
            name, *needed = block.strip().split("\n")
            name = name.partition(":")[0]
            if name in self.compile and "CMakeFiles/nanobind" not in name:
                self.parts[name] = {Path(BUILD, x.strip()).resolve() for x in needed}

    def _build(self):
        options = [f"-DPython_EXECUTABLE={sys.executable}", "-DSKB_QUICK=ON"]
        command = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", BUILD, "-j2"], check=True, stdout=sys.stderr)

    def _ask(self, *what):
        command = ["ninja", "-C", BUILD, "-t", *what]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.replace(f"ninja: Entering directory `{BUILD}'\n", "")

    def build(self, file, number):
        """Put a mutant into the copy of the package; whether it compiles."""
        (self.folder / file).write_text(source(file, number))
        changed = (ROOT / file).resolve()
        link = self.link
        try:
            for name, needed in self.parts.items():
                if changed not in needed:
                    continue
                made = self.folder / name.replace("/", "_")
                command = self.compile[name].replace(f"-o {name}", f"-o {made}")
                command = re.sub(r"-M[FT] \S+|-MD", "", command)
                command = command.replace(str(NATIVE), str(self.folder / "native"))
                done = subprocess.run(
                    shlex.split(command), cwd=BUILD, capture_output=True
                )
                if done.returncode:
                    return False
                link = link.replace(f" {name} ", f" {made} ")
        finally:
            shutil.copy(ROOT / file, self.folder / file)
        core = self.folder / "skbounds" / self.core
        link = link.replace(f"-o {self.core}", f"-o {core}")
        subprocess.run(link, shell=True, cwd=BUILD, check=True, capture_output=True)
        return True

    def test(self, tests, limit=LIMIT, output=subprocess.DEVNULL):
        """Return what became of the mutant: killed, hung or survived."""

        def limits():
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))

        command = [sys.executable, "-B", "-c", BEGIN, str(self.folder), *tests]
        with subprocess.Popen(
            command, cwd=ROOT, env=dict(os.environ, **ONE_THREAD), stdout=output,
            stderr=output, start_new_session=True, preexec_fn=limits,
        ) as process:  # fmt: skip
            try:
                status = process.wait(8 * limit)
            except subprocess.TimeoutExpired:
                status = -signal.SIGXCPU
                os.killpg(process.pid, signal.SIGKILL)
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return "hung"
        return "survived" if status == 0 else "killed"

    def close(self):
        """Remove the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)


# ------------------------------------------------------------------------------- tests


def processor_time():
    """Return the seconds that programs started from here have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def make_map(paths):
    """Run the fast tests once, keep how long each takes."""
    import xml.etree.ElementTree as ElementTree

    every = sorted({path for some in TESTS.values() for path in some})
    seconds = json.loads(MAP.read_text()) if MAP.exists() and paths else {}
    seconds = {k: v for k, v in seconds.items() if not k.startswith(tuple(paths))}
    shop = Workshop()
    try:
        report = shop.folder / "report.xml"
        options = ["-m", "not slow", "--maxfail=1000", f"--junitxml={report}"]
        options += ["-o", "junit_family=xunit2"]
        begin, used = time.perf_counter(), processor_time()
        shop.test([*options, *(paths or every)], 7200, None)
        # Other programs may have kept the tests waiting.
        share = (processor_time() - used) / (time.perf_counter() - begin)
        for case in ElementTree.parse(report).iter("testcase"):
            name = case.get("classname").replace(".", "/") + ".py::" + case.get("name")
            if case.find("failure") is None and case.find("error") is None:
                seconds[name] = min(share, 1.0) * float(case.get("time"))
            else:
                print("left out, for it fails without a change:", name)
    finally:
        shop.close()
    MAP.write_text(json.dumps(seconds))


def choose_tests(topic, seconds, most=0.45 * SECONDS):
    """Return the tests of a topic, quickest first, for some seconds."""
    mine = [name for name in seconds if name.startswith(tuple(TESTS[topic]))]
    # Few of each function's parameters before many of one.
    rank, seen = {}, Counter()
    for name in sorted(mine, key=lambda name: (seconds[name], name)):
        function = name.partition("[")[0]
        rank[name] = seen[function] // 4
        seen[function] += 1
    chosen, total = [], 0.0
    for name in sorted(mine, key=lambda name: (rank[name], seconds[name], name)):
        if total + seconds[name] <= most:
            total += seconds[name]
            chosen.append(name)
    return sorted(chosen, key=lambda name: (seconds[name], name))


# --------------------------------------------------------------------------- the runs


def results():
    """Return {key: result} of what has been tried; of several tries the last one."""
    if not RESULTS.exists():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {row["key"]: row for row in rows}


def name_of(row):
    """Return what equivalent_native.txt calls a mutant."""
    return f"{row['file']}:{row['line']} {row['what']}"


def equivalents():
    """Return {mutant: why no test can tell it from the original}."""
    lines = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    pairs = [line.split(" -- ", 1) for line in lines if " -- " in line]
    return {name.strip(): why.strip() for name, why in pairs}


def try_mutant(shop, file, number, seed, seconds, **options):
    """Try a mutant and note what became of it."""
    topic, (line, what, *_) = files()[file], mutants(file)[number]
    tests, begin = choose_tests(topic, seconds, **options), time.perf_counter()
    limit = LIMIT + int(2 * sum(seconds[name] for name in tests))
    built = shop.build(file, number)
    result = shop.test(tests, limit) if built else "not compiled"
    row = {
        "key": key_of(file, number), "topic": topic, "file": file, "line": line,
        "what": what, "seed": seed, "tests": len(tests), "result": result,
        "seconds": round(time.perf_counter() - begin, 1),
    }  # fmt: skip
    with open(RESULTS, "a") as stream:
        stream.write(json.dumps(row) + "\n")
    print(f"{result:12} {name_of(row)}", flush=True)
    return row


def run(n, seed):
    """Try n mutants; those tried before count, what cannot compile does not."""
    seconds, done, shop = json.loads(MAP.read_text()), results(), Workshop()
    try:
        for file, number in draw(seed):
            if n <= 0:
                break
            row = done.get(key_of(file, number))
            row = row or try_mutant(shop, file, number, seed, seconds)
            n -= row["result"] != "not compiled"
    finally:
        shop.close()


def run_again():
    """Try the survivors that are not known to be equivalent, with more of the tests."""
    seconds, known, shop = json.loads(MAP.read_text()), equivalents(), Workshop()
    try:
        for row in results().values():
            number = int(row["key"].split(":")[1])
            now = key_of(row["file"], number) == row["key"]
            if row["result"] == "survived" and now and name_of(row) not in known:
                try_mutant(shop, row["file"], number, row["seed"], seconds, most=60.0)
    finally:
        shop.close()


def show(seed):
    """Print a table, and the survivors."""
    known = equivalents()
    rows = [row for row in results().values() if row["result"] != "not compiled"]
    rows = [row for row in rows if seed is None or row["seed"] == seed]
    for row in rows:
        if row["result"] == "survived" and name_of(row) in known:
            row["result"] = "equivalent"
    print(f"{'topic':14} tried found equivalent survived")
    for topic in (*TOPICS, "all"):
        counts = Counter(r["result"] for r in rows if topic in (r["topic"], "all"))
        found = counts["killed"] + counts["hung"]
        numbers = found, counts["equivalent"], counts["survived"]
        print(f"{topic:14} {counts.total():5} {found:5} {numbers[1]:10} {numbers[2]:8}")
    for row in rows:
        if row["result"] == "survived":
            print(name_of(row), f"(seed {row['seed']})")


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["map", "run", "again", "list"])
    parser.add_argument("paths", nargs="*", help="of map: only these test files")
    parser.add_argument("-n", type=int, default=80, help="number of mutants")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if options.command == "map":
        make_map(options.paths)
    elif options.command == "run":
        run(options.n, options.seed or 0)
    elif options.command == "again":
        run_again()
    if options.command != "map":
        show(options.seed)


if __name__ == "__main__":
    main()
