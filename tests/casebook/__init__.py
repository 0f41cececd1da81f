"""The casebook: ordinary training scripts with one cause of lost time each, or with none.

    python -m tests.casebook [--quick] [--only NAME ...] [--repeats N] [--json FILE]

`cases/` holds the scripts as a user would write them: they know nothing of gpuutil, and neither
names nor comments give the cause away. `truth/` says what is true of each: which findings may come
first, which must not come, which remedies count, what must stay bit-identical, and what somebody
who knows would change by hand. The runner runs each plain, under `gpuutil run` and with that
change, by turns, in fresh processes, and compares.

A new case is one script and one entry of a table.
"""
