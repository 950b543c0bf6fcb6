"""A folder that becomes a link between the decision and the search leads it nowhere else."""

import pytest

from panpan.capabilities.search.glob import GlobTool
from panpan.capabilities.search.grep import GrepTool
from panpan.capabilities.search.ls import LsTool
from panpan.errors import ToolError
from panpan.text_search.engine import find_ripgrep

CALLS = [(GrepTool, {"pattern": "SECRET", "path": "sub", "output_mode": "content"}), (GlobTool, {"pattern": "sub/*"})]


def swap(workspace) -> None:
    outside = workspace.root.parent / "outside"
    outside.mkdir()
    (outside / "told.txt").write_text("SECRET\n")
    (workspace.root / "sub").rename(workspace.root / "moved")
    (workspace.root / "sub").symlink_to(outside)


@pytest.mark.parametrize("has_ripgrep", [True, False])
@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=["Grep", "Glob"])
async def test_search_in_a_swapped_folder_is_an_error(tool, arguments, has_ripgrep, workspace):
    workspace.put("sub/a.txt", "a\n")

    def find(paths):  # is asked after the folder was resolved
        swap(workspace)
        return find_ripgrep(paths) if has_ripgrep else None

    with pytest.raises(ToolError, match="a link is in the way"):
        await workspace.call(tool(find), arguments)


async def test_list_of_a_swapped_folder_is_an_error(workspace):
    workspace.put("sub/a.txt", "a\n")
    judged = workspace.ctx.paths.for_call()
    judged.remember(judged.absolute("sub"), judged.locate("sub"))
    swap(workspace)
    workspace.ctx = type(workspace.ctx)("", judged, workspace.ctx.seen_files, workspace.ctx.outputs)

    with pytest.raises(ToolError, match="a link is in the way"):
        await workspace.call(LsTool(), {"path": "sub"})
