"""The `panpan` command.

`panpan --version` and `--help` import nothing heavier than click; each command imports its needs when it is called.
"""

import gc
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import click
import click.parser

from panpan.cli.start import EXIT_INTERRUPTED, delay_collection, leave_at_interrupt
from panpan.cli.subcommands import Panpan, foreign_subcommand, subcommands
from panpan.cli_kit.options import RUN_OPTIONS, check_options_before, run_options
from panpan.cli_kit.sdk_options import bound_values
from panpan.types.pattern import compile_late
from panpan.version import __version__

HELP = """A coding agent for the terminal.

With a terminal it is interactive; with a pipe, or -p, it answers and exits:

\b
  panpan
  panpan "fix the failing test"
  panpan -p "why does this test fail?"
  git diff | panpan -p "review this" -f json"""

EPILOG = """\b
Settings: ~/.panpan/settings.toml, and .panpan/settings.toml of the project;
`panpan config show --show-origin` prints those in force and where each is from.

\b
Environment: the vendors' own keys (ANTHROPIC_API_KEY, OPENAI_API_KEY ...), and
PANPAN_MODEL, PANPAN_PROVIDER, PANPAN_BASE_URL, PANPAN_API_KEY, PANPAN_EFFORT,
PANPAN_PERMISSION_MODE, PANPAN_MAX_BUDGET_USD ...; PANPAN_HOME moves ~/.panpan.

\b
Exit codes: 0 done, 1 the turn failed, 2 usage or configuration, 3 turn limit,
4 budget limit, 5 an answer of the user is needed (every call refused, one
repeated in vain, or see --when-asked), 6 a call of an earlier run is unfinished
(see --unfinished), 129, 130, 143 by signal."""

