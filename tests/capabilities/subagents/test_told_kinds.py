from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.subagents.task import MAX_CHARS, MAX_KINDS, describe_kinds
from panpan.types.agent import AgentDefinition


def kind(name: str, description: str) -> AgentDefinition:
    return AgentDefinition(name, description, "prompt")


def test_kinds_are_described_on_a_line_each() -> None:
    assert describe_kinds([kind("a", "one\n  two"), kind("b", "three")]) == ["- a: one two", "- b: three"]
    assert describe_kinds([]) == []


def test_only_the_longest_descriptions_are_cut() -> None:
    lines = describe_kinds([kind("short", "as it is"), kind("long", "x" * 50_000), kind("longer", "y" * 60_000)])

    assert lines[0] == "- short: as it is"
    assert lines[1].endswith("x…")
    assert len(lines[1].removeprefix("- long: ")) == len(lines[2].removeprefix("- longer: ")) == (MAX_CHARS - 8) // 2


def test_kinds_beyond_the_limit_are_counted() -> None:
    lines = describe_kinds([kind(f"k{number}", "d") for number in range(MAX_KINDS + 3)])

    assert len(lines) == MAX_KINDS + 1
    assert lines[-1] == "… and 3 more kinds, not told here"


@given(st.lists(st.integers(1, 5000), max_size=150))
def test_descriptions_fit_together_and_are_cut_only_if_needed(lengths: list[int]) -> None:
    kinds = [kind("k", "d" * length) for length in lengths]

    told = [line.removeprefix("- k: ") for line in describe_kinds(kinds)][:MAX_KINDS]

    assert sum(map(len, told)) <= MAX_CHARS
    if sum(lengths[:MAX_KINDS]) <= MAX_CHARS:
        assert told == ["d" * length for length in lengths[:MAX_KINDS]]
