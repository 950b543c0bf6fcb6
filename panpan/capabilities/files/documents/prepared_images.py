"""Pictures for a model, prepared.

The rule: a process of its own decodes them, which ends with the call.
"""

import json
from collections.abc import Sequence

from panpan.capabilities.files.documents.framed import framed, unframed
from panpan.capabilities.files.documents.read_image import Picture
from panpan.errors import ToolError
from panpan.system.processes.apart import WITHIN_S, taken_apart
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ImageBlock

_MAX_BYTES = 50_000_000


async def prepared_images(
    files: Sequence[bytes], shown: str, sandbox: CommandSandbox, *, within_s: float = WITHIN_S
) -> Sequence[Picture | ToolError]:
    """Return, for each picture, what a model is shown of it, or why that is nothing.

    Args:
        files: Of formats that `image_format` knows.
        shown: The name that they go by, for the messages.
        sandbox: That of the session's commands.
        within_s: Seconds that all of them may take.
    """
    if not files:
        return []
    module, data = "panpan.capabilities.files.documents.image_preparer", framed(files)
    try:
        ended = await taken_apart(module, [shown], data, sandbox, max_bytes=_MAX_BYTES, within_s=within_s)
    except ToolError as error:
        return [error] * len(files)
    why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
    failed = ToolError(f"{shown} cannot be decoded: {why}")
    made = [_read(said, failed) for said in unframed(ended.stdout)[: len(files)]]
    return [*made, *[failed] * (len(files) - len(made))]


def _read(said: bytes, failed: ToolError) -> Picture | ToolError:
    """Return what was said of one; what makes no sense was cut off, or written by what got hold of the program."""
    try:
        fields = json.loads(said)
        if "error" in fields:
            return ToolError(str(fields["error"]))
        return Picture(ImageBlock.model_validate(fields["block"]), str(fields["description"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return failed
