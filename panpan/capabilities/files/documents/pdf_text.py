"""The text of a PDF.

The rule: a process of its own takes the file apart, which ends with the call.
"""

import json

from panpan.capabilities.files.documents.read_pdf import PdfText
from panpan.errors import ToolError
from panpan.system.processes.apart import WITHIN_S, taken_apart
from panpan.system.sandbox.command_sandbox import CommandSandbox

_MAX_BYTES = 10_000_000


async def pdf_text(
    data: bytes, pages: str | None, shown: str, sandbox: CommandSandbox, *, within_s: float = WITHIN_S
) -> PdfText:
    """Return the text of some pages.

    Args:
        data: The file.
        pages: As `read_pdf` takes them.
        shown: Name of the file, for the messages.
        sandbox: That of the session's commands.
        within_s: Seconds that it may take.

    Raises:
        ToolError: It is damaged or encrypted, has no such pages, or takes too much time or memory.
    """
    module, told = "panpan.capabilities.files.documents.pdf_extractor", (json.dumps(pages), shown)
    ended = await taken_apart(module, told, data, sandbox, max_bytes=_MAX_BYTES, within_s=within_s)
    if ended.timed_out or ended.exit_code != 0 or ended.is_truncated:
        why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
        raise ToolError(f"the text of {shown} cannot be read: {why}; try fewer pages, or look at them as pictures")
    said = json.loads(ended.stdout)
    if "error" in said:
        raise ToolError(said["error"])
    return PdfText(**said | {"scans": tuple(said["scans"])})
