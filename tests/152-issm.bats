# SPDX-License-Identifier: BSD-2-Clause
# issm: who has it open is the subnet manager.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

IS_SM=2
port() { echo "$MNT/rxe0/1"; }
caps() { printf '%d' "$(cat "$(port)/cap_mask")"; }
is_sm() { [ $(($(caps) & IS_SM)) -ne 0 ]; }
hold() { spawn "$1" "$BUILD/tests/issm" hold "$(port)/issm"; }
held() { file_is "$IBFS_DIR/$1.log" held; }
# It sleeps in openat(2).
blocked() { grep -q "^257 " "/proc/$(spawned "$1")/syscall" && [ ! -s "$IBFS_DIR/$1.log" ]; }
try() { run -0 "$BUILD/tests/issm" try "$(port)/issm"; }

@test "issm: open sets IsSM, close clears it" {
	not is_sm
	hold a
	wait_for held a
	is_sm
	reap a
	not is_sm
}

@test "issm: a shell holds it by a redirection" {
	exec 7<"$(port)/issm"
	is_sm
	exec 7<&-
	not is_sm
}

@test "issm: one holder: EAGAIN with O_NONBLOCK" {
	hold a
	wait_for held a
	try
	[ "$output" = EAGAIN ]
	is_sm
	reap a
	try
	[ "$output" = held ]
	not is_sm
}

@test "issm: waiters get it in their order" {
	local name
	hold a
	wait_for held a
	for name in b c d; do
		hold $name
		wait_for blocked $name
	done
	for name in a b c; do
		reap $name
		wait_for held "$(tr abc bcd <<<"$name")"
		is_sm
	done
	not blocked d
	reap d
	not is_sm
}

@test "issm: a holder that is killed hands over" {
	hold a
	wait_for held a
	hold b
	wait_for blocked b
	reap a KILL
	wait_for held b
	is_sm
	reap b KILL
	not is_sm
}

@test "issm: a waiter that is killed leaves the others waiting" {
	hold a
	wait_for held a
	hold b
	wait_for blocked b
	hold c
	wait_for blocked c
	reap b KILL
	blocked c
	reap a
	wait_for held c
	reap c
}

@test "issm: a signal interrupts a waiter" {
	hold a
	wait_for held a
	run -0 "$BUILD/tests/issm" interrupt "$(port)/issm"
	[ "$output" = EINTR ]
	reap a
	try
	[ "$output" = held ]
}

@test "issm: nothing else can be done to it" {
	run -0 "$BUILD/tests/issm" other "$(port)/issm"
}

@test "issm: ports don't share it" {
	hold a
	wait_for held a
	run -0 "$BUILD/tests/issm" try "$MNT/rxe1/1/issm"
	[ "$output" = held ]
	reap a
}

@test "issm: the device is removed under holder and waiter" {
	hold a
	wait_for held a
	hold b
	wait_for blocked b
	echo remove >"$MNT/rxe0/ctl"
	wait_for file_is "$IBFS_DIR/b.log" ENXIO
	reap a
	reap b || true
	run -0 "$BUILD/tests/issm" try "$MNT/rxe1/1/issm"
	[ "$output" = held ]
}
