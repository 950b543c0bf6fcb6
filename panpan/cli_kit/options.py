"""Options of a run: their definitions, the settings that they are, and contradictions between them.

This module is also imported for `--help`, so it only imports click.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import click

from panpan.cli_kit.sdk_options import THINKING_WORDS, check_sdk_options, names_in, sdk_options, thinking_of, tools_of

if TYPE_CHECKING:
    from panpan.session.frontend import SessionOptions

Options: TypeAlias = dict[str, Any]
"""Values of the command line, by the names of the options; `first_prompt` is the prompt without -p."""

PICKS_SESSION = ""
"""Value of `-r` without a session: the user picks one."""

_NO_SESSION_ID = "-r needs the id or title of a session here: `panpan sessions` lists them, and -c takes the newest"

RUN_OPTIONS = "panpan.run_options"
"""Key in click's `Context.meta` of the options before a subcommand."""

SETTING_BY_OPTION = {
    "model": "model",
    "provider": "provider",
    "base_url": "base_url",
    "api_key": "api_key",
    "thinking": "thinking",
    "thinking_budget": "thinking_budget_tokens",
    "max_thinking_tokens": "thinking_budget_tokens",
    "no_thinking": "thinking",
    "only_tools": "tools.only",
    "fallback_models": "fallback_models",
    "thinking_display": "thinking_display",
    "task_budget": "task_budget_tokens",
    "betas": "betas",
    "effort": "effort",
    "output_style": "output_style",
    "permission_mode": "permission.mode",
    "allowed_tools": "permission.allow",
    "disallowed_tools": "permission.deny",
    "additional_directories": "additional_directories",
    "plugin_folders": "plugin_folders",
    "plugin_folders_without_mcp": "plugin_folders_without_mcp",
    "max_turns": "max_rounds",
    "max_budget_usd": "max_budget_usd",
    "max_tokens": "max_tokens",
    "max_seconds": "max_seconds",
    "plain": "ui.plain",
    "sandbox_mode": "sandbox.mode",
    "allow_outside": "sandbox.outside",
}

FLAGS: Mapping[str, str] = {
    "additional_directories": "--add-dir",
    "api_key": "--api-key",
    "base_url": "--base-url",
    "betas": "--betas",
    "effort": "--effort",
    "fallback_models": "--fallback-model",
    "max_budget_usd": "--max-budget-usd",
    "max_rounds": "--max-turns",
    "max_seconds": "--max-seconds",
    "max_tokens": "--max-tokens",
    "model": "--model",
    "output_style": "--output-style",
    "permission.allow": "--allowedTools",
    "permission.deny": "--disallowedTools",
    "permission.mode": "--permission-mode",
    "plugin_folders": "--plugin-dir",
    "plugin_folders_without_mcp": "--plugin-dir-no-mcp",
    "provider": "--provider",
    "sandbox.domains": "--allow-network",
    "sandbox.mode": "--sandbox",
    "sandbox.network": "--allow-network",
    "sandbox.outside": "--allow-outside",
    "task_budget_tokens": "--task-budget",
    "thinking": "--thinking",
    "thinking_display": "--thinking-display",
    "thinking_budget_tokens": "--thinking-budget",
    "tools.only": "--tools",
    "ui.plain": "--plain",
}

_SEVERAL_SETTINGS = frozenset({"settings", "assignments", "allow_network", "setting_sources"})

_MODES = ("default", "acceptEdits", "auto", "plan", "dontAsk", "bypassPermissions")

WHOLE_NETWORK = "*"
"""Value of `--allow-network` without hosts."""

_COMMANDS_WITH_SETTINGS = ("config", "permissions", "debug", "mcp", "acp", "serve", "web")
"""Subcommands whose output depends on the settings."""

