"""The page in the browser: its files, as they lie in `page/`, under fixed addresses.

The rule: no part of a request reaches the file system. A file is at an address because it is in the table.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_FOLDER = Path(__file__).with_name("page")
_SCRIPT, _TEXT = "text/javascript", "text/plain"

PAGE_FILES: Mapping[str, tuple[str, str]] = {
    "/": ("index.html", "text/html"),
    "/page/style.css": ("style.css", "text/css"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"/page/{name}.js": (f"{name}.js", _SCRIPT)
        for name in (
            "main", "api", "session", "conversation", "parts", "questions", "panels", "prompt", "markdown", "text",
            "preact",
        )
    },
    "/page/LICENSE.htm.txt": ("LICENSE.htm.txt", _TEXT),
}  # fmt: skip
"""Files by their addresses, each with its media type."""

SAFETY: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # asked for again, so that a newer panpan never runs an older page
}
"""Headers of each file: scripts and styles are these files alone, and calls go to this server alone."""


def page_routes() -> Sequence[Route]:
    """Return the routes of the page."""
    return [
        Route(address, partial(_answer, (_FOLDER / name).read_bytes(), kind))
        for address, (name, kind) in PAGE_FILES.items()
    ]


async def _answer(content: bytes, kind: str, request: Request) -> Response:
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {**SAFETY, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)
