"""Plan mode: the plan's file, and the tools that enter and leave it.

The mode is the gate's, one for each session, so what holds in it is decided in one place. A yes that was asked for
before plan mode began does not count in it. What commands have left running is stopped when it begins and goes on when
it ends; user and model are told which processes these are, and which cannot be stopped.

The plan is `<panpan home>/plans/<adjective>-<verb>-<noun>.md`. It is made when the model is first told of plan mode,
and is the one file below the home that tools may write, in plan mode only. The gate compares canonical paths, and a
file that has become a link is neither read nor written. An approved plan is kept, and the next one gets a file of its
own. The model never writes over a change of the user that it has not read.

ExitPlanMode writes the plan and asks through `PlanAsker`. What the user edits is written at once and shown again, so
that they approve what they see. Where nobody is there, the plan is the result, the turn ends, and plan mode stays.

The log keeps the mode and the name of the plan file, but no path and no mode before plan mode. So no log leads to
another file or to bypassPermissions.
"""
