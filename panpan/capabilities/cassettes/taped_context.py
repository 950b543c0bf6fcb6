"""The project context of a replay: place, day, git and tree as they were recorded, and the rules files as they are now.

Rules that lay outside the workspace, such as the user's own, stay as they were recorded: they differ from user to user.
"""

import re
from collections.abc import Iterator, Sequence

from panpan.capabilities.cassettes.changed_text import Change
from panpan.capabilities.project_context.collect import SESSION_START
from panpan.capabilities.project_context.nested_memory import CAUSE
from panpan.types.messages import SystemReminder, UserMessage

_RULES_BLOCK = re.compile(r'\n?<context name="rules">\n(?P<explanation>[^\n]*)\n(?P<rules>.*)\n</context>\Z', re.DOTALL)
_RULES_OF_FILE = re.compile(r'<rules file="(?P<file>[^"]*)"[^>]*>\n.*?\n</rules>', re.DOTALL)


def with_rules_of_now(
    recorded: Sequence[UserMessage | SystemReminder],
    live: Sequence[SystemReminder],
    workspace: str,
    as_recorded: Change,
) -> list[UserMessage | SystemReminder]:
    """Return the recorded additions with the rules of the workspace as its files say them now.

    Args:
        recorded: What was put into the conversation at this place.
        live: The reminders that the services have for this place now.
        workspace: Where it was recorded.
        as_recorded: Puts the folder of the recording for the folder of now.
    """
    now = [reminder.model_copy(update={"text": as_recorded(reminder.text)}) for reminder in live]
    starts = [reminder for reminder in now if reminder.cause == SESSION_START]
    additions: list[UserMessage | SystemReminder] = []
    for addition in recorded:
        cause = addition.cause if isinstance(addition, SystemReminder) else ""
        if isinstance(addition, SystemReminder) and cause == SESSION_START and starts:
            text = _with_rules(addition.text, starts[0].text, workspace)
            additions.append(addition.model_copy(update={"text": text}))
        elif not cause.startswith(f"{CAUSE}{workspace}/"):
            additions.append(addition)
    return [*additions, *(reminder for reminder in now if reminder.cause.startswith(CAUSE))]


def _with_rules(recorded: str, live: str, workspace: str) -> str:
    before, now = _RULES_BLOCK.search(recorded), _RULES_BLOCK.search(live)
    kept = [text for file, text in _rules(before) if not file.startswith(f"{workspace}/")]
    of_now = [text for file, text in _rules(now) if file.startswith(f"{workspace}/")]
    start = _RULES_BLOCK.sub("", recorded)
    if not kept and not of_now:
        return start
    explanation = (now or before or {"explanation": ""})["explanation"]
    rules = "\n".join([*kept, *of_now])
    return f'{start}\n<context name="rules">\n{explanation}\n{rules}\n</context>'


def _rules(block: re.Match[str] | None) -> Iterator[tuple[str, str]]:
    for match in _RULES_OF_FILE.finditer(block["rules"]) if block else ():
        yield match["file"], match.group()
