"""Settings with the tables of features."""

from typing import Any

from panpan.config.settings import Settings, Table, settings_type


def settings_with(*tables: Table, **core: Any) -> Settings:
    """Settings as they come from files; each table is put where its feature has it."""
    return settings_type()(**core, **{table.table: table for table in tables})
