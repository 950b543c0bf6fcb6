"""`open_session` with models, modes, questions and settings, over tapes in place of models."""

import errno
import fcntl
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.errors import BudgetError, ConfigError, UnfinishedCallError
from panpan.session.frontend import SessionInterceptor
from panpan.session.session import Session
from panpan.system.processes.limits import process_watches
from panpan.types.events import Event, PermissionDecided, TurnEnded
from panpan.types.llm import Provider
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.types.permission import UserAnswer, UserQuestion

CALL = 'tool_use = [{ name = "Bash", input = { command = "touch made" } }]'
QUESTION = {
    "questions": [{"question": "Which?", "header": "Which", "options": [{"label": "this"}, {"label": "that"}]}],
}


@dataclass
class Place:
    """A workspace and a home, and the warnings of the sessions that were opened there."""

    root: Path
    env: dict[str, str]
    warnings: list[str] = field(default_factory=list)

    def open(
        self, *, overrides: Mapping[str, object] | None = None, **wishes: Any
    ) -> AbstractAsyncContextManager[Session]:
        self.warnings.clear()
        return open_session(
            self.root / "workspace", overrides=overrides, env=self.env, warn=self.warnings.append, **wishes
        )

    def tape(self, name: str, *replies: str) -> str:
        """Write a tape whose replies are TOML tables, and return its name as a model."""
        path = self.root / f"{name}.toml"
        path.write_text("version = 1\n" + "\n".join(f"[[reply]]\n{reply}" for reply in replies))
        return f"cassette:{path}"

    def settings(self, text: str) -> None:
        path = Path(self.env["PANPAN_HOME"]) / "settings.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def logs(self) -> list[Path]:
        return list(Path(self.env["PANPAN_HOME"]).rglob("sessions/*.jsonl"))

    def records(self) -> list[dict[str, Any]]:
        (log,) = self.logs()
        return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path, {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")})


async def collect(session: Session, prompt: str = "go") -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


def answers(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, AssistantMessage)]


async def test_other_model_is_asked_from_the_next_turn_on(place: Place) -> None:
    one, two = place.tape("one", 'text = "from one"'), place.tape("two", 'text = "from two"')

    async with place.open(overrides={"model": one}) as session:
        assert answers(await collect(session)) == ["from one"]
        reason = await session.use_model(two)
        assert answers(await collect(session)) == ["from two"]
        assert session.model == session.info.model == two

    assert "two.toml" in reason
    changes = [record for record in place.records() if record.get("subtype") == "model"]
    assert [(record["model"], record["effort"]) for record in changes] == [(two, None)]
    assert place.records()[0]["subtype"] == "session_start"
    assert [record for record in place.records() if record.get("subtype") == "prefix"] == []


async def test_aliases_and_vendors_are_found_as_with_the_option(place: Place) -> None:
    one = place.tape("one", 'text = "from one"')
    place.settings('[aliases]\nbest = "claude-opus-4-5"\n')
    place.env["ANTHROPIC_API_KEY"] = "sk-ant-test-0123456789"

    async with place.open(overrides={"model": one}) as session:
        assert "anthropic" in await session.use_model("best")
        assert (session.model, session.info.key_source) == ("claude-opus-4-5", "ANTHROPIC_API_KEY")
        assert session.context_window == 200_000
        await session.use_effort("high")
        assert session.effort == "high"
        assert session.agent.model.llm.options.effort == "high"  # type: ignore[attr-defined]


async def test_reason_for_a_model_is_the_true_one(place: Place) -> None:
    place.settings('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["big", "small"]\n')

    async with place.open(overrides={"model": "big"}, why_model="it runs here and you allowed it") as session:
        assert session.info.choice == "big at mine (http://127.0.0.1:9/v1), since it runs here and you allowed it"
        reason = await session.use_model("small")
        assert reason == session.info.choice == "small at mine (http://127.0.0.1:9/v1), since you chose small"


