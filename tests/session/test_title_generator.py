"""A title is made beside the work: it never costs where nobody asked for it, and never replaces the user's own."""

import json
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

import panpan
from panpan.app import kinds_of
from panpan.core.conversation import Conversation
from panpan.core.tool import SeenFiles, ToolContext
from panpan.permissions.folder_gate import DenyingAsker
from panpan.permissions.gate import PermissionGate
from panpan.session.agent import Agent, AgentPermissions, Identity, ModelParts, Transcript
from panpan.session.budget.budget import Budget
from panpan.session.budget.session_budget import spending_of
from panpan.session.budget.spending import session_costs
from panpan.session.capability import Capabilities
from panpan.session.log.fold import fold_records
from panpan.session.log.recorder import Recorder
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.one_shot import (
    MAX_PROMPT_CHARS,
    MAX_TITLE_CHARS,
    GeneratedTitle,
    reply_to,
    title_generator,
    title_in,
    title_question,
)
from panpan.session.session import Session, Titles
from panpan.session.setup import SessionSetup, load_setup
from panpan.session.unfinished import UnfinishedCalls
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.agent import SpendingLimits
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Usage, UserMessage
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.model_server import HttpError, serving
from tests.model_server import say as server_say

REPLY = AssistantMessage(
    content=(TextBlock(text="A fine title"),), model="tiny", usage=Usage(output_tokens=3), cost_usd=0.001
)


# what a reply is


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ('\n  "Fix the parser."\nmore', "Fix the parser"),
        ("**Title: Fix the parser**", "Fix the parser"),
        ("Title: “Fix”", "Fix"),
        ("Fix\x1b[2J the\tparser", "Fix the parser"),
        ("", ""),
        ('"."', ""),
        ("x" * 500, "x" * (MAX_TITLE_CHARS - 1) + "…"),
    ],
)
def test_title_is_the_first_line_without_decoration(text: str, title: str) -> None:
    assert title_in(say(text)) == title


def test_title_is_missing_if_the_reply_is_cut_or_calls_a_tool() -> None:
    assert title_in(say("half a ti").model_copy(update={"stop_reason": "max_tokens"})) == ""
    assert title_in(call(("1", "Bash", {}))) == ""


async def test_title_request_has_the_prompts_start_and_no_tools() -> None:
    llm = ScriptedLLM(say("A title"))

    question = title_question("do it " * 1000)
    reply = await reply_to(llm, question.system_prompt, question.text)

    (request,) = llm.requests
    assert reply is not None
    assert title_in(reply) == "A title"
    assert len(request.messages[0].text) < MAX_PROMPT_CHARS + 50
    assert (request.tools, "title" in request.system) == ((), True)


# when it is asked for


def setup_of(tmp_path: Path, *, settings: str = "", key: str = "ANTHROPIC_API_KEY", **env: str) -> SessionSetup:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text(settings)
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    keys = {key: "sk-test-0123456789"} if key else {}
    own = {"HOME": str(tmp_path), "PANPAN_HOME": str(home), **keys, **env}
    return load_setup(workspace, own, {}, (), kinds=kinds_of)


@pytest.mark.parametrize(
    ("settings", "is_interactive", "is_made"),
    [
        ("", True, True),
        ("", False, False),
        ('[sessions]\ntitle = "first-words"', True, False),
        ('[sessions]\ntitle = "model"', False, True),
    ],
)
def test_title_generator_needs_a_user_or_the_setting(
    tmp_path: Path, settings: str, is_interactive: bool, is_made: bool
) -> None:
    setup = setup_of(tmp_path, settings=settings)

    assert (title_generator(setup, Budget(), is_interactive=is_interactive, warn=print) is not None) is is_made


LOCAL = 'model = "ollama/qwen"\n[providers.ollama]\nbase_url = "{url}"\n'


async def test_title_behind_a_gateway_is_made_by_the_sessions_model(tmp_path: Path) -> None:
    with serving([server_say("Fix the parser")]) as server:
        setup = setup_of(tmp_path, ANTHROPIC_BASE_URL=server.url, NO_PROXY="*")
        make = title_generator(setup, Budget(), is_interactive=True, warn=print)
        assert make is not None
        made = await make("why does the parser fail?")

    assert made is not None
    assert made.title == "Fix the parser"
    assert json.loads(server.requests[0].raw)["model"] == setup.model.model


