"""Runs the model server as a process: `python -m tests.model_server --script FILE --port-file FILE`.

The port file appears, whole, as soon as the server answers; SIGTERM or SIGINT ends it.
"""

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from tests.model_server.files import read_script
from tests.model_server.recording import RecordedRequest
from tests.model_server.server import ModelServer


def main() -> int:
    """Serve until a signal comes; exit 1 when the script was too short."""
    options = _options()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    lock = threading.Lock()

    def record(request: RecordedRequest) -> None:
        if options.record is None:
            return
        line = json.dumps(request.as_json(with_body=options.record_bodies))
        with lock, options.record.open("a") as file:
            file.write(line + "\n")

    server = ModelServer(read_script(options.script), api_key=options.api_key, finished=record)
    server.start()
    _write_whole(options.port_file, f"{server.port}\n")
    stop.wait()
    server.stop()
    for problem in server.problems:
        print(problem, file=sys.stderr)  # noqa: T201  (the face of this program)
    return 1 if server.problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.model_server", description="Play a scripted model over HTTP."
    )
    parser.add_argument("--script", type=Path, required=True, help="JSON file with the replies; see files.py")
    parser.add_argument("--port-file", type=Path, required=True, help="file that gets the port number")
    parser.add_argument("--record", type=Path, help="file that gets one JSON line for each answered request")
    parser.add_argument("--record-bodies", action="store_true", help="with headers and bodies")
    parser.add_argument("--api-key", help="the only key that is accepted")
    return parser.parse_args()


def _write_whole(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.rename(path)


if __name__ == "__main__":
    sys.exit(main())
