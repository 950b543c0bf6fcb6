"""Options that people type from habit mean what those people expect."""

from typing import Any

import click
import pytest

from panpan.cli.main import cli
from panpan.cli_kit.options import FLAGS, PICKS_SESSION, SETTING_BY_OPTION, check_options, overrides_of, run_options
from panpan.types.permission import PACKAGE_INDEXES


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


@pytest.mark.parametrize("changed", [{"continue_latest": True}, {"first_prompt": "fix it"}, {"record": "a.jsonl"}])
def test_resume_choice_is_refused_if_none_can_be_made(changed: dict[str, Any]) -> None:
    with pytest.raises(click.UsageError):
        check_options({**read("-r"), **changed})


@pytest.mark.parametrize(
    "args",
    [
        ["--session", "a", "--session-id", "11111111-2222-4333-8444-555555555555"],
        ["--session", " "],
        ["-c", "--session", "a"],
        ["-r", "x", "--session-id", "11111111-2222-4333-8444-555555555555"],
        ["--session-id", "nightly"],
    ],
)
def test_session_of_a_name_or_uuid_is_one_and_well_formed(args: list[str]) -> None:
    with pytest.raises(click.UsageError):
        check_options(read(*args))


def test_fork_goes_with_every_way_to_name_a_session() -> None:
    for args in (["-c"], ["-r", "x"], ["--session", "a"], ["-c", "--session", "a"]):
        check_options(read(*args, "--fork-session"))


@pytest.mark.parametrize(("short", "long"), [("-c", "--continue"), ("-p", "--print"), ("-r", "--resume")])
def test_short_and_long_options_are_one(short: str, long: str) -> None:
    assert read(short) == read(long)


def test_allow_network_opens_all_of_it_or_single_hosts() -> None:
    assert overrides_of(read("--allow-network"))["sandbox.network"] is True
    assert overrides_of(read("--allow-network", "-p", "go on"))["sandbox.network"] is True
    assert overrides_of(read("--allow-network=package-indexes"))["sandbox.domains"] == (PACKAGE_INDEXES,)
    hosts = overrides_of(read("--allow-network", "pypi.org, *.example.org", "--allow-network=a.b:8080"))
    assert hosts["sandbox.domains"] == ("pypi.org", "*.example.org", "a.b:8080")
    assert hosts["sandbox.network"] is None
    assert overrides_of(read())["sandbox.domains"] == ()


@pytest.mark.parametrize("value", ["", ",", "pypi.org,", "fix the failing test", "hello", "sessions"])
def test_allow_network_refuses_what_is_no_host(value: str) -> None:
    with pytest.raises(click.UsageError, match="--allow-network takes hosts, such as --allow-network=package-indexes"):
        check_options(read(f"--allow-network={value}"))


def test_sandbox_flags_are_settings_of_the_run() -> None:
    overrides = overrides_of(read("--sandbox", "off", "--allow-outside", "git commit *", "--allow-outside", "make"))

    assert overrides["sandbox.mode"] == "off"
    assert overrides["sandbox.outside"] == ("git commit *", "make")


def test_setting_options_are_named_as_typed() -> None:
    typed = {name for parameter in cli.params for name in parameter.opts}

    assert FLAGS.keys() == {*SETTING_BY_OPTION.values(), "sandbox.domains", "sandbox.network"}
    assert set(FLAGS.values()) <= typed
