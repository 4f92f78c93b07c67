"""What a bug report needs to say of the installation."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = (
    "pip",
    "scikit-learn",
    "numpy",
    "scipy",
    "joblib",
    "threadpoolctl",
    "pandas",
    "matplotlib",
)


def _versions():
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "None"


def _print_section(title, items):
    width = max((len(name) for name, _ in items), default=0)
    print(f"\n{title}:")
    for name, value in items:
        print(f"{name:>{width + 4}}: {value}")


def show_versions() -> None:
    """Print versions, how the native core was built, and the instructions it uses.

    Like :func:`sklearn.show_versions`, for bug reports. The instruction level is
    chosen when the package is imported: the best one that this build and the processor
    have, or what the environment variable ``SKBOUNDS_CPU_LEVEL`` says ("baseline" or
    "v3"). All levels give the same results.

    .. versionadded:: 0.2

    Examples
    --------
    >>> import skbounds
    >>> skbounds.show_versions()  # doctest: +ELLIPSIS
    <BLANKLINE>
    System:
    ...
    """
    # For the thread pools that they bring.
    import scipy.linalg  # noqa: F401
    import sklearn.utils  # noqa: F401
    from threadpoolctl import threadpool_info

    from skbounds import __version__, _core

    _print_section(
        "System",
        [
            ("python", sys.version.replace("\n", " ")),
            ("executable", sys.executable),
            ("machine", platform.platform()),
        ],
    )
    _print_section("Python dependencies", [("skbounds", __version__), *_versions()])
    _print_section(
        "Native core",
        [
            ("compiler", _core.compiler),
            ("sanitizers", "yes" if _core.sanitized else "no"),
            ("levels", ", ".join(_core.levels())),
            ("level in use", _core.level()),
        ],
    )
    _print_section(
        "threadpoolctl",
        [
            (
                f"{pool['internal_api']} {pool['version']}",
                f"{pool['num_threads']} threads",
            )
            for pool in threadpool_info()
        ],
    )
