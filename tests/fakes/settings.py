"""Settings with the tables of features."""

from typing import Any

from panpan.config.settings import Settings, Table, settings_type


def settings_with(*tables: Table, **core: Any) -> Settings:
    """Return settings as if from files, with each table under its name."""
    return settings_type()(**core, **{table.table: table for table in tables})
