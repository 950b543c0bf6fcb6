from panpan.types.permission import PermissionQuestion, Reason


def question(tool: str = "Bash", **arguments: object) -> PermissionQuestion:
    return PermissionQuestion("id", tool, arguments, "the title", "a reason")


def test_the_digest_of_a_question_is_that_of_the_exact_call() -> None:
    asked = question(command="make", timeout=3)

    assert asked.digest == question(timeout=3, command="make").digest, "the order says nothing"
    others = [
        question(command="make "),
        question(command="make", timeout="3"),
        question("Other", command="make", timeout=3),
    ]
    assert len({asked.digest, *(other.digest for other in others)}) == 4
    assert question(command="\ud800").digest


def test_a_reason_says_for_programs_only_what_it_knows() -> None:
    assert Reason("not today").as_json() == {"text": "not today", "kind": "hook"}
    assert Reason("a rule denies it", "rule", "Bash(rm *)", "f:3", command="rm x").as_json() == {
        "text": "a rule denies it",
        "kind": "rule",
        "rule": "Bash(rm *)",
        "place": "f:3",
        "command": "rm x",
    }
