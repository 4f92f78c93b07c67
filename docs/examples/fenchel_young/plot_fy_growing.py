"""
A stream whose world grows: new classes, hashed words, late labels
==================================================================

Messages arrive; their topic is known only some time later, and new topics and words
appear all the time. Plays are made at once (``play_one``), labels are learnt when they
come (``learn_one`` with the ticket), classes join (``classes="grow"``), and words are
hashed into a fixed number of columns.
"""

# %%
# Ten topics that appear one after the other, each with words of its own. Words are text
# and never end: ``FeatureHasher`` needs no list of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction import FeatureHasher

from skbounds import FenchelYoungOnlineClassifier

rng = np.random.default_rng(0)
n, begins = 6000, np.arange(10) * 450


def message(t):
    topic = rng.choice(np.flatnonzero(begins <= t))
    own = [f"topic{topic}-word{k}" for k in rng.integers(300, size=4)]
    common = [f"word{int(k)}" for k in 3000 * rng.random(12) ** 3]
    return dict.fromkeys([*own, *common], 1.0), f"topic {topic}"


hasher = FeatureHasher(n_features=2**16, alternate_sign=False)
messages = [message(t) for t in range(n)]
rows = hasher.transform(words for words, _ in messages)
labels = [label for _, label in messages]

# %%
# A label comes after 1 to 400 other messages, and one in ten never.

clf = FenchelYoungOnlineClassifier(random_state=0)
clf.partial_fit(rows[:1], labels[:1], classes="grow")
arrives, wrong, classes, spans = {}, [], [], []
for t in range(1, n):
    row = rows[t]
    ticket = clf.play_one((row.indices, row.data))
    wrong.append(ticket.play != labels[t])
    if rng.random() < 0.9:
        arrives.setdefault(t + rng.integers(1, 400), []).append((ticket, labels[t]))
    for late, label in arrives.pop(t, []):
        clf.learn_one(late, label)
    classes.append(len(clf.classes_))
    if t % 50 == 0:
        spans.append((t, *clf.error_interval(kind="play"), np.mean(wrong)))

spans = np.array(spans).T
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
ax = axes[0]
kernel = np.ones(150) / 150
ax.plot(np.convolve(wrong, kernel, mode="same"), label="wrong plays (150 messages)")
for begin in begins[1:]:
    ax.axvline(begin, color="gray", lw=0.7, ls=":")
ax.set(xlabel="messages; dotted: a new topic begins", ylabel="share", ylim=(0, 0.65))
right = ax.twinx()
right.plot(classes, color="tab:green", lw=1)
right.set_ylabel("classes known", color="tab:green")
ax.legend(loc="upper right")
ax = axes[1]
ax.fill_between(spans[0], spans[1], spans[2], alpha=0.3, label="95 %, at any time")
ax.plot(spans[0], spans[3], "k", lw=1, label="wrong plays (all labels known)")
ax.set(xlabel="messages", ylabel="mean error of the plays so far", ylim=(0, 1))
ax.legend()
plt.show()

# %%
# A new topic is played wrong until its first labels come. The interval counts plays
# whose label has not come as right for its lower end and as wrong for its upper one:
# the labels that never come keep it wide, and what is not known is not claimed.

print(f"{clf.n_samples_seen_} learnt, {clf.n_open_tickets_} without a label")
late = clf.surrogate_regret_bound(0.0)
print(f"of the bound, {late:.2f} are for late classes and for mixing")
