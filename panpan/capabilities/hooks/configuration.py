"""The hooks of a session: files in which users write them, in one order, read into one list.

The rule: what cannot be used is told once, with its place, and the rest counts. A file of a project counts only if the
user trusts the project.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from panpan.capabilities.hooks.actions import DEFAULT_S, Action, HostCall, key_of, read_action
from panpan.capabilities.hooks.contract import FIRED, NEVER_FIRED
from panpan.capabilities.hooks.settings import hooks_of_settings
from panpan.config.places import BroughtFile, Places
from panpan.config.plugins.manifest import line_place
from panpan.config.plugins.store import PluginPlace
from panpan.config.settings_file import Source
from panpan.errors import ConfigError
from panpan.permissions.rules.rules import EDIT_TOOL, OWN_EDIT_TOOLS, Rule, parse_rule
from panpan.session.host import Host
from panpan.session.user_hooks import ListedHook
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

EVENT_S: Mapping[str, float] = {"UserPromptSubmit": 30.0, "SessionStart": 60.0}
"""Seconds that a hook of an event may take if it does not say; at others it is up to the action."""
MOST_S: Mapping[str, float] = {"SessionEnd": 10.0}
"""Most seconds of a hook, whatever it says."""

HOST_S = 600.0
"""Seconds that a hook of the program that runs panpan may take if it does not say."""

_NAMES = compile_late(r"[\w\-,| ]*")
"""A matcher that lists names; any other is a regular expression."""
_KEYS = frozenset({
    "type", "command", "args", "url", "headers", "allowedEnvVars", "timeout", "if", "once", "async", "asyncRewake",
    "statusMessage", "onFailure", "guard", "shell", "prompt", "model", "commandWindows",
    "server", "tool", "input",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handler:
    """One hook: what happens at an event, and when."""

    event: str
    matcher: str
    action: Action
    timeout_s: float
    is_guard: bool
    """True if its failure counts as a no."""
    is_async: bool
    """True if nobody waits for it."""
    condition: Rule | None
    """Rule that speaks of the calls for which it runs; None for all that the matcher means."""
    place: str
    """File and line."""
    plugin: PluginPlace | None = None
    """The plug-in that it is of."""
    once: bool = False
    """True if it runs once where it holds for a while, as in a skill."""
    is_users: bool = False
    """True if it is of a file of the user's own."""

    @property
    def title(self) -> str:
        """Its action in words."""
        return self.action.title

    @property
    def only(self) -> str:
        """Its condition in words; empty without one."""
        return f", if {self.condition.text}" if self.condition else ""

    @property
    def about(self) -> str:
        """Its event, and what the matcher means."""
        return f"{self.event} {self.matcher}" if self.matcher not in ("", "*") else self.event

    @property
    def line(self) -> str:
        """One line for people: when it runs, what, and where it is written."""
        return f"{self.about}: {self.title}{self.only} ({self.place})"

    @property
    def listed(self) -> ListedHook:
        """The hook as others know it."""
        action, plugin = self.action, self.plugin
        source: Literal["user", "project", "plugin", "host"] = "user" if self.is_users else "project"
        return ListedHook(
            self.event,
            self.matcher,
            action.kind,
            self.title,
            "host" if isinstance(action, HostCall) else source if plugin is None else "plugin",
            self.place,
            "" if plugin is None else plugin.name,
            self.condition.text if self.condition else "",
            self.timeout_s,
            self.is_async,
            self.once,
        )

    def sees_edits_of(self, name: str) -> bool:
        """Return True if it runs for each file that a tool of panpan's own changes, as for an Edit."""
        return name in OWN_EDIT_TOOLS and not self.matches(name) and self.matches(EDIT_TOOL)

    def matches(self, name: str) -> bool:
        """Return True if it runs for a tool, or another subject of its event, with this name."""
        if self.matcher in ("", "*"):
            return True
        if _NAMES.fullmatch(self.matcher):
            return name in [one.strip() for one in re.split("[|,]", self.matcher)]
        return re.search(self.matcher, name) is not None


