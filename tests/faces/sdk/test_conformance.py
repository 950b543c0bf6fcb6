"""The tables of the Agent SDK agree with the program and with the page."""

import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from panpan.cli.main import cli
from panpan.cli_kit.stdin import StdinReader
from panpan.faces.sdk.channel import Channel, LineQueue
from panpan.faces.sdk.conformance import ASKED, FLAGS, REQUESTS, Row
from panpan.faces.sdk.controls import Controls, Rights
from scripts.sdk_page import OFFERS, PAGE, offers, page_with_tables


class NoOutput:
    """Takes text and drops it."""

    async def write(self, text: str) -> None:
        pass


OPTIONS = {name for option in cli.params for name in (*option.opts, *option.secondary_opts)}


def test_flags_that_work_exist_and_others_do_not() -> None:
    assert {row.name for row in FLAGS if row.state == "works"} <= OPTIONS
    assert {row.name for row in FLAGS if row.state != "works"} & OPTIONS == set()


@pytest.mark.parametrize("rows", [FLAGS, REQUESTS, ASKED])
def test_rows_are_sorted_and_each_is_there_once(rows: Sequence[Row]) -> None:
    names = [row.name for row in rows]

    assert names == sorted(set(names))


def test_requests_that_work_are_those_that_are_answered(tmp_path: Path) -> None:
    with (tmp_path / "in").open("w+") as stdin:
        channel = Channel(StdinReader(stdin), LineQueue(NoOutput()))
        answered = Controls(channel, Rights(may_bypass=False), warn=lambda _: None).subtypes

    assert {row.name for row in REQUESTS if row.state == "works"} == answered


def test_offers_are_those_of_the_program() -> None:
    assert json.loads(OFFERS.read_bytes()) == offers(), "run: .venv/bin/python -m scripts.sdk_page"


@pytest.mark.parametrize("name", [row.name for row in FLAGS if row.state != "works"])
def test_flag_that_is_not_there_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(click.NoSuchOption, match=name):
        cli.make_context("panpan", ["-p", "hi", f"{name}=x"])


def test_page_has_the_tables_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == page_with_tables(page), "run: .venv/bin/python -m scripts.sdk_page"
