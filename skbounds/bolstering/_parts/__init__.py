"""The default: held-out errors of a few fits on balanced parts of the rows."""
