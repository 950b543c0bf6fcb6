import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from panpan.capabilities.files.patch import PatchInput, PatchTool
from panpan.errors import ToolError
from tests.fakes.context import context_in


async def patch(workspace, text):
    return await workspace.call("Patch", patch=text)


def envelope(*lines):
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"]) + "\n"


class TestEnvelope:
    async def test_patch_adds_updates_moves_and_deletes(self, workspace):
        # given
        workspace.put_seen("keep.py", "def f():\n    return 1\n\n\ndef g():\n    return 1\n")
        workspace.put_seen("old.py", "a\nb\nc\n").chmod(0o755)
        workspace.put_seen("gone.txt", "bye\n")

        # when
        output = await patch(
            workspace,
            envelope(
                "*** Add File: new/n.txt",
                "+one",
                "+",
                "+two",
                "*** Update File: keep.py",
                "@@ def g():",
                "-    return 1",
                "+    return 2",
                "*** Update File: old.py",
                "*** Move to: sub/moved.py",
                "@@",
                " a",
                "-b",
                "+B",
                " c",
                "*** Delete File: gone.txt",
            ),
        )

        # then
        assert workspace.contents() == {
            "keep.py": b"def f():\n    return 1\n\n\ndef g():\n    return 2\n",
            "new/n.txt": b"one\n\ntwo\n",
            "sub/moved.py": b"a\nB\nc\n",
        }
        assert stat.S_IMODE((workspace.root / "sub/moved.py").stat().st_mode) == 0o755
        assert output.content.splitlines()[:1] == ["added new/n.txt (+3 -0 lines)"]
        assert "updated keep.py (+1 -1 lines)" in output.content
        assert "moved old.py to sub/moved.py (+1 -1 lines)" in output.content
        assert "deleted gone.txt (+0 -1 lines)" in output.content
        assert [(diff.path, diff.is_new, diff.is_deleted) for diff in output.display.files] == [
            ("new/n.txt", True, False),
            ("keep.py", False, False),
            ("sub/moved.py", False, False),
            ("gone.txt", False, True),
        ]

    async def test_patched_file_counts_as_read(self, workspace):
        await patch(workspace, envelope("*** Add File: f", "+a"))
        await patch(workspace, envelope("*** Update File: f", "@@", "-a", "+b"))
        await patch(workspace, envelope("*** Update File: f", "*** Move to: g"))
        await patch(workspace, envelope("*** Delete File: g"))
        assert workspace.contents() == {}

    async def test_file_may_be_named_twice(self, workspace):
        workspace.put_seen("f", "a\nb\n")
        output = await patch(
            workspace,
            envelope("*** Update File: f", "@@", "-a", "+A", "*** Update File: ./f", "@@", " A", "-b", "+B"),
        )
        assert workspace.contents() == {"f": b"A\nB\n"}
        assert len(output.display.files) == 1

    async def test_deleted_file_may_be_added_again(self, workspace):
        workspace.put_seen("f", "a\n")
        await patch(workspace, envelope("*** Delete File: f", "*** Add File: f", "+b"))
        assert workspace.contents() == {"f": b"b\n"}

    async def test_moved_file_may_be_replaced_by_another(self, workspace):
        workspace.put_seen("f", "a\n")
        output = await patch(
            workspace, envelope("*** Update File: f", "*** Move to: g", "*** Add File: f", "+import g")
        )
        assert workspace.contents() == {"f": b"import g\n", "g": b"a\n"}
        assert len(output.display.files) == 2

    async def test_end_of_file_mark_finds_the_last_place(self, workspace):
        workspace.put_seen("f", "x\ny\nx\n")
        await patch(workspace, envelope("*** Update File: f", "@@", "-x", "+z", "*** End of File"))
        assert workspace.contents() == {"f": b"x\ny\nz\n"}

    async def test_lines_can_be_added_at_the_end(self, workspace):
        workspace.put_seen("f", "x\n")
        await patch(workspace, envelope("*** Update File: f", "@@", "+y", "*** End of File"))
        assert workspace.contents() == {"f": b"x\ny\n"}

    async def test_nested_anchors_find_the_place(self, workspace):
        text = "class A:\n    def f(self):\n        pass\n\n\nclass B:\n    def f(self):\n        pass\n"
        workspace.put_seen("f.py", text)
        await patch(
            workspace,
            envelope("*** Update File: f.py", "@@ class B:", "@@ def f(self):", "-        pass", "+        return"),
        )
        assert workspace.contents()["f.py"].decode() == text[: text.rindex("pass")] + "return\n"

    async def test_anchor_reaches_over_a_signature_of_several_lines(self, workspace):
        text = "def f(\n    a,\n) -> int:\n    return 1\n\n\ndef g(\n    a,\n) -> int:\n    return 1\n"
        workspace.put_seen("f.py", text)
        await patch(workspace, envelope("*** Update File: f.py", "@@ def f(", "-    return 1", "+    return 2"))
        assert workspace.contents()["f.py"].decode() == text.replace("return 1", "return 2", 1)

    async def test_anchor_does_not_reach_into_the_next_block(self, workspace):
        workspace.put_seen("f.py", "def f():\n    return 0\n\n\ndef g():\n    return 1\n\n\ndef h():\n    return 1\n")
        text = await workspace.refusal(
            "Patch", patch=envelope("*** Update File: f.py", "@@ def f():", "-    return 1", "+    return 2")
        )
        assert "was not found below 'def f():'" in text
        assert "lines 6, 10" in text

    async def test_hunks_in_order_settle_an_ambiguity(self, workspace):
        workspace.put_seen("f", "x\na\nx\nb\n")
        await patch(workspace, envelope("*** Update File: f", "@@", "-a", "+A", "@@", "-x", "+y"))
        assert workspace.contents() == {"f": b"x\nA\ny\nb\n"}

    async def test_hunks_may_share_context(self, workspace):
        workspace.put_seen("f", "a\nb\nc\nd\ne\n")
        await patch(
            workspace, envelope("*** Update File: f", "@@", " a", "-b", "+B", " c", "@@", " c", "-d", "+D", " e")
        )
        assert workspace.contents() == {"f": b"a\nB\nc\nD\ne\n"}

    async def test_blank_context_lines_may_lack_their_mark(self, workspace):
        workspace.put_seen("f", "a\n\nb\n")
        await patch(workspace, envelope("*** Update File: f", "@@", " a", "", "-b", "+B", ""))
        assert workspace.contents() == {"f": b"a\n\nB\n"}

    async def test_patch_with_crlf_is_read(self, workspace):
        workspace.put_seen("f", "a\nb\n")
        text = envelope("*** Update File: f", "@@", " a", "-b", "+B", "*** Add File: g", "+x")
        await patch(workspace, text.replace("\n", "\r\n"))
        assert workspace.contents() == {"f": b"a\nB\n", "g": b"x\n"}

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            (["*** Update File: f", "@@", "-nope", "+x"], "was not found"),
            (["*** Update File: f", "@@", "-x", "+z"], "ambiguous"),
            (["*** Update File: f", "@@ nowhere", "-a", "+z"], "no line 'nowhere'"),
            (["*** Update File: f", "@@", "+z"], "only adds lines"),
            (["*** Update File: f", "@@", "-a", "+a"], "does not change f"),
            (["*** Update File: f", "@@", "-a", "+1", "@@", "-a", "+2"], "same place"),
            (["*** Update File: f", "@@", "a", "+2"], "begins with"),
            (["*** Update File: f"], "no lines that change"),
            (["*** Update File: missing", "@@", "-a", "+b"], "does not exist"),
            (["*** Update File: unread", "@@", "-a", "+b"], "not been read"),
            (["*** Update File: stale", "@@", "-a", "+b"], "changed since"),
            (["*** Update File: binary", "@@", "-a", "+b"], "binary"),
            (["*** Update File: folder", "@@", "-a", "+b"], "is a folder"),
            (["*** Update File: ../outside", "@@", "-a", "+b"], "outside"),
            (["*** Update File: f", "*** Move to: ../outside", "@@", "-a", "+b"], "outside"),
            (["*** Update File: f", "*** Move to: unread"], "exists already"),
            (["*** Update File: f", "*** Move to: f"], "exists already"),
            (["*** Update File: f", "*** Move to:"], "is missing"),
            (["*** Add File: f", "+a"], "exists already"),
            (["*** Add File: new", "a"], 'begins with "+"'),
            (["*** Add File: ../new", "+a"], "outside"),
            (["*** Add File:", "+a"], "path is missing"),
            (["*** Delete File: missing"], "does not exist"),
            (["*** Delete File: unread"], "not been read"),
            (["*** Delete File: link"], "is a link"),
            (["*** Update File: link", "*** Move to: elsewhere"], "is a link"),
            (["*** Rename File: f"], "expected"),
            ([], "names no file"),
        ],
    )
    async def test_unfitting_patch_is_refused_and_nothing_is_written(self, workspace, tmp_path, lines, said):
        # given a patch whose first file would be fine
        (tmp_path / "outside").write_text("a\n")
        workspace.put_seen("f", "a\nx\nb\nx\n")
        workspace.put("unread", "a\n")
        workspace.put_seen("stale", "a\n").write_text("a\nmore\n")
        workspace.put_seen("binary", b"\0\1a\n")
        (workspace.root / "folder").mkdir()
        (workspace.root / "link").symlink_to("f")
        first = ["*** Add File: first", "+fine"] if lines else []

        # when
        text = await workspace.refusal("Patch", patch=envelope(*first, *lines))

        # then
        assert said in text
        assert (tmp_path / "outside").read_text() == "a\n"

    async def test_cut_patch_is_refused(self, workspace):
        text = envelope("*** Add File: f", "+a").removesuffix("*** End Patch\n")
        assert "may be cut" in await workspace.refusal("Patch", patch=text)

    async def test_missing_hunk_is_named_by_line_with_the_nearest_text(self, workspace):
        workspace.put_seen("f", "alpha = 1\nbeta = 2\n")
        text = await workspace.refusal(
            "Patch", patch=envelope("*** Update File: f", "@@", " alpha = 1", "-beta = 3", "+beta = 4")
        )
        assert "the hunk at line 3 of the patch" in text
        assert "     2\tbeta = 2" in text


