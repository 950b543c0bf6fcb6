import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.cli.ci.findings import (
    AnswerError,
    Finding,
    Report,
    as_github,
    as_json,
    as_sarif,
    as_text,
    report_of,
    schema_text,
    written,
)

FOUND: dict[str, Any] = {"file": "src/a.py", "line": 3, "severity": "warning", "title": "Off by one", "body": "It is."}
ANSWER: dict[str, Any] = {"summary": "One thing.", "findings": [FOUND]}


def unescaped(text: str) -> str:
    """Undo the escapes of workflow commands, in the order of GitHub's runner."""
    for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, char)
    return text


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(ANSWER),
        f"Here it is:\n```json\n{json.dumps(ANSWER, indent=2)}\n```\nDone.",
        f"{{not json}} and {{}} then {json.dumps(ANSWER)}",
    ],
)
def test_report_is_found_in_words_and_fences(answer: str) -> None:
    report = report_of(answer)

    assert report.summary == "One thing."
    assert report.findings == (Finding(**FOUND),)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"findings": [{**FOUND, "severity": "fatal"}]}, "findings.0.severity"),
        ({"findings": [{**FOUND, "file": "/etc/passwd"}]}, "a path inside the repository"),
        ({"findings": [{**FOUND, "file": "../../x"}]}, "a path inside the repository"),
        ({"findings": [{**FOUND, "line": 0}]}, "findings.0.line"),
        ({"findings": [FOUND] * 51}, "findings"),
        ({"verdict": "good"}, "verdict"),
        ({"summary": ""}, "summary"),
    ],
)
def test_answer_off_the_schema_is_refused_with_the_place(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(AnswerError, match=complaint):
        report_of(json.dumps({**ANSWER, **change}))


@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps))
def test_any_other_answer_is_an_error_and_no_crash(answer: str) -> None:
    with pytest.raises(AnswerError):
        report_of(answer)


def test_schema_names_the_fields_of_a_finding() -> None:
    schema = json.loads(schema_text())

    assert set(schema["$defs"]["Finding"]["properties"]) == {"file", "line", "severity", "title", "body"}


def test_annotations_are_escaped_as_github_documents() -> None:
    finding = Finding(file="a,b:c.py", line=7, severity="note", title="50%, or: more", body="one\ntwo % three")

    text = as_github(Report(summary="Done.", findings=(finding,)))

    assert text == ("::notice file=a%2Cb%3Ac.py,line=7,title=50%25%2C or%3A more::one%0Atwo %25 three\nDone.\n")


PIECES = (
    "::",
    ":",
    "##[",
    "##vso[",
    "##teamcity[",
    "#",
    "[",
    "]",
    ",",
    "%",
    "%0A",
    "\r",
    "\n",
    " ",
    "\t",
    "\x1b[2J",
    "\u2028",
    "=",
    "error",
    "x",
)
hostile = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)


@given(hostile, hostile, hostile)
def test_no_text_of_the_model_is_a_command_of_its_own(title: str, body: str, summary: str) -> None:
    report = Report(summary=summary, findings=(Finding(file="a.py", line=1, severity="error", title=title, body=body),))

    lines = re.split(r"[\r\n]", as_github(report))
    commands = [line for line in lines if line.lstrip().startswith(("::", "##["))]
    others = [line for line in re.split(r"[\r\n]", as_text(report)) if line.lstrip().startswith("::")]

    assert len(commands) == 1
    match = re.fullmatch(r"::error file=a\.py,line=1,title=([^:,]*)::(.*)", commands[0])
    assert match is not None
    assert not others
    for form in (as_text, as_json, as_sarif):
        assert not re.search(r"##(vso|teamcity)?\[", form(report))
    assert "\x1b" not in as_github(report) + as_text(report)


def test_name_of_a_field_is_no_command_in_the_complaint() -> None:
    with pytest.raises(AnswerError) as caught:
        report_of(json.dumps({**ANSWER, "a\n::add-path::/evil\x1b[2J ##[error]": 1}))

    assert str(caught.value) == "a ::add-path::/evil # #[error]: Extra inputs are not permitted"


def test_text_has_place_severity_and_indented_body() -> None:
    assert as_text(report_of(json.dumps(ANSWER))) == "src/a.py:3: warning: Off by one\n    It is.\nOne thing.\n"


def test_json_is_the_schema_again() -> None:
    assert json.loads(as_json(report_of(json.dumps(ANSWER)))) == ANSWER


def test_sarif_has_level_and_place_of_each_finding() -> None:
    (run,) = json.loads(as_sarif(Report(summary="s", findings=(Finding(**{**FOUND, "file": "a b.py"}),))))["runs"]

    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["level"], result["message"]["text"]) == ("warning", "Off by one\n\nIt is.")
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("a%20b.py", 3)
    assert result["ruleId"] == run["tool"]["driver"]["rules"][0]["id"]


@pytest.mark.parametrize("format_", ["text", "json", "github", "sarif"])
def test_secrets_are_removed_in_every_format(format_: str) -> None:
    leaking = Report(
        summary="hunter2222", findings=(Finding(**{**FOUND, "title": "hunter2222", "body": "hunter2222"}),)
    )

    text = written(leaking, format_, lambda text: text.replace("hunter2222", "[redacted]"))

    assert "hunter2222" not in text
    assert "[redacted]" in text


def test_threshold_compares_severities() -> None:
    report = report_of(json.dumps(ANSWER))

    assert [report.has_any(least) for least in ("note", "warning", "error")] == [True, True, False]
