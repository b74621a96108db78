# SPDX-License-Identifier: BSD-2-Clause
# rdma-core's own tests, through pyverbs, and the end of devices and daemons.
load helpers
load ipoib

setup_file()
{
	start_ibfs
	export NS=suite$$h
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

# Some of the tests want huge pages: there are, where they may be asked for.
readonly HUGE=/proc/sys/vm/nr_hugepages
with_huge_pages()
{
	local had
	had=$(cat $HUGE)
	{ echo $((had + 8)) >$HUGE; } 2>/dev/null || true
	"$@"
	{ echo "$had" >$HUGE; } 2>/dev/null || true
}

# A host with an interface on rxe0, for the tests that need rdma_cm; $RUN runs a command there.
# Without network namespaces those are skipped.
RUN=()
on_host()
{
	[ -w /dev/net/tun ] && unshare -n true 2>/dev/null && command -v ip >/dev/null || return 0
	add_host 1
	mkdir "$1/bin"
	ln -s "$BATS_TEST_DIRNAME/ip_address.py" "$1/bin/ip"
	RUN=(env "IP=$(command -v ip)" "PATH=$1/bin:$PATH" ip netns exec "${NS}1")
}

@test "rdma-core's tests: all that the device supports pass" {
	need_root; need_unshare
	local src=/usr/share/doc/rdma-core/tests dir=$BATS_TEST_TMPDIR/suite
	[ -d "$src" ] || skip "rdma-core's tests are not installed"
	/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || skip "python3-pyverbs is not installed"
	mkdir "$dir"
	cp -r "$src" "$dir/"
	find "$dir" -name '*.gz' -exec gunzip {} +
	on_host "$dir"
	cd "$dir"
	run with_huge_pages "${RUN[@]}" "$BUILD/ibfs-run" -m "$MNT" timeout 120 /usr/bin/python3 tests/run_tests.py -v --dev rxe0
	grep -oE "skipped '.*|skipped \".*" <<<"$output" | sort | uniq -c >&3 || true
	local bad
	bad=$(grep -E '^(ERROR|FAIL):' <<<"$output" || true)
	[ -z "$bad" ] || fail "$bad" "$output"
	# 273 in rdma-core 44; what is skipped is beyond Debian's rxe provider or InfiniBand.
	local ran skipped
	ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' <<<"$output")
	skipped=$(sed -n 's/^OK (skipped=\([0-9]*\))$/\1/p' <<<"$output")
	echo "$((ran - skipped)) of $ran passed" >&3
	[ $((ran - skipped)) -ge $((${#RUN[@]} ? 104 : 94)) ] || fail "few passed:" "$output"
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