class TestBytes:
    @pytest.mark.parametrize(
        ("before", "hunk", "after"),
        [
            pytest.param(b"a\r\nb\r\n", [" a", "-b", "+c", "+d"], b"a\r\nc\r\nd\r\n", id="CRLF"),
            pytest.param(b"a\nb", [" a", "-b", "+c"], b"a\nc", id="no final newline is kept"),
            pytest.param(b"a\nb", [" b", "+c"], b"a\nb\nc", id="lines after an end without newline"),
            pytest.param(b"a\nb", [" a", "-b"], b"a\n", id="the last line goes"),
            pytest.param(b"a\nb\n", ["-a", "-b"], b"", id="all lines go"),
            pytest.param(b"a\r\nb\nc\r\nd\n", [" b", "+x", " c"], b"a\r\nb\nx\nc\r\nd\n", id="mixed: kept lines keep"),
            pytest.param(b"a\r\nb\nc\r\n", ["-a", "-b", "+A", "+B", " c"], b"A\r\nB\nc\r\n", id="mixed: one by one"),
            pytest.param(b"\xef\xbb\xbfa\nb\n", ["-a", "+A"], b"\xef\xbb\xbfA\nb\n", id="BOM"),
            pytest.param("ä\nb c\n".encode("latin-1"), [" ä", "-b c", "+dä"], b"\xe4\nd\xe4\n", id="Latin-1"),
            pytest.param("ä\nb\n".encode("utf-16"), ["-ä", "+漢"], "漢\nb\n".encode("utf-16"), id="UTF-16"),
            pytest.param(b"x\x0cy\nb\n", ["-b", "+c"], b"x\x0cy\nc\n", id="form feed"),
            pytest.param(b"a\rb\rc\r", [" a", "-b", "+B"], b"a\rB\rc\r", id="old Mac"),
            pytest.param(
                b"ok \xc3\xa9\xc3\xa9 \xff\nb\n", ["-b", "+c"], b"ok \xc3\xa9\xc3\xa9 \xff\nc\n", id="damaged"
            ),
        ],
    )
    async def test_bytes_outside_the_hunks_never_change(self, workspace, before, hunk, after):
        path = workspace.put_seen("f", before)
        await patch(workspace, envelope("*** Update File: f", "@@", *hunk))
        assert path.read_bytes() == after

    async def test_unencodable_letters_are_refused(self, workspace):
        workspace.put_seen("f", "ä b\nc\n".encode("latin-1"))
        text = await workspace.refusal("Patch", patch=envelope("*** Update File: f", "@@", "-c", "+漢"))
        assert "Windows-1252" in text

    async def test_link_is_updated_through(self, workspace):
        path = workspace.put_seen("real", "a\n")
        (workspace.root / "link").symlink_to("real")
        await patch(workspace, envelope("*** Update File: link", "@@", "-a", "+b"))
        assert (workspace.root / "link").is_symlink()
        assert path.read_bytes() == b"b\n"