@pytest.mark.parametrize("name", ["nobody-knows-this", "cassette:/does/not/exist.toml", "openai/"])
async def test_missing_model_leaves_the_old_one(place: Place, name: str) -> None:
    one = place.tape("one", 'text = "from one"')

    async with place.open(overrides={"model": one}) as session:
        with pytest.raises(ConfigError):
            await session.use_model(name)
        await session.use_effort("low")
        assert (session.model, answers(await collect(session))) == (one, ["from one"])


async def test_budget_is_kept_for_the_other_model(place: Place) -> None:
    one = place.tape("one", 'text = "from one"')
    place.settings('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["unpriced"]\n')

    async with place.open(overrides={"model": one, "max_budget_usd": 1.0}) as session:
        with pytest.raises(BudgetError, match="the price of unpriced is unknown"):
            await session.use_model("unpriced")
        assert (session.model, answers(await collect(session))) == (one, ["from one"])


async def test_window_of_an_unknown_model_is_not_guessed(place: Place) -> None:
    place.settings('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["unpriced"]\n')

    async with place.open(overrides={"model": "unpriced"}) as session:
        assert session.context_window is None


async def test_session_resumes_in_the_mode_it_was_left_in(place: Place) -> None:
    overrides = {"model": place.tape("one", 'text = "hello"')}
    async with place.open(overrides=overrides, is_interactive=True) as session:
        await collect(session)
        session.set_permission_mode("acceptEdits")

    async with place.open(overrides=overrides, continue_latest=True, is_interactive=True) as session:
        assert session.permission_mode == "acceptEdits"
    assert any("resumed in mode acceptEdits" in warning for warning in place.warnings)
    async with place.open(overrides=overrides, continue_latest=True) as session:
        assert session.permission_mode == "default"
    async with place.open(overrides={**overrides, "permission.mode": "plan"}, continue_latest=True) as session:
        assert (session.permission_mode, place.warnings) == ("plan", [])


async def test_asker_follows_the_mode(place: Place) -> None:
    write = 'tool_use = [{ name = "Write", input = { file_path = "a.txt", content = "a" } }]'
    tape = place.tape("one", write, 'text = "done"', write, 'text = "done"')

    async with place.open(overrides={"model": tape, "permission.mode": "dontAsk"}, auto_approve=True) as session:
        refused = await collect(session)
        session.set_permission_mode("default")
        allowed = await collect(session)

    decisions = [event.is_allowed for event in (*refused, *allowed) if isinstance(event, PermissionDecided)]
    assert decisions == [False, True]


async def test_session_has_its_title_again(place: Place) -> None:
    overrides = {"model": place.tape("one", 'text = "hello"')}
    async with place.open(overrides=overrides) as session:
        await collect(session)
        session.rename("the bug")

    async with place.open(overrides=overrides, continue_latest=True) as session:
        assert session.title == "the bug"


async def test_settings_can_be_read(place: Place) -> None:
    place.settings('[ui]\ntheme = "light"\nstatus_line = "date"\n')

    async with place.open(overrides={"model": place.tape("one", 'text = "hello"')}) as session:
        assert (session.settings.ui.theme, session.settings.ui.status_line) == ("light", "date")
        assert (session.settings.ui.vim, session.settings.ui.plain, session.settings.ui.notify) == (
            False,
            False,
            "auto",
        )


async def this(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
    return [UserAnswer(chosen=("this",)) for _ in questions]


async def test_fork_that_could_not_go_on_is_removed(place: Place) -> None:
    # given a session whose log ends, as after a crash, before it says what became of a call
    model = place.tape("one", CALL, 'text = "done"')
    async with place.open(overrides={"model": model}, auto_approve=True) as session:
        await collect(session)
    (log,) = place.logs()
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[: next(n for n, line in enumerate(lines) if '"tool_result"' in line)]))
    wishes = {"overrides": {"model": place.tape("two", 'text = "on"')}, "resume": log.stem, "fork": True}

    # when nobody can be asked
    async with place.open(**wishes) as session:
        with pytest.raises(UnfinishedCallError, match=f"panpan -r {log.stem} --fork-session"):
            await collect(session)

    # then there is no fork; and one that goes on is there
    assert place.logs() == [log]
    async with place.open(**wishes, unfinished="unclear") as session:
        assert answers(await collect(session)) == ["on"]
    assert len(place.logs()) == 2


