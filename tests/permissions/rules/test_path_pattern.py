import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.permissions.rules.patterns import PathPattern
from panpan.system.files.globs import gitignore_escaped

ROOT = Path("/work/project")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/src/**", "/work/project/src/a/b.py"),
        ("./src/a.py", "/work/project/src/a.py"),
        ("src/a.py", "/work/project/src/a.py"),
        ("*.py", "/work/project/src/a.py"),
        ("src", "/work/project/lib/src/a.py"),
        ("//data/**", "/data/x/y"),
        ("//data", "/data/x"),
        (".", "/work/project/a"),
        ("/", "/work/project/a"),
        ("//", "/etc/passwd"),
    ],
)
def test_pattern_covers_paths_that_gitignore_would_match(pattern: str, path: str) -> None:
    assert PathPattern(pattern).covers(Path(path), ROOT)
    assert PathPattern(pattern).restricts([Path(path)], ROOT)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/src/**", "/work/project/lib/src/a.py"),
        ("/src/**", "/work/project/src2/a.py"),
        ("*.py", "/etc/a.py"),
        ("src/a.py", "/work/project/lib/src/a.py"),
        ("//data/**", "/work/project/data/x"),
        ("/src/**", "/work/projects/src/a.py"),
        (".", "/work/projects/a"),
    ],
)
def test_pattern_covers_nothing_else(pattern: str, path: str) -> None:
    assert not PathPattern(pattern).covers(Path(path), ROOT)


def test_pattern_for_the_home_starts_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    home = tmp_path.resolve()

    assert PathPattern("~/notes/**").covers(home / "notes" / "a", ROOT)
    assert not PathPattern("~/notes/**").covers(home / "a", ROOT)
    assert PathPattern("~").covers(home / "a", ROOT)


def test_folder_is_covered_only_with_all_its_files(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "src").mkdir()

    assert PathPattern("/src/**").covers(root / "src", root)
    assert PathPattern("/src").covers(root / "src", root)
    assert not PathPattern("/src/*.py").covers(root / "src", root)
    assert not PathPattern("/src/a").covers(root / "src", root)


def test_folder_is_restricted_by_a_pattern_for_all_its_files(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "secrets").mkdir()

    assert PathPattern("/secrets/").restricts([root / "secrets"], root)
    assert PathPattern("/secrets/**").restricts([root / "secrets"], root)
    assert not PathPattern("/secrets/a").restricts([root / "secrets"], root)


def test_restriction_without_a_slash_holds_outside_the_project() -> None:
    assert PathPattern(".env").restricts([Path("/elsewhere/.env")], ROOT)
    assert not PathPattern("/.env").restricts([Path("/elsewhere/.env")], ROOT)


def test_restriction_holds_for_any_spelling_of_the_path() -> None:
    spellings = [Path("/real/place"), Path("/work/project/link")]

    assert PathPattern("/link").restricts(spellings, ROOT)
    assert PathPattern("//real/**").restricts(spellings, ROOT)


def test_absolute_pattern_follows_links_in_its_literal_part(tmp_path: Path) -> None:
    real = tmp_path.resolve() / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)

    assert PathPattern(f"/{tmp_path}/link/**").covers(real / "a", ROOT)


@pytest.mark.parametrize("pattern", ["", " ", "!a", "#a", "a/../b", "~other/x", "a\0", "\\", "a\nb", "src/[z-a].py"])
def test_pattern_that_names_no_path_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"path|pattern|begins|'\.\.'"):
        PathPattern(pattern)


def test_hostile_pattern_comes_to_an_end(tmp_path: Path) -> None:
    # A child, so that a match that never ends fails the test and does not stop it.
    script = (
        "from pathlib import Path; from panpan.permissions.rules.patterns import PathPattern;"
        "print(PathPattern('/' + '*a' * 30 + 'b').restricts([Path('/r/' + 'a' * 120)], Path('/r')))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert ran.stdout == b"False\n"


NAMES = st.text(min_size=1, max_size=8).filter(
    lambda name: name.isprintable() and "/" not in name and name not in (".", "..")
)


@given(NAMES, NAMES)
def test_escaped_path_matches_itself_and_no_other(name: str, other: str) -> None:
    pattern = PathPattern("/" + gitignore_escaped(name))

    assert pattern.covers(ROOT / name, ROOT)
    assert pattern.covers(ROOT / other, ROOT) == (name == other)


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        (r"/a/li\[b\]/**", "a/li[b]"),
        (r"/a/star\*", "a/star*"),
        ("/a/plain", "a/plain"),
        ("/a/*.txt", None),
        (r"/a\*/*.txt", None),
        ("/**/.git/**", None),
    ],
)
def test_place_is_the_path_without_escapes(tmp_path: Path, pattern: str, place: str | None) -> None:
    assert PathPattern(pattern).place(tmp_path) == (None if place is None else tmp_path / place)
