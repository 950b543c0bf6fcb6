"""Sessions that are found by name, come from other programs, or are held by another panpan."""

import json
import os

from panpan.session.log.session_log import SessionLog
from panpan.system.files.file_lock import lock_holder
from tests.e2e.conftest import Panpan
from tests.model_server import say, serving
from tests.session.importing.claude_records import ClaudeTranscript, call, text


def test_session_is_resumed_by_a_unique_part_of_its_title(panpan: Panpan) -> None:
    with serving([say("One."), say("Two."), say("Three.")]) as server:
        panpan.use(server)
        panpan.run("-p", "mend the parser")
        panpan.run("-p", "mend the printer")
        done = panpan.run("-r", "The Parser", "-p", "go on")
        unclear = panpan.run("-r", "mend the", "-p", "go on")

    assert done.stdout == "Three.\n"
    assert [message["content"][0]["text"] for message in server.requests[2].messages[:2]] == ["mend the parser", "One."]
    assert unclear.code == 2
    assert "several sessions fit 'mend the'" in unclear.stderr
    assert len(server.requests) == 3


def test_imported_transcript_goes_on_with_a_valid_history(panpan: Panpan) -> None:
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    claude = ClaudeTranscript()
    claude.user("long ago")
    last = claude.assistant("msg_0", text("done"), stop="end_turn")
    claude.add({"type": "system", "subtype": "compact_boundary"}, parentUuid=None, logicalParentUuid=last)
    claude.user("Summary of it all.", isCompactSummary=True)
    claude.user([text("look at this"), {"type": "image", "source": picture}])
    first = claude.assistant("msg_1", {"type": "thinking", "thinking": "hm", "signature": "c2ln"}, call("toolu_1"))
    second = claude.assistant("msg_1", call("toolu_2"), stop="tool_use")
    claude.result("toolu_1", "one", parentUuid=first)
    claude.result("toolu_2", [text("two"), {"type": "image", "source": picture}], parentUuid=second)
    claude.assistant("msg_2", text("seen"), call("toolu_3"), stop="tool_use")  # and nobody answered it
    path = claude.written(panpan.workspace / "t.jsonl")

    with serving([say("Going on.")]) as server:  # which refuses a history that is not valid
        panpan.use(server)
        imported = panpan.run("sessions", "import", str(path))
        done = panpan.run("-c", "-p", "and now?")

    assert imported.code == 0, imported.stderr
    assert done.stdout == "Going on.\n", done.stderr
    sent = json.dumps(server.requests[0].messages)
    assert "Summary of it all." in sent
    assert "long ago" not in sent
    for what in ("look at this", "toolu_1", "toolu_2", "two", "seen", "was not answered", "and now?"):
        assert what in sent


def test_second_panpan_names_the_holder_of_the_session(panpan: Panpan) -> None:
    with serving([say("One.")]) as server:
        panpan.use(server)
        panpan.run("-p", "first")
        (path,) = panpan.session_files()
        log = SessionLog(path, session_id=path.stem, cwd=panpan.workspace)
        with path.open("rb") as file:
            holder = lock_holder(file.fileno())
        second = panpan.run("-c", "-p", "second")
        log.close()

    assert second.code == 2
    assert "is open in another panpan" in second.stderr
    assert holder is None or f"(process {os.getpid()}, running since" in second.stderr
    assert len(server.requests) == 1
