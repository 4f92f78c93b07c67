"""How many examples hypothesis tries.

``pytest --hypothesis-profile=deep`` tries ``SKBOUNDS_EXAMPLES`` random ones (2000 if it
is not set) wherever a test says `fuzz`; without it each test tries the same few.
"""

from hypothesis import settings


def examples(n):
    """Return the number of examples of a test that has n of them by default."""
    # conftest.py registers the profile; a test's module is imported after it is chosen.
    if settings.get_current_profile_name().startswith("deep"):
        return max(n, settings.default.max_examples)
    return n


def fuzz(n, **options):
    """Decorate a test that has n examples, more in the deep profile."""
    return settings(max_examples=examples(n), **options)
