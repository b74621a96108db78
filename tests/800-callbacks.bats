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
