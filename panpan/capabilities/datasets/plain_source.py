"""A file at an address: what its server tells of it before anything is downloaded.

The rule: it is asked with HEAD, and where a server does not answer that, or with a length of 0, as some do for whatever
they make themselves, for the first byte alone.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from panpan.capabilities.datasets.download_plan import RemoteFile
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.system.web.guarded_client import Allow, GuardedClient
from panpan.system.web.url_guard import read_url

if TYPE_CHECKING:
    from panpan.system.web.guarded_response import GuardedResponse

TIMEOUT_S = 60.0
_UNPLAIN = re.compile(r"[^\w.+@=,()\[\] -]")
"""What stays out of the names of files."""
_MAX_NAME_BYTES = 200
"""What it grows under is longer by some letters, and file systems take 255."""
_MAX_VALIDATOR_CHARS = 500
_DISPOSITION = re.compile(r'filename\*?=(?:UTF-8\'[^\']*\')?(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', re.IGNORECASE)
"""RFC 6266, section 4."""
_CODINGS = ("gzip", "deflate", "br", "zstd")
"""Those that a server may send although none is asked for; some keep their files so."""
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
"""RFC 9110, section 14.4."""
_OF_NOTHING = "bytes */0"
"""What the same section has for a part of a file that is empty."""


async def look_at(client: GuardedClient, url: str, allow: Allow, *, name: str = "") -> RemoteFile:
    """Return what a server tells of a file.

    Args:
        client: Asks it.
        url: The address.
        allow: Asked before each address, redirects included.
        name: What the file is called here; empty: as the server or the address calls it.

    Raises:
        ToolError: It cannot be had, or may not be asked for.
    """
    url = read_url(url).url  # as it is asked for, and shown: other letters of the host encoded
    plain = {"accept-encoding": "identity"}
    async with client.stream("HEAD", url, headers=plain, timeout_s=TIMEOUT_S, allow=allow) as response:
        if response.status == 200 and (size_of(response) or "chunked" in _codings(response)):
            return _told(response, url, size_of(response), name)
        is_refused = response.status in (401, 403, 404, 410)
    if not is_refused:
        first = {"range": "bytes=0-0", **plain}
        async with client.stream("GET", url, headers=first, timeout_s=TIMEOUT_S, allow=allow) as response:
            if response.status == 206 and (sent := sent_range(response)) is not None:
                return _told(response, url, sent[1], name)
            if response.status == 200:
                return _told(response, url, size_of(response), name)
            if response.status == 416 and response.headers.get("content-range", "").strip() == _OF_NOTHING:
                return _told(response, url, 0, name)
    raise ToolError(f"{url} cannot be had: its server answers {response.status}{_why(response.status)}")


def size_of(response: "GuardedResponse") -> int | None:
    """Return how long the server says that the body is, in bytes."""
    told = response.headers.get("content-length", "")
    return int(told) if re.fullmatch(r"[0-9]{1,18}", told) else None


def sent_range(response: "GuardedResponse") -> tuple[int, int | None] | None:
    """Return where a part of a file begins and how long the whole is; None where that is not told."""
    found = _CONTENT_RANGE.fullmatch(response.headers.get("content-range", "").strip())
    return None if found is None else (int(found[1]), None if found[3] == "*" else int(found[3]))


def validator_of(headers: Mapping[str, str]) -> str:
    """Return the strong ETag of an answer, or else the time of the last change; empty where there is neither.

    Only these may stand in If-Range (RFC 9110, section 13.1.5), and nothing that could not be sent back.
    """
    etag = headers.get("etag", "").strip()
    validator = etag if etag.startswith('"') else headers.get("last-modified", "").strip()
    return validator if validator.isascii() and len(validator) <= _MAX_VALIDATOR_CHARS else ""


def _told(response: "GuardedResponse", url: str, size: int | None, name: str) -> RemoteFile:
    headers = response.headers
    return RemoteFile(
        url=url,
        path=name or _file_name(headers.get("content-disposition", ""), response.url, url),
        size=size,
        validator=validator_of(headers),
        can_go_on=response.status == 206 or headers.get("accept-ranges", "").strip().lower() == "bytes",
        sent_on_to=response.url if response.history else "",
        coding=coding if (coding := headers.get("content-encoding", "").strip().lower()) in _CODINGS else "",
        media_type=clean_line(headers.get("content-type", ""))[:100],
    )


def _codings(response: "GuardedResponse") -> str:
    return response.headers.get("transfer-encoding", "").lower()


def _file_name(disposition: str, *urls: str) -> str:
    """Return the name of a file in one folder, whatever a server says."""
    found = _DISPOSITION.search(disposition)
    named = [unquote(found[1] or found[2])] if found else []
    named += [unquote(urlsplit(url).path) for url in urls]
    names = (_UNPLAIN.sub("_", text.replace("\\", "/").rstrip("/").rpartition("/")[2]).strip(" .") for text in named)
    return next((_with_its_end(name) for name in names if name.strip("_")), "download")


def _with_its_end(name: str) -> str:
    """Return a name with no more bytes than a file system takes; its end says what it is, and stays."""
    return name.encode()[-_MAX_NAME_BYTES:].decode(errors="ignore").strip(" .")


def _why(status: int) -> str:
    reasons = {
        401: ", which asks for a login",
        403: ", which forbids it; perhaps it asks for a login",
        404: ", which has no such file; look whether the address is right",
        429: ", which wants fewer requests; try again later",
    }
    return reasons.get(status, "; try again later" if status >= 500 else "")