@pytest.mark.parametrize("text", ['deny = ["Bahs"]', 'deny = ["Bash(*"]', 'allow = ["Foo"]'])
async def test_open_session_that_fails_leaves_neither_fork_nor_lock(place: Place, text: str) -> None:
    overrides = {"model": place.tape("one", 'text = "one"')}
    async with place.open(overrides=overrides) as session:
        await collect(session)
    (log,) = place.logs()
    place.settings(f"[permission]\n{text}")

    def stop(warning: str) -> None:
        raise ConfigError(warning)

    for forks in (True, False):
        with pytest.raises(ConfigError, match="permission rule"):
            async with open_session(
                place.root / "workspace", overrides=overrides, env=place.env, resume=log.stem, fork=forks, warn=stop
            ):
                pass

    assert place.logs() == [log]
    place.settings("")
    async with place.open(overrides=overrides, resume=log.stem):
        pass


async def test_file_system_without_locks_is_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    model = place.tape("one", 'text = "one"', 'text = "two"')
    async with place.open(overrides={"model": model}) as session:
        await collect(session)
    assert not any("without locks" in warning for warning in place.warnings)
    monkeypatch.setattr(fcntl, "flock", no_lock)

    async with place.open(overrides={"model": model}, continue_latest=True) as session:
        assert answers(await collect(session)) != []

    told = [warning for warning in place.warnings if "without locks" in warning]
    assert told == ["the sessions are on a file system without locks: do not open this one in another panpan meanwhile"]


async def test_model_may_ask_if_a_user_is_present(place: Place) -> None:
    asking = f"tool_use = [{{ name = 'AskUserQuestion', input = {_inline(QUESTION)} }}]"
    tape = place.tape("one", asking, 'text = "done"')

    async with place.open(overrides={"model": tape}, ask_user=this) as session:
        assert "AskUserQuestion" in [tool.name for tool in session.conversation.tools]
        assert "AskUserQuestion" in session.info.tools
        events = await collect(session)
    (result,) = [event for event in events if isinstance(event, ToolResultMessage)]
    assert (result.is_error, "this" in result.text) == (False, True)

    async with place.open(overrides={"model": tape}, continue_latest=True) as session:
        assert "AskUserQuestion" in [tool.name for tool in session.conversation.tools], "the beginning stays the same"
        events = await collect(session)
    (result,) = [event for event in events if isinstance(event, ToolResultMessage)]
    assert (result.is_error, "nobody is there" in result.text) == (True, True)


async def test_model_is_not_offered_questions_without_a_user(place: Place) -> None:
    async with place.open(overrides={"model": place.tape("one", 'text = "hello"')}) as session:
        assert "AskUserQuestion" not in [tool.name for tool in session.conversation.tools]
        assert "AskUserQuestion" not in session.info.tools
        assert "Bash" in session.info.tools


async def test_commands_get_the_settings_variables_but_no_keys(place: Place) -> None:
    place.env |= {"PATH": "/usr/bin:/bin", "MY_DATA": "/data", "OTHER": "1", "LAB": "k", "GEMINI_API_KEY": "k"}
    place.settings(
        """
        environment.pass_env = ["MY_DATA", "LAB", "GEMINI_API_KEY"]
        limits.file_gb = 3
        [providers.lab]
        base_url = "https://lab.example.org/v1"
        api_key_env = "LAB"
        """
    )

    async with place.open(overrides={"model": place.tape("one", 'text = "x"')}) as session:
        context = session.agent.context

    of_the_model = place.env.keys() & context.environment.keys()
    assert of_the_model == {"HOME", "PATH", "MY_DATA"}
    assert place.env.keys() & context.user_environment.keys() == {"HOME", "PATH", "MY_DATA", "OTHER"}
    assert context.limits.file_bytes == 3_000_000_000
    assert context.limits.required == {"file_gb"}


