"""Expand a campaign to its tasks: each written task with one value of each axis.

The rule: a value is inserted as it is and never expanded again, and quoted where it goes into a command. Braces that
name nothing known stay as they are. The same campaign always expands to the same ids.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from hashlib import blake2b
from itertools import product
from math import prod
from pathlib import Path
from typing import TypeVar

from panpan.batch.definition.campaign import Axes, AxisValue, Campaign, CommandLine, Verify
from panpan.batch.definition.written_tasks import MAX_TASKS, WrittenTask, written_tasks
from panpan.batch.store.records import Task
from panpan.batch.store.wording import value_text
from panpan.config.keys import shown
from panpan.errors import ConfigError, ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.types.pattern import compile_late

MAX_ATTEMPTS = 1_000_000
"""Attempts at all tasks together."""
MAX_PROMPT_BYTES = 120_000
"""A prompt is one word of a command line, which Linux limits to 128 KiB (execve(2), MAX_ARG_STRLEN)."""
MAX_TOTAL_BYTES = 256_000_000
"""All prompts together."""

LineT = TypeVar("LineT", bound=CommandLine)

_PLACEHOLDER = compile_late(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expand(campaign: Campaign, folder: Path, jsonl: Mapping[str, bytes]) -> Sequence[Task]:
    """Return the tasks of a campaign, in the order in which they are written, the last axis changing first.

    Args:
        campaign: The campaign, with its rules checked.
        folder: Its folder, canonical.
        jsonl: Content of the files of `[tasks] jsonl` that the user trusts, by name, as from `read_jsonl`.

    Raises:
        ConfigError: A task, pattern or axis is wrong, or there are too many tasks; the error names the place.
    """
    for name, values in campaign.axes.items():
        _require_distinct(name, values)
    written = written_tasks(campaign, folder, jsonl)
    _require_few(campaign, len(written))
    _require_no_typo(campaign, written)
    combinations = [dict(zip(campaign.axes, values, strict=True)) for values in product(*campaign.axes.values())]
    tasks: dict[str, Task] = {}
    total = 0
    for one in written:
        of_file = _values_of_file(one)
        for axes in combinations:
            task = _task(campaign, one, axes, of_file)
            total += len(task.prompt)
            if total > MAX_TOTAL_BYTES:
                raise ConfigError(
                    f"{one.place}: the prompts of all tasks take more than {MAX_TOTAL_BYTES:,} characters; "
                    "name files with {file} instead of inserting {text}, or expand to fewer tasks"
                )
            if tasks.setdefault(task.id, task) is not task:
                raise ConfigError(f"{one.place} expands to the same task twice; take out one of the two")
    return tuple(tasks.values())


def digest_of(
    name: str,
    prompt: str,
    *,
    axes: Axes,
    model: str | None,
    files: Sequence[str],
    verify: object,
    command: object = None,
) -> str:
    """Return the id of a task: 16 hex digits of BLAKE2b over its fields as JSON with sorted keys.

    Empty fields do not count, so that a field that a later panpan adds changes no ids.
    """
    fields = {"name": name, "prompt": prompt, "axes": axes, "model": model, "files": list(files), "verify": verify}
    fields["command"] = command
    given = {key: value for key, value in fields.items() if value}
    text = json.dumps(given, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def _require_distinct(name: str, values: Sequence[AxisValue]) -> None:
    seen = set()
    for number, value in enumerate(values, 1):
        text = value_text(value)
        if text in seen:
            raise ConfigError(f"campaign.toml: axes.{name} has {shown(text)} twice, again as item {number}; remove one")
        if "\0" in text:
            raise ConfigError(f"campaign.toml: axes.{name} has a NUL character in item {number}; remove it")
        seen.add(text)


def _require_few(campaign: Campaign, written: int) -> None:
    """Refuse a product that is too large before any of it is built."""
    tasks = written * prod(map(len, campaign.axes.values()))
    axes = (f"{name} ({len(values):,})" for name, values in campaign.axes.items())
    counted = " × ".join([f"{written:,} tasks", *axes])  # noqa: RUF001 - the sign for a product
    if tasks > MAX_TASKS:
        raise ConfigError(
            f"campaign.toml expands to {tasks:,} tasks ({counted}); at most {MAX_TASKS:,}; "
            "shorten an axis, or make several campaigns"
        )
    if tasks * campaign.attempts > MAX_ATTEMPTS:
        raise ConfigError(
            f"campaign.toml asks for {tasks * campaign.attempts:,} attempts ({counted}, attempts = "
            f"{campaign.attempts:,}); at most {MAX_ATTEMPTS:,}; lower attempts, or shorten an axis"
        )


def _require_no_typo(campaign: Campaign, written: Sequence[WrittenTask]) -> None:
    """Refuse an axis that stands nowhere while a placeholder of nearly the same name does.

    An axis that stands nowhere is fine by itself, since attempts also have it as a variable.
    """
    places: dict[str, str] = {}
    for one in written:
        lines = [line.command for line in (one.command, _verify_of(campaign, one)) if line is not None]
        for name in _PLACEHOLDER.findall("\n".join((one.prompt, *lines))):
            places.setdefault(name, one.place)
    unknown = [name for name in places if name not in {"file", "text", *campaign.axes}]
    for axis in campaign.axes:
        if axis not in places and axis != "model" and (found := get_close_matches(axis, unknown, n=1, cutoff=0.75)):
            raise ConfigError(
                f"campaign.toml: axes.{axis} stands in no prompt, but {places[found[0]]} has {{{found[0]}}}; "
                "give both the same name"
            )


def _values_of_file(written: WrittenTask) -> Mapping[str, str]:
    """Return the values of `{file}` and `{text}`; the file is read only if the prompt wants its text."""
    if written.file is None:
        return {}
    values = {"file": str(written.file)}
    if "{text}" in written.prompt:
        try:
            data = read_regular_file(written.file, max_bytes=MAX_PROMPT_BYTES, follow_symlinks=True)
            values["text"] = data.decode("utf-8-sig")
        except ToolError as error:
            raise ConfigError(f"{shown(error)}; name the file with {{file}} instead of inserting {{text}}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"{written.place} is not UTF-8 text; name the file with {{file}} instead of inserting {{text}}"
            ) from error
        if written.prompt.lstrip().startswith("{text}") and values["text"].lstrip().startswith("/"):
            raise ConfigError(
                f"{written.place} begins with a slash, so that its text would be a command of panpan and no prompt; "
                "write words before {text} in tasks.prompt"
            )
    return values


def _task(campaign: Campaign, written: WrittenTask, axes: Axes, of_file: Mapping[str, str]) -> Task:
    values = {name: value_text(value) for name, value in axes.items()}
    prompt = _filled(written.prompt, {**values, **of_file})
    _require_word(prompt, f"{written.place}: the prompt")
    verify, command = _verify_of(campaign, written), written.command
    if verify is not None:
        in_command = {name: value for name, value in of_file.items() if name != "text"}
        verify = _filled_line(verify, {**values, **in_command}, written.place, "verify")
    if command is not None:
        command = _filled_line(command, values, written.place, "command")
        _require_word(command.command, f"{written.place}: command")
    chosen = axes.get("model", campaign.model)
    model = None if chosen is None else value_text(chosen)
    files = tuple(written.files)
    id_ = digest_of(
        written.id,
        prompt,
        axes=axes,
        model=model,
        files=files,
        verify=_as_json(verify),
        command=_as_json(command),
    )
    return Task(
        id=id_, name=written.id, prompt=prompt, axes=axes, model=model, files=files, verify=verify, command=command
    )


def _verify_of(campaign: Campaign, written: WrittenTask) -> Verify | None:
    """Return the verify command of a task; None if there is none, or the task is a command, which judges itself."""
    return None if written.command is not None else written.verify or campaign.verify


def _as_json(line: CommandLine | None) -> object:
    return None if line is None else line.model_dump(exclude_defaults=True)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return the text with the known placeholders replaced, all in one pass."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


def _require_word(text: str, what: str) -> None:
    """Refuse what cannot be a word of a command line."""
    if "\0" in text:
        raise ConfigError(f"{what} holds a NUL character; remove it")
    if (size := len(text.encode())) > MAX_PROMPT_BYTES:
        raise ConfigError(
            f"{what} has {size:,} bytes; at most {MAX_PROMPT_BYTES:,}; put the rest into a file and name the file"
        )


def _filled_line(line: LineT, values: Mapping[str, str], place: str, key: str) -> LineT:
    """Return a command line with the values as words of the shell.

    Raises:
        ConfigError: A placeholder stands in quotes, so that the shell would read its value as more than a word.
    """
    command = line.command
    parts: list[str] = []
    end = 0
    for found in _PLACEHOLDER.finditer(command):
        value = values.get(found[1])
        if value is None:
            continue
        quoted = shlex.quote(value)
        if quoted != value and _may_be_quoted(command[: found.start()]):
            raise ConfigError(
                f"{place}: {key} has {found[0]} in quotes, and its value {shown(quoted)} is quoted by panpan; "
                "write the placeholder without quotes"
            )
        parts += [command[end : found.start()], quoted]
        end = found.end()
    if not parts:
        return line
    filled = "".join([*parts, command[end:]])
    _require_word(filled, f"{place}: {key}")
    return line.model_copy(update={"command": filled})


_UNCLEAR = ("`", "<<", "$'", '$"', "$(", "${", "#")
"""Syntax after which this module does not know if a character of a command is in quotes."""
_QUOTED = compile_late(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^'"\\]""", re.DOTALL)


def _may_be_quoted(before: str) -> bool:
    """True unless what stands behind the beginning of a command is certainly in no quotes."""
    return any(mark in before for mark in _UNCLEAR) or "".join(_whole_pieces(before)) != before


def _whole_pieces(text: str) -> Iterator[str]:
    end = 0
    while (found := _QUOTED.match(text, end)) is not None:
        yield found[0]
        end = found.end()
