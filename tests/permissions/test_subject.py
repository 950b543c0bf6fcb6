"""Subjects of calls, as rules see them, and the lookups behind them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import get_ident

import pytest

from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.core.hooks import ToolCall
from panpan.permissions.subject import Subject, subject_of
from panpan.system.files.paths import Location, PathResolver
from tests.fakes.context import context_in


class Paths(PathResolver):
    """Knows in which threads it was asked."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.threads: set[int] = set()

    def locate(self, text: str) -> Location:
        self.threads.add(get_ident())
        return super().locate(text)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "build").mkdir()
    for name in ("a.o", ".env"):
        (tmp_path / "build" / name).touch()
    return Paths(tmp_path)


async def subject(paths: PathResolver, command: str) -> Subject:
    args = BashInput(command=command)
    context = replace(context_in(paths.root), paths=paths)
    return await subject_of(await ToolCall.of("c", BashTool(), args, args.model_dump(), context))


@pytest.mark.parametrize(
    "command",
    ["rm build/*.o", "touch >build/*", f"rm {' '.join(['build/a.o'] * 200)}", "ls build/*.o; touch x", "rm -r build"],
)
async def test_subject_of_many_files_is_found_in_a_thread(paths: Paths, command: str) -> None:
    await subject(paths, command)

    assert paths.threads
    assert get_ident() not in paths.threads


@pytest.mark.parametrize("command", ["touch build/a.o", "ls build; touch x", "cat build/a.o"])
async def test_subject_of_few_files_is_found_at_once(paths: Paths, command: str) -> None:
    await subject(paths, command)

    assert paths.threads == {get_ident()}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("rm build/.e*", [".env"]),
        ("rm -r build", [".env"]),
        ("rm -r buil*", [".env"]),
        ("A=build/.env make", [".env"]),
        ("sh -c 'rm build/.env'", [".env"]),
        ("cd build && frobnicate .env", [".env"]),
        ("frobnicate ~/.ssh/$A", ["$A"]),
        ("cd build && tar cT.env", [".env"]),
        ("tar cT.env", []),
        ("tar -cT.env", [".env"]),
        ("tar -czTbuild/.env", [".env"]),
        ("frobnicate prod.env", []),
        ("frobnicate build/prod.env", []),
        ("frobnicate build/.env", [".env"]),
        ("frobnicate a/etc/ssh/x", []),
        ("frobnicate $'build/\\x2eenv'", [".env"]),
        ("frobnicate $'build/\\u002eenv'", [".env"]),
        ("frobnicate $'build/.env\\c@x'", [".env"]),
        ("frobnicate > $'build/\\056env'", [".env"]),
        ("cat < $'build/\\u002eenv'", [".env"]),
        ("(frobnicate $'build/\\u002e'env)", [".env"]),
        ("cat build/*", []),
        ("rm build/a.o", []),
    ],
)
async def test_protected_paths_are_found_wherever_a_command_names_them(
    paths: Paths, command: str, names: Sequence[str]
) -> None:
    found = await subject(paths, command)

    assert list(dict.fromkeys(use.path.name for use in found.protected)) == names


@pytest.mark.parametrize(("command", "only_reads"), [("cat a.o", True), ("cat a.o; make", False), ("rm a.o", False)])
async def test_subject_only_looks_if_known_to(paths: Paths, command: str, only_reads: bool) -> None:
    assert (await subject(paths, command)).only_reads is only_reads
