"""The programs that may run unasked, with the flags and operands that keep them harmless.

The rule: a flag that is not listed is refused, and a flag is listed only if it neither writes, executes, follows links
into the unknown, waits for ever, nor names another file, with GNU's programs and with BSD's. So missing here are, among
others, `sort -o` and `xxd IN OUT`, which write, `rg --pre` and `sort --compress-program`, which execute, `tail -f`,
`diff`, which on folders follows the links in them, and everything that resolves host names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operands: TypeAlias = Literal["paths", "text", "pattern, paths", "script, paths"]
"""What the words are that are no flags: paths, no paths, or a first one that is none and then paths."""

_NUMBER = r"[+-]?\d+[bkKMG]?"
_ANY = r".*"


@dataclass(frozen=True, slots=True)
class Program:
    """What one program may be given."""

    operands: Operands = "paths"
    flags: str = ""
    """Letters that stand alone, and in clusters."""
    valued: Mapping[str, str] | None = None
    """Letters that take a value, with the regular expression that the value has to match."""
    long: str = ""
    """Long flags, between blanks; with `=` at the end where a value may follow behind one."""
    number_flag: bool = False
    """Whether `-20` is a flag."""
    max_operands: int | None = None
    operand: str = _ANY
    """The regular expression for each operand that is no path."""
    pattern_flags: str = ""
    """Letters of valued flags in whose presence there is no pattern among the operands."""


def _each(letters: str, value: str) -> dict[str, str]:
    return dict.fromkeys(letters, value)


_HEAD = Program(flags="qv", valued=_each("nc", _NUMBER), long="--lines= --bytes= --quiet --verbose", number_flag=True)
_HASH = Program(flags="b", long="--binary --text --tag")
_GREP = Program(
    operands="pattern, paths",
    flags="EFGHILPUabchilnoqrsvwx",
    valued={**_each("ABCm", r"\d+"), "e": _ANY},
    long="--after-context= --basic-regexp --before-context= --binary-files= --color --color= --colour= --context= "
    "--count --exclude= --exclude-dir= --extended-regexp --files-with-matches --files-without-match --fixed-strings "
    "--ignore-case --include= --invert-match --line-number --max-count= --no-filename --no-messages --only-matching "
    "--perl-regexp --quiet --recursive --text --with-filename --word-regexp --line-regexp",
    number_flag=True,
    pattern_flags="e",
)

PROGRAMS: Mapping[str, Program] = {
    "ls": Program(
        flags="1ABCFGQRSUXacdghiklmnopqrstuvx",
        long="--all --almost-all --author --classify --color --color= --directory --escape --file-type --format= "
        "--full-time --group-directories-first --human-readable --indicator-style= --inode --no-group "
        "--numeric-uid-gid --quote-name --recursive --reverse --si --size --sort= --time= --time-style=",
    ),
    "cat": Program(
        flags="AETbenstuv",
        long="--number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank",
    ),
    "head": _HEAD,
    "tail": _HEAD,
    "wc": Program(flags="Lclmw", long="--bytes --chars --lines --max-line-length --words"),
    "pwd": Program(flags="LP", max_operands=0),
    "echo": Program(operands="text"),
    "true": Program(max_operands=0),
    "false": Program(max_operands=0),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": Program(
        operands="pattern, paths",
        flags=".FHINPSUVacilnopqsuvwx",
        valued={**_each("ABCm", r"\d+"), **_each("egtT", _ANY)},
        long="--after-context= --before-context= --color= --column --context= --count --count-matches --crlf --files "
        "--files-with-matches --files-without-match --fixed-strings --glob= --heading --hidden --iglob= --ignore-case "
        "--invert-match --json --line-number --line-regexp --max-columns= --max-columns-preview --max-count= "
        "--max-depth= --multiline --multiline-dotall --no-config --no-filename --no-heading --no-ignore "
        "--no-ignore-vcs --no-line-number --no-messages --null --only-matching --pcre2 --quiet --regexp= --smart-case "
        "--sort= --sortr= --stats --text --trim --type-list --type= --type-not= --vimgrep --with-filename "
        "--word-regexp",
        pattern_flags="e",
    ),
    "find": Program(),  # has a language of its own; see read_only.py
    "sed": Program(
        operands="script, paths",
        flags="n",
        operand=r"(?:\d+|\$)(?:,(?:\d+|\$))?p(?:;(?:\d+|\$)(?:,(?:\d+|\$))?p)*",
    ),
    "sort": Program(
        flags="MRVbcdfghinrsu",
        valued={"k": r"[0-9.,bdfgiMhnRrV]+", "t": r".|\\0"},
        long="--check --dictionary-order --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case "
        "--ignore-leading-blanks --key= --month-sort --numeric-sort --reverse --stable --unique --version-sort",
    ),
    "uniq": Program(
        flags="Dcdiu",
        valued=_each("fsw", r"\d+"),
        long="--all-repeated --check-chars= --count --ignore-case --repeated --skip-chars= --skip-fields= --unique",
        max_operands=1,
    ),
    "cut": Program(
        flags="ns",
        valued={**_each("bcf", r"[0-9,-]+"), "d": _ANY},
        long="--bytes= --characters= --complement --delimiter= --fields= --only-delimited --output-delimiter=",
    ),
    "tr": Program(
        operands="text",
        flags="Ccdst",
        long="--complement --delete --squeeze-repeats --truncate-set1",
        max_operands=2,
    ),
    "nl": Program(valued={**_each("bfh", r"[atn]"), **_each("ivw", r"\d+"), "s": _ANY}),
    "tac": Program(),
    "rev": Program(),
    "paste": Program(flags="s", valued={"d": _ANY}, long="--delimiters= --serial"),
    "comm": Program(flags="123i", max_operands=2),
    "fold": Program(flags="bs", valued={"w": r"\d+"}),
    "column": Program(flags="tx", valued={"s": _ANY}),
    "cmp": Program(
        flags="bls", valued={"n": r"\d+"}, long="--bytes= --print-bytes --quiet --silent --verbose", max_operands=2
    ),
    "stat": Program(flags="Lfx", valued={"c": _ANY}, long="--dereference --file-system --format= --printf= --terse"),
    "file": Program(flags="Lbhi", long="--brief --mime --mime-encoding --mime-type"),
    "du": Program(
        flags="abchkms",
        valued={"d": r"\d+"},
        long="--all --apparent-size --bytes --exclude= --human-readable --max-depth= --summarize --total",
    ),
    "df": Program(flags="PTahikl", long="--human-readable --inodes --local --portability --print-type"),
    "md5sum": _HASH,
    "sha1sum": _HASH,
    "sha256sum": _HASH,
    "cksum": Program(),
    "od": Program(flags="abcdosvx", valued={"A": r"[doxn]", **_each("Nj", r"\w+"), "t": r"\w+"}),
    "hexdump": Program(flags="Cbcdovx", valued=_each("ns", r"\w+")),
    "basename": Program(operands="text", flags="az", valued={"s": _ANY}, long="--multiple --suffix="),
    "dirname": Program(operands="text", flags="z"),
    "realpath": Program(flags="LPemqsz", long="--canonicalize-existing --canonicalize-missing --no-symlinks --quiet"),
    "readlink": Program(
        flags="efmnqsvz", long="--canonicalize --canonicalize-existing --canonicalize-missing --no-newline"
    ),
    "date": Program(
        operands="text",
        flags="Ru",
        long="--iso-8601 --iso-8601= --rfc-3339= --rfc-email --universal --utc",
        max_operands=1,
        operand=r"\+.*",
    ),
    "uname": Program(flags="aimnoprsv", long="--all --kernel-name --kernel-release --machine", max_operands=0),
    "arch": Program(max_operands=0),
    "nproc": Program(long="--all", max_operands=0),
    "free": Program(flags="bghkmtw", max_operands=0),
    "seq": Program(operands="text", flags="w", valued={"s": _ANY}, operand=r"-?[0-9.]+"),
    "which": Program(operands="text", flags="a"),
    "type": Program(operands="text", flags="Paptf"),
}
"""By name; other names, and paths to programs, are not read-only."""

FIND_OPTIONS: Mapping[str, int] = {
    "!": 0,
    "(": 0,
    ")": 0,
    "-a": 0,
    "-amin": 1,
    "-and": 0,
    "-atime": 1,
    "-cmin": 1,
    "-ctime": 1,
    "-depth": 0,
    "-empty": 0,
    "-executable": 0,
    "-iname": 1,
    "-ipath": 1,
    "-iregex": 1,
    "-ls": 0,
    "-maxdepth": 1,
    "-mindepth": 1,
    "-mmin": 1,
    "-mtime": 1,
    "-name": 1,
    "-not": 0,
    "-o": 0,
    "-or": 0,
    "-path": 1,
    "-perm": 1,
    "-print": 0,
    "-print0": 0,
    "-printf": 1,
    "-prune": 0,
    "-quit": 0,
    "-readable": 0,
    "-regex": 1,
    "-regextype": 1,
    "-size": 1,
    "-type": 1,
    "-writable": 0,
    "-xdev": 0,
}
"""What may stand in an expression of find, with the number of words that follow; no `-exec`, `-delete`, `-fprint`."""


def fits(value: str, regex: str) -> bool:
    """Return whether `value` is what a table entry asks for."""
    return re.fullmatch(regex, value, re.DOTALL) is not None
