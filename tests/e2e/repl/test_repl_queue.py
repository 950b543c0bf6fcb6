"""Messages sent while a turn runs: they steer the turn, wait for its end, or are taken back."""

from threading import Event

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, texts_of, was_given_back
from tests.model_server import Hold, Reply, Stall, Text, ToolCall, say, serving
from tests.terminal_emulator import keys


def looking(gate: Event) -> Reply:
    """Return a reply that is held after its first words, and then looks around."""
    return Reply((Text("I look around now."), ToolCall("LS", {})), faults=(Hold(5, gate),))


def test_enter_steers_the_turn_that_runs(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([looking(gate), say("Done, and no tests.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("I look")
        repl.submit("leave the tests alone")
        repl.wait_for_prompt()
        repl.wait_for("leave the tests alone")  # in the queue, which is shown
        gate.set()
        repl.wait_for("Done, and no tests.")
        repl.wait_for_prompt()

    first, second = server.requests
    assert "leave the tests alone" not in str(first.messages)
    assert "leave the tests alone" in str(second.messages[-1])
    assert any(block["type"] == "tool_result" for block in second.messages[-1]["content"])


def test_message_too_late_for_the_turn_is_the_next_prompt(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([say("Only an answer.", chunk_chars=5, faults=(Hold(4, gate),)), say("And to that.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Only")
        repl.submit("one more thing")
        repl.wait_for_prompt()
        gate.set()
        repl.wait_for("And to that.")

    assert "one more thing" in str(server.requests[1].messages[-1])


def test_up_takes_back_a_queued_message_to_be_sent_once(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([looking(gate), say("Done.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("I look")
        repl.submit("leave the docs")
        repl.wait_for_prompt()
        repl.wait_for("↳")
        repl.send(keys.UP)
        repl.wait_for(lambda screen: screen.before_cursor.endswith("leave the docs") and "↳" not in screen.text)
        repl.send(" alone\r")
        repl.wait_for("↳")
        gate.set()
        repl.wait_for("Done.")
        repl.wait_for_prompt()

    assert str(server.requests[1].messages).count("leave the docs") == 1


def test_alt_enter_waits_for_the_end_of_the_turn(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([looking(gate), say("First done."), say("Second done.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("I look")
        repl.type("for afterwards")
        repl.send(keys.ALT_ENTER)
        repl.wait_for_prompt()
        repl.wait_for("for afterwards")
        gate.set()
        repl.wait_for("Second done.")

    assert "for afterwards" not in str(server.requests[1].messages)
    assert texts_of(server.requests[2].messages[-1]) == "for afterwards"


def test_alt_up_takes_the_last_one_back(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([looking(gate), say("Done.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("I look")
        for text in ("keep this one", "think about this one"):
            repl.submit(text)
            repl.wait_for_prompt()
        repl.send(keys.ALT_UP)
        repl.wait_for(lambda screen: screen.before_cursor == "❯ think about this one")
        repl.type(" again")
        gate.set()
        repl.wait_for("Done.")

    assert "keep this one" in str(server.requests[1].messages)
    assert "think about" not in str(server.requests[1].messages)


def test_interrupt_gives_back_undelivered_messages(panpan: Panpan, start: Start) -> None:
    stalled = Reply((Text("Thinking about it"),), faults=(Stall(-1),))
    with serving([stalled, say("To that, then.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking about it")
        repl.submit("never delivered")
        repl.wait_for_prompt()
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.wait_for(was_given_back("❯ never delivered"))
        repl.submit("as I said")
        repl.wait_for("To that, then.")

    assert texts_of(server.requests[1].messages[-1]) == "never delivered\nas I said"


def test_many_messages_come_in_their_order(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([looking(gate), say("Done.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("I look")
        for number in range(8):
            repl.submit(f"message-{number}")
            repl.wait_for_prompt()
        gate.set()
        repl.wait_for("Done.")

    sent = str(server.requests[1].messages)
    places = [sent.index(f"message-{number}") for number in range(8)]
    assert places == sorted(places)
