"""The report of a campaign: `results.csv`, `report.md` and `report.html`.

The rule: names and texts come from files, models and commands. They are escaped for the place where they stand.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from panpan.batch.coordination.reconciling import Asking, known_results, waiting_attempts
from panpan.batch.reporting.figures import (
    LETTERS,
    MISSING,
    WAITING,
    axes_of,
    rate_of,
    rates_by_axis,
    results_by_task,
    total_spent,
)
from panpan.batch.reporting.ranking import ranked
from panpan.batch.store.folder import CampaignFolder, write_whole
from panpan.batch.store.records import FrozenCampaign, Result, Task, Verdict
from panpan.batch.store.wording import count, duration, money, shortened, value_text
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.pattern import compile_late

MAX_TASKS = 2_000
"""Most tasks in a table of the reports; `results.csv` has all."""
_MAX_TASKS_OF_PAGE = 200
_FORMULA = compile_late(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Beginnings of cells that spreadsheets run."""
_MARKDOWN = compile_late(r"[\\`*_{}\[\]<>|#~!&]")
_COLUMNS = (
    "attempt", "status", "ended_by", "verify_exit_code", "verify_timed_out", "usd", "tokens", "seconds", "gpu_seconds",
    "files", "lines_added", "lines_removed", "files_outside", "tries", "model", "host", "began_at", "ended_at",
    "session_id", "task_id",
)  # fmt: skip


class CampaignReport:
    """Facts of the reports.

    Args:
        folder: Folder of the campaign.
        frozen: The campaign.
        tasks: All tasks, in order.
        results: All results.
        waiting: Attempts that wait for a person.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        frozen: FrozenCampaign,
        tasks: Sequence[Task],
        results: Sequence[Result],
        waiting: Sequence[Asking],
    ) -> None:
        self.folder, self.frozen, self.tasks, self.waiting = folder, frozen, tasks, waiting
        self.name = folder.path.name
        self.by_task = results_by_task(results)
        self.results = [result for task in tasks for _, result in sorted(self.by_task.get(task.id, {}).items())]
        self._waiting_keys = {(one.task.id, one.attempt) for one in waiting}

    @property
    def attempts(self) -> int:
        """Attempts at each task."""
        return self.frozen.campaign.attempts

    @cached_property
    def axes(self) -> Sequence[str]:
        """Names of all axes."""
        return axes_of(self.tasks)

    def results_of(self, task: Task) -> Sequence[Result]:
        return [result for _, result in sorted(self.by_task.get(task.id, {}).items())]

    def letters(self, task: Task) -> Sequence[str]:
        """Return a letter for each attempt at a task."""
        found = self.by_task.get(task.id, {})
        return [
            LETTERS[found[number].status]
            if number in found
            else WAITING
            if (task.id, number) in self._waiting_keys
            else MISSING
            for number in range(1, self.attempts + 1)
        ]

    def best(self, task: Task) -> Sequence[Result]:
        """Return the best attempts at a task: one, several if they tie, none if there is none that did not fail."""
        groups = ranked(self.results_of(task))
        return groups[0] if groups and groups[0][0].status in ("passed", "done") else ()

    @property
    def ties(self) -> Sequence[tuple[Task, Sequence[Result]]]:
        """Tasks whose best attempts tie."""
        return [(task, best) for task in self.tasks if len(best := self.best(task)) > 1]

    @property
    def errors(self) -> Sequence[Result]:
        return [result for result in self.results if result.status == "error"]

    @property
    def rejections(self) -> Sequence[tuple[str, str]]:
        """Names of attempts that failed, each with the end of what the verify command printed."""
        return [
            (one.label, shortened(_last_words(one.verdict)))
            for one in self.results
            if one.status == "failed" and one.verdict is not None
        ]

    def totals(self) -> Iterator[tuple[str, str]]:
        """Yield the totals, each with its name."""
        total = len(self.tasks) * self.attempts
        yield "Attempts with a result", f"{len(self.results):,} of {total:,}"
        yield "Passed", rate_of(self.results).words
        counts = {status: sum(result.status == status for result in self.results) for status in LETTERS}
        yield from ((status.capitalize(), f"{n:,}") for status, n in counts.items() if n and status != "passed")
        if self.waiting:
            yield "Waiting for a person", f"{len(self.waiting):,}"
        spent, budget = total_spent(self.results), self.frozen.campaign.budget
        yield "Cost", money(spent.usd) + (f" of {money(budget.usd)}" if budget.usd else "")
        yield "Tokens", count(spent.tokens)
        yield "Time of all attempts", duration(spent.seconds)
        if spent.gpu_seconds:
            yield "Time on GPUs", duration(spent.gpu_seconds)

    def as_json(self) -> Mapping[str, Any]:
        """Return the report for programs."""
        tasks = [
            {
                "id": task.id,
                "name": task.name,
                "axes": dict(task.axes),
                "attempts": [one.model_dump(mode="json") for one in self.results_of(task)],
                "best": [one.attempt for one in self.best(task)],
            }
            for task in self.tasks
        ]
        waiting = [{"attempt": one.label, **one.needs.model_dump(mode="json")} for one in self.waiting]
        return {"folder": str(self.folder.path), "totals": dict(self.totals()), "tasks": tasks, "waiting": waiting}

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the setting of the campaign, each fact with its name."""
        campaign = self.frozen.campaign
        names = len({task.name for task in self.tasks})
        combined = f", which make {len(self.tasks):,} with each {' and '.join(self.axes)}" if self.axes else ""
        yield "Tasks", f"{names:,}{combined}; {self.attempts} attempt{'s' * (self.attempts > 1)} at each"
        if campaign.verify:
            yield "Verified by", campaign.verify.command
        commands = [*dict.fromkeys(task.command.command for task in self.tasks if task.command)]
        if commands:
            yield "Runs", commands[0] + (f", and {len(commands) - 1:,} more" if len(commands) > 1 else "")
        models = dict.fromkeys(result.model for result in self.results if result.model)
        if models:
            yield "Model", ", ".join(models)
        yield "Project", self.frozen.source + (f" at {self.frozen.commit[:12]}" if self.frozen.commit else "")
        began = min((result.began_at for result in self.results if result.began_at), default="")
        ended = max((result.ended_at for result in self.results if result.ended_at), default="")
        if began:
            yield "Ran", f"{began} to {ended}, by the clocks of the machines"
        hosts = dict.fromkeys(result.host for result in self.results if result.host)
        if hosts:
            yield "Machines", ", ".join(hosts)


