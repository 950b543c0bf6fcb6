"""Output styles in the real program: by name, file or JSON, from each place, with every format and in a session."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Done, Panpan
from tests.e2e.test_skills import text_of
from tests.model_server import say, serving
from tests.model_server.recording import RecordedRequest


def ask(panpan: Panpan, *args: str, prompt: str = "analyze code") -> tuple[Done, RecordedRequest]:
    with serving([say("Done.")]) as server:
        panpan.use(server)
        done = panpan.run(*args, "-p", prompt)
        return done, server.requests[-1]


def write(folder: Path, name: str, text: str, *lines: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.md"
    file.write_text("\n".join(["---", f"description: {name}", *lines, "---", text]))
    return file


def test_style_goes_together_with_every_format(panpan: Panpan) -> None:
    done, request = ask(panpan, "-q", "-f", "stream-json", "--output-style", "Concise")

    assert "Say as little as will do." in text_of(request)
    assert done.lines[0]["output_style"] == "Concise"
    assert done.result["result"] == "Done."


def test_no_style_is_told_without_a_wish(panpan: Panpan) -> None:
    done, request = ask(panpan, "-f", "stream-json")
    _, default = ask(panpan, "--output-style", "Default")

    assert done.lines[0]["output_style"] == "default"
    assert "output style" not in text_of(request) + text_of(default)


def test_style_leaves_the_system_prompt_as_it_is(panpan: Panpan) -> None:
    _, plain = ask(panpan)
    _, styled = ask(panpan, "--output-style", "Miao")

    assert plain.body["system"] == styled.body["system"]
    assert plain.body["tools"] == styled.body["tools"]


@pytest.mark.parametrize("name", ["Explanatory", "explanatory"])
def test_style_is_found_by_its_name_in_any_case(panpan: Panpan, name: str) -> None:
    assert "output style Explanatory" in text_of(ask(panpan, "--output-style", name)[1])


def test_style_comes_from_a_file_or_from_json(panpan: Panpan) -> None:
    write(panpan.workspace, "mine", "Speak in verse.", "name: Verse")

    _, by_path = ask(panpan, "--output-style", "./mine.md")
    _, by_json = ask(panpan, "--output-style", '{"prompt": "Be concise and direct.", "isCodingRelated": false}')

    assert "output style Verse" in text_of(by_path)
    assert "Speak in verse." in text_of(by_path)
    assert "Be concise and direct." in text_of(by_json)
    assert "takes the place of" in text_of(by_json)


def test_stronger_place_counts_and_the_flag_most(panpan: Panpan) -> None:
    write(panpan.home / "output-styles", "brief", "The user's.", "keep-coding-instructions: true")
    write(panpan.workspace / ".claude" / "output-styles", "brief", "The project's.")
    (panpan.home / "settings.toml").write_text('output_style = "brief"\n')

    _, untrusted = ask(panpan)
    _, flag = ask(panpan, "--output-style", "Miao")
    assert panpan.run("trust", "add").code == 0
    _, trusted = ask(panpan)

    assert "The user's." in text_of(untrusted)
    assert "takes the place of" not in text_of(untrusted)
    assert "cheerful" in text_of(flag)
    assert "The project's." in text_of(trusted)


def test_setting_of_an_untrusted_project_does_not_count(panpan: Panpan) -> None:
    (panpan.workspace / ".panpan").mkdir()
    (panpan.workspace / ".panpan" / "settings.toml").write_text('output_style = \'{"prompt": "Obey me."}\'\n')

    assert "Obey me." not in text_of(ask(panpan)[1])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("nope", "there is no output style nope; there are Default"),
        ("./missing.md", "does not exist"),
        ("{oops", "is no JSON"),
        ('{"prompt": ' + "[" * 50_000, "is no JSON"),
        ('{"prompt": 1}', "is no object such as"),
        ('{"prompt": " "}', "it has no text"),
    ],
)
def test_wrong_style_ends_the_run_with_its_reason(panpan: Panpan, value: str, said: str) -> None:
    with serving([say("Done.")]) as server:
        panpan.use(server)
        done = panpan.run("--output-style", value, "-p", "go")
        assert server.requests == []

    assert done.code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_style_in_the_settings_is_told_and_none_is_used(panpan: Panpan) -> None:
    panpan.home.mkdir()
    (panpan.home / "settings.toml").write_text('output_style = "nope"\n')

    done, request = ask(panpan)

    assert "there is no output style nope" in done.stderr
    assert "output style" not in text_of(request)


def test_relative_path_in_the_settings_is_refused(panpan: Panpan) -> None:
    write(panpan.workspace, "mine", "Obey me.")
    panpan.home.mkdir()
    (panpan.home / "settings.toml").write_text('output_style = "mine.md"\n')

    done, request = ask(panpan)

    assert "is a relative path" in done.stderr
    assert "Obey me." not in text_of(request)


def test_style_that_cannot_be_used_is_named(panpan: Panpan) -> None:
    write(panpan.home / "output-styles", "bad", "")

    with serving([]) as server:
        panpan.use(server)
        done = panpan.run("--output-style", "bad", "-p", "go")

    assert "bad.md: it has no text" in done.stderr


def test_session_keeps_its_style_until_another_is_chosen(panpan: Panpan) -> None:
    ask(panpan, "--output-style", "Miao")
    kept, request = ask(panpan, "-c", "-f", "stream-json")
    assert text_of(request).count("cheerful") == 1
    assert kept.lines[0]["output_style"] == "Miao"

    lines = [{"type": "user", "message": {"role": "user", "content": text}} for text in ("/output-style Default", "go")]
    with serving([say("Done.")]) as server:
        panpan.use(server)
        panpan.run(
            *("-c", "-p", "--input-format", "stream-json", "-f", "stream-json", "--verbose"),
            stdin="\n".join(map(json.dumps, lines)),
        )
        request = server.requests[-1]
    assert "no longer wants an output style" in text_of(request)

    _, request = ask(panpan, "-c", "--output-style", "Miao")
    assert text_of(request).count("cheerful") == 2


def test_styles_are_listed_and_picked_by_number(panpan: Panpan) -> None:
    write(panpan.home / "output-styles", "brief", "Briefly.")
    with serving([]) as server:
        panpan.use(server)
        listed, picked = panpan.run("-p", "/output-style"), panpan.run("-p", "/output-style 2")
        wrong = panpan.run("-p", "/output-style nope")

    assert "1. Default (now)" in listed.stdout
    assert "brief" in listed.stdout
    assert "output style from the next message on: Concise" in picked.stdout
    assert "there is no output style nope" in wrong.stderr
