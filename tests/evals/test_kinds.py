"""The tasks of the evaluation can be done, and only what was asked for counts as done."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from evals.kinds import KINDS
from evals.task import Outcome, Task
from evals.vocabulary import SETS, Vocabulary

SEEDS = range(6)
CASES = [(name, kind) for name in SETS for kind in KINDS]

Names: TypeAlias = dict[str, str]
"""Return the values of the words in braces of a wording."""
Solver: TypeAlias = Callable[[Path, Names, Vocabulary], tuple[str, tuple[str, ...]]]
"""Does a task by hand from what its prompt says; returns the answer and the commands that were run."""


def task_of(set_name: str, kind: str, seed: int) -> Task:
    return KINDS[kind](Random(f"test {seed}"), SETS[set_name])


def read_prompt(task: Task, words: Vocabulary) -> Names:
    """Return what a prompt says, by the wording that it was made of."""
    for wording in words.wordings[task.kind]:
        if found := re.fullmatch(_pattern(wording), task.prompt):
            return found.groupdict()
    raise AssertionError(f"no wording of {task.kind} gives: {task.prompt}")


def _pattern(wording: str) -> str:
    pattern, seen = "", set()
    for number, piece in enumerate(re.split(r"\{(\w+)\}", wording)):
        if number % 2 == 0:
            pattern += re.escape(piece)
        elif piece in seen:
            pattern += f"(?P={piece})"
        else:
            seen.add(piece)
            pattern += f"(?P<{piece}>{'.+' if piece in ('text', 'job') else r'[^ ]+'})"
    return pattern


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def read(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    found = dict(line.split(": ") for line in (folder / names["file"]).read_text().splitlines())
    return f"It is {found[names['key']].capitalize()}.", ()


def create(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    (folder / names["file"]).write_text(f"{names['text']}\n")
    return "done", ()


def replace(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    edit(folder / names["file"], names["old"], names["new"])
    return "done", ()


def list_files(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    return ", ".join(path.name for path in (folder / names["folder"]).iterdir()), ()


def count(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    return f"{names['file']} has {len((folder / names['file']).read_text().splitlines())} lines.", ()


def rename(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    for file in (names["first"], names["second"]):
        edit(folder / file, names["old"], names["new"])
    return "done", ()


def search(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    (path,) = [path for path in folder.rglob("*.py") if names["symbol"] in path.read_text()]
    return f"It is in `{path.relative_to(folder)}`.", ()


def append(folder: Path, names: Names, _: Vocabulary) -> tuple[str, tuple[str, ...]]:
    path = folder / names["file"]
    path.write_text(f"{path.read_text()}{names['text']}\n")
    return "done", ()


def script(folder: Path, names: Names, words: Vocabulary) -> tuple[str, tuple[str, ...]]:
    jobs = {program.wording.format(n=n): (program, n) for program in words.programs for n in range(20)}
    program, n = jobs[names["job"]]
    (folder / names["file"]).write_text(f"n = {n}\nfor line in {program.expected}:\n    print(line)\n")
    return "done", (f"python3 {names['file']}",)


def fix_bug(folder: Path, names: Names, words: Vocabulary) -> tuple[str, tuple[str, ...]]:
    path = folder / names["file"]
    head = path.read_text().splitlines()[0]
    (bug,) = [bug for bug in words.bugs if bug.module.startswith(head)]
    path.write_text(bug.module)
    return "done", ()


SOLVERS: dict[str, Solver] = {
    "read": read,
    "create": create,
    "replace": replace,
    "list": list_files,
    "count": count,
    "rename": rename,
    "search": search,
    "append": append,
    "script": script,
    "fix_bug": fix_bug,
}


def solved(task: Task, folder: Path, words: Vocabulary) -> Outcome:
    task.write(folder)
    answer, commands = SOLVERS[task.kind](folder, read_prompt(task, words), words)
    return Outcome(folder, answer, commands, calls=1)


def test_kinds_are_eight_or_more() -> None:
    assert len(KINDS) >= 8
    assert set(SOLVERS) == set(KINDS)


@pytest.mark.parametrize(("set_name", "kind"), CASES)
def test_task_that_was_done_passes(tmp_path: Path, set_name: str, kind: str) -> None:
    for seed in SEEDS:
        task = task_of(set_name, kind, seed)
        assert task.kind == kind
        assert task.has_passed(solved(task, tmp_path / str(seed), SETS[set_name])), task.prompt


@pytest.mark.parametrize(("set_name", "kind"), CASES)
@pytest.mark.parametrize("answer", ["", "It is done."])
def test_task_without_changes_fails_for_any_answer(tmp_path: Path, set_name: str, kind: str, answer: str) -> None:
    for seed in SEEDS[:2]:
        task = task_of(set_name, kind, seed)
        folder = tmp_path / str(seed)
        task.write(folder)
        assert not task.has_passed(Outcome(folder, answer, (), calls=1)), task.prompt


@pytest.mark.parametrize(("set_name", "kind"), CASES)
@pytest.mark.parametrize("deed", ["make", "change", "remove"])
def test_task_with_another_file_changed_fails(tmp_path: Path, set_name: str, kind: str, deed: str) -> None:
    task = task_of(set_name, kind, 1)
    outcome = solved(task, tmp_path, SETS[set_name])
    others = [tmp_path / name for name in task.files if name not in task.may_change]
    if deed == "make" or not others:
        (tmp_path / "other.txt").write_text("more")
    elif deed == "change":
        others[0].write_text(others[0].read_text() + "more\n")
    else:
        others[0].unlink()

    assert not task.has_passed(outcome)


@pytest.mark.parametrize("set_name", SETS)
@pytest.mark.parametrize("kind", ["read", "list", "count", "search"])
def test_guessed_answer_fails(tmp_path: Path, set_name: str, kind: str) -> None:
    task = task_of(set_name, kind, 1)
    outcome = solved(task, tmp_path, SETS[set_name])

    assert not task.has_passed(Outcome(tmp_path, outcome.answer, (), calls=0))


def test_number_within_another_is_no_answer(tmp_path: Path) -> None:
    task = task_of("development", "count", 1)
    outcome = solved(task, tmp_path, SETS["development"])
    number = re.findall(r"\d+", outcome.answer)[-1]

    assert not task.has_passed(Outcome(tmp_path, f"It has 1{number} lines.", (), calls=1))


@pytest.mark.parametrize("commands", [(), ("",), ("ls",)])
def test_script_that_was_not_run_fails(tmp_path: Path, commands: tuple[str, ...]) -> None:
    task = task_of("counted", "script", 1)
    outcome = solved(task, tmp_path, SETS["counted"])
    (file,) = task.may_change

    assert not task.has_passed(Outcome(tmp_path, "done", commands, calls=1))
    assert not task.has_passed(Outcome(tmp_path, "done", (f"cat {file}",), calls=1))
    assert task.has_passed(outcome)


def test_sets_share_no_words_wordings_programs_or_bugs() -> None:
    first, second = SETS.values()
    for part in ("nouns", "values", "functions", "folders", "programs"):
        assert not set(getattr(first, part)) & set(getattr(second, part))
    assert not {bug.module for bug in first.bugs} & {bug.module for bug in second.bugs}
    assert not {program.wording for program in first.programs} & {program.wording for program in second.programs}
    assert set(first.wordings) == set(second.wordings) == set(KINDS)
    for kind in KINDS:
        assert not set(first.wordings[kind]) & set(second.wordings[kind])
        assert min(len(first.wordings[kind]), len(second.wordings[kind])) >= 3


@pytest.mark.parametrize("words", SETS.values(), ids=SETS)
def test_bug_fails_its_check_until_it_is_fixed(words: Vocabulary) -> None:
    for bug in words.bugs:
        right = bug.module.partition("return ")[2].strip()
        for module, passes in ((bug.module, True), (bug.module.replace(right, bug.wrong), False)):
            names: dict[str, object] = {}
            exec(module, names)
            assert bool(eval(bug.check, names)) == passes, module


def test_trials_of_a_kind_differ() -> None:
    for set_name, kind in CASES:
        assert len({task_of(set_name, kind, seed).prompt for seed in range(10)}) >= 8
