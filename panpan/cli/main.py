"""The `panpan` command.

`panpan --version` and `--help` import click and nothing heavier; what a command needs is imported when it is called.
"""

import gc
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import click

from panpan import __version__

COMMANDS = {
    "config": ("panpan.cli.config_command", "Show the settings and where they come from."),
    "demo": ("panpan.cli.demo_command", "See panpan fix a bug, with no key and no network."),
    "doctor": ("panpan.cli.doctor_command", "Check what panpan finds on this machine."),
}
"""Subcommands by name: the module that has `command`, and its line in the help."""

HELP = """A coding agent for the terminal.

With a terminal it is interactive; with a pipe, or -p, it answers and exits:

\b
  panpan
  panpan -p "why does this test fail?"
  git diff | panpan -p "review this" -f json"""

EXIT_CODES = """\b
Exit codes: 0 done, 1 the turn failed, 2 usage or configuration, 3 turn limit,
4 budget limit, 5 an answer of the user is needed, 129, 130, 143 by signal."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called, and lists them without."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name == "help":
            click.echo(ctx.get_help())
            ctx.exit()
        if name not in COMMANDS:
            raise click.UsageError(f"there is no command {name!r}; a prompt goes right behind -p: panpan -p {name!r}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run, in the order of the help."""
    options = [
        click.option("-p", "--print", "prompt", is_flag=False, flag_value="", metavar="TEXT",
                     help="Run without a terminal: answer TEXT, joined with what is piped in, and exit."),
        click.option("-c", "--continue", "continues", is_flag=True, help="Continue the newest session of this folder."),
        click.option("-r", "--resume", metavar="ID", help="Continue the session whose id is, or begins with, ID."),
        click.option("--model", metavar="NAME", help="Model, alias, provider/model, or cassette:PATH."),
        click.option("--provider", metavar="NAME", help="Provider, where the model's name does not tell it."),
        click.option("--base-url", metavar="URL", help="Address of the provider."),
        click.option("--api-key", metavar="KEY", help="Key of the provider; better kept in the environment."),
        click.option("--thinking/--no-thinking", default=None, help="Let the model think first, where it can."),
        click.option("--thinking-budget", type=click.IntRange(min=1024), metavar="TOKENS",
                     help="How much it may think; implies --thinking."),
        click.option("--effort", type=click.Choice(["low", "medium", "high", "xhigh", "max"]),
                     help="How much work it puts into an answer."),
        click.option("-f", "--output-format", type=click.Choice(["text", "json", "stream-json"]), default="text",
                     show_default=True, help="What a headless run prints."),
        click.option("--input-format", type=click.Choice(["text", "stream-json"]), default="text", show_default=True,
                     help="One prompt, or a user message a line for many turns."),
        click.option("--include-partial-messages", is_flag=True, help="With stream-json: print each delta, too."),
        click.option("--permission-mode",
                     type=click.Choice(["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]),
                     help="What happens to calls that no rule decides."),
        click.option("--allowedTools", "--allowed-tools", "allowed_tools", multiple=True, metavar="RULES",
                     help="Rules for calls that run unasked, such as 'Edit, Bash(npm test *)'."),
        click.option("--disallowedTools", "--disallowed-tools", "disallowed_tools", multiple=True, metavar="RULES",
                     help="Rules for calls that never run."),
        click.option("-y", "--yes", "says_yes", is_flag=True,
                     help="Answer every question with yes, except for protected files."),
        click.option("--cwd", type=click.Path(), metavar="FOLDER", help="Work in FOLDER."),
        click.option("--add-dir", "additional_directories", multiple=True, type=click.Path(), metavar="FOLDER",
                     help="Let the tools use FOLDER as well."),
        click.option("--system-prompt", metavar="TEXT", help="Use TEXT in place of panpan's own system prompt."),
        click.option("--append-system-prompt", metavar="TEXT", help="Add TEXT to the system prompt."),
        click.option("--max-turns", type=click.IntRange(min=1), metavar="N",
                     help="Most rounds of one turn; 50 where nobody watches."),
        click.option("--max-budget-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD",
                     help="Most that the session may cost."),
        click.option("-q", "--quiet", is_flag=True, help="No progress and no warnings on standard error."),
        click.option("-v", "--verbose", is_flag=True, help="Progress on standard error, terminal or not."),
        click.option("--debug", is_flag=True, help="Write a log below the panpan home."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    help=HELP,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, "-V", "--version", message="panpan %(version)s")
@run_options
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> int:
    """A coding agent for the terminal."""
    if ctx.invoked_subcommand is not None:
        if options["prompt"] is not None:
            raise click.UsageError(f"-p TEXT does not go with the command {ctx.invoked_subcommand}")
        return 0
    from panpan.cli.run_command import run

    return run(options)


def main() -> NoReturn:
    """Run the command and end the process with its exit code; no traceback ever reaches the user."""
    # The command runs on asyncio. Where trio is installed too, the HTTP library would import it, for 0.1 s.
    sys.modules.setdefault("trio", None)  # type: ignore[arg-type]
    _open_closed_streams()
    try:
        code = cli(standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = 2
    except Exception as error:
        from panpan.cli.failures import report_failure

        code = report_failure(error)
    gc.freeze()  # everything is closed and flushed; without this, Python would look through all modules for 0.2 s more
    sys.exit(code if isinstance(code, int) else 0)


def _open_closed_streams() -> None:
    """Give a standard stream that the caller has closed (`2>&-`) a place to read nothing from or write nothing to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
