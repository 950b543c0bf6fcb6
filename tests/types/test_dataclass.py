"""Our dataclass is that of the standard library: every rule is tried on both."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.types.dataclass import quick_dataclass

Decorator = Callable[..., Callable[[type], type]]

BOTH = pytest.mark.parametrize("dataclass", [quick_dataclass, dataclasses.dataclass])
KINDS = pytest.mark.parametrize("frozen", [True, False])
SLOTS = pytest.mark.parametrize("slots", [True, False])


def point(dataclass: Decorator, **how: bool) -> Any:
    class Point:
        """A class with a field of each kind."""

        x: int
        y: int = 7
        tags: list[str] = field(default_factory=list)
        note: str = field(default="", compare=False, repr=False)
        seen: set[int] = field(default_factory=set, init=False, compare=False)
        round: int = field(default=3, init=False)

    return dataclass(**how)(Point)


@quick_dataclass(frozen=True, slots=True)
class Pickled:
    """At the top of the module, where pickle finds it."""

    x: int
    y: tuple[str, ...] = ()


@BOTH
@KINDS
@SLOTS
class TestBoth:
    def test_dataclass_takes_fields_by_position_name_or_default(self, dataclass: Decorator, frozen: bool, slots: bool):
        made = point(dataclass, frozen=frozen, slots=slots)(1, tags=["a"])
        assert (made.x, made.y, made.tags, made.note, made.seen, made.round) == (1, 7, ["a"], "", set(), 3)

    def test_dataclass_makes_a_default_for_each_object(self, dataclass: Decorator, frozen: bool, slots: bool):
        cls = point(dataclass, frozen=frozen, slots=slots)
        first, second = cls(1), cls(1)
        first.tags.append("a")
        first.seen.add(1)
        assert (second.tags, second.seen) == ([], set())

    @pytest.mark.parametrize(
        ("positional", "named"),
        [((), {}), ((1, 2, [], "", 5), {}), ((1,), {"z": 2}), ((1,), {"x": 2}), ((1,), {"seen": set()})],
    )
    def test_dataclass_refuses_wrong_arguments(
        self, dataclass: Decorator, frozen: bool, slots: bool, positional: tuple[Any, ...], named: dict[str, Any]
    ):
        cls = point(dataclass, frozen=frozen, slots=slots)
        with pytest.raises(TypeError, match=r"Point\.__init__\(\)"):
            cls(*positional, **named)

    def test_dataclass_equals_only_its_own_class(self, dataclass: Decorator, frozen: bool, slots: bool):
        cls, other = (point(dataclass, frozen=frozen, slots=slots) for _ in range(2))
        assert cls(1, note="a") == cls(1, note="b")
        assert cls(1) != cls(2)
        assert cls(1) != other(1)
        assert cls(1) != (1, 7, [], 3)

    def test_repr_shows_the_fields(self, dataclass: Decorator, frozen: bool, slots: bool):
        made = point(dataclass, frozen=frozen, slots=slots)(1, note="hidden")
        assert repr(made).rpartition("Point(")[2] == "x=1, y=7, tags=[], seen=set(), round=3)"

    def test_repr_of_a_recursive_object_ends(self, dataclass: Decorator, frozen: bool, slots: bool):
        made = point(dataclass, frozen=frozen, slots=slots)(1)
        made.tags.append(made)
        assert "tags=[...]" in repr(made)

    def test_dataclass_can_be_replaced_copied_and_converted(self, dataclass: Decorator, frozen: bool, slots: bool):
        made = point(dataclass, frozen=frozen, slots=slots)(1, tags=["a"])
        assert replace(made, x=2) == type(made)(2, tags=["a"])
        deep = copy.deepcopy(made)
        assert deep == made == copy.copy(made)
        assert deep.tags is not made.tags
        assert dataclasses.asdict(made) == {"x": 1, "y": 7, "tags": ["a"], "note": "", "seen": set(), "round": 3}
        assert type(made).__match_args__ == ("x", "y", "tags", "note")

    def test_signature_names_the_fields(self, dataclass: Decorator, frozen: bool, slots: bool):
        parameters = inspect.signature(point(dataclass, frozen=frozen, slots=slots)).parameters
        assert list(parameters) == ["x", "y", "tags", "note"]
        assert parameters["x"].default is inspect.Parameter.empty
        assert parameters["y"].default == 7

    def test_kw_only_dataclass_refuses_positions(self, dataclass: Decorator, frozen: bool, slots: bool):
        cls = point(dataclass, frozen=frozen, slots=slots, kw_only=True)
        assert cls(y=1, x=2).x == 2
        with pytest.raises(TypeError, match="positional"):
            cls(1)

    def test_dataclass_without_fields_works(self, dataclass: Decorator, frozen: bool, slots: bool):
        class Nothing:
            pass

        cls = dataclass(frozen=frozen, slots=slots)(Nothing)
        assert cls() == cls()
        assert repr(cls()).endswith("Nothing()")

    def test_dataclass_keeps_its_own_methods(self, dataclass: Decorator, frozen: bool, slots: bool):
        class Own:
            x: int

            def __repr__(self) -> str:
                return f"own {self.x}"

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self) -> int:
                return 5

        made = dataclass(frozen=frozen, slots=slots)(Own)(1)
        assert (repr(made), made == "anything", hash(made)) == ("own 1", True, 5)

    def test_post_init_runs_after_the_fields_are_set(self, dataclass: Decorator, frozen: bool, slots: bool):
        class Checked:
            x: int

            def __post_init__(self) -> None:
                if self.x < 0:
                    raise ValueError("below zero")

        cls = dataclass(frozen=frozen, slots=slots)(Checked)
        assert cls(1).x == 1
        with pytest.raises(ValueError, match="below zero"):
            cls(-1)

    def test_subclass_of_a_dataclass_is_made_the_same_way(self, dataclass: Decorator, frozen: bool, slots: bool):
        cls = point(dataclass, frozen=frozen, slots=slots)
        below = type("Below", (cls,), {})
        assert below(1).x == cls(1).x == 1
        assert below(1) == below(1)
        assert below(1) != cls(1)

    def test_slots_refuse_other_attributes(self, dataclass: Decorator, frozen: bool, slots: bool):
        cls = point(dataclass, frozen=frozen, slots=slots)
        assert hasattr(cls(1), "__dict__") is not slots


@BOTH
@SLOTS
def test_frozen_dataclass_is_immutable_and_hashable(dataclass: Decorator, slots: bool):
    class Key:
        x: int
        note: str = field(default="", compare=False)

    cls = dataclass(frozen=True, slots=slots)(Key)
    made = cls(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        made.x = 2
    with pytest.raises(FrozenInstanceError):
        del made.x
    assert made.x == 1
    assert {made: "found"}[cls(1, "another note")] == "found"


@BOTH
@SLOTS
def test_mutable_dataclass_is_unhashable(dataclass: Decorator, slots: bool):
    made = point(dataclass, slots=slots)(1)
    made.x = 2
    assert made.x == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


def test_dataclass_survives_pickling():
    assert pickle.loads(pickle.dumps(Pickled(1, ("a",)))) == Pickled(1, ("a",))


@given(st.lists(st.integers() | st.text(), min_size=1, max_size=6), st.lists(st.integers() | st.text(), min_size=6))
def test_dataclass_compares_and_hashes_by_values(mine: list[Any], theirs: list[Any]):
    names = [f"f{number}" for number in range(len(mine))]
    cls: Any = quick_dataclass(frozen=True)(type("Made", (), {"__annotations__": dict.fromkeys(names, object)}))
    first, same, second = cls(*mine), cls(*mine), cls(*theirs[: len(mine)])
    assert [f.name for f in fields(cls)] == names
    assert [attrgetter(name)(first) for name in names] == mine
    assert (first == same, hash(first) == hash(same)) == (True, True)
    assert (first == second) is (mine == theirs[: len(mine)])
