import json
import re

from hypothesis import given

from panpan.session.export.export import json_text
from panpan.session.log.records import message_of
from panpan.types.messages import SystemReminder, UserMessage
from tests.session.export.export_fixtures import call, everywhere, hostile_texts, reply, result, transcript


def test_json_messages_can_be_read_back() -> None:
    said = (
        UserMessage.of("why?"),
        SystemReminder(text="today", cause="session:start"),
        reply("since", call(command="ls", n=[1, {"a": None}])),
        result("a.py", diff="-a\n+b\n"),
    )

    exported = json.loads(json_text(transcript(*said, title="Why")))

    assert tuple(message_of(record) for record in exported["messages"]) == said
    assert (exported["sessionId"], exported["title"], exported["model"]) == ("0199-s1", "Why", "scripted")
    assert (exported["format"], exported["version"], exported["panpanVersion"]) == ("panpan-session", 1, "1.2.3")


@given(hostile_texts)
def test_json_text_round_trips_and_is_harmless(said: str) -> None:
    text = json_text(everywhere(said))

    assert json.loads(text)["title"] == said
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    text.encode()
