"""Plan mode: the session's side of it. The gate keeps what may change; this knows the plan and tells the model.

The rule: it belongs to one session, only the user ends it, and notices about it for the model come at the end of the
conversation, never in the system prompt.
"""

import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyio import Event, to_thread

from panpan.capabilities.plan_mode.plan_mode_tools import ExitPlanModeTool
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.core.tool import SeenFiles, digest_of
from panpan.errors import ConfigError, ToolError
from panpan.permissions.gate import PermissionGate
from panpan.session.log.record_kinds import PlanFileRecord
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.read_file import read_regular_file
from panpan.system.processes.detached import HeldProcesses
from panpan.system.processes.process_table import ProcessTree
from panpan.system.text.terminal_text import printable
from panpan.types.messages import PLAN, PLAN_MODE_OFF, PLAN_MODE_ON, SystemReminder, strip_tags
from panpan.types.pattern import compile_late
from panpan.types.permission import PermissionMode

TURNS_BETWEEN_NOTICES = 8

_MOST_PINNED_CHARS = 20_000


class PlanMode(Hook):
    """The plan mode of a session; implements `Planning`."""

    def __init__(
        self,
        gate: PermissionGate,
        folder: Path,
        seen_files: SeenFiles,
        warn: Callable[[str], None] = lambda _: None,
        *,
        note: Callable[[Mapping[str, Any]], None] = lambda _: None,
        holds: Sequence[ProcessTree] = (),
    ) -> None:
        self._note = note
        self._gate = gate
        self._folder = folder
        self._seen_files = seen_files
        self._warn = warn
        self._is_approved = False
        """The plan after an approved one gets a file of its own."""
        self._is_delivered = False
        """True if the plan is the result of the running turn."""
        self._was_told: bool | None = None
        """The last notice; None: to be looked up."""
        self._turns_since_told = 0
        self._processes = HeldProcesses(*holds)
        self._has_rest = Event()
        """Set when some of the processes are not held yet."""

    @property
    def file(self) -> Path | None:
        """The newest plan, canonical; None: none yet."""
        return self._gate.plan_file

    def restore(self, name: str, *, is_approved: bool) -> None:
        """Go on with the plan of a resumed session; `name` comes from the log and may be anything."""
        file = find_plan_file(self._folder, name)
        self._gate.use_plan_file(file)
        self._is_approved = is_approved
        if file is not None and file.stat().st_size == 0:
            self._seen_files.add(file, b"")

    def mode_changed(self, mode: PermissionMode) -> None:
        """Hold or release processes, so that none changes files in plan mode."""
        if mode != "plan":
            self._processes.release()
            return
        if not self._processes.hold():
            self._has_rest.set()
        if held := self._processes.names:
            self._warn(f"still running, and stopped until plan mode ends: {', '.join(held)}")

    async def keep_held(self) -> None:
        """Hold what `mode_changed` could not hold at once, and warn of the rest; never returns."""
        while True:
            await self._has_rest.wait()
            self._has_rest = Event()
            if going_on := await self._processes.hold_rest():
                self._warn(
                    "could not be stopped and may go on changing files, although plan mode is on: "
                    + ", ".join(going_on)
                )

    @property
    def is_on(self) -> bool:
        return self._gate.mode == "plan"

    @property
    def next_modes(self) -> Sequence[PermissionMode]:
        usual: tuple[PermissionMode, ...] = ("default", "acceptEdits")
        before = self._gate.previous_mode
        return usual if before in (*usual, "plan") else (*usual, before)

    async def begin(self) -> Path:
        self._gate.mode = "plan"
        return await self._present_file()

    async def read(self) -> str:
        return await to_thread.run_sync(read_plan, await self._present_file(), self._seen_files)

    async def write(self, text: str, *, is_users: bool = False) -> Path:
        file = await self._present_file()
        await to_thread.run_sync(write_plan, file, text, None if is_users else self._seen_files)
        return file

    def approve(self, mode: PermissionMode) -> None:
        if not self.is_on or mode not in self.next_modes:
            raise ToolError(f"plan mode cannot be left for the mode {mode}")
        self._gate.mode = mode
        self._is_approved = True
        self._record()

    def deliver(self) -> None:
        self._is_delivered = True

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        self._is_delivered = False
        self._turns_since_told += 1
        return ()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        """Tell the model when plan mode begins or ends, and now and then that it is on."""
        is_on = self.is_on
        if self._was_told is None:
            self._was_told = _was_told(round_.conversation)
        is_due = self._turns_since_told > TURNS_BETWEEN_NOTICES and is_on
        if is_on == self._was_told and not is_due:
            return ()
        was_told, self._was_told, self._turns_since_told = self._was_told, is_on, 0
        if not is_on:
            return (SystemReminder(text=_over(self._gate.mode), cause=PLAN_MODE_OFF),)
        if was_told:
            return (SystemReminder(text=_STILL_ON, cause=PLAN_MODE_ON),)
        can_exit = any(tool.name == ExitPlanModeTool.name for tool in round_.conversation.tools)
        text = _notice(await self._file_or_none(), self._processes.names, can_exit=can_exit)
        return (SystemReminder(text=text, cause=PLAN_MODE_ON),)

    async def history_replaced(self, conversation: Conversation) -> None:
        self._was_told = None

    def ends_turn(self, round_: Round) -> bool:
        return self._is_delivered

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        """Return the plan as it is now, if there is one."""
        if self.file is None:
            return ()
        try:
            plan = (await to_thread.run_sync(read_plan, self.file, SeenFiles())).strip()
        except ToolError:
            return ()
        if not plan:
            return ()
        shown = plan if len(plan) <= _MOST_PINNED_CHARS else f"{plan[:_MOST_PINNED_CHARS]}\n[… the rest is in the file]"
        text = f"The plan of this session, from {self.file}:\n\n{strip_tags(shown)}"
        return (SystemReminder(text=text, cause=PLAN),)

    async def _present_file(self) -> Path:
        """Return the file of the present plan, made if there is none."""
        if self.file is None or self._is_approved:
            file = await to_thread.run_sync(new_plan_file, self._folder)
            self._seen_files.add(file, b"")
            self._gate.use_plan_file(file)
            self._is_approved = False
            self._record()
            return file
        return self.file

    async def _file_or_none(self) -> Path | None:
        try:
            return await self._present_file()
        except ToolError as error:
            self._warn(str(error))
            return None

    def _record(self) -> None:
        if self.file is not None:
            self._note(PlanFileRecord(plan_file=self.file.name, is_approved=self._is_approved).as_json())


