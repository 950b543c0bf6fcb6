"""The search in Python beside ripgrep: the same question gets the same answer."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.capabilities.search.glob import GlobTool
from panpan.capabilities.search.grep import GrepTool
from panpan.errors import ToolError
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import Query, SearchRequest, Selection, parse_listing, parse_records
from panpan.text_search.fallback import answer
from panpan.text_search.file_filters import globs_of_type
from tests.capabilities.search.conftest import Workspace, text_of

RIPGREP = str(Path(sys.executable).with_name("rg"))


def lines_of(stdout: bytes, request: SearchRequest) -> list[object]:
    if request.answer == "listing":
        return list(parse_listing(stdout))
    return [(path, rest[:1000]) for path, rest in parse_records(stdout, request.answer)]


def by_ripgrep(request: SearchRequest) -> list[object]:
    ran = subprocess.run(
        [RIPGREP, *request.ripgrep_arguments()],
        cwd=request.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return ["refused"] if ran.stderr else [ran.returncode, *lines_of(ran.stdout, request)]


def by_python(request: SearchRequest) -> list[object]:
    out = BytesIO()
    try:
        code = answer(request, out)
    except ToolError:
        return ["refused"]
    return [code, *lines_of(out.getvalue(), request)]


def answers(
    search: Callable[[SearchRequest], list[object]], requests: Mapping[str, SearchRequest]
) -> dict[str, list[object]]:
    return {name: search(request) for name, request in requests.items()}


def put(root: Path, name: str, data: bytes | str, *, age: int) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(path, (1_000_000_000 - age, 1_000_000_000 - age))


@pytest.fixture(scope="module", params=["repository", "plain"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree with all that makes a difference: in a repository, and without one."""
    root = tmp_path_factory.mktemp("mixed").resolve()
    put(
        root,
        ".gitignore",
        "*.log\n/build/\n!keep.log\nsecret*/\n# *.py\n\\#odd\nnested/*.tmp\ndocs/**/draft.md\ntrail.txt  \n",
        age=0,
    )
    put(root, ".hidden/config.py", "needle = 1\n", age=1)
    if request.param == "repository":
        put(root, ".git/HEAD", "needle\n", age=2)
        put(root, ".git/info/exclude", "excluded.py\n", age=3)
    put(root, "excluded.py", "needle\n", age=4)
    put(root, "a.py", "import os\nneedle(1)\n\n\nneedle(2)\nend\n", age=5)
    put(root, "a.log", "needle\n", age=6)
    put(root, "keep.log", "needle\n", age=7)
    put(root, "#odd", "needle\n", age=8)
    put(root, "trail.txt", "needle\n", age=9)
    put(root, "build/out.py", "needle\n", age=10)
    put(root, "build/deep/out.py", "needle\n", age=11)
    put(root, "build/x.log", "needle\n", age=12)
    put(root, "nested/build/in.py", "needle\n", age=13)
    put(root, "nested/x.tmp", "needle\n", age=14)
    put(root, "nested/deep/x.tmp", "needle\n", age=15)
    put(root, "nested/.gitignore", "local.py\n!a.log\n", age=16)
    put(root, "nested/local.py", "needle\n", age=17)
    put(root, "nested/a.log", "needle\n", age=18)
    put(root, "docs/x/y/draft.md", "needle\n", age=19)
    put(root, "docs/draft.md", "needle\n", age=20)
    put(root, "secrets/a.py", "needle\n", age=21)
    put(root, "inner/.git/HEAD", "x\n", age=22)
    put(root, "inner/own.log", "needle\n", age=23)
    put(root, "src/crlf.txt", b"needle one\r\nother\r\nneedle\r\n", age=24)
    put(root, "src/bom.txt", b"\xef\xbb\xbfneedle bom\n", age=25)
    put(root, "src/wide.txt", "needle wide\nümlaut\n".encode("utf-16"), age=26)
    put(root, "src/latin.txt", b"caf\xe9 needle\n", age=27)
    put(root, "src/binary.bin", b"needle\n\0\nneedle\n", age=28)
    put(root, "src/tail", "no newline needle", age=29)
    put(root, "src/empty.txt", "", age=30)
    put(root, "src/multi.ts", "call(\n  needle,\n)\ncall(needle)\ncall(\n", age=31)
    put(root, "src/long.js", "x" * 1500 + "needle" + "y" * 1500 + "\nneedle\n", age=32)
    put(root, "src/with space.md", "Needle NEEDLE\n", age=33)
    put(root, "src/feeds.txt", "a\x0cneedle\x0bx\u2028needle\x85z\rx needle\n", age=35)
    put(root, "z/new\nline.txt", "needle\n", age=34)
    (root / "src/link.py").symlink_to("../a.py")
    (root / "linked").symlink_to("src")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    return root


