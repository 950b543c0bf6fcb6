"""The rows of the table of programs, with the command lines of their examples."""

from collections.abc import Iterator, Mapping

from panpan.shell_analysis.programs import Row, load_table


def all_rows() -> dict[str, Row]:
    """Return every row, also those of subcommands, by the words that lead to it."""
    return dict(_rows(load_table().programs, ""))


def _rows(rows: Mapping[str, Row], before: str) -> Iterator[tuple[str, Row]]:
    for name, row in rows.items():
        yield f"{before}{name}", row
        yield from _rows(row.sub, f"{before}{name} ")


def harmless_lines(name: str, row: Row) -> list[str]:
    """Return the lines that the row says are harmless."""
    return [f"{name} {arguments}".strip() for arguments in row.match]


def refused_lines(name: str, row: Row) -> list[str]:
    """Return the lines that the row says are not."""
    return [f"{name} {arguments}".strip() for arguments in row.no_match]
