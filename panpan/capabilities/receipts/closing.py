"""The closing line of a turn: what the commands of the session show, and what of the answer they do not show.

It is computed from receipts, and costs no tokens. The rule: nothing that is not shown is called verified.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence

from panpan.capabilities.receipts.answer_claims import AnswerClaim, ClaimKind
from panpan.capabilities.receipts.build_scope import is_compiler
from panpan.capabilities.receipts.command_scope import (
    line_of,
    names_test_program,
    node_ids,
    selects_tests,
    test_line_of,
)
from panpan.capabilities.receipts.descriptions import spoken_age
from panpan.capabilities.receipts.session_evidence import CommandRun, SessionEvidence, is_test_file
from panpan.system.text.terminal_text import counted
from panpan.types.dataclass import dataclass
from panpan.types.events import Verification

_MOST_FACTS = 4
"""Most results that one part of the line names."""
_MOST_LABEL = 48
"""Longest command in it."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing line as data."""

    verification: Verification | None
    """None if there is nothing to say."""
    holding: frozenset[str] = frozenset()
    """Ids of the receipts whose results this line or an earlier one called verified, and that still hold."""


def closing(claims: Sequence[AnswerClaim], evidence: SessionEvidence, told: Collection[str] = ()) -> Closing:
    """Return the closing line of a turn.

    Args:
        claims: Claims of the answer.
        evidence: Commands of the session.
        told: Ids of the receipts whose results an earlier line called verified.
    """
    unverified, shown_by = list[str](), list[CommandRun]()
    for claim in claims:
        runs = _SHOWN_BY[claim.kind](claim, evidence)
        shown_by += runs
        if not runs:
            unverified.append(claim.text)
    kinds = {claim.kind for claim in claims}
    runs = [run for run in evidence.runs if run in shown_by or _is_told(run, evidence, kinds, told)]
    verified = [run for run in runs if run in shown_by or _holds(run)]
    failed = [run for run in runs if run not in verified and run.is_fresh and _has_failed(run)]
    stale = [run for run in runs if not run.is_fresh and _showed_something(run)]
    found = Verification(
        _bounded([_result(run, evidence) for run in verified]),
        _bounded([_failure(run, evidence) for run in failed]),
        _bounded([_stale(run) for run in stale]),
        tuple(unverified),
    )
    holding = [run for run in evidence.runs if run in verified or (run.receipt.id in told and _holds(run))]
    return Closing(found if found.line else None, frozenset(run.receipt.id for run in holding))


def _is_told(run: CommandRun, evidence: SessionEvidence, kinds: Collection[ClaimKind], told: Collection[str]) -> bool:
    """Return True if the line is to name a run that no claim needs."""
    is_test, is_build = run in evidence.test_runs, run in evidence.builds
    if not (is_test or is_build):
        return False
    is_news = run.is_of_turn or (run.receipt.id in told and not run.is_fresh)
    return is_news or ("tests" in kinds and is_test) or ("build" in kinds and is_build)


def _holds(run: CommandRun) -> bool:
    return run.is_fresh and (run.tests_passed if run.is_of_tests else run.is_of_build and run.succeeded)


def _has_failed(run: CommandRun) -> bool:
    return run.was_seen_to_fail or run.failed > 0 or (run.passed > 0 and not run.receipt.is_success)


def _showed_something(run: CommandRun) -> bool:
    return run.passed + run.failed > 0 or (run.is_of_build and run.succeeded)


# Claims, and the runs that show them; none if nothing does.


def _of_tests(claim: AnswerClaim, evidence: SessionEvidence) -> Sequence[CommandRun]:
    if claim.files:
        return _of_files(claim, evidence)
    if not claim.is_all:
        return [run for run in evidence.good_tests if run.passed == claim.passed]
    if claim.qualifier.startswith("test_"):
        return [run for run in evidence.good_tests if claim.qualifier in node_ids(run.receipt)]
    if claim.qualifier in _NEW:
        return _of_new_files(evidence)
    if evidence.doubts:
        return ()
    runs = [run for run in evidence.good_tests if run.scope == "all"]
    if claim.qualifier:
        runs = [run for run in runs if _is_about(run, claim.qualifier)]
    if claim.passed is not None and sum(run.passed for run in runs) != claim.passed:
        return [run for run in runs if run.passed == claim.passed and len(runs) == 1]
    return runs


_NEW = frozenset({"new", "added", "updated", "my", "regression"})


def _of_new_files(evidence: SessionEvidence) -> Sequence[CommandRun]:
    """Return the runs that show that the test files of this session pass."""
    runs = [run for run in evidence.good_tests if run.scope != "part" and run.files & evidence.written]
    new = {path for path in evidence.written if is_test_file(path)}
    return runs if new and new <= frozenset[str]().union(*(run.files for run in runs)) else ()


