# SPDX-License-Identifier: BSD-2-Clause
# Programs that wait in memory, not in a system call, when the daemon is killed: they
# get errors there, and end by themselves. And a daemon in its place.
load helpers
load pairs

setup()
{
	need_root; need_unshare; need_kernel 6 9
	# Programs that are sanitized themselves: ours comes before ASan's library.
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
}

teardown()
{
	[ -n "${BATS_TEST_COMPLETED:-}" ] || [ -z "${IBFS_PID:-}" ] || show_logs
	[ -n "${IBFS_PID:-}" ] || return 0
	is_gone "$IBFS_PID" || { stop_ibfs; return; }
	reap_all || true
	while grep -q " $MNT " /proc/self/mounts; do umount -l "$MNT"; done
	not compgen -G "$IBFS_DIR/asan*"
	rm -rf "$IBFS_DIR"
}

killed()
{
	kill -KILL "$IBFS_PID"
	wait_for is_gone "$IBFS_PID"
}
# ends NAME...: by themselves, whenever that is on a busy machine.
ends()
{
	local name
	for name; do
		wait_for -t 60 is_gone "$(spawned "$name")" || return
	done
}
keeper() { pgrep -P "$IBFS_PID" -x ibfs-keeper; }

# On the mount point of the one that was killed, with the same command.
start_again()
{
	"$BUILD/ibfs" -f "$MNT" </dev/null >>"$IBFS_DIR/log" 2>&1 3>&- &
	IBFS_PID=$!
	# Names and attributes of the dead mount are remembered: contents aren't.
	wait_for grep -q . "$MNT/version"
	IBFS_FDS=$(fd_count "$IBFS_PID")
	[ "$(grep -c " $MNT " /proc/self/mounts)" = 1 ]
}

# spinning PROGRAM: a pair that polls without events, on its way.
spinning()
{
	local port
	need_tool "$1"
	port=$(port)
	spawn server ib stdbuf -oL "$1" -d rxe0 -p "$port" -n 1000000000
	wait_for listens "$port"
	spawn client ib stdbuf -oL "$1" -d rxe1 -p "$port" -n 1000000000 localhost
	wait_for file_has "$IBFS_DIR/client.log" 'remote address'
	wait_for file_has "$IBFS_DIR/server.log" 'remote address'
	wait_for sends_more_than 1000
}
sends_more_than() { [ "$(cat "$MNT/rxe0/1/hw_counters/rdma_sends")" -gt "$1" ]; }

pingpong()
{
	start_ibfs
	spinning "$1"
	killed
	ends server client
	# A completion that failed, or a request that can't be posted any more.
	file_has "$IBFS_DIR/server.log" "Failed status fatal error|Couldn't post"
	file_has "$IBFS_DIR/client.log" "Failed status fatal error|Couldn't post"
}

@test "a spinning ibv_rc_pingpong ends, and another one runs on the next daemon" {
	pingpong ibv_rc_pingpong
	start_again
	pair ibv_rc_pingpong -c -n 200
	stop_ibfs
}
@test "a spinning ibv_uc_pingpong ends" { pingpong ibv_uc_pingpong; }
@test "a spinning ibv_ud_pingpong ends" { pingpong ibv_ud_pingpong; }
@test "a spinning ibv_srq_pingpong ends" { pingpong ibv_srq_pingpong; }

# outstanding TEST: tests/uverbs_killed.c
outstanding()
{
	[ -n "${IBFS_PID:-}" ] || start_ibfs
	spawn program ib "$BUILD/tests/uverbs_killed" "$1"
	wait_for -t 60 file_has "$IBFS_DIR/program.log" ready
	killed
	ends program
	[ "$(cat "$IBFS_DIR/program.log")" = $'ready\ndone' ]
}

@test "receives that wait complete, once and in order" { outstanding recvs; }
@test "sends that wait complete, once and in order, also without a signal" { outstanding sends; }
@test "receives of a shared queue complete" { outstanding srq; }
@test "a completion queue without room for all gets them as it is emptied" { outstanding full; }
@test "a completion queue that was resized" { outstanding resized; }
@test "what is posted afterwards completes, or is refused" { outstanding late; }
@test "both ends of a message that is on its way complete" {
	start_ibfs
	echo delay=2s >"$MNT/fabric/links/rxe0:1-switch:1/ctl"
	outstanding midst
}

@test "outstanding requests complete in the same way when a device is removed" {
	local name
	start_ibfs
	for name in recvs sends srq; do
		spawn $name ib "$BUILD/tests/uverbs_killed" $name
		wait_for file_has "$IBFS_DIR/$name.log" ready
	done
	echo remove >"$MNT/rxe0/ctl"
	ends recvs sends srq
	for name in recvs sends srq; do [ "$(cat "$IBFS_DIR/$name.log")" = $'ready\ndone' ]; done
}

@test "many programs, killed with the daemon at any point of theirs" {
	local n
	start_ibfs
	for n in $(seq 10); do spawn "spin$n" ib "$BUILD/tests/uverbs_ends" spin; done
	for n in $(seq 10); do wait_for -t 60 file_has "$IBFS_DIR/spin$n.log" spins; done
	killed
	for n in $(seq 10); do ends "spin$n"; done
}

