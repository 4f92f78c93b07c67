"""The same tests with other versions: Python, NumPy, SciPy, scikit-learn, joblib.

    python tests/matrix.py                   # every environment, some minutes each
    python tests/matrix.py "Python 3.14"     # one of them
    python tests/matrix.py --list

Each environment is a fresh one with nothing but what is installed into it: the package
with its core, what the tests need, and of what else they use all that has wheels there.
Some tests of every topic, all on one core, are run in it. Results are kept in
matrix.jsonl beside this file, the last one of each environment, and their table is
written into CONTRIBUTING.md.

Where Python comes from: `pythonX.Y` on the path, in pyenv, in the folders that
``--pythons`` names, or in a whole Debian system of another release in the folder that
``--root`` names, which is entered by chroot:

    debootstrap --include=g++,python3.14-venv,python3.14-dev sid FOLDER

Debian has no free-threaded Python, but its source, which `configure --disable-gil`
builds in minutes (`apt-get source python3.13`, with a `deb-src` line). Environments
without an interpreter say so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS, PAGE = HERE / "matrix.jsonl", ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- versions: written by tests/matrix.py -->", "<!-- end of versions -->"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib")
MINUTES = 30
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
SOURCE = ("skbounds", "native", "CMakeLists.txt", "pyproject.toml", "README.md")
SOURCE += ("LICENSE",)
NEEDED = ("pytest>=8", "hypothesis>=6.100", "pandas")
# What else the tests below use, where it has wheels.
EXTRAS = ("array-api-strict", "hmmlearn", "skops")
# The scikit-learn contract of an estimator per topic, threads, some of every topic.
CONTRACT = (
    "SMPClassifier", "BolsteredSearchCV", "PACBayesSVMEnsemble",
    "FenchelYoungOnlineClassifier", "EarlyStoppedKernelBoostClassifier", "BaumWelchHMM",
)  # fmt: skip
TESTS = (
    ("tests/test_common.py", "-k", f"suite and ({' or '.join(CONTRACT)})"),
    (
        "tests/test_versions.py", "tests/native/test_definitions.py",
        "tests/test_faults.py::test_predictions_of_eight_threads",
        "tests/smp/test_numerics.py", "tests/pac_bayes/test_smo.py",
        "tests/fenchel_young/test_losses.py", "tests/kernel_boost/test_factor.py",
        "tests/hmm/test_steps.py", "tests/hmm/test_hmmlearn.py",
        "tests/sequential/test_exactness.py",
        *(
            f"tests/test_common.py::test_{name}"
            for name in ("dataframes", "pickle_and_joblib_round_trip",
                         "skops_round_trip_trusts_only_this_package")
        ),
    ),
)  # fmt: skip


@dataclass
class Environment:
    """Versions to try."""

    name: str
    python: str
    pins: tuple = ()
    # From where the core is: built there, or in a wheel that a Python built.
    core: str = "built there"
    pre: bool = False


ENVIRONMENTS = [
    Environment(
        "oldest",
        "3.11",
        ("scikit-learn==1.6.0", "numpy==1.26.4", "scipy==1.11.4", "joblib==1.3.2",
         "threadpoolctl==3.1.0", "pandas<3"),
        core="wheel of 3.11",
    ),
    Environment("Python 3.11", "3.11", core="wheel of 3.11"),
    Environment("Python 3.12", "3.12", core="wheel of 3.12"),
    Environment("Python 3.13", "3.13", core="wheel of 3.12"),
    Environment("Python 3.14", "3.14", core="wheel of 3.12"),
    Environment("Python 3.15", "3.15"),
    Environment("pre-releases", "3.12", core="wheel of 3.12", pre=True),
    Environment("Python 3.13, free-threaded", "3.13t"),
    Environment("Python 3.14, free-threaded", "3.14t"),
]  # fmt: skip


# ------------------------------------------------------------------------ interpreters


@dataclass
class Interpreter:
    """A Python, perhaps in another system's folder."""

    path: str
    root: Path | None = None
    made: list = field(default_factory=list)

    def folder(self):
        """Return a new folder of it: its name here, and its name inside."""
        base = self.root / "tmp" if self.root else None
        made = Path(tempfile.mkdtemp(prefix="versions", dir=base))
        self.made.append(made)
        return made, self.inside(made)

    def inside(self, path):
        """Return what a path is called inside."""
        return "/" / path.relative_to(self.root) if self.root else path

    def run(self, *command, cwd="/tmp", **options):
        """Run a command inside."""
        prefix = ["chroot", self.root] if self.root else []
        there = ["sh", "-c", 'cd "$0" && exec "$@"', cwd]
        return subprocess.run(
            [str(part) for part in (*prefix, *there, *command)],
            env={**os.environ, **ONE_THREAD, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
            **options,
        )

    def clean(self):
        """Remove its folders."""
        for folder in self.made:
            shutil.rmtree(folder, ignore_errors=True)


def find_interpreter(version, folders, root):
    """Return an interpreter of a version that can make environments, or None."""
    asked = f"import sys, sysconfig, venv, ensurepip; print(({SHORT}))"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    name = f"python{version}"
    found = [str(path) for path in pyenv.glob(f"*/bin/{name}")]
    for folder in folders:
        for pattern in (f"bin/{name}", f"*/bin/{name}"):
            found += [str(path) for path in Path(folder).glob(pattern)]
    found += [path] if (path := shutil.which(name)) else []
    candidates = [Interpreter(path) for path in found]
    if root is not None and (root / "usr/bin" / name).exists():
        candidates.append(Interpreter(f"/usr/bin/{name}", root))
    for one in candidates:
        done = one.run(one.path, "-c", asked, capture_output=True, text=True)
        if done.stdout.strip() == version:
            return one
    return None


# ------------------------------------------------------------------------ environments

SHORT = (
    "'%d.%d' % sys.version_info[:2] + "
    "('t' if sysconfig.get_config_var('Py_GIL_DISABLED') else '')"
)
DESCRIBE = f"""
import json, sys
from importlib.metadata import version
import skbounds._core
core_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
import sklearn.linear_model, scipy.optimize, pandas
gil = getattr(sys, "_is_gil_enabled", lambda: True)()
print(json.dumps({{
    "versions": {{
        "python": sys.version.split()[0], **{{n: version(n) for n in {LIBRARIES}}}
    }},
    "compiler": skbounds._core.compiler, "level": skbounds._core.level(),
    "gil": {{"with the core": core_gil, "with the libraries": gil}},
}}))
"""


def copy_source(folder, names):
    """Copy parts of the project without what was built of it."""
    skip = shutil.ignore_patterns("__pycache__", "_core*.so", "*.jsonl")
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=skip)
        else:
            shutil.copy(ROOT / name, folder)