def request_in(root: Path, below: str = "", **fields: object) -> SearchRequest:
    place = root / below
    folder = place if place.is_dir() else place.parent
    query = {name: fields.pop(name) for name in Query.__annotations__.keys() & fields}
    files = {name: fields.pop(name) for name in Selection.__annotations__.keys() & fields}
    return SearchRequest(
        folder=str(folder),
        query=Query(**{"pattern": "needle"} | query),
        files=Selection.below(folder, **files),
        file=None if place.is_dir() else place.name,
        **{"answer": "lines"} | fields,
    )


LISTINGS: dict[str, Callable[[Path], SearchRequest]] = {
    "all": lambda root: request_in(root),
    "by name": lambda root: request_in(root, name_globs=("*.py",)),
    "by names": lambda root: request_in(root, name_globs=("*.log", "[ab].*")),
    "excluded folder": lambda root: request_in(root, "build"),
    "in an excluded folder": lambda root: request_in(root, "build/deep"),
    "nested": lambda root: request_in(root, "nested"),
    "hidden": lambda root: request_in(root, ".hidden"),
    "inside git's own": lambda root: request_in(root, ".git"),
    "a repository inside": lambda root: request_in(root, "inner"),
    "without some": lambda root: request_in(root, excluded=("*.py", "src", "nested/deep/")),
    "without any": lambda root: request_in(root, excluded=("*",)),
}

SEARCHES: dict[str, Callable[[Path], SearchRequest]] = {
    "plain": lambda root: request_in(root),
    "any case": lambda root: request_in(root, pattern="NEEDLE", ignore_case=True),
    "line end": lambda root: request_in(root, pattern="needle$"),
    "line start": lambda root: request_in(root, pattern="^needle"),
    "around": lambda root: request_in(root, before=1, after=1),
    "after": lambda root: request_in(root, after=2),
    "type": lambda root: request_in(root, file_type="py"),
    "no such type": lambda root: request_in(root, file_type="nonsense"),
    "one file": lambda root: request_in(root, "a.py"),
    "excluded file": lambda root: request_in(root, "a.log"),
    "binary file": lambda root: request_in(root, "src/binary.bin"),
    "nothing in a binary file": lambda root: request_in(root, "src/binary.bin", pattern="absent"),
    "across lines": lambda root: request_in(root, pattern=r"call\(\s*needle", is_multiline=True),
    "to the end of the file": lambda root: request_in(root, pattern="needle.*", is_multiline=True),
    "empty lines": lambda root: request_in(root, pattern="^$"),
    "empty lines across lines": lambda root: request_in(root, pattern="^$", is_multiline=True),
    "nothing at all": lambda root: request_in(root, pattern="x*"),
    "words": lambda root: request_in(root, pattern=r"\bneedle\(\d\)"),
    "named group": lambda root: request_in(root, pattern=r"(?<word>need)le"),
    "look-ahead": lambda root: request_in(root, pattern=r"needle(?=\()"),
    "back reference": lambda root: request_in(root, pattern=r"(e)\1"),
    "classes": lambda root: request_in(root, pattern=r"[[:alpha:]]+\s[a-z]"),
    "beyond ASCII": lambda root: request_in(root, pattern="ümlaut|caf"),
    "like a flag": lambda root: request_in(root, pattern="-needle"),
    "absent": lambda root: request_in(root, pattern="absent"),
    "unclosed": lambda root: request_in(root, pattern="(unclosed"),
    "bad exclusion": lambda root: request_in(root, excluded=("[bad",)),
}


