"""
Tagging sequences online: a conditional random field that is played
===================================================================

Sentences come one after the other; each is tagged before its tags are seen.
:class:`~skbounds.fenchel_young.FenchelYoungOnlineStructured` with a chain plays a whole
sequence at once and learns what follows what; a classifier of single positions cannot.
The share of wrong tags is compared with that of the law that made the data, and the
regret with its bounds.
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
X, y, best = [], [], []
for _ in range(n):
    x = rng.normal(size=(rng.integers(4, 16), d))
    scores = np.concatenate([(x @ words).ravel(), follows.ravel()])
    X.append(x)
    y.append(chain.decode(chain.sample(scores, rng)))
    marginals = chain.log_partition(scores[None])[1][0]
    best.append(np.mean(chain.decode(chain.nearest(marginals)) != y[-1]))

# %%
# Both learners see each sentence once, play it, and then learn it.

learner = FenchelYoungOnlineStructured(chain, random_state=0)
single = FenchelYoungOnlineClassifier(random_state=0)
single.partial_fit(X[0], y[0], classes=range(K))
played, predicted, alone, certificates, bounds, regrets = [], [], [], [], [], []
checks = np.unique(np.geomspace(20, n, 12).astype(int))
before = 0.0
for t, (x, tags) in enumerate(zip(X, y, strict=True), start=1):
    learner.learn_one(x, tags) if t > 1 else learner.partial_fit([x], [tags])
    errors = single.progressive_errors_
    if t > 1:
        single.partial_fit(x, tags)
    alone.append((single.progressive_errors_ - errors) / len(tags))
    played.append(learner.expected_cumulative_loss_ / t)
    predicted.append(learner.progressive_errors_ / t)

seen = np.arange(1, n + 1)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.3), layout="constrained")
ax = axes[0]
ax.plot(seen, np.cumsum(alone) / seen, color="gray", label="one position by itself")
ax.plot(seen, played, label="chain, plays (expected)")
ax.plot(seen, predicted, label="chain, predictions")
ax.plot(seen, np.cumsum(best) / seen, "k:", label="the law that made the data")
ax.set(xscale="log", xlabel="sentences", ylabel="share of wrong tags so far")
ax.set(xlim=(5, n), ylim=(0.15, 0.75))
ax.legend()
learnt = learner.shared_coef_[learner.expert_weights_.argmax()].reshape(K, K)
ax = axes[1]
centre = follows - follows.mean()
ax.scatter(centre.ravel(), learnt.ravel() - learnt.mean())
ax.axline((0, 0), slope=1, color="gray", ls="--")
ax.set(xlabel="score of a transition, true", ylabel="learnt by the leading expert")
plt.show()

# %%
# The tags of one sentence inform each other, and the chain comes near the law that made
# them. The plays are random where the learner is unsure and lose more than the
# predictions; what is proved is about them. Against the leading expert as it is in the
# end, with all sentences known:

U, shared = learner.coef_[-1], learner.shared_coef_[-1]
loss = learner.comparator_loss(U, X, y, shared=shared)
print(f"expected wrong shares of the plays  {learner.expected_cumulative_loss_:8.0f}")
print(f"log-loss of the last expert         {loss:8.0f}")
certified = learner.surrogate_regret_certificate(coef=U, shared=shared)
print(
    f"regret {learner.expected_cumulative_loss_ - loss:.0f}, certified {certified:.0f}"
)
low, high = learner.error_interval()
print(f"mean error of predictions: {low:.3f} to {high:.3f}, at any time, 95 %")
