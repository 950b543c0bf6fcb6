"""A server of git repositories over HTTP on the loopback, by git's own program."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit


@contextmanager
def serving_git(root: Path, *, redirects_to: str = "") -> Iterator[int]:
    """Serve the bare repositories below a folder, and yield the port.

    Args:
        root: The folder.
        redirects_to: Address to which each request is sent on; empty for none.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if redirects_to:
                self.send_response(302)
                self.send_header("Location", f"{redirects_to}{self.path}")
                self.end_headers()
                return
            size = int(self.headers.get("Content-Length", "0"))
            path, query = urlsplit(self.path)[2:4]
            variables = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "CONTENT_LENGTH": str(size),
            }
            ran = subprocess.run(
                ["git", "-c", "safe.directory=*", "http-backend"],
                input=self.rfile.read(size), env=variables, capture_output=True, check=True,
            )  # fmt: skip
            head, _, body = ran.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
