"""
A stream whose world grows: new classes, hashed words, late labels
==================================================================

New topics and words appear all the time. Messages are played at once (``play_one``),
labels are learnt when they come (``learn_one`` with the ticket), classes join
(``classes="grow"``), and words are hashed into a fixed number of columns.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction import FeatureHasher

from skbounds import FenchelYoungOnlineClassifier

rng = np.random.default_rng(0)
begins = np.arange(10) * 450  # of the topics


def message(t):
    topic = rng.choice(np.flatnonzero(begins <= t))
    own = [f"topic{topic}-word{k}" for k in rng.integers(300, size=4)]
    common = [f"word{int(k)}" for k in 3000 * rng.random(12) ** 3]
    return dict.fromkeys([*own, *common], 1.0), f"topic {topic}"


words, labels = zip(*[message(t) for t in range(6000)], strict=True)
rows = FeatureHasher(n_features=2**16, alternate_sign=False).transform(words)
clf = FenchelYoungOnlineClassifier(random_state=0)
clf.partial_fit(rows[:1], labels[:1], classes="grow")
arrives, wrong, spans = {}, [], []
for t in range(1, 6000):
    ticket = clf.play_one((rows[t].indices, rows[t].data))
    wrong.append(ticket.play != labels[t])
    # A label comes after 1 to 400 other messages, and one in ten never.
    if rng.random() < 0.9:
        arrives.setdefault(t + rng.integers(1, 400), []).append((ticket, labels[t]))
    for late in arrives.pop(t, []):
        clf.learn_one(*late)
    if t % 50 == 0:
        spans.append((t, *clf.error_interval(kind="play"), np.mean(wrong)))

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(np.arange(150, 6000), np.convolve(wrong, np.ones(150) / 150, mode="valid"))
ax.vlines(begins[1:], 0, 0.6, color="gray", lw=1, ls=":")
ax.set(xlabel="messages; dotted: a new topic begins", ylim=(0, 0.6))
ax.set_ylabel("wrong of the last 150 plays")
plt.show()

# %%
# Ten topics appear one after the other, each with words of its own. Words are text and
# never end: ``FeatureHasher`` needs no list of them. A new topic is played wrong until
# its first labels come.
#
# **What is known of the error** so far, at any time:

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
seen, low, high, mean = np.array(spans).T
ax.fill_between(seen, low, high, alpha=0.3, label="95 %, at any time")
ax.plot(seen, mean, "k", lw=1, label="wrong plays (all labels known)")
ax.set(xlabel="messages", ylabel="mean error of the plays so far", ylim=(0, 1))
ax.legend()
plt.show()

# %%
# The interval counts plays whose label has not come as right for its lower end and as
# wrong for its upper one: the labels that never come keep it wide, and what is not
# known is not claimed.

print(f"{clf.n_samples_seen_} learnt, {clf.n_open_tickets_} without a label")
late = clf.surrogate_regret_bound(0.0)
print(f"of the bound, {late:.2f} are for late classes and for mixing")
