"""Measuring side by side: contestants take turns, medians are kept, and ratios are made within each round."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import median, quantiles
from typing import Any

Samples = Mapping[str, list[float]]
Contestants = Mapping[str, Callable[[], float]]


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to be: `got` against `limit`, at most unless `at_least`."""

    label: str
    got: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.got >= self.limit if self.at_least else self.got <= self.limit

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        bound = "at_least" if self.at_least else "at_most"
        return {"label": self.label, "got": round(self.got, 3), bound: self.limit, "met": self.met}


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table: what was measured, for ours and for those it is compared with, in `unit`."""

    workload: str
    store: str
    unit: str
    values: Mapping[str, float]
    targets: tuple[Target, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "workload": self.workload,
            "store": self.store,
            "unit": self.unit,
            "values": {name: round(value, 4) for name, value in self.values.items()},
            "targets": [target.to_json() for target in self.targets],
            "note": self.note,
        }


def side_by_side(contestants: Contestants, rounds: int, warm: bool = True) -> dict[str, list[float]]:
    """Let everybody run once in each round, each time beginning with another one, so that noise meets all alike."""
    names, samples = list(contestants), {name: list[float]() for name in contestants}
    if warm:
        for run in contestants.values():
            run()
    for turn in range(rounds):
        for name in (*islice(names, turn % len(names), None), *islice(names, turn % len(names))):
            gc.collect()
            os.sync()  # otherwise one waits while what another has written goes to the disk
            samples[name].append(contestants[name]())
    return samples


def middle(run: Callable[[], float], times: int = 5) -> Callable[[], float]:
    """Something short as a contestant: the middle of a few in a row, otherwise the others' caches are measured."""
    return lambda: median(run() for _ in range(times))


def medians(samples: Samples) -> dict[str, float]:
    """The middle value of each."""
    return {name: median(found) for name, found in samples.items() if found}


def ratio(samples: Samples, one: str, other: str) -> float:
    """How many times `other` fits into `one`: the median over the rounds, each of which was measured in one go."""
    return median(a / b for a, b in zip(samples[one], samples[other], strict=True))


def spread(found: list[float]) -> float:
    """How much a measurement wavers: the middle half's width as a share of the median."""
    if len(found) < 2:
        return 0.0
    low, middle, high = quantiles(found, n=4, method="inclusive")
    return (high - low) / middle


def percentile(found: list[float], share: float) -> float:
    """The value that `share` of all do not exceed."""
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
