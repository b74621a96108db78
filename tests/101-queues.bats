# SPDX-License-Identifier: BSD-2-Clause
# Files that are queues of lines: events of all devices, and of each one.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

client() { timeout 60 "$BUILD/tests/fs_client" "$@"; }
link_ctl() { echo "$SYSTEM_MNT/fabric/links/rxe0:1-switch:1/ctl"; }

@test "head -1 waits for the next event" {
	spawn head head -1 "$MNT/events"
	sleep 0.3
	[ ! -s "$IBFS_DIR/head.log" ]
	echo down >"$(link_ctl)"
	wait_for is_gone "$(spawned head)"
	grep -qx 'device=rxe0 port=1 event=[a-z_]*' "$IBFS_DIR/head.log"
	echo up >"$(link_ctl)"
}

@test "a device's events are its own" {
	spawn own cat "$MNT/rxe0/events"
	spawn others cat "$MNT/rxe1/events"
	sleep 0.3
	echo down >"$(link_ctl)"
	echo up >"$(link_ctl)"
	wait_for file_has "$IBFS_DIR/own.log" 'event=port_active'
	run ! grep -q rxe0 "$IBFS_DIR/others.log"
	run ! grep -q rxe1 "$IBFS_DIR/own.log"
	reap own
	reap others
}

@test "a line a read, the rest stays, EAGAIN, lseek" { client queue "$MNT/events" "$(link_ctl)"; }
@test "poll, select, epoll by level and by edge" { client poll "$MNT/events" "$(link_ctl)"; }
@test "a signal interrupts a read that waits" { client interrupt "$MNT/events"; }
@test "kill -9 ends a process that waits" { client killed "$MNT/events"; }
@test "two threads that wait on one file get a line each" {
	client threads "$MNT/events" "$(link_ctl)"
}

@test "the same of a capture: signal, kill" {
	soft_only "packets are seen in a fabric of the daemon's own only"
	client interrupt "$MNT/rxe0/1/pcap"
	client killed "$MNT/rxe0/1/pcap"
}

@test "a reader that is not there for long holds nobody up" {
	local i
	spawn slow sleep 1000
	exec 5<"$MNT/events"
	for i in $(seq 200); do echo "node_desc $i" >"$MNT/rxe0/node_desc"; done
	for i in $(seq 50); do
		echo down >"$(link_ctl)"
		echo up >"$(link_ctl)"
	done
	read -r -u 5 line
	[[ $line == device=rxe0* ]]
	exec 5<&-
	reap slow
}
