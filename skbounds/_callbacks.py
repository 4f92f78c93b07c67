"""What fits tell scikit-learn's callbacks (from scikit-learn 1.9 on): their tasks."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

from sklearn.utils.parallel import Parallel

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""


# Kept for scikit-learn to tear callbacks down after a fit that has failed.
OF_A_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


class Task:
    """A task of a fit, as callbacks see it; without callbacks, nothing.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext or None
    estimator : estimator
    given : dict
        X, y and metadata of the fit.
    """

    def __init__(self, context=None, estimator=None, given=None):
        self.context, self.estimator, self.given = context, estimator, given

    def __bool__(self):
        return self.context is not None

    def begin(self, name: str, n_tasks: int | None = 0) -> Task:
        """Begin a part of this task.

        Parameters
        ----------
        name : str
        n_tasks : int or None
            Number of its own parts at most; None if it isn't known.
        """
        if self.context is None:
            return self
        context = self.context.subcontext(task_name=name, max_subtasks=n_tasks)
        context.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        return Task(context, self.estimator, self.given)

    def end(self, attributes: Callable | None = None) -> bool:
        """End this task; return whether a callback wants the tasks of its kind to stop.

        Parameters
        ----------
        attributes : callable or None
            Returns the attributes of the estimator as it would be fitted by now.
        """
        if self.context is None:
            return False
        return self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=attributes, **self.given
        )


def fitted_by_now(estimator) -> Callable:
    """Return a function that copies what an estimator has learnt by now."""
    return lambda: copy.deepcopy(
        {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    )


_NONE = Task()
_CURRENT: ContextVar[Task] = ContextVar("skbounds_task", default=_NONE)


def current_task() -> Task:
    """Return the task of the fit that runs."""
    return _CURRENT.get()


@contextmanager
def fit_task(estimator, signature, args, kwargs) -> Iterator[None]:
    """Run a fit with arguments of a signature as a task, if callbacks hear of it."""
    heard = any(
        getattr(estimator, name, None)
        for name in ("_skl_callbacks", "_parent_callback_ctx")
    )
    task = _NONE
    if heard and hasattr(estimator, "_init_callback_context"):
        given = dict(signature.bind(estimator, *args, **kwargs).arguments)
        given |= given.pop("params", {})
        score = getattr(estimator, "score", None)
        scored = inspect.signature(score).parameters if score else ()
        # What scores of the same rows take, and weights.
        metadata = {
            name: value
            for name, value in given.items()
            if value is not None
            and (name == "sample_weight" or name in scored)
            and name not in ("X", "y", "self")
        }
        told = {"X": given.get("X"), "y": given.get("y"), "metadata": metadata or None}
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, **told)
        task = Task(context, estimator, told)
    token = _CURRENT.set(task)
    try:
        yield
        task.end(dict)
    finally:
        _CURRENT.reset(token)


@contextmanager
def unheard() -> Iterator[None]:
    """Do something beside a fit, of which callbacks do not hear."""
    token = _CURRENT.set(_NONE)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def as_task(name: str) -> Callable:
    """Make a function a task of the fit that calls it."""

    def decorate(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            task = current_task().begin(name, None)
            result = function(*args, **kwargs)
            task.end()
            return result

        return wrapper

    return decorate


@contextmanager
def hand_on(estimator, part) -> Iterator[None]:
    """Let an estimator that does a part of a fit tell of it."""
    task = current_task()
    if not task or not hasattr(part, "set_callbacks"):
        yield
        return
    context = task.context.subcontext(task_name=type(part).__name__)
    with context.propagate_callback_context(part):
        context.call_on_fit_task_begin(estimator=estimator, **task.given)
        yield
    context.call_on_fit_task_end(estimator=estimator, **task.given)


def run_tasks(jobs, name: str, *, n_jobs=None, **options) -> list:
    """Run delayed calls by joblib, each a task.

    Parameters
    ----------
    jobs : iterable of delayed calls
    name : str
        Of the task of all.
    n_jobs : int or None
    options : dict
        Of ``Parallel``.
    """
    task = current_task()
    if not task:
        return Parallel(n_jobs=n_jobs, **options)(jobs)
    jobs = list(jobs)
    whole, found = task.begin(name, len(jobs)), []
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator", **options)
    except ValueError:
        # A backend that has no generators.
        parallel = Parallel(n_jobs=n_jobs, **options)
    results = iter(parallel(jobs))
    for number in range(1, len(jobs) + 1):
        part = whole.begin(f"{name} {number}")
        found.append(next(results))
        part.end()
    whole.end()
    return found
