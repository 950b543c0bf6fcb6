"""Process trees: one with sleeping processes, and one whose processes cannot be stopped."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace

from panpan.system.processes.process_table import ProcessTree, RunningProcess


class UnreachableTree(ProcessTree):
    """Process tree whose processes are listed but not signalled, like those of another user."""

    def members_among(self, processes: Mapping[int, RunningProcess]) -> list[RunningProcess]:
        return [replace(process, started="0") for process in super().members_among(processes)]


def sleeping(tree: ProcessTree) -> "subprocess.Popen[bytes]":
    """Start a process of the tree that sleeps longer than any test."""
    return subprocess.Popen(["sleep", "600"], env=tree.marked({"PATH": os.environ["PATH"]}))
