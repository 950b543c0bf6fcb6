"""The gate of a folder, made from its settings: the one way, for a session and for commands that explain rules.

The module also has the askers for faces that do not ask a person: one answers no, one yes.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from panpan.config.locations import Locations
from panpan.config.settings_file import WrittenRule
from panpan.config.sources import Loaded
from panpan.core.hooks import ToolCall
from panpan.core.tool import SeenFiles, Tool, ToolContext, enabled_tools
from panpan.core.tool_call import combine_decisions, prepare_call
from panpan.errors import ConfigError, ToolError
from panpan.permissions.gate import PermissionGate, RuleStore
from panpan.permissions.reach.located import LocatedUse
from panpan.permissions.reasons import is_unknown
from panpan.permissions.rules.matching import opens_line
from panpan.permissions.rules.patterns import PathPattern
from panpan.permissions.rules.rule_checks import check_examples
from panpan.permissions.rules.rules import Rule, parse_rule, rule_sources
from panpan.permissions.sandbox_questions import SandboxQuestions
from panpan.permissions.subject import Subject, subject_of
from panpan.python_environments.uv_sources import domains_of
from panpan.shell_analysis.facts import Effect
from panpan.system.files.canonical import canonical_path
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver, without_workspace
from panpan.system.sandbox.command_sandbox import CommandSandbox, FindSandbox, find_when_needed
from panpan.system.sandbox.hidden_places import ReadRules
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.permission import (
    YES,
    Allow,
    Ask,
    Asker,
    Decision,
    Deny,
    PermissionAnswer,
    PermissionMode,
    PermissionQuestion,
    Reason,
    flags_for,
)


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
    readable_roots = loaded.places.readable_folders if readable is None else (readable, *loaded.places.readable_folders)
    extra_roots = folders if temporary is None else (*folders, temporary)
    protected_roots = (locations.home, *loaded.places.plugin_folders)  # hooks of plug-ins run outside the sandbox
    return PathResolver(
        cwd,
        extra_roots=extra_roots,
        readable_roots=readable_roots,
        protected_roots=protected_roots,
        kept_roots=loaded.settings.protected_directories,
    )


def sandbox_of(
    loaded: Loaded,
    root: Path,
    variables: Mapping[str, str],
    locations: Locations,
    *,
    find: FindSandbox = find_when_needed,
) -> CommandSandbox:
    """Return the sandbox of a session's commands, as the settings want it.

    Args:
        loaded: The user's settings.
        root: The workspace, canonical.
        variables: The user's environment, which may name package indexes.
        locations: Where panpan's own files are, which no command changes.
        find: Looks which sandbox works.

    Raises:
        ConfigError: A domain is none, or a rule cannot be read.
    """
    settings = loaded.settings
    wanted = settings.sandbox
    return CommandSandbox(
        is_on=wanted.mode == "on",
        writable=wanted.writable,
        home=locations.home,
        protected=loaded.places.plugin_folders,
        kept=settings.protected_directories,
        has_network=wanted.network,
        domains=domains_of(wanted.domains, settings.packages, variables),
        expand=partial(domains_of, packages=settings.packages, variables=variables),
        reading=read_rules(loaded, root),
        lets_out=partial(_lets_out, wanted.outside),
        find=find,
    )


def read_rules(loaded: Loaded, root: Path) -> ReadRules:
    """Return what the rules about reading mean for a box.

    A rule that denies closes the one place that it names, and files of the workspace; one that allows opens secrets.

    Args:
        loaded: The settings.
        root: Canonical root of the project.

    Raises:
        ConfigError: A rule cannot be read.
    """
    sources = rule_sources(loaded)
    denied = _about_reading(rule for source in sources for rule in source.written("deny"))
    allowed = _about_reading(rule for source in sources if source.may_allow for rule in source.written("allow"))
    readable = loaded.settings.sandbox.readable
    rules = ReadRules(
        closed=tuple(_existing(pattern.place(root) for pattern in denied)),
        opened=tuple(_existing((*readable, *(pattern.place(root) for pattern in allowed)))),
        opens=lambda path: any(pattern.covers(path, root) for pattern in allowed),
    )
    if not denied:
        return rules
    return replace(rules, closes=lambda path: any(pattern.restricts_file(path, root) for pattern in denied))


def _about_reading(rules: Iterable[WrittenRule]) -> list[PathPattern]:
    parsed = [parse_rule(rule.text, rule.place) for rule in rules]
    return [rule.specifier for rule in parsed if rule.is_about_reading and isinstance(rule.specifier, PathPattern)]


def _existing(places: Iterable[Path | None]) -> Iterator[Path]:
    for place in places:
        if place is not None and place.exists():
            with suppress(ToolError):
                yield canonical_path(place)


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
    with suppress(ConfigError):  # rules that do not count may be invalid
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
class Verdict:
    """The gate's decision about a call that is not made."""

    decision: Decision
    subject: Subject | None
    """The call as the gate read it; None if it could not be made at all."""


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
        self.sandbox = sandbox_of(loaded, cwd, {}, locations, find=find)
        self._sandbox_questions = SandboxQuestions(loaded.settings.sandbox.outside)
        self.mode: PermissionMode = self.gate.mode
        """Mode of the settings."""
        # Keep a tool that a rule removes, so that the gate names the rule.
        self._tools = {tool.name: tool for tool in enabled_tools(tools, loaded.settings.tools.enabled)}
        self._outputs = OutputStore(locations.outputs_folder)

    async def judge(self, tool: str, arguments: Mapping[str, Any], mode: PermissionMode | None = None) -> Verdict:
        """Return what the gate says of a call.

        Args:
            tool: Name of the tool.
            arguments: As a model would write them.
            mode: That of the settings if not given.
        """
        call = prepare_call(ToolUseBlock(id="call", name=tool, input=dict(arguments)), self._tools)
        if call.tool is None or call.args is None:
            return Verdict(Deny(Reason(call.problem, "bad-call")), None)
        context = ToolContext("call", self.paths, SeenFiles(), self._outputs, environment={}, sandbox=self.sandbox)
        try:
            tool_call = await ToolCall.of("call", call.tool, call.args, arguments, context)
        except ToolError as error:
            return Verdict(Deny(Reason(str(error), "bad-path")), None)
        self.gate.mode = mode or self.mode
        hooks = (self.gate, self._sandbox_questions)
        decisions = [found for hook in hooks if (found := await hook.before_tool(tool_call)) is not None]
        decision = combine_decisions(decisions)
        try:
            return Verdict(decision, await subject_of(tool_call))
        except ToolError:
            return Verdict(decision, None)


