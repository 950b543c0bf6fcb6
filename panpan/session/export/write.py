"""Writes a session to a file of the user's: private, whole or not at all, and never over what is there."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from anyio import to_thread

from panpan.errors import ConfigError, OutputError, ToolError
from panpan.session.export.transcript import Transcript, without_secrets
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.text.redact import Redactor

DEFAULT_SUFFIX = ".md"
SUFFIX_BY_FORMAT = {"markdown": ".md", "html": ".html", "json": ".json", "claude": ".jsonl"}
MAX_TRIES = 100


def exported_text(transcript: Transcript, redactor: Redactor, suffix: str) -> str:
    """Return a session without secrets in the format of a suffix; ConfigError if that names none."""
    return _format_of(suffix)(without_secrets(transcript, redactor))


async def export_session(
    transcript: Transcript, redactor: Redactor, *, folder: Path, wanted: str = "", suffix: str = ""
) -> Path:
    """Write a session, without secrets, to a file and return where it is.

    Args:
        transcript: The session.
        redactor: Knows the secrets.
        folder: Where a relative path begins.
        wanted: The file, whose suffix says the format; Markdown without one. Empty: a free name in `folder`. Beside a
            transcript of Claude Code's go those of the subagents.
        suffix: Says the format instead.

    Raises:
        ConfigError: The suffix names no format, or the file exists already.
        OutputError: It could not be written.
    """
    return await to_thread.run_sync(partial(_export, transcript, redactor, folder, wanted, suffix))


def _export(transcript: Transcript, redactor: Redactor, folder: Path, wanted: str, suffix: str) -> Path:
    path = _path(folder, wanted, suffix or DEFAULT_SUFFIX) if wanted else None
    suffix = suffix or (path.suffix if path else DEFAULT_SUFFIX)
    data = exported_text(transcript, redactor, suffix).encode(errors="replace")
    if path is not None:
        _write_new(path, data)
        if suffix.lower() == SUFFIX_BY_FORMAT["claude"]:
            for subagent in transcript.subagents:
                written = exported_text(subagent, redactor, suffix)
                _write_new(subagent_path(path, subagent.agent_id), written.encode(errors="replace"))
        return path
    stem = f"panpan-{transcript.exported_at.strftime('%Y-%m-%d-%H%M%S')}"
    for number in range(1, MAX_TRIES + 1):
        free = folder / f"{stem}{f'-{number}' if number > 1 else ''}{DEFAULT_SUFFIX}"
        if _is_written(free, data):
            return free
    raise ConfigError(f"{folder} holds {MAX_TRIES} exports of this second; name a file")


def subagent_path(path: Path, agent_id: str) -> Path:
    """Return the file of a subagent beside that of its session, where viewers of transcripts look for it."""
    return path.with_suffix("") / "subagents" / f"agent-{agent_id}.jsonl"


def _write_new(path: Path, data: bytes) -> None:
    if not _is_written(path, data):
        raise ConfigError(f"{path} exists already and was left as it is; name another file")


def _path(folder: Path, wanted: str, default_suffix: str) -> Path:
    try:
        path = folder / Path(wanted).expanduser()
    except RuntimeError as exc:
        raise ConfigError(f"{wanted} names a home folder that does not exist; write the whole path") from exc
    if wanted.endswith("/") or path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file in it, such as {path / 'session.md'}")
    return path if path.suffix else path.with_name(path.name + default_suffix)


def _is_written(path: Path, data: bytes) -> bool:
    try:
        write_atomic(path, data, mode=0o600, follow_symlinks=True, must_not_exist=True)
    except FileChangedError:
        return False
    except ToolError as exc:
        raise OutputError(str(exc)) from exc
    return True


def _format_of(suffix: str) -> Callable[[Transcript], str]:
    # imported where they are used: the Markdown parser takes a while
    match suffix.lower():
        case ".md" | ".markdown":
            from panpan.session.export.as_markdown import markdown_text

            return markdown_text
        case ".html" | ".htm":
            from panpan.session.export.as_html import html_text

            return html_text
        case ".json":
            from panpan.session.export.as_json import json_text

            return json_text
        case ".jsonl":
            from panpan.session.export.as_json import claude_text

            return claude_text
        case _:
            raise ConfigError(f"no format is called {suffix}; name a file that ends in .md, .html, .json or .jsonl")
