"""Subagents on a real terminal: stopped, asked about, moved to the background, read in the pager, shown again."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from threading import Event
from typing import Any

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED
from tests.e2e.repl.test_repl_keys import leave_pager, shows_pager
from tests.e2e.test_subagents import is_subagents, rounds_of
from tests.model_server import RecordedRequest, Reply, Step, ToolCall, call, calls, say, serving
from tests.model_server.script import Hold
from tests.terminal_emulator import Screen, keys

Child = Callable[[str, int], Step]
"""Answers a subagent by what it is to do, and how many replies it has had."""


def tasks(*names: str, **more: Any) -> Reply:
    common = {"subagent_type": "explore", **more}
    looks = ({"description": name, "prompt": f"do: {name}", **common} for name in names)
    return calls(*(ToolCall("Task", look) for look in looks))


def answering(parent: Iterator[Reply], child: Child) -> Callable[[RecordedRequest], Step]:
    def answer(request: RecordedRequest) -> Step:
        if not is_subagents(request):
            return next(parent)
        texts = [block["text"] for block in request.messages[0]["content"] if block["type"] == "text"]
        return child(next(text[4:] for text in texts if text.startswith("do: ")), rounds_of(request))

    return answer


def held(text: str, until: Event) -> Reply:
    return replace(say(text), faults=(Hold(0, until),))


def test_escape_ends_all_subagents_and_their_commands(panpan: Panpan, start: Start) -> None:
    parent = iter([tasks("one", "two", "three"), say("Here again.")])
    with serving(answering(parent, lambda name, rounds: call("Bash", {"command": "sleep 90"}))) as server:
        panpan.use(server)
        repl = start()
        repl.submit("ask three")
        wait_until(lambda: repl.children().count("sleep 90") == 3)
        repl.wait_for(lambda screen: screen.text.count("· Bash sleep 90") == 3)
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        wait_until(lambda: repl.children() == [])
        repl.turn("hello?", "Here again.")
        repl.submit("/agents")
        repl.wait_for(lambda screen: screen.text.count("(stopped)") == 3)


def test_subagents_go_on_while_another_asks(panpan: Panpan, start: Start) -> None:
    asks, looks, ends = Event(), Event(), Event()

    def child(name: str, rounds: int) -> Step:
        if name == "quick":
            return say("Nothing.")
        if name == "asks":
            return call("Read", {"file_path": "/etc/hostname"}) if rounds == 0 else held("Read it.", asks)
        step = [call("LS", {}), replace(call("Glob", {"pattern": "needle"}), faults=(Hold(0, looks),))]
        return step[rounds] if rounds < len(step) else held("Seen.", ends)

    parent = iter([tasks("asks", "works", "quick"), say("All said.")])
    with serving(answering(parent, child)) as server:
        panpan.use(server)
        repl = start(rows=40)
        repl.submit("ask three")
        repl.wait_for("? explore: asks asks:")
        repl.wait_for("… waiting for your answer · the others go on")
        repl.wait_for("● Task explore: quick")
        looks.set()
        repl.wait_for("● Glob needle")
        repl.answer("? explore: asks asks:", "y")
        repl.wait_for("● Read /etc/hostname")
        asks.set()
        repl.wait_for("└ 2 rounds · 1 tool call")
        ends.set()
        repl.wait_for("All said.")


def test_question_of_a_background_subagent_lets_the_turn_go_on(panpan: Panpan, start: Start) -> None:
    def child(name: str, rounds: int) -> Step:
        return call("Read", {"file_path": "/etc/hostname"}) if rounds == 0 else say("Read it.")

    go_on = Event()
    parent = chain([tasks("asks", run_in_background=True), held("It works.", go_on)], repeat(say("Heard of it.")))
    with serving(answering(parent, child)) as server:
        panpan.use(server)
        repl = start()
        repl.submit("ask one")
        repl.wait_for("? explore: asks asks:")
        repl.wait_for(lambda screen: any("working" in row and "esc interrupts" in row for row in screen.visible))
        assert "waiting for your answer" not in repl.text
        go_on.set()
        repl.wait_for("It works.")
        repl.answer("? explore: asks asks:", "y")
        repl.wait_for("Heard of it.")


def test_subagents_moved_to_the_background_wake_the_model(panpan: Panpan, start: Start) -> None:
    done = Event()
    parent = chain([tasks("one", "two"), say("They go on.")], repeat(say("Heard of it.")))
    with serving(answering(parent, lambda name, rounds: held(f"{name} is done.", done))) as server:
        panpan.use(server)
        repl = start()
        repl.submit("ask two")
        repl.wait_for("ctrl+b background")
        wait_until(lambda: len(server.requests) == 3)  # of the parent, and of both of those that are to be moved
        repl.send(keys.ctrl("b"))
        repl.wait_for("They go on.")
        repl.wait_for(lambda screen: screen.text.count("└ works in the background as task ") == 2)
        repl.wait_for_prompt()
        done.set()
        repl.wait_for(lambda screen: all(f"explore: {name}" in said_of_ends(screen) for name in ("one", "two")))
        repl.wait_for("Heard of it.")
        wait_until(lambda: all(f"{name} is done." in str(server.requests[-1].messages) for name in ("one", "two")))


def said_of_ends(screen: Screen) -> str:
    """Return the lines below the answer of the turn that left the subagents."""
    return screen.text.partition("They go on.")[2]


def test_resumed_session_shows_subagents_and_their_work(panpan: Panpan, start: Start) -> None:
    def child(name: str, rounds: int) -> Step:
        return call("LS", {}) if rounds == 0 else say("It lies here.")

    with serving(answering(iter([tasks("one"), say("All said.")]), child)) as server:
        panpan.use(server)
        panpan.run("-p", "ask one")
        repl = start("-r", panpan.session_files()[0].stem)
        repl.wait_for("● Task explore: one")
        repl.wait_for("└ 2 rounds · 1 tool call")
        repl.wait_for_prompt()
        assert "It lies here." not in repl.text
        repl.send(keys.ctrl("o"))
        repl.wait_for(shows_pager("│ ❯ do: one"))
        repl.wait_for(shows_pager("│ LS"))
        leave_pager(repl)