@pytest.mark.parametrize(("title", "is_asked"), [("auto", False), ("model", True)])
async def test_title_of_a_local_model_needs_a_request(tmp_path: Path, title: str, is_asked: bool) -> None:
    with serving([server_say("Fix the parser")]) as server:
        settings = f'{LOCAL.format(url=server.openai_url)}\n[sessions]\ntitle = "{title}"'
        setup = setup_of(tmp_path, settings=settings, key="", NO_PROXY="*")
        make = title_generator(setup, Budget(), is_interactive=True, warn=print)
        assert make is not None
        await make("hello")

    assert len(server.requests) == is_asked


# the session


class Maker:
    """Makes a title once it may."""

    def __init__(self, made: GeneratedTitle | None) -> None:
        self.made = made
        self.prompts: list[str] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()
        self.has_answered = anyio.Event()

    async def __call__(self, prompt: str) -> GeneratedTitle | None:
        self.prompts.append(prompt)
        await self.may_answer.wait()
        self.has_answered.set()
        return self.made


def session_of(root: Path, maker: Maker, *, title: str | None = None) -> Session:
    llm = ScriptedLLM(say("one"), say("two"))
    conversation, log = Conversation(), SessionLog(root / "s1.jsonl", session_id="s1", cwd=root)
    agent = Agent(
        Identity("s1"),
        Transcript(conversation, log, Recorder(conversation, log)),
        AgentPermissions(PermissionGate(), DenyingAsker(), Budget(), 5),
        ToolContext("", PathResolver(root), SeenFiles(), OutputStore(root)),
        UnfinishedCalls(),
    )
    agent.use(ModelParts("scripted", llm))
    return Session(agent, Capabilities(), titles=Titles(title, maker))


async def turn(session: Session, prompt: str) -> None:
    async with aclosing(session.submit(prompt)) as events:
        async for _ in events:
            pass


async def test_title_of_the_first_prompt_is_recorded_and_counted(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("A fine title", REPLY))
    async with session_of(tmp_path, maker) as session:
        await turn(session, "first")
        await maker.has_answered.wait()
        await turn(session, "second")

        assert session.title == "A fine title"
        assert maker.prompts == ["first"]
        costs = session_costs(session.conversation.messages, session.conversation.side_calls)
        assert costs.by_model["tiny"].known_cost_usd == 0.001

    again = fold_records(read_records(tmp_path / "s1.jsonl"))
    assert (again.title, again.side_calls) == ("A fine title", [REPLY])


async def test_title_is_made_despite_earlier_shell_commands(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("A fine title", REPLY))
    async with session_of(tmp_path, maker) as session:
        session.add_message(UserMessage.of("$ ls"))
        await turn(session, "first")

    assert maker.prompts == ["first"]


async def test_title_of_the_user_beats_one_made_meanwhile(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("made", REPLY))
    maker.may_answer = anyio.Event()
    async with session_of(tmp_path, maker) as session:
        await turn(session, "first")
        session.rename("mine")
        maker.may_answer.set()
        await maker.has_answered.wait()
        await turn(session, "second")

        assert session.title == "mine"
        assert session.conversation.side_calls == [REPLY]  # it cost what it cost

    assert fold_records(read_records(tmp_path / "s1.jsonl")).title == "mine"


async def test_title_of_the_user_replaces_a_made_one(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("made", REPLY))
    async with session_of(tmp_path, maker) as session:
        await turn(session, "first")
        await maker.has_answered.wait()
        await turn(session, "second")
        session.rename("mine")

    assert fold_records(read_records(tmp_path / "s1.jsonl")).title == "mine"


async def test_title_is_not_made_for_a_titled_session(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("made", REPLY))
    async with session_of(tmp_path, maker, title="mine") as session:
        await turn(session, "first")

        assert (maker.prompts, session.title) == ([], "mine")


