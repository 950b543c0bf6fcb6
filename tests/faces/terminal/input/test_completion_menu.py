"""Enter takes the completion that was seen, and never replaces a word typed in full."""

import pytest
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Never
from wcwidth import strip_sequences

from panpan.faces.terminal.input.draft import Draft, Pastes
from panpan.faces.terminal.input.input_box import MAX_OFFERED, CommandCompletion, InputBox


def command(name, typed, arguments="", *, needs_arguments=False):
    return CommandCompletion(name, typed, arguments=arguments, detail="helps", needs_arguments=needs_arguments)


def path(name, typed):
    return Completion(f"@{name} ", start_position=-len(typed), display=name)


class Typed:
    """An input with a text, and completions for it."""

    def __init__(self, text, *completions, after="", is_seen=True):
        self.box = InputBox(lambda: "> ")
        self.buffer = self.box.buffer
        self.buffer.complete_while_typing = Never()  # it would need an application
        self.buffer.document = Document(text + after, len(text))
        self.buffer.complete_state = CompletionState(self.buffer.document, list(completions))
        self.draft = Draft(self.box, Pastes())
        self.see(is_whole=is_seen)

    def see(self, *, is_whole=True):
        self.rows = [strip_sequences(row) for row in self.box.menu.rows(80)]
        self.box.menu.was_drawn(is_whole=is_whole)

    def enter(self):
        """Press Enter; return what is sent, and what stays in the input."""
        return self.draft.enter(), self.buffer.text


@pytest.mark.parametrize("arguments", ["", "[name]"])
def test_command_that_can_run_as_it_is_runs(arguments):
    one = Typed("/mod", command("model", "mod", arguments), command("mode", "mod"))

    sent, left = one.enter()

    assert (sent.strip(), left) == ("/model", "")


def test_command_that_needs_something_is_completed():
    assert Typed("/ad", command("add-dir", "ad", "path", needs_arguments=True)).enter() == ("", "/add-dir ")


def test_command_before_other_words_is_completed():
    assert Typed("/exp", command("export", "exp"), after=" all").enter() == ("", "/export all")


def test_path_is_completed():
    assert Typed("see @co", path("src/core.py", "@co"), path("co.py", "@co")).enter() == ("", "see @src/core.py ")


@pytest.mark.parametrize(
    ("text", "completions"),
    [
        ("/add-dir", [command("add-dir", "add-dir", "path", needs_arguments=True)]),
        ("/fork", [command("format", "fork"), command("fork", "fork")]),
        ("see @src/", [path("src/core.py", "@src/"), Completion("@src/", start_position=-5)]),
        ("see @co.py", [path("co.py", "@co.py")]),
    ],
)
def test_text_typed_in_full_is_sent_unchanged(text, completions):
    assert Typed(text, *completions).enter() == (text, "")


def test_selected_completion_is_taken():
    one = Typed("/co", command("copy", "co"), command("cost", "co"))
    one.buffer.go_to_completion(1)

    assert one.enter() == ("/cost", "")


@pytest.mark.parametrize("text", ["/co", "see @co"])
def test_unseen_completion_is_not_taken(text):
    completion = command("copy", "co") if text == "/co" else path("co.py", "@co")

    assert Typed(text, completion, is_seen=False).enter() == (text, "")


def test_completion_seen_for_another_text_is_not_taken():
    one = Typed("/co", command("copy", "co"))
    one.buffer.insert_text("m")
    one.buffer.complete_state = CompletionState(one.buffer.document, [command("compact", "com")])

    assert one.enter() == ("/com", "")


def test_first_completion_is_selected_and_the_list_follows():
    one = Typed("/c", *(command(f"c{number}", "c") for number in range(20)))
    assert one.rows[0].startswith("❯ /c0")
    assert one.rows[7].startswith("  /c7")

    one.buffer.go_to_completion(12)
    one.see()

    assert [row.split()[1] for row in one.rows if row.startswith("❯")] == ["/c12"]


@pytest.mark.parametrize(
    ("completions", "selected", "last_row"),
    [(20, None, "  (1/20)"), (20, 12, "  (13/20)"), (3, 2, "  (3/3)"), (MAX_OFFERED, 0, f"  (1/{MAX_OFFERED}+)")],
)
def test_menu_says_how_many_there_are_and_which_is_selected(completions, selected, last_row):
    one = Typed("/c", *(command(f"c{number}", "c") for number in range(completions)))
    if selected is not None:
        one.buffer.go_to_completion(selected)
        one.see()

    assert one.rows[-1] == last_row


def test_menu_of_one_says_no_number():
    assert len(Typed("/c", command("copy", "c")).rows) == 1


def test_names_cannot_drive_the_terminal():
    one = Typed("@a", path("a\x1b]0;owned\x07\n.py", "@a"))

    assert "\x1b" not in "".join(one.rows)
    assert len(one.rows) == 1
