"""Lines are taken apart into commands, and seeds are found in them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.receipts.command_words import commands_of, seeds_of


def test_line_is_taken_apart_as_the_shell_would() -> None:
    assert commands_of("cd 'a b' && pytest -q | tail -1; X=1 make \"$T\"", ()) == (
        ("cd", "a b"),
        ("pytest", "-q"),
        ("tail", "-1"),
        ("make", '"$T"'),
    )


def test_program_without_a_line_is_one_command() -> None:
    assert commands_of("", ["python", "a b.py"]) == (("python", "a b.py"),)
    assert commands_of("", []) == ()


@pytest.mark.parametrize("line", ["echo 'a", "if true; then", "a (("])
def test_line_that_cannot_be_parsed_has_no_commands(line: str) -> None:
    assert commands_of(line, ()) == ()


@pytest.mark.parametrize(
    ("line", "seeds"),
    [
        ("python train.py --seed 3", {"seed": "3"}),
        ("python train.py --seed=3 --random-state 5", {"seed": "3", "random-state": "5"}),
        ("python train.py seed=3 model.seed=4", {"seed": "3", "model.seed": "4"}),
        ("python train.py --data_seed 7 +seed=1,2,3", {"data_seed": "7", "seed": "1,2,3"}),
        ("SEED=1 PYTHONHASHSEED=0 python a.py", {"SEED": "1", "PYTHONHASHSEED": "0"}),
        ("pytest -p no:randomly --randomly-seed=42", {"randomly-seed": "42"}),
        ("for s in 1 2; do python a.py --seed $s; done", {}),
        ("cat seeds.txt; ls --seedling 3; echo proceed=4", {}),
        ("grep seed file", {}),
    ],
)
def test_seeds_are_found_in_words(line: str, seeds: dict[str, str]) -> None:
    assert seeds_of(line, (), {}) == seeds


def test_seeds_are_found_in_words_and_variables() -> None:
    variables = {"PYTHONHASHSEED": "0", "PL_GLOBAL_SEED": "12", "SEED_PHRASE": "correct horse battery", "HOME": "/root"}
    assert seeds_of("", ["a.py", "--seed", "9"], variables) == {
        "PL_GLOBAL_SEED": "12",
        "PYTHONHASHSEED": "0",
        "seed": "9",
    }


@settings(max_examples=20)
@given(st.text(max_size=60))
def test_any_line_can_be_stored(line: str) -> None:
    for words in commands_of(line, ()):
        "".join(words).encode()
    for name, value in seeds_of(line, (), {}).items():
        f"{name}={value}".encode()
