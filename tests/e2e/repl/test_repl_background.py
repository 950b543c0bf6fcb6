"""Background tasks on a real terminal: moved there, listed, told when they end, and asked about at the end."""

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import ends_input
from tests.model_server import Reply, call, say, serving
from tests.terminal_emulator.keys import DOWN, ENTER, ESCAPE, ctrl

FREE = ("--permission-mode", "bypassPermissions")
HELD = "for n in $(seq 4000); do sleep 0.05; done"


def background(command: str) -> Reply:
    return call("Bash", {"command": command, "run_in_background": True, "description": "Build"})


def test_end_of_a_task_wakes_the_model_and_keeps_the_input(panpan: Panpan, start: Start) -> None:
    script = [background("until [ -e go ]; do sleep 0.02; done"), say("It runs."), say("It is done.")]
    with serving(script) as server:
        panpan.use(server)
        repl = start(*FREE)
        repl.submit("build it")
        repl.wait_for("It runs.")
        repl.wait_for("1 task running")
        repl.type("half a sen")
        (panpan.workspace / "go").touch()
        repl.wait_for("It is done.")
        repl.wait_for(ends_input("half a sen"))
        text = repl.text

    assert text.index("Build (exit code 0)") < text.index("It is done.")
    assert "task running" not in text


def test_background_tasks_are_moved_listed_and_asked_about(panpan: Panpan, start: Start) -> None:
    moved = [call("Bash", {"command": HELD}), say("It goes on.")]
    with serving([background(HELD), say("It builds."), *moved, say("Bye.")]) as server:
        panpan.use(server)
        repl = start(*FREE)
        repl.turn("build it", "It builds.")
        repl.submit("and run it")
        repl.wait_for("ctrl+b background")
        repl.send(ctrl("b"))
        repl.wait_for("It goes on.")
        repl.submit("/tasks")
        repl.answer("Background tasks", DOWN)
        repl.send(ENTER)
        repl.answer("Stop it", "1")
        repl.wait_for("esc or typing closes")
        assert repl.read(lambda screen: "it has printed nothing yet" in screen.text)
        repl.send(ESCAPE)
        repl.wait_for(lambda screen: "esc or typing closes" not in screen.text)
        repl.wait_for_prompt()
        repl.submit("/tasks")
        repl.answer("Background tasks", DOWN)
        repl.send(ENTER)
        repl.answer("Stop it", "3")
        repl.wait_for("was stopped: ")
        repl.wait_for_prompt()
        repl.send(ctrl("d"))
        repl.answer("1 background task runs. Before you leave", DOWN)
        repl.send(ENTER)
        code, said = repl.wait(), repl.text
        resumed = panpan.run("-c", "-p", "end it", "--background", "stop")

    assert (code, "left in the background" in said) == (0, True)
    assert "stopped in the background: Build" in resumed.stderr


def test_leaving_asks_about_moved_tasks_and_takes_a_number(panpan: Panpan, start: Start) -> None:
    with serving([call("Bash", {"command": HELD}), say("It goes on.")]) as server:
        panpan.use(server)
        repl = start(*FREE)
        repl.submit("run it")
        repl.wait_for("ctrl+b background")
        repl.send(ctrl("b"))
        repl.wait_for("moved to the background until you quit")
        repl.wait_for("It goes on.")
        repl.wait_for("└ goes on in the background as task ")
        repl.wait_for_prompt()
        repl.send(ctrl("d"))
        repl.answer("1 background task runs. Before you leave", "2")
        repl.wait_for_prompt()
        repl.submit("/exit")
        repl.answer("1. Stop and leave", "1")

        assert repl.wait() == 0
