"""Files with odd names, handed to the programs of the table in every way: what plan mode lets run is run and traced.

It changes nothing, reads nothing outside, starts nothing that is not named in the line, and comes to its end.
`PANPAN_SOAK` makes many more lines of it.
"""

import os
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.shell.surroundings import fixed_names, read_only_environment
from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.working_directory import find_shell, shell_arguments
from panpan.system.files.paths import PathResolver
from panpan.types.permission import Allow
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.shell_analysis.table_rows import all_rows
from tests.shell_analysis.test_programs_by_running import flags_of
from tests.shell_analysis.test_soundness_by_running import HELPERS, gate_of, is_in, of_interest
from tests.tracing_box import TracingBox, changed, state

IS_SOAK = "PANPAN_SOAK" in os.environ
SEEDS = range(0, 4000, 10) if IS_SOAK else (85, 644)
"""Without the looks at the names, the first of these overwrites a file, and the second reads one outside."""
TRIED_LINES = 150
MOST_LINES = 40
"""Lines of a round that run."""
pytestmark = pytest.mark.timeout(7200 if IS_SOAK else 300)

ODD_NAMES = [
    "-R", "-L", "-f", "-fargs", "-o new", "-onew", "-o", "--output=new", "--files0-from=args", "--file=args",
    "-delete", "@args", "@out", "+5f", "+f", "+1", "-", "--", "-n", "a\nb", " ", "a -o b", "it's", '"q', "\\", "$x",
    "*", "~", "#x", "-T", "--help", "-i", "--pre=touch", "-C", "-c", "-Xargs", "--recursive", "--dereference", "-H",
    "-exec", "!", "(", "-t", "-d", "-r", "-e", "-s", "--exclude-from=args", "é", "-é", "a\tb", "x;ls", "`ls`",
    "$(ls)", "..x", "HEAD", ":x", ":(top)", "-I{}", "{}", "\x01", "-m", "-z", "[a", "?", "a:b", "-w", "--no-index",
]  # fmt: skip
PLACES = ["", "", "", "src/", "src/deep/", "d/", "-dir/", "@d/"]
LINKS = ["far", "far", "far", "far/", "-ffar", "@far", "-far/"]
"""Names of links that lead out; with a slash, to a folder."""
LISTS = [
    "find .", "find . -type f", "find src", "find @d", "find . -print0", "find src -name '*' -print0",
    "find ./* -print0", "git ls-files", "git ls-files -z", "git ls-files -z src", "git ls-files -z '*'",
    "git -C src ls-files -z", "ls", "ls -A", "ls src", "ls *", "ls src/*", "rg --files", "rg --files src",
    "rg -l foo", "grep -rl foo", "grep -rl foo src", "cd src && git ls-files -z", "cd src && ls",
    "printf '%s\\0' *", "echo *", "cat args", "git diff --name-only -z",
]  # fmt: skip
TAKERS = [
    "xargs",
    "xargs -0",
    "xargs -0 -n1",
    "xargs -n1",
    "xargs -I{}",
    "xargs -0 -I{}",
    "xargs -d '\\n'",
    "xargs -0r",
]
GLOBS = [
    "*", "*", "?*", "[!a]*", "[-@+]*", "@*", "-*", "src/*", "./*", "-- *", "*/*", "-- -*", "\\-*", "[!+@-]*", "-[!x]*",
    "{-,a}*", "@d/*", "-- @*", "'-'*", "*f", "+*", "src/deep/*", "../work/*", "*.txt *", "-- ./* *",
]  # fmt: skip
OTHERS = [
    "while read x; do {} $x; done < args", "for x in *; do {} $x; done", "{} $(ls)", "{} `git ls-files`", "{} < *",
    "find . -exec {} {{}} +", "find src -exec {} {{}} \\;", "find @d -exec {} {{}} +", "cd src && {} *",
    "cd src; {} -- *", "(cd -- -dir && {} *)", "cd @d && {} *", "mapfile -t x < args; {} ${{x[@]}}",
    "ls | (cd src; {} *)", "find . -type f -exec {} {{}} +", "find ./* -exec {} {{}} \\;", "{} *; {} src/*",
    "[[ -e a.txt ]] && {} *",
]  # fmt: skip
PATTERNS = {"grep": "foo", "rg": "foo", "jq": ".", "sed": "1p", "fd": "a", "git grep": "foo"}
ROWS = {
    name: row
    for name, row in all_rows().items()
    if row.operands != "none" and name.split()[0] not in ("ps", "pgrep", "cd", "exit", "command", "sleep", "[[", "[")
}


def command(chosen: random.Random, name: str) -> str:
    """Return a program of the table with some of its flags."""
    flags = flags_of(ROWS[name])
    words = [name, *chosen.sample(flags, min(len(flags), chosen.choice((0, 0, 0, 1, 2))))]
    if name in PATTERNS:
        words.append(PATTERNS[name])
    return " ".join(words)


