"""Reading and changing `claims.toml`. What a person wrote stays as it is, with their comments."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from panpan.config.checked_toml import TomlText
from panpan.config.faults import parse_text
from panpan.config.keys import dotted, quote_key, shown
from panpan.config.project_files import ProjectFiles
from panpan.errors import ConfigError, ToolError
from panpan.repro.claims.claim import Claim, Claims
from panpan.repro.claims.claim_rules import problems_of
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

NAME = "claims.toml"
MAX_BYTES = 4_000_000
"""Largest file."""
_TABLE_HEAD = compile_late(r"\s*\[\[?\s*(?P<name>[^\[\]\s]+)\s*\]")


@dataclass(frozen=True, slots=True)
class ClaimsFile:
    """A `claims.toml` as it was read, checked."""

    path: Path
    """Canonical."""
    data: bytes
    claims: Claims

    @property
    def files(self) -> ProjectFiles:
        """The file for questions about trust, since it is code: it names commands that run."""
        return ProjectFiles(self.path, {NAME: self.data}, is_shown=True)


def load_claims(folder: Path) -> ClaimsFile:
    """Read and check the claims of a folder; nothing of them runs.

    Raises:
        ConfigError: The file is missing or wrong; the error names the line, the key and the correction.
    """
    path = folder / NAME
    if not path.is_symlink() and not path.exists():
        raise ConfigError(
            f"{shown(folder)} has no {NAME}; write one, or let panpan repro extract propose claims from a paper"
        )
    try:
        path = canonical_path(path)
        data = read_regular_file(path, max_bytes=MAX_BYTES)
    except (ToolError, OSError) as error:
        raise ConfigError(f"{NAME} cannot be read: {shown(error)}; change or remove the file") from error
    return ClaimsFile(path, data, parse_claims(data))


def parse_claims(data: bytes) -> Claims:
    """Return the claims of a file's content.

    Raises:
        ConfigError: It is wrong; the error names the line, the key and the correction.
    """
    file = TomlText.decoded(NAME, data)
    claims = file.checked(Claims)
    for path, item, sentence in problems_of(claims):
        key = dotted(path) if item is None else f"{path[0]} {item + 1}: {dotted(path[1:])}"
        raise ConfigError(f"{file.place(path, item)}: {key} {sentence}")
    return claims


def save_claims(path: Path, data: bytes, *, old: bytes | None) -> None:
    """Write a claims.toml, which must be what it was when it was read.

    Args:
        path: The file.
        data: The new content.
        old: The content that was read; None if there was no file.

    Raises:
        ConfigError: The content is wrong, the file has changed meanwhile, or it cannot be written.
    """
    parse_claims(data)
    try:
        if old is None:
            write_atomic(path, data, follow_symlinks=True, must_not_exist=True)
        else:
            write_atomic(path, data, follow_symlinks=True, expected_digest=blake2b(old, digest_size=16).digest())
    except FileChangedError as error:
        raise ConfigError(f"{shown(path)} has changed meanwhile; nothing was written, so try again") from error
    except ToolError as error:
        raise ConfigError(f"{shown(path)} cannot be written: {shown(error)}") from error


def with_claims(data: bytes, claims: Sequence[Claim]) -> bytes:
    """Return a claims.toml with further claims at its end; all else stays as it is.

    Raises:
        ConfigError: The file is wrong, has a claim of that id, or is laid out so that none can be added.
    """
    known, ids = parse_claims(data), {claim.id for claim in claims}
    if there := [claim.id for claim in known.claim if claim.id in ids]:
        raise ConfigError(f"{NAME} has a claim {shown(there[0])}; choose another id")
    blocks = "".join(f"\n{claim_text(claim)}" for claim in claims)
    gap = b"\n" if data and not data.endswith(b"\n") else b""
    new = data + gap + blocks.encode()
    if parse_claims(new).claim != (*known.claim, *claims):
        raise ConfigError(_BY_HAND)
    return new


def with_changes(data: bytes, changes: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return a claims.toml with other values of some claims; all else stays as it is, comments too.

    Args:
        data: The file.
        changes: New values by key, as TOML has them, by id of the claim; None removes the key.

    Raises:
        ConfigError: The file or a value is wrong, a claim is missing, or the layout hinders the change.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    known = parse_claims(data)
    numbers = {claim.id: number for number, claim in enumerate(known.claim)}
    if missing := [name for name in changes if name not in numbers]:
        raise ConfigError(f"{NAME} has no claim {shown(missing[0])}")
    wanted = parse_text(TomlText.decoded(NAME, data).text, NAME)
    try:
        document = tomlkit.parse(data.decode("utf-8-sig"))
        items: Any = document.get("claim", [])
        for name, values in changes.items():
            for key, value in values.items():
                _set(items[numbers[name]], key, value)
                _set(wanted["claim"][numbers[name]], key, value)
        new = tomlkit.dumps(document).encode()
    except (TOMLKitError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(_BY_HAND) from error
    parse_claims(new)
    if parse_text(new.decode(), NAME) != wanted:
        raise ConfigError(_BY_HAND)
    return new


def without_claims(data: bytes, ids: Sequence[str]) -> bytes:
    """Return a claims.toml without some claims; all else stays as it is, comments between claims too.

    Raises:
        ConfigError: The file is wrong, has no claim of an id, or is laid out so that none can be removed.
    """
    known = parse_claims(data)
    if missing := [one for one in ids if one not in {claim.id for claim in known.claim}]:
        raise ConfigError(f"{NAME} has no claim {shown(missing[0])}")
    lines = data.decode("utf-8-sig").splitlines(keepends=True)
    blocks = list(_claim_blocks(lines))
    if len(blocks) != len(known.claim):
        raise ConfigError(_BY_HAND)
    for claim, (start, end) in reversed([*zip(known.claim, blocks, strict=True)]):
        if claim.id in ids:
            is_gap_doubled = not "".join(lines[start - 1 : start]).strip() and not "".join(lines[end : end + 1]).strip()
            del lines[start : end + is_gap_doubled]
    new = "".join(lines).encode()
    if parse_claims(new) != known.model_copy(update={"claim": tuple(one for one in known.claim if one.id not in ids)}):
        raise ConfigError(_BY_HAND)
    return new


def _claim_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each claim and that behind its last; comments and blank lines at its end are no part."""
    start: int | None = None
    last = 0
    for number, line in enumerate([*lines, "[end]"]):
        head = _TABLE_HEAD.match(line)
        if head and not head["name"].startswith("claim."):
            if start is not None:
                yield start, last + 1
            start = number if head["name"] == "claim" else None
        if line.strip() and not line.lstrip().startswith("#"):
            last = number


