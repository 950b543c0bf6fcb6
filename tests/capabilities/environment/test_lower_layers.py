from pathlib import Path

import pytest

from panpan.capabilities.environment.driver_layer import (
    DriverLayer,
    Gpu,
    driver_findings,
    hardware_findings,
    inspect_driver,
    inspect_hardware,
)
from panpan.capabilities.environment.elf_file import LibrarySearch
from panpan.python_environments.machine_root import MachineRoot
from tests.fakes.machines import Machine


def driver_of(root: Path) -> DriverLayer:
    machine = MachineRoot(root)
    return inspect_driver(machine, LibrarySearch(machine, {}))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023", (535, 129, 3)),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (dvs)", (550, 54, 15)),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  440.33  Sun Nov  3 2019", (440, 33)),
        ("something else", ()),
    ],
)
def test_driver_version_is_read_from_its_module(tmp_path: Path, line: str, version: tuple[int, ...]) -> None:
    Machine(tmp_path).file("/proc/driver/nvidia/version", f"{line}\nGCC version:  gcc version 12.3.0 (Ubuntu)\n")

    found = driver_of(tmp_path)

    assert (found.nvidia.is_loaded, found.nvidia.version) == (True, version)


def test_glibc_version_is_its_newest_symbol(tmp_path: Path) -> None:
    Machine(tmp_path).linux(glibc=31)

    found = driver_of(tmp_path)

    assert (found.libc, found.glibc, found.system) == ("glibc", (2, 31), "Ubuntu 22.04.4 LTS")
    assert ("C library", "glibc 2.31") in {(one.name, one.value) for one in driver_findings(found)}


def test_damaged_libc_is_of_an_unknown_version(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("/lib/libc.so.6", b"\x7fELF\x02\x01" + bytes(90))

    found = driver_of(tmp_path)

    assert (found.libc, found.glibc) == ("glibc", ())


def test_driver_names_of_gpus_come_before_numbers(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.gpu("0xffff")

    listed = inspect_hardware(MachineRoot(tmp_path)).gpus
    machine.file("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100 PCIe\nIRQ:   99\n")
    driven = inspect_hardware(MachineRoot(tmp_path)).gpus

    assert listed == (Gpu("nvidia", "NVIDIA device 0xffff", None),)
    assert driven == (Gpu("nvidia", "NVIDIA H100 PCIe", (9, 0)),)


def test_accelerators_count_as_gpus_and_other_devices_do_not(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for number, (vendor, kind) in enumerate([("0x1002", "0x120000"), ("0x10de", "0x040300"), ("0x8086", "0x030000")]):
        machine.file(f"/sys/bus/pci/devices/{number}/vendor", vendor)
        machine.file(f"/sys/bus/pci/devices/{number}/class", kind)
        machine.file(f"/sys/bus/pci/devices/{number}/device", "0x74a1\n")

    assert inspect_hardware(MachineRoot(tmp_path)).gpus == (Gpu("amd", "AMD device 0x74a1", None),)


def test_hardware_hidden_by_the_kernel_is_unknown(tmp_path: Path) -> None:
    hardware = inspect_hardware(MachineRoot(tmp_path))

    found = {one.name: one.value for one in hardware_findings(hardware)}
    assert found["GPU"] == "unknown: the kernel lists no devices here"
    assert found["processor"] == "unknown, threads: unknown"
    assert found["vector extensions"] == found["memory"] == "unknown"
    assert found["disk"].endswith(" GB free")
