"""/compact in the REPL: what it shows, what the model gets then, and how it is taken back."""

from threading import Event

from tests.e2e.conftest import Panpan
from tests.e2e.repl.conftest import Start
from tests.e2e.repl.driver import Repl
from tests.e2e.test_compaction import SUMMARY, answering, long_answers, messages_text, noticing, say, wants_summary
from tests.model_server import Reply, Stall, Text, serving
from tests.terminal_emulator import keys


def whole_turn(repl: Repl, prompt: str, number: int) -> None:
    """Say something and wait until its turn, the `number`th of the session, is over."""
    repl.submit(prompt)
    repl.wait_for(lambda screen: screen.text.count("· 1 round") == number)
    repl.wait_for_prompt()


def test_compact_shortens_the_next_request_until_undone(panpan: Panpan, start: Start) -> None:
    with serving(answering(*long_answers()[:3], say("short now"), say("long again"))) as server:
        panpan.use(server)
        repl = start("--record", "made.jsonl")
        for number in range(1, 4):
            whole_turn(repl, f"tell me part {number}", number)
        repl.submit("/compact heed the teal colour")
        repl.wait_for("/compact undo restores it")
        assert repl.read(lambda screen: "summarised by the model" in "\n".join(screen.visible))
        repl.wait_for_prompt()
        whole_turn(repl, "and now?", 4)
        assert repl.text.count("conversation compacted") == 1
        repl.submit("/compact undo")
        repl.wait_for("was undone")
        repl.wait_for_prompt()
        whole_turn(repl, "and again?", 5)
        repl.leave()

    asked = [request for request in server.requests if wants_summary(request)]
    assert len(asked) == 1
    assert "heed the teal colour" in messages_text(asked[0])
    short, long = server.requests[-2:]
    assert "SUMMARY-MARK" in messages_text(short)
    assert "word1 " not in messages_text(short)
    assert "SUMMARY-MARK" not in messages_text(long)
    assert "word1 " in messages_text(long)
    assert "short now" in messages_text(long)
    replayed = panpan.run("replay", "made.jsonl", "--quiet")
    assert (replayed.code, replayed.stdout.splitlines()[0]) == (
        0,
        "same as recorded (strict): 5 turns, 6 requests, 0 calls",
    )


def test_compaction_is_told_once_in_each_of_two_terminals(panpan: Panpan, start: Start) -> None:
    with serving(answering(*long_answers()[:3], say("short now"), say("and on"))) as server:
        panpan.use(server)
        first = start()
        for number in range(1, 4):
            whole_turn(first, f"tell me part {number}", number)
        second = start("attach", waits=False)
        second.wait_for("joined the session")
        second.wait_for_prompt()
        for repl, number in ((first, 1), (second, 2)):
            repl.submit("/compact")
            for one in (first, second):
                one.wait_for(lambda screen, count=number: screen.text.count("/compact undo restores it") >= count)
            repl.wait_for_prompt()
            repl.submit("/compact undo")
            for one in (first, second):
                one.wait_for(lambda screen, count=number: screen.text.count("the compaction was undone") >= count)
            repl.wait_for_prompt()
        first.submit("and now?")
        for one in (first, second):
            one.wait_for("short now")
            assert one.text.count("/compact undo restores it") == 2
            assert one.text.count("the compaction was undone") == 2


def test_compact_without_a_conversation_says_so(panpan: Panpan, start: Start) -> None:
    with serving(answering(say("hello"))) as server:
        panpan.use(server)
        repl = start()
        whole_turn(repl, "hi", 1)
        repl.submit("/compact")
        repl.wait_for("nothing to shorten")
        repl.wait_for_prompt()
        repl.submit("/compact undo")
        repl.wait_for("no compaction to undo")
        repl.leave()

    assert len(server.requests) == 1


def test_escape_during_compact_keeps_the_conversation(panpan: Panpan, start: Start) -> None:
    never = Reply((Text(SUMMARY),), faults=(Stall("text"),))
    asked = Event()
    with serving(noticing(answering(*long_answers()[:3], say("whole"), summary=never), asked)) as server:
        panpan.use(server)
        repl = start()
        for number in range(1, 4):
            whole_turn(repl, f"tell me part {number}", number)
        repl.submit("/compact")
        repl.wait_for("can be interrupted")
        assert asked.wait(20)
        repl.send(keys.ESCAPE)
        repl.wait_for("the conversation is as it was")
        repl.wait_for(lambda screen: screen.text.count("❯ /compact") == 2)  # given back, as all that is interrupted
        repl.send("\x7f\x15")
        repl.wait_for_prompt()
        whole_turn(repl, "and now?", 4)
        repl.leave()

    assert "word1 " in messages_text(server.requests[-1])
    assert server.refusals == []