_MOST_PATHS = 50
"""Most matches of a pattern that are shown to people."""
_LABELS = {"rule": "rule", "place": "from", "command": "part", "path": "path", "assumption": "assumed"}


def describe_verdict(verdict: Verdict, gate: FolderGate) -> Iterator[str]:
    """Yield the decision, what it rests on, and what each part of the call would do."""
    decision, subject = verdict.decision, verdict.subject
    reason = decision.reason
    yield f"{type(decision).__name__.lower()}: {reason.text}"
    for name, value in reason.as_json().items():
        if name in _LABELS:
            yield f"  {_LABELS[name] + ':':<10} {value}"
    yield from _outcome(decision)
    if subject is None:
        return
    uses = list(subject.all_uses)
    for use in uses[:_MOST_PATHS]:
        yield f"{'writes' if use.is_write else 'reads'} {use.path}: {_where(use)}"
    if (more := len(uses) - _MOST_PATHS) > 0:
        yield f"and {more:,} more paths"
    if subject.facts is None:
        return
    for number, effect in enumerate(subject.facts.effects, 1):
        yield f"{number}. {effect.command.source}"
        yield from (f"     {text}" for text in _effect_lines(effect, gate))
    if subject.facts.line.oddities:
        yield f"beside these there is {', '.join(subject.facts.line.oddities)}, so it does not count as only reading"


def _outcome(decision: Decision) -> Iterator[str]:
    """Yield the box of an allowance, and of a question what answers it."""
    if isinstance(decision, Allow) and decision.box != "usual":
        yield f"  {'box:':<10} {decision.box}"
    if isinstance(decision, Ask):
        always = decision.rule or "cannot be saved for this call"
        yield f"  {'always:':<10} {'only a person may answer, each time' if decision.is_protected else always}"
        if decision.prefix_rule and not decision.is_protected:
            yield f"  {'the like:':<10} {decision.prefix_rule}"
        if decision.offer.bounds:
            yield f"  {'bounds:':<10} {decision.offer.bounds}"


def verdict_json(
    verdict: Verdict, gate: FolderGate, tool: str, arguments: Mapping[str, Any], mode: PermissionMode | None
) -> dict[str, Any]:
    """Return the same for programs; null is unknown."""
    decision, subject = verdict.decision, verdict.subject
    facts = subject.facts if subject else None
    return {
        "tool": tool,
        "args": arguments,
        "mode": mode or gate.mode,
        "decision": type(decision).__name__.lower(),
        "reason": decision.reason.as_json(),
        "always": decision.rule if isinstance(decision, Ask) else None,
        "bounds": decision.offer.bounds if isinstance(decision, Ask) else "",
        "is_protected": isinstance(decision, Ask) and decision.is_protected,
        "is_read_only": subject.is_read_only if subject else False,
        "box": decision.box if isinstance(decision, Allow) else None,
        "paths": [
            {
                "path": str(use.path),
                "access": use.use.access,
                "is_inside": use.location.is_inside,
                "is_protected": use.needs_a_person,
            }
            for use in (subject.all_uses if subject else ())
        ],
        "commands": [_effect_json(effect, gate) for effect in facts.effects] if facts else None,
        "oddities": list(facts.line.oddities) if facts else None,
    }


