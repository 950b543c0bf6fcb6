"""Pictures and documents, which a terminal cannot show, as a mark with their size."""

from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import DocumentBlock, ImageBlock

_KB = 1_000


def attachment_mark(block: ImageBlock | DocumentBlock) -> str:
    """Return what stands for it, such as `[image 120 KB]`."""
    data = block.source.data
    size = len(data) * 3 // 4 - data[-2:].count("=")
    spoken = f"{size} B" if size < _KB else f"{round(size / _KB)} KB" if size < _KB**2 else f"{size / _KB**2:.1f} MB"
    if isinstance(block, ImageBlock):
        return f"[image {spoken}]"
    title = " ".join(clean_for_terminal(block.title or "").split())
    return f"[document {title} {spoken}]" if title else f"[document {spoken}]"
