"""Names, laziness and the rules of the layout."""

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import skbounds

PACKAGE = Path(skbounds.__file__).parent


@pytest.mark.parametrize("topic", list(skbounds._TOPICS))
def test_topic_and_top_level_agree(topic):
    """Everything public is importable from its topic and from skbounds."""
    module = getattr(skbounds, topic)
    assert sorted(module.__all__) == sorted(skbounds._TOPICS[topic])
    for name in module.__all__:
        assert getattr(skbounds, name) is getattr(module, name)
        assert getattr(module, name).__module__.startswith(f"skbounds.{topic}._")


def test_all_topics_are_registered():
    """A topic package that is not in the table would be invisible."""
    packages = {item.name for item in pkgutil.iter_modules([PACKAGE]) if item.ispkg}
    assert packages == set(skbounds._TOPICS)


def test_citation_is_of_this_version():
    """The version stands in one more place, for those who cite."""
    citation = Path(__file__).parents[1] / "CITATION.cff"
    assert f"\nversion: {skbounds.__version__}\n" in citation.read_text()


def test_dir_and_unknown_names():
    """dir lists the lazy names; unknown ones fail as usual."""
    assert set(skbounds.__all__) <= set(dir(skbounds))
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        skbounds.Missing  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import skbounds", ["sklearn", "numpy"]),
        ("import skbounds; skbounds.RidgeSMP", ["matplotlib"]),
        (
            "from skbounds import RidgeSMP; RidgeSMP().fit([[0.], [1.], [2.]], "
            "[0., 1., 3.]).predict([[1.]])",
            ["matplotlib"],
        ),
    ],
)
def test_imports_are_lazy(statement, absent):
    """Importing loads nothing heavy before it is needed."""
    code = (
        f"import sys; {statement}; print([m for m in {absent!r} if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_private_sklearn_names_only_in_the_compat_module(path):
    """One file to mend when scikit-learn moves something; absolute imports only."""
    if path.name == "_sklearn_compat.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            module = node.module or ""
            if module.split(".")[0] == "sklearn":
                assert not any(part.startswith("_") for part in module.split("."))
                names = [alias.name for alias in node.names]
                assert not any(name.startswith("_") for name in names), names
            if module.startswith("skbounds."):
                own = path.relative_to(PACKAGE).parts[0]
                topic = module.split(".")[1]
                foreign = topic in skbounds._TOPICS and own in skbounds._TOPICS
                assert not (foreign and topic != own), "topics import one another"


def test_version_is_the_distribution_version():
    """pyproject reads the version from the package."""
    from importlib.metadata import version

    assert version("skbounds") == skbounds.__version__
