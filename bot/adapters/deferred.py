"""A model that is built when it is first needed: its vendor's library takes seconds to load."""

from __future__ import annotations

import threading
from collections.abc import Callable

from graphs.ports import Model, ModelReply, ModelRequest


class Deferred:
    """Implements `graphs.ports.Model` by another one; `warm` builds it ahead of the first call."""

    def __init__(self, provider: str, build: Callable[[], Model]) -> None:
        self._provider = provider
        self._build = build
        self._lock = threading.Lock()
        self._model: Model | None = None

    @property
    def provider(self) -> str:
        """Who will answer."""
        return self._provider

    def complete(self, request: ModelRequest) -> ModelReply:
        """See `Model.complete`."""
        return self.warm().complete(request)

    def warm(self) -> Model:
        """The model itself, built now if it was not yet."""
        with self._lock:
            if self._model is None:
                self._model = self._build()
            return self._model