def _of_files(claim: AnswerClaim, evidence: SessionEvidence) -> Sequence[CommandRun]:
    shown: list[CommandRun] = []
    for name in claim.files:
        path, _, node = name.removeprefix("./").partition("::")
        runs = [run for run in evidence.good_tests if _tested(run, path, node.rpartition("::")[2])]
        if not runs or any(_is_doubt(doubt, path) for doubt in evidence.doubts):
            return ()
        shown.append(runs[-1])
    if claim.passed is not None and sum(run.passed for run in dict.fromkeys(shown)) != claim.passed:
        return ()
    return shown


def _tested(run: CommandRun, path: str, node: str) -> bool:
    has_file = any(file == path or file.endswith(f"/{path}") for file in run.files)
    return has_file and (node in node_ids(run.receipt) if node else run.scope != "part")


def _is_doubt(run: CommandRun, path: str) -> bool:
    return not run.files or any(file == path or file.endswith(f"/{path}") for file in run.files)


def _is_about(run: CommandRun, qualifier: str) -> bool:
    parts = {part for file in run.files for part in re.split(r"[/_.-]", file.casefold())}
    return qualifier in parts or qualifier in {family.casefold() for family in run.families}


def _of_build(claim: AnswerClaim, evidence: SessionEvidence) -> Sequence[CommandRun]:
    is_of_all = re.search(r"(?i)\b(?:project|package|everything|code|build)\b", claim.text) is not None
    good = [
        run
        for run in evidence.builds
        if run.is_of_build and run.is_fresh and run.succeeded and run.builds_all
        if not (is_of_all and is_compiler(run.receipt))
    ]
    if not good:
        return ()
    newest = good[-1]
    return () if any(later.is_like_build and not later.succeeded for later in evidence.after(newest)) else [newest]


def _of_command(claim: AnswerClaim, evidence: SessionEvidence) -> Sequence[CommandRun]:
    """Return the newest run of a command that is named in the answer, if it succeeded."""
    wanted = _plain(claim.command)
    if not wanted:
        return ()
    if len(wanted) == 1 and selects_tests(wanted[0]):
        runs = [run for run in evidence.good_tests if run.scope == "all" and wanted[0] in run.families]
        return () if evidence.doubts else runs
    for run in reversed(evidence.runs):
        named = [words for words in map(_plain, run.receipt.commands) if _is_named(words, wanted, claim.is_tool)]
        if named:
            is_good = run.is_fresh and run.succeeded and _is_at_top(run)
            if claim.is_tool:  # a script of the workspace that has its name is another program
                read = {file.path for file in run.receipt.inputs}
                is_good = is_good and not any(posixpath.normpath(words[0]) in read for words in run.receipt.commands)
            if names_test_program(run.receipt):
                is_good = is_good and run.tests_passed
            return [run] if is_good and (named[0] == wanted or _is_whole_check(named[0][len(wanted) :])) else ()
    return ()


def _is_named(words: Sequence[str], wanted: Sequence[str], is_tool: bool) -> bool:
    """Return True if a command is the one that is named; a tool is named without the folders that it checks."""
    return list(words) == list(wanted) or (is_tool and list(words[: len(wanted)]) == list(wanted))


def _is_whole_check(rest: Sequence[str]) -> bool:
    """Return True if the words behind a tool that checks code are folders and flags that leave nothing out."""
    return all(
        word in ("check", "--check", "--strict", "-q", "--quiet", "--pretty", ".")
        or not (word.startswith("-") or "." in posixpath.basename(word) or "::" in word or word in _OTHER_VERBS)
        for word in rest
    )


_OTHER_VERBS = frozenset({"format", "help", "version", "config", "rule", "clean", "server", "linter", "install"})


def _is_at_top(run: CommandRun) -> bool:
    return run.receipt.cwd == "." and all(words[:1] != ("cd",) for words in run.receipt.commands)


