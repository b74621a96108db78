# SPDX-License-Identifier: BSD-2-Clause
# Completion events: asked for and read through memory, the same as by requests.
load helpers
load pairs

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }
setup() { setup_rings; }

events() { run -0 ib timeout 120 "$BUILD/tests/uverbs_events" "$1" "$MNT"; }

@test "events: none costs the daemon a request" { events used; }
@test "events: asked for by memory, by command, by both: one" { events ways; }
@test "events: solicited ones" { events solicited; }
@test "events: none for what was polled before" { events late; }
@test "events: one for what is there, unpolled and untold of" { events missed; }
@test "events: a completion while its event is asked for" { events race; }
@test "events: three readers, one of them at the file itself" { events compete; }
@test "events: poll, epoll and read in turns" { events mixed; }
@test "events: a signal, a handler that wants the call restarted, a cancellation" { events signal; }
@test "events: by dup, in a message, in a child, and not by another file of that number" { events names; }
@test "events: what read() refuses" { events refused; }
@test "events: thousands unread, in order" { events overflow; }
@test "events: two queues of one channel, one of which goes" { events shared; }
@test "events: a reader that is killed asleep" { events killed; wait_for fds_are "$IBFS_FDS"; }
@test "events: a client that writes what it likes into shared memory" { events hostile; events used; }
@test "perftest waits for events" { pair ib_send_lat -e -F -n 500; pair ib_send_bw -e -F -n 500; }
