"""Commands and subagents that go on beside the conversation.

    Bash(run_in_background) ─▶ start_command() ─▶ sh ─▶ limits ─▶ sandbox ─▶ bash -c …     in a session of its own
                                    │              ├─▶ outputs/<session>/task-<id>.txt
                                    │              └─▶ tasks/<session>/<id>.exit
                                    └─▶ tasks/<session>/<id>.json

A command that was started for the background depends on nothing of panpan's: it prints into a file, and a small shell
outside of its sandbox leaves its exit code in another. Its record is on disk before it starts. So after a crash each
task is found again as running, ended with its code, or lost. A process counts as a task's only with its number, its
start time and its mark.

A command that was moved there from the foreground prints into a pipe that panpan reads, so it cannot outlive panpan.
Nor can jobs, such as subagents, which are tasks of the session. One mark is common to all of a session's tasks; plan
mode holds them by it, and the end of the session ends them (`[background] at_exit`).

The end of a task may begin a turn without a message of the user (`Session.wake`), at most 50 of them in a row. The
hooks add what there is to tell, and if nothing comes of it the model is not asked.
"""
