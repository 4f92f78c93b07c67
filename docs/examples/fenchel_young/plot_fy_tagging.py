"""
Tagging sequences online: a conditional random field that is played
===================================================================

Sentences come one after the other; each is tagged before its tags are seen.
:class:`~skbounds.fenchel_young.FenchelYoungOnlineStructured` with a chain plays a whole
sequence at once and learns what follows what; a classifier of single positions cannot.
"""

# %%
# Sentences of five tags: transitions that like order, and words that tell little.

import matplotlib.pyplot as plt
import numpy as np

from skbounds import FenchelYoungOnlineClassifier, FenchelYoungOnlineStructured
from skbounds.fenchel_young.structures import ChainCRF

rng = np.random.default_rng(0)
K, d, n = 5, 8, 1500
words, follows = 0.7 * rng.normal(size=(d, K)), 2.0 * rng.normal(size=(K, K))
chain = ChainCRF(K)
learner = FenchelYoungOnlineStructured(chain, random_state=0)
single = FenchelYoungOnlineClassifier(random_state=0)
X, y, sums, shares = [], [], [], []
for _ in range(n):
    before = single.progressive_errors_ if y else 0
    X.append(rng.normal(size=(rng.integers(4, 16), d)))
    scores = np.concatenate([(X[-1] @ words).ravel(), follows.ravel()])
    y.append(chain.decode(chain.sample(scores, rng)))
    marginals = chain.log_partition(scores[None])[1][0]
    of_law = np.mean(chain.decode(chain.nearest(marginals)) != y[-1])
    learner.partial_fit(X[-1:], y[-1:])
    single.partial_fit(X[-1], y[-1], classes=range(K))
    alone = (single.progressive_errors_ - before) / len(y[-1])
    sums.append((learner.expected_cumulative_loss_, learner.progressive_errors_))
    shares.append((alone, of_law))

seen = np.arange(1, n + 1)[:, None]
curves = np.hstack([np.array(sums), np.cumsum(shares, axis=0)]) / seen
names = "chain, plays", "chain, predictions", "one position by itself", "true law"
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for curve, name, style in zip(curves.T, names, ["-", "-", "--", "k:"], strict=True):
    ax.plot(seen, curve, style, label=f"{name}: {curve[-1]:.2f}")
ax.set(xscale="log", xlabel="sentences", ylabel="share of wrong tags so far")
ax.set(xlim=(10, n), ylim=(0.3, 0.75))
ax.legend()
plt.show()

# %%
# The tags of one sentence inform each other, and the predictions of the chain come near
# those of the law that made them. The plays, of which the expected loss is shown, are
# random where the learner is unsure and lose more; what is proved is about them.
#
# **What has been learnt**: the scores of transitions, up to a constant.

leading = learner.expert_weights_.argmax()
learnt = learner.shared_coef_[leading].reshape(K, K)
figure, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
ax.scatter((follows - follows.mean()).ravel(), (learnt - learnt.mean()).ravel())
ax.axline((0, 0), slope=1, color="gray", ls="--")
ax.set(xlabel="score of a transition, true", ylabel="learnt by the leading expert")
plt.show()

# %%
# **Against the leading expert** as it is in the end, with all sentences known:

U, shared = learner.coef_[leading], learner.shared_coef_[leading]
loss = learner.comparator_loss(U, X, y, shared=shared)
print(f"expected wrong shares of the plays  {learner.expected_cumulative_loss_:6.0f}")
print(f"log-loss of the leading expert      {loss:9.0f}")
certified = learner.surrogate_regret_certificate(coef=U, shared=shared)
print(
    f"regret {learner.expected_cumulative_loss_ - loss:.0f}, certified {certified:.0f}"
)
low, high = learner.error_interval()
print(f"mean error of predictions: {low:.3f} to {high:.3f}, at any time, 95 %")
