"""The report of a reproduction: what it says, and its form as Markdown.

The rule: it is a pure function of the check and of what is told beside it. Names and texts come from papers, commands
and models, and are escaped for the place where they stand.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import get_args

from panpan.batch.reporting.report import in_markdown, markdown_table
from panpan.batch.store.wording import duration, money, shortened
from panpan.receipts.receipt import EnvironmentIdentity, FileDigest, Receipt
from panpan.repro.checking.check_table import claimed_text, measured_text
from panpan.repro.checking.results import CheckReport, DataCheck, Judgement
from panpan.repro.claims.claim import Claim, Verdict
from panpan.system.text.terminal_text import size_text
from panpan.types.dataclass import dataclass
from panpan.version import __version__

VERDICTS: Mapping[Verdict, str] = {
    "reproduced": "the number is the paper's, within the tolerance",
    "within spread": "runs with different seeds give numbers around the paper's, so that it may be one of them",
    "deviates": "the number comes out the same each time, and it is not the paper's",
    "not reproducible": "what the number needs is gone or is not what the paper had, or no two runs agree",
    "not run": "no command ran, or it gave no number; nothing is said about the paper",
}
"""Verdicts in the order of reports, each with its meaning."""
assert set(VERDICTS) == set(get_args(Verdict))
_HOLDING: Sequence[Verdict] = ("reproduced", "within spread")
MODEL_NOTE = "A model wrote this. Nobody has checked it, and it decides nothing."
_MAX_FILES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Things that belong to a report and that no check has measured."""

    paper: str = ""
    """Name or address of the paper."""
    claims_from: str = ""
    """Origin of the claims, as a sentence."""
    model: str = ""
    explanation: str = ""
    """Words of the model about claims that deviate; empty if it was not asked."""
    preparation: str = ""
    """Its words about what it completed; empty if it was not asked."""
    usd: float | None = 0.0
    """US dollars that the model cost; None if that is not known."""


@dataclass(frozen=True, slots=True)
class ReproductionReport:
    """The content of the report."""

    check: CheckReport
    told: Told = Told()

    @property
    def title(self) -> str:
        return self.check.title or name_only(self.check.source) or "a reproduction"

    def of(self, verdict: Verdict) -> Sequence[Judgement]:
        """Return the claims with a verdict."""
        return [one for one in self.check.judgements if one.verdict == verdict]

    def counts(self) -> Iterator[tuple[str, str]]:
        """Yield the number of claims of each verdict."""
        for verdict in VERDICTS:
            yield verdict.capitalize(), f"{len(self.of(verdict)):,}"

    @property
    def conclusion(self) -> str:
        """The result in one sentence."""
        total = len(self.check.judgements)
        if not total:
            return "There are no claims, so nothing was checked."
        holding = sum(len(self.of(verdict)) for verdict in _HOLDING)
        numbers = ((verdict, len(self.of(verdict))) for verdict in _SAID)
        others = [f"{number} {_SAID[verdict][number > 1]}" for verdict, number in numbers if number]
        return "; ".join([f"{holding} of {total} number{'s' * (total > 1)} hold{'s' * (holding == 1)}", *others]) + "."

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the setting of the check, each fact with its name."""
        check, told = self.check, self.told
        yield "Repository", name_only(check.source) or "not known"
        if check.commit:
            yield "Commit", f"{check.commit}{', with changed files' if check.is_changed else ''}"
        if told.paper:
            yield "Paper", name_only(told.paper)
        if told.claims_from:
            yield "Claims", told.claims_from
        if check.began_at:
            yield "Checked", f"{check.began_at[:16].replace('T', ' ')} UTC"
        yield from (("Environment", words) for words in _environments(check.receipts))
        if boxes := sorted({one.box for one in check.receipts}):
            yield "Sandbox", ", ".join(boxes)
        if told.model:
            yield "Model", f"{told.model}, {money(told.usd)}"
        yield "Made by", f"panpan {__version__}"

    def commands(self) -> Iterator[Sequence[str]]:
        """Yield a row for each command: the line, its seeds, its runs, those that failed, and their time."""
        lines = dict.fromkeys(one.claim.command for one in self.check.judgements if one.claim.command)
        for line in lines:
            runs = [run for one in self.check.judgements if one.claim.command == line for run in one.runs]
            receipts = {run.receipt.id: run.receipt for run in runs if run.receipt is not None}.values()
            seeds = sorted({run.seed for run in runs if run.seed is not None})
            failed = sum(not one.is_success for one in receipts)
            seconds = sum(one.seconds for one in receipts)
            yield (
                line,
                _listed(map(str, seeds)) or "none",
                str(len(receipts)),
                str(failed),
                duration(seconds) if receipts else "",
            )

    def data(self) -> Iterator[Sequence[str]]:
        """Yield a row for each file or folder of data: path, size, checksum, and how it compares."""
        for one in self.check.data:
            yield one.path, _size(one), _checksum(one), _compared(one)

    def written_here(self) -> Sequence[str]:
        """Return the files that a model wrote on the way, the rest counted."""
        files = self.check.written_here
        more = [f"and {len(files) - _MAX_FILES:,} more"] if len(files) > _MAX_FILES else []
        return [*files[:_MAX_FILES], *more]


_SAID: Mapping[Verdict, tuple[str, str]] = {
    "deviates": ("deviates", "deviate"),
    "not reproducible": ("is not reproducible", "are not reproducible"),
    "not run": ("was not run", "were not run"),
}
"""Verdicts in a sentence, for one and for several."""


def label_of(claim: Claim) -> str:
    """Return the name of a claim for readers."""
    parts = [part for part in (claim.table, claim.row, claim.column) if part]
    return ", ".join(parts) or claim.id


def name_only(text: str) -> str:
    """Return an address, or the name of a file or folder without the user's other folders."""
    return text if "://" in text or not text.startswith(("/", "~")) else PurePath(text).name