class TestUnified:
    async def test_plain_diff_is_applied(self, workspace):
        workspace.put_seen("f", "a\nb\nc\n")
        await patch(workspace, "--- f\t2024-01-01 00:00:00\n+++ f\t2024-01-02\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")
        assert workspace.contents() == {"f": b"a\nB\nc\n"}

    async def test_git_prefixes_are_removed(self, workspace):
        workspace.put_seen("d/f", "a\n")
        await patch(workspace, "--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-a\n+b\n")
        assert workspace.contents() == {"d/f": b"b\n"}

    async def test_wrong_counts_do_no_harm(self, workspace):
        workspace.put_seen("f", "a\nb\nc\n")
        workspace.put_seen("g", "x\n")
        await patch(
            workspace,
            "--- a/f\n+++ b/f\n@@ -1,9 +1,1 @@\n a\n-b\n+B\n c\n--- a/g\n+++ b/g\n@@ -1,2 +1,2 @@\n-x\n+y\n",
        )
        assert workspace.contents() == {"f": b"a\nB\nc\n", "g": b"y\n"}

    async def test_line_number_decides_between_exact_matches(self, workspace):
        workspace.put_seen("f", "x\na\nx\nb\nx\n")
        await patch(workspace, "--- f\n+++ f\n@@ -3 +3 @@\n-x\n+y\n")
        assert workspace.contents() == {"f": b"x\na\ny\nb\nx\n"}

    async def test_line_number_without_a_match_leaves_it_ambiguous(self, workspace):
        workspace.put_seen("f", "x\na\nx\nb\nx\n")
        text = await workspace.refusal("Patch", patch="--- f\n+++ f\n@@ -2 +2 @@\n-x\n+y\n")
        assert "ambiguous" in text

    async def test_wrong_line_number_is_harmless_for_a_single_match(self, workspace):
        workspace.put_seen("f", "a\nb\nc\n")
        await patch(workspace, "--- f\n+++ f\n@@ -99 +99 @@\n-b\n+B\n")
        assert workspace.contents() == {"f": b"a\nB\nc\n"}

    async def test_files_are_added_and_deleted(self, workspace):
        workspace.put_seen("old", "a\nb\n")
        await patch(
            workspace,
            "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+x\n+y\n--- a/old\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n",
        )
        assert workspace.contents() == {"new": b"x\ny\n"}

    async def test_deletion_of_less_than_the_whole_file_is_refused(self, workspace):
        workspace.put_seen("old", "a\nb\nc\n")
        text = await workspace.refusal("Patch", patch="--- a/old\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n")
        assert "holds more" in text

    async def test_removed_lines_that_look_like_a_header_are_lines(self, workspace):
        workspace.put_seen("f.sql", "-- old\nselect 1;\n")
        await patch(workspace, "--- a/f.sql\n+++ b/f.sql\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n select 1;\n")
        assert workspace.contents() == {"f.sql": b"++ new\nselect 1;\n"}

    async def test_final_newline_is_that_of_the_diff(self, workspace):
        workspace.put_seen("f", "a\nb")
        workspace.put_seen("g", "a\nb\n")
        mark = "\\ No newline at end of file"
        await patch(workspace, f"--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n{mark}\n+b\n")
        await patch(workspace, f"--- g\n+++ g\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n{mark}\n")
        await patch(workspace, f"--- /dev/null\n+++ h\n@@ -0,0 +1 @@\n+x\n{mark}\n")
        assert workspace.contents() == {"f": b"a\nb\n", "g": b"a\nb", "h": b"x"}

    async def test_newline_at_the_end_against_the_diff_is_refused(self, workspace):
        workspace.put_seen("f", "a\nb\n")
        text = await workspace.refusal(
            "Patch", patch="--- f\n+++ f\n@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n"
        )
        assert "end of the file" in text

    async def test_mail_around_a_diff_is_skipped(self, workspace):
        workspace.put_seen("f", "a\n")
        await patch(
            workspace,
            "From 123 Mon Sep 17\nSubject: x\n\n---\n f | 2 +-\n\ndiff --git a/f b/f\nindex 1..2 100644\n"
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39.2\n\n",
        )
        assert workspace.contents() == {"f": b"b\n"}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("hello", "is not a patch"),
            ("", "is not a patch"),
            ("@@ -1 +1 @@\n-a\n+b\n", "name its file"),
            ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary"),
            ("diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n", "link"),
            ("diff --git a/x b/y\ncopy from x\ncopy to y\n", "copies"),
            ("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+y\n", "does not say which file"),
            ("diff --git a/x b/x\nindex 1..2\n", "no hunks"),
            ("--- a/x\n+++ b/../../x\n@@ -1 +1 @@\n-a\n+b\n", "outside"),
        ],
    )
    async def test_inapplicable_diff_is_refused(self, workspace, text, said):
        assert said in await workspace.refusal("Patch", patch=text)


