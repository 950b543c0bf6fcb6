"""`panpan debug`: decisions of the permission gate and the URL guard, with a JSON object per line in and out.

The decisions are those of a session: the same code makes them. An unreadable row is answered with a denial that says
so, and the next one is read. `panpan --debug` writes its log into a file of its own.
"""

import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import click

from panpan.cli_kit.commands import CommandGroup, gate_of_folder, settings_of_folder
from panpan.config.known_secrets import secrets_of_run
from panpan.config.locations import Locations
from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.permissions.folder_gate import FolderGate
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.text.redact import Redactor
from panpan.system.web.url_guard import PrivateHosts, guard_url
from panpan.types.permission import Allow, is_permission_mode

MAX_ROW_BYTES = 1_000_000
"""Most bytes of one line of input; the rest of a longer one is skipped."""

_JSONL = click.option("--jsonl", is_flag=True, required=True, help="Read and write one JSON object per line.")

Row: TypeAlias = Mapping[str, Any]


class _BadRowError(Exception):
    """A row does not have the expected form; the message says why."""


@click.group("debug", cls=CommandGroup)
def command() -> None:
    """Show what would be decided, without running or sending anything."""


@command.command("permission")
@_JSONL
@click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder to use as the workspace.")
@click.pass_context
def permission(ctx: click.Context, jsonl: bool, cwd: Path | None) -> int:
    """Decide about tool calls.

    Reads rows of {"mode", "tool", "args"}; without a mode, that of the settings counts. Writes rows of {"decision":
    "allow|ask|deny", "reason", "because"}, and the "box" of an allowed command.
    """
    from anyio.from_thread import start_blocking_portal

    gate = gate_of_folder(ctx, cwd)
    with start_blocking_portal() as portal:  # so that Ctrl+C reaches the thread that waits for input
        _answer(lambda row: portal.call(_judged, gate, row))
    return 0


@command.command("url")
@_JSONL
@click.pass_context
def url(ctx: click.Context, jsonl: bool) -> int:
    """Decide about web addresses, without asking a name server.

    Reads rows of {"url", "resolves": [ADDRESS, …]}, with the addresses of the host. Writes rows of {"decision":
    "allow|deny", "reason"}, and in "dial" the addresses that would be dialled.
    """
    from anyio.from_thread import start_blocking_portal

    _, loaded, _ = settings_of_folder(ctx, None)
    private = PrivateHosts.parse(loaded.settings.web.private_hosts)
    with start_blocking_portal() as portal:
        _answer(lambda row: portal.call(_guarded, private, row))
    return 0


async def _judged(gate: FolderGate, row: Row) -> dict[str, Any]:
    mode, tool, arguments = row.get("mode"), row.get("tool"), row.get("args")
    if not isinstance(tool, str):
        raise _BadRowError('"tool" should be the name of a tool')
    if not isinstance(arguments, dict):
        raise _BadRowError('"args" should be an object')
    if mode is not None and not (isinstance(mode, str) and is_permission_mode(mode)):
        raise _BadRowError('"mode" should be the name of a permission mode')
    decision = (await gate.judge(tool, arguments, mode)).decision
    return {
        "decision": type(decision).__name__.lower(),
        "reason": decision.reason.text,
        "because": decision.reason.as_json(),
        **({"box": decision.box} if isinstance(decision, Allow) else {}),
    }


async def _guarded(private: PrivateHosts, row: Row) -> dict[str, Any]:
    address, resolves = row.get("url"), row.get("resolves", [])
    if not isinstance(address, str):
        raise _BadRowError('"url" should be a text')
    if not isinstance(resolves, list) or not all(isinstance(text, str) for text in resolves):
        raise _BadRowError('"resolves" should be a list of texts')

    async def resolve(host: str, port: int) -> Sequence[str]:
        return resolves

    try:
        guarded = await guard_url(address, resolve, private)
    except ToolError as error:
        return {"decision": "deny", "reason": str(error)}
    return {"decision": "allow", "reason": "all its addresses are public", "dial": guarded.addresses}


def _answer(decide: Callable[[Row], dict[str, Any]]) -> None:
    """Answer each row of standard input with a row on standard output, before reading the next one."""
    for number, line in enumerate(_lines(sys.stdin.buffer), 1):
        if line.strip():
            click.echo(json.dumps(_answered(decide, line, number)))
            sys.stdout.flush()


def _answered(decide: Callable[[Row], dict[str, Any]], line: bytes, number: int) -> dict[str, Any]:
    try:
        if len(line) > MAX_ROW_BYTES:
            raise _BadRowError(f"it is longer than {MAX_ROW_BYTES:,} bytes")
        row = json.loads(line)
        if not isinstance(row, dict):
            raise _BadRowError("it is not a JSON object")
        return decide(row)
    except _BadRowError as error:
        return _refused(number, str(error))
    except (ValueError, RecursionError):
        return _refused(number, "it is no JSON that panpan can read")
    except PanpanError as error:
        return _refused(number, str(error))
    except Exception as error:  # a bug costs one row, and the caller still gets an answer for each
        return _refused(number, f"panpan failed unexpectedly: {type(error).__name__}: {error}")