@dataclass(frozen=True, slots=True)
class ConfiguredHooks:
    """The hooks of a session, and what could not be used."""

    handlers: Sequence[Handler]
    problems: Sequence[str]
    asides: Sequence[str] = ()
    """Things that a file for Claude Code asks for and panpan has not, which no session needs to tell."""
    are_off: bool = False
    """True if the user has switched all hooks off."""


def hooks_of_host(host: Host) -> Sequence[Handler]:
    """Return the hooks of the program that runs panpan, as they are now."""
    return [
        Handler(
            one.event,
            one.matcher,
            HostCall(one.callback),
            min(HOST_S if one.timeout_s is None else one.timeout_s, MOST_S.get(one.event, math.inf)),
            is_guard=one.is_guard,
            is_async=False,
            condition=None,
            place="the program that runs panpan",
        )
        for one in host.hooks
    ]


def hooks_of_folder(places: Places, sources: Iterable[Source] = ()) -> ConfiguredHooks:
    """Return the hooks of a session in a project, with all that cannot be used among the problems.

    Args:
        places: Places of their files.
        sources: Settings that may have some, too.
    """
    unread: list[str] = []
    found = read_hooks([*places.files(["hooks"], unread), *hooks_of_settings(sources)])
    return ConfiguredHooks(found.handlers, (*unread, *found.problems, *found.asides))


def read_hooks(files: Iterable[BroughtFile]) -> ConfiguredHooks:
    """Return the hooks of all files; one that is written twice counts once."""
    handlers: dict[Handler, Handler] = {}
    problems: list[str] = []
    asides: list[str] = []
    for file in files:
        reader = _FileReader(file, problems, asides)
        found = list(reader.handlers())
        if reader.disables_all and file.is_users:
            problems.append(f"{file.name}: disableAllHooks is true, so no hook runs")
            return ConfiguredHooks((), problems, asides, are_off=True)
        for one in () if reader.disables_all else found:
            as_written = replace(one, place="", is_users=False, condition=None, matcher=f"{one.matcher} {one.only}")
            handlers.setdefault(as_written, one)
    return ConfiguredHooks(tuple(handlers.values()), tuple(problems), tuple(asides))


