"""From the settings of a folder to its gate: the one way, for a session and for whoever only asks what it would say."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from panpan.config.locations import Locations
from panpan.config.settings import Settings
from panpan.config.sources import Loaded
from panpan.core.hooks import ToolCall
from panpan.core.tool import SeenFiles, Tool, ToolContext, enabled_tools
from panpan.core.tool_call import joined, prepared
from panpan.errors import ConfigError, ToolError
from panpan.permissions.gate import PermissionGate, RuleStore
from panpan.permissions.rules.examples import check_examples
from panpan.permissions.rules.matching import opens_line
from panpan.permissions.rules.rules import Rule, parse_rule, rule_sources
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.permissions.subject import Subject, subject_of
from panpan.python_environments.uv_sources import domains_of
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.command_sandbox import CommandSandbox, FindSandbox, find_when_needed
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.permission import Decision, Deny, PermissionMode, Reason


def workspace_paths(
    cwd: Path, loaded: Loaded, locations: Locations, *, readable: Path | None = None, temporary: Path | None = None
) -> PathResolver:
    """Return what knows where paths lie for a session in `cwd`.

    Args:
        cwd: The workspace, canonical.
        loaded: Its settings.
        locations: Where panpan's own files are.
        readable: A folder of panpan's own that may be read, such as that for large outputs.
        temporary: The folder for the temporary files of commands, which counts as inside.

    Raises:
        ConfigError: An additional directory is no folder.
    """
    folders = loaded.settings.additional_directories
    for number, folder in enumerate(folders):
        if not folder.is_dir():
            origin = loaded.origins[f"additional_directories[{number}]"]
            raise ConfigError(f"{folder} ({origin}) is not a folder, so that tools cannot work there")
    readable_roots = () if readable is None else (readable,)
    extra_roots = folders if temporary is None else (*folders, temporary)
    return PathResolver(cwd, extra_roots=extra_roots, readable_roots=readable_roots, protected_roots=(locations.home,))


def sandbox_of(
    settings: Settings,
    variables: Mapping[str, str],
    locations: Locations,
    *,
    find: FindSandbox = find_when_needed,
) -> CommandSandbox:
    """Return the sandbox of a session's commands, as the settings want it.

    Args:
        settings: The user's.
        variables: The user's environment, which may name package indexes.
        locations: Where panpan's own files are, which no command changes.
        find: Looks which sandbox works.

    Raises:
        ConfigError: A domain is none.
    """
    wanted = settings.sandbox
    domains = domains_of(wanted.domains, settings.packages, variables)
    return CommandSandbox(
        is_on=wanted.mode == "on",
        writable=wanted.writable,
        home=locations.home,
        has_network=wanted.network,
        domains=domains.named,
        own_hosts=domains.own,
        lets_out=partial(_lets_out, wanted.outside),
        find=find,
    )


def _lets_out(outside: Sequence[str], command: str) -> bool:
    return opens_line([parse_rule(f"Bash({pattern})", "the setting sandbox.outside") for pattern in outside], command)


def gate_of(
    loaded: Loaded,
    paths: PathResolver,
    *,
    mode: PermissionMode | None = None,
    store: RuleStore | None = None,
    auto_approve: bool = False,
) -> PermissionGate:
    """Return the gate that the settings describe.

    Args:
        loaded: The settings.
        paths: Says where the paths lie that rules have as examples.
        mode: The mode that it begins with; None: that of the settings.
        store: Where "always" is kept.
        auto_approve: True if questions that anybody may answer are answered with yes.

    Raises:
        ConfigError: A rule cannot be read, or does not do what its examples say.
    """
    sources = rule_sources(loaded)
    check_examples(sources, paths)
    permission = loaded.settings.permission
    untrusted: Sequence[Rule] = ()
    with suppress(ConfigError):  # rules that do not count may be wrong
        untrusted = [parse_rule(text, "the project") for text in loaded.withheld_rules]
    return PermissionGate(
        sources,
        mode=mode or permission.mode,
        store=store,
        external_directory=permission.external_directory,
        previous_mode=permission.mode,
        auto_approve=auto_approve,
        untrusted=untrusted,
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """What the gate says of a call that is not made."""

    decision: Decision
    subject: Subject | None
    """What the gate took the call for; None where it could not be made at all."""


class FolderGate:
    """The gate of a folder without a session: decides, asks nobody and runs nothing.

    Args:
        cwd: The workspace, canonical.
        loaded: Its settings.
        locations: Where panpan's own files are.
        tools: Those whose calls are judged.
        find: Looks which sandbox works.

    Raises:
        ConfigError: A rule or a folder of the settings is wrong.
    """

    def __init__(
        self,
        cwd: Path,
        loaded: Loaded,
        locations: Locations,
        tools: Sequence[Tool[Any]],
        *,
        find: FindSandbox = find_when_needed,
    ) -> None:
        self.paths = workspace_paths(cwd, loaded, locations)
        self.gate = gate_of(loaded, self.paths)
        self.sandbox = sandbox_of(loaded.settings, {}, locations, find=find)
        self._sandbox_questions = SandboxQuestions(loaded.settings.sandbox.outside, lambda: self.gate.mode)
        self.mode: PermissionMode = self.gate.mode
        """That of the settings."""
        # A tool that a rule takes away is kept, so that the gate names the rule.
        self._tools = {tool.name: tool for tool in enabled_tools(tools, loaded.settings.tools.enabled)}
        self._outputs = OutputStore(locations.outputs_folder)

    async def judge(self, tool: str, arguments: Mapping[str, Any], mode: PermissionMode | None = None) -> Judged:
        """Return what the gate says of a call.

        Args:
            tool: Name of the tool.
            arguments: As a model would write them.
            mode: That of the settings if not given.
        """
        call = prepared(ToolUseBlock(id="call", name=tool, input=dict(arguments)), self._tools)
        if call.tool is None or call.args is None:
            return Judged(Deny(Reason(call.problem, "bad-call")), None)
        context = ToolContext("call", self.paths, SeenFiles(), self._outputs, environment={}, sandbox=self.sandbox)
        try:
            tool_call = await ToolCall.of("call", call.tool, call.args, arguments, context)
        except ToolError as error:
            return Judged(Deny(Reason(str(error), "bad-path")), None)
        self.gate.mode = mode or self.mode
        hooks = (self.gate, self._sandbox_questions)
        decisions = [found for hook in hooks if (found := await hook.before_tool(tool_call)) is not None]
        decision = joined(decisions)
        try:
            return Judged(decision, await subject_of(tool_call))
        except ToolError:
            return Judged(decision, None)