_WORD = compile_late(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
"""Words that look like names of commands. A word with another character, or in another script, may be a sentence."""

_PRINT = compile_late(r"-[cqvy]*p|--print\b")
"""The option for a prompt, also after short flags without a value."""

_MAY_HOLD_KEY = compile_late(r"key|header|\{", re.IGNORECASE)
"""Options whose values are not repeated in an error."""

_NEAR = 0.75
"""Least similarity from 0 to 1 (difflib) of a word and a suggested command."""

SEVERAL_WORDS = "a prompt of several words needs quotes: panpan 'fix the failing test'"

_FORMAT_FLAG = compile_late(r"-[cqvy]*f|--output-format")
_FORMAT = compile_late(r"(?:-[cqvy]*f|--output-format=)([a-z-]+)")
"""The option with its value, also after short flags without a value."""
_SEVERAL_MEANT = compile_late(r"(.+)\. \(Did you mean one of: (.+)\?\)")
"""click's sentence about several options of similar names."""

_HELP_ALL = "panpan.help_all"
FIRST_PROMPT = "panpan.first_prompt"
"""Key in click's `Context.meta` of a prompt without -p."""


class _Parser(click.parser._OptionParser):
    """Parser to which `--option=VALUE` always binds VALUE, also one with a dash where the value may be left out.

    A program that passes on the text of somebody else, as in `--resume=TITLE`, so never passes on a flag.
    """

    def _match_long_opt(self, opt: str, explicit_value: str | None, state: Any) -> None:
        option = self._long_opt.get(opt)
        if explicit_value is not None and option is not None and option.takes_value and option.nargs == 1:
            option.process(explicit_value, state)
        else:
            super()._match_long_opt(opt, explicit_value, state)


class LazyGroup(click.Group):
    """Group that imports a command when it is called, and lists commands without importing them."""

    def make_parser(self, ctx: click.Context) -> click.parser._OptionParser:
        parser = _Parser(ctx)
        for param in self.get_params(ctx):
            param.add_to_parser(parser, ctx)
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; a first text that is no command is a prompt, and options may follow it."""
        args = bound_values(args)
        given, words, _ = self.make_parser(ctx).parse_args(list(args))
        before = args[: len(args) - len(words)]
        is_literal = before[-1:] == ["--"]
        if words and (is_literal or not _is_command(words[0])):
            if not (is_literal or "prompt" in given):
                refuse_bare_word(ctx, self, before, words)
            if self.make_parser(ctx).parse_args(words[1:])[1]:
                raise click.UsageError(SEVERAL_WORDS)
            ctx.meta[FIRST_PROMPT] = words[0]
            args = [*(before[:-1] if is_literal else before), *words[1:]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(subcommands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = subcommands().get(cmd_name)
        return foreign_subcommand(cmd_name) if own is None else own.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help":
            click.echo(ctx.get_help())
            ctx.exit()
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(_HELP_ALL):
            super().format_options(ctx, formatter)
            return
        from panpan.cli.help_command import write_common  # only the help needs it

        write_common(self.get_params(ctx), ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in subcommands().items() if command.help])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if ctx.meta.get(_HELP_ALL):
            super().format_epilog(ctx, formatter)
        else:
            formatter.write(
                "\npanpan --help-all: every option, the environment, exit codes. panpan COMMAND -h: its own.\n"
            )


def _show_all(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[_HELP_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _is_command(word: str) -> bool:
    return word == "help" or word in subcommands() or foreign_subcommand(word) is not None


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    help=HELP,
    epilog=EPILOG,
    subcommand_metavar="[PROMPT | COMMAND [ARGS]...]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "-V", "--version", message="panpan %(version)s")
@click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show every option and exit.",
)
@run_options
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> int:
    """A coding agent for the terminal."""
    options["first_prompt"] = ctx.meta.get(FIRST_PROMPT)
    if ctx.invoked_subcommand is not None:
        check_options_before(ctx.invoked_subcommand, ctx)
        ctx.meta[RUN_OPTIONS] = options
        ctx.obj = Panpan()
        return 0
    from panpan.cli.run_command import run

    return run(options)


def main() -> NoReturn:
    """Run the command and end the process with its exit code; no traceback ever reaches the user."""
    delay_collection()
    # The command runs on asyncio. If trio is installed too, the HTTP library would import it, which takes 0.1 s.
    sys.modules.setdefault("trio", None)  # type: ignore[arg-type]
    _open_closed_streams()
    had_terminal = sys.stdout.isatty()
    try:
        code = _run()
    except Exception as error:
        from panpan.cli_kit.failures import report_failure

        code = report_failure(error, had_terminal=had_terminal)
    leave_at_interrupt()  # nothing is left open
    gc.freeze()  # everything is closed and flushed; without this, Python looks through all modules for 20 ms more
    sys.exit(code)


def _run() -> int:
    try:
        code = cli(prog_name="panpan", standalone_mode=False)
    except click.exceptions.Abort:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        return report_usage_error(error, sys.argv[1:])
    return code if isinstance(code, int) else 0


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller has closed (`2>&-`)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def refuse_bare_word(ctx: click.Context, group: click.Group, given: Sequence[str], words: Sequence[str]) -> None:
    """Refuse a word that may be a mistyped command: as a prompt it would go to a model, which costs money.

    `given`: the command line up to `words`. `words`: the command line from the first word that belongs to no option;
    with -p after it, it is a prompt.

    Raises:
        click.UsageError: It may be a command; names the most similar commands, or all of them.
    """
    word, *rest = words
    if not _WORD.fullmatch(word) or any(_PRINT.match(other) for other in rest):
        return
    from difflib import get_close_matches

    options = ["…"] if any(_MAY_HOLD_KEY.search(text) for text in given) else given
    with_prompt = shlex.join(["panpan", *options, "-p"]).replace("'…'", "…")
    lines_by_name = _command_lines(ctx, group, with_prompt)
    close = get_close_matches(word.lower(), lines_by_name, n=1, cutoff=_NEAR)
    has_words = bool(rest) and not rest[0].startswith("-")
    if has_words and not close:
        raise click.UsageError(f"there is no command {word!r}, and {SEVERAL_WORDS}")
    if close:
        hint = f"did you mean {' or '.join(f'`{line}`' for line in lines_by_name[close[0]])}?"
    else:
        hint = f"the commands are {', '.join(group.list_commands(ctx))}."
    prompt = shlex.quote(" ".join(words)) if has_words else shlex.join(words)
    raise click.UsageError(f"there is no command {word!r}; {hint} If it is a prompt: {with_prompt} {prompt}")


def _command_lines(ctx: click.Context, group: click.Group, with_prompt: str) -> Mapping[str, Sequence[str]]:
    """Return the command lines that run a command, a command of a group, or a slash command, by its name."""
    from panpan.app import slash_commands
    from panpan.faces.terminal.commands.registry import all_commands

    lines: dict[str, list[str]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        for inner in command.list_commands(ctx) if isinstance(command, click.Group) else ():
            lines.setdefault(inner, []).append(f"panpan {name} {inner}")
    for slash in all_commands(slash_commands()):
        if not slash.needs_terminal:
            lines.setdefault(slash.name, []).append(f"{with_prompt} /{slash.name}")
    return lines | {name: [f"panpan {name}"] for name in group.list_commands(ctx)}


def report_usage_error(error: click.ClickException, arguments: Sequence[str]) -> int:
    """Print a usage error, and return the exit code.

    Raises:
        PanpanError: The result object cannot be written.
        BrokenPipeError: Nobody reads the output.
    """
    from panpan.cli_kit.failures import say
    from panpan.errors import ConfigError

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return ConfigError.exit_code
    line = _line(error)
    if wants_json(arguments):
        _show_result(line)
    say(line)
    return ConfigError.exit_code


def wants_json(arguments: Sequence[str]) -> bool:
    """Return True if a wrong command line asks for JSON, as far as it can be read."""
    chosen = ""
    for argument, following in pairwise([*arguments, ""]):
        if argument == "--":
            break
        if _FORMAT_FLAG.fullmatch(argument):
            chosen = following
        elif match := _FORMAT.fullmatch(argument):
            chosen = match[1]
    return chosen in ("json", "stream-json")


def _line(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split()).rstrip(".").replace(". Did you mean", "; did you mean")
    if several := _SEVERAL_MEANT.fullmatch(text):
        text = f"{several[1]}; did you mean {' or '.join(several[2].rsplit(', ', 1))}?"
    if text[1:2].islower():
        text = text[0].lower() + text[1:]
    context = getattr(error, "ctx", None)
    link = " See" if text.endswith("?") else "; see"
    return f"{text}{link} {context.command_path if context else 'panpan'} --help"


def _show_result(line: str) -> None:
    import anyio

    from panpan.cli_kit.failures import StdoutWriter
    from panpan.errors import ConfigError
    from panpan.faces.headless.output_formats import show_failed_start

    anyio.run(show_failed_start, StdoutWriter(sys.stdout), ConfigError(line))
