"""The short help, shell completion, and the manual page.

The rule: all of it is generated from the commands, so that nothing is written twice.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

import click

from panpan.version import __version__

COMMON: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "--print": "answer TEXT and any piped input, and exit",
        "--continue": "continue the newest session of this folder",
        "--resume": "continue a session, or pick one from a list",
        "--add-dir": "let tools work in FOLDER, too",
    },
    "Model": {
        "--model": "model, alias or provider/model",
        "--effort": "how much work the model puts into an answer",
    },
    "Permissions": {
        "--permission-mode": "what happens to calls that no rule decides",
        "--allowedTools": "calls that run without a question, such as Edit",
        "--yes": "yes to all but protected files and the sandbox",
        "--allow-network": "let commands reach HOSTs, or every host",
        "--sandbox": "off: commands run with all your rights",
    },
    "Output": {
        "--output-format": "what a headless run prints",
        "--max-budget-usd": "limit the cost of the session",
        "--plain": "lines only, for screen readers",
        "--set": "set one setting for this run",
    },
}
"""Options of the short help, by group; `--help-all` shows all options."""
_METAVARS = {"--permission-mode": "MODE", "--output-format": "FORMAT", "--effort": "LEVEL", "--sandbox": "[on|off]"}
_SHELLS = ("bash", "zsh", "fish")


def write_common(params: Sequence[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options that most people need, in groups."""
    by_name = {name: param for param in params for name in param.opts}
    for group, options in COMMON.items():
        rows = []
        for name, text in options.items():
            param = by_name[name]
            short = next((f"{one}, " for one in param.opts if not one.startswith("--")), "")
            is_flag = isinstance(param, click.Option) and param.is_flag
            value = "" if is_flag else f" {_METAVARS.get(name) or param.make_metavar(ctx)}"
            rows.append((f"{short}{name}{value}", text))
        with formatter.section(group):
            formatter.write_dl(rows, col_max=32)


_COMPLETION = """Print the shell completion for panpan.

\b
  bash: panpan completion bash > ~/.local/share/bash-completion/completions/panpan
  zsh:  panpan completion zsh > a file `_panpan` in a folder of $fpath
  fish: panpan completion fish > ~/.config/fish/completions/panpan.fish"""


@click.command("completion", help=_COMPLETION)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the shell completion for panpan."""
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    class Bash(BashComplete):
        @staticmethod
        def _check_version() -> None:
            """Skip the check of the current bash, which need not be the one of the completion."""

    kind = {"bash": Bash, "zsh": ZshComplete, "fish": FishComplete}[shell]
    sys.stdout.write(kind(ctx.find_root().command, {}, "panpan", "_PANPAN_COMPLETE").source() + "\n")
    return 0


@click.command("man")
@click.pass_context
def man(ctx: click.Context) -> int:
    """Print the manual page: `panpan man | man -l -`."""
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    sys.stdout.write("\n".join(_page(root.command, root)) + "\n")
    return 0


def _page(group: click.Group, ctx: click.Context) -> Iterator[str]:
    yield f'.TH PANPAN 1 "" "panpan {__version__}" "User Commands"'
    yield ".SH NAME\npanpan \\- a coding agent for the terminal"
    yield ".SH SYNOPSIS\n.B panpan\n[OPTIONS] [PROMPT | COMMAND [ARGS]...]"
    yield f".SH DESCRIPTION\n{_paragraphs(group.help or '')}"
    yield ".SH OPTIONS"
    yield from _terms(record for param in group.get_params(ctx) if (record := param.get_help_record(ctx)))
    yield ".SH COMMANDS"
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None:
            continue
        with click.Context(command, info_name=name, parent=ctx) as inner:
            yield f".SS panpan {_escaped(name)}\n{_paragraphs(command.help or '')}"
            yield from _terms(record for param in command.get_params(inner) if (record := param.get_help_record(inner)))
            if isinstance(command, click.Group):
                found = ((one, command.get_command(inner, one)) for one in command.list_commands(inner))
                yield from _terms((one, part.get_short_help_str(300)) for one, part in found if part is not None)
    yield f".SH NOTES\n{_paragraphs(group.epilog or '')}"


def _terms(records: Iterator[tuple[str, str]]) -> Iterator[str]:
    for term, text in records:
        yield f".TP\n.B {_escaped(term)}\n{_escaped(' '.join(text.split()))}"


def _paragraphs(text: str) -> str:
    """Return a help text as roff; a paragraph after a backspace keeps its lines."""
    parts = []
    for part in text.split("\n\n"):
        lines = part.strip("\n")
        if lines.startswith("\b"):
            parts.append(".nf\n" + _escaped(lines.lstrip("\b\n")) + "\n.fi")
        else:
            parts.append(_escaped(" ".join(lines.split())))
    return "\n.PP\n".join(parts)


def _escaped(text: str) -> str:
    """Return a text that roff prints as it is (groff_char(7))."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n"))
