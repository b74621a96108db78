# SPDX-License-Identifier: BSD-2-Clause
# One of the two daemons is killed while everything is in use: the system under the
# verbs backend, and the daemon that has it.
load helpers
load nested
load native

setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	nested_can || skip "$IBFS_SKIP"
	start_ibfs
	start_nested 'hcas = ( { name = "h"; } ); backend = "verbs";
		devices = ( { name = "soft0"; node = "h"; } );'
}
teardown()
{
	[ -n "${BATS_TEST_COMPLETED:-}" ] || show_logs
	stop_ibfs
}

has_open() { [ -n "$(find "/proc/$1/fd" -lname "*/$2")" ]; }
# The system's, of which the second daemon has any.
no_device_files() { find "/proc/$NPID/fd" -lname "*/infiniband/*" -printf "%l\n" >"$IBFS_DIR/files.log"; [ ! -s "$IBFS_DIR/files.log" ]; }

# Readers that wait, a subnet manager, an agent with methods, requests that nobody
# answers, all on the second daemon's devices.
use_all()
{
	SYSTEM=$MNT MNT=$NMNT
	native_setup 2 local_write,remote_write,remote_read
	qp a 0; qp b 1; qp c 0; qp d 1
	echo "connect peer=b rnr_retry=7" >qp/a/ctl
	echo "connect peer=d" >qp/c/ctl
	for i in 1 2 3 4; do echo "send mr=m0 length=64"; done >qp/a/post
	spawn message cat "$NMNT/qp/d/recv"
	spawn waits cat "$NMNT/cq/c1/wc"
	spawn blocked cat "$NMNT/rxe1/1/umad"
	spawn holder "$BUILD/tests/issm" hold "$NMNT/rxe1/1/issm"
	exec 8<>"$NMNT/rxe0/1/mad/clone"
	echo 'register class=0x0a methods=3 version=1' >&8
	wait_for file_is "$IBFS_DIR/holder.log" held
	wait_for has_open "$(spawned message)" recv
	wait_for has_open "$(spawned waits)" wc
	wait_for has_open "$(spawned blocked)" umad
	cd /
	MNT=$SYSTEM
}

@test "the system is killed" {
	local pid
	use_all
	exec 5<"$NMNT/events"
	kill_system
	run -0 timeout 20 grep -m 1 "device=rxe0 event=device_fatal" <&5
	wait_for not test -e "$NMNT/rxe0"
	wait_for not test -e "$NMNT/rxe1"
	for pid in message waits blocked; do wait_for is_gone "$(spawned $pid)"; done
	run ! sh -c "echo 'register class=4' >&8"
	for pid in a b c d; do file_has "$NMNT/qp/$pid/status" "^state gone"; done
	run ! sh -c "echo 'send mr=m0 length=64' >'$NMNT/qp/a/post'"
	[ "$(cat "$NMNT/soft0/1/state")" != "" ]
	# Its threads and descriptors: the loop and the one that looks for devices are left.
	exec 5<&- 8<&-
	reap holder
	wait_for has_threads "$NPID" 2
	(MNT=$NMNT native_teardown)
	wait_for no_device_files
	not compgen -G "$IBFS_DIR/asan*"
	end_nested
}

# What the killed one had of it: an IsSM bit, a class, memory, descriptors.
is_sm() { [ $(($(cat "$MNT/rxe1/1/cap_mask") & 2)) -ne 0 ]; }

@test "the daemon on it is killed: nothing stays on the system" {
	use_all
	is_sm
	[ "$(fd_count "$IBFS_PID")" -gt "$IBFS_FDS" ]
	exec 6<>"$MNT/rxe0/1/mad/clone"
	run ! sh -c "echo 'register class=0x0a methods=3 version=1' >&6"
	kill -KILL "$NPID"
	wait_for is_gone "$NPID"
	exec 8<&-
	wait_for not is_sm
	wait_for fds_are "$IBFS_FDS"
	echo 'register class=0x0a methods=3 version=1' >&6
	exec 6<&-
	[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
}
