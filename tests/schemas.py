"""What the commands print as JSON is what the package's schemas say."""

import json
from importlib.resources import files

import pytest


def check_schema(name, found):
    """Compare with a schema, which is one itself."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((files("skbounds") / "schemas" / f"{name}.json").read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    kind(schema).validate(found)