def _plain(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command without launchers, folders of programs and a last `.`."""
    rest = [posixpath.basename(words[0]), *words[1:]] if words else []
    if rest[:2] in (["uv", "run"], ["poetry", "run"], ["pdm", "run"], ["hatch", "run"]) or rest[:1] == ["npx"]:
        rest = rest[1:] if rest[0] == "npx" else rest[2:]
        return _plain(rest)
    if len(rest) > 2 and re.fullmatch(r"python[\d.]*", rest[0]) and rest[1] == "-m":
        rest = rest[2:]
    return tuple(rest[:-1] if rest[1:] and rest[-1] == "." else rest)


def _of_nothing(claim: AnswerClaim, evidence: SessionEvidence) -> Sequence[CommandRun]:
    return ()


_SHOWN_BY: Mapping[ClaimKind, Callable[[AnswerClaim, SessionEvidence], Sequence[CommandRun]]] = {
    "tests": _of_tests,
    "build": _of_build,
    "command": _of_command,
    "other": _of_nothing,
}


# Words for runs.


def _result(run: CommandRun, evidence: SessionEvidence) -> str:
    about = [_label(run), spoken_age(run.receipt.ended_at, evidence.now), *_of_session(run, evidence)]
    return f"{_outcome(run)} ({', '.join(about)})"


def _outcome(run: CommandRun) -> str:
    if not run.is_of_tests:
        return "build" if run.is_of_build else "exit code 0"
    skipped = f", {run.skipped:,} skipped" if run.skipped else ""
    return f"{counted(run.passed, 'test')} passed{skipped}"


def _failure(run: CommandRun, evidence: SessionEvidence) -> str:
    age = spoken_age(run.receipt.ended_at, evidence.now)
    return f"{_problem(run)} ({_label(run)}, {age})"


def _problem(run: CommandRun) -> str:
    receipt = run.receipt
    if run.failed:
        ran = run.passed + run.failed
        return f"{run.failed:,} of {counted(ran, 'test')}"
    what = "tests" if run.is_of_tests else "build"
    return f"{what} timed out" if receipt.timed_out else f"{what} with exit code {receipt.exit_code}"


def _stale(run: CommandRun) -> str:
    if run.is_of_tests:
        ran = run.passed + run.failed
        failed = f", {run.failed:,} failed" if run.failed else ""
        what = f"{counted(ran, 'test')}{failed}"
    else:
        what = "build"
    if run.state == "unknown":
        why = "its inputs are not known"
    else:
        more = f" and {len(run.changed) - 1} more" if len(run.changed) > 1 else ""
        why = f"{run.changed[0]}{more} changed since" if list(run.changed) not in ([], ["."]) else "files changed since"
    return f"{what} ({_label(run)}; {why})"


def _label(run: CommandRun) -> str:
    frameworks = list(dict.fromkeys(counts.framework for counts in run.receipt.tests if counts.framework))
    if frameworks and run.scope == "all":
        return " and ".join(frameworks)
    line = test_line_of(run.receipt) if run.is_of_tests else line_of(run.receipt)
    line = line if len(line) <= _MOST_LABEL else f"{line[: _MOST_LABEL - 1]}…"
    return f"{line} without {run.unseen[0]}" if run.unseen else line


_DEFINITIONS = re.compile(
    r"conftest\.py|(?:pytest|sitecustomize|usercustomize)\.py|pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|noxfile\.py|Makefile|justfile|package\.json|"
    r"(?:jest|vitest)\.config\.\w+|CMakeLists\.txt|build\.gradle(?:\.kts)?|pom\.xml"
)
_EXPECTED = re.compile(r"(?i)\.(?:json|jsonl|csv|tsv|txt|ya?ml|npy|npz|pkl|parquet|snap|out|expected|golden|ref)$")


def _of_session(run: CommandRun, evidence: SessionEvidence) -> Sequence[str]:
    """Return the references of a run that the session itself has written or removed, in words."""
    if not run.is_of_tests:
        return ()
    said = []
    own = run.files & evidence.written
    if own:
        said.append(_own_tests(run, own))
    if run.scope == "all" and evidence.removed:
        first, more = min(evidence.removed), len(evidence.removed) - 1
        said.append(f"{first}{f' and {more} more' if more else ''} removed in this session")
    programs = _files_in_words(run) & evidence.written - own
    for path in sorted(evidence.written & {file.path for file in run.receipt.inputs} - own | programs):
        name = posixpath.basename(path)
        if path in programs or _DEFINITIONS.fullmatch(name) or (_EXPECTED.search(name) and not name.startswith(".")):
            said.append(f"{path} written in this session")
    return said[:1] if len(said) < 2 else [*said[:2], *([f"{len(said) - 2} more"] if len(said) > 2 else [])]


def _files_in_words(run: CommandRun) -> frozenset[str]:
    """Return the words of a run as paths of the workspace; those that are files may be programs that it ran."""
    receipt = run.receipt
    return frozenset(
        posixpath.normpath(posixpath.join(receipt.cwd, word)) for words in receipt.commands for word in words
    )


def _own_tests(run: CommandRun, own: Collection[str]) -> str:
    """Return how many of the tests are in files of this session."""
    by_file = [counts.passed_in for counts in run.receipt.tests]
    if sum(sum(passed.values()) for passed in by_file) == run.passed:
        ours = sum(passed.get(file, 0) for passed in by_file for file in own)
        return f"{'all' if ours == run.passed else f'{ours:,}'} of them in files of this session"
    count = f"{len(own)} of {len(run.files)} test files" if len(run.files) > 1 else "its test file"
    return f"{count} written in this session"


def _bounded(texts: Sequence[str]) -> tuple[str, ...]:
    more = len(texts) - _MOST_FACTS
    return (*texts[:_MOST_FACTS], f"and {more} more") if more > 0 else tuple(texts)
