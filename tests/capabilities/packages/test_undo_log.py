"""Undoing a step restores exactly the changes of that step."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.packages.target import Installed
from panpan.capabilities.packages.undo_log import FileStep, Step, Steps, changed_files, difference, file_texts, undo
from panpan.errors import ToolError

PACKAGES = st.builds(
    Installed,
    name=st.sampled_from(["lamp", "desk", "shelf", "chair"]),
    version=st.sampled_from(["1", "2", "3"]),
    by=st.sampled_from(["pip", "conda"]),
    build=st.sampled_from(["", "py_0"]),
)
FREEZES = st.lists(PACKAGES, unique_by=lambda package: package.key)


def step_between(before: Sequence[Installed], after: Sequence[Installed], files: Sequence[FileStep] = ()) -> Step:
    changes = difference(before, after)
    return Step(
        prefix="/env",
        manager="pip",
        what="install",
        made_environment=False,
        before=(*changes.removed, *(old for old, _ in changes.changed)),
        after=(*changes.added, *(new for _, new in changes.changed)),
        files=tuple(files),
    )


def applied(remove: Sequence[Installed], restore: Sequence[Installed], now: Sequence[Installed]) -> set[Installed]:
    """Return what is installed once these are taken away and those installed."""
    left = {package.key: package for package in now if package not in remove}
    return set((left | {package.key: package for package in restore}).values())


@given(FREEZES, FREEZES)
def test_package_is_in_one_kind_of_change_at_most(before: list[Installed], after: list[Installed]) -> None:
    changes = difference(before, after)

    keys = [one.key for one in (*changes.added, *changes.removed, *(new for _, new in changes.changed))]
    assert len(keys) == len(set(keys))
    assert bool(changes) == (set(before) != set(after))


@given(FREEZES, FREEZES)
def test_undo_restores_the_exact_packages(before: list[Installed], after: list[Installed]) -> None:
    found = undo(step_between(before, after), after)

    assert applied(found.remove, found.restore, after) == set(before)
    assert found.notes == ()


@given(FREEZES, FREEZES, FREEZES)
def test_undo_leaves_untouched_and_later_changed_packages(
    before: list[Installed], after: list[Installed], now: list[Installed]
) -> None:
    step = step_between(before, after)

    found = undo(step, now)

    touched = {one.key for one in (*step.before, *step.after)}
    changed_since = {one.key for one in now} & {one.key for one in step.after} - {
        one.key for one in set(now) & set(step.after)
    }
    acted = {one.key for one in (*found.remove, *found.restore)}
    assert acted <= touched
    assert not acted & changed_since


HOSTILE = st.sampled_from(
    ["--index-url=x", "-r", "x @ https://evil.example.org/x.whl", "1;x", "1 --pre", "", "a\nb", "…"]
)


@given(HOSTILE, HOSTILE, st.sampled_from(["pip", "conda"]), st.booleans())
def test_forged_record_leads_to_no_command(name: str, text: str, by: str, in_name: bool) -> None:
    package = Installed(name=name if in_name else "lamp", version="1" if in_name else text, by=by)

    taken, given_back = undo(step_between([], [package]), [package]), undo(step_between([package], []), [])

    assert (taken.remove, given_back.restore) == ((), ())
    assert taken.notes
    assert given_back.notes


def test_steps_are_private_and_kept_per_environment(tmp_path: Path) -> None:
    steps = Steps(tmp_path / "steps")
    step = step_between([], [Installed(name="lamp", version="1")])

    steps.save(step)

    assert steps.last(Path("/env")) == step
    assert [oct(file.stat().st_mode & 0o777) for file in (tmp_path / "steps").iterdir()] == ["0o600"]
    with pytest.raises(ToolError, match="no change of /other"):
        steps.last(Path("/other"))
    steps.forget(Path("/env"))
    with pytest.raises(ToolError, match="no change of /env"):
        steps.last(Path("/env"))


def test_damaged_step_is_reported_and_nothing_is_done(tmp_path: Path) -> None:
    steps = Steps(tmp_path)
    steps.save(step_between([], []))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"{}")

    with pytest.raises(ToolError, match="cannot be read, so nothing is done"):
        steps.last(Path("/env"))


def test_missing_folder_cannot_be_reinstalled(tmp_path: Path) -> None:
    mine = Installed(name="mine", version="1", path=str(tmp_path / "gone"), is_editable=True)

    found = undo(step_between([mine], []), [])

    assert found.restore == ()
    assert found.notes == (f"mine 1 ({tmp_path}/gone editable) cannot come back: what it was installed from is gone",)


def test_changed_files_are_reported_with_their_old_state(tmp_path: Path) -> None:
    kept, changed, made = (tmp_path / name for name in ("kept", "changed", "made"))
    kept.write_text("same")
    changed.write_text("old")
    texts = file_texts([kept, changed, made])

    changed.write_text("new")
    made.write_text("here")

    steps = changed_files(texts)
    assert [(Path(step.path).name, step.before) for step in steps] == [("changed", "old"), ("made", None)]
    assert undo(step_between([], [], steps), []).files == steps
    made.write_text("edited")
    assert undo(step_between([], [], steps), []).notes == (f"{made} was changed since, and stays",)
