"""Every flow there is: one line for each flow and version. Old versions stay as long as runs need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from graphs import plan_hike
from graphs.flow import Flow


class UnknownFlow(LookupError):
    """There is no such flow or version; the message names those there are."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Flows by name and version. Building one raises `ValueError` for flows that cannot be told apart."""

    flows: tuple[Flow, ...]
    _by_key: Mapping[tuple[str, int], Flow] = field(init=False, repr=False)
    _latest: Mapping[str, Flow] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_key: dict[tuple[str, int], Flow] = {}
        for flow in self.flows:
            if flow.name != flow.graph.name:
                raise ValueError(f"Flow {flow.name!r} has a graph called {flow.graph.name!r}; give both one name.")
            if by_key.setdefault((flow.name, flow.graph.version), flow) is not flow:
                raise ValueError(f"{flow.name} v{flow.graph.version} is in the catalog twice; count its version up.")
        ordered = sorted(self.flows, key=lambda flow: flow.graph.version)
        object.__setattr__(self, "_by_key", by_key)
        object.__setattr__(self, "_latest", {flow.name: flow for flow in ordered})
        commands = [flow.command for flow in self._latest.values()]
        if twice := {command for command in commands if commands.count(command) > 1}:
            raise ValueError(f"Two flows have the command {sorted(twice)[0]}; give each its own.")

    @property
    def newest(self) -> tuple[Flow, ...]:
        """The latest version of every flow: what people can start."""
        return tuple(self._latest.values())

    @property
    def known(self) -> dict[tuple[str, int], str]:
        """The structure's fingerprint of every version, for claiming runs."""
        return {key: flow.graph.fingerprint for key, flow in self._by_key.items()}

    def flow(self, name: str, version: int) -> Flow:
        """The flow of that name and version. Raises `UnknownFlow`."""
        if (name, version) not in self._by_key:
            raise UnknownFlow(f"There is no flow {name} v{version}; there are {self._names()}.")
        return self._by_key[name, version]

    def latest(self, name: str) -> Flow:
        """The newest version of a flow. Raises `UnknownFlow`."""
        if name not in self._latest:
            raise UnknownFlow(f"There is no flow {name}; there are {self._names()}.")
        return self._latest[name]

    def by_command(self, command: str) -> Flow:
        """The newest flow of a slash command, given with or without its slash. Raises `UnknownFlow`."""
        wanted = "/" + command.strip().removeprefix("/")
        for flow in self.newest:
            if flow.command == wanted:
                return flow
        raise UnknownFlow(f"No flow has the command {wanted}; there are {_listed(f.command for f in self.newest)}.")

    def _names(self) -> str:
        return _listed(f"{name} v{version}" for name, version in self._by_key)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


FLOWS: Final[tuple[Flow, ...]] = (
    plan_hike.FLOW,  # /plan-hike
)

CATALOG: Final = Catalog(FLOWS)
