"""Everything the engine refuses, and why.

EngineError
├── GraphError                 the graph cannot be built: raised by `compile`
├── RunError                   something about one run; carries its thread id
│   ├── UpdateRefused          an update, input or edit does not fit the state
│   ├── NodeFailed             a node, router, reducer or mapping raised
│   ├── StepLimit              the whole tree of the run has used its steps
│   ├── UnknownThread          no such run
│   ├── ThreadExists           a run of that name exists already
│   ├── RunEnded               the run has ended
│   ├── NothingPending         the run asks nothing
│   ├── UnknownInterrupt       the id belongs to no question of this run
│   ├── StaleInterrupt         the question was answered, superseded or withdrawn
│   ├── AmbiguousAnswer        several questions are open and none was named
│   ├── NotNow                 somebody else advances the run, or nothing is due
│   ├── ClaimLost              a later owner has taken the run over
│   ├── UnknownVersion         no process here has this flow version and structure
│   └── EffectsPending         something of the run is being sent or its outcome is unknown
└── StoreFailed                the store could not save or load; the run stopped where it was
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of everything the engine raises."""


class GraphError(EngineError):
    """The graph cannot be built; the message names the culprit."""


class RunError(EngineError):
    """Something about one run."""

    def __init__(self, message: str, thread_id: str = "") -> None:
        super().__init__(message)
        self.thread_id = thread_id


class UpdateRefused(RunError):
    """An update, input or edit does not fit the state; nothing was stored."""


class NodeFailed(RunError):
    """A node, router, reducer or mapping raised; the message names it."""


class StepLimit(RunError):
    """The whole tree of the run has used its steps; what is done is kept."""


class UnknownThread(RunError):
    """No such run."""


class ThreadExists(RunError):
    """A run of that name exists already."""


class RunEnded(RunError):
    """The run has ended; no node runs any more."""


class NothingPending(RunError):
    """The run asks nothing."""


class UnknownInterrupt(RunError):
    """The id belongs to no question of this run."""


class StaleInterrupt(RunError):
    """The question was answered, superseded or withdrawn."""


class AmbiguousAnswer(RunError):
    """Several questions are open and none was named."""


class NotNow(RunError):
    """Somebody else advances the run, or nothing is due."""


class ClaimLost(RunError):
    """A later owner has taken the run over; nothing of this save was stored."""


class UnknownVersion(RunError):
    """No process here has this flow version and structure; the message says what to do."""


class EffectsPending(RunError):
    """Something of the run is being sent, or its outcome is unknown."""


class StoreFailed(EngineError):
    """The store could not save or load; the run stopped where it was and can go on when the store is back."""
