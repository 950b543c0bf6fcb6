import json
import os
import re
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from pydantic import ValidationError

from panpan.capabilities.shell.bash import MAX_RESULT_CHARS, BashInput, BashTool
from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.types.events import Progress
from tests.capabilities.shell.conftest import Shell
from tests.fakes.context import context_in


async def test_result_holds_the_output(shell: Shell) -> None:
    output = await shell.run("echo one; echo two >&2")

    assert output.content == "one\ntwo"
    assert not output.is_error


async def test_result_of_a_failure_has_its_exit_code(shell: Shell) -> None:
    output = await shell.run("echo before; exit 3")

    assert output.content == "before\n[exit code 3]"
    assert output.is_error


async def test_result_names_the_signal_that_ended_the_command(shell: Shell) -> None:
    output = await shell.run("kill -SEGV $$")

    assert "[exit code 139, ended by SIGSEGV]" in str(output.content)


async def test_result_mentions_silence(shell: Shell) -> None:
    assert await shell.text("true") == "(no output)"


async def test_input_is_empty_and_nothing_prompts(shell: Shell) -> None:
    assert await shell.text("cat; echo $?; echo $GIT_TERMINAL_PROMPT $PAGER") == "0\n0 cat"


async def test_command_gets_the_environment_of_the_session(shell: Shell) -> None:
    base = {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk-ant-not-a-key", "OMP_NUM_THREADS": "yes"}
    shell.ctx = replace(shell.ctx, environment=child_environment(base))

    assert await shell.text('echo "[$ANTHROPIC_API_KEY] [$OMP_NUM_THREADS]"') == "[] [yes]"


@pytest.mark.parametrize(
    "command",
    [
        "cd sub",
        "cd sub && false",
        "cd sub; exit 3",
        "set -e; cd sub; false; cd ..",
        "set -eu; cd sub; echo $nothing_here",
        "cd sub; trap 'echo bye' EXIT",
        "cd sub; set -o noclobber",
        "cd sub; set -x; true",
        "cd sub; pwd() { echo /; }",
        "cd sub; IFS=0123456789/; set -f",
        "cd sub; sleep 5 & true",
        "pushd sub",
        "cd link",
        "shopt -s extglob nullglob; cd sub",
        "cd sub\n# a comment",
        "cd sub; cat <<EOF\n$HOME\nEOF",
        "alias exit=true; cd sub; :",
        "cd sub; unset PATH",
    ],
)
async def test_working_directory_is_kept_however_a_command_ends(shell: Shell, command: str) -> None:
    (shell.root / "sub").mkdir()
    (shell.root / "link").symlink_to("sub")

    changed = await shell.text(command)

    assert (said := f"[the working directory is now {shell.root}/sub]") in changed
    assert "panpan" not in changed.replace(said, "")
    assert await shell.text("pwd -P") == f"{shell.root}/sub"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("(cd sub; exit 4)", 4),
        ("cd sub; exec sh -c 'exit 9'", 9),
        ("cd sub; trap - EXIT; exit 6", 6),
        ("cd sub; kill -9 $$", 137),
        ("cd nowhere", 1),
        ("cd (", 2),
        ("if true; then", 2),
        ("echo 'unclosed", 2),
    ],
)
async def test_working_directory_stays_if_a_command_does_not_report_it(shell: Shell, command: str, code: int) -> None:
    (shell.root / "sub").mkdir()

    output = await shell.run(command)

    assert re.search(rf"\[exit code {code}\b", str(output.content))
    assert await shell.text("pwd -P") == str(shell.root)


@pytest.mark.parametrize(
    "command",
    ["false", "exit 7", "set -e; false", "trap 'exit 5' EXIT", "sh -c 'exit 200'", "nosuchprogram", "return 3"],
)
async def test_working_directory_report_never_changes_the_exit_code(shell: Shell, command: str) -> None:
    alone = await shell.run(command)
    beside_others = await shell.run(command, runs_alone=False)

    assert re.findall(r"\[exit code .*", str(alone.content)) == re.findall(
        r"\[exit code .*", str(beside_others.content)
    )
    assert alone.is_error
    assert beside_others.is_error


async def test_working_directory_outside_is_left_again(shell: Shell) -> None:
    (shell.root / "sub").mkdir()
    await shell.text("cd sub")

    text = await shell.text("cd /")

    assert (
        text
        == f"(no output)\n[the command ended in /, outside the workspace; the working directory is {shell.root} again]"
    )
    assert await shell.text("pwd -P") == str(shell.root)


