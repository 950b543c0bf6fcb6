"""The beginning of a session is taken as far as it can be sent, whatever the log says."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.core.conversation import Conversation
from panpan.models.provider_kind import FULL
from panpan.models.providers.anthropic_request import encode_head
from panpan.session.log.fold import fold_records
from panpan.session.log.record_kinds import UNNAMED, SessionPrefix, kept_prefix
from panpan.types.llm import ModelOptions, ToolDefinition

NEW = SessionPrefix("full", "be good", (ToolDefinition("Look", "looks", {"type": "object"}),))


def start(**damaged: object) -> dict[str, object]:
    return {"uuid": "u0", "parentUuid": None, "type": "system", "subtype": "session_start", **damaged}


def test_fold_omits_damaged_tools_of_the_prefix() -> None:
    good = {"name": "Look", "description": "looks", "input_schema": {"type": "object"}}
    damaged = [{**good, "name": {}}, {**good, "description": None}, {**good, "input_schema": []}, {"name": "x"}, 1]

    session = fold_records([start(system=["be good"], tools=[damaged[0], good, *damaged[1:]])])

    assert session.prefixes == {
        UNNAMED: SessionPrefix(UNNAMED, None, (ToolDefinition("Look", "looks", {"type": "object"}),))
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
TOOL = st.fixed_dictionaries({}, optional={"name": JSON, "description": JSON, "input_schema": JSON})


@given(JSON, JSON | st.lists(JSON | TOOL, max_size=3))
def test_fold_makes_a_sendable_prefix_from_any_start(system: object, tools: object) -> None:
    session = fold_records([start(system=system, tools=tools)])

    prefix = kept_prefix(NEW, session.prefixes, FULL)
    request = Conversation(prefix.system or "", prefix.tools, session.messages).request()

    assert encode_head(ModelOptions("m", 100), request.system, request.tools, is_stream=True)
