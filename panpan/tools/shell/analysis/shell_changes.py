"""Which builtins of bash change the shell, so that what stands behind them may mean something else.

The rule: behind one of these no name of a program is sure any more: PATH, aliases, functions, options or the working
directory may be different. `cd` is not among them; `directories.py` follows it.
"""

from collections.abc import Sequence

from panpan.tools.shell.analysis.facts import SimpleCommand, Word
from panpan.tools.shell.analysis.languages import PRINTF_FORMAT, fits

_CHANGES_SHELL = frozenset({
    ".", "alias", "bind", "compgen", "complete", "compopt", "declare", "dirs", "enable", "eval", "exec", "export", "fc",
    "getopts", "hash", "history", "jobs", "let", "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly",
    "set", "shopt", "source", "trap", "typeset", "unalias", "unset", "wait",
})  # fmt: skip
"""Those of bash 5.2 that run text, set variables or options, or define names; `jobs -x` runs, `wait -p` sets."""

_RUN_BUILTINS = frozenset({"builtin", "command"})


def may_change_shell(command: SimpleCommand) -> bool:
    """Whether the command may change how the shell reads or runs what follows, or where."""
    words = command.words
    if not words:
        return bool(command.assignments)
    name = words[0].text
    if name is None:
        return True  # whatever it turns out to be
    if name in _RUN_BUILTINS:
        return not _only_looks_up(words)
    if name == "printf":
        return not _only_prints(words[1:])
    return name in _CHANGES_SHELL


def _only_prints(words: Sequence[Word]) -> bool:
    """True if printf assigns nothing with these words; `-v` does, and so do some formats."""
    operands = words[1:] if words and words[0].text == "--" else words
    text = operands[0].text if operands else ""
    is_flag = operands is words and (text or "").startswith("-")
    return text is not None and not is_flag and fits(text, PRINTF_FORMAT)


def _only_looks_up(words: tuple[Word, ...]) -> bool:
    """Whether it is `command -v NAME`, which says what NAME is."""
    return len(words) == 1 or (words[0].text == "command" and words[1].text in ("-v", "-V"))
