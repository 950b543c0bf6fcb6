"""The report of a campaign: results.csv, report.md and report.html."""

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from panpan.batch.definition.campaign import CommandLine
from panpan.batch.reporting.report import CampaignReport, csv_text, harmless, in_markdown, markdown_text, write_report
from panpan.batch.reporting.report_html import html_page
from panpan.batch.store.records import Changes, Needs, Spent, Verdict
from tests.batch.campaign_files import begun_campaign, result_of, task_of

HOSTILE = "<script>alert(1)</script>"
EVIL = '"><img src=x onerror=alert(1)>\x1b[31m\u202e|`[x](http://evil.example)'
ONE, TWO, THREE = task_of("table", seed=1), task_of("table", seed=-2), task_of(HOSTILE, seed=EVIL)
CHANGED = Changes(files=("a.py",), added=3, removed=1)


@pytest.fixture
def report(tmp_path: Path) -> CampaignReport:
    """Return the report of a campaign with a tie, an error, and an attempt that waits."""
    results = [
        result_of(ONE, "passed", 1, changes=CHANGED, verdict=Verdict(exit_code=0, seconds=1.0), host="gpu-1"),
        result_of(ONE, "passed", 2, changes=CHANGED, verdict=Verdict(exit_code=0, seconds=1.0)),
        result_of(
            TWO,
            "failed",
            1,
            changes=CHANGED,
            verdict=Verdict(exit_code=1, seconds=1.0, output=f"line\n2 off {EVIL}\n\n"),
        ),
        result_of(TWO, "error", 2, ended_by="error", message=f"no key {EVIL}", spent=Spent(usd=None)),
        result_of(THREE, "passed", 1, changes=CHANGED.model_copy(update={"more": 2, "outside": ("b.py",)})),
    ]
    campaign = {"attempts": 2, "verify": "make check", "budget": {"usd": 10.0}}
    folder = begun_campaign(tmp_path / "camp", [ONE, TWO, THREE], results, campaign)
    folder.attempt(THREE.id, 2).path.mkdir(parents=True)
    folder.attempt(THREE.id, 2).write_needs(Needs(kind="question", text=f"Which one? {EVIL}"))
    return write_report(folder)


