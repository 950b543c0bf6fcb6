"""Keeps what the user answered "always" to, in his own settings file for the project, outside the project.

The file is the user's: comments, order and layout stay as they are, and a file that cannot be understood is left alone.
It is the only settings file that panpan writes by itself.
"""

from contextlib import ExitStack, suppress
from hashlib import blake2b
from pathlib import Path

from panpan.config.keys import shown
from panpan.config.settings import FORMAT_VERSION
from panpan.config.settings_file import parse_settings, read_bytes
from panpan.errors import ConfigError, ToolError
from panpan.system.atomic_write import FileChangedError, write_atomic
from panpan.system.file_lock import LockUnsupportedError, hold_lock
from panpan.system.private import make_private_folder

_LOCK_WAIT_S = 5.0
_MAX_TRIES = 5
"""Against editors, which do not know the lock."""

_BOM = b"\xef\xbb\xbf"

_HEAD = f"""# Your own settings for this project. panpan adds the permissions that you answer "always" to.
version = {FORMAT_VERSION}
"""


class RuleFile:
    """A settings file to which permission rules are added.

    Args:
        path: The file, see `Locations.local_settings`; made, private, with the first rule.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, rule: str) -> None:
        """Add the rule to `permission.allow` unless it is there. Blocks: call it from a worker thread.

        Args:
            rule: Such as `Bash(npm run *)`.

        Raises:
            ConfigError: The file cannot be read, understood or written; it is as it was.
            LockHeldError: Another process keeps it locked.
        """
        make_private_folder(self._path.parent)
        with ExitStack() as stack:
            with suppress(LockUnsupportedError):  # the digest below keeps two writers apart all the same
                stack.enter_context(hold_lock(self._path.with_suffix(".lock"), wait_s=_LOCK_WAIT_S))
            for _ in range(_MAX_TRIES):
                with suppress(FileChangedError):
                    self._add(rule)
                    return
        raise ConfigError(f"the permission could not be saved: {shown(self._path)} keeps changing; try again")

    def _add(self, rule: str) -> None:
        old = read_bytes(self._path)
        new = self._with_rule(old or b"", rule)
        if new == old:
            return
        try:
            if old is None:
                write_atomic(self._path, new, mode=0o600, must_not_exist=True)
            else:
                write_atomic(self._path, new, mode=0o600, expected_digest=blake2b(old, digest_size=16).digest())
        except FileChangedError:
            raise
        except ToolError as exc:
            raise ConfigError(f"the permission could not be saved: {shown(exc)}") from exc

    def _with_rule(self, old: bytes, rule: str) -> bytes:
        rules = parse_settings(old, self._path, "local").rules("allow")
        if rule in rules:
            return old
        try:
            new = _BOM * old.startswith(_BOM) + _appended(old.decode("utf-8-sig") or _HEAD, rule).encode()
            is_as_meant = parse_settings(new, self._path, "local").rules("allow") == (*rules, rule)
        except (UnicodeEncodeError, ConfigError) as exc:
            raise ConfigError(f"the rule {shown(rule)} cannot be written into a settings file") from exc
        if not is_as_meant:
            raise ConfigError(
                f"{shown(self._path)} is laid out in a way that panpan cannot add to; add the rule by hand"
            )
        return new


def _appended(text: str, rule: str) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    if "permission" not in document:
        document["permission"] = tomlkit.table()
    permission = document["permission"]
    if "allow" not in permission:
        permission["allow"] = tomlkit.array().multiline(True)
    permission["allow"].append(rule)
    return tomlkit.dumps(document)
