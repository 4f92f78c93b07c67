"""numpydoc validation of every public object."""

import inspect

import pytest
from common import instances, make_data

import skbounds

validate = pytest.importorskip(
    "numpydoc.validate", reason="test extra not installed (oldest versions)"
)

# Names whose use warns.
DEPRECATED = {"excess_risk_bound_"}
# Codes that are not required, each with its reason.
IGNORED = {
    "ES01": "an extended summary is not needed where one line says it all",
    "EX01": "the class has the example; methods need none",
    "SA01": "the class has the references; methods need none",
    "SA04": "names in See Also are links, which carry their own description",
    "GL01": "summaries start on the line of the quotes, as in scikit-learn",
    "YD01": "generators are private here",
    "RT02": "results are named, as in scikit-learn",
    "RT04": "descriptions may start with a formula",
    "PR08": "descriptions may start with a name in lower case",
}
REQUIRED_OF_CLASSES = {"EX01", "SA01"}


def public_objects():
    """Yield dotted names of public classes, functions and their own methods."""
    for topic, names in skbounds._TOPICS.items():
        for name in names:
            item = getattr(skbounds, name)
            path = f"skbounds.{topic}.{name}"
            yield path
            if not inspect.isclass(item):
                continue
            for member, value in inspect.getmembers(item):
                function = inspect.unwrap(value) if callable(value) else value
                module = getattr(function, "__module__", "") or ""
                if not member.startswith("_") and module.startswith("skbounds"):
                    yield f"{path}.{member}"


@pytest.mark.parametrize("topic", list(skbounds._TOPICS))
def test_topics_have_a_docstring(topic):
    """The API page takes its headings from there."""
    assert inspect.getdoc(getattr(skbounds, topic)).splitlines()[0].endswith(".")


@pytest.mark.parametrize("name", list(public_objects()))
def test_docstring(name):
    """Sections, order, parameters, returns: numpydoc finds nothing."""
    result = validate.validate(name)
    required = REQUIRED_OF_CLASSES if result["type"] == "type" else set()
    errors = [
        f"{code}: {text}"
        for code, text in result["errors"]
        if code not in IGNORED or code in required
    ]
    assert not errors, "\n".join(errors)


ALL = [*instances(), *instances(outside=True)]


@pytest.mark.parametrize("name", sorted({type(each).__name__ for each in ALL}))
def test_attributes_are_documented(name):
    """Every public fitted attribute is in the docstring, and the other way round."""
    found = [each for each in ALL if type(each).__name__ == name]
    text = inspect.getdoc(type(found[0]))
    attributes = set()
    for estimator in found:
        estimator.fit(*make_data(estimator))
        attributes |= {
            attribute
            for attribute in vars(estimator)
            if attribute.endswith("_") and not attribute.startswith("_")
        }
        attributes |= {
            name
            for name, value in inspect.getmembers(type(estimator))
            if isinstance(value, property)
            and not name.startswith("_")
            and name not in DEPRECATED
            and hasattr(estimator, name)
        }
    for attribute in attributes | {"feature_names_in_"}:
        assert f"\n{attribute} : " in text, attribute