_PLAN_ON = (
    "Plan mode is on: nothing may be changed, by whatever tool or way; calls that change something are refused. "
    "Commands run where they can write and send nothing. Look around, and say in your report what is to be done."
)
_PLAN_OFF = "Plan mode is off: things may be changed again, as far as your task asks for it."


class PlanNotice(Hook):
    """Tells a subagent of plan mode, and of its end."""

    def __init__(self, mode: Callable[[], PermissionMode]) -> None:
        self._mode = mode
        self._was_told: bool | None = None

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        if self._was_told is None:
            self._was_told = _was_told(round_.conversation)
        is_on = self._mode() == "plan"
        if is_on == self._was_told:
            return ()
        self._was_told = is_on
        return (SystemReminder(text=_PLAN_ON if is_on else _PLAN_OFF, cause=PLAN_MODE_ON if is_on else PLAN_MODE_OFF),)


MAX_BYTES = 1_000_000
_TRIES = 20

_ADJECTIVES = (
    "amber brisk calm candid clear cosy deft eager early even fair fond gentle glad green honest humble keen kind late "
    "light lively lucid mellow merry mild misty neat nimble patient plain quick quiet ready rosy round sharp silver "
    "slow snug soft sound spare steady still sunny swift tidy warm wise"
)
_VERBS = (
    "baking bending binding brewing carving chasing climbing counting drifting drawing folding forging gliding grazing "
    "hiking humming joining knitting landing leaping lifting mapping mending mixing mooring nesting packing painting "
    "pacing planting pouring resting roaming rowing sailing sewing shaping sifting singing skating sorting sowing "
    "spinning stacking strolling tracing tuning turning wading weaving winding"
)
_NOUNS = (
    "acorn alder anchor badger beacon birch bramble brook canal cedar chapel clover comet coral crane creek delta "
    "ember fern finch fjord garnet grove heron hazel island ivy kettle lantern larch ledger linnet maple marten meadow "
    "mill moss orchard otter pebble pine plover quarry raven reed river robin sparrow spruce teal thicket thistle "
    "willow wren"
)
_NAME = compile_late(r"[a-z]+-[a-z]+-[a-z]+(-[0-9]+)?\.md")


