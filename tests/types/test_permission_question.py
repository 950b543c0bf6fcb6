from panpan.types.permission import Reason


def test_a_reason_says_for_programs_only_what_it_knows() -> None:
    assert Reason("not today").as_json() == {"text": "not today", "kind": "hook"}
    assert Reason("a rule denies it", "rule", "Bash(rm *)", "f:3", command="rm x").as_json() == {
        "text": "a rule denies it",
        "kind": "rule",
        "rule": "Bash(rm *)",
        "place": "f:3",
        "command": "rm x",
    }
