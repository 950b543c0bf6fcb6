"""Nothing that a model, a tool, a file or a server says drives the terminal."""

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl
from tests.model_server import HttpError, Reply, Text, Thinking, ToolCall, call, say, serving
from tests.terminal_emulator import keys

ATTACK = (
    "before\x1b]0;owned\x07\x1b]2;owned\x1b\\\x1b]52;c;b3duZWQ=\x07\x1b]9;owned\x07\x1b]8;;http://owned/\x07"
    "\x1b[37;73H\x1b[3J\x1b[31;7m\x1b[?1049h\x1b[?25l\x1b[?2004l\x1b[?1000h\x1b[5;9r\x1b[6n\x1bc\x1b7\x1b[99S"
    "\x9b37;74H\x9d0;owned\x9c\x1bPowned\x1b\\\x1b_owned\x1b\\\x08\x08\x7f\r\x0b\x0c\x07\x0e after\u202e"
)
NEVER = {("CSI", text) for text in ("37;73H", "37;74H", "3J", "?1000h", "5;9r", "6n", "99S")} | {
    ("ESC", "c"),
    ("ESC", "7"),
    *(("C0", char) for char in "\x08\x7f\x0b\x0c\x0e"),
}
"""Sequences that panpan itself has no reason to write."""


def assert_unharmed(repl: Repl) -> None:
    """Assert that no part of the attack reached the terminal."""
    controls = repl.read(lambda screen: {(control.kind, control.text) for control in screen.controls})
    assert controls & NEVER == set()
    assert {kind for kind, _ in controls} <= {"C0", "CSI", "ESC", "OSC"}
    assert not [text for kind, text in controls if "owned" in text]
    assert repl.read(lambda screen: screen.clipboard) == []


@pytest.mark.parametrize(("chunk_chars", "columns"), [(1, 40), (7, 80), (0, 200)])
def test_hostile_answer_cannot_drive_the_terminal(panpan: Panpan, start: Start, chunk_chars: int, columns: int) -> None:
    places = ("{}", "- {}", "```sh\n{}\n```", "| a | b |\n|---|---|\n| {} | c |", "[x]({})", "# {}", "end.")
    answer = "\n\n".join(place.format(ATTACK) for place in places)
    with serving([say(answer, chunk_chars=chunk_chars), say("Still here.")]) as server:
        panpan.use(server)
        repl = start(columns=columns)
        repl.turn("go", "end.")
        repl.turn("are you there?", "Still here.")

    assert_unharmed(repl)


def test_hostile_thinking_and_call_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    reply = Reply((Thinking(ATTACK), Text("I write."), ToolCall("Write", {"file_path": ATTACK, "content": ATTACK})))
    with serving([reply, say("Still here.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("U+001B", "n")
        repl.wait_for("Still here.")
        repl.wait_for_prompt()

    assert_unharmed(repl)


def test_hostile_tool_name_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    with serving([call(f"Tool{ATTACK}"[:60], {}), say("Still here.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("go", "Still here.")

    assert_unharmed(repl)


def test_hostile_output_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    many = ATTACK.encode() + b"\n\x9b37;73H\xff\n"
    (panpan.workspace / "attack").write_bytes(many * 40)
    with serving([call("Bash", {"command": "cat attack; false"}), say("Still here.")]) as server:
        panpan.use(server)
        repl = start("--permission-mode", "bypassPermissions")
        repl.turn("go", "Still here.")
        repl.send(keys.ctrl("o"))
        repl.wait_for(lambda screen: screen.is_alternate and "after" in "\n".join(screen.visible))
        repl.send("q")
        repl.wait_for_prompt()
        repl.type("over")

    assert_unharmed(repl)


def test_hostile_file_and_diff_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "attack.md").write_text(f"{ATTACK}\nchange me\n{ATTACK}\n", newline="")
    edit = {"file_path": "attack.md", "old_string": "change me", "new_string": f"changed {ATTACK}"}
    with serving([call("Read", {"file_path": "attack.md"}), call("Edit", edit), say("Still here.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("change me", "y")
        repl.answer("haven't seen all of it", "y")  # not all of the diff is on the screen, so that once is not enough
        repl.wait_for("Still here.")
        repl.wait_for_prompt()

    assert_unharmed(repl)


def test_hostile_provider_error_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    with serving([HttpError(400, f"no: {ATTACK}"), say("Still here.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("go", "no: before")
        repl.turn("again", "Still here.")

    assert_unharmed(repl)


def test_hostile_completion_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    name = "hostile" + ATTACK.replace("/", "").replace("\r", "")[:120]
    (panpan.workspace / name).write_text("x")
    (panpan.workspace / "hostile.txt").write_text("x")
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.send("@hostil")
        repl.wait_for("hostile.txt")
        repl.send(keys.TAB + keys.TAB)
        repl.type(" over")

    assert_unharmed(repl)


def test_hostile_branch_name_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    head = panpan.workspace / ".git"
    head.mkdir()
    (head / "HEAD").write_text("ref: refs/heads/br\x1b]0;owned\x07anch\n")
    (head / "objects").mkdir()
    (head / "refs").mkdir()
    with serving([say("Still here.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("go", "Still here.")

    assert_unharmed(repl)
