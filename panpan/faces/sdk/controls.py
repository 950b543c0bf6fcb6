"""Control requests of the program, answered with the session."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, get_args

import anyio
from anyio.lowlevel import checkpoint

from panpan.core.background import Background
from panpan.errors import ConfigError, PanpanError, SnapshotError
from panpan.faces.headless.prompts import MOST_WAITING, PromptReader
from panpan.faces.sdk import lookups
from panpan.faces.sdk.channel import Channel, Request
from panpan.faces.sdk.conformance import REQUESTS
from panpan.faces.sdk.face import SdkFace
from panpan.faces.sdk.handshake import Hello, hello_answer, read_hello
from panpan.faces.sdk.host import SdkHost, Verdict, mode_in, rule_text
from panpan.permissions.gate import ANSWERED
from panpan.permissions.rules.rules import parse_rule
from panpan.session.capability import FileHistory
from panpan.session.frontend import Askers
from panpan.session.log.session_log import SessionLog
from panpan.session.session import Session
from panpan.session.user_hooks import ServerChanges, ToolsOfServers
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort

P = ParamSpec("P")
AnswerT = TypeVar("AnswerT")

_NOTES = {row.name: row.note for row in REQUESTS if row.state == "refused"}


@dataclass(frozen=True, slots=True)
class Rights:
    """Things that the command line lets the program change."""

    may_bypass: bool
    """True if it may switch to the mode that asks nothing."""


class Controls:
    """Answers control requests; those about the session wait until it is open.

    Args:
        channel: The pipes to the program.
        rights: Things that it may change.
        warn: Tells the user something.
        follow: Takes note of each log that the session writes.
    """

    def __init__(
        self,
        channel: Channel,
        rights: Rights,
        warn: Callable[[str], None],
        follow: Callable[[SessionLog], None] = lambda _: None,
    ) -> None:
        self.host = SdkHost(channel, self._apply, follow)
        self._channel = channel
        self._rights = rights
        self._warn = warn
        self._session: Session | None = None
        self._face: SdkFace | None = None
        self._is_open = anyio.Event()
        self._first_model: str | None = None
        self._reader: PromptReader | None = None
        self._answers: Mapping[str, Callable[[Session, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]] = {
            "interrupt": self._interrupt,
            "set_permission_mode": self._set_mode,
            "set_model": self._set_model,
            "set_max_thinking_tokens": self._set_thinking,
            "stop_task": self._stop_task,
            "get_context_usage": self._context,
            "get_session_cost": self._cost,
            "mcp_status": self._servers,
            "mcp_reconnect": self._reconnect,
            "mcp_toggle": self._toggle,
            "mcp_set_servers": self._set_servers,
            "rename_session": self._rename,
            "rewind_files": self._rewind_files,
            "list_permission_rules": self._rules,
            "cancel_async_message": self._take_back,
            "apply_flag_settings": self._apply_settings,
            "background_tasks": lookups.background,
            "file_suggestions": lookups.FileSuggestions(),
            "get_hooks_listing": lookups.hooks,
            "get_settings": lookups.settings,
            "get_task_output": lookups.task_output,
            "list_models": lookups.models,
            "mcp_call": lookups.call_tool,
            "mcp_read_resource": lookups.resource,
            "read_file": lookups.file_text,
        }

    @property
    def subtypes(self) -> frozenset[str]:
        """Requests that can be answered."""
        return frozenset({"initialize", "end_session", *self._answers})

    def attach(self, session: Session, face: SdkFace) -> None:
        """Answer requests about a session from now on."""
        self._session, self._face = session, face
        self._is_open.set()

    def take_reader(self, reader: PromptReader) -> None:
        """Take the reader of the messages, which can give them back."""
        self._reader = reader

    @property
    def askers(self) -> Askers:
        """Functions that ask the program; the session waits for an action of it meanwhile."""
        return Askers(self._told(self.host.ask), self._told(self.host.ask_user), self._told(self.host.ask_plan))

    def _told(self, ask: Callable[P, Coroutine[Any, Any, AnswerT]]) -> Callable[P, Coroutine[Any, Any, AnswerT]]:
        async def told(*args: P.args, **options: P.kwargs) -> AnswerT:
            assert self._face is not None, "only a session asks"
            self._face.tell_state("requires_action")
            try:
                return await ask(*args, **options)
            finally:
                if not self.host.waiting:
                    self._face.tell_state("running")

        return told

    def take(self, hello: Hello) -> None:
        """Take what the program wants; its hooks replace those before."""
        self.host.take_hooks(hello.hooks)
        if hello.unknown:
            self._warn(f"initialize: panpan does not know {', '.join(hello.unknown)}, which change nothing")

    async def __call__(self, request: Request) -> Mapping[str, Any]:
        """Return the answer to a request.

        Raises:
            PanpanError: It cannot be answered; the text says why.
        """
        if request.subtype == "initialize":
            hello = read_hello(request)
            self.take(hello)
            if hello.options:
                self._warn(f"the session is open already: {', '.join(hello.options)} of initialize change nothing")
            return hello_answer(hello, None, is_first=False)
        if request.subtype == "end_session":
            self._channel.end()
            return {}
        if (answer := self._answers.get(request.subtype)) is None:
            why = _NOTES.get(request.subtype)
            raise ConfigError(f"panpan does not have the request {request.subtype!r}{f': {why}' if why else ''}")
        await self._is_open.wait()
        assert self._session is not None
        return await answer(self._session, request.fields)

    def _apply(self, verdict: Verdict) -> None:
        """Make the changes that the program wants beside its answer to a question."""
        session = self._session
        assert session is not None, "only a session asks"
        for update in verdict.updates:
            try:
                self._update(session, update)
            except PanpanError as error:
                self._warn(f"a change of permissions was not made: {error}")
        if verdict.interrupts:
            session.interrupt()

    def _update(self, session: Session, update: Mapping[str, Any]) -> None:
        match update:
            case {"type": "setMode", "mode": name}:
                self._switch(session, name)
            case {"type": "addDirectories", "directories": list(folders)}:
                for folder in folders:
                    session.folders.add(str(folder))
            case {"type": "addRules", "behavior": ("allow" | "ask" | "deny") as behaviour, "rules": list(rules)}:
                for text in filter(None, map(rule_text, rules)):
                    kept = getattr(session.gate.rules, behaviour)
                    if all(rule.text != text for rule in kept):
                        kept.append(parse_rule(text, ANSWERED))
            case _:
                raise ConfigError(f"panpan does not have the change {update.get('type')!r}")

    def _switch(self, session: Session, name: object) -> None:
        if (mode := mode_in(name)) is None:
            raise ConfigError(f"there is no permission mode {name!r}")
        if mode == "bypassPermissions" and mode != session.permission_mode and not self._rights.may_bypass:
            raise ConfigError(
                "bypassPermissions needs a start with --allow-dangerously-skip-permissions, or in that mode"
            )
        session.set_permission_mode(mode)

    async def _interrupt(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        session.interrupt()
        return {}

    async def _set_mode(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        self._switch(session, fields.get("mode"))
        return {"mode": session.permission_mode}

    async def _set_model(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        name = fields.get("model")
        self._first_model = self._first_model or session.model
        await self._idle(session)
        await session.use_model(self._first_model if name in (None, "default") else str(name))
        return {"model": session.model}

    async def _set_thinking(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        tokens = fields.get("max_thinking_tokens")
        await self._idle(session)
        session.use_thinking(is_on=isinstance(tokens, int) and tokens > 0)
        return {}

    async def _idle(self, session: Session) -> None:
        while session.agent.is_busy:
            assert self._face is not None, "a session is open"
            await self._face.turn_over()

    async def _stop_task(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        if (tasks := session.find(Background)) is None:
            raise ConfigError("this session has no background tasks")
        await tasks.stop(str(fields["task_id"]))
        return {}

    async def _context(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        usage = await session.context_usage()
        window, used = usage.window_tokens or 0, usage.used_tokens
        return {
            "categories": [{"name": part.source, "tokens": part.tokens, "color": ""} for part in usage.parts],
            "totalTokens": used,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": round(100 * used / window, 1) if window else 0.0,
            "model": session.model,
            "isAutoCompactEnabled": session.settings.compaction.enabled,
            "memoryFiles": [],
            "mcpTools": [],
            "agents": [],
            "gridRows": [],
        }

    async def _cost(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        spent = session.budget.spent
        return {"total_cost_usd": spent.usd, "usage": spent.usage.model_dump()}

    async def _servers(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        ask = session.capabilities.described().get("mcp_servers", list)
        return {"mcpServers": ask()}

    async def _reconnect(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._tools_of_servers(session).reconnect(str(fields["serverName"]))
        return {}

    async def _toggle(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._tools_of_servers(session).switch(str(fields["serverName"]), is_on=fields["enabled"] is True)
        return {}

    async def _set_servers(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = fields["servers"]
        if not isinstance(wanted, Mapping):
            raise ConfigError("the servers of mcp_set_servers are no object")
        servers = session.find(ToolsOfServers)
        if servers is None and wanted:
            raise ConfigError(
                "this session began without MCP servers, so that its model has no tool for them; begin it with one"
            )
        changes = ServerChanges((), (), {}) if servers is None else await servers.replace(wanted)
        return {"added": changes.added, "removed": changes.removed, "errors": dict(changes.errors)}

    def _tools_of_servers(self, session: Session) -> ToolsOfServers:
        if (servers := session.find(ToolsOfServers)) is None:
            raise ConfigError("this session has no MCP servers")
        return servers

    async def _rename(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"title": session.rename(str(fields["title"]))}

    async def _rewind_files(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        await self._idle(session)
        if (files := session.find(FileHistory)) is None:
            return {"canRewind": False, "error": "snapshots are disabled ([snapshots] enabled = false)"}
        try:
            changes = await files.bring_back(str(fields["user_message_id"]), only_looks=fields.get("dry_run") is True)
        except SnapshotError as error:
            return {"canRewind": False, "error": str(error)}
        return {
            "canRewind": True,
            "filesChanged": [change.path for change in changes],
            "insertions": sum(change.added or 0 for change in changes),
            "deletions": sum(change.deleted or 0 for change in changes),
        }

    async def _take_back(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        uuid = str(fields["message_uuid"])
        while self._channel.has_messages and not self._has_many:  # one that came before is on its way
            await checkpoint()
        return {"cancelled": self._reader is not None and self._reader.take_back(uuid)}

    @property
    def _has_many(self) -> bool:
        return self._reader is None or len(self._reader.waiting) >= MOST_WAITING

    async def _apply_settings(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        given = fields["settings"]
        if unknown := sorted(given.keys() - {"model", "effortLevel"}):
            raise ConfigError(
                f"apply_flag_settings takes model and effortLevel; panpan cannot change {unknown[0]} here"
            )
        effort = given.get("effortLevel")
        if effort is not None and effort not in get_args(Effort):
            raise ConfigError(f"effortLevel is one of {', '.join(get_args(Effort))}")
        if "model" in given:
            await self._set_model(session, given)
        if "effortLevel" in given:
            await self._idle(session)
            await session.use_effort(effort)
        return {}

    async def _rules(self, session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        rules = session.gate.rules
        kinds: Sequence[tuple[str, Sequence[Any]]] = (("deny", rules.deny), ("ask", rules.ask), ("allow", rules.allow))
        found = [{"behavior": kind, "rule": rule.text, "source": rule.source} for kind, of in kinds for rule in of]
        return {"rules": found}
