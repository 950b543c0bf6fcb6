"""The owner of a session's lock is named without the secrets of their command line."""

from panpan.session.log.session_log import MAX_COMMAND_CHARS, describe_lock_owner
from panpan.system.files.file_lock import LockHolder


def test_unknown_lock_owner_is_described_as_nothing() -> None:
    assert describe_lock_owner(None) == ""


def test_lock_owner_omits_unknown_parts() -> None:
    assert describe_lock_owner(LockHolder(7, "", None)) == " (process 7)"
    assert describe_lock_owner(LockHolder(7, "panpan -c", None)) == " (process 7: panpan -c)"
    assert describe_lock_owner(LockHolder(7, "panpan -c", 1_790_000_000)).startswith(
        " (process 7, running since 2026-09-"
    )


def test_lock_owner_hides_keys_and_terminal_sequences() -> None:
    shown = describe_lock_owner(
        LockHolder(7, "panpan --api-key swordfish --api-key=pike -m \x1b[31msk-ant-api03-" + "a" * 80, None)
    )

    assert shown.startswith(" (process 7: panpan --api-key [redacted] --api-key=[redacted] -m")
    assert "\x1b" not in shown
    assert "aaaa" not in shown


def test_lock_owner_cuts_a_long_command() -> None:
    shown = describe_lock_owner(LockHolder(7, "panpan " + "word " * 100, None))

    assert len(shown) == len(" (process 7: )") + MAX_COMMAND_CHARS
    assert shown.endswith("…)")