async def test_link_out_of_the_workspace_is_no_way_out(shell: Shell, tmp_path: Path) -> None:
    (shell.root / "out").symlink_to(tmp_path)

    assert "outside the workspace" in await shell.text("cd out")


async def test_calls_side_by_side_never_change_the_directory(shell: Shell) -> None:
    (shell.root / "sub").mkdir()
    texts: list[str] = []

    async def one(command: str) -> None:
        texts.append(await Shell(shell.root, shell.ctx).text(command, runs_alone=False))

    async with anyio.create_task_group() as task_group:
        for _ in range(4):
            task_group.start_soon(one, "cd sub; pwd -P")

    assert texts == [f"{shell.root}/sub"] * 4
    assert shell.ctx.paths.cwd == shell.root


async def test_missing_working_directory_runs_nothing(shell: Shell) -> None:
    (shell.root / "sub").mkdir()
    await shell.text("cd sub")

    assert await shell.text("rmdir ../sub") == "(no output)"
    gone = f"the working directory {shell.root}/sub is gone, so nothing was run"
    for _ in range(2):
        with pytest.raises(ToolError, match=f"{gone}; call Bash once"):
            await shell.text("touch ran", runs_alone=False)
    with pytest.raises(ToolError, match=f"{gone}; it is now {shell.root}; call again"):
        await shell.text("touch ran")
    assert not (shell.root / "ran").exists()
    assert await shell.text("pwd -P") == str(shell.root)


async def test_working_directory_replaced_by_a_link_runs_nothing(shell: Shell, tmp_path: Path) -> None:
    (shell.root / "sub").mkdir()
    await shell.text("cd sub")
    (shell.root / "sub").rmdir()
    (shell.root / "sub").symlink_to(tmp_path)

    with pytest.raises(ToolError, match="is gone, so nothing was run"):
        await shell.text("touch ran")
    assert not (tmp_path / "ran").exists()


async def test_overlong_command_is_refused_by_its_schema() -> None:
    with pytest.raises(ValidationError, match="at most 100000 characters"):
        BashInput(command="a;" * 50_001)


async def test_working_directory_with_an_odd_name_is_kept(shell: Shell) -> None:
    await shell.text("mkdir $'a\\nb \\'c' && cd $'a\\nb \\'c'")

    assert shell.ctx.paths.cwd == shell.root / "a\nb 'c"
    assert await shell.text("basename -a x") == "x"


