"""Writes the text of pages of a PDF: a program of its own, so that a file made to take for ever holds up nothing else.

It reads the PDF from its input; its arguments are the pages, as `read_pdf` takes them, in JSON, and the file's name. It
writes the fields of `PdfText`, or `{"error": why}`, as JSON.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from panpan.documents.read_pdf import read_pdf
from panpan.errors import ToolError


def main(pages: str | None, shown: str) -> None:
    """Write what the PDF in the standard input says."""
    said: dict[str, Any]
    try:
        said = asdict(read_pdf(sys.stdin.buffer.read(), pages, shown))
    except ToolError as error:
        said = {"error": str(error)}
    sys.stdout.buffer.write(json.dumps(said).encode())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
