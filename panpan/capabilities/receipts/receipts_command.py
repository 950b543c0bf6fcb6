"""The slash command `/receipts`."""

from collections.abc import Sequence
from datetime import UTC, datetime

from panpan.capabilities.receipts.descriptions import full_receipt, short_receipt
from panpan.capabilities.receipts.session_receipts import SessionReceipt, SessionReceipts
from panpan.errors import ConfigError
from panpan.session.command import Terminal, say, say_pairs
from panpan.system.text.terminal_text import clean_line

MAX_SHOWN = 30
"""Most receipts in the list, the newest."""


async def show_receipts(terminal: Terminal, wanted: str) -> None:
    """List the commands that ran and what came of them, or show one in full.

    Raises:
        ConfigError: Receipts are disabled, or there is none of this id.
    """
    receipts = terminal.session.find(SessionReceipts)
    if receipts is None:
        raise ConfigError("there are no receipts: they are disabled ([receipts] enabled = false)")
    await receipts.settled()
    if wanted:
        one = receipt_of(wanted, receipts.receipts)
        say_pairs(terminal, full_receipt(one, await one.freshness()))
        return
    told = [one for one in receipts.receipts if one.receipt.kind != "look"]
    looks = len(receipts.receipts) - len(told)
    if not told:
        say(terminal, f"no command has ended in this session{f', but {looks:,} that only looked' if looks else ''}")
        return
    if (hidden := len(told) - MAX_SHOWN) > 0:
        say(terminal, f"… {hidden:,} before these", "dim")
    now = datetime.now(UTC)
    shown = [(one.receipt.id, short_receipt(one, await one.freshness(), now)) for one in told[-MAX_SHOWN:]]
    say_pairs(terminal, shown)
    if looks:
        say(terminal, f"{looks:,} more only looked; /receipts ID shows one in full", "dim")


def receipt_of(wanted: str, receipts: Sequence[SessionReceipt]) -> SessionReceipt:
    """Return the receipt of an id, or of the beginning of one.

    Raises:
        ConfigError: There is none, or several.
    """
    found = [one for one in receipts if one.receipt.id.startswith(wanted.lower())]
    shown = clean_line(wanted)[:40]
    if not found:
        raise ConfigError(f"there is no receipt {shown}; /receipts lists them")
    if len(found) > 1:
        raise ConfigError(f"several receipts begin with {shown}; /receipts lists them")
    return found[0]