class Page(HTMLParser):
    """Tags of a page, checked for being closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def test_report_writes_its_three_files(report: CampaignReport) -> None:
    for name, text in (
        ("results.csv", csv_text(report)),
        ("report.md", markdown_text(report)),
        ("report.html", html_page(report)),
    ):
        assert (report.folder.path / name).read_text(encoding="utf-8") == text


def test_csv_has_a_row_an_attempt_and_a_column_an_axis(report: CampaignReport) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(report))))

    assert [(row["task"], row["seed"], row["attempt"], row["status"]) for row in rows] == [
        ("table", "1", "1", "passed"),
        ("table", "1", "2", "passed"),
        ("table", "-2", "1", "failed"),
        ("table", "-2", "2", "error"),
        (HOSTILE, '"><img src=x onerror=alert(1)><U+202E>|`[x](http://evil.example)', "1", "passed"),
    ]
    assert {name: rows[0][name] for name in ("verify_exit_code", "usd", "tokens", "files", "lines_added", "host")} == {
        "verify_exit_code": "0", "usd": "0.5", "tokens": "1000", "files": "1", "lines_added": "3", "host": "gpu-1",
    }  # fmt: skip
    assert (rows[3]["usd"], rows[3]["verify_exit_code"], rows[3]["files"]) == ("", "", "")
    assert (rows[4]["files"], rows[4]["files_outside"]) == ("3", "1")


def test_axis_with_the_name_of_a_column_gets_another(tmp_path: Path) -> None:
    task = task_of("table", model="a/b", status="x")
    folder = begun_campaign(tmp_path / "camp", [task], [result_of(task, model="a/b")])

    head = csv_text(write_report(folder)).splitlines()[0].split(",")

    assert head[:3] == ["task", "axis_model", "axis_status"]
    assert len(set(head)) == len(head)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1", "' =1"),
        ("\t=1", "'\t=1"),
        ("\uff1d1", "'\uff1d1"),
        ("\x1b[1m=1", "'=1"),
        (-0.5, -0.5),
        (True, "true"),
        (None, ""),
        ("a=b", "a=b"),
    ],
)
def test_cell_that_a_spreadsheet_would_run_is_quoted(value: Any, cell: Any) -> None:
    assert harmless(value) == cell


def test_markdown_tells_tasks_ties_errors_and_who_waits(report: CampaignReport) -> None:
    text = markdown_text(report)

    assert "| Attempts with a result | 5 of 6 |" in text
    assert "| Passed | 3 of 4, 75 % (30-95 %) |" in text
    assert "| Cost | an unknown sum of $10.00 |" in text
    assert "| table/seed=1 | P P | 2 of 2, 100 % (34-100 %) | tie: 1, 2 | $1.00 | 2 min 0 s |" in text
    assert "| table/seed=-2 | F E | 0 of 1, 0 % (0-79 %) |  | an unknown sum | 1 min 0 s |" in text
    assert "- table/seed=1: attempts 1, 2" in text
    assert "- table/seed=-2/2: no key" in text
    assert "- table/seed=-2/1: 2 off" in text
    assert "(question): Which one?" in text


def test_markdown_shows_hostile_text_as_text(report: CampaignReport) -> None:
    text = markdown_text(report)

    assert "<script" not in text
    assert "<img" not in text
    assert "[x](http" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in tables} == {3, 7}
    assert in_markdown("a|b\n# c*") == r"a\|b \# c\*"


def test_page_loads_nothing_and_runs_nothing(report: CampaignReport) -> None:
    text = html_page(report)
    page = Page(text)

    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "img", "link", "iframe", "object", "form", "base"})
    addresses = [attrs["href"] for _, attrs in page.tags if attrs.get("href")]
    assert addresses
    assert all(re.fullmatch(r"state/[\w./-]+", address or "") for address in addresses)
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on") or name == "src"]
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert HOSTILE in page.said


def test_page_links_the_patches_and_names_the_plots(report: CampaignReport) -> None:
    report.folder.attempt(ONE.id, 2).workspace.mkdir(parents=True)

    page = Page(html_page(report))

    addresses = {attrs["href"] for tag, attrs in page.tags if tag == "a"}
    assert f"state/{ONE.id}/attempt-1/changes.patch" in addresses
    assert f"state/{ONE.id}/attempt-2/{report.folder.attempt(ONE.id, 2).workspace.name}/" in addresses
    assert f"state/{ONE.id}/attempt-1/{report.folder.attempt(ONE.id, 1).workspace.name}/" not in addresses  # not kept
    plots = [attrs["aria-label"] or "" for tag, attrs in page.tags if tag == "svg"]
    assert [plot.partition(".")[0] for plot in plots] == [
        "Passed by task", "Passed by seed", "Cost of an attempt", "Time of an attempt", "Tokens of an attempt",
    ]  # fmt: skip
    assert "table: 2 of 3, 67 % (21-94 %)" in plots[0]
    assert [tag for tag, _ in page.tags].count("caption") == [tag for tag, _ in page.tags].count("table") == 1


@pytest.mark.parametrize(
    ("verdict", "words"),
    [({"timed_out": True, "output": "x"}, "it took too long"), ({"output": " \n"}, "exit code 2")],
)
def test_silent_verify_command_is_told_by_its_end(tmp_path: Path, verdict: Any, words: str) -> None:
    results = [result_of(ONE, "failed", 1, verdict=Verdict(exit_code=2, seconds=1.0, **verdict))]
    folder = begun_campaign(tmp_path / "camp", [ONE], results)
    assert words in Page(html_page(write_report(folder))).said


def test_facts_name_the_commands_of_tasks(tmp_path: Path) -> None:
    lines = [CommandLine(command=f"python train.py {seed}") for seed in (1, 2)]
    tasks = [task_of("train", seed=number).model_copy(update={"command": line}) for number, line in enumerate(lines)]

    report = write_report(begun_campaign(tmp_path / "camp", tasks))

    assert dict(report.facts())["Runs"] == "python train.py 1, and 1 more"


def test_letters_say_what_became_of_each_attempt(report: CampaignReport) -> None:
    assert [report.letters(task) for task in (ONE, TWO, THREE)] == [["P", "P"], ["F", "E"], ["P", "W"]]


def test_report_before_the_first_result_is_whole(tmp_path: Path) -> None:
    folder = begun_campaign(tmp_path / "camp", [ONE])

    report = write_report(folder)

    assert report.letters(ONE) == ["·"]
    assert "Attempts with a result" in Page(html_page(report)).said
    assert len(csv_text(report).splitlines()) == 1


def test_long_tables_are_cut_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task_of(f"task {number}") for number in range(2_001)]
    folder = begun_campaign(tmp_path / "camp", tasks)

    report = write_report(folder)

    assert "The first 200 of 2,001 tasks; results.csv has all." in markdown_text(report)
    assert "The first 2,000 of 2,001; results.csv has all." in html_page(report)
