"""Builtins of bash that change the shell, so that the commands behind them may mean something else.

The rule: behind one of these no name of a program is sure any more: PATH, aliases, functions, options or the working
directory may be different. `cd` is not among them; `directories.py` follows it.
"""

from collections.abc import Sequence

from panpan.shell_analysis.facts import SimpleCommand, Word
from panpan.shell_analysis.languages import PRINTF_FORMAT, fits
from panpan.shell_analysis.runners import SHELLS, behind_wrappers, program_name
from panpan.types.pattern import compile_late

_CHANGES_SHELL = frozenset({
    ".", "alias", "bind", "compgen", "complete", "compopt", "declare", "dirs", "enable", "eval", "exec", "export", "fc",
    "getopts", "hash", "history", "jobs", "let", "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly",
    "set", "shopt", "source", "trap", "typeset", "unalias", "unset", "wait",
})  # fmt: skip
"""Builtins of bash 5.2 that run text, set variables or options, or define names; `jobs -x` runs, `wait -p` sets."""

_RUN_BUILTINS = frozenset({"builtin", "command"})
_HARMLESS_LETTERS = frozenset("CETabehmntuvx")
_HARMLESS_OPTIONS = frozenset({
    "allexport", "errexit", "errtrace", "functrace", "hashall", "monitor", "noclobber", "noexec", "notify", "nounset",
    "onecmd", "pipefail", "verbose", "xtrace",
})  # fmt: skip
"""Options of `set`, by letter and by name, with which words and `cd` mean the same as without."""
_HARMLESS_SHOPTS = frozenset({
    "checkhash", "checkjobs", "checkwinsize", "cmdhist", "dotglob", "execfail", "failglob", "gnu_errfmt", "histappend",
    "huponexit", "inherit_errexit", "nocaseglob", "progcomp", "shift_verbose",
})  # fmt: skip
"""Options of `shopt` that are as harmless; with two of them a pattern matches more, as is assumed behind any
`shopt`."""
_DECIDING_NAMES = compile_late(r"\b(?:BASHOPTS|CDPATH|SHELLOPTS)\b")
"""Variables that set options, or by which `cd` goes elsewhere."""
_SHELL_LETTERS = _HARMLESS_LETTERS | frozenset("cils")
_SHELL_FLAGS = frozenset({"--login", "--noediting", "--noprofile", "--norc"})
"""Flags with which a shell is started, likewise."""


def may_change_shell(command: SimpleCommand) -> bool:
    """True if the command may change how the shell reads or runs what follows, or where."""
    words = command.words
    if not words:
        return bool(command.assignments)
    name = words[0].text
    if name is None:
        return True  # an unknown command
    if name in _RUN_BUILTINS:
        return not _only_looks_up(words)
    if name == "printf":
        return not _only_prints(words[1:])
    return name in _CHANGES_SHELL


def may_change_reading(command: SimpleCommand) -> bool:
    """True if words, or the folder of a `cd`, may mean something else to the shell behind the command, or in it."""
    if _DECIDING_NAMES.search(command.source):
        return True
    words, _ = behind_wrappers(command.words)
    while words and words[0].text in _RUN_BUILTINS:
        words = words[1:]
    name = program_name(words[0]) if words else ""
    if name == "shopt":
        return not _is_harmless_shopt(words[1:])
    return (name == "set" or name in SHELLS) and not _is_harmless_set(words[1:], is_shell=name != "set")


def _is_harmless_shopt(words: Sequence[Word]) -> bool:
    texts = [word.text or "" for word in words]
    letters = "".join(text[1:] for text in texts if text.startswith("-"))
    if all(texts) and not {"s", "u"} & set(letters):
        return True
    harmless = _HARMLESS_OPTIONS if "o" in letters else _HARMLESS_SHOPTS
    return all(text in harmless or text.startswith("-") for text in texts)


def _is_harmless_set(words: Sequence[Word], *, is_shell: bool) -> bool:
    """True if the options of `set`, or of a shell, are all harmless; operands follow them."""
    letters = _SHELL_LETTERS if is_shell else _HARMLESS_LETTERS
    rest = iter(words)
    for word in rest:
        text = word.text
        if is_shell and text in _SHELL_FLAGS:
            continue
        if text in ("-", "--") or (text is not None and not text.startswith(("-", "+"))):
            return True
        if text is None or text.startswith("--"):
            return False
        for letter in text[1:]:
            named = {"o": _HARMLESS_OPTIONS, "O": _HARMLESS_SHOPTS}.get(letter)
            if named is None and letter not in letters:
                return False
            if named is not None and (name := next(rest, None)) is not None and name.text not in named:
                return False
    return True


def _only_prints(words: Sequence[Word]) -> bool:
    """True if printf assigns nothing with these words; `-v` does, and so do some formats."""
    operands = words[1:] if words and words[0].text == "--" else words
    text = operands[0].text if operands else ""
    is_flag = operands is words and (text or "").startswith("-")
    return text is not None and not is_flag and fits(text, PRINTF_FORMAT)


def _only_looks_up(words: tuple[Word, ...]) -> bool:
    """True if it is `command -v NAME`, which says what NAME is."""
    return len(words) == 1 or (words[0].text == "command" and words[1].text in ("-v", "-V"))