def test_fallback_lists_the_files_that_ripgrep_lists(mixed: Path) -> None:
    requests = {name: replace(request(mixed), answer="listing") for name, request in LISTINGS.items()}

    assert answers(by_python, requests) == answers(by_ripgrep, requests)


@pytest.mark.parametrize("answer_kind", ["lines", "files", "counts"])
def test_fallback_finds_what_ripgrep_finds(mixed: Path, answer_kind: str) -> None:
    requests = {name: replace(request(mixed), answer=answer_kind) for name, request in SEARCHES.items()}

    assert answers(by_python, requests) == answers(by_ripgrep, requests)


_IGNORE_LINE = st.builds(
    lambda negation, start, parts, end: negation + start + "/".join(parts) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(st.sampled_from(["a", "b", "*", "a*", "?", "[ab]", "**", "*.x", "b.x", "a.y"]), min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**", " ", "\r"]),
)


@pytest.fixture(scope="module")
def ignoring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ignoring").resolve()
    age = 0
    for first in ("a", "b", "ab"):
        for second in ("a", "b"):
            for name in ("a", "b", "a.x", "b.x", "a.y"):
                put(root, f"{first}.d/{second}/{name}", "", age=(age := age + 1))
                put(root, f"{second}/{first}/{name}", "", age=(age := age + 1))
    return root


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(top=st.lists(_IGNORE_LINE, max_size=4), below=st.lists(_IGNORE_LINE, max_size=3))
def test_fallback_reads_any_gitignore_like_ripgrep(ignoring: Path, top: list[str], below: list[str]) -> None:
    (ignoring / ".gitignore").write_text("\n".join(top))
    (ignoring / "a/.gitignore").write_text("\n".join(below))

    request = request_in(ignoring, answer="listing")

    assert by_python(request) == by_ripgrep(request)


def test_fallback_types_are_those_of_ripgrep() -> None:
    listed = subprocess.run([RIPGREP, "--no-config", "--type-list"], capture_output=True, check=True).stdout.decode()
    globs_by_type = dict(line.split(": ", 1) for line in listed.splitlines())

    known = {name: ", ".join(globs) for name in globs_by_type if (globs := globs_of_type(name))}

    assert len(known) > 50
    assert known == {name: globs_by_type[name] for name in known}


def no_ripgrep(paths: PathResolver) -> str | None:
    return None


async def test_fallback_gives_the_same_answers_with_a_note(workspace: Workspace) -> None:
    workspace.put("b.py", "needle\n")
    workspace.put("a.py", "x\nneedle\n")
    workspace.put("c.log", "needle\n")
    workspace.put(".gitignore", "*.log\n")
    note = "\n[ripgrep is not installed, so the slower built-in search ran]"

    grep = {"pattern": "needle", "output_mode": "content"}
    assert (
        text_of(await workspace.call(GrepTool(no_ripgrep), grep))
        == text_of(await workspace.call(GrepTool(), grep)) + note
    )
    glob = {"pattern": "*"}
    assert (
        text_of(await workspace.call(GlobTool(no_ripgrep), glob))
        == text_of(await workspace.call(GlobTool(), glob)) + note
    )


async def test_fallback_runs_no_module_of_the_workspace(workspace: Workspace) -> None:
    for name in ("json.py", "panpan.py", "sitecustomize.py", "re.py"):
        workspace.put(name, "open('ran', 'w')\nraise SystemExit(9)\n")

    answer_text = text_of(await workspace.call(GrepTool(no_ripgrep), {"pattern": "SystemExit", "glob": "re.py"}))

    assert answer_text.startswith("re.py\n")
    assert not (workspace.root / "ran").exists()


async def test_fallback_refuses_features_that_only_ripgrep_has(workspace: Workspace) -> None:
    workspace.put("a.py", "x\n")

    with pytest.raises(ToolError, match="need ripgrep"):
        await workspace.call(GrepTool(no_ripgrep), {"pattern": r"\p{Greek}"})
