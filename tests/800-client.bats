# SPDX-License-Identifier: BSD-2-Clause
# Processes that the daemon calls back, and their memory: src/fs/client*.c, also on
# kernels before 6.11, which have no PROCMAP_QUERY.
load helpers

TESTS=(answered ended itself executed protection mapping thread_ended leader_ended differs)

client() { run -0 timeout 60 "$@"; }

@test "clients: bound while they wait, and to their memory" {
	need_root
	for name in "${TESTS[@]}"; do client "$BUILD/tests/client" "$name"; done
}

@test "clients: on a kernel that can't be asked for a mapping" {
	need_root
	for name in "${TESTS[@]}"; do
		client "$BUILD/tests/refuse" procmap_query ENOTTY "$BUILD/tests/client" "$name"
	done
}

@test "clients: a daemon on a kernel that can't be asked for a mapping" {
	need_root; need_unshare
	export ASAN_OPTIONS=verify_asan_link_order=0
	IBFS_BY=("$BUILD/tests/refuse" procmap_query ENOTTY)
	start_ibfs
	[ -n "${IBFS_PID:-}" ] || skip "$IBFS_SKIP"
	for name in memfd private on_demand; do
		run -0 ib timeout 60 "$BUILD/tests/uverbs_memory" "$name" "$IBFS_PID"
	done
	client "$BUILD/tests/uverbs_ioctl" "$MNT"
	for kind in read_only ioctl_read_only; do
		run "$BUILD/tests/callbacks_ask" "$kind" "$MNT/rxe0/uverbs"
		assert_status 14
	done
	stop_ibfs
}
