"""What people type from habit means what they know it as."""

from typing import Any

import click
import pytest

from panpan.cli.options import PICKS_SESSION, check_options, overrides_of, run_options


def read(*args: str) -> dict[str, Any]:
    """Return what the options say."""

    @click.command()
    @run_options
    def command(**options: Any) -> dict[str, Any]:
        return {**options, "first_prompt": None}

    read = command.main(list(args), standalone_mode=False)
    assert isinstance(read, dict)
    return read


def test_skipping_permissions_is_the_mode_that_does_so() -> None:
    assert overrides_of(read("--dangerously-skip-permissions"))["permission.mode"] == "bypassPermissions"
    assert overrides_of(read("--permission-mode", "plan"))["permission.mode"] == "plan"
    assert overrides_of(read())["permission.mode"] is None


@pytest.mark.parametrize("args", [["-r"], ["--resume"], ["-r", "--model", "smart"]])
def test_resume_without_an_id_asks_for_a_choice(args: list[str]) -> None:
    options = read(*args)

    assert options["resume"] == PICKS_SESSION
    check_options(options)


@pytest.mark.parametrize("changed", [{"continues": True}, {"first_prompt": "fix it"}, {"record": "a.jsonl"}])
def test_where_no_choice_can_be_made_it_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(click.UsageError):
        check_options({**read("-r"), **changed})


@pytest.mark.parametrize(("short", "long"), [("-c", "--continue"), ("-p", "--print"), ("-r", "--resume")])
def test_short_and_long_options_are_one(short: str, long: str) -> None:
    assert read(short) == read(long)
