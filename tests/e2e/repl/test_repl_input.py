"""The input: several lines, pastes, wide characters, history, files, the shell, commands and modes."""

import stat
import subprocess
from collections.abc import Callable
from threading import Event

import pytest
import wcwidth

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import ends_input, takes_keys, texts_of
from tests.model_server import Hold, call, say, serving
from tests.terminal_emulator import Screen, keys

SEEN = say("Seen.")


def test_newline_keys_add_a_line(panpan: Panpan, start: Start) -> None:
    pressed = [keys.ctrl("j"), "\\\r", keys.SHIFT_ENTER, "\x1b[27;2;13~"]
    with serving([say(f"Seen {number}.") for number in range(len(pressed))]) as server:
        panpan.use(server)
        repl = start()
        for number, key in enumerate(pressed):
            repl.type("first")
            repl.send(key)
            repl.type("second")
            repl.send(keys.ENTER)
            repl.wait_for(f"Seen {number}.")
            repl.wait_for_prompt()

    for request, key in zip(server.requests, pressed, strict=True):
        assert texts_of(request.messages[-1]) == "first\nsecond", key


@pytest.mark.parametrize(
    ("is_busy", "columns"), [(False, 40), (True, 80), (False, 200)], ids=["narrow", "while-it-streams", "wide"]
)
def test_paste_of_100_kb_is_folded_and_sent_whole(panpan: Panpan, start: Start, is_busy: bool, columns: int) -> None:
    pasted = "\n".join(f"{number:05} {'lorem ipsum ' * 6}" for number in range(1300))
    gate = Event()
    streaming = [say("Beginning and end.", chunk_chars=9, faults=(Hold(4, gate),))] if is_busy else []
    with serving([*streaming, SEEN]) as server:
        panpan.use(server)
        repl = start(columns=columns)
        if is_busy:
            repl.submit("go")
            repl.wait_for("Beginning")
        repl.type("look: ")
        repl.paste(pasted)
        repl.wait_for("1,300")  # lines, in what stands for it
        repl.type(" say")
        repl.send(keys.ENTER)
        gate.set()
        repl.wait_for("Seen.")

    assert len(pasted) > 100_000
    assert texts_of(server.requests[-1].messages[-1]) == f"look: {pasted} say"
    assert "00700 lorem" not in repl.text


def test_paste_with_line_breaks_sends_nothing(panpan: Panpan, start: Start) -> None:
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.paste("one\n/exit\n\nfour")
        repl.wait_for(ends_input("four"))
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert texts_of(server.requests[0].messages[0]) == "one\n/exit\n\nfour"


def test_paste_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.paste("be\x1b]52;c;b3duZWQ=\x07fore\x1b[31;45Hafter")
        repl.wait_for(ends_input("after"))
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert repl.read(lambda screen: screen.clipboard) == []
    assert not repl.read(lambda screen: [control for control in screen.controls if control.text == "31;45H"])


OF_MANY_WIDTHS = ["日本語", "한국어", "👍 👍🏽", "👩\u200d🔬 x", "e\u0301a\u0300", "שלום", "ทำงาน", "❤\ufe0f", "x日"]


