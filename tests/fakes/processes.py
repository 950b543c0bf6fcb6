"""Processes of a tree, and a tree whose processes cannot be stopped."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace

from panpan.system.processes.process_table import ProcessTree, RunningProcess


class UnreachableTree(ProcessTree):
    """Its processes are seen and not signalled, as those of another user: each seems to be one that has ended."""

    def members_among(self, processes: Mapping[int, RunningProcess]) -> list[RunningProcess]:
        return [replace(process, started="0") for process in super().members_among(processes)]


def sleeping(tree: ProcessTree) -> "subprocess.Popen[bytes]":
    """Start a process of the tree that does nothing, for as long as any test."""
    return subprocess.Popen(["sleep", "600"], env=tree.marked({"PATH": os.environ["PATH"]}))
