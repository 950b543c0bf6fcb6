"""The interactive loop on a real terminal: prompts, questions, interrupts, and a clean way out."""

import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from threading import Event

import pexpect
import pytest

from panpan.faces.plain.line_screen import HOW_TO_LEAVE, PROMPT
from tests.e2e.conftest import Panpan, wait_until
from tests.model_server import Hold, HttpError, Reply, Stall, Text, ToolCall, call, say, serving
from tests.prepared_command import PREPARED


class Terminal:
    """panpan on a pseudo-terminal."""

    def __init__(self, panpan: Panpan, *args: str) -> None:
        environment = dict(panpan.environment()) | {"TERM": "xterm-256color", "NO_COLOR": "1"}
        program, *words = PREPARED.argv("--plain", *args, env=environment)
        self.child = pexpect.spawn(
            program, words, cwd=str(panpan.workspace), env=environment, encoding="utf-8", timeout=30
        )
        self.expect(PROMPT)

    def expect(self, text: str) -> str:
        """Wait for a text, and return what came before it."""
        self.child.expect_exact(text)
        return str(self.child.before)

    def type(self, line: str) -> None:
        self.child.sendline(line)

    def end(self) -> int:
        self.child.expect(pexpect.EOF)
        self.child.close()
        return int(self.child.exitstatus if self.child.exitstatus is not None else -1)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.child.close(force=True)


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@pytest.mark.parametrize("flags", [[], ["--permission-mode", "plan"]])
def test_prompt_of_the_command_line_is_sent_first(panpan: Panpan, terminals: list[Terminal], flags: list[str]) -> None:
    with serving([say("Hello."), say("Again.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan, "say hello", *flags)
        terminals.append(terminal)
        greeting = str(terminal.child.before)  # which comes before the prompt
        assert greeting.startswith("panpan ")
        assert greeting.endswith("\r\n/help lists commands and keys\r\n")
        terminal.expect("say hello\r\n")
        terminal.expect("Hello.")
        terminal.expect(PROMPT)
        terminal.type("and again")
        terminal.expect("Again.")
        terminal.expect(PROMPT)
        terminal.type("exit")
        code = terminal.end()

    assert code == 0
    assert [request.messages[-1]["content"][0]["text"] for request in server.requests] == ["say hello", "and again"]


def test_prompts_are_answered_until_the_user_leaves(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Hello."), say("Again.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("hi")
        terminal.expect("Hello.")
        terminal.expect(PROMPT)
        terminal.type("and again")
        terminal.expect("Again.")
        terminal.expect(PROMPT)
        terminal.type("exit")
        terminal.expect("resume with: panpan -c")

        assert terminal.end() == 0
    assert len(server.requests[1].messages) == 3


@pytest.mark.parametrize(("answer", "exists"), [("y", True), ("n", False), ("use another name", False)])
def test_write_asks_first(panpan: Panpan, terminals: list[Terminal], answer: str, exists: bool) -> None:
    with serving([call("Write", {"file_path": "a.txt", "content": "x\x1b[2J"}), say("Fine.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("write it")
        question = terminal.expect("what to do instead: ")
        terminal.type(answer)
        terminal.expect("Fine.")
        terminal.expect(PROMPT)
        terminal.child.sendeof()

        assert terminal.end() == 0
    assert "a.txt" in question
    assert "\x1b" not in question
    assert (panpan.workspace / "a.txt").exists() is exists
    if answer == "use another name":
        assert "use another name" in str(server.requests[1].messages[-1])


def test_always_is_remembered_and_not_asked_again(panpan: Panpan, terminals: list[Terminal]) -> None:
    script = [call("Bash", {"command": "touch a"}), say("One."), call("Bash", {"command": "touch a"}), say("Two.")]
    with serving(script) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        question = terminal.expect("what to do instead: ")
        terminal.type("a")
        terminal.expect("One.")
        terminal.expect(PROMPT)
        terminal.type("again")
        terminal.expect("Two.")

    assert "a = yes, and don't ask again for touch a" in question
    (saved,) = panpan.home.glob("projects/*/settings.toml")
    assert "Bash(touch a)" in saved.read_text()


def test_ctrl_c_interrupts_the_turn_and_the_next_prompt_works(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([Reply((Text("Thinking about it"),), faults=(Stall(-1),)), say("Here again.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        terminal.expect("Thinking about it")
        terminal.child.sendintr()
        terminal.expect("[Interrupted]")
        terminal.expect(PROMPT)
        terminal.type("hello?")
        terminal.expect("Here again.")


def test_ctrl_c_twice_at_the_prompt_leaves(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.child.send("this is dropped")
        terminal.child.sendintr()
        terminal.expect(HOW_TO_LEAVE)
        terminal.expect(PROMPT)
        terminal.type("hi")
        terminal.expect("Hello.")
        terminal.expect(PROMPT)
        terminal.child.sendintr()
        terminal.expect(HOW_TO_LEAVE)
        terminal.expect(PROMPT)
        terminal.child.sendintr()
        terminal.expect("resume with: panpan -c")

        assert terminal.end() == 130
    (request,) = server.requests
    assert "this is dropped" not in str(request.messages)


def test_pasted_lines_are_one_prompt(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Seen.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("first line\n\nexit\nlast line, of which Enter is typed")
        terminal.expect("Seen.")
        terminal.expect(PROMPT)
        terminal.type("exit")

        assert terminal.end() == 0
    (request,) = server.requests
    assert request.messages[0]["content"][0]["text"] == "first line\n\nexit\nlast line, of which Enter is typed"


def test_exit_typed_twice_during_a_turn_leaves(panpan: Panpan, terminals: list[Terminal]) -> None:
    gate = Event()
    with serving([Reply((Text("Slowly"),), chunk_chars=0, faults=(Hold(-3, gate),))]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        terminal.expect("Slowly")
        terminal.type("exit\nexit")
        gate.set()

        assert terminal.end() == 0


def test_provider_error_leads_back_to_the_prompt(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([HttpError(400, "no such luck"), say("Better.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        terminal.expect("no such luck")
        terminal.expect(PROMPT)
        terminal.type("go")
        terminal.expect("Better.")


def test_answer_cannot_drive_the_terminal(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("\x1b]0;owned\x07\x1b[2Jred\x9b31m\rover")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        shown = terminal.expect("over")

    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\x9b" not in shown


def test_keys_typed_before_a_question_do_not_answer_it(panpan: Panpan, terminals: list[Terminal]) -> None:
    gate = Event()
    touch = ToolCall("Bash", {"command": "touch ahead"})
    reply = Reply((Text("Slowly"), touch), chunk_chars=0, faults=(Hold(-3, gate),))
    with serving([reply, say("Fine.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        terminal.expect("Slowly")
        terminal.type("y")
        gate.set()
        terminal.expect("your input before this question was dropped")
        terminal.expect("what to do instead: ")
        terminal.type("n")
        terminal.expect("Fine.")

    assert not (panpan.workspace / "ahead").exists()


def test_interrupt_ends_the_second_turn_too(panpan: Panpan, terminals: list[Terminal]) -> None:
    stalled = Reply((Text("Thinking about it"),), faults=(Stall(-1),))
    with serving([stalled, stalled, say("Here.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        for _ in range(2):
            terminal.type("go")
            terminal.expect("Thinking about it")
            terminal.child.sendintr()
            terminal.expect("[Interrupted]")
            terminal.expect(PROMPT)
        terminal.type("hello?")
        terminal.expect("Here.")


@pytest.mark.parametrize("is_in_turn", [False, True], ids=["at-the-prompt", "in-a-turn"])
def test_closed_terminal_ends_panpan_as_a_hangup(panpan: Panpan, is_in_turn: bool) -> None:
    with serving([Reply((Text("Thinking about it"),), faults=(Stall(-1),))]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        if is_in_turn:
            terminal.type("go")
            terminal.expect("Thinking about it")
        os.close(terminal.child.child_fd)
        terminal.child.wait()

    assert 129 in (terminal.child.exitstatus, 128 + (terminal.child.signalstatus or 0))
    assert not (panpan.home / "crashes").exists()


def test_help_is_shown_without_a_request(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("?")
        terminal.expect("Ctrl+C")
        terminal.expect(PROMPT)

    assert server.requests == []


def test_slash_commands_work_without_keys_and_requests(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        for typed, shown in (
            ("/h", "/permissions [mode | remove rule]"),
            ("/plan", "permission mode: plan"),
            ("/effort low", "effort from the next message on: low"),
            ("/effort 99", "unknown effort 99"),
            ("/theme dark", "here are only lines"),
            ("/statsu", "did you mean /status"),
            ("/resume nosuch", "nosuch"),
            ("/status", "plan"),
        ):
            terminal.type(typed)
            terminal.expect(shown)
            terminal.expect(PROMPT)
        terminal.type("/q")

        assert terminal.end() == 0
    assert server.requests == []


def test_clear_begins_a_session_and_resume_takes_a_number(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Seen."), say("Later.")]) as server:
        panpan.use(server)
        (panpan.workspace / "a.txt").write_text("swordfish\n")
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("look at @a.txt and @nope.py")
        terminal.expect("@nope.py was not attached: it does not exist")
        terminal.expect("Seen.")
        terminal.expect(PROMPT)
        terminal.type("/clear")
        terminal.expect("a new session begins")
        terminal.expect(PROMPT)
        terminal.type("/resume")
        terminal.expect("  1. look at @a.txt")
        terminal.expect("an empty line none: ")
        terminal.type("1")
        terminal.expect(PROMPT)
        terminal.type("go on")
        terminal.expect("Later.")
        terminal.expect(PROMPT)
        terminal.type("exit")

        assert terminal.end() == 0
    assert "swordfish" in str(server.requests[0].messages[0])
    assert len(server.requests[1].messages) == 3


def test_init_begins_a_turn(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Written.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("/init the tests")
        terminal.expect("Written.")

    assert "ARGUMENTS: the tests" in str(server.requests[0].messages)


def test_plan_is_shown_as_lines_and_approved_with_a_letter(panpan: Panpan, terminals: list[Terminal]) -> None:
    plan = "Let parse take a list of paths; then run the tests of parse."
    with serving([call("ExitPlanMode", {"plan": plan}), say("Going on.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan, "--permission-mode", "plan")
        terminals.append(terminal)
        terminal.type("go")
        terminal.expect("Approve this plan?")
        terminal.expect(plan)
        terminal.expect("keep planning")
        terminal.type("a")
        terminal.expect("Going on.")
        terminal.expect(PROMPT)
        terminal.type("exit")
        code = terminal.end()

    assert code == 0
    assert "the mode is acceptEdits" in str(server.requests[1].messages)


def test_shell_command_output_goes_with_the_next_prompt(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Seen.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("!seq 900; echo so-$((40 + 2)); false")
        terminal.expect("\r\n    2\r\n")  # all of it: nothing could unfold the rest
        terminal.expect("so-42")
        terminal.expect("[exit code 1]")
        terminal.expect(PROMPT)
        terminal.type("what was that?")
        terminal.expect("Seen.")

    (request,) = server.requests
    told = str(request.messages)
    assert "so-42" in told
    assert told.index("so-42") < told.index("what was that?")


def test_ctrl_c_ends_a_shell_command(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("!echo begun > begun; sleep 600")
        wait_until((panpan.workspace / "begun").exists)
        terminal.child.sendintr()
        terminal.expect("interrupted by the user")
        terminal.expect(PROMPT)
        terminal.type("exit")

        assert terminal.end() == 0


def test_resume_shows_the_last_turns(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([call("LS", {}), say("Nothing here."), say("Going on.")]) as server:
        panpan.use(server)
        panpan.run("-p", "look around")
        terminal = Terminal(panpan, "-r", panpan.session_files()[0].stem)
        terminals.append(terminal)
        terminal.expect("look around")
        terminal.expect("● LS")
        terminal.expect("Nothing here.")
        terminal.expect(PROMPT)
        terminal.type("and now?")
        terminal.expect("Going on.")


def test_resume_without_an_id_offers_sessions(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("First."), say("Second.")]) as server:
        panpan.use(server)
        panpan.run("-p", "the first question")
        terminal = Terminal(panpan, "-r")
        terminals.append(terminal)
        terminal.expect("/resume\r\n")
        terminal.expect("1. the first question")
        terminal.expect("an empty line none: ")
        terminal.type("1")
        terminal.expect("resumed after")
        terminal.expect(PROMPT)
        terminal.expect("First.")
        terminal.expect(PROMPT)
        terminal.type("and the second")
        terminal.expect("Second.")

    assert "the first question" in str(server.requests[1].messages)


def test_resume_of_an_open_session_shows_nothing_twice(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([say("Elsewhere."), say("Here.")]) as server:
        panpan.use(server)
        panpan.run("-p", "the other one")
        (other,) = panpan.session_files()
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("this one")
        terminal.expect("Here.")
        terminal.expect(PROMPT)
        with other.open() as log:
            fcntl.flock(log, fcntl.LOCK_EX)  # as another panpan does that has it open
            terminal.type(f"/resume {other.stem}")
            terminal.child.expect(r"continues\s+unchanged\s")  # where a line ends depends on paths
            assert "Here." not in terminal.expect(PROMPT)


def test_question_is_answered_with_numbers_or_words(panpan: Panpan, terminals: list[Terminal]) -> None:
    choices = [{"label": "Red", "description": "a warm one"}, {"label": "Blue", "description": ""}]
    asked = [
        {"header": "Colour", "question": "Which colour?", "options": choices, "multiSelect": False},
        {"header": "Name", "question": "Which name?", "options": choices, "multiSelect": False},
    ]
    with serving([call("AskUserQuestion", {"questions": asked}), say("Fine.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("go")
        shown = terminal.expect("an empty line declines: ")
        terminal.type("9")
        terminal.expect("there is no such number")
        terminal.expect("an empty line declines: ")
        terminal.type("2")
        terminal.expect("Which name?")
        terminal.expect("an empty line declines: ")
        terminal.type("neither, Ada")
        terminal.expect("Fine.")

    assert "1. Red" in shown
    assert "a warm one" in shown
    told = str(server.requests[1].messages[-1])
    assert "Blue" in told
    assert "neither, Ada" in told


@pytest.mark.parametrize("is_in_turn", [False, True], ids=["at-the-prompt", "in-a-turn"])
def test_signal_ends_panpan_and_names_the_session_once(
    panpan: Panpan, terminals: list[Terminal], is_in_turn: bool
) -> None:
    with serving([say("Hello."), Reply((Text("Thinking about it"),), faults=(Stall(-1),))]) as server:
        panpan.use(server)
        terminal = Terminal(panpan, "hi there")
        terminals.append(terminal)
        terminal.expect(PROMPT)
        if is_in_turn:
            terminal.type("go")
            terminal.expect("Thinking about it")
        terminal.child.kill(signal.SIGTERM)
        terminal.child.expect(pexpect.EOF)
        terminal.child.wait()

    assert str(terminal.child.before).count("resume with: panpan -c") == 1
    assert terminal.child.exitstatus == 128 + signal.SIGTERM


def test_sigterm_stops_the_command_that_has_the_terminal(panpan: Panpan, terminals: list[Terminal]) -> None:
    with serving([]) as server:
        panpan.use(server)
        terminal = Terminal(panpan)
        terminals.append(terminal)
        terminal.type("/login")
        terminal.expect("Which provider?")
        terminal.child.kill(signal.SIGTERM)
        terminal.expect("not done:\r\n/login")

        assert terminal.end() == 128 + signal.SIGTERM


def test_leaving_with_a_background_task_can_be_cancelled(panpan: Panpan, terminals: list[Terminal]) -> None:
    command = {"command": "for n in $(seq 400); do sleep 0.05; done", "run_in_background": True}
    with serving([call("Bash", command), say("It runs.")]) as server:
        panpan.use(server)
        terminal = Terminal(panpan, "--permission-mode", "bypassPermissions")
        terminals.append(terminal)
        terminal.type("run it")
        terminal.expect("It runs.")
        terminal.expect(PROMPT)
        for leave in (terminal.child.sendeof, lambda: terminal.type("/clear")):
            leave()
            terminal.expect("an empty line none: ")
            terminal.type("3")
            said = terminal.expect(PROMPT)
            assert "a new session begins" not in said
        terminal.type("exit")
        terminal.expect("Before you leave:")
        terminal.expect("an empty line none: ")
        terminal.type("1")

        assert terminal.end() == 0
