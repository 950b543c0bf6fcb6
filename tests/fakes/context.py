"""A tool context in a folder of the test's own."""

from pathlib import Path

from panpan.core.tool import SeenFiles, ToolContext
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver


def context_in(root: Path, *, tool_use_id: str = "", runs_alone: bool = True) -> ToolContext:
    """Return a context whose workspace is `root`; large outputs go beside it."""
    outputs = root.parent / f"{root.name}-outputs"
    return ToolContext(
        tool_use_id=tool_use_id,
        paths=PathResolver(root, readable_roots=(outputs,)),
        seen_files=SeenFiles(),
        outputs=OutputStore(outputs),
        runs_alone=runs_alone,
    )