_OF_SERVERS = ("mcp_config", "strict_mcp_config", "trusts_project", "system_prompt", "append_system_prompt")
_FURTHER_OPTIONS = {
    "agents": ("agents",),
    "mcp": ("mcp_config",),
    "acp": _OF_SERVERS,
    "serve": _OF_SERVERS,
    "web": _OF_SERVERS,
}
"""Options that are no settings, and the subcommands that take them."""


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run, in the order of the help."""
    options = [
        click.option("-p", "--print", "prompt", is_flag=False, flag_value="", metavar="TEXT",
                     help="Answer TEXT and any piped input without a terminal, and exit."),
        click.option("-c", "--continue", "continue_latest", is_flag=True,
                     help="Continue the newest session of this folder."),
        click.option("-r", "--resume", is_flag=False, flag_value=PICKS_SESSION, metavar="[SESSION]",
                     help="Continue SESSION: its id, title, or words said in it. Without SESSION, pick from a list."),
        click.option("--session", "session_name", metavar="NAME",
                     help="Continue or begin the session NAME. With -r and --fork-session: name the copy."),
        click.option("--session-id", type=click.UUID, callback=lambda _, __, uuid: None if uuid is None else str(uuid),
                     metavar="UUID", help="Continue or begin the session with this id."),
        click.option("--fork-session", "fork", is_flag=True,
                     help="Continue in a copy, and leave the session unchanged."),
        click.option("--unfinished", type=click.Choice(["finished", "not-run", "unclear"]),
                     help="What became of a call that a crash cut off, for a session that continues."),
        click.option("--model", metavar="NAME", help="Model, alias, provider/model, or cassette:PATH for a recording."),
        click.option("--provider", metavar="NAME", help="Provider, if the model's name does not tell it."),
        click.option("--base-url", metavar="URL", help="Address of the provider."),
        click.option("--api-key", metavar="KEY", help="Key of the provider. An environment variable is safer."),
        click.option("--thinking", is_flag=False, flag_value="enabled", type=click.Choice(THINKING_WORDS),
                     metavar="[HOW]", help="Let the model think first, if it can. disabled is --no-thinking."),
        click.option("--no-thinking", is_flag=True, help="Let the model answer at once."),
        click.option("--thinking-budget", type=click.IntRange(min=1024), metavar="TOKENS",
                     help="How much the model may think; implies --thinking."),
        click.option("--effort", type=click.Choice(["low", "medium", "high", "xhigh", "max"]),
                     help="How much work the model puts into an answer."),
        click.option("-f", "--output-format", type=click.Choice(["text", "json", "stream-json"]), default="text",
                     show_default=True, help="What a headless run prints."),
        click.option("--input-format", type=click.Choice(["text", "stream-json"]), default="text", show_default=True,
                     help="One prompt, or a user message a line for many turns; with \"priority\":\"next\" it reaches "
                          "the turn that runs."),
        click.option("--include-partial-messages", is_flag=True, help="With stream-json: also print each delta."),
        click.option("--background", type=click.Choice(["exit", "drain", "stop"]),
                     help="Headless, with background tasks at the end: leave them, wait for them, or stop them "
                     "(the default)."),
        click.option("--when-asked", type=click.Choice(["refuse", "stop"]),
                     help="Headless, at a question for you: refuse the call (the default), or stop the run with exit "
                     "code 5 and say in the result what was asked."),
        click.option("--permission-mode",
                     type=click.Choice([*_MODES, "manual"]),
                     help="What happens to calls that no rule decides; manual is default."),
        click.option("--dangerously-skip-permissions", "permission_mode", flag_value="bypassPermissions",
                     help="Same as --permission-mode bypassPermissions; protected files and the sandbox still ask."),
        click.option("--allowedTools", "--allowed-tools", "allowed_tools", multiple=True, metavar="RULES",
                     help="Rules for calls that run without a question, such as 'Edit, Bash(npm test *)'."),
        click.option("--disallowedTools", "--disallowed-tools", "disallowed_tools", multiple=True, metavar="RULES",
                     help="Rules for calls that never run."),
        click.option("--allow-network", is_flag=False, flag_value=WHOLE_NETWORK, multiple=True, metavar="[HOST,...]",
                     help="Let commands reach HOSTs, or every host. package-indexes: the hosts of package managers."),
        click.option("--allow-outside", multiple=True, metavar="COMMAND",
                     help="Let COMMAND, such as 'git commit *', run outside the sandbox."),
        click.option("--sandbox", "sandbox_mode", type=click.Choice(["on", "off"]),
                     help="off: commands run with all your rights. Use it only on throw-away machines."),
        click.option("-y", "--yes", "auto_approve", is_flag=True,
                     help="Answer yes to every question, except about protected files and the sandbox."),
        click.option("--trust", "trusts_project", is_flag=True,
                     help="Trust the project's settings in this run. Without it they can only make panpan stricter."),
        click.option("--record", type=click.Path(), metavar="FILE",
                     help="Record the session into the cassette FILE, for `panpan replay FILE`."),
        click.option("--cwd", type=click.Path(), metavar="FOLDER", help="Work in FOLDER."),
        click.option("--add-dir", "additional_directories", multiple=True, type=click.Path(), metavar="FOLDER",
                     help="Let the tools use FOLDER, too."),
        click.option("--system-prompt", metavar="TEXT", help="Replace panpan's system prompt by TEXT."),
        click.option("--append-system-prompt", metavar="TEXT", help="Add TEXT to the system prompt."),
        click.option("--output-style", metavar="NAME|FILE|JSON", help="How the model speaks, such as Explanatory."),
        click.option("--plugin-dir", "plugin_folders", multiple=True, type=click.Path(), metavar="FOLDER",
                     help="Use the plug-in in FOLDER, as it is now, for this run."),
        click.option("--agents", metavar="JSON",
                     help='Kinds of subagents: {"NAME": {"description": "...", "prompt": "...", "tools": "..."}}.'),
        click.option("--agent", metavar="NAME",
                     help="Begin as this agent: its prompt, tools and model, and its mode if that is stricter."),
        click.option("--mcp-config", multiple=True, metavar="FILE|JSON",
                     help="Use the MCP servers in a JSON file, or a JSON object, for this run."),
        click.option("--strict-mcp-config", is_flag=True, help="Use no other MCP servers than those of --mcp-config."),
        click.option("--settings", multiple=True, metavar="FILE|JSON",
                     help="Use the settings in a TOML or JSON file, or a JSON object, for this run."),
        click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE",
                     help="Set one setting for this run, such as sandbox.network=true."),
        click.option("--max-turns", type=click.IntRange(min=1), metavar="N",
                     help="Limit the rounds of one turn; 50 in headless runs."),
        click.option("--max-budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD",
                     help="Limit the cost of the session and its subagents."),
        click.option("--max-tokens", type=click.IntRange(min=1), metavar="N",
                     help="Limit the tokens of the session, input and replies together."),
        click.option("--max-seconds", type=click.FloatRange(min=0, min_open=True), metavar="S",
                     help="Limit the time of all turns together, in seconds."),
        click.option("--end-with-parent", is_flag=True,
                     help="End, as SIGTERM does, when the process that started panpan ends."),
        click.option("-q", "--quiet", is_flag=True, help="Print no progress or warnings on standard error."),
        click.option("-v", "--verbose", is_flag=True, help="Print progress on standard error without a terminal, too."),
        click.option("--plain", is_flag=True, default=None,
                     help="On a terminal, print only lines that never change, for screen readers."),
        click.option("--debug", is_flag=True, help="Write a log in the panpan home."),
        *sdk_options(),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def require_session_id(options: Options) -> None:
    """Refuse `-r` without an id if nobody can pick a session from a list.

    Raises:
        click.UsageError: There is no id; the error says how to name a session.
    """
    if options["resume"] == PICKS_SESSION:
        raise click.UsageError(_NO_SESSION_ID)


def check_options(options: Options) -> None:
    """Refuse options that contradict each other.

    Raises:
        click.UsageError: Options contradict each other, or one has a wrong value; the error names them.
    """
    if options["continue_latest"] and options["resume"] is not None:
        raise click.UsageError("-c and -r exclude each other")
    is_resumed = options["continue_latest"] or options["resume"] is not None
    if options["session_id"] is not None and options["session_name"] is not None:
        raise click.UsageError("--session and --session-id exclude each other")
    is_chosen = options["session_id"] is not None or options["session_name"] is not None
    if options["session_name"] is not None and not options["session_name"].strip():
        raise click.UsageError("--session needs a name")
    if is_resumed and is_chosen and not options["fork"]:
        raise click.UsageError("--session and --session-id go with -c or -r only for a copy: add --fork-session")
    if not (is_resumed or is_chosen) and (options["fork"] or options["unfinished"]):
        raise click.UsageError("--fork-session and --unfinished go with -c, -r, --session or --session-id")
    if is_resumed and options["agent"] is not None:
        raise click.UsageError("--agent goes with a new session; a continued session keeps its agent")
    if options["first_prompt"] or options["fork"] or options["record"]:
        require_session_id(options)
    if options["include_partial_messages"] and options["output_format"] != "stream-json":
        raise click.UsageError("--include-partial-messages goes with --output-format stream-json")
    if options["input_format"] == "stream-json" and options["output_format"] != "stream-json":
        raise click.UsageError("--input-format stream-json goes with --output-format stream-json")
    if options["prompt"] and options["first_prompt"]:
        raise click.UsageError("there are two prompts, one behind -p and one alone; give one")
    if options["input_format"] == "stream-json" and (options["prompt"] or options["first_prompt"]):
        raise click.UsageError("a prompt and --input-format stream-json exclude each other")
    check_sdk_options(options)
    thinking_of(options)
    _network(options["allow_network"])


def is_taken(command: str, option: str) -> bool:
    """Return True if a subcommand takes an option that stands before it.

    Args:
        command: Name of the subcommand.
        option: Name of the option's value, such as `permission_mode`.
    """
    if option == "cwd" or option in _FURTHER_OPTIONS.get(command, ()):
        return True
    return command in _COMMANDS_WITH_SETTINGS and option in {*SETTING_BY_OPTION, *_SEVERAL_SETTINGS}


def check_options_before(command: str, ctx: click.Context) -> None:
    """Refuse options before a subcommand that have no effect on it; some subcommands use settings.

    Raises:
        click.UsageError: There is such an option; the error names it.
    """
    for option in ctx.command.params:
        is_given = ctx.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if is_given and not is_taken(command, option.name or ""):
            name = " / ".join([*option.opts, *option.secondary_opts])
            raise click.UsageError(f"{name} does not go with the command {command}")


def server_options(ctx: click.Context) -> "SessionOptions":
    """Return the options of all sessions of a server, from the command line and the environment."""
    options = ctx.meta.get(RUN_OPTIONS) or {}
    given: Any = {name: options[name] for name in _OF_SERVERS if name in options}
    given |= {"env": dict(os.environ), "overrides": overrides_of(options) if options else {}}
    return cast("SessionOptions", given)


def _from_here(folder: str) -> str:
    """Return the path of a folder relative to the caller's working directory, whatever `--cwd` is."""
    return folder if folder.startswith("~") else os.path.join(os.getcwd(), folder)  # noqa: PTH109, PTH118


