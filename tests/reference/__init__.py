"""Slow, obvious reference implementations that the tests compare against."""
