"""Tasks and attempts as they are named on a command line: by a digest, a name, or a name with the values of axes."""

from collections.abc import Iterator, Sequence

from panpan.batch.store.records import Task
from panpan.batch.store.wording import value_text
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_ATTEMPT = compile_late(r"(.+)[/#]([1-9][0-9]{0,3})", 16)  # 16: re.DOTALL, since a name may have a line feed
_DIGEST = compile_late(r"[0-9a-f]{4,16}")
"""A beginning of a digest; shorter ones would often mean several tasks."""
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Named:
    """A task that a word names, and the attempt if it names one."""

    task: Task
    attempt: int | None


def find_named(tasks: Sequence[Task], word: str) -> Named:
    """Return the task that a word names.

    Args:
        tasks: All tasks.
        word: The beginning of a digest, the name of a task, or `NAME/seed=1`; `/2` or `#2` behind it is an attempt.

    Raises:
        ConfigError: It names none or several; the error lists them.
    """
    found = [Named(task, None) for task in _of_word(tasks, word)]
    if match := _ATTEMPT.fullmatch(word):
        found += [Named(task, int(match[2])) for task in _of_word(tasks, match[1])]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigError(f"no task is named {clean_line(word)!r}; tasks.jsonl lists the campaign's tasks")
    labels = [clean_line(one.task.label) for one in found[:_MAX_NAMED]]
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    raise ConfigError(f"{clean_line(word)!r} may be {', '.join(labels)}{more}; write the values of all axes")


def _of_word(tasks: Sequence[Task], word: str) -> Iterator[Task]:
    is_digest = _DIGEST.fullmatch(word) is not None
    for task in tasks:
        if (is_digest and task.id.startswith(word)) or task.name == word or _has_axes(task, word):
            yield task


def _has_axes(task: Task, word: str) -> bool:
    """Return True if a word is the task's name with values of some of its axes, in any order."""
    if not task.axes or not word.startswith(f"{task.name}/"):
        return False
    rest = f"/{word[len(task.name) + 1 :]}"
    for axis, value in sorted(task.axes.items(), key=lambda item: -len(value_text(item[1]))):
        part = f"/{axis}={value_text(value)}"
        if part in rest:
            rest = rest.replace(part, "", 1)
    return not rest