def install(environment, interpreter, wheel):
    """Return (python inside, extras without wheels) of a fresh environment."""
    folder, inside = interpreter.folder()
    interpreter.run(interpreter.path, "-m", "venv", inside / "venv", check=True)
    python = inside / "venv/bin/python"
    pip = [python, "-m", "pip", "install", "-qq", "--no-compile"]
    wheels = ["--only-binary", ",".join(LIBRARIES)]
    pins = [*environment.pins, *(["--pre", *LIBRARIES] if environment.pre else [])]
    if wheel is None:
        copy_source(folder, SOURCE)
        package = inside
    else:
        shutil.copy(wheel, folder)
        package = inside / wheel.name
    interpreter.run(*pip, *wheels, *pins, *NEEDED, package, check=True)
    held = [one for one in pins if "=" in one or "<" in one]
    pip += ["--only-binary", ":all:", *held]
    missing = []
    if interpreter.run(*pip, *EXTRAS, capture_output=True).returncode:
        # One that has no wheel there must not hide the others.
        for extra in EXTRAS:
            if interpreter.run(*pip, extra, capture_output=True).returncode:
                missing.append(extra)
    return python, missing


def counts(text):
    """Return {outcome: number} of pytest's last line."""
    last = [
        line for line in text.splitlines() if re.search(r"\d+ (pass|fail|err)", line)
    ]
    names = "passed|failed|skipped|errors?|xfailed"
    found = re.findall(rf"(\d+) ({names})", last[-1] if last else "")
    return {name.rstrip("s"): int(number) for number, name in found}


def run_tests(interpreter, python):
    """Run the tests against what is installed; return (outcomes, last lines)."""
    folder, inside = interpreter.folder()
    copy_source(folder, ("tests", "pyproject.toml", "README.md"))
    outcomes, text = Counter(), ""
    for tests in TESTS:
        # Not "python -m pytest", which would look for the package here first.
        command = [python.with_name("pytest"), "-q", "-p", "no:cacheprovider"]
        command += ["-m", "not slow", *tests]
        done = interpreter.run(
            *command, cwd=inside, capture_output=True, text=True, timeout=60 * MINUTES
        )
        found = counts(done.stdout)
        if done.returncode not in (0, 1) or not found:
            found["error"] = found.get("error", 0) + 1
        outcomes.update(found)
        text += done.stdout[-10_000:] + done.stderr[-2000:]
    return dict(outcomes), text


def build_wheel(interpreter, folder):
    """Return the wheel that a Python builds, in a folder of its own."""
    made, inside = interpreter.folder()
    interpreter.run(interpreter.path, "-m", "venv", inside / "venv", check=True)
    copy_source(made, SOURCE)
    interpreter.run(
        inside / "venv/bin/python", "-m", "pip", "wheel", "-qq", "--no-deps", "-w",
        inside / "wheels", inside, check=True,
    )  # fmt: skip
    return shutil.copy(next((made / "wheels").glob("*.whl")), folder)


