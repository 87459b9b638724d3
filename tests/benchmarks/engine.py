"""The engine's workloads, ours beside theirs and the floor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache, partial
from itertools import count
from statistics import median

from tests.benchmarks import floor, graphs, ours, peers
from tests.benchmarks.child import ask_child
from tests.benchmarks.figures import Contestants, Figure, Target, medians, middle, ratio, side_by_side, spread
from tests.benchmarks.places import Places

OURS, LANGGRAPH, FLOOR, BURR = "ours", "langgraph", "floor", "burr"
STEPS = 300
BRANCHES = 10
RUNS, RUN_STEPS = 200, 12  # a multiple of the three nodes in the circle
WINDOW = 50
TIMES_FLOOR = {"sqlite": 2.0, "postgresql": 1.8}
TIMES_AT_ONCE = {"sqlite": 10.0, "postgresql": 8.0}


def linear(places: Places, quick: bool) -> Iterator[Figure]:
    """One step after another."""
    for vendor in places.vendors:
        contestants: Contestants = {
            OURS: partial(ours.in_a_line, places, vendor, STEPS),
            LANGGRAPH: partial(peers.in_a_line, places, vendor, STEPS),
            FLOOR: partial(floor.BY_VENDOR[vendor], places, STEPS),
            **({BURR: partial(peers.burr_in_a_line, places, STEPS)} if vendor == "sqlite" else {}),
        }
        found = side_by_side(contestants, 3 if quick else 5)
        targets = [Target("x floor", ratio(found, OURS, FLOOR), TIMES_FLOOR[vendor])]
        if vendor == "sqlite":
            targets.append(Target("x faster", ratio(found, LANGGRAPH, OURS), 2.5, at_least=True))
        note = f"the floor wavers by {spread(found[FLOOR]):.0%}"
        yield Figure(f"linear loop, {STEPS} steps", vendor, "ms a step", medians(found), tuple(targets), note)
    yield _steady(places, quick)


def _steady(places: Places, quick: bool) -> Figure:
    """The same as on a later day: SQLite's log has its size and is written anew from its start, it grows no more."""
    contestants: Contestants = {
        OURS: partial(ours.in_a_line, places, "sqlite", STEPS, before=2),
        LANGGRAPH: partial(peers.in_a_line, places, "sqlite", STEPS, before=2),
        FLOOR: partial(floor.sqlite, places, STEPS, before=1000),
    }
    found = side_by_side(contestants, 3 if quick else 5, warm=False)
    note = f"LangGraph takes {ratio(found, LANGGRAPH, OURS):.1f} times as long"
    return Figure("the same, once the log has its size", "sqlite", "ms a step", medians(found), (), note)


def messages(places: Places, quick: bool) -> Iterator[Figure]:
    """A conversation of 800 messages: whether it gets slower, and how much disk it takes."""
    for vendor in places.vendors:
        rounds = [ours.talking(places.migrated(vendor), 800) for _ in range(2 if quick else 3)]
        first, last = zip(*map(_ends, rounds), strict=True)
        values, note = {OURS: median(last)}, ""
        growth = median(late / early for early, late in zip(first, last, strict=True))
        if not quick:
            theirs, _ = _their_talk(places, vendor)
            values[LANGGRAPH] = _ends(theirs)[1]
            note = f"LangGraph's last steps take {_ends(theirs)[1] / _ends(theirs)[0]:.1f} times its first"
        target = (Target("last : first", growth, 1.2),)
        yield Figure("800 messages, last 50 steps", vendor, "ms a step", values, target, note)


@cache
def _their_talk(places: Places, vendor: str) -> tuple[list[float], int]:
    """LangGraph's conversation, measured once: it writes 200 MB."""
    return peers.talking(places, vendor, 800)


def _ends(steps: list[float]) -> tuple[float, float]:
    """The median of the first and of the last steps; the very first one also opens the database."""
    return median(steps[1 : WINDOW + 1]), median(steps[-WINDOW:])


