"""Keys beside those for typing: nothing is taken for Esc, what is cleared comes back, and each says what it does."""

import base64
from collections.abc import Mapping
from threading import Event

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import INTERRUPTED, Repl, ends_input, takes_keys, texts_of
from tests.model_server import Hold, Reply, Stall, Text, Thinking, say, serving
from tests.terminal_emulator import Screen, keys

BACKGROUND = "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"
NOT_KEYS = {
    "alt-z": keys.alt("z"),
    "alt-q": keys.alt("Q"),
    "alt-space": keys.alt(" "),
    "alt-é": keys.alt("é"),
    "alt-bracket": keys.alt("["),
    "alt-o": keys.alt("O"),
    "ctrl-alt-f5": "\x1b[15;7~",
    "modify-other-keys": "\x1b[27;3;112~",
    "focus": "\x1b[I\x1b[O",
    "background": BACKGROUND,
    "kind": "\x1b[?64;1;2c",
}
"""Input that means nothing here: keys, and answers of the terminal."""
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def shows_pager(words: str) -> object:
    def condition(screen: Screen) -> bool:
        return screen.is_alternate and any(words in row for row in screen.visible)

    return condition


def is_idle(screen: Screen) -> bool:
    """True if no turn runs."""
    return "1 round" in screen.text and not any("esc interrupts" in row for row in screen.visible)


def leave_pager(repl: Repl) -> None:
    repl.send("q")
    repl.wait_for(lambda screen: not screen.is_alternate)
    repl.wait_for_prompt()


def press_in_turns(panpan: Panpan, start: Start, pressed: Mapping[str, str], *, types_nothing: bool) -> None:
    """Press a key in each turn of one session, and see that none is interrupted, and what it types."""
    gates = {name: Event() for name in pressed}
    script = [say(f"Beginning, end of {name}.", chunk_chars=10, faults=(Hold(4, gates[name]),)) for name in pressed]
    with serving(script) as server:
        panpan.use(server)
        repl = start()
        for number, (name, key) in enumerate(pressed.items(), 1):
            repl.submit("go")
            repl.wait_for(lambda screen, number=number: screen.text.count("Beginning,") == number)
            repl.send(key)
            repl.send(keys.END)
            repl.type("after the key")
            gates[name].set()
            repl.wait_for(f"end of {name}.")
            repl.wait_for(lambda screen, number=number: screen.text.count("1 round") == number)
            assert INTERRUPTED not in repl.text, name
            if types_nothing:
                repl.wait_for(lambda screen: screen.before_cursor == "❯ after the key")
            repl.send(keys.ctrl("c"))  # which clears it
            repl.wait_for_prompt()


def test_unknown_sequences_interrupt_and_type_nothing(panpan: Panpan, start: Start) -> None:
    press_in_turns(panpan, start, NOT_KEYS, types_nothing=True)


