"""Keys that the user gave to `panpan login`: one for each vendor, in the system's keyring or in a private file.

The rule: `~/.panpan/keys` has a file for each vendor, of mode 0600. It holds the key, or the word `keyring` if the
keyring has it. So a start only lists a folder, and the keyring is loaded only for a key that it has and that is needed.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from panpan.errors import ConfigError, PanpanError

LOGIN = "panpan login"
"""Place of a stored key, for messages."""

PACKAGE = "keyring>=25,<27"
"""Requirement of the package for the system's keyring, as in the extra `keyring` of pyproject.toml."""

FOLDER = "keys"
MAX_KEY_CHARS = 10_000
_IN_KEYRING = "keyring"

KEYRING_S = 20.0
"""Longest wait for a keyring, which may ask the user for its password."""

KeyPlace: TypeAlias = Literal["keyring", "file"]
ResultT = TypeVar("ResultT")


class Keyring(Protocol):
    """Store of the user's passwords; every call may take long and fail in any way."""

    def is_usable(self) -> bool:
        """Return True if there is a keyring that stores passwords encrypted."""
        ...

    def get(self, service: str, name: str) -> str | None: ...

    def set(self, service: str, name: str, key: str) -> None: ...

    def delete(self, service: str, name: str) -> None: ...


class SystemKeyring:
    """The keyring of the system, through the package `keyring`, which is imported on first use."""

    def is_usable(self) -> bool:
        is_there = find_spec("keyring") is not None
        # like keyring's own `recommended`: neither plain text nor a backend that keeps nothing
        return is_there and float(self._package.get_keyring().priority) >= 1

    def get(self, service: str, name: str) -> str | None:
        found = self._package.get_password(service, name)
        return None if found is None else str(found)

    def set(self, service: str, name: str, key: str) -> None:
        self._package.set_password(service, name, key)

    def delete(self, service: str, name: str) -> None:
        self._package.delete_password(service, name)

    @property
    def _package(self) -> Any:
        return import_module("keyring")


