"""The text of a PDF.

The rule: a process of its own takes the file apart, whose time and memory are bounded, and which ends with the call.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryFile

from panpan.errors import ToolError
from panpan.system.limits import GB, Limits, limited
from panpan.system.process import capture
from panpan.tools.files.read_pdf import PdfText

READ_S = 60.0
"""Seconds that may be spent on the pages of one call."""
_MEMORY_BYTES = 2 * GB
_MAX_BYTES = 10_000_000


async def pdf_text(data: bytes, pages: str | None, shown: str, *, within_s: float = READ_S) -> PdfText:
    """Return the text of some pages.

    Args:
        data: The file.
        pages: As `read_pdf` takes them.
        shown: Name of the file, for the messages.
        within_s: Seconds that it may take.

    Raises:
        ToolError: It is damaged or encrypted, has no such pages, or takes too much time or memory.
    """
    command = [sys.executable, "-P", "-m", "panpan.tools.files.pdf_extractor", json.dumps(pages), shown]
    limits = Limits(memory_bytes=_MEMORY_BYTES, cpu_s=max(int(within_s), 1))
    with TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        ended = await capture(
            limited(command, limits), cwd=Path("/"), timeout_s=within_s, max_bytes=_MAX_BYTES, stdin=file
        )
    if ended.timed_out or ended.exit_code != 0 or ended.is_truncated:
        why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
        raise ToolError(f"the text of {shown} cannot be read: {why}; try fewer pages, or look at them as pictures")
    said = json.loads(ended.stdout)
    if "error" in said:
        raise ToolError(said["error"])
    return PdfText(**said | {"scans": tuple(said["scans"])})
