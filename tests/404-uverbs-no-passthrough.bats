# SPDX-License-Identifier: BSD-2-Clause
# A kernel, or a daemon, that can't let files be mapped: ibfs-run gets the memory.
load helpers

setup_file()
{
	echo 'passthrough = false;' >"$BATS_FILE_TMPDIR/conf"
	start_ibfs "$BATS_FILE_TMPDIR/conf"
}

teardown_file() { stop_ibfs; }

@test "without passthrough nothing is mapped through a uverbs file" {
	need_root; need_tool python3
	run python3 -c '
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
mmap.mmap(fd, 4096)' "$MNT/dev/infiniband/uverbs0"
	assert_status 1
	assert_line 'No such device'
}

@test "without passthrough libibverbs' programs run by ibfs-run" {
	need_root; need_unshare; need_tool ibv_rc_pingpong
	spawn server ib ibv_rc_pingpong -d rxe0 -p 19871 -c -n 50
	wait_for listens 19871
	run -0 ib timeout 60 ibv_rc_pingpong -d rxe1 -p 19871 -c -n 50 localhost
	wait_for is_gone "$(spawned server)"
	export ASAN_OPTIONS=verify_asan_link_order=0
	run -0 ib timeout 60 "$BUILD/tests/uverbs_memory" private "$IBFS_PID"
}
listens() { ss -ltn | grep -q ":$1 "; }