def new_plan_file(folder: Path) -> Path:
    """Make an empty file for a plan, private as its folder is, and return its canonical path."""
    try:
        make_private_folder(folder)
        folder = canonical_path(folder)
        for number in range(1, 1_000_000):
            words = "-".join(secrets.choice(words.split()) for words in (_ADJECTIVES, _VERBS, _NOUNS))
            path = folder / (f"{words}.md" if number <= _TRIES else f"{words}-{number}.md")
            try:
                os.close(open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return path
    except (ConfigError, OSError) as error:
        raise ToolError(f"the plan file cannot be made: {getattr(error, 'strerror', None) or error}") from error
    raise ToolError(f"the plan file cannot be made: {folder} is full of plans")


def find_plan_file(folder: Path, name: str) -> Path | None:
    """Return the plan of a name, which may be anything; None: there is none."""
    if not _NAME.fullmatch(name):
        return None
    try:
        path = canonical_path(folder) / name
        return path if stat.S_ISREG(path.lstat().st_mode) else None
    except (ToolError, OSError):
        return None


def read_plan(file: Path, seen_files: SeenFiles) -> str:
    """Return the text of the plan file."""
    _require_no_link(file)
    data = read_regular_file(file, max_bytes=MAX_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(f"the plan file {file} is not UTF-8; write the plan again") from error
    seen_files.add(file, data)  # the model may replace a plan that was shown in its name
    return text


def write_plan(file: Path, text: str, seen_files: SeenFiles | None) -> None:
    """Write a plan, also if its file was deleted. `seen_files` is None if the user is its author."""
    _require_no_link(file)
    data = f"{text}\n".encode("utf-8", "replace")
    before = read_regular_file(file, max_bytes=MAX_BYTES) if file.exists() else None
    if before is None:
        write_atomic(file, data, mode=0o600, must_not_exist=True)
    elif before != data:
        if seen_files is not None and digest_of(before) != seen_files.digest(file):
            raise ToolError(
                f"the plan file {file} has text that you have not read, maybe the user's changes",
                advice="Read it, then call ExitPlanMode with the new plan",
            )
        write_atomic(file, data, mode=0o600, expected_digest=digest_of(before))
    if seen_files is not None:
        seen_files.add(file, data)


def _require_no_link(file: Path) -> None:
    if canonical_path(file) != file:
        raise ToolError(f"the plan file {file} has become a link to another file; nothing was read or written")


def _was_told(conversation: Conversation) -> bool:
    causes = (message.cause for message in reversed(conversation.messages) if isinstance(message, SystemReminder))
    return next((cause for cause in causes if cause in (PLAN_MODE_ON, PLAN_MODE_OFF)), PLAN_MODE_OFF) == PLAN_MODE_ON


def _notice(file: Path | None, held: Sequence[str], *, can_exit: bool) -> str:
    parts = [
        "Plan mode is on. Until the user ends it, nothing may be changed, by whatever tool or way, and what was "
        "allowed before does not count; calls that change something are refused. Commands run without a question "
        "where they can write and send nothing: loops, awk and Python scripts that only compute work."
    ]
    if held:
        parts.append(f"What still runs of your commands is stopped until then: {printable(', '.join(held))}.")
    if not can_exit:
        parts.append("Look around, then describe in your answer what you would do. Only the user ends plan mode.")
        return " ".join(parts)
    if file is not None:
        parts.append(f"The one file that you may write is the plan file, with Write and Edit: {file}")
    parts.append(
        "Where the user wants something done: read the code that it touches until you know what to change and what "
        "could break; ask with AskUserQuestion, if you have it, what only they can decide. Then call ExitPlanMode with "
        "a plan that they can judge: what you found, the changes file by file, how you will check them; with "
        "alternatives only where they have to choose. They approve it, change it, or say what they want instead; do "
        "not begin before that. If they only ask something, answer it: that needs no plan."
    )
    return "\n".join(parts)


_STILL_ON = "Plan mode is still on: nothing but the plan file may be changed until the user ends it."


def _over(mode: PermissionMode) -> str:
    return f"Plan mode is off: the user has ended it. The permission mode is {mode}; you may change things again."
