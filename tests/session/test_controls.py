"""Controls that a face may change in an open session, and those that a resumed one keeps."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.config.places import BroughtFile
from panpan.errors import ConfigError, SessionLogError
from panpan.models.provider_kind import ModelProfile
from panpan.permissions.folder_gate import ModeAsker
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.session.agent import Agent, ModelParts
from panpan.session.log.fold import FoldedSession, fold_records
from panpan.session.log.record_kinds import UNNAMED, SessionPrefix, kept_prefix
from panpan.session.log.session_log import read_records
from panpan.session.session import Session
from panpan.session.stored.store import summary_of
from panpan.session.user_hooks import HookListing, HookProgress, HooksOfUser
from panpan.types.events import Event, ToolStarted
from panpan.types.llm import Effort, ToolDefinition
from panpan.types.messages import UserMessage
from panpan.types.permission import PermissionMode
from tests.fakes.askers import yes
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import log_path, recorded, session_in
from tests.fakes.tools import changing, looking

SMALL = ModelProfile(name="small", tools={})


async def collect(session: Session, prompt: str = "go") -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


def logged(root: Path) -> FoldedSession:
    return fold_records(read_records(log_path(root)))


def subtypes(root: Path) -> list[object]:
    kinds = [record.get("subtype") or record["type"] for record in read_records(log_path(root))]
    return [kind for kind in kinds if kind != "spent"]  # the scripted model tells no usage, which is estimated


# permission mode


async def test_mode_counts_from_the_next_call_of_a_running_turn(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "Change", {})), call(("2", "Change", {})), say("done"))
    started: list[str] = []

    async with session_in(tmp_path, llm, changing(), permission_mode="bypassPermissions") as session:
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    started.append(event.tool_use_id)
                    session.set_permission_mode("plan")
        assert (session.permission_mode, session.info.permission_mode) == ("plan", "plan")

    assert started == ["1"]
    assert logged(tmp_path).permission_mode == "plan"


async def test_newest_mode_is_recorded_even_before_the_first_message(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("hello"))) as session:
        session.set_permission_mode("plan")
        session.set_permission_mode("acceptEdits")
        session.set_permission_mode("acceptEdits")
        await collect(session)

    assert subtypes(tmp_path) == ["permission_mode", "permission_mode", "user", "assistant"]
    assert logged(tmp_path).permission_mode == "acceptEdits"


async def test_session_without_messages_leaves_no_log(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM()) as session:
        session.set_permission_mode("plan")
        session.rename("nothing")

    assert not log_path(tmp_path).exists()


async def test_unknown_mode_is_refused(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM()) as session:
        with pytest.raises(ConfigError, match="no permission mode 'yolo'"):
            session.set_permission_mode("yolo")  # type: ignore[arg-type]
        assert session.permission_mode == "default"


async def test_asker_follows_the_mode_of_the_moment(tmp_path: Path) -> None:
    gate, person = PermissionGate(), yes()
    llm = ScriptedLLM(call(("1", "Change", {})), call(("2", "Change", {})), say("done"))
    ask = ModeAsker(lambda: gate.mode, person)

    async with session_in(tmp_path, llm, changing(), hooks=[gate], gate=gate, ask=ask) as session:
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    session.set_permission_mode("dontAsk")

    assert [question.tool_use_id for question in person.questions] == ["1"]


async def test_rules_are_listed_in_order_with_their_place(tmp_path: Path) -> None:
    own = RuleSource("~/.panpan/settings.toml", allow=["Bash(npm test)"], deny=["Read(.env)"])
    project = RuleSource("settings.toml", may_allow=False, allow=["Bash(rm *)"], ask=["Bash(git push *)"])
    gate = PermissionGate([own, project])

    async with session_in(tmp_path, ScriptedLLM(), gate=gate) as session:
        assert list(session.gate.rule_lines()) == [
            "deny   Read(.env)  (from ~/.panpan/settings.toml)",
            "ask    Bash(git push *)  (from settings.toml)",
            "allow  Bash(npm test)  (from ~/.panpan/settings.toml)",
        ]


async def test_added_folder_counts_as_inside_and_is_not_logged(tmp_path: Path) -> None:
    workspace, other = tmp_path / "workspace", tmp_path / "other"
    workspace.mkdir()
    other.mkdir()

    async with session_in(workspace, ScriptedLLM(say("hello"))) as session:
        paths = session.agent.context.paths
        assert not paths.locate(str(other / "a.txt")).is_inside
        assert session.folders.add("../other") == other
        assert paths.locate(str(other / "a.txt")).is_inside
        assert paths.approving(frozenset()).locate(str(other)).is_inside
        await collect(session)

    assert str(other) not in log_path(workspace).read_text()


@pytest.mark.parametrize("folder", ["missing", "file.txt", "~nobody_of_this_name/x", "\0"])
async def test_adding_a_file_as_a_folder_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file.txt").touch()

    async with session_in(tmp_path, ScriptedLLM()) as session:
        with pytest.raises(ConfigError, match="is not a folder"):
            session.folders.add(folder)


# messages and titles


async def test_message_between_turns_is_added_and_recorded(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("hello"), say("I see"))

    async with session_in(tmp_path, llm) as session:
        await collect(session)
        session.add_message(UserMessage.of("I ran ls: a.txt"))
        await collect(session, "and?")

    texts = [message.text for message in llm.histories[1] if isinstance(message, UserMessage)]
    assert texts == ["go", "I ran ls: a.txt", "and?"]
    assert [message.text for message in recorded(tmp_path)] == ["go", "hello", "I ran ls: a.txt", "and?", "I see"]


async def test_message_may_come_first_in_a_session(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM()) as session:
        session.add_message(UserMessage.of("I ran ls"))

    assert [message.text for message in recorded(tmp_path)] == ["I ran ls"]


async def test_first_message_is_kept_while_the_log_has_no_space(tmp_path: Path) -> None:
    import os

    async with session_in(tmp_path, ScriptedLLM()) as session:
        log = session.agent.transcript.log
        fd, log._fd = log._fd, os.open(log.path, os.O_RDONLY)  # every write fails
        with pytest.raises(SessionLogError):
            session.add_message(UserMessage.of("I ran ls"))
        os.close(log._fd)
        log._fd = fd
        assert [message.text for message in session.conversation.messages] == ["I ran ls"]

    assert [message.text for message in recorded(tmp_path)] == ["I ran ls"]


async def test_running_turn_refuses_messages_and_model_changes(tmp_path: Path) -> None:
    source = Models()
    async with session_in(tmp_path, ScriptedLLM(say("hello")), models=source) as session:
        async with aclosing(session.submit("go")) as events:
            async for _ in events:
                with pytest.raises(RuntimeError, match="a turn is running"):
                    session.add_message(UserMessage.of("hey"))
                with pytest.raises(ConfigError, match="the model cannot be changed while a turn runs"):
                    await session.use_model("other")
                with pytest.raises(ConfigError, match="the effort cannot be changed while a turn runs"):
                    await session.use_effort("low")
                with pytest.raises(ConfigError, match="thinking cannot be changed while a turn runs"):
                    session.use_thinking(is_on=True)
        assert session.model == "scripted"

    assert [message.text for message in recorded(tmp_path)] == ["go", "hello"]


async def test_title_is_one_line_and_survives(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("hello"), say("again"))) as session:
        assert session.title is None
        session.rename("the first")
        await collect(session)
        assert session.rename("  the\nbug \x1b[31m of  May ") == "the bug of May"
    async with session_in(tmp_path, ScriptedLLM()) as session:
        assert session.title == "the bug of May"

    found = summary_of(log_path(tmp_path))
    assert found is not None
    assert (found.title, found.prompt) == ("the bug of May", "go")


async def test_title_record_refers_to_the_record_before_it(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("hello"))) as session:
        await collect(session)
        session.rename("the bug")

    *_, reply, title = read_records(log_path(tmp_path))
    assert (title["type"], title["summary"], title["leafUuid"]) == ("summary", "the bug", reply["uuid"])


@pytest.mark.parametrize("title", ["", " \n\t "])
async def test_empty_title_is_refused(tmp_path: Path, title: str) -> None:
    async with session_in(tmp_path, ScriptedLLM()) as session:
        session.rename("kept")
        with pytest.raises(ConfigError, match="at least one character"):
            session.rename(title)
        assert session.title == "kept"


# the model


@dataclass
class Models:
    """Makes the models that a test needs; `closed` has the names of those that were closed."""

    models: dict[str, ModelParts] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    current: ModelParts | None = None

    def keep(self) -> Callable[[], None]:
        current = self.current

        def go_back() -> None:
            self.current = current

        return go_back

    def other(self, name: str, *, only_here: bool = False) -> ModelParts:
        assert not only_here
        if name not in self.models:
            raise ConfigError(f"nothing says who serves the model {name!r}")
        self.current = self.models[name]
        return self.current

    def with_effort(self, effort: Effort | None) -> ModelParts:
        assert self.current is not None
        return replace(self.current, effort=effort)

    def with_thinking(self, *, is_on: bool) -> ModelParts:
        assert self.current is not None
        return replace(self.current, thinks=is_on, warnings=["it never thinks"] if is_on else [])

    def add(self, name: str, llm: ScriptedLLM, **parts: Any) -> None:
        self.models[name] = ModelParts(name, llm, choice=f"{name}, you chose it", aclose=self.closer(name), **parts)

    def closer(self, name: str) -> Callable[[], Awaitable[None]]:
        async def close() -> None:
            self.closed.append(name)

        return close


async def test_use_model_holds_from_the_next_turn_and_closes_the_old(tmp_path: Path) -> None:
    source, new = Models(), ScriptedLLM(say("from new"))
    source.add("new", new, context_window=1000, warnings=["new is slow"])
    warnings: list[str] = []
    old = ScriptedLLM(say("from old"))

    async with session_in(
        tmp_path, old, models=source, warn=warnings.append, aclose=source.closer("scripted")
    ) as session:
        await collect(session)
        assert await session.use_model("new") == "new, you chose it"
        assert source.closed == ["scripted"]
        await collect(session, "again")
        assert (session.model, session.info.model, session.context_window) == ("new", "new", 1000)

    assert source.closed == ["scripted", "new"]
    assert warnings == ["new is slow"]
    assert [message.text for message in new.histories[0]] == ["go", "from old", "again"]
    assert subtypes(tmp_path) == ["user", "assistant", "model", "user", "assistant"]
    assert [message.text for message in recorded(tmp_path)] == ["go", "from old", "again", "from new"]


async def test_unknown_model_name_changes_nothing(tmp_path: Path) -> None:
    source = Models()
    llm = ScriptedLLM(say("hello"))

    async with session_in(tmp_path, llm, models=source, aclose=source.closer("scripted")) as session:
        with pytest.raises(ConfigError, match="nothing says who serves"):
            await session.use_model("nowhere")
        assert (session.model, source.closed) == ("scripted", [])
        await collect(session)

    assert subtypes(tmp_path) == ["user", "assistant"]


async def test_thinking_is_switched_over_the_same_connection(tmp_path: Path) -> None:
    source, warnings = Models(), list[str]()
    source.add("new", ScriptedLLM())

    async with session_in(
        tmp_path, ScriptedLLM(), models=source, warn=warnings.append, aclose=source.closer("scripted")
    ) as session:
        await session.use_model("new")
        assert not session.thinks
        session.use_thinking(is_on=True)
        assert session.thinks
        assert warnings == ["it never thinks"]
        session.use_thinking(is_on=False)
        assert not session.thinks
        assert source.closed == ["scripted"]


async def test_model_of_one_message_is_gone_after_a_turn_that_was_left(tmp_path: Path) -> None:
    source, warnings = Models(), list[str]()
    source.add("old", ScriptedLLM(say("from old")))
    source.add("new", ScriptedLLM(say("from new")))

    async with session_in(tmp_path, ScriptedLLM(), models=source, warn=warnings.append) as session:
        await session.use_model("old")
        message = UserMessage.of("go")
        session.ask_with(message.uuid, "new", "low")
        with anyio.CancelScope() as scope:
            async with aclosing(session.send(message)) as events:
                async for _ in events:
                    assert (session.model, session.agent.model.effort) == ("new", "low")
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()

        assert (session.model, session.agent.model.effort, session.chosen_model) == ("old", None, "old")
        assert (source.current, source.closed) == (source.models["old"], ["new"])
        await collect(session, "again")
        assert session.model == "old"
    assert warnings == []


class WaitingHooks(HooksOfUser):
    """Waits at one event until a test lets it go on, and keeps what it was told."""

    def __init__(self, waits_at: str) -> None:
        self.waits_at = waits_at
        self.told: list[tuple[str, str]] = []
        self.is_waiting, self.may_go_on = anyio.Event(), anyio.Event()

    @property
    def listing(self) -> HookListing:
        return HookListing((), {}, (), are_off=False)

    def hold(self, agent: Agent, file: BroughtFile, *, message: str = "") -> None: ...

    def let_go(self, agent: Agent) -> None: ...

    def inherit(self, parent: Agent, child: Agent) -> None: ...

    def observe(self, tell: Callable[[HookProgress], None]) -> None: ...

    async def tell(self, event: str, subject: str, told: Mapping[str, Any]) -> None:
        self.told.append((event, subject))
        if event == self.waits_at:
            self.waits_at = ""
            self.is_waiting.set()
            await self.may_go_on.wait()


@pytest.mark.parametrize("event", ["PreModelSwitch", "PostModelSwitch"])
@pytest.mark.parametrize("leaves", ["interrupts", "cancels"])
async def test_model_of_a_message_is_gone_however_its_hooks_end(tmp_path: Path, event: str, leaves: str) -> None:
    source, warnings, hooks = Models(), list[str](), WaitingHooks("")
    source.add("old", ScriptedLLM(say("from old"), say("again")))
    source.add("new", ScriptedLLM(say("from new")))

    async with session_in(tmp_path, ScriptedLLM(), models=source, warn=warnings.append) as session:
        session.capabilities.register(hooks)
        await session.use_model("old")
        hooks.waits_at = event
        message = UserMessage.of("go")
        session.ask_with(message.uuid, "new", None)

        async with anyio.create_task_group() as group:

            async def send() -> None:
                async with aclosing(session.send(message)) as events:
                    async for _ in events:
                        pass

            group.start_soon(send)
            await hooks.is_waiting.wait()
            with pytest.raises(ConfigError, match="cannot be changed while a turn runs"):
                await session.use_model("new")
            if leaves == "cancels":
                group.cancel_scope.cancel()
            else:
                assert session.interrupt()

        assert (session.model, source.current, session.chosen_model) == ("old", source.models["old"], "old")
        assert "new" in source.closed
        assert "old" not in source.closed
        await collect(session, "again")


async def test_turns_with_another_model_repeat_no_warning(tmp_path: Path) -> None:
    source, warnings = Models(), list[str]()
    source.add("old", ScriptedLLM(), warnings=["old is slow"])
    source.add("new", ScriptedLLM(say("1"), say("2"), say("3")))

    async with session_in(tmp_path, ScriptedLLM(), models=source, warn=warnings.append) as session:
        await session.use_model("old")
        for _ in range(3):
            message = UserMessage.of("go")
            session.ask_with(message.uuid, "new", None)
            async with aclosing(session.send(message)) as events:
                async for _ in events:
                    pass

    assert warnings == ["old is slow"]


async def test_effort_of_a_message_counts_with_an_unknown_model(tmp_path: Path) -> None:
    source, warnings = Models(), list[str]()
    source.add("old", ScriptedLLM(say("from old")))

    async with session_in(tmp_path, ScriptedLLM(), models=source, warn=warnings.append) as session:
        await session.use_model("old")
        message = UserMessage.of("go")
        session.ask_with(message.uuid, "cave", "low")
        async with aclosing(session.send(message)) as events:
            async for _ in events:
                assert session.agent.model.effort == "low"
        assert session.agent.model.effort is None

    assert warnings == ["old answers, not cave: nothing says who serves the model 'cave'"]


async def test_each_waiting_message_keeps_its_own_model(tmp_path: Path) -> None:
    source = Models()
    for name in ("old", "one", "two"):
        source.add(name, ScriptedLLM(*[say(f"from {name}")] * 2))

    async with session_in(tmp_path, ScriptedLLM(), models=source) as session:
        await session.use_model("old")
        messages = [UserMessage.of("first"), UserMessage.of("second")]
        for message, name in zip(messages, ("one", "two"), strict=True):
            session.ask_with(message.uuid, name, None)
        for message in messages:
            async with aclosing(session.send(message)) as events:
                async for _ in events:
                    pass

    said = [message.text for message in recorded(tmp_path)]
    assert said == ["first", "from one", "second", "from two"]


async def test_effort_is_changed_over_the_same_connection(tmp_path: Path) -> None:
    source, warnings = Models(), list[str]()
    source.add("new", ScriptedLLM(), warnings=["new is slow"])

    async with session_in(
        tmp_path, ScriptedLLM(), models=source, warn=warnings.append, aclose=source.closer("scripted")
    ) as session:
        await session.use_model("new")
        await session.use_effort("high")
        assert warnings == ["new is slow"], "what was said once is not said again"
        assert (session.model, session.effort) == ("new", "high")
        await session.use_effort(None)
        assert session.effort is None
        assert source.closed == ["scripted"]


async def test_other_kind_of_model_gets_its_own_recorded_prefix(
    tmp_path: Path,
) -> None:
    short = SessionPrefix("small", "be short")
    source, small, large = Models(), ScriptedLLM(say("small")), ScriptedLLM(say("large"))
    source.add("small", small, profile=SMALL, prefix=short)
    newer = SessionPrefix("full", "of a newer panpan", (ToolDefinition("New", "", {}),))
    source.add("large", large, prefix=newer)
    warnings: list[str] = []
    llm = ScriptedLLM(say("hello"))

    async with session_in(tmp_path, llm, looking(), models=source, warn=warnings.append) as session:
        session.conversation.system = "be good"
        first = SessionPrefix("full", "be good", session.conversation.tools)
        session._recorder.prefix = session._recorder.prefixes["full"] = first
        await collect(session)
        await session.use_model("small")
        assert [request.system for request in llm.requests] == ["be good"]
        await collect(session)
        await session.use_model("large")
        await collect(session)

    assert (small.requests[0].system, small.requests[0].tools) == ("be short", ())
    assert (large.requests[0].system, large.requests[0].tools) == ("be good", llm.requests[0].tools)
    assert ["short system prompt" in warning for warning in warnings] == [True, False]
    assert "small gets a short system prompt and few tools" in warnings[0]
    assert "large gets panpan's full system prompt and all tools" in warnings[1]
    assert logged(tmp_path).prefixes == {"small": short}
    assert subtypes(tmp_path).count("prefix") == 1


def test_unnamed_prefix_is_kept_only_for_a_model_with_its_tools() -> None:
    look = ToolDefinition("Look", "looks", {})
    old = SessionPrefix(UNNAMED, "old", (look,))
    full, small = SessionPrefix("full", "new", ()), SessionPrefix("small", "short", ())

    assert kept_prefix(full, {UNNAMED: old}, ModelProfile()) == SessionPrefix("full", "old", (look,))
    assert kept_prefix(small, {UNNAMED: old}, SMALL) is small


def test_damaged_prefix_is_replaced_by_a_new_one() -> None:
    new = SessionPrefix("full", "new", (ToolDefinition("Look", "looks", {}),))

    assert kept_prefix(new, {"full": SessionPrefix("full", None, ())}, ModelProfile()) == new


async def test_use_model_without_other_models_says_so(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM()) as session:
        with pytest.raises(ConfigError, match="the model of this session cannot be changed"):
            await session.use_model("other")


@pytest.mark.parametrize("mode", ["plan", "acceptEdits"])
async def test_mode_is_recorded_once_a_full_disk_has_space(tmp_path: Path, mode: PermissionMode) -> None:
    import os

    warnings: list[str] = []
    async with session_in(tmp_path, ScriptedLLM(say("hello")), warn=warnings.append) as session:
        await collect(session)
        log = session.agent.transcript.log
        fd, log._fd = log._fd, os.open(log_path(tmp_path), 0)  # read-only: every write fails
        session.set_permission_mode(mode)
        assert session.permission_mode == mode
        os.close(log._fd)
        log._fd = fd

    assert [warning.split(":")[0] for warning in warnings] == [
        f"the session log {log_path(tmp_path)} cannot be written"
    ]
    assert logged(tmp_path).permission_mode == mode


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_retry_now_is_passed_to_the_model(tmp_path: Path, backend: str) -> None:
    asked: list[bool] = []

    def retry_now() -> bool:
        asked.append(True)
        return len(asked) == 1

    async def main() -> None:
        async with session_in(tmp_path, ScriptedLLM(), retry_now=retry_now) as session:
            assert session.retry_now()
            assert not session.retry_now()

    anyio.run(main, backend=backend)
