"""Messages sent while a shell command of the user's runs: seen, taken back, or run behind it."""

import os
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL
from threading import Event

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, texts_of, was_given_back
from tests.model_server import Hold, Reply, Stall, Text, say, serving
from tests.terminal_emulator import Screen, keys

BEHIND = "↳ after the command: "


def begin_command(repl: Repl, panpan: Panpan) -> Path:
    """Run a command that waits until something is written into the file that is returned."""
    pipe = panpan.workspace / "pipe"
    os.mkfifo(pipe)
    repl.submit("!cat pipe")
    wait_until(lambda: "cat pipe" in repl.children())
    repl.wait_for_prompt()
    return pipe


def queue(*texts: str) -> Callable[[Screen], bool]:
    """Return the condition that exactly these wait for the command."""

    def is_shown(screen: Screen) -> bool:
        rows = [row.strip() for row in screen.text.splitlines()]
        return [row.removeprefix(BEHIND) for row in rows if row.startswith(BEHIND)] == list(texts)

    is_shown.__name__ = f"the queue {texts}"
    return is_shown


def test_messages_run_in_order_behind_the_command(panpan: Panpan, start: Start) -> None:
    with serving([say("It printed that.")]) as server:
        panpan.use(server)
        repl = start()
        pipe = begin_command(repl, panpan)
        for text in ("!echo $((40 + 2)) shells", "what was printed?"):
            repl.submit(text)
            repl.wait_for_prompt()
        repl.wait_for(queue("!echo $((40 + 2)) shells", "what was printed?"))
        was_asked = bool(server.requests)
        pipe.write_text("from the pipe\n")
        repl.wait_for("It printed that.")
        repl.wait_for(queue())

    assert not was_asked
    sent = "\n".join(map(texts_of, server.requests[0].messages))
    places = [sent.index(text) for text in ("from the pipe", "42 shells", "what was printed?")]
    assert places == sorted(places)


def test_alt_up_takes_back_what_waits_for_the_command(panpan: Panpan, start: Start) -> None:
    with serving([say("Done.")]) as server:
        panpan.use(server)
        repl = start()
        pipe = begin_command(repl, panpan)
        for text in ("keep this one", "think about this one"):
            repl.submit(text)
            repl.wait_for_prompt()
        repl.send(keys.ALT_UP)
        repl.wait_for(lambda screen: screen.before_cursor == "❯ think about this one")
        repl.wait_for(queue("keep this one"))
        pipe.write_text("printed\n")
        repl.wait_for("Done.")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ think about this one")

    assert "keep this one" in str(server.requests[0].messages)
    assert len(server.requests) == 1


def test_escape_ends_the_command_and_what_waits_comes_next(panpan: Panpan, start: Start) -> None:
    with serving([say("I see.")]) as server:
        panpan.use(server)
        repl = start()
        begin_command(repl, panpan)
        repl.submit("enough of it")
        repl.wait_for(queue("enough of it"))
        repl.type("half a wor")
        repl.send(keys.ESCAPE)
        repl.wait_for("interrupted by the user")
        repl.wait_for("I see.")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ half a wor")
        repl.type("d")
        wait_until(lambda: repl.children() == [])

    assert "enough of it" in str(server.requests[0].messages)


def test_escape_beside_a_turn_ends_the_command_first(panpan: Panpan, start: Start) -> None:
    stalled = Reply((Text("Thinking about it"),), faults=(Stall(-1),))
    with serving([stalled]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking about it")
        begin_command(repl, panpan)
        repl.send(keys.ESCAPE)
        repl.wait_for("interrupted by the user")
        wait_until(lambda: repl.children() == [])
        was_interrupted = INTERRUPTED in repl.text
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)

    assert not was_interrupted


def test_message_for_the_turn_waits_for_the_command(panpan: Panpan, start: Start) -> None:
    gate = Event()
    with serving([say("Only an answer.", chunk_chars=5, faults=(Hold(4, gate),)), say("And to that.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Only")
        pipe = begin_command(repl, panpan)
        repl.submit("one more thing")
        repl.wait_for(queue("one more thing"))
        pipe.write_text("printed\n")
        repl.wait_for("next round: one more thing")
        gate.set()
        repl.wait_for("And to that.")

    assert "one more thing" in str(server.requests[1].messages[-1])


def test_status_works_while_a_command_runs(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        begin_command(repl, panpan)
        repl.submit("/status")
        repl.wait_for("the model's default")
        repl.submit("/clear")
        repl.wait_for(queue("/clear"))
        assert "cat pipe" in repl.children()


def test_leaving_ends_the_command(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        begin_command(repl, panpan)
        repl.submit("exit")

        assert repl.wait() == 0
    # that nothing runs on is asserted at the end of each test


def test_message_behind_clear_is_asked_in_the_new_session(panpan: Panpan, start: Start) -> None:
    with serving([say("Asked there.")]) as server:
        panpan.use(server)
        repl = start()
        pipe = begin_command(repl, panpan)
        for text in ("/clear", "not lost"):
            repl.submit(text)
            repl.wait_for_prompt()
        repl.wait_for(queue("/clear", "not lost"))
        pipe.write_text("printed\n")
        repl.wait_for("Asked there.")

    assert [texts_of(message) for message in server.requests[0].messages] == ["not lost"]


def test_message_behind_a_failed_resume_is_given_back(panpan: Panpan, start: Start) -> None:
    with serving([Reply((Text("Slowly"),), faults=(Stall(-1),))]) as server:
        panpan.use(server)
        panpan.start("-p", "one", stdin=DEVNULL, is_installed=False)  # no terminal can join it
        wait_until(lambda: server.requests)
        (held_there,) = panpan.session_files()
        repl = start()
        pipe = begin_command(repl, panpan)
        for text in (f"/resume {held_there.stem}", "not for this one"):
            repl.submit(text)
            repl.wait_for_prompt()
        pipe.write_text("printed\n")
        repl.wait_for("open in another panpan")
        repl.wait_for(was_given_back("❯ not for this one"))

    assert len(server.requests) == 1


def test_command_that_is_not_utf_8_is_refused(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl._pty.send(b"!echo \xff\xfe")
        repl.wait_for("!echo")
        repl.send(keys.ENTER)
        repl.wait_for("not UTF-8")
        repl.submit("!echo $((40 + 2)) all the same")
        repl.wait_for("42 all the same")


def test_long_output_line_wraps_with_its_indent(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start(columns=60)
        repl.submit("!printf 'a%.0s' {1..70}; echo; echo '  b   c'")
        repl.wait_for("└ aaa")
        repl.wait_for_prompt()
        rows = [row.rstrip() for row in repl.visible.splitlines()]

    at = next(number for number, row in enumerate(rows) if row.startswith("  └ "))
    assert rows[at : at + 3] == [f"  └ {'a' * 56}", f"    {'a' * 14}", "      b   c"]
