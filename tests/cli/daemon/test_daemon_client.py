"""A start asks the daemon only for what it can run as the start itself would."""

import pytest

from panpan.cli.daemon.client import may_be_served


@pytest.mark.parametrize(
    ("line", "has_input", "expected"),
    [
        ("-p hi", False, True),
        ("-cp hi", False, True),
        ("-phi", False, True),
        ("--model m --print hi", False, True),
        ("--print=hi", False, True),
        ("-f json", True, True),
        ("", True, True),
        ("", False, False),
        ("--plain", False, False),
        ("--permission-mode plan", False, False),
        ("login -p", True, False),
        ("doctor", True, False),
        ("-p hi --end-with-parent", True, False),
    ],
)
def test_headless_runs_are_served_and_others_are_not(line: str, has_input: bool, expected: bool) -> None:
    assert may_be_served(line.split(), {}, has_input=has_input) is expected


def test_prompt_of_several_words_is_no_subcommand() -> None:
    assert may_be_served(["fix the test"], {}, has_input=True)
    assert not may_be_served(["fix the test"], {}, has_input=False)


def test_run_that_another_panpan_looks_after_is_not_served() -> None:
    assert not may_be_served(["-p", "hi"], {"PANPAN_PROCESS_MARKS": "mark"}, has_input=True)