# Until it waits in a system call: read, write, poll, futex, futex_waitv.
waits() { file_has "/proc/$1/syscall" '^(0|1|7|202|449) '; }
wait_until_it_waits()
{
	wait_for has_open "$(spawned "$1")" "$2"
	wait_for waits "$(spawned "$1")"
}
has_open() { [ -n "$(find "/proc/$1/fd" -lname "*$2*")" ]; }

@test "programs that wait for events, MADs, connections or lines" {
	need_tool rping ibping
	start_ibfs
	cd "$MNT"
	mkdir cq/c qp/q
	echo create device=rxe0 cqe=64 >cq/c/ctl
	spawn events ib "$BUILD/tests/uverbs_ends" lost
	spawn mads ib "$BUILD/tests/umad_send" daemon_killed "$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" 1
	spawn ping ib ibping -S -C rxe1
	spawn connections ib rping -s -a 0.0.0.0 -p "$(port)"
	spawn wc cat "$MNT/cq/c/wc"
	spawn lines cat "$MNT/events"
	spawn cqevents cat "$MNT/cq/c/events"
	spawn umad cat "$MNT/rxe0/1/umad"
	spawn packets cat "$MNT/rxe1/1/pcap"
	wait_for file_has "$IBFS_DIR/events.log" ready
	wait_for file_has "$IBFS_DIR/mads.log" ready
	wait_until_it_waits ping umad
	wait_until_it_waits connections rdma_cm
	wait_until_it_waits wc wc
	wait_until_it_waits lines events
	wait_until_it_waits cqevents events
	wait_until_it_waits umad umad
	cd /
	killed
	ends events mads ping connections wc lines cqevents umad packets
	file_has "$IBFS_DIR/events.log" '^done$'
	run ! file_has "$IBFS_DIR/events.log" '\(errno'
	start_again
	[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
	[ ! -e "$MNT/cq/c" ]
	stop_ibfs
}

@test "the keeper has no rights, and nothing but its socket and its book" {
	local pid
	start_ibfs
	pid=$(keeper)
	run -0 cat "/proc/$pid/status"
	assert_line '^CapEff:.0000000000000000$'
	assert_line '^CapPrm:.0000000000000000$'
	assert_line '^NoNewPrivs:.1$'
	nm "$BUILD/ibfs" | grep -qE "__[at]san" || assert_line '^Seccomp:.2$'
	[ "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" = 3 ]
	run find "/proc/$pid/fd" -lname '*fuse*'
	[ -z "$output" ]
	[ "$(readlink "/proc/$pid/cwd")" = / ]
	kill -TERM "$pid"
	kill -INT "$pid"
	umount "$MNT"
	wait_for is_gone "$IBFS_PID"
	is_gone "$pid"
}

keeps() { [ "$(find "/proc/$1/fd" -lname '*ibfs-uverbs*' | wc -l)" = "$2" ]; }

@test "the keeper has clients' rings as long as their files are open" {
	local pid n
	start_ibfs
	pid=$(keeper)
	for n in 1 2 3; do spawn "spin$n" ib "$BUILD/tests/uverbs_ends" spin; done
	for n in 1 2 3; do wait_for -t 60 file_has "$IBFS_DIR/spin$n.log" spins; done
	wait_for keeps "$pid" 3
	reap spin1 KILL
	wait_for keeps "$pid" 2
	reap spin2 KILL
	reap spin3 KILL
	wait_for keeps "$pid" 0
	[ "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)" = 3 ]
	[ "$(keeper)" = "$pid" ]
}

@test "a keeper that is killed is replaced" {
	local pid
	start_ibfs
	pid=$(keeper)
	spawn program ib "$BUILD/tests/uverbs_killed" recvs
	wait_for file_has "$IBFS_DIR/program.log" ready
	kill -KILL "$pid"
	wait_for another_than "$pid"
	file_has "$IBFS_DIR/log" "the keeper, process $pid, died"
	wait_for keeps "$(keeper)" 1
	killed
	ends program
	[ "$(cat "$IBFS_DIR/program.log")" = $'ready\ndone' ]
}
another_than() { [ -n "$(keeper)" ] && [ "$(keeper)" != "$1" ]; }

@test "a keeper that doesn't run holds nobody up" {
	local pid n
	start_ibfs
	pid=$(keeper)
	kill -STOP "$pid"
	# More than its socket has room for.
	for n in $(seq 500); do : <>"$MNT/rxe0/uverbs"; done
	spawn program ib "$BUILD/tests/uverbs_killed" recvs
	wait_for file_has "$IBFS_DIR/program.log" ready
	kill -CONT "$pid"
	wait_for keeps "$pid" 1
	reap program KILL
	wait_for keeps "$pid" 0
	kill -STOP "$pid"
	umount "$MNT"
	wait_for -t 30 is_gone "$IBFS_PID"
	is_gone "$pid"
}

@test "the keeper, at any point of the daemon's end, and with spoilt rings" {
	ctest keeper
}
