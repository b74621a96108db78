# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own tests, through pyverbs, and the end of devices and daemons.
load helpers

setup_file()
{
	start_ibfs
}

teardown_file() { stop_ibfs; }

@test "rdma-core's tests: all that the device supports pass" {
	need_root; need_unshare
	local src=/usr/share/doc/rdma-core/tests dir=$BATS_TEST_TMPDIR/suite
	[ -d "$src" ] || skip "rdma-core's tests are not installed"
	/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || skip "python3-pyverbs is not installed"
	mkdir "$dir"
	cp -r "$src" "$dir/"
	find "$dir" -name '*.gz' -exec gunzip {} +
	cd "$dir"
	run ib timeout 120 /usr/bin/python3 tests/run_tests.py -v --dev rxe0
	grep -oE "skipped '.*|skipped \".*" <<<"$output" | sort | uniq -c >&3 || true
	local bad
	bad=$(grep -E '^(ERROR|FAIL):' <<<"$output" || true)
	[ -z "$bad" ] || fail "$bad" "$output"
	[ "$(grep -cE ' \.\.\. ok$' <<<"$output")" -ge 80 ] || fail "few passed:" "$output"
}

@test "a device that is removed tells its clients, and fails their commands" {
	need_root; need_unshare; need_tool ibv_asyncwatch
	spawn watch stdbuf -oL "$BUILD/ibfs-run" -m "$MNT" ibv_asyncwatch -d rxe1
	wait_for file_has "$IBFS_DIR/watch.log" 'async event FD'
	echo remove > "$MNT/rxe1/ctl"
	wait_for file_has "$IBFS_DIR/watch.log" 'event_type'
	[ ! -e "$MNT/dev/infiniband/uverbs1" ]
	reap watch
}