class StoredKeys:
    """The stored keys below a panpan home.

    Args:
        home: The panpan home; None for no keys.
        keyring: Keyring for the keys if it is usable; None for that of the system.
        time_limit_s: Longest wait for the keyring.
    """

    def __init__(self, home: Path | None, keyring: Keyring | None = None, *, time_limit_s: float = KEYRING_S) -> None:
        self._folder = None if home is None else home / FOLDER
        self._keyring = keyring or SystemKeyring()
        self._time_limit_s = time_limit_s
        self._from_keyring: dict[str, str] = {}

    @property
    def vendors(self) -> Sequence[str]:
        """Names of the vendors that have a key."""
        if self._folder is None:
            return ()
        try:
            return sorted(name for name in os.listdir(self._folder) if not name.startswith("."))  # noqa: PTH208 - a start pays
        except OSError:
            return ()

    @property
    def uses_keyring(self) -> bool:
        """True if the next key goes into a keyring."""
        try:
            return self._asked(self._keyring.is_usable, "panpan")
        except ConfigError:
            return False

    @property
    def known(self) -> Sequence[str]:
        """Every key that this process may have read: those in files, and those that the keyring gave."""
        found = [*self._from_keyring.values()]
        for vendor in self.vendors:
            with suppress(ConfigError):
                found.append(self._read(vendor))
        return [key for key in found if key != _IN_KEYRING]

    def has(self, vendor: str) -> bool:
        """Return True if a vendor has a key, without reading it."""
        return self._folder is not None and os.path.lexists(self._folder / vendor)

    def place_of(self, vendor: str) -> KeyPlace:
        """Return the place of a vendor's key; raise ConfigError if its file cannot be read."""
        return "keyring" if self._read(vendor) == _IN_KEYRING else "file"

    def get(self, vendor: str) -> str | None:
        """Return a vendor's key, or None if it has none.

        Raises:
            ConfigError: It cannot be read.
        """
        if not self.has(vendor):
            return None
        if (key := self._read(vendor)) != _IN_KEYRING:
            return key
        if vendor not in self._from_keyring:
            found = self._asked(lambda: self._keyring.get(self._service, vendor), vendor)
            if not found:
                raise ConfigError(f"the keyring has no key for {vendor} any more; run: {LOGIN} {vendor}")
            self._from_keyring[vendor] = found
        return self._from_keyring[vendor]

    def keep(self, vendor: str, key: str) -> str:
        """Store a key in place of an earlier one, and return its place, for the user.

        Raises:
            ConfigError: It cannot be written.
        """
        from panpan.system.files.atomic_write import write_atomic
        from panpan.system.files.folder_tree import make_private_folder

        in_keyring = False
        with suppress(ConfigError):
            in_keyring = self._asked(lambda: self._kept(vendor, key), vendor)
        path = self._path(vendor)
        make_private_folder(path.parent)
        try:
            write_atomic(path, f"{_IN_KEYRING if in_keyring else key}\n".encode(), mode=0o600)
        except PanpanError as exc:
            raise ConfigError(f"the key could not be kept: {exc}") from exc
        self._from_keyring.pop(vendor, None)
        return self.shown_place(vendor)

    def forget(self, vendor: str) -> None:
        """Remove a vendor's key.

        Raises:
            ConfigError: It cannot be removed.
        """
        if self.has(vendor) and self.place_of(vendor) == "keyring":
            with suppress(ConfigError):  # the entry, or the keyring itself, is gone
                self._asked(lambda: self._keyring.delete(self._service, vendor), vendor)
        self._from_keyring.pop(vendor, None)
        try:
            self._path(vendor).unlink(missing_ok=True)
        except OSError as exc:
            raise ConfigError(f"{self._path(vendor)} cannot be removed: {exc.strerror}") from exc

    def shown_place(self, vendor: str) -> str:
        """Return the place of a vendor's key, for people."""
        in_keyring = self.place_of(vendor) == "keyring"
        return "your keyring" if in_keyring else f"{self._path(vendor)}, which only you can read"

    @property
    def _service(self) -> str:
        return f"panpan {self._folder}"

    def _path(self, vendor: str) -> Path:
        if self._folder is None:
            raise ConfigError("there is no place for keys here")
        return self._folder / vendor

    def _kept(self, vendor: str, key: str) -> bool:
        """Store a key in the keyring, and return True if the keyring gives it back."""
        if not self._keyring.is_usable():
            return False
        self._keyring.set(self._service, vendor, key)
        return self._keyring.get(self._service, vendor) == key

    def _read(self, vendor: str) -> str:
        from panpan.system.files.folder_tree import open_private_file

        path = self._path(vendor)
        advice = f"remove it, and run: {LOGIN} {vendor}"
        try:
            with os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file:
                key = file.read(MAX_KEY_CHARS).decode("ascii").strip()
        except OSError as exc:
            raise ConfigError(f"the key in {path} cannot be read ({exc.strerror}); {advice}") from exc
        except UnicodeDecodeError:
            key = ""
        if not key:
            raise ConfigError(f"{path} holds no key; {advice}")
        return key

    def _asked(self, call: Callable[[], ResultT], vendor: str) -> ResultT:
        """Return the keyring's answer to a call; turn any failure into a ConfigError that shows no key."""
        results: list[ResultT] = []
        failures: list[str] = []

        def work() -> None:
            try:
                results.append(call())
            except Exception as exc:  # the backend may belong to the system or to any package
                is_gone = isinstance(exc, ModuleNotFoundError)
                failures.append("the package keyring is missing" if is_gone else type(exc).__name__)

        thread = Thread(target=work, daemon=True, name="keyring")  # a backend that hangs must not delay the exit
        thread.start()
        thread.join(self._time_limit_s)
        if results:
            return results[0]
        why = failures[0] if failures else "it does not answer"
        raise ConfigError(
            f"the key for {vendor} is in your keyring, which cannot be used ({why}); run: {LOGIN} {vendor}"
        )


NO_KEYS = StoredKeys(None)
