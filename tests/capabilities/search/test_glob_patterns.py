import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.files.globs import compile_gitignore, compile_glob, expand_braces, has_magic, name_globs


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/down/a.py", True),
        ("*.py", "a.pyc", False),
        ("/*.py", "deep/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "lib/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/test/**", "a/test/b/c.py", True),
        ("**/test/**", "a/test", False),
        ("a/**/b/**/c", "a/b/c", True),
        ("a/**/b/**/c", "a/x/b/b/y/c", True),
        ("a/**/b/**/c", "a/x/c", False),
        ("**", "a/b", True),
        ("src/", "src/a/b.py", True),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{src,lib}/**/*.{c,h}", "lib/x/y.h", True),
        ("{src,lib}/**/*.{c,h}", "doc/x/y.h", False),
        ("a{,b{c,d}}e", "abde", True),
        ("a{,b{c,d}}e", "ae", True),
        ("[a-c]?.txt", "bx.txt", True),
        ("[!a-c]x", "dx", True),
        ("[!a-c]x", "ax", False),
        ("[]]x", "]x", True),
        ("a[!b]c", "a/c", False),
        (r"\*.py", "*.py", True),
        (r"\*.py", "a.py", False),
        (r"\{a,b\}", "{a,b}", True),
        ("a*b*c", "aXbXXc", True),
        ("a*b*c", "aXc", False),
        ("*a*a*a", "aaa", True),
        ("*.env", ".env", True),
        ("a**b", "axxb", True),
        ("a**b", "ax/xb", False),
        ("new\nline*", "new\nline.txt", True),
    ],
)
def test_glob_matches_as_ripgrep_says(pattern: str, path: str, is_match: bool) -> None:
    assert (compile_glob(pattern).fullmatch(path) is not None) is is_match


@pytest.mark.parametrize("pattern", ["[abc", "{a,b", "a[", "x{a,{b}", "[z-a]", "x" * 1001, "{a,b}" * 9])
def test_broken_or_huge_glob_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern"):
        compile_glob(pattern)


def test_braces_expand_in_order() -> None:
    assert expand_braces("x{a,b{1,2}}y") == ["xay", "xb1y", "xb2y"]
    assert expand_braces("no[{,}]braces") == ["no[{,}]braces"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("src/**/*.{ts,tsx}", ("*.ts", "*.tsx")), ("**/a.py", ("a.py",)), ("src/**", ()), ("src/*", ()), ("src/", ())],
)
def test_glob_names_are_those_of_its_last_part(pattern: str, names: tuple[str, ...]) -> None:
    assert name_globs(pattern) == names


def test_plain_path_has_no_magic() -> None:
    assert not has_magic("src/a-b_c.d")
    assert has_magic("src/*.py")


def test_hostile_pattern_comes_to_an_end() -> None:
    # A child, so that a match that never ends fails the test and does not stop it.
    script = (
        "from panpan.system.files.globs import compile_glob;"
        "print(compile_glob('*a' * 40 + 'b').fullmatch('a' * 3000),"
        "compile_glob('**/a/' * 40 + 'b', is_anchored=True).fullmatch('a/' * 400 + 'c'))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert ran.stdout.split() == [b"None", b"None"]


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("a", ["a", "a/", "x/a", "x/a/y"], ["ab", "x/ab"]),
        ("a/", ["a/", "a/b", "x/a/b"], ["a", "ab/c"]),
        ("/a", ["a", "a/b"], ["x/a"]),
        ("a/b", ["a/b", "a/b/c"], ["x/a/b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "x/a/b"]),
        ("*.py ", ["a.py", "b/a.py"], ["a.py "]),
        ("a\\ ", ["a "], ["a"]),
        ("{a,b}", ["{a,b}"], ["a"]),
    ],
)
def test_gitignore_line_matches_its_name_and_all_below(pattern: str, matching: list[str], other: list[str]) -> None:
    regex = compile_gitignore(pattern)

    assert [path for path in matching if not regex.fullmatch(path)] == []
    assert [path for path in other if regex.fullmatch(path)] == []


@pytest.mark.parametrize("pattern", ["", "/", "  ", "a[", "a\\", "[z-a]", "a" * 10_001])
def test_gitignore_line_without_a_name_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError, match="pattern"):
        compile_gitignore(pattern)


_PART = st.sampled_from(["a", "b", "ab", "*", "?", "[ab]", "[!a]", "**", "a*", "*b", "{a,b}", "a?b", "*a*"])
_PATHS = ["a", "b", "ab", "aab", "a.b", "b.a", "c", "aXb"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    root = tmp_path_factory.mktemp("tree")
    files = []
    for top in _PATHS:
        for middle in _PATHS[:5]:
            for name in _PATHS:
                folder = root / f"{top}.d" / f"{middle}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}.f").touch()
    for folder, _, names in os.walk(root):
        files += [str(Path(folder, name).relative_to(root)) for name in names]
    return root, files


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    parts=st.lists(_PART, min_size=1, max_size=3), suffixes=st.lists(st.sampled_from(["", ".d", ".f", "*"]), min_size=3)
)
def test_glob_matches_the_files_that_ripgrep_lists(
    tree: tuple[Path, list[str]], parts: list[str], suffixes: list[str]
) -> None:
    root, files = tree
    pattern = "/".join(part if part == "**" else part + suffix for part, suffix in zip(parts, suffixes, strict=False))

    listed = subprocess.run(
        [Path(sys.executable).with_name("rg"), "--no-config", "--files", "--no-ignore", "-g", pattern],
        cwd=root,
        capture_output=True,
        check=False,
    )

    # Ripgrep also lists what lies in a folder that matches; one that fits an ancestor is therefore left out here.
    regex = compile_glob(pattern)
    expected = {file for file in files if regex.fullmatch(file)}
    below = {file for file in files if any(regex.fullmatch(str(parent)) for parent in Path(file).parents)}
    assert set(listed.stdout.decode().split()) - (below - expected) == expected