def _effect_lines(effect: Effect, gate: FolderGate) -> Iterator[str]:
    program = effect.program or "unknown"
    file = _file(effect, gate)
    yield f"program: {program}{f', {file}' if file and file != program else ''}"
    if effect.command.directories != (".",):
        yield f"in: {' or '.join(effect.command.directories or ['a folder that is not known'])}"
    yield f"reads: {_paths(effect.placed_reads)}"
    yield f"writes: {_paths(effect.placed_writes)}"
    yield f"runs other code: {_answer(effect.runs_code)}"
    yield f"uses the network: {_answer(effect.uses_network)}"
    verdict = "only looks" if effect.is_read_only else "is not known to only look" if is_unknown(effect) else "acts"
    yield f"{verdict}: {effect.why}"


def _effect_json(effect: Effect, gate: FolderGate) -> dict[str, Any]:
    return {
        "command": effect.command.source,
        "program": effect.program,
        "file": _file(effect, gate),
        "words": effect.command.texts,
        "directories": effect.command.directories,
        "reads": effect.placed_reads,
        "writes": effect.placed_writes,
        "runs_code": effect.runs_code,
        "uses_network": effect.uses_network,
        "is_read_only": effect.is_read_only,
        "why": effect.why,
    }


def _file(effect: Effect, gate: FolderGate) -> str | None:
    """Return where the program lies that the shell would find, outside the workspace; None for the shell's own."""
    if effect.program is None:
        return None
    return shutil.which(effect.program, path=without_workspace(os.environ.get("PATH", ""), gate.paths))


def _where(use: LocatedUse) -> str:
    if use.needs_a_person:
        return f"protected, since it {use.location.protection or 'may hold secrets'}"
    return "in the workspace" if use.is_open else "outside the workspace"


def _paths(paths: tuple[str, ...] | None) -> str:
    return "unknown" if paths is None else ", ".join(paths) or "nothing"


def _answer(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


class DenyingAsker:
    """Answers no to every question, for faces that ask no person, as with `-p`: only allowed calls run."""

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(is_allowed=False, feedback=_advice(question), is_persons=False)


class ApprovingAsker:
    """Answers yes to every question but those that only a person may answer.

    Args:
        otherwise: Who is asked about protected paths, and about going on with a repeated call; nobody if not given.
    """

    def __init__(self, otherwise: Asker | None = None) -> None:
        self._otherwise = otherwise or DenyingAsker()

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        if question.is_protected or _is_about_repeating(question):
            left = question.for_person or question.reasons  # the other reasons are answered with yes
            why = "; ".join(reason.text for reason in left) or question.reason
            answer = await self._otherwise(replace(question, reasons=left, reason=why))
            return replace(answer, reasons=() if answer.is_allowed else left)
        return PermissionAnswer(is_allowed=True, is_persons=False)


STRICTER_MEANWHILE = (
    "Plan mode was switched on while the question waited, so that nothing may be changed now, and no earlier yes counts"
)


class ModeAsker:
    """Asks nobody while the mode is dontAsk; no yes lasts into plan mode.

    Args:
        mode: Returns the mode of the moment.
        otherwise: Who is asked in the other modes.
    """

    def __init__(self, mode: Callable[[], PermissionMode], otherwise: Asker) -> None:
        self._mode = mode
        self._otherwise = otherwise

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        mode = self._mode()
        answer = await (DenyingAsker() if mode == "dontAsk" else self._otherwise)(question)
        if answer.is_allowed and mode != self._mode() == "plan":
            return PermissionAnswer(is_allowed=False, feedback=f"{STRICTER_MEANWHILE}.", is_persons=False)
        return answer


def _is_about_repeating(question: PermissionQuestion) -> bool:
    return any(reason.kind == "doom-loop" for reason in question.reasons)


def _advice(question: PermissionQuestion) -> str:
    if _is_about_repeating(question):
        return "It is the same call again, and this run asks nobody whether to go on."
    refused = (
        f"It needs the user's yes ({question.on_one_line}), and this run asks nobody, as with -p or a pipe. Go on "
        "without it, or in another way that is allowed"
    )
    flags = flags_for(question.reasons) if question.reasons else ""
    if not flags and question.is_protected:
        return (
            f"{refused}; name in your answer what is left for the user to do. No flag allows it: they are asked only "
            "where panpan runs on a terminal and without -p."
        )
    needs_more = question.is_protected or any(reason.kind == "sandbox" for reason in question.reasons)
    for_all = "" if needs_more or not flags or YES in flags.split() else f", or with {YES} for everything"
    return (
        f"{refused}. If the task cannot be done without it, say so in your answer and name this: the user can allow it "
        f"by starting panpan with {flags or YES}{for_all}. They are asked where panpan runs on a terminal and without "
        "-p."
    )
