# SPDX-License-Identifier: BSD-2-Clause
# The daemon's access to the processes of its clients: a user who gives one up for a
# set-user-ID program gets nothing of that program's.
load helpers

setup_file()
{
	start_ibfs
	[ -n "${IBFS_PID:-}" ] || return 0
	chmod 755 "$IBFS_DIR"
	install -m 4755 "$BUILD/tests/callbacks_victim" "$IBFS_DIR/victim"
}
teardown_file() { stop_ibfs; }

setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	need_root; need_tool setpriv
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
	nobody test -x "$BUILD/tests/callbacks" || skip "other users can't reach the build"
}

nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# attack TEST: as a user, on the set-user-ID program.
attack()
{
	run nobody "$BUILD/tests/callbacks" "$1" "$MNT" "$IBFS_DIR/victim"
	[ "$status" != 77 ] || skip "set-user-ID programs aren't run as root here"
	assert_status 0
}

@test "an attacker who becomes a set-user-ID program: its memory isn't registered" { attack register; }
@test "an attacker who becomes a set-user-ID program: no answer is written there" { attack answer; }
@test "an attacker who becomes a set-user-ID program: nor by rdma_cm" { attack rdma_cm; }
@test "an attacker who becomes a set-user-ID program: its sockets are left alone" { attack socket; }

# program NAME: a copy of what asks, for a test to give other rights.
program() { install -m "$2" "$BUILD/tests/callbacks_ask" "$IBFS_DIR/$1"; }
# asks ERRNO OPTIONS... KIND FILE: a user's process gets that.
asks()
{
	local want=$1
	shift
	run nobody "$BUILD/tests/callbacks_ask" "${@:1:$#-1}" "$MNT/${*: -1}"
	assert_status "$want"
}
readonly EACCES=13 EFAULT=14
said() { run tail -n 3 "$MNT/errors"; assert_line "$1"; }

# asked ERRNO PROGRAM WHY: by a program that the opener executes.
asked()
{
	local kind
	for kind in write ioctl socket; do asks "$1" -x "$2" "$kind" rxe0/uverbs; done
	[ -z "${3:-}" ] || said "^EACCES: rxe0: process .* $3"
	asks "$1" -x "$2" rdma_cm dev/infiniband/rdma_cm
	[ -z "${3:-}" ] || said "^EACCES: rdma_cm: process .* $3"
}

@test "who is called back: a program of the same user" {
	program same 755
	asked 0 "$IBFS_DIR/same"
}

@test "who is called back: not a set-user-ID program" {
	program setuid 4755
	nobody "$IBFS_DIR/setuid" none @0 || [ $? = 255 ]
	asks $EACCES -x "$IBFS_DIR/setuid" write rxe0/uverbs
	asks $EACCES -x "$IBFS_DIR/setuid" rdma_cm dev/infiniband/rdma_cm
	asks $EACCES -x "$IBFS_DIR/setuid" ioctl rxe0/uverbs
	said "^EACCES: rxe0: process .* has another user or group than who opened the file"
}

@test "who is called back: not a set-group-ID program" {
	program setgid 755
	chgrp 1 "$IBFS_DIR/setgid"
	chmod 2755 "$IBFS_DIR/setgid"
	asks $EACCES -x "$IBFS_DIR/setgid" write rxe0/uverbs
	asks $EACCES -x "$IBFS_DIR/setgid" rdma_cm dev/infiniband/rdma_cm
	asks $EACCES -x "$IBFS_DIR/setgid" ioctl rxe0/uverbs
	said "^EACCES: rxe0: process .* has another user or group than who opened the file"
}

@test "who is called back: not a program with capabilities" {
	need_tool setcap
	program capable 755
	setcap cap_net_raw+ep "$IBFS_DIR/capable" || skip "files can't have capabilities here"
	asked $EACCES "$IBFS_DIR/capable" "has capabilities that who opened the file hadn't"
	# What it opens itself it may use.
	for kind in write ioctl socket; do
		run nobody "$IBFS_DIR/capable" "$kind" "$MNT/rxe0/uverbs"
		assert_status 0
	done
}

@test "who is called back: not a program that its user may not read" {
	[[ $BUILD != *sanitize && $BUILD != *-thread ]] || skip "sanitizers read their program"
	program unreadable 711
	asked $EACCES "$IBFS_DIR/unreadable" "runs another program than opened the file"
	for kind in write ioctl socket; do
		run nobody "$IBFS_DIR/unreadable" "$kind" "$MNT/rxe0/uverbs"
		assert_status 0
	done
}

@test "who is called back: a program that hides its memory, which has opened the file" {
	for kind in write ioctl socket; do
		asks 0 -d "$kind" rxe0/uverbs
		asks 0 -D "$kind" rxe0/uverbs
		asks 0 -D -f "$kind" rxe0/uverbs
	done
	asks 0 -d rdma_cm dev/infiniband/rdma_cm
	asks 0 -D -f rdma_cm dev/infiniband/rdma_cm
}

@test "who is called back: not who has become another user since" {
	run "$BUILD/tests/callbacks_ask" -r 65534:65534 ioctl "$MNT/rxe0/uverbs"
	assert_status $EACCES
	said "^EACCES: rxe0: process .* has another user or group than who opened the file"
	run "$BUILD/tests/callbacks_ask" -r 65534:65534 write "$MNT/rxe0/uverbs"
	assert_status $EACCES
}

@test "answers to memory that is not to be written: EFAULT" {
	asks $EFAULT read_only rxe0/uverbs
	asks $EFAULT ioctl_read_only rxe0/uverbs
	asks $EFAULT rdma_cm_read_only dev/infiniband/rdma_cm
}

@test "long messages of umad: not read or written for another user" {
	for name in read write; do
		run -0 timeout 60 "$BUILD/tests/callbacks_umad" "$name" \
			"$MNT/rxe0/1/umad" "$MNT/rxe1/1/umad" "$(cat "$MNT/rxe1/1/lid")"
		said "^EACCES: user 0, group 0 opened the file, not 65534, 65534"
	done
}

@test "an id of rdma_cm moves only to who has the rights of its maker" {
	run -0 "$BUILD/tests/callbacks_migrate" "$MNT/dev/infiniband/rdma_cm"
}

asks_or_gone() { file_has "$IBFS_DIR/proc.log" asks || is_gone "$(spawned proc)"; }

@test "a process whose /proc can't be looked into: others go on" {
	[[ $BUILD != *sanitize ]] || skip "LeakSanitizer waits for the thread that hangs"
	spawn proc "$BUILD/tests/callbacks_proc" "$MNT/dev/infiniband/rdma_cm"
	wait_for asks_or_gone
	file_has "$IBFS_DIR/proc.log" asks || skip "needs userfaultfd"
	for _ in {1..20}; do run -0 timeout 10 cat "$MNT/version"; done
	reap proc KILL
}
