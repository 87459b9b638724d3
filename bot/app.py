"""The one place where adapters meet ports: settings in, everything a process is made of out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import httpx2
from slack_sdk import WebClient

from bot.adapters.claude import claude
from bot.adapters.deferred import Deferred
from bot.adapters.open_meteo import ATTRIBUTION, OpenMeteo
from bot.adapters.practice import Practice
from bot.adapters.practice_senders import PracticePost, PracticeSms
from bot.adapters.simulated import SimulatedApi, read_script, simulated
from bot.adapters.slack_post import SlackPost
from bot.adapters.trailheads import load_trailheads, made_up_trailheads
from bot.adapters.twilio import twilio_sms
from bot.budget import StoredBudget
from bot.dispatch import EmbeddedExecutor
from bot.effects import LedgerPerformer
from bot.parts import Parts, policy_of
from bot.people import People, SandboxPeople, SlackPeople
from bot.settings import Settings
from graphs.catalog import CATALOG, Catalog
from graphs.engine import Graph, Runner, State
from graphs.engine.events import Event
from graphs.ports import Deps, Model, Models, Sender, Trailhead, Trails
from storage.checkpoints import SqlCheckpointer
from storage.database import Database, open_database

OPEN_METEO = "https://api.open-meteo.com"
SLACK_TIMEOUT = 10  # seconds a call of Slack's Web API may take


def build(
    settings: Settings,
    *,
    catalog: Catalog = CATALOG,
    client: WebClient | None = None,
    model: Model | None = None,
    practice: httpx2.Client | None = None,
    clock: Callable[[], int] | None = None,
    migrate: bool = True,
    after: Callable[[str], None] = lambda _thread_id: None,
    emit: Callable[[Event], None] | None = None,
) -> Parts:
    """Join everything. What is given replaces what the settings name; nothing is started yet.

    Raises `DatabaseError`, `Misconfigured` or `SettingsError` with what to do.
    """
    database = open_database(settings.database_url, migrate=migrate, clock=clock)
    practice = practice or practice_client(settings)
    client = client or slack_client(settings)
    checkpointer = SqlCheckpointer(
        database,
        policy_of=lambda flow: policy_of(catalog.latest(flow), settings),
        guards=lambda flow, kind: kind not in catalog.latest(flow).unguarded,
    )
    deps = build_deps(settings, database, practice, model)
    performer = LedgerPerformer(database, senders(settings, practice, client))
    graphs = [flow.graph for flow in catalog.flows]
    runner = Runner(checkpointer, performer, deps, graphs, partial(_outcome, catalog))
    executor = EmbeddedExecutor(database, runner, settings.threads, after, emit)
    people: People = SlackPeople(client) if client else SandboxPeople()
    return Parts(
        settings=settings,
        database=database,
        checkpointer=checkpointer,
        runner=runner,
        performer=performer,
        executor=executor,
        deps=deps,
        people=people,
        practice=practice,
        catalog=catalog,
    )


def _outcome(catalog: Catalog, graph: Graph[State], state: State) -> str:
    return catalog.flow(graph.name, graph.version).outcome(state)


def build_deps(settings: Settings, database: Database, practice: httpx2.Client, model: Model | None = None) -> Deps:
    """What nodes are given."""
    return Deps(
        model=model or build_model(settings),
        models=Models(settings.model_worker, settings.model_writer),
        trails=build_trails(settings, practice),
        budget=StoredBudget(
            database,
            calls_a_run=settings.calls_a_run,
            tokens_a_run=settings.tokens_a_run,
            calls_a_day=settings.calls_a_day,
        ),
        sms_to=settings.group_phone,
        post_to=settings.hikes_channel,
        max_rounds=settings.rounds,
    )


def build_model(settings: Settings) -> Model:
    """Claude, or the simulated model behind the same client: the setting decides, never the environment."""
    if settings.model == "claude":
        assert settings.anthropic_api_key is not None
        key = settings.anthropic_api_key.get_secret_value()
        return Deferred("anthropic", partial(claude, key, settings.anthropic_base_url))
    script, api = read_script(settings.model_script), simulated_api(settings)
    return Deferred("simulated", partial(simulated, script, api=api))


def simulated_api(settings: Settings) -> SimulatedApi:
    """The stand-in for the model's API; raises `Misconfigured` for a script or fault that there is not."""
    script = read_script(settings.model_script)
    return SimulatedApi(script, settings.model_faults, settings.model_journal, settings.model_seconds)


def build_trails(settings: Settings, practice: httpx2.Client) -> Trails:
    """The club's trailheads with forecasts from Open-Meteo or the practice API, which speaks the same way."""
    trailheads: Sequence[Trailhead] = (
        load_trailheads(settings.trailheads_file, settings.trailheads_time_zone)
        if settings.trailheads_file
        else made_up_trailheads()
    )
    if settings.trails == "practice":
        return OpenMeteo(practice, trailheads, attribution="Practice weather, made up on this machine")
    client = httpx2.Client(base_url=settings.open_meteo_url or OPEN_METEO, timeout=10.0)
    return OpenMeteo(client, trailheads, attribution=ATTRIBUTION)


def senders(settings: Settings, practice: httpx2.Client, client: WebClient | None) -> list[Sender]:
    """One sender for each kind of effect that can go out."""
    post: Sender = SlackPost(client) if client else PracticePost(practice)
    return [build_sms(settings, practice), post]


def build_sms(settings: Settings, practice: httpx2.Client) -> Sender:
    """Twilio, or the practice API, which sends nothing to anybody."""
    if settings.sms == "practice":
        return PracticeSms(practice)
    assert settings.twilio_auth_token is not None
    token = settings.twilio_auth_token.get_secret_value()
    sender = settings.twilio_messaging_service_sid or settings.twilio_from
    return twilio_sms(settings.twilio_account_sid, token, sender, settings.twilio_status_url)


def practice_client(settings: Settings) -> httpx2.Client:
    """The practice API over HTTP, or inside this process with its record in a file beside the database."""
    if settings.practice_url:
        return httpx2.Client(base_url=settings.practice_url, timeout=10.0, trust_env=False)
    return Practice(settings.practice_record).client()


def slack_client(settings: Settings) -> WebClient | None:
    """A client of Slack's Web API that never repeats a call by itself, or None without a token."""
    if settings.slack_bot_token is None:
        return None
    token = settings.slack_bot_token.get_secret_value()
    return WebClient(token, base_url=settings.slack_api_url, timeout=SLACK_TIMEOUT, retry_handlers=[])