def overrides_of(options: Options) -> dict[str, Any]:
    """Return the settings from the options, by dotted key; None and () for options that were not given.

    Those of `--settings` and `--set` are sources of their own, each under its place.

    Raises:
        ConfigError: The value of `--settings` or `--set` cannot be read or used.
        click.UsageError: `--allow-network` names no host.
    """
    from panpan.config.sources import Names, SettingFiles
    from panpan.permissions.rules.rules import split_rules

    overrides = {key: options[name] for name, key in SETTING_BY_OPTION.items()} | thinking_of(options)
    overrides["tools.only"] = tools_of(options["only_tools"])
    overrides |= {name: names_in(options[name]) for name in ("fallback_models", "betas")}
    if overrides["permission.mode"] == "manual":
        overrides["permission.mode"] = "default"
    overrides["additional_directories"] = tuple(map(_from_here, overrides["additional_directories"]))
    for key in ("permission.allow", "permission.deny"):
        overrides[key] = tuple(rule for text in overrides[key] for rule in split_rules(text))
    if (kinds := names_in(options["setting_sources"])) is not None:
        overrides["setting_sources"] = SettingFiles(frozenset(kinds))
    return {**_given(options), **overrides, **_network(options["allow_network"]), "names": Names(FLAGS)}


def given_look(options: Options) -> dict[str, Any]:
    """Return the table `ui` from `--settings` and `--set`, which the first screen needs."""
    return {key: value for source in _given(options).values() for key, value in source.values.get("ui", {}).items()}


def _given(options: Options) -> dict[str, Any]:
    if not options["settings"] and not options["assignments"]:
        return {}
    from pathlib import Path

    from panpan.config.run_settings import given_sources

    sources = given_sources(options["settings"], options["assignments"], Path.cwd())
    return {f"{number}: {source.place}": source for number, source in enumerate(sources, 1)}


def _may_be_host(text: str) -> bool:
    """Return True unless the text looks like a word of a prompt or a command that follows the option."""
    return text in ("localhost", "package-indexes") or (" " not in text and any(mark in text for mark in ".:"))


def _network(values: Sequence[str]) -> dict[str, Any]:
    """Return the settings from `--allow-network`: the whole network, or single hosts."""
    hosts = [host.strip() for value in values if value != WHOLE_NETWORK for host in value.split(",")]
    if not all(map(_may_be_host, hosts)):
        raise click.UsageError(
            "--allow-network takes hosts, such as --allow-network=package-indexes,files.lab.example.org; "
            "without hosts, write it behind the prompt"
        )
    return {"sandbox.network": WHOLE_NETWORK in values or None, "sandbox.domains": tuple(hosts)}
