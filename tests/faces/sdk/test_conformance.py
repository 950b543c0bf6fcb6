"""The tables of the Agent SDK agree with the program and with the page."""

import click
import pytest

from panpan.cli.main import cli
from panpan.faces.sdk.conformance import FLAGS
from scripts.sdk_page import PAGE, page_with_tables

OPTIONS = {name for option in cli.params for name in (*option.opts, *option.secondary_opts)}


def test_flags_that_work_exist_and_others_do_not() -> None:
    assert {row.name for row in FLAGS if row.state == "works"} <= OPTIONS
    assert {row.name for row in FLAGS if row.state != "works"} & OPTIONS == set()


def test_flags_are_sorted_and_each_is_there_once() -> None:
    names = [row.name for row in FLAGS]

    assert names == sorted(set(names))


@pytest.mark.parametrize("name", [row.name for row in FLAGS if row.state != "works"])
def test_flag_that_is_not_there_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(click.NoSuchOption, match=name):
        cli.make_context("panpan", ["-p", "hi", f"{name}=x"])


def test_page_has_the_tables_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == page_with_tables(page), "run: .venv/bin/python -m scripts.sdk_page"
