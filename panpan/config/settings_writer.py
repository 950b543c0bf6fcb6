"""Changes to the user's own settings files: permissions answered with "always", and the look of the terminal.

The files are the user's: comments, order and layout stay as they are, and a file that cannot be understood is left
alone.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from panpan.config.keys import KeyPath, dotted, leaves, shown
from panpan.config.locations import Locations
from panpan.config.settings import FORMAT_VERSION, rule_text
from panpan.config.settings_file import SourceKind, parse_settings, read_bytes
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.file_lock import LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import make_private_folder

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_RULES = ("permission", "allow")
_LOCK_WAIT_S = 5.0
_MAX_TRIES = 5
"""Tries against editors, which do not know the lock."""

_BOM = b"\xef\xbb\xbf"

_HEAD = {
    "local": '# Your own settings for this project. panpan adds the permissions that you answer "always" to.\n',
    "user": "# Your own settings for every project.\n",
}


class RuleFile:
    """A settings file with permission rules.

    Args:
        path: The file, see `Locations.local_settings`; the first rule creates it, private.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def place(self) -> str:
        """The file, as at the beginning of the places of its rules."""
        return shown(self._path)

    def save(self, rule: str) -> None:
        """Add the rule to `permission.allow` unless it is there. Blocks: call it from a worker thread.

        Args:
            rule: The rule, such as `Bash(npm run *)`.

        Raises:
            ConfigError: The file cannot be read, understood or written; it is unchanged.
            LockHeldError: Another process keeps it locked.
        """
        self.add("permission", "allow", [rule])

    def add(self, table: str, key: str, texts: Sequence[str]) -> None:
        """Add texts to a list of the file unless they are there. Blocks, and raises the same errors as `save`.

        Args:
            table: The table, such as `sandbox`.
            key: The key of the list, such as `outside`.
            texts: The texts, in the order in which to add them.
        """

        def with_texts(old: bytes) -> bytes:
            known = self._listed(old, table, key)
            more = [text for text in texts if text not in known]
            if not more:
                return old
            return self._changed(old, lambda document: _add(document, table, key, more), (table, key), (*known, *more))

        _rewrite(self._path, "local", with_texts, "the permission" if table == "permission" else f"{table}.{key}")

    def remove(self, rule: str) -> None:
        """Remove the rule from `permission.allow` if it is there. Blocks, and raises the same errors as `save`."""

        def without_rule(old: bytes) -> bytes:
            rules = self._listed(old, *_RULES)
            if rule not in rules:
                return old
            left = tuple(other for other in rules if other != rule)
            return self._changed(old, lambda document: _remove(document, rule), _RULES, left)

        _rewrite(self._path, "local", without_rule, "the removal of the permission")

    def _listed(self, data: bytes, table: str, key: str) -> Sequence[str]:
        items = parse_settings(data, self._path, "local").values.get(table, {}).get(key, ())
        return tuple(rule_text(item) for item in items)

    def _changed(
        self, old: bytes, change: Callable[["TOMLDocument"], None], place: tuple[str, str], wanted: Sequence[str]
    ) -> bytes:
        try:
            new = _edited(old, change)
            is_as_meant = self._listed(new, *place) == tuple(wanted)
        except (UnicodeEncodeError, ConfigError) as exc:
            raise ConfigError(f"{shown(wanted[-1])} cannot be written into a settings file") from exc
        if not is_as_meant:
            name = ".".join(place)
            raise ConfigError(f"{self.place} is laid out in a way that panpan cannot change; change {name} by hand")
        return new


def own_file(places: Locations, key: KeyPath) -> tuple[Path, Literal["user", "local"]]:
    """Return the user's file that decides a setting, and its kind.

    Raises:
        ConfigError: The file for this project cannot be read or understood.
    """
    path = places.local_settings
    data = read_bytes(path)
    if data is not None and key in dict(leaves(parse_settings(data, path, "local").values)):
        return path, "local"
    return places.user_settings, "user"


def save_setting(places: Locations, key: KeyPath, value: str | bool | None) -> Path:
    """Set a setting in the user's file that decides it, and return that file; None removes the setting from it.

    The file is created if it is missing. Blocks: use a worker thread.

    Raises:
        ConfigError: The file cannot be read, understood or written; it is unchanged.
        LockHeldError: Another process keeps it locked.
    """
    path, kind = own_file(places, key)
    *tables, name = key

    def change(document: "TOMLDocument") -> None:
        table = _table(document, tables[0]) if tables else document
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value

    def set_in(data: bytes) -> dict[KeyPath, Any]:
        return {at: one for at, one in leaves(parse_settings(data, path, kind).values) if one != {}}

    def with_value(old: bytes) -> bytes:
        wanted = {at: one for at, one in set_in(old).items() if at != key}
        new = _edited(old, change)
        if set_in(new) != (wanted if value is None else {**wanted, key: value}):
            by_hand = f"{shown(path)} is laid out in a way that panpan cannot change; set {dotted(key)} by hand"
            raise ConfigError(by_hand)
        return new

    _rewrite(path, kind, with_value, dotted(key))
    return path


