from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.types.agent import AgentDefinition


def kinds(*names: str) -> AgentDefinitions:
    return AgentDefinitions.of(*(AgentDefinition(name, "does it", "Do it.") for name in names))


def name_got(found: AgentDefinition | None) -> str:
    return found.name if found else ""


def test_definitions_get_ignores_case_where_one_is_meant() -> None:
    assert name_got(kinds("explore", "plan").get("Explore")) == "explore"
    assert name_got(kinds("explore", "Explore").get("Explore")) == "Explore"
    assert name_got(kinds("explore", "Explore").get("EXPLORE")) == ""
