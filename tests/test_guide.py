"""What the guide says of the tests is true."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = sorted(
    {
        name
        for page in (ROOT / "docs" / "user_guide").glob("*.rst")
        for name in re.findall(r"tests/[\w/]+\.py::\w+", page.read_text())
    }
)


@pytest.mark.parametrize("name", NAMED)
def test_named_tests_are_there(name):
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert function in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }


def test_statements_name_their_tests():
    """The page of guarantees has a test for nearly every line."""
    assert len(NAMED) >= 30