def save_table(places: Locations, table: str, name: str, values: Mapping[str, Any] | None) -> Path:
    """Set `[table.NAME]` in the user's settings file, and return that file; None removes it.

    The file is created if it is missing. Blocks: use a worker thread.

    Raises:
        ConfigError: The file cannot be read, understood or written; it is unchanged.
        LockHeldError: Another process keeps it locked.
    """
    path = places.user_settings

    def change(document: "TOMLDocument") -> None:
        import tomlkit

        if table not in document:
            document[table] = tomlkit.table(is_super_table=True)
        document[table].pop(name, None)
        if values is not None:
            document[table][name] = _as_table(values)

    def others(data: bytes) -> dict[KeyPath, Any]:
        every = leaves(parse_settings(data, path, "user").values)
        return {at: one for at, one in every if one != {} and at[:2] != (table, name)}

    def with_table(old: bytes) -> bytes:
        by_hand = f"{shown(path)} is laid out in a way that panpan cannot change; change [{table}.{name}] by hand"
        try:
            new = _edited(old, change)
            found = parse_settings(new, path, "user").values.get(table, {}).get(name)
        except (ConfigError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise ConfigError(by_hand) from error
        if others(new) != others(old) or found != (None if values is None else dict(values)):
            raise ConfigError(by_hand)
        return new

    _rewrite(path, "user", with_table, f"{table}.{name}")
    return path


def _as_table(values: Mapping[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.table()
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner = tomlkit.inline_table()
            inner.update(value)
            table.add(key, inner)
        else:
            table.add(key, value)
    return table


def _rewrite(path: Path, kind: SourceKind, changed: Callable[[bytes], bytes], what: str) -> None:
    """Replace the content of a file by `changed` of the old one, even if others write it at the same time."""
    make_private_folder(path.parent)
    with ExitStack() as stack:
        with suppress(LockUnsupportedError):  # the digest below still detects another writer
            stack.enter_context(hold_lock(path.with_suffix(".lock"), wait_s=_LOCK_WAIT_S))
        for _ in range(_MAX_TRIES):
            with suppress(FileChangedError):
                _rewrite_once(path, kind, changed, what)
                return
    raise ConfigError(f"{what} could not be saved: {shown(path)} keeps changing; try again")


def _rewrite_once(path: Path, kind: SourceKind, changed: Callable[[bytes], bytes], what: str) -> None:
    old = read_bytes(path)
    begun = old or f"{_HEAD[kind]}version = {FORMAT_VERSION}\n".encode()
    new = changed(begun)
    if new == begun:
        return
    try:
        if old is None:
            write_atomic(path, new, mode=0o600, follow_symlinks=True, must_not_exist=True)
        else:
            write_atomic(
                path, new, mode=0o600, follow_symlinks=True, expected_digest=blake2b(old, digest_size=16).digest()
            )
    except FileChangedError:
        raise
    except ToolError as exc:
        raise ConfigError(f"{what} could not be saved: {shown(exc)}") from exc


def _edited(old: bytes, change: Callable[["TOMLDocument"], None]) -> bytes:
    """Return a settings file after a change; everything else stays as it was written."""
    import tomlkit

    document = tomlkit.parse(old.decode("utf-8-sig"))
    change(document)
    return _BOM * old.startswith(_BOM) + tomlkit.dumps(document).encode()


def _table(document: "TOMLDocument", name: str) -> Any:
    import tomlkit

    if name not in document:
        document[name] = tomlkit.table()
    return document[name]


def _add(document: "TOMLDocument", name: str, key: str, texts: Sequence[str]) -> None:
    import tomlkit

    table = _table(document, name)
    if key not in table:
        table[key] = tomlkit.array().multiline(True)
    table[key].extend(texts)


def _remove(document: "TOMLDocument", rule: str) -> None:
    allow = document["permission"]["allow"]
    for at in reversed([at for at, item in enumerate(allow.unwrap()) if rule_text(item) == rule]):
        del allow[at]
