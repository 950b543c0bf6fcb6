"""Claims in answers: statements of fact are found, and plans, conditions, questions and quotations are not."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.receipts.answer_claims import MOST_CLAIMS, claims_in


def texts(answer: str) -> list[str]:
    return [claim.text for claim in claims_in(answer)]


@pytest.mark.parametrize(
    "answer",
    [
        "Tests should pass now.",
        "If all tests pass, merge it.",
        "Run pytest to check that all tests pass.",
        "Make sure the tests pass before merging.",
        "Once all tests pass, I will commit.",
        "I have not verified that all tests pass.",
        "I couldn't confirm that it works on GPU.",
        "I can't say that the project builds.",
        "Not all tests pass.",
        "No tests pass.",
        "Most tests pass.",
        "All but one test passes.",
        "10 of 12 tests pass.",
        "2 failed, 10 passed",
        "```\n2 failed, 10 passed in 0.3s\n```",
        "Do all tests pass?",
        "> All tests pass.",
        "I could not run the tests.",
        "This would make it 2x faster.",
        "I built a parser on top of the old one.",
        "The tests are in tests/.",
        "I added tests for the parser.",
        "The function passes the value to the test.",
        "It runs the tests in a loop.",
        "The build script is in setup.py.",
        "Let me verify the numbers.",
        "The figure is in the paper.",
        "Pass the tests folder as an argument.",
        "The tests pass arguments to the runner, and each test passes a dict.",
        "You can verify that the tests pass with `pytest`.",
        "This function checks whether the build passes.",
        "",
    ],
)
def test_no_statement_of_fact_is_a_claim(answer: str) -> None:
    assert texts(answer) == []


def test_claims_come_in_their_order_and_once() -> None:
    answer = "**It builds without errors**, and all tests pass. All tests pass. It works on GPU \u2013 2\u00d7 faster!"

    assert texts(answer) == ["It builds", "all tests pass", "works on GPU", "2x faster"]


@pytest.mark.parametrize(
    ("answer", "claimed"),
    [
        ("Test results: 15/15 passing.", ["15/15 passing"]),
        ("100% of the tests pass.", ["100% of the tests pass"]),
        ("The tests ran successfully.", ["The tests ran successfully"]),
        ("The previously failing test now passes.", ["The previously failing test now passes"]),
        ("| Tests | ✅ 23 passed |", ["Tests | ✅", "23 passed"]),
        ("- **Build**: successful\n- **Lint**: no errors", ["Build: successful", "Lint: no errors"]),
        ("`ruff check .`, which reports no issues", ["ruff check ., which reports no issues"]),
        ("Running it confirms that everything works.", ["everything works"]),
        ("The code works on both CPU and GPU.", ["works on both CPU and GPU"]),
        ("CUDA support works.", ["CUDA support works"]),
        ("It's now twice as fast.", ["twice as fast"]),
        ("Our accuracy is within 0.3% of the reported value.", ["within 0.3% of the reported"]),
        ("I have reproduced Table 2 of the paper.", ["reproduced Table 2 of the paper"]),
    ],
)
def test_claim_is_found_in_many_phrasings(answer: str, claimed: list[str]) -> None:
    assert texts(answer) == claimed


@pytest.mark.parametrize(
    "answer",
    [
        "I verified that the file exists.",
        "I've verified this by reading `src/a.py`.",
        "User input is validated before it is stored.",
        "The token is verified by the server.",
        "This is tested in tests/test_a.py.",
        "A heap is faster than a sorted list for this.",
        "The project builds on numpy.",
        "There is no regression test for this.",
        "According to the README, all tests pass on Linux.",
        "The commit message says that all tests pass.",
        "The documentation says it works on GPU.",
        "The three tests passed in the log that you pasted.",
        "The linter passes each file to a worker.",
    ],
)
def test_claims_are_not_what_others_say_or_code_does(answer: str) -> None:
    assert texts(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The fix is tested and verified.",
        "I verified that the importer handles empty files.",
        "It is faster than before.",
        "The project builds on Linux.",
        "Your tests pass.",
        "The run shows that all tests pass.",
    ],
)
def test_claims_may_look_like_words_of_others(answer: str) -> None:
    assert texts(answer)


def test_claim_knows_count_files_and_kind_of_tests() -> None:
    [counted] = claims_in("All 1,200 tests pass.")
    [named] = claims_in("The tests in `tests/test_a.py` and `tests/test_b.py` pass.")
    [narrow] = claims_in("The integration tests pass.")
    [command] = claims_in("`uv run mypy src` passes.")

    assert (counted.passed, counted.is_all) == (1_200, True)
    assert named.files == ("tests/test_a.py", "tests/test_b.py")
    assert narrow.qualifier == "integration"
    assert command.command == ("uv", "run", "mypy", "src")


def test_long_answer_is_looked_through_at_both_ends() -> None:
    answer = f"It builds.\n{'word ' * 100_000}\nAll tests pass."

    assert texts(answer) == ["It builds", "All tests pass"]


def test_claims_are_bounded() -> None:
    answer = "\n".join(f"{number} tests passed." for number in range(100))

    assert len(texts(answer)) == MOST_CLAIMS


@pytest.mark.parametrize(
    "piece", ["a-", "all ", "tests ", "1,", "is ", "`", "test_", "all the new ", "it now ", "I verified "]
)
def test_answer_of_one_piece_takes_no_time(piece: str) -> None:
    claims_in("warm up")
    began = time.process_time()
    claims_in(piece * (40_000 // len(piece)))

    assert time.process_time() - began < 2


@given(st.text(max_size=300))
def test_quoted_claims_are_one_short_line(answer: str) -> None:
    for text in texts(f"{answer} all tests pass {answer}"):
        assert len(text) <= 60
        assert not re.search(r"[\n\r]", text)
