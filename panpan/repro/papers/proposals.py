"""Proposals: the numbers of a paper's tables as claims without commands.

The rule: a proposal never changes a claim that a file has. It is a proposal: nothing confirms it but a person.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from panpan.errors import ConfigError
from panpan.repro.claims.claim import Claim, Claims, Paper
from panpan.repro.claims.claims_file import claims_text, parse_claims, with_claims
from panpan.repro.papers.cell_numbers import CellNumber, is_several_numbers, read_cell, uses_decimal_comma
from panpan.repro.papers.paper_table import PaperTable, Row
from panpan.repro.papers.tables import ReadPaper
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MAX_CLAIMS = 2_000
"""Most claims of one document."""
_MAX_SLUG_CHARS = 60
_UNITS = (
    "% ‰ s ms us µs ns sec secs seconds min mins minutes h hr hrs hours d days b kb mb gb tb kib mib gib k m bn db "
    "flops mflops gflops tflops bits nats bpc bpd px mm cm km g kg mg hz khz mhz ghz w kw j kj °c usd $ € fps "
    "images/s tokens/s it/s"
)
_IN_BRACKETS = compile_late(r"[(\[]\s*(?:in\s+)?([^()\[\]]{1,9}?)\s*[)\]]")
_BEHIND_COMMA = compile_late(r",\s*(?:in\s+)?(\S{1,9})$")
_PERCENT_CAPTION = compile_late(r"(?i)[(\[]\s*(?:in\s+)?%\s*[)\]]|\bin (?:%|percent\b)|\bpercentages?\b")
_SPREAD_WORD = r"(?:standard (?:deviation|error)|\bstds?\b|\bs\.\s?[de]\.|\bsem\b|stderr)"
_ASIDE_WORD = "(?:parenthes|bracket|subscript)"
_SPREAD_ASIDE = compile_late(rf"(?i){_SPREAD_WORD}.{{0,60}}{_ASIDE_WORD}|{_ASIDE_WORD}.{{0,60}}{_SPREAD_WORD}")
_MARK = compile_late(r"\^\{[^{}]{0,8}\}|[†‡§¶*↑↓]+")
_HEAD_MARK = compile_late(r"\^\{[^{}0-9]{0,8}\}|[†‡§¶*↑↓]+|\(\s*[↑↓]\s*\)")
_SCRIPT = compile_late(r"[\^_]\{([^{}]*)\}")
_NO_SLUG = compile_late(r"[^\w.%]+")


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table, and the number of its claims."""

    name: str
    page: int | None
    claims: int


@dataclass(frozen=True, slots=True)
class Proposals:
    """Claims that a document's tables make."""

    claims: Claims
    tables: tuple[FoundTable, ...]
    left_out: int = 0
    """Cells with numbers that are not one number, such as `45.2 / 46.1`."""
    beyond: int = 0
    """Claims beyond the most that are proposed."""


def propose(paper: ReadPaper, source: str, only: Sequence[str] = ()) -> Proposals:
    """Return a claim for each number in the tables of a document.

    Args:
        paper: The document.
        source: Its file beside claims.toml, or its address.
        only: Numbers or names of the tables to take, such as `1` or `Table A2`; all if empty.

    Raises:
        ConfigError: There is no table of a name in `only`.
    """
    tables = [table for table in paper.tables.tables if not only or any(_is_named(table, name) for name in only)]
    for name in only:
        if not any(_is_named(table, name) for table in tables):
            known = ", ".join(dict.fromkeys(table.name for table in paper.tables.tables)) or "none"
            raise ConfigError(f"there is no table {name!r}; those with numbers are: {known}")
    claims: list[Claim] = []
    counts: list[FoundTable] = []
    ids: set[str] = set()
    for table in tables:
        before = len(claims)
        claims += _claims_of(table, ids)
        counts.append(FoundTable(table.name, table.page, len(claims) - before))
    left_out = sum(is_several_numbers(cell) for table in tables for row in table.rows for cell in row.cells)
    about = Paper(title=paper.tables.title, source=source, sha256=paper.sha256)
    kept = Claims(paper=about, claim=tuple(claims[:_MAX_CLAIMS]))
    return Proposals(kept, tuple(one for one in counts if one.claims), left_out, max(len(claims) - _MAX_CLAIMS, 0))


def _is_named(table: PaperTable, name: str) -> bool:
    wanted, own = name.strip().lower(), table.name.lower()
    return own in (wanted, f"table {wanted}")


