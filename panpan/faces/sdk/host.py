"""The program as a session sees it: it answers questions about calls, runs hooks, and has MCP servers of its own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import anyio
from anyio import fail_after

from panpan.errors import ToolError
from panpan.faces.sdk.channel import Channel
from panpan.permissions.rules.rules import PLAN_TOOL, QUESTION_TOOL
from panpan.session.host import HostHook
from panpan.session.log.session_log import SessionLog
from panpan.types.dataclass import dataclass
from panpan.types.permission import (
    PermissionAnswer,
    PermissionMode,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanEdited,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
    is_permission_mode,
)
from panpan.version import __version__

LIST_S = 30.0
"""Seconds that an MCP server of the program may take to list its tools."""
_PROTOCOL = "2025-06-18"
_MAX_TOOLS = 1_000
_NOT_ANSWERED = "The program that runs panpan did not answer the question about it."
_FOR_SESSION = ("session", "cliArg")
_KEPT = ("localSettings", "projectSettings", "userSettings")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Answer of the program to a question about a call."""

    answer: PermissionAnswer
    updates: Sequence[Mapping[str, Any]] = ()
    """Changes of permissions that it wants beside a yes."""
    interrupts: bool = False
    """True if the turn is to end."""


class SdkHost:
    """Implements `Host` over the control protocol, and asks about calls.

    Args:
        channel: The pipes to the program.
        apply: Makes the changes that come with an answer: of permissions, and the end of the turn.
        follow: Takes note of each log that is written.
    """

    def __init__(
        self, channel: Channel, apply: Callable[[Verdict], None], follow: Callable[[SessionLog], None]
    ) -> None:
        self._channel = channel
        self._apply = apply
        self._follow = follow
        self._hooks: Sequence[HostHook] = ()
        self._listings: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._numbers = count(1)
        self.waiting = 0
        """Questions that wait for an answer."""

    @property
    def hooks(self) -> Sequence[HostHook]:
        return self._hooks

    @property
    def limits_turns(self) -> bool:
        return self._channel.is_controlled

    @property
    def listings(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return self._listings

    def log_opened(self, log: SessionLog) -> None:
        self._follow(log)

    def take_hooks(self, hooks: Sequence[HostHook]) -> None:
        """Replace the hooks."""
        self._hooks = hooks

    async def run_hook(self, callback: str, told: Mapping[str, Any]) -> Mapping[str, Any]:
        use = told.get("tool_use_id")
        return await self._channel.ask("hook_callback", callback_id=callback, input=dict(told), tool_use_id=use)

    @property
    def answers_servers(self) -> bool:
        return self._channel.is_controlled

    async def answer_server(self, server: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
        names = {"elicitationId": "elicitation_id", "requestedSchema": "requested_schema"}
        asked = {names.get(name, name): value for name, value in question.items() if not name.startswith("_")}
        fields = question.get("requestedSchema", {}).get("properties")
        order = {"property_order": list(fields)} if isinstance(fields, Mapping) else {}
        return await self._channel.ask("elicitation", mcp_server_name=server, **asked, **order)

    async def send_to_server(self, server: str, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer = await self._channel.ask("mcp_message", server_name=server, message=dict(message))
        found = answer.get("mcp_response")
        return found if isinstance(found, Mapping) else None

    async def learn_tools(self, servers: Sequence[str]) -> Sequence[str]:
        """Ask MCP servers of the program for their tools; return a sentence about each that does not answer."""
        problems: list[str] = []

        async def learn(server: str) -> None:
            try:
                with fail_after(LIST_S):
                    self._listings[server] = await self._tools_of(server)
            except TimeoutError:
                problems.append(f"the MCP server {server} of the program did not answer within {LIST_S:g} s")
            except ToolError as error:
                problems.append(f"the MCP server {server} of the program has no tools: {error}")

        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(learn, server)
        return problems

    async def _tools_of(self, server: str) -> Sequence[Mapping[str, Any]]:
        client = {"name": "panpan", "version": __version__}
        params = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
        await self._call(server, "initialize", params)
        await self.send_to_server(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools: list[Mapping[str, Any]] = []
        cursor: str | None = None
        while len(tools) < _MAX_TOOLS:
            page = await self._call(server, "tools/list", {} if cursor is None else {"cursor": cursor})
            listed, cursor = page.get("tools"), page.get("nextCursor")
            tools += [tool for tool in (listed if isinstance(listed, list) else ()) if isinstance(tool, Mapping)]
            if not isinstance(cursor, str):
                break
        return tools

    async def _call(self, server: str, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        number = f"panpan-list-{next(self._numbers)}"
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}
        match await self.send_to_server(server, message):
            case {"result": Mapping() as result}:
                return result
            case {"error": {"message": str(why)}}:
                raise ToolError(f"it refuses {method}: {why}")
            case _:
                raise ToolError(f"it answers {method} with what is no message")

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        """Ask the program about a call; it may take as long as it wants."""
        self.waiting += 1
        try:
            verdict = _verdict(question, await self._channel.ask("can_use_tool", **_fields_of(question)))
        except ToolError as error:
            return PermissionAnswer(is_allowed=False, feedback=f"{_NOT_ANSWERED} ({error})", is_persons=False)
        finally:
            self.waiting -= 1
        self._apply(verdict)
        return verdict.answer

    async def ask_user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Put questions of the model to the program, in the form of a call; None if it denies that."""
        asked = [
            {
                "question": one.question,
                "header": one.header,
                "options": [{"label": choice.label, "description": choice.description} for choice in one.choices],
                "multiSelect": one.allows_several,
            }
            for one in questions
        ]
        said = await self._ask_as_call(QUESTION_TOOL, {"questions": asked})
        given = said.get("updatedInput") if said.get("behavior") == "allow" else None
        answers = given.get("answers") if isinstance(given, Mapping) else None
        if not isinstance(answers, Mapping):
            return None
        return [_answer_to(one, answers.get(one.question)) for one in questions]

    async def ask_plan(self, proposal: PlanProposal) -> PlanAnswer:
        """Put a plan to the program, in the form of a call."""
        said = await self._ask_as_call(PLAN_TOOL, {"plan": proposal.text, "planFilePath": str(proposal.file)})
        if said.get("behavior") != "allow":
            comments = said.get("message")
            return PlanRejected(comments if isinstance(comments, str) else "")
        given, updates = said.get("updatedInput"), said.get("updatedPermissions")
        plan = given.get("plan") if isinstance(given, Mapping) else None
        if isinstance(plan, str) and plan.strip() and plan != proposal.text:
            return PlanEdited(plan)
        changes = [one for one in (updates if isinstance(updates, list) else ()) if isinstance(one, Mapping)]
        wanted = [mode for one in changes if (mode := mode_in(one.get("mode"))) in proposal.modes]
        usual: PermissionMode = "default" if "default" in proposal.modes else proposal.modes[0]
        return PlanApproved(wanted[0] if wanted and wanted[0] is not None else usual)

    async def _ask_as_call(self, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask about something as if it were a call; a program that does not answer denies it."""
        self.waiting += 1
        try:
            fields = {"permission_suggestions": [], "tool_use_id": "", "display_name": name}
            return await self._channel.ask("can_use_tool", tool_name=name, input=dict(given), **fields)
        except ToolError as error:
            return {"behavior": "deny", "message": str(error)}
        finally:
            self.waiting -= 1


def _answer_to(question: UserQuestion, said: Any) -> UserAnswer:
    labels = [choice.label for choice in question.choices]
    texts = [one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)]
    if question.allows_several and len(texts) == 1 and texts[0] not in labels:
        texts = texts[0].split(", ") if all(part in labels for part in texts[0].split(", ")) else texts
    chosen = [text for text in texts if text in labels]
    return UserAnswer(chosen, ", ".join(text for text in texts if text not in labels))


def _fields_of(question: PermissionQuestion) -> Mapping[str, Any]:
    path = next((reason.path for reason in question.reasons if reason.path), "")
    optional = {
        "title": question.head,
        "display_name": question.tool_name,
        "description": question.wording.effect or question.title,
        "decision_reason": question.reason,
        "decision_reason_type": _REASON_TYPES.get(question.reasons[0].kind, "other") if question.reasons else "other",
        "blocked_path": path,
        "agent_id": question.agent,
    }
    return {
        "tool_name": question.tool_name,
        "input": dict(question.input),
        "permission_suggestions": list(_suggestions(question)),
        "tool_use_id": question.tool_use_id,
        **{name: value for name, value in optional.items() if value},
    }


_REASON_TYPES = {
    "rule": "rule", "mode": "mode", "protected": "safetyCheck", "outside": "workingDir", "sandbox": "sandboxOverride",
    "hook": "hook",
}  # fmt: skip


def _suggestions(question: PermissionQuestion) -> Iterator[Mapping[str, Any]]:
    """Yield the changes that a yes to more than this call could make, in the words of the SDK."""
    for rule in (question.rule, question.prefix_rule):
        if rule is not None:
            name, _, rest = rule.partition("(")
            value = {"toolName": name, **({"ruleContent": rest.removesuffix(")")} if rest else {})}
            yield {"type": "addRules", "rules": [value], "behavior": "allow", "destination": "localSettings"}
    if question.offer.mode is not None:
        yield {"type": "setMode", "mode": question.offer.mode, "destination": "session"}


def _verdict(question: PermissionQuestion, said: Mapping[str, Any]) -> Verdict:
    match said:
        case {"behavior": "allow"}:
            given, updates = said.get("updatedInput"), said.get("updatedPermissions")
            changes = [one for one in (updates if isinstance(updates, list) else ()) if isinstance(one, Mapping)]
            kept = [_rule_of(one) for one in changes]
            answer = PermissionAnswer(
                is_allowed=True,
                is_remembered=any(rule in (question.rule, question.prefix_rule) for rule in kept if rule),
                is_for_prefix=question.prefix_rule is not None and question.prefix_rule in kept,
                changes_mode=any(one.get("mode") == question.offer.mode for one in changes if one.get("mode")),
                input=given if isinstance(given, Mapping) else None,
            )
            return Verdict(answer, changes)
        case {"behavior": "deny"}:
            message = said.get("message")
            words = message if isinstance(message, str) else ""
            return Verdict(PermissionAnswer(False, feedback=words), interrupts=said.get("interrupt") is True)
        case _:
            raise ToolError("it neither allows nor denies")


def _rule_of(update: Mapping[str, Any]) -> str:
    """Return the one rule that a change adds to allow calls and that is kept in a file; empty if it is another one."""
    match update:
        case {"type": "addRules", "behavior": "allow", "destination": str(where), "rules": [rule]} if where in _KEPT:
            return rule_text(rule)
        case _:
            return ""


def rule_text(rule: Any) -> str:
    """Return a rule of the SDK as text; empty if it is none."""
    match rule:
        case {"toolName": str(name), "ruleContent": str(content)} if content:
            return f"{name}({content})"
        case {"toolName": str(name)}:
            return name
        case _:
            return ""


def mode_in(name: object) -> PermissionMode | None:
    """Return the mode of a name of the SDK; None if there is none."""
    if name == "manual":
        return "default"
    return name if isinstance(name, str) and is_permission_mode(name) else None
