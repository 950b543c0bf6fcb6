"""A check as a table for people: a line for each claim, and below it the reasons. At most 100 columns."""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from panpan.repro.checking.evidence import Evidence
from panpan.repro.checking.judging import obstacle_of
from panpan.repro.checking.results import CheckReport, Judgement
from panpan.repro.claims.claim import Claim, Claims
from panpan.repro.claims.written_number import read_number, shown_number
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_line, counted

MAX_COLUMNS = 100
_MIN_COLUMNS = 80
_GAP = "  "
_WIDEST = {"paper": 26, "the paper says": 26, "measured": 32, "state": 40}
"""Most columns of a cell, by the head of its column."""
_MOST_NAMED = 3
_INDENT = "  "


def check_lines(report: CheckReport, columns: int = MAX_COLUMNS) -> Iterator[str]:
    """Yield a whole check.

    Args:
        report: The check.
        columns: Width of the screen.
    """
    columns = _bounded(columns)
    rows = [(one.verdict, one.claim.id, claimed_text(one.claim), measured_text(one)) for one in report.judgements]
    data = [f"data: {clean_line(one.problem)}" for one in report.data if one.problem]
    yield from _blocks(
        [*table_lines(("verdict", "claim", "paper", "measured"), rows, columns)],
        [*reason_lines(report.judgements, columns)],
        [line for text in data for line in _wrapped(text, columns)],
        _wrapped(conclusion(report), columns),
    )


def conclusion(report: CheckReport) -> str:
    """Return the number of claims with each verdict."""
    counts = ", ".join(f"{number:,} {verdict}" for verdict, number in report.counts.items())
    return f"{counted(len(report.judgements), 'claim')}: {counts}" if counts else "no claims"


def claim_lines(claims: Claims, confirms: Callable[[Claim], bool], columns: int = MAX_COLUMNS) -> Iterator[str]:
    """Yield the claims of a file that was not checked yet.

    Args:
        claims: The claims.
        confirms: True if a person has confirmed a claim.
        columns: Width of the screen.
    """
    columns = _bounded(columns)
    rows = [(one.id, claimed_text(one), _state(one, is_confirmed=confirms(one))) for one in claims.claim]
    commands = dict.fromkeys(f"command: {clean_line(one.command)}" for one in claims.claim if one.command)
    yield from _blocks(
        [*table_lines(("claim", "paper", "state"), rows, columns)],
        [line for text in commands for line in _wrapped(text, columns)],
        [f"{counted(len(rows), 'claim')}, not checked yet"],
    )


def _blocks(*blocks: Sequence[str]) -> Iterator[str]:
    """Yield the lines of blocks, with an empty line between them."""
    for number, block in enumerate(filter(None, blocks)):
        yield from ["", *block] if number else block


def _state(claim: Claim, *, is_confirmed: bool) -> str:
    if claim.not_reproducible:
        return "not reproducible"
    obstacle = obstacle_of(claim, is_confirmed=is_confirmed)
    return "ready" if obstacle is None else obstacle.reason.partition(";")[0]


def claimed_text(claim: Claim) -> str:
    """Return the number of the paper with its spread and unit, such as `83.1 ± 0.3 %`."""
    if not claim.value:
        return "no number"
    spread = f" ± {claim.spread:g}" if claim.spread is not None and "±" not in claim.value else ""
    unit = f" {claim.unit}" if claim.unit and not claim.value.endswith(claim.unit) else ""
    return clean_line(f"{claim.value}{spread}{unit}")


def measured_text(judgement: Judgement) -> str:
    """Return the number that was measured, or the range and count of several; empty if there is none.

    A number that reproduces the claim is in front of the range of other seeds.
    """
    claimed = read_number(judgement.claim.value)
    if claimed is None or not judgement.measured:
        return ""
    evidence = Evidence(judgement.claim, claimed, judgement.runs)
    values = evidence.measured or [*map(Decimal, judgement.measured)]
    low, high = (shown_number(end, claimed) for end in (min(values), max(values)))
    if min(values) == max(values):
        return low
    ends, runs = low if low == high else f"{low} to {high}", counted(len(values), "run")
    if judgement.verdict == "reproduced" and evidence.at_reference:
        return f"{shown_number(evidence.at_reference[0], claimed)}; {ends} in {runs}"
    return f"{ends}, {runs}"


def reason_lines(
    judgements: Sequence[Judgement],
    columns: int = MAX_COLUMNS,
    name_of: Callable[[Claim], str] = lambda claim: claim.id,
) -> Iterator[str]:
    """Yield the reasons of verdicts that need one, each once.

    Args:
        judgements: The judgements.
        columns: Width of the screen.
        name_of: Returns the name of a claim for people.
    """
    columns = _bounded(columns)
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in judgements:
        if one.verdict != "reproduced":
            groups.setdefault((one.reason, one.hints), []).append(name_of(one.claim))
    for (reason, hints), names in groups.items():
        yield from _wrapped(f"{_named(names)}: {clean_line(reason)}", columns)
        for hint in hints:
            yield from _wrapped(f"{_INDENT}perhaps: {clean_line(hint)}", columns)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    between = "; " if any(", " in name for name in names) else ", "
    return between.join(map(clean_line, names[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]], columns: int = MAX_COLUMNS) -> Iterator[str]:
    """Yield a table in which the names of claims get the columns that are left; nothing if it has no rows.

    Args:
        head: Heads of the columns; one of them is `claim`.
        rows: Texts of cells, also a stranger's.
        columns: Width of the screen.
    """
    if not rows:
        return
    columns = _bounded(columns)
    cells = [tuple(head), *(tuple(map(clean_line, row)) for row in rows)]
    widths = {
        name: min(max(cell_width(row[at]) for row in cells), _WIDEST.get(name, columns)) for at, name in enumerate(head)
    }
    others = sum(width for name, width in widths.items() if name != "claim") + len(_GAP) * (len(head) - 1)
    widths["claim"] = min(widths["claim"], columns - others)
    for row in cells:
        yield _GAP.join(_cell(text, widths[name]) for name, text in zip(head, row, strict=True)).rstrip()


def _bounded(columns: int) -> int:
    return max(min(columns, MAX_COLUMNS), _MIN_COLUMNS)


def _cell(text: str, width: int) -> str:
    """Return a text of exactly this width, cut in its middle if it is longer."""
    if cell_width(text) > width:
        begin, end = len(text) // 2, len(text) // 2
        while cell_width(text[:begin]) + cell_width(text[end:]) > width - 1:
            begin, end = (begin - 1, end) if begin > len(text) - end else (begin, end + 1)
        text = f"{text[:begin]}…{text[end:]}"
    return text + " " * (width - cell_width(text))


def _wrapped(text: str, columns: int) -> Sequence[str]:
    """Return a text wrapped between words by the cells that they take; a word that is too long is cut."""
    lines = [" " * (len(text) - len(text.lstrip()))]
    further = f"{lines[0]}{_INDENT}"
    for word in text.split():
        gap = " " if lines[-1].strip() else ""
        if gap and cell_width(lines[-1]) + 1 + cell_width(word) > columns:
            lines.append(further)
            gap = ""
        lines[-1] += gap
        for char in word:
            if cell_width(lines[-1] + char) > columns:
                lines.append(further)
            lines[-1] += char
    return lines
