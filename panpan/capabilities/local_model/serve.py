"""The program that serves the embedded model: `python -m panpan.capabilities.local_model.serve`, a child of panpan.

Its first line of input says what to serve, its one line of output says where. It ends when its input does, even while
it starts: the parent holds the other end of the pipe, and the system closes that when the parent is gone, however it
ended.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, field
from hashlib import blake2b, file_digest
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any, Self
from urllib.parse import urlsplit

from panpan.errors import ConfigError
from panpan.system.files.folder_tree import open_private_file
from panpan.types.dataclass import dataclass

# The configuration that the starting process sends to the server process: one line. It goes through the child's input,
# since it contains the key, and every user can see the arguments of a process.


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Request that the server reads before it is ready, so that the first real one is fast."""

    request: dict[str, Any]
    key: str
    """Digest of the model and the request, in the name of the file that keeps the result."""


@dataclass(frozen=True, slots=True)
class ServeConfig:
    """Model, address and options for the server process."""

    weights: str
    name: str
    template: str
    context_tokens: int
    port: int
    """0: any free one."""
    api_key: str = field(repr=False)
    warm_up: WarmUp | None = None

    def line(self) -> bytes:
        """Return the order as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """Return the order that `line` made."""
        told = json.loads(line)
        warm_up = told.pop("warm_up")
        return cls(**told, warm_up=None if warm_up is None else WarmUp(**warm_up))


# The server's state after reading the beginning of every conversation, in a file beside the weights. The file name
# contains two hashes: of the text that was read, and of the file's content. A file with a wrong hash or another owner
# is removed and never loaded, since the runtime would trust it.

_DIGEST_BYTES = 16
_ROOT = 0


def prefix_files(folder: Path) -> Iterator[Path]:
    """Yield all that is kept in a folder, also what a server left that was killed while it saved."""
    return folder.glob("prefix-*.bin")


def intact_prefix(folder: Path, key: str) -> str | None:
    """Return the name of the file with this beginning; None where there is none. Damaged ones are removed."""
    intact = None
    for path in folder.glob(f"prefix-{key}-*.bin"):
        digest = _digest(path)
        if digest is not None and path.name == _name(key, digest):
            intact = path.name
        else:
            with suppress(OSError):
                path.unlink()
    return intact


def temporary_prefix_name() -> str:
    """Return the name under which this process has its beginning saved before `keep_prefix`."""
    return f"prefix-new-{os.getpid()}.bin"


def keep_prefix(folder: Path, key: str) -> None:
    """Give what was saved as `temporary_prefix_name` its name, and remove what was kept of other beginnings.

    Raises:
        OSError: It cannot be read, or the folder cannot be written.
    """
    saved = folder / temporary_prefix_name()
    digest = _digest(saved)
    if digest is None:
        raise FileNotFoundError(saved)
    kept = saved.replace(folder / _name(key, digest))
    for old in prefix_files(folder):
        if old != kept:
            old.unlink(missing_ok=True)


def _name(key: str, digest: str) -> str:
    return f"prefix-{key}-{digest}.bin"


def _digest(path: Path) -> str | None:
    """Return the hash of a file; None of one that cannot be read, or that another user could have written."""
    try:
        with os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file:
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), _ROOT):
                return None
            return file_digest(file, lambda: blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
    except (OSError, ConfigError):
        return None


WARM_UP_TIMEOUT_S = 170.0
"""Time limit for reading a thousand tokens: 15 s on two idle cores, and minutes on busy ones."""


def main() -> None:
    """Serve until the input ends."""
    config = ServeConfig.of_line(sys.stdin.readline())
    end_of_input = Thread(target=_end_with_the_input, daemon=True)
    end_of_input.start()
    answers = _output_of_its_own()
    server = _server(config)
    if config.warm_up is not None:
        with suppress(OSError, HTTPException):  # without it the first request takes longer
            _warm_up(server.listening_address, config, config.warm_up)
    print(json.dumps({"address": server.listening_address}), file=answers, flush=True)
    end_of_input.join()


def _end_with_the_input() -> None:
    """Wait for the end of the input, behind its one line, and end the process."""
    # Not sys.stdin: at exit Python could not take its lock while this thread waits.
    while os.read(0, 1_000):
        pass
    os._exit(0)  # a reply may be unfinished, but nobody is left to read it


def _output_of_its_own() -> Any:
    """Return the standard output, and send what the runtime prints to the standard error instead."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _server(config: ServeConfig) -> Any:
    xllamacpp = import_module("xllamacpp")  # missing without the extra, and has no types
    params = xllamacpp.CommonParams()
    model_params = params.model
    model_params.path = config.weights
    params.model_alias = {config.name}
    params.chat_template = config.template
    params.use_jinja = True
    params.n_ctx = config.context_tokens
    params.n_parallel = 1  # two conversations in one slot would evict each other from the cache
    params.hostnames = ["127.0.0.1"]
    params.port = config.port
    params.api_keys = [config.api_key]
    params.ui = False
    params.endpoint_slots = True
    params.slot_save_path = str(Path(config.weights).parent) + os.sep
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # spinning threads starve beside other work
    return xllamacpp.Server(params)


def _warm_up(address: str, config: ServeConfig, warm_up: WarmUp) -> None:
    """Let the server know the beginning of every conversation: from a file, or by reading it once and keeping that."""
    folder = Path(config.weights).parent
    kept = intact_prefix(folder, warm_up.key)
    if kept is not None and _post(address, config, "/slots/0?action=restore", {"filename": kept}):
        return
    if _post(address, config, "/v1/chat/completions", warm_up.request):
        if _post(address, config, "/slots/0?action=save", {"filename": temporary_prefix_name()}):
            keep_prefix(folder, warm_up.key)
        else:  # remove the half-written file of a full disk
            (folder / temporary_prefix_name()).unlink(missing_ok=True)


def _post(address: str, config: ServeConfig, path: str, body: dict[str, Any]) -> bool:
    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=WARM_UP_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {config.api_key}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    with connection.getresponse() as response:
        response.read()
        return response.status == 200


if __name__ == "__main__":
    main()