def line(chosen: random.Random, name: str) -> str:
    """Return a line that hands the names of files to a program."""
    program = command(chosen, name)
    match chosen.randrange(3):
        case 0:
            taker = chosen.choice(TAKERS)
            return f"{chosen.choice(LISTS)} | {taker} {program}{' {}' if 'I' in taker else ''}"
        case 1:
            return f"{program} {chosen.choice(GLOBS)}"
        case _:
            return chosen.choice(OTHERS).format(program, program)


def refused_words(name: str) -> list[str]:
    """Return words with which a program is known to do more than look, and that can be names of files."""
    words = {word for example in ROWS[name].no_match for word in example.replace("'", "").split()}
    return sorted(word for word in words if word.startswith(("-", "+", "@")) and "/" not in word and word != "--")


def make_place(place: Path, chosen: random.Random, program: str) -> None:
    """Make a repository with a few odd names, which tracks most of them, beside a home and a folder outside."""
    work = place / "work"
    content = ["foo\n", "src/far", "-o new\n"]
    files = {"work/a.txt": chosen.choice(content), "work/src/a.py": "foo = 1\n", "work/args": "../outside/secret\n",
             "outside/secret": "foo\n", "outside/deep/more": "foo\n", "home/secret.txt": "foo\n"}  # fmt: skip
    refused = refused_words(program)
    names = [*chosen.sample(refused, min(len(refused), chosen.randint(0, 2))), chosen.choice(ODD_NAMES)]
    for name in names:
        files[f"work/{chosen.choice(PLACES)}{name}"] = chosen.choice(content)
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    for name in chosen.sample(LINKS, chosen.choice((0, 1, 1, 2))):
        link = work / chosen.choice(["", "src", "src", "src/deep", "d"]) / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(link):
            link.symlink_to(
                os.path.relpath(place / ("outside" if name.endswith("/") else "outside/secret"), link.parent)
            )
    for words in (["init", "-q"], ["add", "--", *chosen.choice([["."], [":(top)*"], ["src", "a.txt"]])]):
        subprocess.run(["git", "-C", str(work), *words], capture_output=True, check=True)
    for name in files:
        if chosen.random() < 0.1:
            (place / name).unlink()  # git names it all the same


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> TracingBox:
    for program in ("bwrap", "strace", "git"):
        need(program)
    return TracingBox(tmp_path_factory.mktemp("odd").resolve())


class Starts:
    """Starts lines in one place as the Bash tool does; environments are remembered, since git is asked for one."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._environments: dict[tuple[object, ...], Mapping[str, str]] = {}

    def of(self, text: str) -> tuple[Path, Sequence[str], Mapping[str, str]]:
        facts = analyse(text)
        key = (tuple(facts.git_folders), tuple(facts.needed_environment.items()))
        if key not in self._environments:
            work = self._place / "work"
            base = {"PATH": os.environ["PATH"], "HOME": str(self._place / "home"), "TERM": "dumb"}
            self._environments[key] = anyio.run(read_only_environment, facts, base, work, PathResolver(work))
        env = self._environments[key]
        return self._place, shell_arguments(text, None, shell=find_shell(), fixed=fixed_names(env)), env


def is_allowed(gate: FolderGate, text: str) -> bool:
    decision = anyio.run(gate.judge, "Bash", {"command": text}, "plan").decision
    return isinstance(decision, Allow) and decision.box == "usual"  # the others are held by their box alone


def run(box: TracingBox, place: Path, lines: Sequence[str]) -> list[str]:
    """Run lines that were allowed, and return what they did that they should not have done."""
    before = state(place)
    starts = Starts(place)
    faults: list[str] = []
    for text, trace in zip(lines, box.run([starts.of(text) for text in lines]), strict=True):
        outside = [path for path in trace.opened if is_in(path, [place / "outside", place / "home"])]
        helpers = {helper for name in HELPERS if name in text for helper in HELPERS[name]}
        started = [name for name in trace.programs - helpers if name != "bash" and name not in text]
        for fault in (outside, started, of_interest(trace.written), trace.sockets - {"AF_UNIX", "AF_NETLINK"}):
            if fault:
                faults.append(f"{text!r}: {fault}")
        if trace.code == 124:
            faults.append(f"{text!r} does not end")
    if differing := changed(before, state(place)):
        faults.append(f"one of {lines!r} changed {differing}")
    return faults


@pytest.mark.parametrize("seed", SEEDS)
def test_odd_names_never_make_a_program_do_more_than_look(box: TracingBox, seed: int) -> None:
    chosen = random.Random(seed)
    place = box.folder / "odd" / str(seed)
    program = chosen.choice(sorted(ROWS))
    make_place(place, chosen, program)
    gate = gate_of(place)
    tried = {line(chosen, program) for _ in range(TRIED_LINES)}

    allowed = [text for text in sorted(tried) if is_allowed(gate, text)]
    faults = run(box, place, chosen.sample(allowed, min(len(allowed), MOST_LINES)))

    assert allowed or IS_SOAK
    assert faults == [], sorted(str(path.relative_to(place)) for path in (place / "work").rglob("*"))
    shutil.rmtree(place)