def _environments(receipts: Sequence[Receipt]) -> Iterator[str]:
    seen: dict[EnvironmentIdentity, None] = {}
    for one in receipts:
        seen.setdefault(one.environment.model_copy(update={"interpreter": ""}))
    for found in seen:
        parts = [f"Python {found.version}" if found.version else ""]
        parts += [f"lock {found.lock} {found.lock_sha256[:12]}" if found.lock else ""]
        parts += [f"packages {found.packages_sha256[:12]}" if found.packages_sha256 else ""]
        if words := ", ".join(filter(None, parts)):
            yield words


def _listed(items: Iterator[str]) -> str:
    found = list(items)
    return ", ".join(found) if len(found) <= 6 else f"{', '.join(found[:5])} … {found[-1]}"


def _size(data: DataCheck) -> str:
    files = data.files or ((data.found,) if data.found is not None else ())
    words = size_text(sum(one.size for one in files)) if files else ""
    return f"{words}, {len(data.files):,} files" if len(data.files) > 1 else words


def _checksum(data: DataCheck) -> str:
    found: FileDigest | None = data.found
    if found is None or not found.sha256:
        return ""
    return f"{found.sha256[:16]}…{' (by parts)' if found.how == 'parts' else ''}"


def _compared(data: DataCheck) -> str:
    if data.problem:
        return data.problem
    return "as stated" if data.stated_sha256 else "no checksum is stated"


# Markdown


def markdown_text(report: ReproductionReport) -> str:
    """Return the report as Markdown."""
    return "\n".join(_markdown(report)) + "\n"


CLAIM_HEADS = ("claim", "verdict", "the paper says", "measured", "why")
COMMAND_HEADS = ("command", "seeds", "runs", "failed", "time")
DATA_HEADS = ("data", "size", "SHA-256", "compared with the paper")


def _markdown(report: ReproductionReport) -> Iterator[str]:
    yield f"# {in_markdown(report.title)}\n"
    yield f"{in_markdown(report.conclusion)}\n"
    yield from markdown_table([name for name, _ in report.counts()], [[number for _, number in report.counts()]])
    yield "## Claims\n"
    yield from markdown_table(CLAIM_HEADS, [_row(one) for one in report.check.judgements])
    for title, text in model_words(report.told):
        yield f"## {title}\n"
        yield f"*{MODEL_NOTE}*\n"
        yield from (f"> {in_markdown(line)}" for line in text.splitlines())
        yield ""
    yield from _list("Changed files of the repository", report.written_here())
    if commands := list(report.commands()):
        yield "## Commands\n"
        yield from markdown_table(COMMAND_HEADS, commands)
    if data := list(report.data()):
        yield "## Data\n"
        yield from markdown_table(DATA_HEADS, data)
    yield "## The check\n"
    yield from markdown_table(("", ""), list(report.facts()))
    yield "## Verdicts\n"
    yield from (f"- **{verdict}**: {meaning}" for verdict, meaning in VERDICTS.items())


def model_words(told: Told) -> Iterator[tuple[str, str]]:
    """Yield what a model wrote, each text with its title."""
    if told.explanation:
        yield "Explanation of what deviates", told.explanation
    if told.preparation:
        yield "Preparation of the claims", told.preparation


def why_of(judgement: Judgement) -> Sequence[str]:
    """Return the reason of a verdict, then the hints."""
    return [judgement.reason, *judgement.hints] if judgement.reason else list(judgement.hints)


def _row(one: Judgement) -> Sequence[str]:
    return (label_of(one.claim), one.verdict, claimed_text(one.claim), measured_text(one), "; ".join(why_of(one)))


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"## {title}\n"
        yield from (f"- {in_markdown(shortened(item))}" for item in items)
        yield ""