_BY_HAND = f"{NAME} is laid out in a way that panpan cannot change; change it by hand"


def _set(table: Any, key: str, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def claims_text(claims: Claims) -> str:
    """Return a whole claims.toml."""
    tables = [_block("[paper]", claims.paper), _block("[environment]", claims.environment)]
    tables += [_block("[[data]]", data) for data in claims.data]
    return "\n".join([*filter(None, tables), *map(claim_text, claims.claim)])


def claim_text(claim: Claim) -> str:
    """Return a claim as a table of claims.toml."""
    return _block("[[claim]]", claim)


def _block(head: str, table: Any) -> str:
    values = table.model_dump(by_alias=True, exclude_defaults=True)
    if not values:
        return ""
    return "".join(f"{line}\n" for line in (head, *_pairs(values)))


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            value = {name: one for name, one in value.items() if one not in (None, {}, ())}
            if value == {"exact": True}:
                value = "exact"
        if value is not None:
            yield f"{dotted([key])} = {toml_value(value)}"


def toml_value(value: Any) -> str:
    """Return a value as TOML has it on one line; a text with backslashes, such as a pattern, as it is."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str() if "\\" in value and "'" not in value and value.isprintable():
            return f"'{value}'"
        case str():
            return quote_key(value)
        case Mapping():
            return f"{{ {', '.join(f'{dotted([key])} = {toml_value(one)}' for key, one in value.items())} }}"
        case _:
            return f"[{', '.join(map(toml_value, value))}]"
