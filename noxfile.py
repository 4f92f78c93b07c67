"""Tasks of a developer: ``nox -l`` lists them. All of them in a row: ``.ci/run``."""

import nox

nox.options.sessions = ["lint", "tests"]
nox.options.reuse_existing_virtualenvs = True
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
OLDEST = ["scikit-learn==1.6.0", "numpy==1.26.4", "scipy==1.11.4", "joblib==1.3.2"]


@nox.session
def lint(session):
    """Check format, rules and types as in ``.ci/run``."""
    session.install("ruff==0.17.6", "mypy>=1.18", "matplotlib>=3.8", "numpy>=1.26")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")


@nox.session
def tests(session):
    """Run what the README runs, or the arguments after ``--``."""
    session.install("-e", ".[plot,test]")
    arguments = session.posargs or ["-n", "2", "-m", "not slow"]
    session.run("pytest", "-q", *arguments, env=ONE_THREAD)


@nox.session
def oldest(session):
    """Test the oldest versions that are supported."""
    session.install("-e", ".", *OLDEST, "pandas<3", "pytest", "pytest-xdist")
    session.install("hypothesis")
    arguments = session.posargs or ["-n", "2", "-m", "not slow", "tests/test_common.py"]
    session.run("pytest", "-q", *arguments, env=ONE_THREAD)


@nox.session(venv_backend="none")
def matrix(session):
    """Test other versions of Python and of the libraries: ``tests/matrix.py``."""
    session.run("python", "tests/matrix.py", *session.posargs)


@nox.session
def doctests(session):
    """Run the examples of docstrings, guide and README."""
    session.install("-e", ".[plot,test]")
    session.run("pytest", "-q", "--doctest-modules", "skbounds", env=ONE_THREAD)
    session.run(
        "bash", "-c", "python -m doctest README.md docs/user_guide/*.rst",
        external=True, env=ONE_THREAD,
    )  # fmt: skip


@nox.session
def docs(session):
    """Build the site in ``docs/_build``, and look at it in Chromium."""
    session.install("-e", ".[docs,plot,test]")
    session.run("sphinx-build", "-W", "-q", "docs", "docs/_build", env=ONE_THREAD)
    session.run("python", "docs/check_site.py", "docs/_build")


@nox.session
def benchmark(session):
    """Run a script of ``benchmarks/``: ``nox -s benchmark -- hmm_speed --quick``."""
    session.install("-e", ".[plot,scale,test]")
    name, *rest = session.posargs or ["smp_logistic_speed", "--quick"]
    session.run("python", f"benchmarks/{name}.py", *rest)
