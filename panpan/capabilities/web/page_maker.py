"""Makes text of what came from the web: a program of its own, so that what strangers send breaks and holds up nothing.

It reads from its input a line of JSON, as `page_making.py` writes it, and behind that the bytes that came. It writes
`Made`, or `{"error": why}`, as JSON.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, TypeAlias

from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_for_terminal

MAX_CHARS = 5_000_000
"""Of a text. HTML of a few bytes can be made to come to gigabytes: `rowspan`, lists in lists."""

Job: TypeAlias = Mapping[str, Any]
Made: TypeAlias = dict[str, Any]


def main() -> None:
    """Do what the standard input says."""
    sys.stdout.buffer.write(answer(sys.stdin.buffer))


def answer(asked: BinaryIO) -> bytes:
    """Return what became of what came.

    Args:
        asked: As the standard input.
    """
    job = json.loads(asked.readline())
    try:
        made = _MAKERS[job["kind"]](job, asked.read())
    except ToolError as error:
        words = str(error)  # what a library says behind that may quote what came
        made = {"error": words if error.__cause__ is None else words.partition(": ")[0]}
    return json.dumps(made, ensure_ascii=False).encode("utf-8", "replace")


def _of_html(job: Job, body: bytes) -> Made:
    from panpan.capabilities.web.page_text import decoded, page_text
    from panpan.capabilities.web.page_tree import obstacle_of

    html = decoded(body, job["charset"])
    text = page_text(html, job["url"], wants_all=job["wants_all"])
    found = obstacle_of(
        job["status"], job["headers"], text.facts, html, asked=job["asked"], url=job["url"],
        is_rendered=job["is_rendered"],
    )  # fmt: skip
    obstacle = found and {"kind": found.kind, "reason": found.reason, "is_partial": found.is_partial}
    about = {"title": text.facts.title, "extent": text.extent, "sends_on_to": text.facts.sends_on_to[:10_000]}
    return _bounded(text.markdown) | about | {"obstacle": obstacle}


def _of_text(job: Job, body: bytes) -> Made:
    from panpan.capabilities.web.page_text import decoded

    return _bounded(decoded(body, job["charset"]))


def _of_pdf(job: Job, body: bytes) -> Made:
    from panpan.documents.read_pdf import read_pdf

    pdf = read_pdf(body, job["pages"], "the PDF")
    return _bounded(pdf.text) | {"scans": pdf.scans}


def _of_image(_: Job, body: bytes) -> Made:
    from panpan.documents.read_image import prepare_image

    picture = prepare_image(body, "what came")
    return {"what": picture.description, "picture": picture.block.model_dump(mode="json")}


def _bounded(text: str) -> Made:
    clean = clean_for_terminal(text[: MAX_CHARS + 1])
    return {"text": clean[:MAX_CHARS], "is_cut": len(clean) > MAX_CHARS}


_MAKERS = {"html": _of_html, "text": _of_text, "pdf": _of_pdf, "image": _of_image}

if __name__ == "__main__":
    main()
