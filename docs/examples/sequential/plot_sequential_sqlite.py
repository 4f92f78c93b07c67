"""
An experiment that survives its process
=======================================

Experiments take weeks, processes die. The state of
:class:`~skbounds.sequential.MABFDR` is a small JSON text; here it is kept in SQLite,
next to the log, and written in the same transaction as each reward. We kill the process
between two rewards, and go on.
"""

# %%
# One row with the state, and a log. ``serve`` opens the file, asks, takes one reward
# and commits; nothing is kept in memory from one user to the next.

import json
import sqlite3
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skbounds.sequential import MABFDR, OnlineFDRDisplay

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "experiments.db"

with sqlite3.connect(path) as db:
    db.execute("CREATE TABLE study (id INTEGER PRIMARY KEY, state TEXT)")
    db.execute("CREATE TABLE log (experiment INTEGER, arm INTEGER, reward REAL)")
    study = MABFDR(alpha=0.1, rewards="binary", max_pulls=300, random_state=0)
    db.execute("INSERT INTO study VALUES (1, ?)", [json.dumps(study.to_dict())])


class Killed(Exception):
    """What happens to processes."""


def serve(rates, user, *, kill=False):
    """Show an arm to a user, and take what came of it; False at the end."""
    rng = np.random.default_rng(user)
    with sqlite3.connect(path) as db:
        (text,) = db.execute("SELECT state FROM study").fetchone()
        study = MABFDR.from_dict(json.loads(text))
        test = study.open_ or study.begin(len(rates))
        (arm,) = test.ask()
        reward = float(rng.random() < rates[arm])
        test.tell([arm], [reward])
        db.execute(
            "INSERT INTO log VALUES (?, ?, ?)",
            [len(study.history_), int(arm), reward],
        )
        over = test.done_
        if over:
            study.finish(test)
        db.execute("UPDATE study SET state = ?", [json.dumps(study.to_dict())])
        if kill:
            raise Killed
    return not over


# %%
# Eight experiments, of which every other one has a better arm. Every 70th user the
# process dies before its transaction is committed: the reward is lost from the log and
# from the state alike, and the user is served again.

experiments = [[0.1, 0.1, 0.1], [0.1, 0.1, 0.5]] * 4
user = n_killed = 0
for rates in experiments:
    going = True
    while going:
        user += 1
        try:
            going = serve(rates, user, kill=user % 70 == 0)
        except Killed:
            n_killed += 1

with sqlite3.connect(path) as db:
    (text,) = db.execute("SELECT state FROM study").fetchone()
    n_logged = db.execute("SELECT count(*) FROM log").fetchone()[0]
study = MABFDR.from_dict(json.loads(text))
pulls = sum(entry["n_pulls"] for entry in study.history_)
print(f"killed {n_killed} times; {n_logged} rewards in the log, {pulls} in the state")
print(study.report())

# %%
# Levels, p-values and wealth: each discovery pays for later tests.

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
OnlineFDRDisplay.from_study(study, ax=ax)
ax.set_ylim(1e-3, 1.5)
plt.show()
folder.cleanup()

# %%
# The state has a few kilobytes, whatever the number of rewards; what is asked for and
# has not been told is part of it.

print(f"{len(text)} characters")