class _FileReader:
    """Reads the hooks of one file."""

    def __init__(self, file: BroughtFile, problems: list[str], asides: list[str]) -> None:
        self._file = file
        self._problems = problems
        self._asides = asides
        self._text = file.data.decode("utf-8", errors="replace")
        self.disables_all = False

    def handlers(self) -> Iterator[Handler]:
        try:
            found = json.loads(self._text)
        except (ValueError, RecursionError) as error:
            self._tell("", f"it is no JSON ({error}); none of its hooks runs")
            return
        if not isinstance(found, dict):
            self._tell("", "it holds no object; none of its hooks runs")
            return
        self.disables_all = found.get("disableAllHooks") is True
        events = found.get("hooks")
        if events is None:
            if inside := found.keys() & FIRED.keys():
                self._tell(min(inside), 'its events stand outside of "hooks"; none of its hooks runs')
            return
        if not isinstance(events, dict):
            self._tell("hooks", "hooks is no object of events; none of its hooks runs")
            return
        for event, groups in events.items():
            yield from self._of_event(event, groups)

    def _of_event(self, event: str, groups: Any) -> Iterator[Handler]:
        if event not in FIRED:
            is_known = event in NEVER_FIRED
            why = "panpan has no such event" if is_known else "there is no such event"
            is_for_panpan = self._file.name.endswith("hooks.json") and self._file.plugin is None
            told = self._problems if is_for_panpan or not is_known else self._asides
            told.append(f"{self._place(event)}: hooks of {event} never run: {why}")
            return
        if not isinstance(groups, list):
            self._tell(event, f"{event} is no list; its hooks do not run")
            return
        for group in groups:
            if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
                self._tell(event, f"an entry of {event} has no list of hooks, and does not run")
                continue
            matcher = group.get("matcher") or ""
            if (fault := _fault_of(matcher)) is not None:
                self._tell(event, f"the matcher {json.dumps(matcher)[:60]} of {event} {fault}; its hooks do not run")
                continue
            for hook in group["hooks"]:
                try:
                    yield self._handler(event, matcher, hook)
                except ValueError as error:
                    self._tell(_key_in(hook) or event, f"a hook of {event} does not run: {error}")

    def _handler(self, event: str, matcher: str, hook: Any) -> Handler:
        """Return one hook; raise `ValueError` with what is wrong with it."""
        if not isinstance(hook, dict):
            raise ValueError("it is no object")
        written = hook.get("type", "command")
        kind = next((one for one in DEFAULT_S if one == written), None)
        if kind is None:
            raise ValueError(f"its type is {json.dumps(written)[:60]}; panpan has {', '.join(DEFAULT_S)}")
        if (kind, event) == ("agent", "SessionEnd"):
            raise ValueError("no subagent is started when a session ends")
        action = read_action(kind, hook, self._file.plugin)
        timeout = hook.get("timeout", EVENT_S.get(event, DEFAULT_S[kind]))
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= 86_400:
            raise ValueError(f"its timeout is {json.dumps(timeout)}; write seconds above 0")
        on_failure = hook.get("onFailure", "continue")
        if on_failure not in ("continue", "block"):
            raise ValueError(f"its onFailure is {json.dumps(on_failure)}; write continue or block")
        for key in ("guard", "async", "once"):
            if not isinstance(hook.get(key, False), bool):
                raise ValueError(f"its {key} is neither true nor false")
        place = self._place(key_of(action))
        for key in sorted(hook.keys() - _KEYS):
            self._tell(key, f"a hook of {event} has the key {json.dumps(key)[:60]}, which is not known and not used")
        is_guard = hook.get("guard", False) or on_failure == "block"
        is_async = hook.get("async", False) or hook.get("asyncRewake") is True
        if is_guard and is_async:
            raise ValueError("it is a guard and async, but what nobody waits for cannot say no")
        timeout = min(timeout, MOST_S.get(event, timeout))
        condition = _condition(hook.get("if"), place)
        once = hook.get("once", False)
        of_file = (self._file.plugin, once, self._file.is_users)
        return Handler(event, matcher, action, timeout, is_guard, is_async, condition, place, *of_file)

    def _tell(self, key: str, text: str) -> None:
        self._problems.append(f"{self._place(key)}: {text}")

    def _place(self, key: str) -> str:
        """Return the file, with the first line that has a text in quotes."""
        name, plugin = self._file.name, self._file.plugin
        if plugin is not None:
            name = f"plug-in {plugin.name}: {name.removeprefix(f'{plugin.root}/')}"
        return line_place(name, self._text, key) if self._file.has_lines else name


def _key_in(hook: Any) -> str:
    """Return a text by which the line of a hook is found; empty if it has none."""
    texts = (hook.get(key) for key in ("command", "url", "prompt", "type")) if isinstance(hook, dict) else ()
    return next((text for text in texts if isinstance(text, str)), "")


def _condition(text: Any, place: str) -> Rule | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError("its if is no text")
    try:
        return parse_rule(text, place)
    except ConfigError as error:
        raise ValueError(f"its if is no permission rule: {error}") from error


def _fault_of(matcher: Any) -> str | None:
    """Return what is wrong with a matcher; None if it can be used."""
    if not isinstance(matcher, str):
        return "is no text"
    if not _NAMES.fullmatch(matcher) and matcher != "*":
        try:
            re.compile(matcher)
        except (re.error, RecursionError) as error:
            return f"is no regular expression ({error})"
    return None