async def test_title_is_not_awaited_at_the_end(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("made", REPLY))
    maker.may_answer = anyio.Event()
    with anyio.fail_after(10):
        async with session_of(tmp_path, maker) as session:
            await turn(session, "first")

    assert fold_records(read_records(tmp_path / "s1.jsonl")).title is None


async def test_title_stays_empty_if_none_is_made(tmp_path: Path) -> None:
    for made in (None, GeneratedTitle("", REPLY)):
        maker = Maker(made)
        (tmp_path / "s1.jsonl").unlink(missing_ok=True)
        async with session_of(tmp_path, maker) as session:
            await turn(session, "first")
            await maker.has_answered.wait()
            await turn(session, "second")
            assert session.title is None


async def test_title_cost_survives_a_rewind() -> None:
    conversation = Conversation()
    conversation.side_calls.append(REPLY)
    conversation.replace(())

    assert conversation.side_calls == [REPLY]


async def test_title_cost_is_recorded_without_a_title(tmp_path: Path) -> None:
    maker = Maker(GeneratedTitle("", REPLY))
    async with session_of(tmp_path, maker) as session:
        await turn(session, "first")
        await maker.has_answered.wait()
        await turn(session, "second")
        spent = spending_of(read_records(session.agent.transcript.log.path))

    assert spent.known_usd == REPLY.cost_usd


async def test_title_is_made_only_if_the_budget_pays(tmp_path: Path) -> None:
    with serving([server_say("Fix the parser")]) as server:
        setup = setup_of(tmp_path, settings=LAB.format(url=server.url), NO_PROXY="*")
        budget = Budget(limits=SpendingLimits(tokens=10))
        make = title_generator(setup, budget, is_interactive=True, warn=print)
        assert make is not None
        assert await make("why?") is None
        assert server.requests == []
        budget.limits = SpendingLimits()
        assert await make("why?") is not None

    assert budget.spent.calls == 1


LAB = """
model = "lab/big"
[providers.lab]
kind = "anthropic"
base_url = "{url}"
api_key = "k-0123456789"
[aliases]
fast = "lab/small"
"""


async def test_title_is_requested_from_the_small_model(tmp_path: Path) -> None:
    with serving([server_say("Fix the parser")]) as server:
        make = title_generator(
            setup_of(tmp_path, settings=LAB.format(url=server.url), NO_PROXY="*"),
            Budget(),
            is_interactive=True,
            warn=print,
        )
        assert make is not None
        made = await make("why does the parser fail?")

    assert made is not None
    assert made.title == "Fix the parser"
    assert "why does the parser fail?" in str(server.requests[0].messages)


async def test_title_failure_is_reported_and_leaves_none(tmp_path: Path) -> None:
    told: list[str] = []
    with serving([HttpError(500)]) as server:
        make = title_generator(
            setup_of(tmp_path, settings=LAB.format(url=server.url), NO_PROXY="*"),
            Budget(),
            is_interactive=True,
            warn=told.append,
        )
        assert make is not None

        assert await make("hello") is None
        assert len(server.requests) == 1
    (line,) = told
    assert line.startswith("the session got no title: ")
    assert line.endswith('[sessions] title = "first-words" asks for none')


async def test_title_in_an_interactive_session_asks_the_small_model(tmp_path: Path) -> None:
    with serving([server_say("Mend the parser")]) as server:
        setup = setup_of(tmp_path, settings=LAB.format(url=server.url), NO_PROXY="*")
        async with panpan.open_session(setup.cwd, env=setup.env, is_interactive=True) as session:
            assert session.titles.make is not None
            made = await session.titles.make("the parser fails")

        assert made is not None
        assert made.title == "Mend the parser"
        assert json.loads(server.requests[0].raw)["model"] == "small"


async def test_title_is_not_requested_without_a_user(tmp_path: Path) -> None:
    with serving([server_say("Mended."), server_say("never asked for")]) as server:
        setup = setup_of(tmp_path, settings=LAB.format(url=server.url), NO_PROXY="*")
        async with panpan.open_session(setup.cwd, env=setup.env) as session:
            await turn(session, "the parser fails")

        assert len(server.requests) == 1
