"""Package managers: pip, conda, uv and pixi on one core.

    call ──▶ plan ──▶ gate, question ──▶ plan again, the same? ──▶ freeze ──▶ commands, boxed ──▶ freeze
                                                                                                 │
                                      what changed, what it broke ◀── step kept for `rollback` ◀─┘

The four tools only make plans. A `Plan` is a value: command lines without a shell, the environment, hosts, files that
may change, what the user has to know. The effects of the call and the words of its question are made from it. When the
call runs it is planned again, and refused if that is not the plan that was asked about, requirements files included.

What is installed is read from `*.dist-info` and `conda-meta` before and after, so that listing runs nothing and a
change is told however it came about. What a step changed is kept below the home, one file for each environment.
`rollback` removes what was added, installs what was there, and writes manifest and lock file as they were, each only
where nothing else has changed it since. docs/security.md says what a project and the model may name.
"""
