"""Prepares pictures for a model: a program of its own, so that one that breaks the decoder breaks nothing else.

It reads the pictures from its input, framed, and the name that they go by from its arguments. For each it writes a
`Picture`, or `{"error": why}`, as framed JSON.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from panpan.documents.framed import framed, unframed
from panpan.documents.read_image import prepare_image
from panpan.errors import ToolError


def main(shown: str) -> None:
    """Write what becomes of the pictures in the standard input to the standard output."""
    for data in unframed(sys.stdin.buffer.read()):
        sys.stdout.buffer.write(framed([json.dumps(_said_of(data, shown)).encode()]))
        sys.stdout.buffer.flush()  # the next one may end the program


def _said_of(data: bytes, shown: str) -> dict[str, Any]:
    try:
        picture = prepare_image(data, shown)
    except ToolError as error:
        return {"error": str(error)}
    return asdict(picture) | {"block": picture.block.model_dump(mode="json")}


if __name__ == "__main__":
    main(sys.argv[1])
