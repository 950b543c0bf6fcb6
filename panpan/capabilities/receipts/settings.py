"""Settings of receipts."""

from typing import Literal, TypeAlias

from panpan.config.settings import Table

Verifying: TypeAlias = Literal["report", "ask-once", "require", "off"]
"""report: a line says what commands have shown; ask-once: the model is asked once about claims that none shows;
require: it is asked up to three times, and then the turn counts as failed; off: nothing."""


class ReceiptSettings(Table):
    """Receipts of the commands that a session runs, `[receipts]`."""

    table = "receipts"

    enabled: bool = True
    """True if panpan records what commands read, wrote and tested."""
    pytest_report: bool = True
    """True if pytest is asked for a report that a machine reads, by PYTEST_ADDOPTS."""
    verification: Verifying = "report"
    """Treatment of claims of an answer, such as "all tests pass", that no command of the session shows: they are
    reported (`report`); the model is asked about them once (`ask-once`); it is asked up to three times, and then the
    run counts as failed (`require`); nothing, and there is no line about the answer (`off`)."""
