"""Actions of hooks: a command that runs, a server that is asked, a tool that is called, or a model that judges."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from panpan.session.user_hooks import HookAction
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.config.plugins.store import PluginPlace

_PATH = compile_late(r"\$\{([A-Za-z_][\w.-]*)\}")


@dataclass(frozen=True, slots=True)
class Command:
    """A program that runs."""

    kind: ClassVar[HookAction] = "command"
    argv: tuple[str, ...]
    """Program and arguments; a single one is a line for the shell if `is_line`."""
    is_line: bool

    @property
    def title(self) -> str:
        return self.argv[0] if self.is_line else " ".join(self.argv)


@dataclass(frozen=True, slots=True)
class Request:
    """A server that is asked."""

    kind: ClassVar[HookAction] = "http"
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    """Headers, with the names of variables in place of their values."""
    variables: tuple[str, ...] = ()
    """Names of the variables that the headers may have."""

    @property
    def title(self) -> str:
        sent = f" with {', '.join(self.variables)}" if self.variables else ""
        return f"POST {self.url}{sent}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A model that judges whether something may go on."""

    prompt: str
    """Question for it; `$ARGUMENTS` is what a hook is told, as JSON."""
    model: str = ""
    """Name of the model; empty for the small one of the session's provider."""
    by_agent: bool = False
    """True if a subagent that only reads looks into it first."""

    @property
    def kind(self) -> HookAction:
        return "agent" if self.by_agent else "prompt"

    @property
    def title(self) -> str:
        return f"{'a subagent' if self.by_agent else 'a model'} judges: {self.prompt}"


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A tool of an MCP server that is called."""

    kind: ClassVar[HookAction] = "mcp_tool"
    server: str
    tool: str
    arguments: str = "{}"
    """Its arguments as JSON; `${tool_input.command}` in a text is filled in from what the hook is told."""

    @property
    def title(self) -> str:
        return f"calls {self.tool} of the MCP server {self.server}"


@dataclass(frozen=True, slots=True)
class HostCall:
    """A function of the program that runs panpan."""

    kind: ClassVar[HookAction] = "callback"
    callback: str
    """Id by which the program knows it."""

    @property
    def title(self) -> str:
        return f"asks the program ({self.callback})"


Action: TypeAlias = Command | Request | Judgement | ServerCall | HostCall
Kind: TypeAlias = Literal["command", "http", "mcp_tool", "prompt", "agent"]
DEFAULT_S: Mapping[Kind, float] = {"command": 600.0, "http": 600.0, "mcp_tool": 600.0, "prompt": 30.0, "agent": 60.0}
"""Seconds that an action may take if neither its hook nor its event says."""


def read_action(kind: Kind, hook: Mapping[str, Any], plugin: "PluginPlace | None") -> Action:
    """Return the action of a hook; raise `ValueError` with what is wrong with it."""
    if kind == "command":
        return _command(hook, plugin)
    if kind == "http":
        return _request(hook)
    if kind == "mcp_tool":
        return _server_call(hook, plugin)
    prompt, model = hook.get("prompt"), hook.get("model", "")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("it has no prompt")
    if not isinstance(model, str):
        raise ValueError("its model is no text")
    return Judgement(prompt, model, by_agent=kind == "agent")


def _command(hook: Mapping[str, Any], plugin: "PluginPlace | None") -> Command:
    command, arguments = hook.get("command"), hook.get("args")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("it has no command")
    if arguments is None:
        return Command((command,), is_line=True)
    if not _are_texts(arguments):
        raise ValueError("its args are no list of texts")
    argv = (command, *arguments)
    return Command(argv if plugin is None else tuple(map(plugin.filled, argv)), is_line=False)


def _request(hook: Mapping[str, Any]) -> Request:
    url, headers, variables = hook.get("url"), hook.get("headers", {}), hook.get("allowedEnvVars", [])
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise ValueError("it has no url that begins with http:// or https://")
    if not isinstance(headers, dict) or not _are_texts(list(headers.values())):
        raise ValueError("its headers are no object of texts")
    if not _are_texts(variables):
        raise ValueError("its allowedEnvVars are no list of texts")
    return Request(url, tuple(headers.items()), tuple(variables))


def _server_call(hook: Mapping[str, Any], plugin: "PluginPlace | None") -> ServerCall:
    server, tool, arguments = hook.get("server"), hook.get("tool"), hook.get("input", {})
    if not isinstance(server, str) or not server or not isinstance(tool, str) or not tool:
        raise ValueError("it has no server and tool")
    if not isinstance(arguments, dict):
        raise ValueError("its input is no object")
    return ServerCall(server if plugin is None else f"plugin_{plugin.name}_{server}", tool, json.dumps(arguments))


def filled_arguments(written: Any, told: Mapping[str, Any]) -> Any:
    """Return the arguments of a call, filled in from what its hook is told."""
    if isinstance(written, str):
        return _PATH.sub(lambda found: _text_at(found[1], told), written)
    if isinstance(written, dict):
        return {key: filled_arguments(value, told) for key, value in written.items()}
    return [filled_arguments(value, told) for value in written] if isinstance(written, list) else written


def _text_at(path: str, told: Any) -> str:
    """Return what is at a path such as `tool_input.command`, as text; empty if nothing is."""
    for name in path.split("."):
        told = told.get(name) if isinstance(told, Mapping) else None
    return told if isinstance(told, str) else "" if told is None else json.dumps(told, ensure_ascii=False)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and "\0" not in one for one in value)


def key_of(action: Action) -> str:
    """Return the text by which the line of an action is found in its file."""
    match action:
        case Command(argv=argv):
            return argv[0]
        case Request(url=url):
            return url
        case Judgement(prompt=prompt):
            return prompt
        case ServerCall(tool=tool):
            return tool
        case HostCall(callback=callback):
            return callback