@pytest.mark.parametrize(
    ("auto_approve", "flags"),
    [(True, "--permission-mode default"), (False, "--permission-mode acceptEdits")],
)
async def test_refusal_names_no_flag_that_a_given_yes_answers(place: Place, auto_approve: bool, flags: str) -> None:
    write = 'tool_use = [{name = "Write", input = {file_path = "a.txt", content = "x"}}]'
    tape = place.tape("one", write, 'text = "x"')

    async with place.open(overrides={"model": tape, "permission.mode": "plan"}, auto_approve=auto_approve) as session:
        events = await collect(session)

    (decided,) = [event for event in events if isinstance(event, PermissionDecided)]
    assert [reason.flags for reason in decided.reasons] == [flags]


@pytest.mark.parametrize(("most", "is_counted"), [("60", True), ('"off"', False)])
async def test_processes_are_counted_while_a_session_is_open(place: Place, most: str, is_counted: bool) -> None:
    place.settings(f"limits.processes = {most}\n")

    async with place.open(overrides={"model": place.tape("one", 'text = "x"')}) as session:
        watches = process_watches(session.agent.context.limits, (session.agent.context.processes,), lambda _: None)

    assert bool(watches) is is_counted


def _inline(value: Any) -> str:
    """Return JSON values as inline TOML."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {_inline(item)}" for key, item in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case _:
            return json.dumps(value)


class ClosingProvider:
    """Implements `Provider` by another one, and notes that it was closed."""

    def __init__(self, inner: Provider, closed: list[str]) -> None:
        self.name, self.stream, self.count_tokens, self.prepare = (
            inner.name,
            inner.stream,
            inner.count_tokens,
            inner.prepare,
        )
        self._inner, self._closed = inner, closed

    async def aclose(self) -> None:
        self._closed.append(self.name)
        await self._inner.aclose()


class Watching(SessionInterceptor):
    def __init__(self) -> None:
        self.closed: list[str] = []

    def provider(self, provider: Provider) -> Provider:
        return ClosingProvider(provider, self.closed)


async def test_model_is_closed_if_opening_fails_later(place: Place) -> None:
    place.settings('permission.deny = ["NoSuchTool"]\n')
    watching = Watching()

    def warn(text: str) -> None:
        if "NoSuchTool" in text:
            raise RuntimeError(text)

    opening = open_session(
        place.root / "workspace",
        overrides={"model": place.tape("one", 'text = "hi"')},
        env=place.env,
        interceptor=watching,
        warn=warn,
    )
    with pytest.raises(RuntimeError, match="NoSuchTool"):
        async with opening:
            pass

    assert watching.closed == ["cassette"]
    assert place.logs() == []


async def test_auto_mode_without_a_sandbox_becomes_default(place: Place) -> None:
    place.settings('[sandbox]\nmode = "off"\n')
    tape = place.tape("one", 'text = "x"')

    async with place.open(overrides={"model": tape, "permission.mode": "auto"}) as session:
        assert session.permission_mode == "default"
        with pytest.raises(ConfigError, match="auto mode needs the sandbox: the sandbox is off"):
            session.set_permission_mode("auto")
        assert session.permission_mode == "default"

    assert any("auto mode needs the sandbox" in warning for warning in place.warnings)


async def test_turn_reports_how_much_ran_unasked_in_the_sandbox(place: Place) -> None:
    tape = place.tape(
        "one",
        CALL.replace("touch made", "sh -c true"),
        'tool_use = [{ name = "Bash", input = { command = "ls" } }]',
        'text = "x"',
    )

    async with place.open(overrides={"model": tape, "permission.mode": "auto"}) as session:
        if session.permission_mode != "auto":
            pytest.skip(place.warnings[0])
        ended = (await collect(session))[-1]

    assert isinstance(ended, TurnEnded)
    assert ended.unasked == 1, "what only looks is no news"
