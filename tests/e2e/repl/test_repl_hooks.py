"""Hooks of the user in the REPL: a refused message comes back, a hook answers the question, and `/hooks` shows them."""

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.repl.conftest import Start
from tests.e2e.test_user_hooks import all_told, special, told_to, write_hooks
from tests.model_server import call, say, serving


def test_refused_message_comes_back_into_the_input(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, UserPromptSubmit=[{"command": "grep -q swordfish && { echo no secrets >&2; exit 2; } || :"}])
    with serving([say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("it is swordfish")
        repl.wait_for("your message was not sent: no secrets")
        repl.wait_for("❯ it is swordfish")
        repl.send("\x03")
        repl.submit("it is a fish")
        repl.wait_for("Fine.")
        repl.submit("/hooks")
        repl.wait_for("UserPromptSubmit: grep -q")

    (request,) = server.requests
    assert "swordfish" not in str(request.body)


def test_hook_answers_in_place_of_the_user(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, PermissionRequest=[special("PermissionRequest", decision={"behavior": "allow"})])
    with serving([call("Write", {"file_path": "made", "content": "one\n"}), say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.wait_for("Fine.")

    assert (panpan.workspace / "made").read_text() == "one\n"


def test_notification_runs_when_the_user_is_asked(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, Notification=[{"matcher": "permission_prompt", "hooks": [told_to(panpan)]}])
    with serving([call("Write", {"file_path": "made", "content": "one\n"}), say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("go")
        repl.answer("Write made?", "n")
        repl.wait_for("Fine.")
        repl.leave()

    (told,) = all_told(panpan)
    assert told["notification_type"] == "permission_prompt"
    assert "Write" in told["message"]


def test_hooks_hear_of_another_model_and_may_refuse_it(panpan: Panpan, start: Start) -> None:
    no = {"matcher": ".*opus.*", "hooks": [{"command": "echo too dear >&2; exit 2"}]}
    write_hooks(panpan, PreModelSwitch=[no, {"hooks": [told_to(panpan, "before")]}], PostModelSwitch=[told_to(panpan)])
    with serving([say("As before."), say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/model opus")
        repl.wait_for("too dear")
        repl.submit("/effort low")
        repl.submit("hello")
        repl.wait_for("As before.")
        repl.submit("/model haiku")
        wait_until(lambda: all_told(panpan))
        repl.submit("hi")
        repl.wait_for("Fine.")

    assert ["haiku" in request.body["model"] for request in server.requests] == [False, True]
    assert "opus" not in server.requests[0].body["model"]
    assert server.requests[0].body["output_config"]["effort"] == "low"
    assert ["haiku" in told["to_model"] for told in all_told(panpan)] == [True]
    assert len(all_told(panpan, "before")) == 2


def test_hook_keeps_a_setting_from_being_saved(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, ConfigChange=[told_to(panpan), {"command": "echo not here >&2; exit 2"}])
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/theme light")
        repl.wait_for("not here")

    assert all_told(panpan)[0]["source"] == "user_settings"
    assert not (panpan.home / "config.toml").exists() or "light" not in (panpan.home / "config.toml").read_text()


def test_hook_hears_of_another_folder(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, DirectoryAdded=[told_to(panpan)])
    with serving([]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/add-dir ..")
        wait_until(lambda: all_told(panpan))

    assert all_told(panpan)[0]["directory"] == str(panpan.workspace.parent)


def test_hooks_of_a_skill_that_was_not_sent_do_not_hold(panpan: Panpan, start: Start) -> None:
    allow = special("PermissionRequest", decision={"behavior": "allow"})["command"]
    script = panpan.home / "allow.sh"
    write_hooks(panpan, UserPromptSubmit=[{"command": "grep -q /sk && { echo not now >&2; exit 2; } || :"}])
    script.write_text(allow)
    (panpan.home / "skills" / "sk").mkdir(parents=True)
    (panpan.home / "skills" / "sk" / "SKILL.md").write_text(
        f"---\nname: sk\ndescription: d\nhooks:\n  PermissionRequest:\n    - hooks:\n        - command: sh {script}\n"
        "---\nDo it."
    )
    with serving([call("Write", {"file_path": "made", "content": "x"}), say("Fine.")]) as server:
        panpan.use(server)
        repl = start()
        repl.submit("/sk")
        repl.wait_for("not now")
        repl.wait_for("❯ /sk")
        repl.send("\x03")
        repl.submit("go")
        repl.answer("Write made?", "n")
        repl.wait_for("Fine.")

    assert not (panpan.workspace / "made").exists()


def test_model_that_judges_is_at_the_provider_of_now(panpan: Panpan, start: Start) -> None:
    write_hooks(panpan, PreToolUse=[{"type": "prompt", "prompt": "May it? $ARGUMENTS"}])
    look = call("Bash", {"command": "echo private"})
    with serving([say("First.")]) as old, serving([look, say('{"ok": true}'), say("Fine.")]) as new:
        panpan.use(old)
        panpan.env |= {"OPENAI_API_KEY": "sk-test-0123456789", "OPENAI_BASE_URL": new.openai_url}
        repl = start("-y")
        repl.submit("hi")
        repl.wait_for("First.")
        repl.submit("/model openai/gpt-test")
        repl.wait_for("gpt-test")
        repl.submit("go")
        repl.wait_for("Fine.")

    assert len(old.requests) == 1
    assert len(new.requests) == 3
