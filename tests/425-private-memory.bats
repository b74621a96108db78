# SPDX-License-Identifier: BSD-2-Clause
# Private memory that programs register: the daemon copies to and from it, and the
# program has what it had before, whatever it does with it.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

setup()
{
	need_root; need_unshare
	export ASAN_OPTIONS=verify_asan_link_order=0
	BY=()
}

# program TEST [ROUNDS]; BY is what runs it.
program()
{
	run ib timeout 60 "${BY[@]}" "$BUILD/tests/$1" "${@:2}"
	assert_status 0
}
private() { program uverbs_private "$@"; }
races() { program uverbs_private_races "$@"; }

@test "private memory: no mapping of the program's changes" { program uverbs_maps; }
@test "private memory: of all kinds, written and read" { private use; }
@test "private memory: pages that nobody touched take no memory" { private sparse; }
@test "private memory: threads that write, also by read(), lose nothing" { private writers 300; }
@test "private memory: a child has its own, as it was" { private fork; }
@test "private memory: fork, posix_spawn, system while threads register" { private fork_threads 30; }
@test "private memory: zeroes come back where madvise gave it up" { private give_up; }
@test "private memory: unmapped while it is registered" { private unmap; }
@test "private memory: realloc while it is registered, and afterwards" { private realloc; }
@test "private memory: mprotect and fork while it is registered" { private protect; }
@test "private memory: regions that overlap" { private overlap; }
@test "private memory: many regions" { private many 500; }
@test "private memory: threads that register the same pages" { private threads 200; }
@test "private memory: a program that closes all descriptors" { private close_all; }
@test "private memory: a signal handler that gives memory up" {
	[[ $BUILD != *-thread ]] || skip "ThreadSanitizer calls handlers of blocked signals"
	races handler 240
}
@test "private memory: fork while another thread unmaps" { races fork_unmap 100; }
@test "private memory: a region ends while its memory becomes a file's" { races replace 300; }
@test "private memory: under another preloaded library" {
	LD_PRELOAD=libm.so.6 private use
	LD_PRELOAD=libm.so.6 private fork
}
@test "private memory: a child of vfork that closes descriptors" { private vfork; }

@test "private memory: a user's" {
	need_tool setpriv
	chmod 755 "$IBFS_DIR"
	[ "$(ulimit -l)" = unlimited ] || [ "$(ulimit -l)" -ge 8192 ] || skip "RLIMIT_MEMLOCK is too low"
	BY=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	program uverbs_maps
	private use
	private fork
}

# hold TEST [ROUNDS]: beside this test, until release().
hold()
{
	mkfifo "$BATS_TEST_TMPDIR/go"
	"$BUILD/ibfs-run" -m "$MNT" timeout 60 "${BY[@]}" "$BUILD/tests/uverbs_private" "$@" \
		<"$BATS_TEST_TMPDIR/go" >"$BATS_TEST_TMPDIR/held" 2>&1 3>&- &
	HELD=$!
	exec 7>"$BATS_TEST_TMPDIR/go"
	wait_for -t 60 file_has "$BATS_TEST_TMPDIR/held" holds || fail "$(cat "$BATS_TEST_TMPDIR/held")"
}
release()
{
	echo >&7
	exec 7>&-
	wait "$HELD" || fail "$(cat "$BATS_TEST_TMPDIR/held")"
}

@test "registered memory: the daemon holds one descriptor for all of a process's" {
	wait_for fds_are "$IBFS_FDS"
	hold hold 200
	[ "$(fd_count "$IBFS_PID")" -lt $((IBFS_FDS + 50)) ] || fail "$(ls -l "/proc/$IBFS_PID/fd")"
	grep -q "uid=0 bytes=$((201 * 4096)) limit=unlimited" "$MNT/pinned" || fail "$(cat "$MNT/pinned")"
	release
	wait_for fds_are "$IBFS_FDS"
}

@test "registered memory: each process of a user has all of RLIMIT_MEMLOCK" {
	need_tool setpriv
	BY=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	hold memlock
	grep -q "uid=65534 bytes=65536 limit=65536" "$MNT/pinned" || fail "$(cat "$MNT/pinned")"
	release
}
