"""Settings of receipts."""

from panpan.config.settings import Table


class ReceiptSettings(Table):
    """Receipts of the commands that a session runs, `[receipts]`."""

    table = "receipts"

    enabled: bool = True
    """True if panpan records what commands read, wrote and tested."""
    pytest_report: bool = True
    """True if pytest is asked for a report that a machine reads, by PYTEST_ADDOPTS."""
