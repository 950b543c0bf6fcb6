"""Options that programs on the Claude Agent SDK give, in its spelling.

This module is also imported for `--help`, so it only imports click.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import click

THINKING_WORDS = ("adaptive", "enabled", "disabled")
"""Values of `--thinking`; the first two mean the same, since each model thinks in the one way that it can."""

SETTING_SOURCES = ("user", "project", "local")
"""Kinds of settings files: the user's own, the project's, and the user's own for the project."""

INITIALIZE_FIELDS = ("settings", "disallowedTools")
"""Fields of the first request of a program that the command line may announce."""

_MAX_PROMPT_BYTES = 1_000_000
"""Most bytes of a file with a system prompt, and of a schema."""
_LEAST_THINKING = 1024
"""Fewest tokens of thinking that a model can be asked for."""


def _uuid_text(_: click.Context, __: click.Parameter, uuid: object) -> str | None:
    return None if uuid is None else str(uuid)


def sdk_options() -> list[Any]:
    """Return the options, in the order of the help."""
    return [
        click.option("--system-prompt-file", type=click.Path(), metavar="FILE",
                     help="Replace panpan's system prompt by the text of FILE."),
        click.option("--append-system-prompt-file", type=click.Path(), metavar="FILE",
                     help="Add the text of FILE to the system prompt."),
        click.option("--resume-session-at", type=click.UUID, callback=_uuid_text, metavar="UUID",
                     help="Continue after this message; what was said behind it stays, as a branch of the session."),
        click.option("--resume-drops-turn", metavar="UUID",
                     help="With --resume-session-at: refuse if more than the turn of this prompt would be left out."),
        click.option("--no-session-persistence", is_flag=True,
                     help="Headless: keep no log of the session; it cannot be continued."),
        click.option("--setting-sources", metavar="KINDS",
                     help="Kinds of settings files, skills, commands, hooks and memory files that count, of "
                          "user,project,local. Where your models are always counts."),
        click.option("--tools", "only_tools", metavar="NAMES",
                     help="Give the model only these tools of panpan, and those of MCP servers. "
                          "default: all; empty: none."),
        click.option("--fallback-model", "fallback_models", metavar="NAMES",
                     help="Ask these models in turn, with commas between, if the first one is overloaded or "
                          "unavailable."),
        click.option("--thinking-display", type=click.Choice(["summarized", "omitted"]),
                     help="How Anthropic's API sends the thinking."),
        click.option("--task-budget", type=click.IntRange(min=1), metavar="TOKENS",
                     help="Tell the model that it has TOKENS for the work, where Anthropic's API can; no limit."),
        click.option("--betas", metavar="NAMES", help="Ask Anthropic's API for these features."),
        click.option("--replay-user-messages", is_flag=True,
                     help="With stream-json: also print each message of yours when a turn takes it in."),
        click.option("--include-hook-events", is_flag=True,
                     help="With stream-json: also print what hooks said."),
        click.option("--session-mirror", is_flag=True,
                     help="With --input-format stream-json: also print each record of the session's log, for a program "
                          "that keeps it in a store of its own."),
        click.option("--permission-prompt-tool", type=click.Choice(["stdio"]),
                     help="With --input-format stream-json: ask the program that runs panpan about calls."),
        click.option("--permission-prompts", type=click.Choice(["host", "none"]),
                     help="host is --permission-prompt-tool stdio; none: nobody is asked."),
        click.option("--allow-dangerously-skip-permissions", "allow_skipping", is_flag=True,
                     help="Let the program that runs panpan switch to the mode bypassPermissions."),
        click.option("--await-initialize", is_flag=True,
                     help="With --input-format stream-json: wait for the program's first request."),
        click.option("--plugin-dir-no-mcp", "plugin_folders_without_mcp", multiple=True, type=click.Path(),
                     metavar="FOLDER", help="Like --plugin-dir, but without the MCP servers of the plug-in."),
        click.option("--initialize-fields", metavar="NAMES",
                     help="With --input-format stream-json: fields that the program's first request has, of "
                          "settings,disallowedTools; without them nothing runs."),
        click.option("--json-schema", metavar="JSON|FILE",
                     help="Headless: end with an answer that is JSON and fits this schema."),
        click.option("--max-thinking-tokens", type=click.IntRange(min=0), metavar="TOKENS",
                     help="Same as --thinking-budget; 0 is --no-thinking."),
        click.option("--debug-file", type=click.Path(), metavar="FILE",
                     help="Write the log of --debug into FILE instead."),
        click.option("--debug-to-stderr", "debug_to_stderr", is_flag=True,
                     help="Write the log of --debug to standard error instead."),
    ]  # fmt: skip