@pytest.mark.skipif(shutil.which("git") is None, reason="git makes the diffs")
class TestDiffsOfGit:
    def git(self, root, *args):
        environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false", *args],
            cwd=root, env=environment, check=True, capture_output=True,
        )  # fmt: skip
        return done.stdout.decode()

    async def test_git_diff_leads_to_the_same_tree(self, workspace, tmp_path):
        # given two trees
        old = {
            "a.txt": "".join(f"line {number}\n" for number in range(40)),
            "name with blank.txt": "x\ny\n",
            "ä.txt": "one\ntwo\n",
            "gone.txt": "bye\nbye\n",
            "run.sh": "echo\n",
            "moved.txt": "".join(f"m {number}\n" for number in range(20)),
            "pure.txt": "".join(f"p {number}\n" for number in range(20)),
            "crlf.txt": "a\r\nb\r\nc\r\n",
            "end.txt": "a\nb",
            "gone_empty": "",
        }
        new = {
            "a.txt": old["a.txt"].replace("line 3\n", "line three\n").replace("line 30\n", "line 30\nline 30.5\n"),
            "name with blank.txt": "x\nz\n",
            "ä.txt": "one\nzwei\n",
            "run.sh": "echo\n",
            "sub/moved.txt": old["moved.txt"].replace("m 7\n", ""),
            "sub/pure.txt": old["pure.txt"],
            "crlf.txt": "a\r\nB\r\nc\r\n",
            "end.txt": "a\nb\nc",
            "new.txt": "new\n",
            "new_empty": "",
            "tool.sh": "#!/bin/sh\n",
        }
        repository = tmp_path / "repository"
        repository.mkdir()
        self.git(repository, "init", "-q")
        for name, text in old.items():
            (repository / name).write_bytes(text.encode())
            workspace.put_seen(name, text)
        self.git(repository, "add", "-A")
        self.git(repository, "commit", "-qm", "old")
        for name in old:
            (repository / name).unlink()
        for name, text in new.items():
            (repository / name).parent.mkdir(exist_ok=True)
            (repository / name).write_bytes(text.encode())
        (repository / "run.sh").chmod(0o755)
        (repository / "tool.sh").chmod(0o755)
        self.git(repository, "add", "-A")
        diff = self.git(repository, "diff", "--cached", "-M")

        # when
        await patch(workspace, diff)

        # then
        assert workspace.contents() == {name: text.encode() for name, text in sorted(new.items())}
        assert (workspace.root / "run.sh").stat().st_mode & 0o111
        assert (workspace.root / "tool.sh").stat().st_mode & 0o111
        assert not (workspace.root / "new.txt").stat().st_mode & 0o111


