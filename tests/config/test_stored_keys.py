"""Keys of `panpan login`: where they are kept, and what is said where they cannot be."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from panpan.config.known_secrets import provider_keys, secrets_of_run
from panpan.config.stored_keys import StoredKeys
from panpan.errors import ConfigError
from tests.config.conftest import Place

KEY = "sk-ant-of-a-test-0123456789"


class FakeKeyring:
    """A keyring in memory; `fails` is called before each use."""

    def __init__(self, fails: Callable[[], object] = lambda: None) -> None:
        self.fails = fails
        self.kept: dict[tuple[str, str], str] = {}

    def is_usable(self) -> bool:
        self.fails()
        return True

    def get(self, service: str, name: str) -> str | None:
        self.fails()
        return self.kept.get((service, name))

    def set(self, service: str, name: str, key: str) -> None:
        self.fails()
        self.kept[service, name] = key

    def delete(self, service: str, name: str) -> None:
        del self.kept[service, name]


class NoKeyring(FakeKeyring):
    def is_usable(self) -> bool:
        return False


def test_key_without_keyring_is_in_a_private_file(tmp_path: Path) -> None:
    keys = StoredKeys(tmp_path / "home", NoKeyring())

    assert not keys.has("anthropic")
    assert keys.get("anthropic") is None
    assert str(tmp_path / "home/keys/anthropic") in keys.keep("anthropic", KEY)
    assert StoredKeys(tmp_path / "home", NoKeyring()).get("anthropic") == KEY
    assert (tmp_path / "home/keys/anthropic").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "home/keys").stat().st_mode & 0o777 == 0o700
    assert keys.known == [KEY]
    keys.forget("anthropic")
    assert (keys.vendors, list((tmp_path / "home/keys").iterdir())) == ([], [])


def test_key_in_the_keyring_is_in_no_file(tmp_path: Path) -> None:
    ring = FakeKeyring()
    keys = StoredKeys(tmp_path, ring)

    assert keys.keep("openai", KEY) == "your keyring"
    assert KEY not in (tmp_path / "keys/openai").read_text()
    assert keys.known == []
    assert keys.get("openai") == KEY
    assert keys.known == [KEY]
    assert StoredKeys(tmp_path / "other", ring).get("openai") is None
    keys.forget("openai")
    assert ring.kept == {}


def test_key_that_moves_to_a_file_is_used_from_there(tmp_path: Path) -> None:
    ring = FakeKeyring()
    StoredKeys(tmp_path, ring).keep("openai", "sk-the-old-one-123")
    keys = StoredKeys(tmp_path, NoKeyring())

    keys.keep("openai", KEY)

    assert (keys.place_of("openai"), keys.get("openai")) == ("file", KEY)


def test_keyring_that_hangs_or_fails_holds_nothing_up(tmp_path: Path) -> None:
    never = Event()

    def fail() -> None:
        raise RuntimeError(f"cannot keep {KEY}")

    for number, fails in enumerate((never.wait, fail)):
        ring = FakeKeyring()
        ring.kept["", ""] = ""
        keys = StoredKeys(tmp_path / str(number), ring, time_limit_s=0.05)
        StoredKeys(tmp_path / str(number), ring).keep("anthropic", KEY)
        ring.fails = fails
        with pytest.raises(ConfigError, match="in your keyring, which cannot be used") as caught:
            keys.get("anthropic")
        assert KEY not in str(caught.value)
        assert "keys/anthropic" in keys.keep("anthropic", KEY)
    never.set()


def test_key_that_left_the_keyring_is_told(tmp_path: Path) -> None:
    ring = FakeKeyring()
    StoredKeys(tmp_path, ring).keep("anthropic", KEY)
    ring.kept.clear()

    with pytest.raises(ConfigError, match="no key for anthropic any more; run: panpan login anthropic"):
        StoredKeys(tmp_path, ring).get("anthropic")


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe"])
def test_file_without_a_key_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/groq").write_bytes(content)

    with pytest.raises(ConfigError, match="holds no key; remove it, and run: panpan login groq"):
        StoredKeys(tmp_path, NoKeyring()).get("groq")


def test_links_are_neither_read_nor_written(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept as it is")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/groq").symlink_to(other)
    keys = StoredKeys(tmp_path, NoKeyring())

    with pytest.raises(ConfigError, match="cannot be read"):
        keys.get("groq")
    with pytest.raises(ConfigError, match="could not be kept"):
        keys.keep("groq", KEY)
    assert other.read_text() == "kept as it is"


def test_file_that_others_could_read_is_closed(tmp_path: Path) -> None:
    keys = StoredKeys(tmp_path, NoKeyring())
    keys.keep("xai", KEY)
    (tmp_path / "keys/xai").chmod(0o644)

    assert keys.get("xai") == KEY
    assert (tmp_path / "keys/xai").stat().st_mode & 0o777 == 0o600


def test_stored_keys_are_taken_out_of_logs_and_results(place: Place) -> None:
    keys = StoredKeys(place.locations.home, NoKeyring())
    redactor = provider_keys({}, place.load().settings, keys)
    keys.keep("anthropic", KEY)

    assert redactor.redact(f"it is {KEY}.") == "it is [redacted]."
    assert KEY in secrets_of_run(place.locations, {})


KEYRING = """
import os, pathlib
file = pathlib.Path(os.environ["KEYRING_FILE"])
def get_keyring():
    class Backend: priority = float(os.environ["KEYRING_PRIORITY"])
    return Backend
def get_password(service, name):
    return file.read_text() if file.exists() else None
def set_password(service, name, key):
    file.write_text(key)
def delete_password(service, name):
    file.unlink()
"""


@pytest.mark.parametrize(("priority", "place"), [("5", "keyring"), ("0.5", "file"), ("0", "file")])
def test_package_keyring_is_used_if_it_is_safe(tmp_path: Path, priority: str, place: str) -> None:
    (tmp_path / "keyring.py").write_text(KEYRING)
    program = (
        "import pathlib, sys\n"
        "from panpan.config.stored_keys import StoredKeys\n"
        "keys = StoredKeys(pathlib.Path('home').absolute())\n"
        "keys.has('anthropic')\n"
        "assert 'keyring' not in sys.modules\n"
        f"keys.keep('anthropic', '{KEY}')\n"
        "print(keys.place_of('anthropic'), keys.get('anthropic'), flush=True)\n"
        "keys.forget('anthropic')\n"
        "assert keys.get('anthropic') is None\n"
    )
    env = os.environ | {"PYTHONPATH": str(tmp_path), "KEYRING_FILE": "kept", "KEYRING_PRIORITY": priority}

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert (done.stdout, done.stderr) == (f"{place} {KEY}\n", "")
    assert not (tmp_path / "kept").exists()
