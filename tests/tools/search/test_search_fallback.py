"""The search in Python beside ripgrep: the same question gets the same answer."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.paths import PathResolver
from panpan.tools.search.engine import find_ripgrep
from panpan.tools.search.file_types import globs_of_type, known_types
from panpan.tools.search.glob import GlobTool
from panpan.tools.search.grep import GrepTool
from tests.fakes.context import context_in
from tests.tools.search.conftest import Workspace, text_of

RIPGREP = Path(sys.executable).with_name("rg")
NOTE = "[ripgrep is not installed, so the slower built-in search ran]"


def no_ripgrep(paths: PathResolver) -> str | None:
    return None


async def both(
    workspace: Workspace, kind: type[GlobTool] | type[GrepTool], arguments: dict[str, Any]
) -> tuple[str, str]:
    """Return the answers of ripgrep and of the search in Python, the latter without its note."""
    texts = []
    for tool in (kind(), kind(no_ripgrep)):
        try:
            texts.append(text_of(await workspace.call(tool, arguments)))
        except ToolError as exc:
            texts.append(f"refused: {str(exc).split()[0]}")
    lines = texts[1].split("\n")
    assert texts[1].startswith("refused") or NOTE in lines
    return texts[0], "\n".join(line for line in lines if line != NOTE)


@pytest.fixture
def mixed(workspace: Workspace) -> Workspace:
    put = workspace.put
    put(
        ".gitignore",
        "*.log\n/build/\n!keep.log\nsecret*/\n# *.py\n\\#odd\nnested/*.tmp\ndocs/**/draft.md\ntrail.txt  \n",
    )
    put(".hidden/config.py", "needle = 1\n")
    put(".git/HEAD", "needle\n")
    put(".git/info/exclude", "excluded.py\n")
    put("excluded.py", "needle\n")
    put("a.py", "import os\nneedle(1)\n\n\nneedle(2)\nend\n")
    put("a.log", "needle\n")
    put("keep.log", "needle\n")
    put("#odd", "needle\n")
    put("trail.txt", "needle\n")
    put("build/out.py", "needle\n")
    put("build/deep/out.py", "needle\n")
    put("build/x.log", "needle\n")
    put("nested/build/in.py", "needle\n")
    put("nested/x.tmp", "needle\n")
    put("nested/deep/x.tmp", "needle\n")
    put("nested/.gitignore", "local.py\n!a.log\n")
    put("nested/local.py", "needle\n")
    put("nested/a.log", "needle\n")
    put("docs/x/y/draft.md", "needle\n")
    put("docs/draft.md", "needle\n")
    put("secrets/a.py", "needle\n")
    put("inner/.git/HEAD", "x\n")
    put("inner/own.log", "needle\n")
    put("src/crlf.txt", b"needle one\r\nother\r\nneedle\r\n")
    put("src/bom.txt", b"\xef\xbb\xbfneedle bom\n")
    put("src/wide.txt", "needle wide\nümlaut\n".encode("utf-16"))
    put("src/latin.txt", b"caf\xe9 needle\n")
    put("src/binary.bin", b"needle\n\0\nneedle\n")
    put("src/tail", "no newline needle")
    put("src/empty.txt")
    put("src/multi.ts", "call(\n  needle,\n)\ncall(needle)\ncall(\n")
    put("src/long.js", "x" * 5000 + "needle" + "y" * 5000 + "\nneedle\n")
    put("src/with space.md", "Needle NEEDLE\n")
    put("z/new\nline.txt", "needle\n")
    (workspace.root / "src/link.py").symlink_to("../a.py")
    (workspace.root / "linked").symlink_to("src")
    (workspace.root / "dangling").symlink_to("nowhere")
    os.mkfifo(workspace.root / "pipe")
    return workspace


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "*"},
        {"pattern": "**/*.py"},
        {"pattern": "*.log"},
        {"pattern": "src/*.txt"},
        {"pattern": "build/**"},
        {"pattern": "build/deep/*.py"},
        {"pattern": "**", "path": "nested"},
        {"pattern": "*.{md,ts}"},
        {"pattern": "[ab].*"},
        {"pattern": "nothing*"},
        {"pattern": "{bad"},
    ],
    ids=str,
)
async def test_the_fallback_lists_the_files_that_ripgrep_lists(mixed: Workspace, arguments: dict[str, Any]) -> None:
    ripgrep, python = await both(mixed, GlobTool, arguments)

    assert python == ripgrep


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "needle"},
        {"pattern": "NEEDLE", "-i": True},
        {"pattern": "needle$"},
        {"pattern": "^needle"},
        {"pattern": "needle", "-C": 1},
        {"pattern": "needle", "-A": 2, "-B": 0},
        {"pattern": "needle", "-n": False},
        {"pattern": "needle", "glob": "*.py"},
        {"pattern": "needle", "glob": "!*.py"},
        {"pattern": "needle", "glob": "*.{ts,js},*.txt"},
        {"pattern": "needle", "glob": "src/*.txt"},
        {"pattern": "needle", "glob": "*.log"},
        {"pattern": "needle", "glob": "!src"},
        {"pattern": "needle", "type": "py"},
        {"pattern": "needle", "type": "txt", "glob": "b*"},
        {"pattern": "needle", "type": "nonsense"},
        {"pattern": "needle", "path": "src"},
        {"pattern": "needle", "path": "build"},
        {"pattern": "needle", "path": "nested/deep"},
        {"pattern": "needle", "path": "a.py"},
        {"pattern": "needle", "path": "a.log"},
        {"pattern": "needle", "path": "src/binary.bin"},
        {"pattern": "absent", "path": "src/binary.bin"},
        {"pattern": r"call\(\s*needle", "multiline": True},
        {"pattern": "needle.*", "multiline": True},
        {"pattern": r"^$"},
        {"pattern": r"^$", "multiline": True},
        {"pattern": ""},
        {"pattern": "x*"},
        {"pattern": r"\bneedle\(\d\)"},
        {"pattern": r"(?<word>need)le"},
        {"pattern": r"needle(?=\()"},
        {"pattern": r"[[:alpha:]]+\s[a-z]"},
        {"pattern": r"ümlaut|caf"},
        {"pattern": "-needle"},
        {"pattern": "needle", "head_limit": 3},
        {"pattern": "needle", "head_limit": 3, "offset": 2},
        {"pattern": "needle", "offset": 500},
        {"pattern": "absent"},
        {"pattern": "(unclosed"},
        {"pattern": "needle", "glob": "[bad"},
    ],
    ids=str,
)
async def test_the_fallback_finds_what_ripgrep_finds(mixed: Workspace, arguments: dict[str, Any], mode: str) -> None:
    ripgrep, python = await both(
        mixed, GrepTool, arguments | {"output_mode": mode, "pattern": arguments["pattern"] or "()"}
    )

    assert python == ripgrep
