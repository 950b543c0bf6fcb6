"""The gate and the analysis, compared with a traced run of the line in a throw-away box.

Whatever plan mode lets run changes nothing, shows nothing that lies outside, starts no program that is not named in the
line, and makes no connection. Whatever is said to write only certain places writes nowhere else.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from panpan.capabilities.shell.surroundings import read_only_environment
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.permissions.reach.folder_walk import matches
from panpan.shell_analysis.facts import LineFacts
from panpan.shell_analysis.judge import analyse
from panpan.shell_analysis.working_directory import find_shell, shell_arguments
from panpan.system.files.paths import PathResolver
from panpan.types.permission import Allow
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.shell_analysis.table_rows import all_rows
from tests.shell_analysis.test_programs_by_running import OPERANDS, flags_of
from tests.tracing_box import Trace, TracingBox, changed, state

AS_FOUND = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.reuse, Phase.generate],  # each try starts a box: making a failure smaller takes too long
}
TRIED_LINES = 60
"""Lines to draw; the gate lets some of them run."""
MOST_LINES = 12

ROWS = {name: row for name, row in all_rows().items() if not name.startswith(("git", "ps", "pgrep"))}
PATHS = [
    "a.txt", "b.txt", "src", "src/a.py", "src/*", "*.txt", "./*", "o*", "d/*", "*", "'x y'", "x\\ y", "-n", "./-n", ".",
    "..", "out", "out/secret", "out/*", "outlink", "in", "in/..", "in/a.py", "d", "d/far.txt", "src/deep", "nowhere",
    "{a,b}.txt", "src/{a,b}.py", "s{r,x}c", "../outside/secret", "~", "~/secret.txt", "\"$HOME\"", "src/../a.txt",
    "out/../a.txt", "/dev/null", "./~", "new", "src/new", "'*'", "[ab].txt", "--", "-", ".hidden", ".h*",
    "$'src/\\x61.py'", "$'\\056\\056/outside/secret'", "$'\\u006fut/secret'", "~/'secret.txt'", "--include=*.py", "in~",
]  # fmt: skip
LOOKS = [
    "cat", "wc -l", "head -n 2", "grep -n foo", "ls -la", "stat", "sort", "tail -n1", "file", "md5sum", "sed -n 1p",
    "nl", "tac", "cut -c1",
]  # fmt: skip
WRITES = [
    "touch", "mkdir", "mkdir -p", "rm", "rm -rf", "rmdir", "cp", "cp -r", "mv", "ln -s", "ln", "tee", "sed -i s/foo/x/",
    "chmod 600", "truncate -s 0", "tee -a", "cp -t src", "mv -t src", "unlink", "touch -r a.txt", "dd if=a.txt",
    "dd of=new", "install", "chmod --reference=a.txt", "mkdir -m 700", "shred -n1", "cp --target-directory=src",
]  # fmt: skip
FINDS = [
    "find .", "find src", "find out", "find d -name '*.txt'", "find . -type f", "find . -name '*.py'", "find in",
    "find . -print0", "rg -l foo", "grep -rl foo", "find ./*", "find . -maxdepth 1", "ls", "ls -A src", "ls d",
    "ls *",
]  # fmt: skip
FILTERS = [
    "",
    "",
    " | sort",
    " | head -n 3",
    " | grep txt",
    " | grep -v x",
    " | sed s/a/b/",
    " | tail -n 2",
    " | head -c 9",
]
TAKERS = ["xargs", "xargs -0", "xargs -n 1", "xargs -I{}", "xargs -r"]
MOVES = ["cd src", "cd out", "cd in", "cd nowhere", "cd ..", "cd in/..", "cd src/deep", "cd d", "cd .", "cd o*"]
GROUPS = [
    "@", "@", "@", "@", "(@)", "{ @; }", "(cd src; @)", "{ cd src && @; } 2>/dev/null", "time @", "[[ -f a.txt ]] && @",
    "(@) >new", "(@) <out/secret", "{ @; } | head -n 3", "ls | (@)", "[[ -e out/secret ]] || (@)",
]  # fmt: skip
HELPERS = {"bunzip2": {"bzip2"}, "gunzip": {"gzip", "sh"}, "tar": {"bzip2", "gzip", "xz", "zstd", "sh"},
           "zcat": {"gzip", "sh"}}  # fmt: skip
"""Programs that start others, which unpack for them."""
REDIRECTS = [
    "", "", "", "", " 2>/dev/null", " 2>&1", " >new", " >>b.txt", " <a.txt", " <outlink", " >out/new", " &>new",
    " 2>src/new", " >/dev/null",
]  # fmt: skip
JOINTS = ["; ", " && ", " || ", " | ", "\n"]

paths = st.lists(st.sampled_from(PATHS), max_size=3).map(" ".join)
looking = st.builds(lambda program, rest: f"{program} {rest}", st.sampled_from(LOOKS), paths)
writing = st.builds(lambda program, rest: f"{program} {rest}", st.sampled_from(WRITES), paths)
moving = st.sampled_from(MOVES)
handing = st.builds(
    lambda find, filtering, taker, look: f"{find}{filtering} | {taker} {look}{' {}' if 'I' in taker else ''}",
    st.sampled_from(FINDS), st.sampled_from(FILTERS), st.sampled_from(TAKERS), st.sampled_from([*LOOKS, "rm", "touch"]),
)  # fmt: skip
executing = st.builds(
    lambda find, look, end: f"{find} -exec {look} {{}} {end}",
    st.sampled_from([find for find in FINDS if find.startswith("find")]),
    st.sampled_from([*LOOKS, "rm", "touch", "./ls"]),
    st.sampled_from(["+", "\\;"]),
)


@st.composite
def of_the_table(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(ROWS)))
    words = st.sampled_from([*flags_of(ROWS[name]), *OPERANDS, *PATHS])
    return " ".join([name, *draw(st.lists(words, max_size=4))])


def lines_of(*simple: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    redirected = st.builds(lambda command, redirect: command + redirect, st.one_of(*simple), st.sampled_from(REDIRECTS))
    more = st.lists(st.tuples(st.sampled_from(JOINTS), st.one_of(moving, redirected)), max_size=2)
    joined = st.builds(
        lambda first, rest: first + "".join(joint + command for joint, command in rest),
        st.one_of(moving, redirected, redirected),
        more,
    )
    return st.builds(lambda group, line: group.replace("@", line), st.sampled_from(GROUPS), joined)


tried = st.lists(
    lines_of(looking, handing, executing, of_the_table()), min_size=TRIED_LINES, max_size=TRIED_LINES, unique=True
)
written = st.lists(lines_of(writing, writing, looking), min_size=TRIED_LINES, max_size=TRIED_LINES, unique=True)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> TracingBox:
    need("bwrap")
    need("strace")
    return TracingBox(tmp_path_factory.mktemp("traced").resolve())


def gate_of(place: Path) -> FolderGate:
    env = {"PANPAN_HOME": str(place / "home/.panpan"), "HOME": str(place / "home")}
    locations = Locations.find(place / "work", env)
    return FolderGate(place / "work", load_settings(place / "work", env, {}, locations), locations)


def environment(facts: LineFacts, place: Path) -> Mapping[str, str]:
    # The workspace is on PATH, as no line that only looks may find.
    base = {"PATH": f"{place}/work:{place}/work/src:{os.environ['PATH']}", "HOME": str(place / "home"), "TERM": "dumb"}
    return anyio.run(read_only_environment, facts, base, place / "work", PathResolver(place / "work"))


def traces(box: TracingBox, placed: Sequence[tuple[str, Path]]) -> Sequence[Trace]:
    return box.run(
        [
            (place, shell_arguments(line, None, shell=find_shell()), environment(analyse(line), place))
            for line, place in placed
        ]
    )


def is_in(path: str, folders: Sequence[Path]) -> bool:
    return any(Path(path) == folder or Path(path).is_relative_to(folder) for folder in folders)


@settings(max_examples=6, **AS_FOUND)  # type: ignore[arg-type]
@given(tried)
def test_read_only_line_only_looks_and_only_in_the_workspace(box: TracingBox, some: list[str]) -> None:
    gate = gate_of(box.template)
    decided = [(line, anyio.run(gate.judge, "Bash", {"command": line}, "plan").decision) for line in some]
    allowed = [line for line, decision in decided if isinstance(decision, Allow) and decision.box == "usual"]
    placed = [(line, box.place(number)) for number, line in enumerate(allowed[:MOST_LINES])]
    before = [state(place) for _, place in placed]

    for (line, place), was, trace in zip(placed, before, traces(box, placed), strict=True):
        assert changed(was, state(place)) == set(), line
        assert not of_interest(trace.written), (line, trace.written)
        assert trace.sockets <= {"AF_UNIX", "AF_NETLINK"}, line
        assert not [path for path in trace.opened if is_in(path, [place / "outside", place / "home"])], line
        started = trace.programs - {helper for name in HELPERS if name in line for helper in HELPERS[name]}
        assert all(program == "bash" or program in line for program in started), (line, started)


@settings(max_examples=6, **AS_FOUND)  # type: ignore[arg-type]
@given(written)
def test_line_with_certain_writes_writes_nowhere_else(box: TracingBox, some: list[str]) -> None:
    known = [line for line in some if is_known(analyse(line))]
    placed = [(line, box.place(number)) for number, line in enumerate(known[:MOST_LINES])]
    before = [(state(place), predicted_writes(analyse(line), place / "work")) for line, place in placed]

    for (line, place), (was, predicted), trace in zip(placed, before, traces(box, placed), strict=True):
        done = {*changed(was, state(place)), *of_interest(trace.written)}
        surprises = [path for path in done if not is_in(path, predicted) and not is_way_to(path, predicted)]
        assert not [path for path in surprises if "/sed" not in path or "sed -i" not in line], (line, predicted)
        assert all(program == "bash" or program in line for program in trace.programs), (line, trace.programs)


def of_interest(written: set[str]) -> set[str]:
    """Return the files that were opened to be written, without devices and what is made and removed in /tmp."""
    return {path for path in written if path not in ("/dev/null", "/dev/tty") and not path.startswith("/tmp/tac")}


def is_known(facts: LineFacts) -> bool:
    """True if everything that the line writes is known and it runs nothing else."""
    return facts.line.is_plain and all(
        effect.placed_writes is not None and effect.runs_code is False and effect.uses_network is False
        for effect in facts.effects
    )


def predicted_writes(facts: LineFacts, cwd: Path) -> list[Path]:
    """Return the places that a line is said to write: as named, since a link may be replaced, and where they lead."""
    named = [cwd / path for path in facts.writes]
    matched = [path for effect in facts.effects for pattern in effect.placed_globs for path in matches(pattern, cwd)]
    as_named = [path.parent.resolve() / path.name for path in named if path.name not in ("", ".", "..")]
    return [*as_named, *(path.resolve() for path in (*named, *matched))]


def is_way_to(path: str, predicted: Sequence[Path]) -> bool:
    """True if the folder had to be made on the way to a place."""
    return any(place.is_relative_to(path) for place in predicted)


def test_box_shows_the_effects_of_a_line(box: TracingBox) -> None:
    line = "cat out/secret > new; ./ls; rm b.txt"
    place = box.place(0)
    before = state(place)

    [trace] = traces(box, [(line, place)])

    assert f"{place}/outside/secret" in trace.opened
    assert {f"{place}/work/new", f"{place}/work/pwned"} <= trace.written
    assert trace.programs == {"bash", "cat", "ls", "rm", "sh"} or trace.programs == {"bash", "cat", "ls", "rm"}
    assert changed(before, state(place)) == {f"{place}/work/{name}" for name in ("new", "pwned", "b.txt")}
