# SPDX-License-Identifier: BSD-2-Clause
# Helper threads for what may sleep for ever.
load helpers

offload() { run -0 timeout 60 "$BUILD/tests/offload" "$1"; }

@test "offload: a client's jobs run in order" { offload order; }
@test "offload: a client that hangs stops no other" { offload stuck; }
@test "offload: a user's threads are bounded, other users' not touched" { offload bound; }
@test "offload: a user whose threads hang gives back what it had" { offload gives_back; }
@test "offload: EAGAIN when too many wait" { offload again; }
@test "offload: a disowned job ends quietly" { offload disown; }
@test "offload: the daemon's end doesn't wait for what hangs" { offload exit; }
@test "offload: the daemon's end frees what is finished" { offload exit_idle; }

@test "offload: threads aren't bound to the processors of whoever makes them" { offload processors; }

@test "offload: quick jobs run in the loop" { offload quick; }
@test "offload: another thread goes on when a quick job sleeps" { offload quick_stuck; }
@test "offload: another thread goes on when a quick job doesn't end" { offload quick_busy; }
@test "offload: quick jobs that sleep are noticed without a descriptor" { offload quick_no_files; }
@test "offload: quick jobs that sleep are noticed though another thread began" { offload quick_first; }
@test "offload: quick jobs of many users that sleep" { offload quick_many; }
@test "offload: quick jobs of one user that sleep" { offload quick_twice; }
@test "offload: a user whose quick job slept is left to helpers, by jobs and not by time" { offload quick_penalty; }
@test "offload: a disowned quick job doesn't run" { offload quick_disown; }
@test "offload: the loop ends while threads sleep for ever" { offload quick_end; }
@test "offload: the loop ends while a thread sleeps that comes back" { offload quick_late; }