async def test_command_leaves_no_file_behind(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (shell.root / "sub").mkdir()
    inside = str(shell.ctx.outputs.directory)

    await shell.text("cd sub")
    await shell.text("sleep 60", timeout=200)
    with anyio.move_on_after(0.2):
        await shell.text("sleep 60")
    found = await shell.text(f"ls {inside}")

    assert found.startswith("cwd-")
    assert not shell.ctx.outputs.directory.exists()
    assert list(scratch.iterdir()) == []
    assert shell.ctx.paths.cwd == shell.root / "sub"


async def test_command_without_a_place_for_files_runs_where_it_was(
    shell: Shell,
) -> None:
    shell.ctx.outputs.directory.write_text("in the way")
    (shell.root / "sub").mkdir()

    text = await shell.text("cd sub; echo done")

    assert text.startswith(f"done\n[the working directory stays {shell.root}: where the command ended is not known")


async def test_wrapping_does_not_show_in_the_command(shell: Shell) -> None:
    assert await shell.text('echo "$#:$*:$0"') == "0::bash"
    assert await shell.text("set -x; echo hi") == "++ echo hi\nhi"  # one more for the eval


async def test_long_output_keeps_head_and_tail_and_names_the_file(shell: Shell) -> None:
    text = await shell.text("seq 1 20000; echo the end; exit 1")

    assert text.startswith("1\n2\n")
    assert text.endswith("the end\n[exit code 1]")
    assert len(text) < MAX_RESULT_CHARS + 100
    whole = anyio.Path(re.findall(r"the whole output is in (\S+?)\]", text)[0])
    assert (await whole.read_text()).split() == [*map(str, range(1, 20001)), "the", "end"]
    assert (await whole.stat()).st_mode & 0o777 == 0o600


async def test_progress_bar_leaves_only_its_last_state(shell: Shell) -> None:
    text = await shell.text(r"for i in 1 2 3; do printf '\rstep %s' $i; done; printf '\ndone\r\n'")

    assert text == "step 3\ndone\r"


async def test_characters_split_between_reads_arrive_whole(shell: Shell) -> None:
    command = r"printf 'gr\303'; sleep 0.2; printf '\274\303\237e \360\237'; sleep 0.2; printf '\230\200\n'"

    assert await shell.text(command) == "grüße 😀"
    assert "".join(shell.progress) == "grüße 😀\n"


async def test_output_that_is_no_text_does_no_harm(shell: Shell) -> None:
    assert await shell.text(r"printf '\377\376ok\0\n'") == "��ok\0"


async def test_progress_is_shown_while_the_command_runs(shell: Shell) -> None:
    os.mkfifo(shell.root / "never")
    command = BashInput(command="echo first; cat never; echo last")

    async with aclosing(BashTool().run(command, shell.ctx)) as yields:
        first = await anext(yields)

    assert first == Progress("first\n")


async def test_progress_is_shown_about_ten_times_a_second(shell: Shell) -> None:
    started = anyio.current_time()
    await shell.text("for i in $(seq 1 150); do echo $i; sleep 0.003; done")
    took_s = anyio.current_time() - started

    assert "".join(shell.progress).split() == [str(number) for number in range(1, 151)]
    assert len(shell.progress) <= 12 + 10 * took_s


@pytest.mark.parametrize(("command", "words"), [("echo a\0b", "NUL"), ("echo " + "é" * 60_000, "script file")])
async def test_command_that_no_shell_can_take_is_refused(shell: Shell, command: str, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        await shell.run(command)


async def test_read_only_command_runs_no_program_of_the_workspace(shell: Shell) -> None:
    for name in ("ls", "cat", "helper"):
        (shell.root / name).write_text(f"#!/bin/sh\necho evil {name}\n")
        (shell.root / name).chmod(0o755)
    path = f"{shell.root}:.::{os.environ['PATH']}"
    shell.ctx = replace(shell.ctx, environment={**shell.ctx.environment, "PATH": path})

    assert await shell.text("ls -1") == "cat\nhelper\nls"
    assert await shell.text("helper") == "evil helper"


async def test_accept_edits_command_runs_no_program_of_the_workspace(shell: Shell) -> None:
    (shell.root / "mkdir").write_text("#!/bin/sh\necho evil\n")
    (shell.root / "mkdir").chmod(0o755)
    path = f"{shell.root}:.::{os.environ['PATH']}"
    shell.ctx = replace(shell.ctx, environment={**shell.ctx.environment, "PATH": path})

    assert await shell.text("mkdir made && echo well") == "well"
    assert (shell.root / "made").is_dir()
    assert await shell.text("mkdir made; sh -c true") == "evil"


def test_arguments_are_bounded() -> None:
    assert BashInput(command="x").timeout == 120_000
    for timeout in (0, 600_001, -1):
        with pytest.raises(ValidationError):
            BashInput(command="x", timeout=timeout)
    with pytest.raises(ValidationError):
        BashInput.model_validate({"command": "x", "runs_in_background": True})
    assert BashTool.timeout_s is None


async def test_permission_gate_sees_paths_and_a_title(shell: Shell) -> None:
    tool = BashTool()

    async def uses(command: str) -> list[PathUse]:
        return list((await tool.effects(BashInput(command=command), shell.ctx)).path_uses)

    assert await uses("cat a /etc/passwd | wc -l") == [PathUse("a", "read"), PathUse("/etc/passwd", "read")]
    assert await uses("rm -rf /") == [PathUse("/", "write")]
    assert await uses("cd src && echo x > ../a") == [PathUse("src", "read"), PathUse("src/../a", "write")]
    assert tool.may_run_in_parallel(BashInput(command="ls"))
    assert not tool.may_run_in_parallel(BashInput(command="rm x"))
    assert tool.title(BashInput(command="  make test\nmake lint")) == "make test …"


def test_tool_description_is_short() -> None:
    definition = BashTool().definition

    assert len(json.dumps([definition.name, definition.description, definition.input_schema])) < 1100


def test_bash_tool_runs_on_trio(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    shell = Shell(tmp_path.resolve(), context_in(tmp_path.resolve()))

    async def main() -> str:
        await shell.text("cd sub; echo hi")
        return await shell.text("pwd -P; exit 2")

    assert anyio.run(main, backend="trio") == f"{tmp_path.resolve()}/sub\n[exit code 2]"
