"""Types of what is public, for type checkers and editors."""

import functools
import inspect
import typing
from pathlib import Path

import pytest

import skbounds
from skbounds.fenchel_young import structures

PUBLIC = {
    **{name: getattr(skbounds, name) for name in skbounds.__all__},
    **{name: getattr(structures, name) for name in structures.__all__},
}
PUBLIC = {name: item for name, item in PUBLIC.items() if not inspect.ismodule(item)}
SPECIAL = ("__init__", "__call__")


def function_of(member):
    """Return the function of this package behind an attribute of a class, or None."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, functools.cached_property):
        member = member.func
    elif isinstance(member, (classmethod, staticmethod)):
        member = member.__func__
    # Of scikit-learn's available_if.
    member = inspect.unwrap(getattr(member, "fn", member))
    ours = getattr(member, "__module__", "").startswith("skbounds.")
    return member if inspect.isfunction(member) and ours else None


def functions_in(item):
    """Yield names and functions: of a class all public ones, also the inherited."""
    if not inspect.isclass(item):
        yield item.__name__, inspect.unwrap(item)
        return
    for cls in item.__mro__:
        if not cls.__module__.startswith("skbounds."):
            continue
        for name, member in vars(cls).items():
            function = function_of(member)
            if function and (not name.startswith("_") or name in SPECIAL):
                yield f"{cls.__name__}.{name}", function


def classes_in(hint):
    """Yield the classes of this package that a type is made of."""
    if inspect.isclass(hint) and hint.__module__.startswith("skbounds."):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_everything_public_has_types(name):
    """Every parameter and result, also of the records that are returned."""
    missing, items = [], [PUBLIC[name]]
    for item in items:
        for where, function in functions_in(item):
            # Raises for names that are not known where the function is.
            hints = typing.get_type_hints(function)
            parameters = set(inspect.signature(function).parameters) - {"self", "cls"}
            lacking = {*parameters, "return"} - set(hints)
            missing += [f"{where}: {parameter}" for parameter in sorted(lacking)]
            found = classes_in(hints.get("return"))
            items += [record for record in found if record not in items]
    assert not missing


def test_marked_as_typed():
    """Without the mark type checkers take all of it for untyped."""
    assert Path(skbounds.__file__).with_name("py.typed").exists()


def test_type_checkers_see_what_is_loaded_late():
    """The names of each topic are imported where only type checkers look."""
    source = Path(skbounds.__file__).read_text()
    for topic in skbounds._TOPICS:
        assert f"from skbounds import {topic} as {topic}\n" in source
        assert f"from skbounds.{topic} import *" in source
