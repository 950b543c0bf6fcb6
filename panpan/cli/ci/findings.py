"""The answer of a review: its schema, how it is read, and the forms in which it is printed.

The rule: nothing that the model wrote can act where it is printed, neither on a terminal nor as a command in a CI log.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from panpan.errors import PanpanError
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.pattern import compile_late
from panpan.version import __version__

Severity: TypeAlias = Literal["error", "warning", "note"]
_RANK: Mapping[Severity, int] = {"error": 2, "warning": 1, "note": 0}
_MAX_FINDINGS = 50
_MOST_ERRORS = 5


class AnswerError(PanpanError):
    """The model's answer does not match the schema; the text says where."""


class Finding(BaseModel):
    """One thing to change, at a line of the new version of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str = Field(min_length=1, max_length=1000, description="Path in the repository, with / between its parts")
    line: int = Field(ge=1, le=10_000_000)
    severity: Severity
    title: str = Field(min_length=1, max_length=200, description="One line")
    body: str = Field(default="", max_length=5000)

    @field_validator("file")
    @classmethod
    def _relative(cls, value: str) -> str:
        path = PurePosixPath(value)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError("it must be a path inside the repository, such as src/app.py")
        return str(path)


class Report(BaseModel):
    """A review."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str = Field(min_length=1, max_length=5000)
    findings: tuple[Finding, ...] = Field(default=(), max_length=_MAX_FINDINGS)

    def has_any(self, least: Severity) -> bool:
        """True if a finding is at least so severe."""
        return any(_RANK[one.severity] >= _RANK[least] for one in self.findings)


def schema_text() -> str:
    """Return the JSON schema, for the prompt."""
    return json.dumps(Report.model_json_schema(), separators=(",", ":"))


def report_of(answer: str) -> Report:
    """Return the review in an answer, which may have words or a fence around its object.

    Raises:
        AnswerError: There is no object, or it does not match the schema.
    """
    errors: list[str] = []
    for found in _objects(answer):
        try:
            return Report.model_validate(found)
        except ValidationError as error:
            errors = errors or [_told(one) for one in error.errors()[:_MOST_ERRORS]]
    raise AnswerError(harmless(clean_line("; ".join(errors))) or "there is no JSON object in it")


def _objects(answer: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text, the outer ones only."""
    decoder = json.JSONDecoder()
    at = answer.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = answer.find("{", end)


def _told(error: Any) -> str:
    place = ".".join(str(part) for part in error["loc"])
    return f"{place or 'the object'}: {error['msg'].removeprefix('Value error, ')}"


_COMMAND = compile_late(r"(?m)^\s*:(?=:)|#(?=#\w{0,20}\[)")
"""A command of GitHub begins a line, but its older `##[…]` (actions/runner) and `##vso[…]` of others count anywhere."""


def harmless(text: str) -> str:
    """Return text that neither drives a terminal nor holds a workflow command."""
    return _COMMAND.sub(lambda match: f"{match[0]} ", clean_for_terminal(text))


def as_text(report: Report) -> str:
    """Return the review for people."""
    lines = [
        f"{clean_line(one.file)}:{one.line}: {one.severity}: {clean_line(one.title)}{_indented(one.body)}"
        for one in report.findings
    ]
    return harmless("\n".join((*lines, report.summary))) + "\n"


def _indented(body: str) -> str:
    return "".join(f"\n    {line}" for line in body.strip().splitlines())


def as_json(report: Report) -> str:
    """Return the review as one JSON object."""
    return _json(report.model_dump())


def _json(value: Mapping[str, Any]) -> str:
    """Return JSON in which no text holds a workflow command."""
    return json.dumps(value, indent=2).replace("##", r"#\u0023") + "\n"


_GITHUB_NAMES: Mapping[Severity, str] = {"error": "error", "warning": "warning", "note": "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}
"""Escapes of workflow commands; a property ends at a colon or comma, too (docs.github.com, actions/toolkit)."""


def as_github(report: Report) -> str:
    """Return the review as workflow commands, which GitHub shows at the lines, and its summary."""
    lines = [
        f"::{_GITHUB_NAMES[one.severity]} file={_escaped(one.file, _PROPERTY)},line={one.line},"
        f"title={_escaped(one.title, _PROPERTY)}::{_escaped(one.body.strip() or one.title, _DATA)}"
        for one in report.findings
    ]
    return "\n".join((*lines, harmless(report.summary))) + "\n"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(char, char) for char in clean_for_terminal(text))


def as_sarif(report: Report) -> str:
    """Return the review as SARIF 2.1.0."""
    results = [
        {
            "ruleId": "review",
            "level": one.severity,
            "message": {"text": "\n\n".join(filter(None, (one.title, one.body)))},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(one.file), "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": one.line},
                    }
                }
            ],
        }
        for one in report.findings
    ]
    driver = {
        "name": "panpan",
        "version": __version__,
        "rules": [{"id": "review", "shortDescription": {"text": "Findings of a review by a model"}}],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return _json(log)


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
}


def written(report: Report, format_: str, redact: Callable[[str], str]) -> str:
    """Return the review in a format, without secrets."""
    findings: Sequence[Finding] = [
        one.model_copy(update={name: redact(getattr(one, name)) for name in ("file", "title", "body")})
        for one in report.findings
    ]
    return FORMATS[format_](report.model_copy(update={"summary": redact(report.summary), "findings": tuple(findings)}))
