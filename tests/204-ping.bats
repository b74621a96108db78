# SPDX-License-Identifier: BSD-2-Clause
# Programs that are client and server: ibping and ibsysstat, both ways.
load helpers

setup_file()
{
	have_tools ibping || return 0
	fat_tree "$BATS_FILE_TMPDIR" static
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }
answers() { ib ibping -C "$1" -c 1 -t 200 "$(lid_of "$2")" | grep -q ' 0% packet loss\|1 received'; }

@test "ibping rxe0 to rxe1" {
	spawn server ib ibping -S -C rxe1
	wait_for answers rxe0 rxe1
	run -0 ib ibping -C rxe0 -c 10 -f "$(lid_of rxe1)"
	assert_line '10 packets transmitted, 10 received, 0% packet loss'
	run -0 ib ibping -C rxe0 -c 2 "$(lid_of rxe1)"
	assert_line "^Pong from .*\(Lid $(lid_of rxe1)\): time [0-9.]+ ms"
	reap server
}

@test "ibping rxe1 to rxe0" {
	spawn server ib ibping -S -C rxe0
	wait_for answers rxe1 rxe0
	run -0 ib ibping -C rxe1 -c 10 -f "$(lid_of rxe0)"
	assert_line '10 packets transmitted, 10 received, 0% packet loss'
	reap server
}

@test "ibping from and to a switch's port 0" {
	spawn server ib ibping -S -C sw0 -P 0
	wait_for answers rxe1 sw0
	reap server
}

@test "ibping without a server gets no answer" {
	run ib ibping -C rxe0 -c 2 -t 50 -f "$(lid_of rxe1)"
	assert_line '2 packets transmitted, 0 received, 100% packet loss'
}

@test "ibping -S twice on one port: the second is refused" {
	spawn server ib ibping -S -C rxe1
	wait_for answers rxe0 rxe1
	run ib timeout 5 ibping -S -C rxe1
	[ "$status" != 0 ] && [ "$status" != 124 ]
	reap server
}

@test "ibsysstat: ping, host, cpu" {
	spawn server ib ibsysstat -S -C rxe1
	# A ping succeeds without a server: the node's "unsupported" is an answer too.
	up() { [ -n "$(ib ibsysstat -C rxe0 -t 200 "$(lid_of rxe1)" host)" ]; }
	wait_for up
	run -0 ib ibsysstat -C rxe0 "$(lid_of rxe1)" ping
	assert_line "^sysstat ping succeeded"
	run -0 ib ibsysstat -C rxe0 "$(lid_of rxe1)" host
	assert_line "$(hostname)"
	run -0 ib ibsysstat -C rxe0 "$(lid_of rxe1)" cpu
	assert_line 'cpu 0: model'
	reap server
}

@test "ibping survives a lossy link by its retries" {
	local link
	link=$(grep -l 'H-0002c90300000050' "$SYSTEM_MNT"/fabric/links/*/ends | head -n 1)
	link=${link%/*}
	spawn server ib ibping -S -C rxe1
	wait_for answers rxe0 rxe1
	echo "drop=0.2 seed=7" >"$link/ctl"
	run ib ibping -C rxe0 -c 20 -f -t 100 "$(lid_of rxe1)"
	echo "drop=0" >"$link/ctl"
	assert_line '20 packets transmitted, (1[0-9]|20) received'
	reap server
}