def _claims_of(table: PaperTable, ids: set[str]) -> Iterator[Claim]:
    has_comma = uses_decimal_comma([cell for row in table.rows for cell in row.cells])
    numbers = [[read_cell(cell, has_decimal_comma=has_comma) for cell in row.cells] for row in table.rows]
    units = [_unit_of(table, column, [row[column] for row in numbers if column < len(row)])
             for column in range(len(table.columns))]  # fmt: skip
    has_spread_aside = bool(_SPREAD_ASIDE.search(table.caption))
    for row, read in zip(table.rows, numbers, strict=True):
        for column, number in enumerate(read[: len(table.columns)]):
            if number is not None:
                spread = number.spread or (number.aside if has_spread_aside else "")
                yield _claim(table, row, column, number, spread, number.unit or units[column], ids)


def _claim(
    table: PaperTable, row: Row, column: int, number: CellNumber, spread: str, unit: str, ids: set[str]
) -> Claim:
    label = _SCRIPT.sub(r"\1", _MARK.sub("", row.label)).strip()
    head = _SCRIPT.sub(r"\1", _HEAD_MARK.sub("", table.columns[column])).strip()
    parts = [table.name, label or "row", *([head] if len(table.columns) > 1 or not label else [])]
    claim_id = base = "/".join(slug for part in parts if (slug := _slug(part)))
    again = 1
    while claim_id in ids:
        again += 1
        claim_id = f"{base}-{again}"
    ids.add(claim_id)
    return Claim(
        id=claim_id,
        table=table.name,
        row=label,
        column=head,
        value=number.value,
        unit=unit,
        spread=abs(float(spread.replace(",", ""))) if spread else None,
        quote=_SCRIPT.sub(r" [\1]", row.quote),
        page=table.page,
    )


def _slug(text: str) -> str:
    return _NO_SLUG.sub("-", text.lower()).strip("-._")[:_MAX_SLUG_CHARS].rstrip("-._")


def _unit_of(table: PaperTable, column: int, numbers: Sequence[CellNumber | None]) -> str:
    """Return the unit in the head of a column, or `%` by the caption; empty if none is given."""
    head = _HEAD_MARK.sub("", table.columns[column]).strip()
    for found in (*_IN_BRACKETS.finditer(head), *_BEHIND_COMMA.finditer(head)):
        if found[1].lower() in _UNITS.split():
            return found[1]
    if head.endswith("%"):
        return "%"
    values = [abs(float(number.value.replace(",", ""))) for number in numbers if number is not None]
    is_percent = bool(_PERCENT_CAPTION.search(table.caption)) and bool(values) and max(values) <= 100
    return "%" if is_percent else ""


def proposed_text(proposals: Proposals) -> bytes:
    """Return a whole claims.toml of proposals."""
    return claims_text(proposals.claims).encode()


@dataclass(frozen=True, slots=True)
class Merged:
    """A claims.toml with proposals."""

    data: bytes
    added: int
    known: int
    """Proposals that the file has already."""
    differing: tuple[tuple[Claim, Claim], ...] = ()
    """Claims of the file with another value than the proposal of the same id, each with that; they stay."""


def merge(old: bytes | None, proposals: Proposals) -> Merged:
    """Return a claims.toml with the proposals that it lacks; what it has stays as it is.

    Args:
        old: The file; None if there is none.
        proposals: Claims of a document.

    Raises:
        ConfigError: The file is wrong, is about another document, or is laid out so that nothing can be added.
    """
    if old is None:
        return Merged(proposed_text(proposals), len(proposals.claims.claim), 0)
    known = parse_claims(old)
    if known.paper.sha256 and known.paper.sha256 != proposals.claims.paper.sha256:
        raise ConfigError(
            "claims.toml is about another file (paper.sha256 differs); choose another place with -o, or correct it"
        )
    there = {claim.id: claim for claim in known.claim}
    new = [claim for claim in proposals.claims.claim if claim.id not in there]
    same = [(there[claim.id], claim) for claim in proposals.claims.claim if claim.id in there]
    differing = tuple((own, other) for own, other in same if (own.value, own.spread) != (other.value, other.spread))
    return Merged(with_claims(old, new) if new else old, len(new), len(same), differing)


def source_of(paper: Path, folder: Path) -> str:
    """Return the name of a document for a claims.toml in `folder`: its path from there, else its name alone."""
    return str(paper.relative_to(folder)) if paper.is_relative_to(folder) else paper.name
