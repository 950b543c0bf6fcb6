"""In plan mode nothing changes but the plan file, through whatever tool and whatever was allowed before."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.plan_mode.plan_mode import PlanMode
from panpan.capabilities.plan_mode.plan_mode_tools import EnterPlanModeTool, ExitPlanModeTool
from panpan.core.hooks import Hook
from panpan.core.tool import SeenFiles, ToolContext
from panpan.core.tool_executor import ToolExecutor
from panpan.permissions.folder_gate import ApprovingAsker, ModeAsker
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.content import ToolUseBlock
from panpan.types.events import PermissionDecided
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Asker, PermissionAnswer, PermissionMode, PermissionQuestion, PlanRejected
from tests.fakes.askers import yes
from tests.fakes.every_tool import every_tool
from tests.fakes.planning import ScriptedJudge

EVERYTHING = ("Write", "Edit", "MultiEdit", "Patch", "Rename", "Bash", "Read(//**)", "Edit(//**)")


class Place:
    """A workspace and a panpan home with files, and a session in plan mode that was allowed everything before."""

    def __init__(self, root: Path, *, deny: Sequence[str] = (), ask: Sequence[str] = ()) -> None:
        self.root, self.workspace, self.home = root, root / "workspace", root / ".panpan"
        for path in ("workspace/a.py", "workspace/sub/b.py", ".panpan/settings.toml", ".panpan/plans/old-idle-note.md"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("first\nsecond\n")
        self.asked = yes()
        self.asker: Asker = ApprovingAsker(self.asked)
        rules = RuleSource("test", allow=EVERYTHING, ask=ask, deny=deny)
        self.gate = PermissionGate([rules], mode="bypassPermissions")
        seen_files = SeenFiles()
        self.plan_mode = PlanMode(self.gate, self.home / "plans", seen_files)
        self.plan = anyio.run(self.plan_mode.begin)
        for path in self.files():
            seen_files.add(path, path.read_bytes())
        (self.workspace / "to-plan.md").symlink_to(self.plan)
        (self.workspace / "to-plans").symlink_to(self.plan.parent)
        (self.workspace / "to-settings.md").symlink_to(self.home / "settings.toml")
        paths = PathResolver(self.workspace, protected_roots=(self.home,), home=root)
        self.context = ToolContext("", paths, seen_files, OutputStore(root / "outputs"))
        self.judge = ScriptedJudge(*[PlanRejected()] * 20)
        own = EnterPlanModeTool(self.plan_mode, has_user=True), ExitPlanModeTool(self.plan_mode, self.judge)
        tools = (*every_tool(), *own)
        self.tools = {tool.name: tool for tool in tools}

    def files(self) -> Iterator[Path]:
        return (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())

    def state(self) -> Mapping[str, object]:
        """Return everything there is but what the plan file holds."""
        found: dict[str, object] = {}
        for parent, folders, names in os.walk(self.root):
            for name in (*folders, *names):
                path = Path(parent, name)
                if path.is_symlink():
                    found[str(path)] = path.readlink()
                elif path.is_file() and path != self.plan:
                    found[str(path)] = (path.read_bytes(), path.stat().st_mode)
                elif path.is_dir():
                    found[str(path)] = path.stat().st_mode
        return found

    def run(self, *calls: tuple[str, dict[str, Any]], extra: Sequence[Hook] = ()) -> list[tuple[bool, bool, str]]:
        """Run calls; return for each whether it was allowed, whether it worked, and what the model was told."""

        async def main() -> list[tuple[bool, bool, str]]:
            asker = ModeAsker(lambda: self.gate.mode, self.asker)
            executor = ToolExecutor(self.tools, self.context, (self.gate, self.plan_mode), ask=asker)
            uses = [ToolUseBlock(id=f"u{at}", name=name, input=input_) for at, (name, input_) in enumerate(calls)]
            allowed: dict[str, bool] = {}
            results: dict[str, ToolResultMessage] = {}
            async with executor, aclosing(executor.run(uses)) as events:
                async for event in events:
                    match event:
                        case PermissionDecided():
                            allowed[event.tool_use_id] = event.is_allowed
                        case ToolResultMessage():
                            results[event.tool_use_id] = event
                        case _:
                            pass
            return [(allowed.get(u.id, False), not results[u.id].is_error, results[u.id].text) for u in uses]

        return anyio.run(main)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def patch_of(path: object, *, to: object = None) -> str:
    move = f"*** Move to: {to}\n" if to else ""
    return f"*** Begin Patch\n*** Update File: {path}\n{move}@@\n-first\n+changed\n*** End Patch\n"


def test_plan_file_is_written_and_read_unasked(place: Place) -> None:
    path = str(place.plan)
    results = place.run(
        ("Write", {"file_path": path, "content": "first\n"}),
        ("Edit", {"file_path": path, "old_string": "first", "new_string": "first\nmore"}),
        ("MultiEdit", {"file_path": path, "edits": [{"old_string": "more", "new_string": "third"}]}),
        ("Patch", {"patch": patch_of(path)}),
        ("Read", {"file_path": path}),
    )

    assert [(allowed, worked) for allowed, worked, _ in results] == [(True, True)] * 5, results
    assert place.plan.read_text() == "changed\nthird\n"
    assert place.asked.questions == []


def test_plan_file_may_be_reached_through_links_and_dots(place: Place) -> None:
    for path in ("to-plan.md", f"to-plans/{place.plan.name}", f"../.panpan/plans/../plans/{place.plan.name}"):
        ((allowed, worked, said),) = place.run(("Write", {"file_path": path, "content": f"by {path}\n"}))
        assert (allowed, worked) == (True, True), said
        assert place.plan.read_text() == f"by {path}\n"
    assert (place.workspace / "to-plan.md").is_symlink()


@pytest.mark.parametrize(
    "path",
    ["a.py", "new.py", "../.panpan/settings.toml", "to-settings.md", "to-plans/old-idle-note.md", "to-plans/new.md",
     "to-plans/../settings.toml", "../.panpan/plans", "/tmp/elsewhere.md"],
)  # fmt: skip
def test_plan_mode_closes_every_other_file(place: Place, path: str) -> None:
    before = place.state()

    ((allowed, _, said),) = place.run(("Write", {"file_path": path, "content": "changed"}))

    assert not allowed
    assert "plan mode" in said
    assert place.state() == before
    assert place.asked.questions == []


def test_link_in_place_of_the_plan_file_opens_nothing(place: Place) -> None:
    place.plan.unlink()
    place.plan.symlink_to(place.workspace / "a.py")
    before = place.state()

    results = place.run(
        ("Write", {"file_path": str(place.plan), "content": "changed"}),
        ("ExitPlanMode", {"plan": "x" * 60}),
    )

    assert [worked for _, worked, _ in results] == [False, False]
    assert place.state() == before


def test_patch_of_the_plan_file_takes_no_other_along(place: Place) -> None:
    place.run(("Write", {"file_path": str(place.plan), "content": "first\n"}))
    before = place.state()

    moved = place.run(("Patch", {"patch": patch_of(place.plan, to="a2.md")}))
    several = patch_of(place.plan).replace("*** End Patch\n", "*** Add File: new.md\n+x\n*** End Patch\n")
    both = place.run(("Patch", {"patch": several}))

    assert [allowed for allowed, _, _ in (*moved, *both)] == [False, False]
    assert (place.state(), place.plan.read_text()) == (before, "first\n")


def test_deny_and_ask_rules_hold_for_the_plan_file(tmp_path: Path) -> None:
    denying, asking = Place(tmp_path / "a", deny=["Write"]), Place(tmp_path / "b", ask=["Write"])

    ((allowed, _, said),) = denying.run(("Write", {"file_path": str(denying.plan), "content": "x"}))
    asking.run(("Write", {"file_path": str(asking.plan), "content": "x"}))

    assert (allowed, "Write" in said) == (False, True)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
def test_plan_file_is_read_freely_and_protected_in_other_modes(tmp_path: Path, mode: PermissionMode) -> None:
    place = Place(tmp_path)
    place.gate.mode = mode

    ((_, read, _),) = place.run(("Read", {"file_path": str(place.plan)}))
    unasked = len(place.asked.questions)
    place.run(("Write", {"file_path": str(place.plan), "content": "x"}))

    assert (read, unasked) == (True, 0)
    assert [question.is_protected for question in place.asked.questions] == [True]


@pytest.mark.parametrize("command", ["ls -la", "cat a.py | head -1", "grep -rn first . 2>/dev/null", "wc -l a.py"])
def test_plan_mode_looks_around_unasked(place: Place, command: str) -> None:
    ((allowed, _, said),) = place.run(("Bash", {"command": command}))

    assert (allowed, place.asked.questions) == (True, []), said


def test_plan_mode_ends_only_with_the_users_yes(place: Place) -> None:
    plan = {"plan": "x" * 60}
    results = place.run(("EnterPlanMode", {}), ("ExitPlanMode", plan), ("Write", {"file_path": "new", "content": "x"}))

    assert place.gate.mode == "plan"
    assert [allowed for allowed, _, _ in results] == [True, True, False]
    assert not (place.workspace / "new").exists()


def test_plan_mode_switched_on_during_a_question_holds(tmp_path: Path) -> None:
    place = Place(tmp_path, ask=["Write"])
    place.gate.mode = "default"

    async def switches_meanwhile(question: PermissionQuestion) -> PermissionAnswer:
        place.gate.mode = "plan"
        return PermissionAnswer(is_allowed=True)

    place.asker = switches_meanwhile
    ((allowed, _, told),) = place.run(("Write", {"file_path": "new.py", "content": "x"}))

    assert (allowed, "Plan mode was switched on" in told) == (False, True)
    assert not (place.workspace / "new.py").exists()


# Whatever is called

_PATHS = st.sampled_from(
    ["a.py", "sub/b.py", "new.py", "sub/../new.py", "~/.panpan/settings.toml", "../.panpan/settings.toml", "to-plan.md",
     "to-settings.md", "to-plans/PLAN", "to-plans/new.md", "to-plans/../settings.toml", "PLAN", "PLAN/../x.md",
     "../workspace/a.py", ".git/config", "~/.bashrc", ""]
)  # fmt: skip
_TEXTS = st.sampled_from(["first", "second", "changed", "", "first\nsecond\n"])
_COMMANDS = st.sampled_from(
    ["touch x", "echo x > a.py", "echo x >> PLAN", "cat a.py > PLAN", "rm -rf sub", "mv a.py c.py", "cp a.py PLAN",
     "sed -i s/first/x/ a.py", "python3 -c 'open(\"y\", \"w\")'", "ls && touch x", "cat a.py | tee b", "git init",
     "find . -name a.py -delete", "env touch x", "$(touch x)", "ls > PLAN", "true; : > a.py", "ln -s a.py z",
     "ls -la", "cat a.py", "git status"]
)  # fmt: skip
_PATCHES = st.builds(lambda path, to: patch_of(path, to=to), _PATHS, st.none() | _PATHS) | st.builds(
    "*** Begin Patch\n*** Add File: {}\n+x\n*** Delete File: {}\n*** End Patch\n".format, _PATHS, _PATHS
)


def _call(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


_CALLS = st.one_of(
    _call("Write", file_path=_PATHS, content=_TEXTS),
    _call("Edit", file_path=_PATHS, old_string=_TEXTS, new_string=_TEXTS),
    _call("MultiEdit", file_path=_PATHS, edits=st.lists(st.fixed_dictionaries(
        {"old_string": _TEXTS, "new_string": _TEXTS}), min_size=1, max_size=2)),
    _call("Patch", patch=_PATCHES),
    _call("Rename", file_paths=st.lists(_PATHS, min_size=1, max_size=3), old_name=_TEXTS, new_name=_TEXTS),
    _call("Bash", command=_COMMANDS),
    _call("Read", file_path=_PATHS),
    _call("Grep", pattern=st.just("first"), path=_PATHS),
    _call("LS", path=_PATHS),
    _call("EnterPlanMode"),
    _call("ExitPlanMode", plan=st.sampled_from(["x" * 60, "short", "../.panpan/settings.toml" * 5])),
)  # fmt: skip


@given(calls=st.lists(_CALLS, min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_plan_mode_changes_no_byte_outside_the_plan_file(calls: list[tuple[str, dict[str, Any]]]) -> None:
    with TemporaryDirectory() as folder:
        place = Place(Path(folder).resolve())
        before = place.state()

        place.run(*((name, _with_plan(input_, place.plan)) for name, input_ in calls))

        assert place.state() == before
        assert place.gate.mode == "plan"
        assert place.gate.plan_file == place.plan


def _with_plan(value: Any, plan: Path) -> Any:
    """Return arguments that name the plan file, which has another name each time."""
    match value:
        case str():
            return value.replace("to-plans/PLAN", f"to-plans/{plan.name}").replace("PLAN", str(plan))
        case list():
            return [_with_plan(one, plan) for one in value]
        case dict():
            return {key: _with_plan(one, plan) for key, one in value.items()}
        case _:
            return value