def test_terminal_reply_in_pieces_types_nothing(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        for char in BACKGROUND:
            repl.send(char)
        repl.type("x")

        assert repl.read(lambda screen: screen.before_cursor) == "❯ x"


def test_two_escapes_clear_the_input_and_ctrl_s_restores_it(panpan: Panpan, start: Start) -> None:
    with serving([say("Seen.")]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("? shortcuts")
        repl.type("a long thought")
        repl.send(keys.ESCAPE)
        repl.wait_for("Esc again clears")
        repl.send(keys.ESCAPE)
        repl.wait_for(lambda screen: takes_keys(screen) and "Esc again" not in screen.text)
        repl.send(keys.ctrl("s"))
        repl.wait_for(ends_input("a long thought"))
        repl.send(keys.ctrl("c"))
        repl.wait_for("Ctrl+S restores")
        repl.send(keys.ctrl("s"))
        repl.wait_for(ends_input("a long thought"))
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert texts_of(server.requests[0].messages[0]) == "a long thought"


@pytest.mark.parametrize(
    ("between", "left"), [("x", "a long thoughtyx"), (keys.alt("z"), "a long thoughyt")], ids=["letter", "alt"]
)
def test_key_between_two_escapes_keeps_the_input(panpan: Panpan, start: Start, between: str, left: str) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("? shortcuts")
        repl.type("a long thought")
        repl.send(keys.ESCAPE)
        repl.wait_for("Esc again clears")
        repl.send(between + keys.LEFT)
        repl.wait_for(lambda screen: screen.before_cursor == f"❯ {left.partition('y')[0]}")
        repl.send(keys.ESCAPE)
        repl.paste("y")  # typed, it would be Alt+Y
        repl.wait_for(lambda screen: screen.row_of_cursor == f"❯ {left}")


def test_ctrl_s_puts_aside_and_brings_back(panpan: Panpan, start: Start) -> None:
    with serving([say("Seen.")]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("? shortcuts")
        repl.send(keys.ctrl("s"))
        repl.wait_for("nothing is stashed")
        repl.type("for later")
        repl.send(keys.ctrl("s"))
        repl.wait_for("stashed; Ctrl+S")
        repl.turn("first this", "Seen.")
        repl.send(keys.ctrl("s"))
        repl.wait_for(lambda screen: screen.row_of_cursor == "❯ for later")

    assert texts_of(server.requests[0].messages[0]) == "first this"


@pytest.mark.parametrize(
    ("pressed", "said"),
    [(keys.ctrl("b"), "there were no background tasks"), (keys.ctrl("t"), "there are no todos")],
    ids=["tasks", "todos"],
)
def test_keys_that_show_something_interrupt_nothing(panpan: Panpan, start: Start, pressed: str, said: str) -> None:
    with serving([Reply((Text("Thinking about it"),), faults=(Stall(-1),))]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Thinking about it")
        repl.send(pressed)
        repl.wait_for(said)

    assert INTERRUPTED not in repl.text


def test_two_escapes_in_an_empty_input_rewind(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), say("Two."), say("Otherwise.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("first", "One.")
        repl.turn("second", "Two.")
        repl.send(keys.ESCAPE + keys.ESCAPE)
        repl.answer("Rewind to before which message?", keys.ENTER)
        repl.answer("What goes back?", keys.DOWN + keys.ENTER)
        repl.wait_for("taken back: “second”")
        repl.wait_for("❯ second")
        repl.type(" thought")
        repl.send(keys.ENTER)
        repl.wait_for("Otherwise.")

        texts = [texts_of(message) for message in server.requests[-1].body["messages"]]
    assert texts == ["first", "One.", "second thought"]


def test_alt_p_offers_the_models(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("? shortcuts")
        repl.send(keys.alt("p"))
        repl.wait_for("Which model?")
        repl.send(keys.ESCAPE)
        repl.wait_for_prompt()


def test_text_right_behind_a_dialogs_answer_goes_to_the_input(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.wait_for("? shortcuts")
        repl.send(keys.alt("p"))
        repl.wait_for("Which model?")
        repl.turn_to_question("Which model?")
        repl.send(keys.ENTER + "what comes behind it")
        repl.wait_for(ends_input("❯ what comes behind it"))


def test_alt_t_switches_thinking(panpan: Panpan, start: Start) -> None:
    with serving([say("One."), say("Two."), say("Three.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("first", "One.")
        repl.wait_for(is_idle)
        repl.send(keys.alt("t"))
        repl.wait_for("thinking is on from the next message on")
        repl.turn("second", "Two.")
        repl.wait_for(is_idle)
        repl.send(keys.alt("t"))
        repl.wait_for("thinking is off from the next message on")
        repl.turn("third", "Three.")

    assert ["thinking" in request.body for request in server.requests] == [False, True, False]


def test_ctrl_v_mentions_the_picture_in_the_clipboard(panpan: Panpan, start: Start) -> None:
    programs = panpan.workspace.parent / "programs"
    programs.mkdir()
    (programs / "picture.png").write_bytes(PICTURE)
    (programs / "wl-paste").write_text(f"#!/bin/sh\nexec cat '{programs}/picture.png'\n")
    (programs / "wl-paste").chmod(0o755)
    path = f"{programs}:{panpan.environment()['PATH']}"
    with serving([say("Seen.")]) as server:
        panpan.use(server)
        repl = start(env={"PATH": path, "WAYLAND_DISPLAY": "wayland-0", "TMPDIR": str(programs)})
        repl.wait_for("? shortcuts")
        repl.type("what is")
        repl.send(" " + keys.ctrl("v"))
        repl.wait_for(lambda screen: "panpan-pictures-" in screen.text and ".png" in screen.before_cursor)
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    (picture,) = [block for block in server.requests[0].messages[0]["content"] if block["type"] == "image"]
    assert base64.b64decode(picture["source"]["data"]) == PICTURE


def test_ctrl_v_without_a_clipboard_program_says_so(panpan: Panpan, start: Start) -> None:
    nothing = panpan.workspace.parent / "nothing"
    nothing.mkdir()
    with serving([]) as server:
        panpan.use(server)
        repl = start(env={"PATH": str(nothing)})
        repl.wait_for("? shortcuts")
        repl.send(keys.ctrl("v"))
        repl.wait_for("no program here can read the clipboard")


def test_pager_shows_thinking(panpan: Panpan, start: Start) -> None:
    reply = Reply((Thinking("first the one,\nthen the other thing"), Text("Answered.")))
    with serving([reply]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("go", "Answered.")
        assert "then the other thing" not in repl.text
        repl.send(keys.ctrl("o"))
        repl.wait_for(shows_pager("then the other thing"))
        repl.wait_for(lambda screen: [row.strip() for row in screen.visible if row.strip() in ("❯ go", "Answered.")])
        leave_pager(repl)


def test_pager_shows_interrupted_thinking(panpan: Panpan, start: Start) -> None:
    reply = Reply((Thinking("one half of the thought and the other half"),), chunk_chars=24, faults=(Stall(4),))
    with serving([reply]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("one half of the thought")
        repl.send(keys.ESCAPE)
        repl.wait_for(INTERRUPTED)
        repl.wait_for_prompt()
        repl.send(keys.ctrl("o"))
        repl.wait_for(shows_pager("one half of the thought"))
        leave_pager(repl)


def test_alt_in_a_search_is_neither_escape_nor_a_letter(panpan: Panpan, start: Start) -> None:
    with serving([say("One.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("look for the fox", "One.")
        repl.send(keys.ctrl("r") + "the")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("the") and "fox" in screen.text)
        repl.send(keys.alt("z") + " fo")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("the fo"))
        repl.send(keys.ENTER)
        repl.wait_for(lambda screen: screen.row_of_cursor == "❯ look for the fox")
