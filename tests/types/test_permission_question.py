from panpan.types.permission import Reason


def test_reason_for_programs_holds_only_known_fields() -> None:
    assert Reason("not today").as_json() == {"text": "not today", "kind": "hook"}
    assert Reason("a rule denies it", "rule", "Bash(rm *)", "f:3", command="rm x").as_json() == {
        "text": "a rule denies it",
        "kind": "rule",
        "rule": "Bash(rm *)",
        "place": "f:3",
        "command": "rm x",
    }