def test_cursor_follows_characters_of_any_width(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        for text in OF_MANY_WIDTHS:
            width = sum(max(wcwidth.wcwidth(char), 0) for char in text)
            repl.send(text)
            repl.wait_for(cursor_behind(text, width))
            repl.send(keys.HOME)
            repl.wait_for(lambda screen: screen.cursor.x == 2)
            repl.send(keys.END + "z")
            repl.wait_for(cursor_behind(f"{text}z", width + 1))
            repl.send(keys.ctrl("u"))
            repl.wait_for_prompt()


def cursor_behind(text: str, width: int) -> Callable[[Screen], bool]:
    return lambda screen: screen.cursor.x == 2 + width and screen.before_cursor == f"❯ {text}"


@pytest.mark.parametrize("columns", [40, 200])
def test_wide_characters_wrap_in_the_input_and_the_caret_follows(panpan: Panpan, start: Start, columns: int) -> None:
    pairs = columns * 3 // 4
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start(columns=columns)
        text = "漢字" * pairs
        repl.send(text)
        repl.wait_for(lambda screen: "".join(screen.visible).count("漢字") + screen.text.count("漢\n") >= pairs - 3)
        repl.send("。")
        repl.wait_for(lambda screen: screen.before_cursor.endswith("。"))
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert texts_of(server.requests[0].messages[0]) == f"{text}。"


@pytest.mark.parametrize("columns", [40, 200])
def test_answer_of_wide_characters_is_printed_whole(panpan: Panpan, start: Start, columns: int) -> None:
    words = [f"語{number:03}漢" for number in range(300)]
    with serving([say(" ".join(words), chunk_chars=3), say("And the second answer.")]) as server:
        panpan.use(server)
        repl = start(columns=columns)
        repl.submit("go")
        repl.wait_for("語299漢")
        repl.turn("and now?", "And the second answer.")

    together = repl.text.replace("\n", " ")
    assert [word for word in together.split() if word.startswith("語")] == words


def test_history_goes_across_sessions(panpan: Panpan, start: Start) -> None:
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.turn("remember this", "Seen.")
        repl.leave()
        repl = start()
        repl.send(keys.UP)
        repl.send(keys.UP)
        repl.wait_for(ends_input("remember this"))
        repl.send(keys.ctrl("c"))
        repl.wait_for(takes_keys)
        repl.send(keys.ctrl("r") + "ember")
        repl.wait_for("remember this")


def test_ctrl_g_opens_the_editor(panpan: Panpan, start: Start) -> None:
    editor = panpan.workspace / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the editor: " >"$1.new"; cat "$1" >>"$1.new"; mv "$1.new" "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start(env={"EDITOR": str(editor), "VISUAL": str(editor)})
        repl.type("draft")
        repl.send(keys.ctrl("g"))
        repl.wait_for(ends_input("from the editor: draft"))
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert texts_of(server.requests[0].messages[0]).strip() == "from the editor: draft"


def test_shell_command_output_is_sent_to_the_model(panpan: Panpan, start: Start) -> None:
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("!echo $((40 + 2)) shells")
        repl.wait_for("42 shells")
        repl.wait_for_prompt()
        repl.turn("what did it print?", "Seen.")

    assert "42 shells" in str(server.requests[0].messages)


def test_shell_command_cannot_drive_the_terminal(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.submit(r"!printf 'a\033]0;owned\007b\033[31;45Hc\n'; echo o'v'er")
        repl.wait_for(lambda screen: "over" in screen.text.split())
        repl.wait_for_prompt()

    assert "owned" not in repl.read(lambda screen: screen.titles)
    assert not repl.read(lambda screen: [control for control in screen.controls if control.text == "31;45H"])


def test_mentioned_file_is_attached(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.type("what is in @notes.txt")
        repl.type(" please")
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")

    assert "swordfish" in str(server.requests[0].messages)


def test_file_is_completed_from_a_few_letters(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "src").mkdir()
    (panpan.workspace / "src" / "swordfish_notes.txt").write_text("x\n")
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.send("look at @sworno")
        repl.wait_for("src/swordfish_notes.txt")
        repl.send(keys.TAB)
        repl.wait_for(lambda screen: "@src/swordfish_notes.txt" in screen.before_cursor)


def test_typing_never_waits_for_the_list_of_files(panpan: Panpan, start: Start) -> None:
    for folder in range(100):
        (panpan.workspace / f"folder{folder}").mkdir()
        for number in range(200):
            (panpan.workspace / f"folder{folder}" / f"file{number}.txt").touch()
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.type("look at @fi and what I type behind it comes at once")


def test_paste_without_brackets_is_one_message(panpan: Panpan, start: Start) -> None:
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start()
        repl.send("\r".join(f"line {number} of many" for number in range(300)) + "\r")
        repl.wait_for("[pasted #1: 300 lines]")
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")
        repl.wait_for_prompt()

    assert len(server.requests) == 1


def test_help_is_a_panel_that_goes_away(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start(rows=60)
        for typed, word in (("?", "Ctrl+O"), (f"/help{keys.ENTER}", "/export"), (f"help{keys.ENTER}", "/export")):
            repl.send(typed)
            repl.wait_for(lambda screen, word=word: all(text in screen.text for text in ("esc or typing closes", word)))
            repl.send(keys.ESCAPE)
            repl.wait_for(lambda screen: "esc or typing closes" not in screen.text)
            repl.wait_for_prompt()

        repl.send("?")
        repl.wait_for("esc or typing closes")
        repl.type("hello")
        assert repl.read(lambda screen: "Ctrl+O" not in screen.text and "/help" not in screen.text)


def test_help_can_be_paged_in_a_small_window(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start(rows=10, columns=40)
        repl.send("?")
        repl.wait_for("Enter")
        repl.send("\x1b[F")  # End
        repl.wait_for("on an empty line: this help")


def test_unknown_command_is_not_sent(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/hlep")
        repl.wait_for(lambda screen: "/help" in screen.text)
        repl.wait_for_prompt()

    assert server.requests == []


def test_commands_are_completed(panpan: Panpan, start: Start) -> None:
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.send("/expo")
        repl.wait_for("/export")
        repl.send(keys.TAB)
        repl.wait_for(lambda screen: "/export" in screen.before_cursor)


def test_enter_runs_the_first_command_and_completes_a_path(panpan: Panpan, start: Start) -> None:
    (panpan.workspace / "swordfish.txt").write_text("x\n")
    with serving([SEEN]) as server:
        panpan.use(server)
        repl = start(columns=40)
        repl.send("/mod")
        repl.wait_for("Choose the model")
        repl.send(keys.ENTER)
        repl.wait_for("❯ ✓ anthropic/claude-sonnet-5-5")
        repl.answer("Which model?", keys.ESCAPE)
        repl.wait_for(lambda screen: "Which model?" not in "\n".join(screen.visible))  # or ESC and a letter are Alt
        repl.wait_for_prompt()
        repl.send("see @swordf")
        repl.wait_for("❯ swordfish.txt")
        repl.send(keys.ENTER)
        repl.wait_for(ends_input("see @swordfish.txt"))
        assert server.requests == []
        repl.send(keys.ENTER)
        repl.wait_for("Seen.")


def test_shift_tab_goes_through_the_modes_and_the_gate_follows(panpan: Panpan, start: Start) -> None:
    with serving([call("Write", {"file_path": "a.txt", "content": "x"}), say("Not in plan mode.")]) as server:
        panpan.use(server)
        repl = start("--sandbox", "off")  # so that auto is not among the modes
        for mode in ("accept edits", "plan"):
            repl.send(keys.SHIFT_TAB)
            repl.wait_for(lambda screen: mode in "\n".join(screen.visible))  # noqa: B023
        repl.submit("write it")
        repl.wait_for("Not in plan mode.")
        repl.send(keys.SHIFT_TAB)
        repl.wait_for(lambda screen: "plan" not in "\n".join(screen.visible[-2:]))

    assert not (panpan.workspace / "a.txt").exists()
    assert server.requests[1].messages[-1]["content"][0]["is_error"]


def test_clear_begins_another_session_and_keeps_the_mode(panpan: Panpan, start: Start) -> None:
    with serving([SEEN, say("Begun anew.")]) as server:
        panpan.use(server)
        repl = start("--sandbox", "off")  # so that auto is not among the modes
        repl.turn("remember this", "Seen.")
        repl.wait_for("1 round")  # it is over
        repl.send(keys.SHIFT_TAB + keys.SHIFT_TAB)
        repl.wait_for(lambda screen: "plan mode" in "\n".join(screen.visible))
        repl.submit("/clear")
        repl.wait_for("a new session begins")
        repl.wait_for(lambda screen: screen.before_cursor.startswith("⏸"))
        repl.submit("hello")
        repl.wait_for("Begun anew.")

    assert "remember this" not in str(server.requests[1].messages)


def test_mode_changed_in_mid_turn_counts_for_later_calls(panpan: Panpan, start: Start) -> None:
    gate = Event()
    write = call("Write", {"file_path": "a.txt", "content": "x"}, faults=(Hold(3, gate),))
    with serving([write, say("Written unasked.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("write it")
        repl.wait_for(lambda screen: server.requests)
        repl.send(keys.SHIFT_TAB)
        repl.wait_for("accept edits")
        gate.set()
        repl.wait_for("Written unasked.")

    assert (panpan.workspace / "a.txt").exists()


def test_status_line_shows_model_and_branch(panpan: Panpan, start: Start) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk"], cwd=panpan.workspace, check=True)
    with serving([]) as server:
        panpan.use(server)
        panpan.env["PANPAN_MODEL"] = "claude-sonnet-4-5"
        repl = start(columns=120)
        repl.wait_for(lambda screen: "trunk" in "\n".join(screen.visible))
        repl.wait_for(lambda screen: "sonnet" in "\n".join(screen.visible))
