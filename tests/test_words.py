"""The check of words finds what it is for, and nothing else."""

import subprocess
from pathlib import Path

import pytest

from scripts.check_words import findings, findings_in, findings_in_names, subject_problem


def problems_in(source: str) -> list[str]:
    return [f"{one.where} {one.problem.split(';')[0]}" for one in findings_in(source, "a.py")]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""What it holds."""\n', 1),
        ('x = 1\n"""Of a row."""\n', 2),
        ('class A:\n    """Where it is."""\n', 2),
        ('class A:\n    x: int = 1\n    """How many."""\n', 3),
        ('def f():\n    """Whether it\n    is."""\n', 2),
        ('async def f():\n    y = 1\n    """WHY: it is."""\n', 3),
    ],
)
def test_docstring_that_begins_with_a_question_word_is_found(source: str, line: int) -> None:
    (problem,) = problems_in(source)

    assert problem.startswith(f"a.py:{line} a docstring begins with")


@pytest.mark.parametrize(
    "source",
    [
        '"""Whatever it holds."""\n',
        '"""Return what it holds."""\n',
        'def f():\n    g("What is it?")\n    "What is it?"\n',
        'if x:\n    "Where"\n',
        "",
        '""""""\n',
    ],
)
def test_other_texts_are_no_findings(source: str) -> None:
    assert problems_in(source) == []


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("x = 1  # the user and his key\n", True),
        ('"""Ask the user if he wants it."""\n', True),
        ('"""Send what She said."""\n', True),
        ('"""Take the words `he` and "his"."""\n', False),
        ('"""The other, her\u2019s."""\n', True),
        ("his = 1\nx = 'he'\n", False),
        ('"""Then shed the history."""\n', False),
    ],
)
def test_pronoun_is_found_in_docstrings_and_comments(source: str, is_found: bool) -> None:
    assert bool(problems_in(source)) is is_found


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("test_what_is_typed_is_kept", "begins with 'what'"),
        ("test_a_file_is_read", "begins with 'a'"),
        ("test_the_file", "begins with 'the'"),
        ("test_file_is_what_it_was", ""),
        ("test_with_ids_keeps_the_ids", ""),
        (f"test_{'x' * 55}", ""),
        (f"test_{'x' * 56}", "61 characters"),
        ("the_test", ""),
    ],
)
def test_name_of_a_test_is_short_and_begins_with_a_unit(name: str, problem: str) -> None:
    for source in (f"def {name}(): ...\n", f"class A:\n    async def {name}(self): ...\n"):
        assert [problem in one.problem for one in findings_in_names(source, "a.py")] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("subject", "is_well"),
    [
        ("sandbox: parse untrusted files in one worker", True),
        ("faces/plain: print a question whole", True),
        ("3: x", False),
        ("What strangers made is taken apart", False),
        ("sandbox: Parse files", False),
        ("sandbox: parse files.", False),
        ("Merge branch x", False),
        (f"sandbox: {'x' * 63}", True),
        (f"sandbox: {'x' * 64}", False),
    ],
)
def test_subject_of_a_commit_is_scope_and_imperative(subject: str, is_well: bool) -> None:
    assert (subject_problem(subject) is None) is is_well


def test_findings_cover_all_modules_of_a_checkout(tmp_path: Path) -> None:
    for name in ("panpan/a/b.py", "scripts/c.py", "tests/d.py", "e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('"""What is here."""\n\n\ndef test_a(): ...\n')
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)

    assert [one.where for one in findings(tmp_path)] == [
        "panpan/a/b.py:1",
        "scripts/c.py:1",
        "tests/d.py:1",
        "tests/d.py:4",
    ]
