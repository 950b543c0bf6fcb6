"""The list of files for completion."""

from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from panpan.hub.path_search import MAX_AGE_S, FileIndex, FileList, find_paths
from panpan.system.files.paths import PathResolver
from panpan.text_search.engine import find_ripgrep


def no_ripgrep(_: PathResolver) -> None:
    return None


async def names_in(files: FileList) -> list[str]:
    return sorted(await find_paths(files, "", 1_000))


@pytest.mark.parametrize("find", [find_ripgrep, no_ripgrep])
async def test_index_has_files_and_folders_except_ignored_ones(tmp_path: Path, find: object) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").touch()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "x.log").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").touch()

    files = await FileIndex(PathResolver(tmp_path), find=find).look()  # type: ignore[arg-type]

    assert await names_in(files) == [".gitignore", "src/", "src/main.py"]
    assert not files.is_partial


async def test_first_list_is_waited_for_and_later_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "one.py").touch()
    now_s = 0.0
    index = FileIndex(PathResolver(tmp_path), clock=lambda: now_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.run)

        first = await index.known()
        (tmp_path / "two.py").touch()
        still_young = await index.known()
        now_s = MAX_AGE_S
        old = await index.known()
        while index.files is old:
            await checkpoint()
        new = await index.known()
        tasks.cancel_scope.cancel()

    assert await names_in(first) == ["one.py"]
    assert first is still_young is old
    assert await names_in(new) == ["one.py", "two.py"]


async def test_paths_start_from_the_current_working_directory(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "deep.py").touch()
    paths = PathResolver(tmp_path)
    index = FileIndex(paths)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(index.run)
        await index.known()

        paths.change_directory(tmp_path / "below")
        files = await index.known()
        tasks.cancel_scope.cancel()

    assert await names_in(files) == ["deep.py"]


async def test_search_that_cannot_run_is_no_end_of_it(tmp_path: Path) -> None:
    index = FileIndex(PathResolver(tmp_path), find=lambda _: str(tmp_path / "no-such-program"))

    files = await index.look()

    assert files.total == 0
    assert files.problem