def write_report(folder: CampaignFolder) -> CampaignReport:
    """Write the report's three files, and return the facts.

    Raises:
        ConfigError: The campaign has not begun, or its folder is damaged.
        OutputError: A file cannot be written; the old one is still there.
    """
    from panpan.batch.reporting.report_html import html_page  # only reports need it

    results = list(known_results(folder).values())
    tasks = folder.tasks()
    report = CampaignReport(folder, folder.frozen(), tasks, results, list(waiting_attempts(folder, tasks)))
    for name, text in (
        ("results.csv", csv_text(report)),
        ("report.md", markdown_text(report)),
        ("report.html", html_page(report)),
    ):
        write_whole(folder.path / name, text.encode(errors="replace"))
    return report


def csv_text(report: CampaignReport) -> str:
    """Return all results as CSV: one line an attempt, each axis a column."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"axis_{name}" if name in (*_COLUMNS, "task") else name for name in report.axes]
    writer.writerow(["task", *heads, *_COLUMNS])
    for result in report.results:
        axes = [result.axes.get(name) for name in report.axes]
        writer.writerow([harmless(value) for value in (result.task, *axes, *_cells(result))])
    return out.getvalue()


def _cells(result: Result) -> Iterator[object]:
    verdict, changes, spent = result.verdict, result.changes, result.spent
    files = len(changes.files) + changes.more if changes else 0
    outside = len(changes.outside) + changes.more_outside if changes else 0
    yield from (result.attempt, result.status, result.ended_by)
    yield from (verdict.exit_code, verdict.timed_out) if verdict else (None, None)
    yield from (spent.usd if spent.usd is None else round(spent.usd, 6), spent.tokens)
    yield from (round(spent.seconds, 3), round(spent.gpu_seconds, 3))
    yield from (files, changes.added, changes.removed, outside) if changes else (None,) * 4
    yield from (result.tries, result.model, result.host, result.began_at, result.ended_at)
    yield from (result.session_id, result.task_id)


def harmless(value: object) -> object:
    """Return the value of a cell; text that a spreadsheet would run gets a quote in front."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return value_text(value)
    if not isinstance(value, str):
        return value
    text = clean_for_terminal(value)
    return f"'{text}" if _FORMULA.match(text) else text


