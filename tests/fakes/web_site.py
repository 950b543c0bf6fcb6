"""A web site on the loopback for browsers: pages by path, and a forbidden place that records connections."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """Answer to requests for a path."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    waits_for: threading.Event | None = None
    """Event before which the end of the body is held back."""


@dataclass
class Site:
    """A web site; paths that are not in `pages` are not found."""

    pages: dict[str, Answer] = field(default_factory=dict)
    port: int = 0
    requests: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    """Method, path and headers of each request."""

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.requests]


@contextmanager
def served(site: Site) -> Iterator[Site]:
    """Serve `site` at a port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.command, self.path, dict(self.headers.items())))
            answer = site.pages.get(self.path.partition("?")[0], Answer("not found", 404))
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self.send_response(answer.status)
            for name, value in {"Content-Type": "text/html; charset=utf-8", **answer.headers}.items():
                self.send_header(name, value)
            if answer.waits_for is None:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            if answer.waits_for is not None:
                self.wfile.flush()
                answer.waits_for.wait()

        do_POST = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a browser may leave at any time

    server = Server(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Forbidden:
    """A place on this machine that no page may reach."""

    port: int
    """Port of TCP and UDP on 127.0.0.1."""
    reached: list[str] = field(default_factory=list)


@contextmanager
def forbidden_place() -> Iterator[Forbidden]:
    """Listen with TCP and UDP at one port of 127.0.0.1, and note what arrives."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen(64)
        place = Forbidden(tcp.getsockname()[1])
        udp.bind(("127.0.0.1", place.port))
        is_over = threading.Event()

        def take_connections() -> None:
            while not is_over.is_set():
                connection, _ = tcp.accept()
                if not is_over.is_set():
                    place.reached.append("tcp")
                connection.close()

        def take_packets() -> None:
            while not is_over.is_set():
                packet = udp.recv(2000)
                if not is_over.is_set():
                    place.reached.append(f"udp {packet[:20]!r}")

        threads = [threading.Thread(target=one, daemon=True) for one in (take_connections, take_packets)]
        for thread in threads:
            thread.start()
        try:
            yield place
        finally:
            is_over.set()
            socket.create_connection(("127.0.0.1", place.port)).close()
            with socket.socket(type=socket.SOCK_DGRAM) as last:
                last.sendto(b"end", ("127.0.0.1", place.port))
            for thread in threads:
                thread.join()


def quoted(text: str) -> str:
    """Return a text as a string literal of JavaScript."""
    return json.dumps(text)
