"""Reading and checking one source of settings; errors name the file and the line.

A missing file is fine. A file that cannot be read, or that has an unknown key, is an error: if panpan silently ignored
a misspelt rule, a call that the user meant to deny would be allowed.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from panpan.config.faults import fault, parse_text, suggestion
from panpan.config.keys import KeyPath, dotted, shown
from panpan.config.settings import FORMAT_VERSION, Settings, rule_text, settings_type
from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import lost_link
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass
from panpan.types.permission import Behaviour

_MAX_BYTES = 256_000

SourceKind: TypeAlias = Literal["default", "user", "project", "local", "environment", "flag"]
"""Kind of the source of a value, weakest first; `local` is the user's own file for the project."""

_CALLED_OTHERWISE = {"max_turns": "max_rounds"}
"""Settings by the name of their option, if it differs and the most similar setting means something else."""


@dataclass(frozen=True, slots=True)
class WrittenRule:
    """A permission rule as a source has it, with examples that it matches and examples that it does not."""

    text: str
    place: str
    """`FILE:LINE`, or the flag or variable."""
    match: Sequence[str] = ()
    """Commands, paths or addresses that the rule must match."""
    not_match: Sequence[str] = ()
    """Commands, paths or addresses that the rule must not match."""


@dataclass(frozen=True)
class Source:
    """The settings of one source, as nested tables of the values that were written there."""

    kind: SourceKind
    place: str
    """The file, or the name of another source."""
    values: Mapping[str, Any]
    places: Mapping[KeyPath, str]
    """For flags and variables: the name of the one that gave each value."""
    file: Path | None = None
    text: str = ""
    """Content of the file."""
    is_shared: bool = False
    """True for a file of another agent: it is not checked as a whole, and rules in it may mean nothing here."""

    @cached_property
    def _lines(self) -> Mapping[KeyPath, int]:
        from panpan.config.keys import key_lines

        try:
            return key_lines(self.text)
        except RecursionError:  # endlessly nested tables: the file is refused, but without a line number
            return {}

    @cached_property
    def _item_lines(self) -> Mapping[KeyPath, Sequence[int]]:
        from panpan.config.keys import item_lines

        try:
            return item_lines(self.text)
        except RecursionError:
            return {}

    def place_of(self, path: KeyPath) -> str:
        """Return the place of a key: `FILE:LINE`, or the flag or variable that gave it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
            if path[:length] in self._lines:
                return f"{self.place}:{self._lines[path[:length]]}"
        return self.place

    def rules(self, behaviour: Behaviour) -> Sequence[str]:
        """Return the permission rules of this source alone."""
        return tuple(rule.text for rule in self.written_rules(behaviour))

    def written_rules(self, behaviour: Behaviour) -> Sequence[WrittenRule]:
        """Return the permission rules of this source alone, each with its place and its examples."""
        path = ("permission", behaviour)
        items = self.values.get("permission", {}).get(behaviour, ())
        return tuple(
            WrittenRule(
                rule_text(item),
                self.place_of_item(path, number),
                *((item.get("match", ()), item.get("not_match", ())) if isinstance(item, Mapping) else ()),
            )
            for number, item in enumerate(items)
        )

    def place_of_item(self, path: KeyPath, number: int) -> str:
        """Return the place of an item of a list, as `place_of` does for the list."""
        lines = () if path in self.places else self._item_lines.get(path, ())
        return f"{self.place}:{lines[number]}" if number < len(lines) else self.place_of(path)

    def line_of(self, path: KeyPath) -> int:
        """Return the line of the key, or 0."""
        return next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 0)


def read_settings_file(path: Path, kind: SourceKind) -> Source | None:
    """Return the checked settings of a file; None if it does not exist.

    Raises:
        ConfigError: It cannot be read, is not TOML, or has an unknown key or value. Or it is a file of the user and a
            link to it leads nowhere: its denials must not be lost because of that.
    """
    data = read_bytes(path)
    if data is None and kind != "project" and (lost := lost_link(path)) is not None:
        raise ConfigError(
            f"cannot read the settings in {shown(path)}: the link {shown(lost)} leads nowhere; fix or remove it"
        )
    return None if data is None else parse_settings(data, path, kind)


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a settings file; None if it does not exist.

    Raises:
        ConfigError: It cannot be read, is no regular file, or is too large.
    """
    place = shown(path)
    try:
        path.stat()
        return read_regular_file(path, max_bytes=_MAX_BYTES, follow_symlinks=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise ConfigError(f"cannot read the settings in {place}: {exc.strerror}; change or remove the file") from exc
    except ToolError as exc:
        raise ConfigError(f"cannot read the settings in {place}: {shown(exc)}; change or remove the file") from exc


def parse_settings(data: bytes, path: Path, kind: SourceKind) -> Source:
    """Return the checked settings of a file with this content.

    Raises:
        ConfigError: As for `read_settings_file`.
    """
    place = shown(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{place}:{line}: is not UTF-8; save the file as UTF-8") from exc
    source = Source(kind, place, parse_text(text, place), {}, path, text)
    check(source)
    return source


def check(source: Source) -> Settings:
    """Return the settings of this source alone.

    Raises:
        ConfigError: A key or value in it is wrong; the first one is named, with its place.
    """
    version = source.values.get("version")
    if type(version) is int and version > FORMAT_VERSION:
        place = source.place_of(("version",))
        raise ConfigError(
            f"{place}: the settings have format version {version} and this panpan reads {FORMAT_VERSION}; update panpan"
        )
    try:
        return settings_type().model_validate(source.values)
    except ValidationError as exc:
        raise ConfigError(_sentence(source, exc.errors(include_url=False, include_input=True))) from exc


def _sentence(source: Source, errors: list[ErrorDetails]) -> str:
    first = min(errors, key=lambda error: source.line_of(_path(error)))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    path = _path(first)
    number = first["loc"][len(path)] if len(first["loc"]) > len(path) else None
    place = source.place_of_item(path, number) if isinstance(number, int) else source.place_of(path)
    if first["type"] == "extra_forbidden":
        return f"{place}: there is no setting {dotted(path)}{_suggestion(path)}{more}"
    return f"{place}: {dotted(path)} {fault(first, is_item=isinstance(number, int))}{more}"


def _path(error: ErrorDetails) -> KeyPath:
    return tuple(part for part in error["loc"] if isinstance(part, str) and part != "[key]")


def _suggestion(path: KeyPath) -> str:
    if dotted(path) in _CALLED_OTHERWISE:
        return f"; did you mean {_CALLED_OTHERWISE[dotted(path)]}?"
    return suggestion(path, tuple(_known_keys(settings_type(), (), path)))


def _known_keys(model: type[BaseModel], prefix: KeyPath, wanted: KeyPath) -> Iterable[KeyPath]:
    for name, field in model.model_fields.items():
        path = (*prefix, name)
        yield path
        annotation: Any = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _known_keys(annotation, path, wanted)
        elif path == ("providers",) and len(wanted) > 1 and wanted[0] == "providers":
            from panpan.config.settings import ProviderSettings

            yield from _known_keys(ProviderSettings, (*path, wanted[1]), wanted)
