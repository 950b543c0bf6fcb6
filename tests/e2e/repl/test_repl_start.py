"""Starts of the REPL: on several terminals, with several looks, and without a key."""

import signal

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl
from tests.model_server import ToolCall, call, calls, say, serving
from tests.terminal_emulator.keys import ENTER, SHIFT_TAB, ctrl

_COLOURS = {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}
MARKDOWN = "# Heading\n\nSome `code` and **bold**.\n\n```python\nx = 1  # one\n```\n"


def test_prompt_of_the_command_line_is_sent_first(panpan: Panpan, start: Start) -> None:
    with serving([say("Hello."), say("Again.")]) as server:
        panpan.use(server)
        repl = start("say hello", waits=False)
        repl.wait_for("Hello.")
        repl.wait_for_prompt()
        repl.turn("and again", "Again.")

    assert [request.messages[-1]["content"][0]["text"] for request in server.requests] == ["say hello", "and again"]


def test_resume_without_an_id_offers_sessions(panpan: Panpan, start: Start) -> None:
    with serving([say("First."), say("Second.")]) as server:
        panpan.use(server)
        panpan.run("-p", "the first question")
        repl = start("-r", waits=False)
        repl.answer("Resume which session?", ENTER)
        repl.wait_for("resumed after")
        repl.turn("and the second", "Second.")

    assert "the first question" in str(server.requests[1].messages)


def test_text_typed_before_the_prompt_is_kept(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start(waits=False)
        repl.send("typed early")
        repl.wait_for(lambda screen: screen.before_cursor == "❯ typed early" and screen.has_bracketed_paste)


def test_terminal_without_replies_works(panpan: Panpan, start: Start) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        repl = start(is_mute=True)
        repl.turn("hi", "Hello.")

        assert repl.leave() == 0


def test_terminal_replies_are_never_typed_text(panpan: Panpan, start: Start) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("hi", "Hello.")

    assert server.requests[0].messages[0]["content"][0]["text"] == "hi"
    assert "rgb:" not in repl.text
    assert "[?62" not in repl.text


def colours_in(repl: Repl) -> set[str]:
    """Return the SGR sequences that set a colour."""
    sequences = repl.read(lambda screen: {c.text for c in screen.controls if c.kind == "CSI" and c.text.endswith("m")})
    return {text for text in sequences if _COLOURS & {int(number or 0) for number in text[:-1].split(";")}}


def test_no_color_has_no_colours(panpan: Panpan, start: Start) -> None:
    script = [calls(ToolCall("LS", {}), ToolCall("Bash", {"command": "touch a"}), text=MARKDOWN), say(MARKDOWN)]
    with serving(script) as server:
        panpan.use(server)
        repl = start("--sandbox", "off", env={"NO_COLOR": "1"})
        repl.submit("go")
        repl.answer("touch a", "n")
        repl.wait_for(lambda screen: screen.text.count("Heading") == 2)
        repl.send(SHIFT_TAB + SHIFT_TAB)
        repl.wait_for(lambda screen: "plan" in "\n".join(screen.visible))
        repl.send("/he")
        repl.wait_for("/help")

    assert colours_in(repl) == set()


def test_answer_has_colours_by_default(panpan: Panpan, start: Start) -> None:
    with serving([say(MARKDOWN)]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("go", "Heading")

    assert len(colours_in(repl)) > 2


@pytest.mark.parametrize("background", ["rgb:ffff/ffff/ffff", "rgb:0000/0000/0000"], ids=["light", "dark"])
def test_theme_is_found_from_the_terminal(panpan: Panpan, start: Start, background: str) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        repl = start(background=background)
        repl.turn("hi", "Hello.")
        repl.submit("/theme")
        repl.wait_for("light")
        repl.send(ctrl("c"))


@pytest.mark.parametrize("way", ["flag", "dumb"])
def test_plain_face_moves_no_cursor_and_has_no_spinner(panpan: Panpan, start: Start, way: str) -> None:
    flags, env = (["--plain"], {}) if way == "flag" else ([], {"TERM": "dumb"})
    with serving([say(MARKDOWN, delta_delay_s=0.02), say("Again.")]) as server:
        panpan.use(server)
        repl = start(*flags, env=env, waits=False)
        repl.wait_for("❯")
        repl.send(f"go{ENTER}")
        repl.wait_for("x = 1")
        repl.wait_for(lambda screen: screen.text.count("❯") == 2)
        repl.send(f"again{ENTER}")
        repl.wait_for("Again.")
        repl.wait_for(lambda screen: screen.text.count("❯") == 3)
        repl.send(f"exit{ENTER}")
        repl.wait()

    controls = repl.read(lambda screen: {control.text for control in screen.controls})
    assert {text for text in controls if not text.endswith("m")} <= {"\r", "\n"}


def test_menu_without_a_key_ends_with_a_signal(panpan: Panpan, start: Start) -> None:
    repl = start(waits=False)
    repl.wait_for(lambda screen: "Paste an API key" in screen.text and "See the demo" in screen.text)
    repl.wait_for("Esc leaves")
    repl.signal(signal.SIGTERM)

    assert repl.wait() == 143


def test_broken_setting_is_reported_in_a_line(panpan: Panpan, start: Start) -> None:
    panpan.home.mkdir(parents=True)
    (panpan.home / "settings.toml").write_text("modle = 1\n")
    repl = start(waits=False)
    repl.wait_for("modle")

    assert repl.wait() == 2
    assert "Traceback" not in repl.text


def test_two_dialects_look_the_same(panpan: Panpan, start: Start) -> None:
    with serving([call("LS", {}), say("Nothing there.")]) as server:
        panpan.use(server, dialect="openai")
        repl = start()
        repl.turn("look", "Nothing there.")
