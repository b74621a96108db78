# SPDX-License-Identifier: BSD-2-Clause
# When the engine has to be rung: tests/verbs_bells.c.
load helpers

bells() { "$BUILD/tests/verbs_bells" "$1"; }

@test "a ring need not be rung while its turn goes on" { bells busy; }
@test "a queue in error is rung again" { bells error; }