async def paths_of(text):
    told = await PatchTool().effects(PatchInput(patch=text), context_in(Path()))
    return [(use.path, use.access) for use in told.path_uses]


async def test_permission_gate_learns_every_path_of_a_patch():
    text = envelope("*** Add File: a", "+x", "*** Update File: b", "*** Move to: c", "*** Delete File: d")
    assert await paths_of(text) == [("a", "write"), ("b", "write"), ("c", "write"), ("d", "write")]
    text = (
        "diff --git a/x b/y\nrename from x\nrename to y\n"
        '--- "a/\\303\\244"\n+++ "b/\\303\\244"\n@@ -1 +1 @@\n-a\n+b\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n'
    )
    assert [path for path, _ in await paths_of(text)][-1] == "gone"
    assert {"x", "y"} <= {path for path, _ in await paths_of(text)}


async def test_unreadable_patch_is_refused_and_has_a_title():
    with pytest.raises(ToolError, match="this is not a patch"):
        await paths_of("nonsense")
    assert PatchTool().title(PatchInput(patch="nonsense")) == "unreadable patch"


def test_title_names_the_files():
    text = envelope(*(f"*** Delete File: f{number}" for number in range(5)))
    assert PatchTool().title(PatchInput(patch=text)) == "f0, f1, f2 and 2 more"
