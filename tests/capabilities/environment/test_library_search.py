from pathlib import Path

from panpan.capabilities.environment.elf_file import LibrarySearch
from panpan.python_environments.machine_root import MachineRoot


def machine(root: Path, *files: str) -> MachineRoot:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return MachineRoot(root)


def test_rpath_folders_come_before_all_others(tmp_path: Path) -> None:
    root = machine(tmp_path, "env/a/lib/libx.so.1", "opt/libx.so.1", "usr/lib/libx.so.1")
    search = LibrarySearch(root, {}, "/opt")

    assert search.find("libx.so.1", of="/env/a/b/m.so", search=("$ORIGIN/../lib",)) == "/env/a/b/../lib/libx.so.1"
    assert search.find("libx.so.1", of="/env/a/b/m.so", search=("${ORIGIN}/none",)) == "/opt/libx.so.1"
    assert LibrarySearch(root, {}).find("libx.so.1", of="/env/a/b/m.so") == "/usr/lib/libx.so.1"


def test_ld_so_conf_folders_and_includes_count(tmp_path: Path) -> None:
    root = machine(tmp_path, "opt/one/liba.so", "opt/two/libb.so", "etc/ld.so.conf.d/x.conf", "etc/ld.so.conf.d/y.txt")
    (tmp_path / "etc/ld.so.conf").write_text("include ld.so.conf.d/*.conf\n/opt/one  # mine\n")
    (tmp_path / "etc/ld.so.conf.d/x.conf").write_text("# ours\n/opt/two\n")
    search = LibrarySearch(root, {})

    assert search.find("liba.so") == "/opt/one/liba.so"
    assert search.find("libb.so") == "/opt/two/libb.so"


def test_debian_folders_of_other_architectures_count(tmp_path: Path) -> None:
    search = LibrarySearch(machine(tmp_path, "usr/lib/powerpc64le-linux-gnu/libc.so.6"), {})

    assert search.find("libc.so.6") == "/usr/lib/powerpc64le-linux-gnu/libc.so.6"


def test_libc_folders_of_the_interpreter_count(tmp_path: Path) -> None:
    root = machine(tmp_path, "nix/store/glibc/lib/libc.so.6")
    search = LibrarySearch(root, {}, "", ["/nix/store/glibc/lib"])

    assert search.find("libc.so.6") == "/nix/store/glibc/lib/libc.so.6"


def test_environment_libraries_elsewhere_are_found_last(tmp_path: Path) -> None:
    root = machine(tmp_path, "usr/lib/libz.so.1")
    search = LibrarySearch(root, {"libz.so.1": "/env/libz.so.1", "libtorch.so": "/env/torch/lib/libtorch.so"})

    assert search.find("libz.so.1") == "/usr/lib/libz.so.1"
    assert search.find("libtorch.so") == "/env/torch/lib/libtorch.so"
    assert search.find("libnone.so") == ""
    assert search.all_named("libt") == {"libtorch.so": "/env/torch/lib/libtorch.so"}
