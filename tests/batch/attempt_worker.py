"""Runs one attempt in a process that a test can kill: `python -m tests.batch.attempt_worker JOB`, a `Job` as JSON."""

import sys

import anyio

from panpan.batch.attempts.attempt import run_attempt
from panpan.batch.store.records import Job

if __name__ == "__main__":
    print(anyio.run(run_attempt, Job.model_validate_json(sys.argv[1])))  # noqa: T201 - for the test