def markdown_text(report: CampaignReport) -> str:
    """Return the report as Markdown."""
    return "\n".join(_markdown(report)) + "\n"


def in_markdown(text: str) -> str:
    """Return text as one line that Markdown shows as it is."""
    return _MARKDOWN.sub(
        lambda found: f"\\{found[0]}" if found[0] not in "<>&" else f"&#{ord(found[0])};", clean_line(text)
    )


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, with an empty one behind it."""
    yield f"| {' | '.join(map(in_markdown, heads))} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(map(in_markdown, row))} |" for row in rows)
    yield ""


def _markdown(report: CampaignReport) -> Iterator[str]:
    yield f"# {in_markdown(report.name)}\n"
    yield from markdown_table(("", ""), [*report.facts(), *report.totals()])
    for axis, rates in rates_by_axis(report.results).items():
        if len(rates) > 1:
            yield f"## Passed by {in_markdown(axis)}\n"
            yield from markdown_table(
                (axis, "passed (interval of 95 %)"), [(value, rate.words) for value, rate in rates.items()]
            )
    yield "## Tasks\n"
    yield f"{LEGEND}\n"
    tasks = report.tasks[:_MAX_TASKS_OF_PAGE]
    yield from markdown_table(
        ("task", "attempts", "passed", "best", "cost", "time"), [_row(report, task) for task in tasks]
    )
    if len(report.tasks) > len(tasks):
        yield f"The first {len(tasks)} of {len(report.tasks):,} tasks; results.csv has all.\n"
    yield from _lists(report)
    yield f"{NOTE}\n"


REJECTED = "Failed, with the last line of the command that decided"
LEGEND = (
    "P passed, F failed, D done without a verify command, E error, C cancelled, W waits for a person, · no result yet."
)
NOTE = (
    "Intervals are Wilson's, of 95 %. They take attempts as independent of each other. Attempts at one task are not, "
    "so the truth is less certain than they say. Errors and cancelled attempts do not count as failed."
)


def _row(report: CampaignReport, task: Task) -> Sequence[str]:
    results = report.results_of(task)
    spent = total_spent(results)
    return (
        task.label,
        " ".join(report.letters(task)),
        rate_of(results).words,
        best_words(report.best(task)),
        money(spent.usd) if results else "",
        duration(spent.seconds) if results else "",
    )


def best_words(best: Sequence[Result]) -> str:
    """Return the best attempt for readers, or those that tie."""
    numbers = ", ".join(str(result.attempt) for result in best)
    return f"tie: {numbers}" if len(best) > 1 else numbers


def _lists(report: CampaignReport) -> Iterator[str]:
    if ties := report.ties:
        yield "## Ties\n"
        yield from (
            f"- {in_markdown(task.label)}: attempts {', '.join(str(one.attempt) for one in best)}"
            for task, best in ties[:_MAX_TASKS_OF_PAGE]
        )
        yield ""
    if report.errors:
        yield "## Errors\n"
        yield from (
            f"- {in_markdown(one.label)}: {in_markdown(shortened(one.message))}"
            for one in report.errors[:_MAX_TASKS_OF_PAGE]
        )
        yield ""
    if rejections := report.rejections[:_MAX_TASKS_OF_PAGE]:
        yield f"## {REJECTED}\n"
        yield from (f"- {in_markdown(label)}: {in_markdown(text)}" for label, text in rejections)
        yield ""
    if report.waiting:
        yield "## Waiting for a person\n"
        yield from (
            f"- {in_markdown(one.label)} ({one.needs.kind}): {in_markdown(shortened(one.needs.text))}"
            for one in report.waiting[:_MAX_TASKS_OF_PAGE]
        )
        yield ""


def _last_words(verdict: Verdict) -> str:
    if verdict.timed_out:
        return "it took too long"
    lines = [line for line in verdict.output.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {verdict.exit_code}"
