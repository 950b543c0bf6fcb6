"""Back to before an earlier message, with the files: in the REPL and where there are only lines."""

import pexpect

from tests.e2e.conftest import COMMAND, Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import texts_of
from tests.model_server import ModelServer, call, say, serving
from tests.terminal_emulator import keys

SCRIPT = [
    call("Write", {"file_path": "first.txt", "content": "first\n"}),
    say("Made first."),
    call("Bash", {"command": "echo second > second.txt; echo more >> first.txt"}),
    say("Made second."),
    say("Otherwise."),
]


def prompts(server: ModelServer) -> list[str]:
    return [texts_of(one) for one in server.requests[-1].body["messages"] if one["role"] == "user" and texts_of(one)]


def test_rewind_takes_back_files_and_conversation(panpan: Panpan, start: Start) -> None:
    with serving(SCRIPT) as server:
        panpan.use(server)
        repl = start("--yes")
        repl.turn("one", "Made first.")
        repl.turn("two", "Made second.")
        repl.submit("/rewind")
        repl.answer("Rewind to before which message?", keys.ENTER)
        repl.answer("What goes back?", keys.ENTER)
        repl.answer("Rewind these changes?", keys.ENTER)
        repl.wait_for("taken back: “two”")
        assert not (panpan.workspace / "second.txt").exists()
        assert (panpan.workspace / "first.txt").read_text() == "first\n"
        repl.wait_for("❯ two")
        repl.type(" and a half")
        repl.send(keys.ENTER)
        repl.wait_for("Otherwise.")

    assert prompts(server) == ["one", "two and a half"]


def test_rewind_works_in_the_plain_face(panpan: Panpan) -> None:
    with serving(SCRIPT) as server:
        panpan.use(server)
        child = pexpect.spawn(
            str(COMMAND), ["--plain", "--yes"], cwd=str(panpan.workspace), env=dict(panpan.environment()),
            encoding="utf-8", timeout=30, dimensions=(50, 200),
        )  # fmt: skip
        for prompt, answer in (("one", "Made first."), ("two", "Made second.")):
            child.sendline(prompt)
            child.expect_exact(answer)
        child.sendline("/rewind")
        for _ in range(3):  # the message, what goes back, and a yes to the changes of files
            child.expect_exact("an empty line none: ")
            assert (panpan.workspace / "second.txt").exists()
            child.sendline("1")
        child.expect_exact("taken back: “two”")
        child.sendline("three")
        child.expect_exact("Otherwise.")
        child.close(force=True)

    assert [path.name for path in panpan.workspace.iterdir()] == ["first.txt"]
    assert prompts(server) == ["one", "three"]