def _refused(number: int, why: str) -> dict[str, Any]:
    return {"decision": "deny", "reason": f"row {number}: {why}", "error": True}


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines, and only the beginning of one that is too long."""
    while line := stream.readline(MAX_ROW_BYTES + 2):
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(MAX_ROW_BYTES)):
            pass
        yield line


_MAX_TEXT_CHARS = 20_000
"""Most characters of one text in a record; a longer one is cut, with a note."""

_MAX_DEPTH = 8

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


STANDARD_ERROR = Path("/dev/stderr")
"""Place of a log that goes to standard error."""


class DebugLog(logging.Handler):
    """Writes log records to a file; a full disk costs records, but never the logged work.

    Args:
        folder: Folder of the new file; a missing one is made, private.
        redactor: Removes keys from what is written.
        file: File to append to, in place of a new one in the folder, or `STANDARD_ERROR`.
    """

    def __init__(self, folder: Path, redactor: Redactor, file: Path | None = None) -> None:
        self._fd: int | None = None
        self._redactor = redactor
        self._is_torn = False
        self.lost = 0
        self.path = file or folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        if file == STANDARD_ERROR:
            self._fd = os.dup(2)
        elif file is not None:
            self._fd = open_private_file(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        else:
            make_private_folder(folder)
            self._fd = open_private_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        super().__init__(logging.DEBUG)  # last: it registers this for the exit of the process

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            line = json.dumps(self._fields(record), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        except Exception as exc:  # a value whose __str__ fails; name the failure instead
            line = json.dumps({"logger": record.name, "error": f"record not writable: {type(exc).__name__}"}).encode()
            line += b"\n"
        self._write(line)

    def close(self) -> None:
        """Close the file; later records are dropped."""
        self.acquire()
        try:
            fd, self._fd = self._fd, None
            if fd is not None:
                os.close(fd)
        finally:
            self.release()
        super().close()

    def _write(self, line: bytes) -> None:
        if self._fd is None:
            return
        start = b"\n" if self._is_torn else b""  # end the line that a full disk cut off, so that only that one is lost
        try:
            written = os.write(self._fd, start + line)
        except OSError:
            self.lost += 1
            return
        self._is_torn = written < len(start + line)
        self.lost += self._is_torn

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._clean(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD_FIELDS:
                fields.setdefault(name, self._clean(value))
        if record.exc_info:
            fields["exception"] = self._clean(logging.Formatter().formatException(record.exc_info))
        return fields

    def _clean(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping) and depth < _MAX_DEPTH:
            return {str(self._clean(str(name))): self._clean(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset) and depth < _MAX_DEPTH:
            return [self._clean(item, depth + 1) for item in value]
        text = self._redactor.redact(value if isinstance(value, str) else str(value))
        if len(text) > _MAX_TEXT_CHARS:
            return f"{text[:_MAX_TEXT_CHARS]} … {len(text) - _MAX_TEXT_CHARS} characters left out"
        return text


@contextmanager
def debug_log(folder: Path, redactor: Redactor, file: Path | None = None) -> Iterator[DebugLog]:
    """Log everything of panpan, and the warnings of its libraries, until the context ends, as `DebugLog` does.

    Raises:
        OSError: The file cannot be made.
        PanpanError: The folder cannot be made private.
    """
    handler = DebugLog(folder, redactor, file)
    ours = logging.getLogger("panpan")
    level_before = ours.level
    logging.getLogger().addHandler(handler)
    ours.setLevel(logging.DEBUG)
    try:
        yield handler
    finally:
        ours.setLevel(level_before)
        logging.getLogger().removeHandler(handler)
        handler.close()


def start_debug_log(
    cwd: str | None, overrides: Mapping[str, object], stack: ExitStack, *, file: Path | None = None
) -> Path:
    """Log a run of the command until `stack` is closed, and return the log's path.

    Args:
        cwd: Folder of the run.
        overrides: Settings of the command line; keys in them are redacted, as are those of files and environment.
        stack: Closes the log.
        file: File to append to, in place of a new one in the panpan home, or `STANDARD_ERROR`.

    Raises:
        ConfigError: The log cannot be written.
    """
    locations = Locations.find(Path(cwd or "."), os.environ)
    secrets_of_all = secrets_of_run(locations, os.environ, overrides)
    try:
        return stack.enter_context(debug_log(locations.debug_folder, Redactor(secrets_of_all), file)).path
    except OSError as error:
        raise ConfigError(f"the debug log cannot be written: {error.strerror}") from error
