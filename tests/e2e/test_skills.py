"""Skills and commands of users in the real program: what the model gets of them, and what they may run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Done, Panpan
from tests.e2e.test_compaction import answering, long_answers
from tests.model_server import Reply, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest

TOUCH = call("Bash", {"command": "touch made"})


def write(folder: Path, name: str, *lines: str, body: str = "Do it well.") -> Path:
    """Write a skill, and return its file."""
    (folder / name).mkdir(parents=True)
    file = folder / name / "SKILL.md"
    file.write_text("\n".join(["---", f"name: {name}", "description: Fills in forms", *lines, "---", body]))
    return file


def run(
    panpan: Panpan, *replies: Reply, args: tuple[str, ...] = ("-p", "go"), stdin: str = ""
) -> tuple[Done, list[RecordedRequest]]:
    with serving(list(replies)) as server:
        panpan.use(server)
        return panpan.run(*args, stdin=stdin), server.requests


def text_of(request: RecordedRequest) -> str:
    """Return all that the model reads of a request's messages."""
    return "\n".join(_texts(request.messages))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


def tools(request: RecordedRequest) -> list[str]:
    return [tool["name"] for tool in request.body["tools"]]


@pytest.fixture
def skills(panpan: Panpan) -> Path:
    """Return the folder of the user's skills."""
    return panpan.home / "skills"


def test_model_has_no_tool_for_skills_without_any(panpan: Panpan) -> None:
    _, requests = run(panpan, say("Done."))

    assert "Skill" not in tools(requests[0])
    assert "load with Skill" not in text_of(requests[0])


def test_model_is_told_of_a_skill_and_loads_it(panpan: Panpan, skills: Path) -> None:
    file = write(skills, "pdf", "arguments: file", body="Fill in $file with ${CLAUDE_SKILL_DIR}/fill.py.")

    _, requests = run(panpan, call("Skill", {"skill": "pdf", "args": "a.pdf"}), say("Done."))

    assert "Skill" in tools(requests[0])
    assert "- pdf: Fills in forms" in text_of(requests[0])
    assert "Fill in" not in text_of(requests[0])
    assert f"Fill in a.pdf with {file.parent}/fill.py." in text_of(requests[1])
    assert requests[0].body["system"] == requests[1].body["system"]
    assert requests[0].body["tools"] == requests[1].body["tools"]


def test_list_of_skills_is_told_once_in_a_session(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf")

    run(panpan, say("One."))
    _, requests = run(panpan, say("Two."), args=("-c", "-p", "go on"))

    assert text_of(requests[0]).count("- pdf: Fills in forms") == 1


def test_command_of_the_user_is_sent_with_what_stands_behind_it(panpan: Panpan) -> None:
    (panpan.home / "commands").mkdir(parents=True)
    (panpan.home / "commands" / "fix.md").write_text("Fix issue $ARGUMENTS first.")

    _, requests = run(panpan, say("Done."), args=("-p", "/fix 12"))

    assert "/fix 12" in text_of(requests[0])
    assert "Fix issue 12 first." in text_of(requests[0])
    assert "Skill" not in tools(requests[0])


def test_commands_work_in_stream_json_and_are_named_there(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf")
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "/pdf a.pdf"}})

    done, requests = run(
        panpan, say("Done."), args=("--input-format", "stream-json", "-f", "stream-json"), stdin=f"{line}\n"
    )

    assert "Do it well." in text_of(requests[0])
    assert "pdf" in done.lines[0]["slash_commands"]


def test_command_of_the_user_replaces_one_of_panpan(panpan: Panpan) -> None:
    (panpan.home / "commands").mkdir(parents=True)
    (panpan.home / "commands" / "review.md").write_text("Review as I like it.")
    (panpan.home / "commands" / "model.md").write_text("Not this one.")

    _, requests = run(panpan, say("Done."), args=("-p", "/review now"))
    done, none = run(panpan, say("Done."), args=("-p", "/model"))

    assert "Review as I like it." in text_of(requests[0])
    assert none == []
    assert "Not this one." not in done.stdout


