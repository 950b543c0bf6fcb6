"""A file server with parts, validators and faults, and a hub for data sets; both on the loopback."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio.abc import ByteStream

from tests.fakes.outside import head_of


@dataclass
class Files:
    """Serves contents by path."""

    contents: dict[str, bytes] = field(default_factory=dict)
    etag: str = '"one"'
    sends_parts: bool = True
    knows_head: bool = True
    tells_size_to_head: bool = True
    """True to answer HEAD with the length, False with 0."""
    tells_size: bool = True
    cut_after: list[int] = field(default_factory=list)
    """Bytes after which the next answers end early, one number for each answer."""
    refusals: list[int] = field(default_factory=list)
    """Statuses of the next answers, which are errors."""
    redirects: dict[str, str] = field(default_factory=dict)
    """Addresses that paths redirect to."""
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[bytes, bytes]]] = field(default_factory=list)
    """Requests: method and path, and the headers."""
    status: int = 200
    """Status of answers with whole contents."""
    before: Callable[[], None] = lambda: None
    """Called before each answer to GET."""

    async def serve(self, stream: ByteStream) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += await stream.receive()
        line, headers = head_of(request)
        method, path, _ = line.decode().split(" ")
        self.asked.append((f"{method} {path}", dict(headers)))
        await stream.send(self._answer(method, path, dict(headers)))

    def _answer(self, method: str, path: str, headers: dict[bytes, bytes]) -> bytes:
        if method == "GET":
            self.before()
        if method == "GET" and self.refusals:
            return _head(self.refusals.pop(0), {"Content-Length": "0"})
        if path in self.redirects:
            return _head(302, {"Location": self.redirects[path], "Content-Length": "0"})
        if path not in self.contents:
            return _head(404, {"Content-Length": "0"})
        if method == "HEAD" and not self.knows_head:
            return _head(405, {"Content-Length": "0"})
        whole = self.contents[path]
        told = {"ETag": self.etag} | self.headers | ({"Accept-Ranges": "bytes"} if self.sends_parts else {})
        status, body = self.status, whole
        wanted = re.fullmatch(rb"bytes=(\d+)-(\d*)", headers.get(b"range", b""))
        is_same = headers.get(b"if-range", self.etag.encode()) == self.etag.encode()
        if wanted and self.sends_parts and is_same:
            first = int(wanted[1])
            last = int(wanted[2]) if wanted[2] else len(whole) - 1
            if first >= len(whole):
                return _head(416, {"Content-Range": f"bytes */{len(whole)}", "Content-Length": "0"})
            status, body = 206, whole[first : last + 1]
            told["Content-Range"] = f"bytes {first}-{last}/{len(whole)}"
        if self.tells_size:
            told["Content-Length"] = str(len(body))
        if method == "HEAD":
            return _head(status, told if self.tells_size_to_head else told | {"Content-Length": "0"})
        if self.cut_after and status in (200, 206) and len(body) > 1:
            body = body[: self.cut_after.pop(0)]
        return _head(status, told) + body


def repository(files: dict[str, bytes], *, large: tuple[str, ...] = (), **more: object) -> bytes:
    """Return the hub's description of a repository: https://huggingface.co/docs/hub/api."""
    siblings = []
    for path, data in files.items():
        git = hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
        sibling: dict[str, object] = {"rfilename": path, "size": len(data), "blobId": git}
        if path in large:
            sibling |= {"blobId": "0" * 40}
            sibling["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        siblings.append(sibling)
    card = {"license": "cc-by-4.0"}
    told = {"id": "lab/words", "sha": "a" * 40, "gated": False, "cardData": card, "siblings": siblings}
    return json.dumps(told | more).encode()


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Some\r\nConnection: close\r\n{lines}\r\n".encode()
