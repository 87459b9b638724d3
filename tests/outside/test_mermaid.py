"""Drawings of graphs, read and drawn by Mermaid itself in a browser: no name and no label breaks them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from graphs.catalog import FLOWS
from graphs.engine import END, START, Command, Graph, State, StateGraph
from graphs.flow import Flow
from graphs.plan_hike import FLOW

pytestmark = [pytest.mark.browser, pytest.mark.peer]

HOSTILE = [
    "end", "End", "END", "graph", "flowchart", "class", "classDef", "style", "linkStyle", "subgraph", "direction",
    "click", "href", "call", "default", "interpolate", "state", "a[b]", "x(y)", "{c}", "a|b", "[(", "])", 'say "hi"',
    "it's", "`code`", "a-->b", "o---o", "x;y", "a:::here", "a@{ shape: cyl }", "@", "&", "&lt;", "&quot;", "&amp;",
    "<script>alert(1)", "<b>bold", "<br>", "<a href=x>", "%% note", "%%{init: {}}%%", "---", "new\nline", "\ttab",
    "1. first", "- item", "* item", "+ item", "> quote", "**bold**", "_under_", "$$x^2$$", "fa:fa-ban", "\\", "\\n",
    "Größe", "\U0001f600", "\U0001f469\u200d\U0001f680", "日本語", "\u0645\u0631\u062d\u0628\u0627", "\u202eabc",
    "\u200b", "n1", "S0", "E0", "here", "__proto__", "constructor", "a" * 500,
]  # fmt: skip

# What a router may answer, but no node may be called.
LABELS = [
    "#35;",
    "#quot;",
    "&#35;",
    "a/b",
    "// note",
    "</b>",
    "<script>alert(1)</script>",
    "<br/>",
    "https://example.test/x",
]

PARSE = "async (text) => (await mermaid.parse(text)).diagramType"

# What a reader sees, and elements that no drawing has unless a name was taken for HTML.
READ = """async (text) => {
    const {svg} = await mermaid.render('drawn', text);
    const drawn = new DOMParser().parseFromString(svg, 'text/html');
    const texts = (kind) => [...drawn.querySelectorAll(kind)].map((label) => label.textContent);
    return {
        nodes: texts('.node .nodeLabel'),
        edges: texts('.edgeLabel .edgeLabel'),
        here: texts('.node.here .nodeLabel'),
        foreign: drawn.querySelectorAll('script, a, b, strong, em, ul, ol, img, i').length,
    };
}"""


class Nothing(State):
    """A state of one key."""

    way: str = ""


@pytest.fixture(scope="module")
def page(packages: Path, browser: Browser) -> Iterator[Page]:
    """A page with Mermaid, in which nothing may be thrown that nobody catches."""
    page, thrown = browser.new_page(), list[str]()
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.add_script_tag(path=packages / "mermaid/dist/mermaid.min.js")
    page.evaluate("mermaid.initialize({startOnLoad: false, securityLevel: 'strict'})")
    yield page
    page.close()
    assert thrown == []


def drawing(*names: str, labels: Sequence[str] = ()) -> Graph[Nothing]:
    """A graph with these nodes, each reached by a router whose answer is its name; or the first by each of `labels`."""
    graph = StateGraph(Nothing)
    graph.add_node("first", lambda state: {})
    graph.add_edge(START, "first")
    for name in names:
        graph.add_node(name, lambda state: {})
        graph.add_edge(name, END)
    answers = dict.fromkeys(labels, names[0]) or {name: name for name in names}
    graph.add_conditional_edges("first", lambda state: names[0], answers)
    return graph.compile(name="drawn")


def plain(labels: Iterable[str]) -> list[str]:
    """Labels in no order, without what nobody sees: runs of spaces are one, edges with no label have an empty one."""
    seen = (" ".join(label.replace("\u200b", "").split()) for label in labels)
    return sorted(label for label in seen if label)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_of_a_node_and_of_an_answer_can_be_read(page: Page, name: str) -> None:
    assert page.evaluate(PARSE, drawing(name).draw_mermaid(name)) == "flowchart-v2"


@pytest.mark.parametrize("label", LABELS)
def test_an_answer_that_names_no_node_can_be_read(page: Page, label: str) -> None:
    assert page.evaluate(PARSE, drawing("second", labels=[label]).draw_mermaid()) == "flowchart-v2"


def test_names_are_shown_as_they_are(page: Page) -> None:
    read = page.evaluate(READ, drawing(*HOSTILE).draw_mermaid(HOSTILE))
    assert plain(read["nodes"]) == plain(["start", "first", *HOSTILE, "end"])
    assert plain(read["edges"]) == plain(HOSTILE)
    assert plain(read["here"]) == plain(HOSTILE)
    assert read["foreign"] == 0


def test_answers_are_shown_as_they_are(page: Page) -> None:
    read = page.evaluate(READ, drawing("second", labels=LABELS).draw_mermaid())
    assert plain(read["edges"]) == plain(LABELS)
    assert read["foreign"] == 0


def test_a_name_of_surrogates_is_accepted(page: Page) -> None:
    """No page shows them; the diagram is drawn all the same."""
    assert len(page.evaluate(READ, drawing("\ud800", "x\udfff").draw_mermaid())["nodes"]) == 5


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow.name} v{flow.graph.version}")
def test_every_flow_is_drawn_whole(page: Page, flow: Flow) -> None:
    read = page.evaluate(READ, flow.graph.draw_mermaid())
    assert plain(read["nodes"]) == plain(["start", *flow.graph.nodes, "end"])
    assert len(plain(read["edges"])) == sum(edge.conditional for edge in flow.graph.edges)
    assert read["here"] == []


@pytest.mark.parametrize("here", FLOW.graph.nodes)
def test_a_step_of_the_hike_planner_is_marked(page: Page, here: str) -> None:
    read = page.evaluate(READ, FLOW.graph.draw_mermaid(here))
    assert plain(read["nodes"]) == plain(["start", *FLOW.graph.nodes, "end"])
    assert read["here"] == [here]


def test_a_graph_within_a_graph_and_a_command_are_drawn(page: Page) -> None:
    graph = StateGraph(Nothing)
    graph.add_node("in]]side", drawing("end"), enter=lambda state: {}, leave=lambda state: {})
    graph.add_node("goes", lambda state: Command(goto=END), destinations=["in]]side", END])
    graph.add_edge(START, "goes").add_edge("in]]side", END)
    read = page.evaluate(READ, graph.compile(name="outer").draw_mermaid("in]]side"))
    assert plain(read["nodes"]) == plain(["start", "in]]side", "goes", "end"])
    assert plain(read["edges"]) == ["end", "in]]side"]


def test_mermaid_refuses_what_is_no_diagram(page: Page) -> None:
    """Otherwise all of the above would prove nothing."""
    with pytest.raises(Exception, match="Parse error"):
        page.evaluate("mermaid.parse('flowchart TD\\n    end[x]')")