def test_skill_of_an_untrusted_project_reaches_nothing(panpan: Panpan) -> None:
    write(panpan.workspace / ".claude" / "skills", "evil", body="Evil words. !`touch made`")
    (panpan.workspace / ".claude" / "commands").mkdir()
    (panpan.workspace / ".claude" / "commands" / "bad.md").write_text("Evil words. !`touch made`")

    done, requests = run(panpan, call("Skill", {"skill": "evil"}), say("Done."), args=("-y", "-p", "go"))
    typed, _ = run(panpan, say("Done."), args=("-y", "-p", "/bad"))

    assert "Skill" not in tools(requests[0])
    assert "Fills in forms" not in text_of(requests[0])
    assert "Evil" not in "".join(map(text_of, requests))
    assert "wait until you trust it" in done.stderr
    assert typed.code != 0
    assert "there is no command /bad" in typed.stderr
    assert not (panpan.workspace / "made").exists()


def test_skill_of_a_trusted_project_counts_as_it_was_trusted(panpan: Panpan) -> None:
    file = write(panpan.workspace / ".claude" / "skills", "ours")
    assert panpan.run("trust", "add").code == 0

    _, requests = run(panpan, call("Skill", {"skill": "ours"}), say("Done."))
    file.write_text(file.read_text().replace("Do it well.", "Do it badly."))
    _, later = run(panpan, say("Done."))

    assert "Do it well." in text_of(requests[1])
    assert "Skill" not in tools(later[0])


@pytest.mark.parametrize("args", [("-p", "/pdf"), ("-p", "go")], ids=["typed", "loaded"])
def test_command_in_a_skill_needs_permission_as_any_other(panpan: Panpan, skills: Path, args: tuple[str, ...]) -> None:
    write(skills, "pdf", body="Made: !`touch made; echo it is`")
    replies = [] if args[1] == "/pdf" else [call("Skill", {"skill": "pdf"})]

    _, requests = run(panpan, *replies, say("Done."), args=args)
    assert "was not run" in text_of(requests[-1])
    assert not (panpan.workspace / "made").exists()

    _, requests = run(panpan, *replies, say("Done."), args=("-y", *args))
    assert "Made: it is" in text_of(requests[-1])
    assert (panpan.workspace / "made").exists()


def test_argument_is_no_command(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", body="For $ARGUMENTS")

    _, requests = run(panpan, say("Done."), args=("-y", "-p", "/pdf !`touch made`"))

    assert "For !`touch made`" in text_of(requests[0])
    assert not (panpan.workspace / "made").exists()


def test_rules_of_a_skill_hold_for_one_turn(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "allowed-tools: Bash(touch *)")

    run(panpan, TOUCH, say("Done."), args=("-p", "/pdf"))
    assert (panpan.workspace / "made").exists()

    (panpan.workspace / "made").unlink()
    run(panpan, TOUCH, say("Done."), args=("-c", "-p", "once more"))
    assert not (panpan.workspace / "made").exists()


def test_skill_with_rules_is_loaded_by_the_model_only_with_a_yes(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "allowed-tools: Bash(touch *)")
    load = call("Skill", {"skill": "pdf"})

    _, requests = run(panpan, load, TOUCH, say("Done."))
    assert "Skill was not run" in text_of(requests[1])
    assert not (panpan.workspace / "made").exists()

    _, requests = run(panpan, load, TOUCH, say("Done."), args=("--allowedTools", "Skill(pdf)", "-p", "go"))
    assert "Do it well." in text_of(requests[1])
    assert (panpan.workspace / "made").exists()


@pytest.mark.parametrize("body", ["Now: !`touch made`", "fork"])
def test_skill_with_rules_and_calls_comes_to_its_end(panpan: Panpan, skills: Path, body: str) -> None:
    more = ["context: fork"] if body == "fork" else []
    write(skills, "pdf", "allowed-tools: Bash(touch *)", *more, body=body)
    replies = [call("Skill", {"skill": "pdf"}), *([TOUCH, say("Touched.")] if more else []), say("Done.")]

    done, _ = run(panpan, *replies, args=("--allowedTools", "Skill(pdf)", "-p", "go"))

    assert done.stdout.strip() == "Done."
    assert (panpan.workspace / "made").exists() is not bool(more)


@pytest.mark.parametrize("mode", ["default", "plan"])
def test_rules_need_a_yes_whatever_else_the_skill_says(panpan: Panpan, skills: Path, mode: str) -> None:
    write(skills, "pdf", "allowed-tools: Bash(touch *)", "disallowed-tools: WebFetch")

    _, requests = run(
        panpan, call("Skill", {"skill": "pdf"}), TOUCH, say("Done."), args=("--permission-mode", mode, "-p", "go")
    )

    assert ("Do it well." in text_of(requests[1])) is (mode == "plan")
    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize("rules", ["Bash(git status", "Bash(git commit (all))", "Foo(x)"])
def test_broken_rule_allows_nothing_and_the_others_hold(panpan: Panpan, skills: Path, rules: str) -> None:
    write(skills, "pdf", f"allowed-tools: {rules}", "disallowed-tools: Bash(touch *)")

    done, _ = run(panpan, TOUCH, say("Done."), args=("-y", "-p", "/pdf"))

    assert not (panpan.workspace / "made").exists()
    assert "(all)" in rules or "a rule of the skill pdf does not hold" in done.stderr


def test_rules_of_a_skill_are_for_its_agent_alone(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "allowed-tools: Bash(touch *)")
    task = call("Task", {"description": "touch", "prompt": "touch it", "subagent_type": "general-purpose"})

    run(panpan, task, TOUCH, say("I could not."), say("Done."), args=("-p", "/pdf"))

    assert not (panpan.workspace / "made").exists()


def test_rule_that_asks_is_stronger_than_what_a_skill_allows(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "allowed-tools: Bash")
    (panpan.home / "settings.toml").write_text('[permission]\nask = ["Bash(touch *)"]\n')

    run(panpan, TOUCH, say("Done."), args=("-p", "/pdf"))

    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize("path", [".envrc", "../outside.txt"])
def test_skill_opens_no_protected_or_outside_file(panpan: Panpan, skills: Path, path: str) -> None:
    write(skills, "pdf", "allowed-tools: Write, Edit")

    run(panpan, call("Write", {"file_path": path, "content": "x"}), say("Done."), args=("-p", "/pdf"))

    assert not (panpan.workspace / path).exists()


def test_message_that_is_refused_leaves_no_rules_behind(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "allowed-tools: Bash(touch *)")
    hook = {"command": "grep -q /pdf && exit 2 || exit 0"}
    (panpan.home / "hooks.json").write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}))
    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in ("/pdf", "go")]

    run(
        panpan,
        *(TOUCH, say("Done.")),
        args=("-p", "--input-format", "stream-json", "-f", "stream-json", "--verbose"),
        stdin="\n".join(map(json.dumps, lines)),
    )

    assert not (panpan.workspace / "made").exists()