def bound_values(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which `--thinking` has its value behind `=`.

    The SDK writes `--thinking disabled`, and people write `--thinking "fix the test"`: only one of three words is its
    value, so that a prompt behind it stays a prompt.
    """
    bound: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*bound, *arguments[position:]]
        if argument in THINKING_WORDS and bound and bound[-1] == _THINKING:
            bound[-1] = f"{_THINKING}={argument}"
        else:
            bound.append(argument)
    return [f"{_THINKING}=enabled" if argument == _THINKING else argument for argument in bound]


_THINKING = "--thinking"


def thinking_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for thinking, by dotted key; empty if no option is about it.

    Raises:
        click.UsageError: Options contradict each other.
    """
    word, budget, most = options["thinking"], options["thinking_budget"], options["max_thinking_tokens"]
    if word in THINKING_WORDS[:2] and options["no_thinking"]:
        raise click.UsageError("--thinking and --no-thinking exclude each other")
    word = "disabled" if options["no_thinking"] else word
    if budget is not None and most is not None:
        raise click.UsageError("--thinking-budget and --max-thinking-tokens are the same; give one")
    is_on = None if word is None else word != "disabled"
    if most == 0:
        return {"thinking": False if is_on is None else is_on, "thinking_budget_tokens": None}
    if most is not None:
        budget = max(most, _LEAST_THINKING)
    if budget is not None and is_on is None:
        is_on = True
    return {"thinking": is_on, "thinking_budget_tokens": budget}


def check_sdk_options(options: Mapping[str, Any]) -> None:
    """Refuse options that contradict each other.

    Raises:
        click.UsageError: Options contradict each other; the error names them.
    """
    for name in ("system_prompt", "append_system_prompt"):
        if options[name] is not None and options[f"{name}_file"] is not None:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} and {flag}-file exclude each other")
    if options["debug_file"] is not None and options["debug_to_stderr"]:
        raise click.UsageError("--debug-file and --debug-to-stderr exclude each other")
    for kind in names_in(options["setting_sources"]) or ():
        if kind not in SETTING_SOURCES:
            raise click.UsageError(f"--setting-sources takes {', '.join(SETTING_SOURCES)}; {kind!r} is none of them")
    if options["replay_user_messages"] and options["output_format"] != "stream-json":
        raise click.UsageError("--replay-user-messages goes with --output-format stream-json")
    for name in names_in(options["initialize_fields"]) or ():
        if name not in INITIALIZE_FIELDS:
            raise click.UsageError(
                f"--initialize-fields takes {', '.join(INITIALIZE_FIELDS)}; {name!r} is none of them"
            )
    for name in (
        "permission_prompt_tool", "await_initialize", "initialize_fields", "include_hook_events", "permission_prompts",
        "session_mirror",
    ):  # fmt: skip
        if options[name] and options["input_format"] != "stream-json":
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --input-format stream-json")
    _check_resumed(options)


def _check_resumed(options: Mapping[str, Any]) -> None:
    is_continued = options["continue_latest"] or options["resume"] is not None
    if options["resume_session_at"] is not None and not is_continued:
        raise click.UsageError("--resume-session-at goes with -c or -r")
    if (drops := options["resume_drops_turn"]) is not None:
        if options["resume_session_at"] is None:
            raise click.UsageError("--resume-drops-turn goes with --resume-session-at")
        if not drops.strip():
            raise click.UsageError("--resume-drops-turn needs the id of a message")
    if options["no_session_persistence"] and is_continued and not options["fork"]:
        raise click.UsageError("--no-session-persistence goes with -c or -r only for a copy: add --fork-session")


def prompt_of(options: Mapping[str, Any], name: str) -> str | None:
    """Return the text of `--system-prompt` or `--append-system-prompt`, or of the file that gives it.

    Raises:
        ConfigError: The file cannot be read.
    """
    file = options[f"{name}_file"]
    if file is None:
        text: str | None = options[name]
        return text
    return _text_of(file, f"--{name.replace('_', '-')}-file")


def _text_of(file: str, flag: str) -> str:
    from pathlib import Path

    from panpan.errors import ConfigError, ToolError
    from panpan.system.files.read_file import read_users_file

    path = Path(os.getcwd()) / Path(file).expanduser()  # noqa: PTH109  (of the caller, whatever --cwd is)
    try:
        return read_users_file(str(path), max_bytes=_MAX_PROMPT_BYTES).decode("utf-8-sig")
    except ToolError as error:
        raise ConfigError(f"{flag}: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{flag}: {file} is not UTF-8; save the file as UTF-8") from error


def schema_of(given: str | None) -> dict[str, Any] | None:
    """Return the schema that `--json-schema` gives, as JSON or as a file; None if it is not given.

    Raises:
        ConfigError: It cannot be read, or is no JSON.
    """
    if given is None:
        return None
    import json

    from panpan.errors import ConfigError

    text = given if given.lstrip().startswith("{") else _text_of(given, "--json-schema")
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--json-schema: not valid JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigError('--json-schema: not a JSON object; write one such as {"type": "object", "properties": {}}')
    return schema


def tools_of(names: str | None) -> tuple[str, ...] | None:
    """Return the tools that `--tools` names; None for all of them."""
    return None if names is not None and names.strip() == "default" else names_in(names)


def names_in(text: str | None) -> tuple[str, ...] | None:
    """Return the names of a list with commas; None if there is no list."""
    return None if text is None else tuple(filter(None, (name.strip() for name in text.split(","))))