def disk(places: Places, quick: bool) -> Iterator[Figure]:
    """Bytes after 200, 400 and 800 messages, the write-ahead log written back."""
    for vendor in places.vendors:
        sizes = {}
        for steps in (200, 400, 800):
            url = places.migrated(vendor)
            empty = ours.size(url)
            ours.talking(url, steps)
            sizes[steps] = ours.size(url), ours.size(url) - empty
        values = {OURS: sizes[800][0] / 1e6}
        if not quick:
            values[LANGGRAPH] = _their_talk(places, vendor)[1] / 1e6
        growth = sizes[800][1] / sizes[200][1]
        targets = (Target("MB", sizes[800][0] / 1e6, 1.6), Target("800 : 200", growth, 4.4))
        note = ", ".join(f"{steps}: {whole / 1e6:.2f} MB" for steps, (whole, _) in sizes.items())
        yield Figure("disk, 800 messages of 490 bytes", vendor, "MB", values, targets, note)


def resume(places: Places, quick: bool) -> Iterator[Figure]:
    """Answering in a new process a run that has 1000 messages."""
    number = 1000

    def answer_ours() -> float:
        url = places.migrated("sqlite")
        return ask_child(places.bytecode, "resume-ours", url, *ours.prepare_question(url, number), number)

    def answer_theirs() -> float:
        return ask_child(places.bytecode, "resume-theirs", peers.prepare_question(places, number), number)

    found = side_by_side({OURS: answer_ours, LANGGRAPH: answer_theirs}, 3 if quick else 5)
    target = Target("ms", medians(found)[OURS], 15)
    yield Figure(f"resume with {number} messages", "sqlite", "ms", medians(found), (target,), "imports not counted")


def branches(places: Places, quick: bool) -> Iterator[Figure]:
    """Ten nodes side by side, and a join."""
    for vendor in places.vendors:
        with ExitStack() as stack:
            engine = stack.enter_context(ours.runner(places.migrated(vendor)))
            opened, _ = stack.enter_context(peers.saver(places, vendor))
            graph, theirs, names = graphs.fan(BRANCHES), peers.fan(BRANCHES, opened), count()
            contestants: Contestants = {
                OURS: middle(partial(ours.branching, engine, graph)),
                LANGGRAPH: middle(lambda theirs=theirs, names=names: peers.branching(theirs, str(next(names)))),
                FLOOR: partial(floor.BY_VENDOR[vendor], places, 30),
            }
            found = side_by_side(contestants, 5 if quick else 10)
        target = (Target("ms", medians(found)[OURS], 3.0),) if vendor == "sqlite" else ()
        yield Figure(f"{BRANCHES} branches and a join", vendor, "ms a run", medians(found), target)


def many(places: Places, quick: bool) -> Iterator[Figure]:
    """Two hundred runs under way at the same time."""
    for vendor in places.vendors:
        contestants: Contestants = {
            OURS: partial(ours.many, places, vendor, RUNS, RUN_STEPS),
            LANGGRAPH: partial(peers.many, places, vendor, RUNS, RUN_STEPS),
        }
        found = side_by_side(contestants, 1 if quick else 2, warm=False)
        times = Target("x faster", ratio(found, OURS, LANGGRAPH), TIMES_AT_ONCE[vendor], at_least=True)
        name = f"{RUNS} runs at once, {RUN_STEPS} steps each"
        yield Figure(name, vendor, "steps a second", medians(found), (times,))


def imports(places: Places, quick: bool) -> Iterator[Figure]:
    """Loading the engine."""
    contestants: Contestants = {
        OURS: partial(ask_child, places.bytecode, "import-engine"),
        LANGGRAPH: partial(ask_child, places.bytecode, "import-langgraph"),
    }
    found = side_by_side(contestants, 3 if quick else 5)
    target = (Target("ms", medians(found)[OURS], 50),)
    yield Figure("import, beyond pydantic", "", "ms of CPU", medians(found), target)


WORKLOADS = {
    "linear": linear,
    "messages": messages,
    "disk": disk,
    "resume": resume,
    "branches": branches,
    "many": many,
    "import": imports,
}