def newer(interpreter):
    """Whether any of the libraries has a pre-release that is newer than its release."""
    chosen = []
    for options in ([], ["--pre"]):
        command = ["-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed"]
        command += ["--only-binary", ":all:", "--report", "-", *options, *LIBRARIES]
        done = interpreter.run(
            interpreter.path, *command, stdout=subprocess.PIPE, check=True
        )
        report = json.loads(done.stdout)["install"]
        found = {one["metadata"]["name"]: one["metadata"]["version"] for one in report}
        chosen.append([found[name] for name in LIBRARIES])
    return chosen[0] != chosen[1]


def try_environment(environment, options, wheels):
    """Return the row of an environment; `wheels` keeps those that were built."""
    row = {"environment": environment.name, "python": environment.python}
    find = lambda version: find_interpreter(version, options.pythons, options.root)
    interpreter, builder = find(environment.python), None
    if interpreter is None:
        return {**row, "note": "no interpreter found"}
    try:
        if environment.pre and not newer(interpreter):
            return {**row, "note": "none is newer than the releases"}
        wheel = None
        if environment.core.startswith("wheel of "):
            version = environment.core.split()[-1]
            if not (folder := wheels / version).exists():
                builder = find(version)
                if builder is None:
                    return {**row, "note": f"no Python {version} to build the wheel"}
                folder.mkdir(parents=True)
                build_wheel(builder, folder)
            wheel = next(folder.iterdir())
        python, missing = install(environment, interpreter, wheel)
        done = interpreter.run(
            python, "-c", DESCRIBE, stdout=subprocess.PIPE, check=True
        )
        row |= {"core": environment.core, **json.loads(done.stdout)}
        row["without"] = missing
        begin = time.perf_counter()
        outcomes, text = run_tests(interpreter, python)
        row |= {"tests": outcomes, "seconds": round(time.perf_counter() - begin)}
        if outcomes.get("failed") or outcomes.get("error") or not outcomes:
            print(text)
        return row
    except subprocess.CalledProcessError as error:
        return {**row, "note": f"not installed: {' '.join(map(str, error.cmd))[-120:]}"}
    except subprocess.TimeoutExpired:
        return {**row, "note": f"stopped after {MINUTES} minutes"}
    finally:
        for one in filter(None, (interpreter, builder)):
            one.clean()


# ------------------------------------------------------------------------------- table


def results():
    """Return {environment: row} of what was run, in the environments' order."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = {row["environment"]: row for row in map(json.loads, lines)}
    return {one.name: rows[one.name] for one in ENVIRONMENTS if one.name in rows}


def table(rows):
    """Return the table of the rows in Markdown."""
    head = ["environment", "Python", *LIBRARIES, "core", "passed", "failed", "skipped"]
    head += ["seconds"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        versions, tests = row.get("versions", {}), row.get("tests")
        cells = [row["environment"], versions.get("python", row["python"])]
        cells += [versions.get(name, "") for name in LIBRARIES]
        cells += [row.get("core", "")]
        if tests is None:
            cells += [row["note"], "", "", ""]
        else:
            bad = tests.get("failed", 0) + tests.get("error", 0)
            cells += [tests.get("passed", 0), bad, tests.get("skipped", 0)]
            cells += [row["seconds"]]
        lines.append([str(cell) for cell in cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def notes(rows):
    """Return what the table does not say."""
    said = []
    for row in rows:
        if row.get("without"):
            names = ", ".join(row["without"])
            said.append(f"- {row['environment']}: no wheels of {names}.")
        if row["python"].endswith("t") and "gil" in row:
            state = ["stays off", "is turned on"]
            parts = [f"{state[on]} {where}" for where, on in row["gil"].items()]
            said.append(f"- {row['environment']}: the lock {', '.join(parts)}.")
    return "\n".join(said)


def write_page(rows):
    """Write the table into CONTRIBUTING.md."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    said = notes(rows)
    middle = "\n\n".join(part for part in (BEGIN, table(rows), said, END) if part)
    PAGE.write_text(before + middle + after)


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="environments; without them all")
    parser.add_argument("--pythons", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--root", type=Path, metavar="FOLDER")
    parser.add_argument("--wheels", type=Path, help="folder where wheels are kept")
    parser.add_argument("--list", action="store_true", help="only show results")
    options = parser.parse_args()
    known = [one.name for one in ENVIRONMENTS]
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no environment {unknown}; there are {known}")
    tried, wheels = [], options.wheels or Path(tempfile.mkdtemp(prefix="wheels"))
    for environment in ENVIRONMENTS:
        if options.list or (options.names and environment.name not in options.names):
            continue
        print(f"=== {environment.name}", flush=True)
        row = try_environment(environment, options, wheels)
        print(json.dumps(row), flush=True)
        tried.append(row)
        rows = {**results(), environment.name: row}
        RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    if options.wheels is None:
        shutil.rmtree(wheels)
    rows = list(results().values())
    if not options.list:
        write_page(rows)
    print(table(rows), notes(rows), sep="\n\n")
    failed = [row for row in tried if row.get("tests", {}).get("failed")]
    failed += [row for row in tried if row.get("tests", {}).get("error")]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
