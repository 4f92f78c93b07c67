"""Which losses, estimators and parameters go together."""

from __future__ import annotations

from sklearn.base import is_classifier, is_regressor
from sklearn.utils import get_tags

from skbounds._base import warn_user
from skbounds.bolstering._losses import resolve_losses

# Parameters of the first version's default that nothing reads any more.
_OUT_OF_USE = ("holdout_scale", "n_neighbors", "shrink", "clip")


def is_default(value):
    """Tell whether a parameter was left alone."""
    return isinstance(value, str) and value in ("deprecated", "auto")


class ScorerChecks:
    """Mixin: checks of a scorer's parameters against an estimator."""

    def _check_kernel(self):
        if self.method == "auto" and not (
            isinstance(self.kernel, str) and self.kernel == "auto"
        ):
            raise ValueError(
                "kernel can only be chosen together with one of the methods 'x', 'xy' "
                f"and 'x+posterior'; got kernel={self.kernel!r} and method='auto'."
            )

    def _check_combination(self, losses, classification):
        self._check_kernel()
        kinds = [loss.kind for loss in losses]
        if self.method == "xy" and classification:
            raise ValueError(
                "method='xy' moves the targets, which classes cannot be; choose "
                "method='x'."
            )
        if "score" in kinds and self.method != "auto":
            raise ValueError(
                f"method={self.method!r} averages losses of rows; a score that is no "
                "mean of losses needs method='auto'."
            )
        if self.semi and (kinds != ["zero_one"] or self.method != "x"):
            raise ValueError(
                "semi=True is for loss='zero_one' and method='x' only; got "
                f"loss={self.loss!r} and method={self.method!r}."
            )

    def _check_question(self, estimator, *, warn=True):
        """Return the losses, if they go together with estimator and parameters."""
        classification = is_classifier(estimator)
        if not classification and not is_regressor(estimator):
            raise ValueError(
                "BolsteredScorer is for classifiers and regressors; got "
                f"{type(estimator).__name__}."
            )
        losses = resolve_losses(self.loss, classification)
        self._check_combination(losses, classification)
        self._check_movable(estimator)
        if warn:
            self._warn_of_old_parameters()
        return losses

    def _check_movable(self, estimator):
        """Refuse estimators of kernel matrices, where anything has to be moved."""
        if self.method not in ("auto", "y", "resub") and (
            get_tags(estimator).input_tags.pairwise
        ):
            raise ValueError(
                f"{estimator!r} takes a kernel matrix (precomputed, pairwise), whose "
                "entries cannot be moved; give it the features and the kernel."
            )

    def _warn_of_old_parameters(self):
        names = [name for name in _OUT_OF_USE if not is_default(getattr(self, name))]
        if self.method == "auto" and not is_default(self.n_nodes):
            names.append("n_nodes")
        if self.n_folds == 2:
            names.append("n_folds=2")
        if names:
            warn_user(
                f"{', '.join(names)} has no effect since version 0.2, whose "
                "method='auto' moves no rows; from 0.3 on it will be an error.",
                FutureWarning,
            )
