"""Files of settings are read as git itself reads them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.git.git_places import places_elsewhere, read_settings

HEADERS = st.sampled_from([
    "[include]", "[INCLUDE]", "[include ]", '[include ""]', '[include "x"]', "[include.x]", '[includeIf "gitdir:/"]',
    '[includeif "gitdir:/a\\"b]"]', '[includeIf\t"onbranch:\\\\m"]', "[core]", "[core][include]", "[ include]",
    "[include] ; note", "[include]\n", "[in\\\nclude]", '[remote "include"]',
])  # fmt: skip
KEYS = st.sampled_from(["path = ", "Path=", "\tpath\t=", "path", "path =\\\n", "worktree = ", "xpath = ", "p_ath = "])
VALUES = st.lists(
    st.sampled_from([
        "a", "b/c", "../d", ".", " ", "  ", "\t", '"', '"e f"', '" # "', "; note", " # note", "#", "\\\\", '\\"', "\\n",
        "\\t", "\\b", "\\x", "\\", "\\\n", "=", "[include]", "]", "'", "\r", "~", "~/", "\x0c", "\x01", "é", '""',
    ]),
    max_size=6,
).map("".join)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\n# note\n", "\n\n", "", " ", "\\\n"])
LINES = st.one_of(
    HEADERS, st.tuples(KEYS, VALUES, ENDS).map("".join), st.sampled_from(["# [include]\n", ";x\\\n", " "])
)
FILES = st.builds(
    lambda first, lines: first + "".join(lines),
    st.sampled_from(["", "\ufeff", "[include]\n", "[core]\n\tx = y\n"]),
    st.lists(LINES, max_size=6),
)


def settings_of(text: str) -> tuple[list[tuple[str, str | None]] | None, str]:
    """The same as `as_git_reads` has it, and why not."""
    try:
        found = list(read_settings(text))
    except ValueError as exc:
        return None, str(exc)
    names = (".".join(part for part in (one[0] or None, one[1], one[2]) if part is not None) for one in found)
    return [(name, one[3]) for name, one in zip(names, found, strict=True)], ""


def as_git_reads(file: Path) -> list[tuple[str, str | None]] | None:
    """All settings, names and values; None where git refuses the file."""
    line = ["git", "config", "--file", str(file), "--null", "--list"]
    ran = subprocess.run(line, capture_output=True, check=False)
    if ran.returncode:
        return None
    entries = ran.stdout.decode(errors="surrogateescape").split("\0")[:-1]
    return [(name, value if is_given else None) for name, is_given, value in (one.partition("\n") for one in entries)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES)
def test_settings_are_those_that_git_reads_or_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode())

    read, refused = settings_of(text)

    assert read == as_git_reads(file) or "has a tab inside" in refused


INCLUDED = {
    "path = own ; note": "own",
    "path = own # note": "own",
    'path = "own" ; note': "own",
    'path = "o;w#n"': "o;w#n",
    'path = ow"n x"\\"y': 'own x"y',
    "path = own\\\\x": "own\\x",
    "path = ow\\\n n": "ow n",
    "path = ~/own": "~/own",
    "path = own\r": "own",
}


@pytest.mark.parametrize("written", INCLUDED)
def test_an_included_file_is_found_however_it_is_written(tmp_path: Path, written: str) -> None:
    root = tmp_path.resolve()
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(f"[include]\n\t{written}\n", newline="")
    name = INCLUDED[written]

    found = [place.path for place in places_elsewhere(root)]

    assert found == [Path(name).expanduser() if name.startswith("~") else root / ".git" / name]


def test_only_settings_that_include_count(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(
        '[difftool "include"]\n\tpath = /a ; b\n[include "x"]\n\tpath = /b\n[core]\n\tpath = /c\n\tworktree = /d\n'
        '[IncludeIf "gitdir:/x"]\n\tPath = /e\n'
    )

    assert [place.path for place in places_elsewhere(root)] == [Path("/e")]


@pytest.mark.parametrize("written", ["path = ~root/x", "path = %(prefix)/x", 'path = "unfinished', "path = a\tb"])
def test_what_git_may_read_in_another_way_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text(f"[include]\n\t{written}\n")

    with pytest.raises(ToolError, match=r"so git was not asked; "):
        places_elsewhere(tmp_path.resolve())
