# SPDX-License-Identifier: BSD-2-Clause
# The rules of a umad file, from a C program that knows only the file.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

umad() { run -0 timeout 60 "$BUILD/tests/umad" "$1" "$MNT/rxe0/1/umad"; }

@test "umad: the ioctls have the kernel's numbers" { umad numbers; }
@test "umad: ids are the lowest free, 32 at most" { umad ids; }
@test "umad: bad classes, QPs, versions and OUIs are refused" { umad bad_registration; }
@test "umad: unknown flags are refused, the known ones told" { umad flags; }
@test "umad: bad pointers and unknown ioctls" { umad ioctl; }
@test "umad: a method of a class is one agent's" { umad overlap; }
@test "umad: close unregisters" { umad release; }
@test "umad: old layout" { umad old_layout; }
@test "umad: enable_pkey" { umad enable_pkey; }
@test "umad: new layout" { umad new_layout; }
@test "umad: short writes, unknown agents, long MADs" { umad write; }
@test "umad: a TID that is in flight" { umad duplicate; }
@test "umad: a timeout gives the writer's header back" { umad timeout; }
@test "umad: short reads, O_NONBLOCK, no seeking" { umad read; }
@test "umad: poll and epoll" { umad poll; }
@test "umad: poll wakes" { umad poll_wakes; }
@test "umad: O_NONBLOCK set later" { umad nonblock_later; }
@test "umad: a signal interrupts a read" { umad eintr; }
@test "umad: two threads blocked on one file" { umad two_readers; }
@test "umad: a killed reader takes no MAD with it" { umad killed_reader; }
@test "umad: a fork shares the file" { umad fork; }
@test "umad: 1,000 opens" { umad thousand; }

@test "umad: the errors file tells why" {
	umad bad_registration
	run -0 cat "$MNT/errors"
	assert_line 'EINVAL.*rxe0/1/umad: register: qpn 2, not 0 or 1'
}

@test "umad: only its owner opens it" {
	need_root
	run ! setpriv --reuid 65534 --regid 65534 --clear-groups \
		sh -c "exec 3<'$MNT/rxe0/1/umad'"
	chmod 711 "$IBFS_DIR"
	chmod 666 "$MNT/rxe0/1/umad"
	run -0 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$BUILD/tests/umad" new_layout "$MNT/rxe0/1/umad"
	chmod 600 "$MNT/rxe0/1/umad"
}

@test "umad: the device is removed under open files" {
	spawn gone "$BUILD/tests/umad" gone "$MNT/rxe1/1/umad"
	wait_for file_is "$IBFS_DIR/gone.log" ready
	echo remove >"$MNT/rxe1/ctl"
	wait_for is_gone "$(spawned gone)"
	[ "$(cat "$IBFS_DIR/gone.log")" = ready ]
	[ ! -e "$MNT/rxe1" ]
	run ! cat "$MNT/dev/infiniband/umad1"
}
