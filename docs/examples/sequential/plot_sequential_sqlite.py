"""
An experiment that survives its process
=======================================

Experiments take weeks, processes die. The state of
:class:`~skbounds.sequential.MABFDR` is a small JSON text; here it is kept in SQLite,
next to the log, and written in the same transaction as each reward. We kill the process
between two rewards, and go on.
"""

import json
import sqlite3
import tempfile
from contextlib import suppress

import matplotlib.pyplot as plt
import numpy as np

from skbounds.sequential import MABFDR, OnlineFDRDisplay

folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(f"{folder.name}/experiments.db")
# OFF survives the death of a process; leave it on to survive that of the computer.
db.executescript("PRAGMA synchronous = OFF; CREATE TABLE study (state TEXT);")
db.execute("CREATE TABLE log (experiment INTEGER, arm INTEGER, reward REAL)")
study = MABFDR(alpha=0.1, rewards="binary", max_pulls=300, random_state=0)
db.execute("INSERT INTO study VALUES (?)", [json.dumps(study.to_dict())])
db.commit()


def read():
    (text,) = db.execute("SELECT state FROM study").fetchone()
    return MABFDR.from_dict(json.loads(text))


user = 0
for rates in [[0.1, 0.1, 0.1], [0.1, 0.1, 0.5]] * 4:
    n_done = len(read().history_)
    while len(read().history_) == n_done:
        user += 1
        with suppress(InterruptedError), db:  # a transaction, rolled back by errors
            study = read()
            test = study.open_ or study.begin(len(rates))
            (arm,) = test.ask()
            reward = float(np.random.default_rng(user).random() < rates[arm])
            test.tell([arm], [reward])
            db.execute("INSERT INTO log VALUES (?, ?, ?)", [n_done, int(arm), reward])
            if test.done_:
                study.finish(test)
            db.execute("UPDATE study SET state = ?", [json.dumps(study.to_dict())])
            if user % 70 == 0:
                raise InterruptedError  # the process dies before the commit
study = read()
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
OnlineFDRDisplay.from_study(study, ax=ax)
ax.set_ylim(1e-3, 1.5)
plt.show()

# %%
# Eight experiments, of which every other one has a better arm. Each discovery (a
# p-value below its level) earns wealth, which pays for later tests.
#
# Every 70th user the process dies, here by an exception, before its transaction is
# committed: the reward is lost from the log and from the state alike, and another user
# is served. Nothing is kept in memory from one user to the next. The state has a few
# kilobytes, whatever the number of rewards; what is asked for and has not been told is
# part of it.

(n_logged,) = db.execute("SELECT count(*) FROM log").fetchone()
pulls = sum(entry["n_pulls"] for entry in study.history_)
print(f"killed {user // 70} times; {n_logged} rewards in the log, {pulls} in the state")
print(f"{len(json.dumps(study.to_dict()))} characters")
print(study.report())
db.close()
folder.cleanup()