def test_skill_for_the_model_replaces_no_command(panpan: Panpan, skills: Path) -> None:
    write(skills, "review", "user-invocable: false", body="For the model.")

    _, requests = run(panpan, say("Done."), args=("-p", "/review"))

    assert "For the model." not in text_of(requests[0])
    assert "as a careful colleague would" in text_of(requests[0])


def test_typed_command_keeps_the_limit_on_time(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", body="!`sleep 60`")

    done, requests = run(panpan, say("Done."), args=("-y", "--max-seconds", "1", "-p", "/pdf"))

    assert requests == []
    assert done.code != 0


def test_refused_command_of_a_skill_is_told(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", body="!`touch made`")

    done, _ = run(panpan, call("Skill", {"skill": "pdf"}), say("Done."))

    assert "Bash was not run" in done.stderr


def test_deny_rule_is_stronger_than_what_a_skill_allows(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "allowed-tools: Bash")

    run(panpan, TOUCH, say("Done."), args=("--disallowedTools", "Bash(touch *)", "-p", "/pdf"))

    assert not (panpan.workspace / "made").exists()


def test_skill_may_forbid_what_is_allowed(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "disallowed-tools: Bash(touch *)")

    run(panpan, TOUCH, say("Done."), args=("-y", "-p", "/pdf"))

    assert not (panpan.workspace / "made").exists()


def test_denied_skill_is_not_loaded(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf")

    _, requests = run(
        panpan,
        call("Skill", {"skill": "pdf"}),
        say("Done."),
        args=("-y", "--disallowedTools", "Skill(pdf)", "-p", "go"),
    )

    assert "Do it well." not in text_of(requests[1])


def test_skill_for_the_user_alone_is_not_for_the_model(panpan: Panpan, skills: Path) -> None:
    write(skills, "mine", "disable-model-invocation: true")
    write(skills, "other")

    _, requests = run(panpan, call("Skill", {"skill": "mine"}), say("Done."))

    assert "- mine:" not in text_of(requests[0])
    assert "there is no skill 'mine'" in text_of(requests[1])


def test_loaded_skill_stays_when_the_conversation_is_compacted(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", body=f"Do it well. {'Much to say. ' * 400}")
    asked = ["go", "part 1", "part 2", "part 3", "/compact", "and now"]
    steps = [call("Skill", {"skill": "pdf"}), say("Done."), *long_answers()[:3], say("Short.")]
    with serving(answering(*steps)) as server:
        panpan.use(server)
        for number, prompt in enumerate(asked):
            done = panpan.run(*(["-c"] if number else []), "-p", prompt)
            assert prompt != "/compact" or "undo restores it" in done.stdout

    last = text_of(server.requests[-1])
    assert "word1 " not in last
    assert last.count("Do it well.") == 1
    assert last.count("- pdf: Fills in forms") == 1


def test_skill_that_forks_is_followed_by_a_subagent(panpan: Panpan, skills: Path) -> None:
    write(skills, "deep", "context: fork", body="Look deeply at $ARGUMENTS.")

    done, requests = run(panpan, say("I looked."), say("Told."), args=("-p", "/deep the loss"))

    assert done.stdout == "Told.\n"
    assert "Look deeply at the loss." in text_of(requests[0])
    assert "/deep" not in text_of(requests[0])
    assert "I looked." in text_of(requests[1])
    assert "Look deeply" not in text_of(requests[1])


def test_skill_for_certain_files_is_told_when_one_is_touched(panpan: Panpan, skills: Path) -> None:
    write(skills, "sheets", "paths: data/*.csv")
    (panpan.workspace / "data").mkdir()
    (panpan.workspace / "data" / "a.csv").write_text("1,2\n")

    _, requests = run(panpan, call("Read", {"file_path": "data/a.csv"}), say("Done."))

    assert "sheets" not in text_of(requests[0])
    assert "There is a skill for files such as data/a.csv" in text_of(requests[1])


def test_unusable_skill_is_told_once_and_the_rest_counts(panpan: Panpan, skills: Path) -> None:
    write(skills, "good")
    write(skills, "bad").write_text("---\nname: bad\n")

    done, requests = run(panpan, say("Done."))

    assert "bad/SKILL.md:1:" in done.stderr
    assert "- good:" in text_of(requests[0])

    (skills / "good" / "SKILL.md").unlink()
    alone, _ = run(panpan, say("Done."))
    assert "bad/SKILL.md:1:" in alone.stderr


def test_skills_are_listed_and_checked_without_a_model(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf")
    write(skills, "odd", "color: red")

    listed = panpan.run("skills", "list")
    as_json = json.loads(panpan.run("skills", "list", "--json").stdout)
    checked, good = panpan.run("skills", "check"), panpan.run("skills", "check", str(skills / "pdf"))

    assert "pdf  Fills in forms" in listed.stdout
    assert "the key color is not known" in listed.stderr
    assert [one["name"] for one in as_json["skills"]] == ["odd", "pdf"]
    assert (checked.code, good.code) == (1, 0)
    assert "color is no key of the specification" in checked.stdout
    assert "2 found, commands included" in panpan.run("doctor").stdout


@pytest.mark.parametrize(
    ("args", "typed", "words"),
    [
        (("commit",), "/commit", "Commit the work"),
        (("review", "mind the tests", "-f", "json"), "/review mind the tests", "careful colleague"),
        (("run", "show large files"), "/run show large files", "one shell command"),
    ],
)
def test_subcommand_begins_with_a_skill(panpan: Panpan, args: tuple[str, ...], typed: str, words: str) -> None:
    done, requests = run(panpan, say("Done."), args=args)

    assert typed in text_of(requests[0])
    assert words in text_of(requests[0])
    assert "Done." in done.stdout
    assert ("-f" in args) is done.stdout.startswith("{")


HOOKS = """\
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: 'echo "not while filling in" >&2; exit 2'
          timeout: 5"""


def test_hooks_of_a_skill_hold_until_the_turn_ends(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS)

    _, requests = run(
        panpan, call("Skill", {"skill": "pdf"}), TOUCH, say("Done."), args=("--allowedTools", "Skill(pdf)", "-yp", "go")
    )
    assert "not while filling in" in text_of(requests[2])
    assert not (panpan.workspace / "made").exists()

    _, requests = run(panpan, TOUCH, say("Done."), args=("-c", "-y", "-p", "go on"))
    assert (panpan.workspace / "made").exists()


def test_hooks_of_a_skill_hold_when_the_user_calls_it(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS)

    _, requests = run(panpan, TOUCH, say("Done."), args=("-y", "-p", "/pdf a.pdf"))

    assert "not while filling in" in text_of(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_model_loads_a_skill_with_hooks_only_with_a_yes(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS)

    _, requests = run(panpan, call("Skill", {"skill": "pdf"}), say("Done."))

    assert "Skill was not run" in text_of(requests[1])


def test_hooks_that_are_no_yaml_are_told(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS, "when_to_use: now: and then")

    listed = panpan.run("skills", "list")

    assert "pdf/SKILL.md" in listed.stderr
    assert "its hooks cannot be read" in listed.stderr
    assert listed.code == 0


def test_model_of_a_forked_skill_is_that_of_its_subagent(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "context: fork", "model: haiku")

    _, requests = run(panpan, call("Skill", {"skill": "pdf"}), say("Filled in."), say("Done."), args=("-y", "-p", "go"))

    assert "haiku" in requests[1].body["model"]
    assert "haiku" not in requests[2].body["model"]


def test_skill_of_the_user_is_followed_by_its_model_for_one_turn(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "model: haiku", "effort: low")
    lines = "\n".join(json.dumps({"type": "user", "message": {"role": "user", "content": it}}) for it in ("/pdf", "go"))

    done, requests = run(
        panpan,
        TOUCH,
        say("Filled in."),
        say("Done."),
        args=("-y", "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--effort", "high"),
        stdin=f"{lines}\n",
    )

    assert ["haiku" in request.body["model"] for request in requests] == [True, True, False], done
    assert requests[2].body["output_config"]["effort"] == "high"


def test_skill_of_a_project_leads_the_conversation_nowhere_else(panpan: Panpan) -> None:
    write(panpan.workspace / ".claude/skills", "pdf", "model: openai/gpt-5")
    assert panpan.run("trust", "add").code == 0
    panpan.env["OPENAI_API_KEY"] = "sk-test-0123456789abcdef0123456789abcdef"

    done, requests = run(panpan, say("Done."), args=("-p", "/pdf"))

    assert "only a model at anthropic may be" in done.stderr
    assert len(requests) == 1


def test_present_model_answers_for_an_unknown_one_of_a_skill(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", "model: cave")

    done, requests = run(panpan, say("Done."), args=("-p", "/pdf"))

    assert "cave" in done.stderr
    assert len(requests) == 1
    assert done.stdout == "Done.\n"


def test_hook_of_a_skill_may_run_once(panpan: Panpan, skills: Path) -> None:
    hooks = HOOKS.replace("          timeout: 5", "          once: true")
    write(skills, "pdf", hooks)

    _, requests = run(panpan, TOUCH, TOUCH, say("Done."), args=("-y", "-p", "/pdf a.pdf"))

    assert "not while filling in" in text_of(requests[1])
    assert (panpan.workspace / "made").exists()


def test_hooks_of_a_skill_hold_for_the_subagent_that_follows_it(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS, "context: fork")

    _, requests = run(panpan, TOUCH, say("Filled in."), say("Done."), args=("-y", "-p", "/pdf a.pdf"))

    assert "not while filling in" in text_of(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_hooks_of_a_skill_hold_in_the_same_reply(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS.replace("matcher: Bash", "matcher: Read"))
    (panpan.workspace / "a.txt").write_text("sword")
    reply = calls(ToolCall("Skill", {"skill": "pdf"}), ToolCall("Read", {"file_path": "a.txt"}))

    _, requests = run(panpan, reply, say("Done."), args=("-y", "-p", "go"))

    assert "not while filling in" in text_of(requests[1])
    assert "sword" not in text_of(requests[1])


def test_skill_with_hooks_is_not_loaded_in_plan_mode(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS)

    _, requests = run(panpan, call("Skill", {"skill": "pdf"}), say("Done."),
                      args=("-y", "-p", "go", "--permission-mode", "plan"))  # fmt: skip

    assert "Skill was not run" in text_of(requests[1])


def test_switched_off_hooks_are_off_in_skills(panpan: Panpan, skills: Path) -> None:
    write(skills, "pdf", HOOKS)
    (panpan.home / "hooks.json").write_text('{"disableAllHooks": true}')

    run(panpan, TOUCH, say("Done."), args=("-y", "-p", "/pdf a.pdf"))

    assert (panpan.workspace / "made").exists()


def test_quoted_texts_of_hooks_stay_texts(panpan: Panpan, skills: Path) -> None:
    hooks = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - command: sh\n          "
    write(skills, "pdf", f'{hooks}args: ["-c", "exit $0", "2"]\n          guard: true')

    run(panpan, TOUCH, say("Done."), args=("-y", "-p", "/pdf a.pdf"))

    assert not (panpan.workspace / "made").exists()
