# SPDX-License-Identifier: BSD-2-Clause
# The FUSE front end: how a mount begins and ends, and what it costs when idle.
load helpers

setup()
{
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	dir=$BATS_TEST_TMPDIR
	mkdir "$dir/m"
}
teardown()
{
	local mount
	for mount in "$dir/m" "${own:-}"; do
		[ -z "$mount" ] || ! grep -q " $mount " /proc/self/mounts || umount -l "$mount"
	done
}

begin()
{
	"$BUILD/ibfs" -f "$dir/m" >"$dir/log" 2>&1 3>&- &
	daemon=$!
	wait_for test -e "$dir/m/version"
}
has_own_mounts() { [ "$(readlink "/proc/$1/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; }
ended() { wait_for is_gone "$daemon" && wait "$daemon"; }

@test "umount stops it, with nothing to say" {
	begin
	umount "$dir/m"
	ended
	[ ! -s "$dir/log" ]
}

@test "umount stops it although another mount namespace has a copy" {
	need_unshare
	begin
	unshare -m sleep 1000 3>&- &
	other=$!
	wait_for has_own_mounts $other
	umount "$dir/m"
	ended
	kill $other
	[ ! -s "$dir/log" ]
}

@test "SIGTERM unmounts, and ends a read that waits" {
	begin
	cat "$dir/m/events" >/dev/null 2>&1 3>&- &
	reader=$!
	cat "$dir/m/rxe0/1/pcap" >"$dir/pcap" 2>&1 3>&- &
	capture=$!
	wait_for test -s "$dir/pcap"
	kill -TERM $daemon
	ended
	run ! mountpoint -q "$dir/m"
	wait_for is_gone $reader
	wait_for is_gone $capture
}

@test "a user's own mount" {
	need_root
	need_tool setpriv fusermount3
	[ -e /etc/mtab ] || skip "fusermount3 needs /etc/mtab"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$dir" 2>/dev/null || true
	own=$(mktemp -d)
	chown 65534:65534 "$own"
	as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	as_user test -x "$BUILD/ibfs" || { rmdir "$own"; skip "nobody can't reach the build"; }
	as_user "$BUILD/ibfs" "$own" 3>&- || { rmdir "$own"; skip "nobody can't mount"; }
	# shellcheck disable=SC2016
	run as_user bash -c 'cat "$0/rxe0/1/state" && stat -c %u "$0/rxe0/1/umad" &&
		echo down >"$0/fabric/links/rxe0:1-switch:1/ctl" && cat "$0/rxe0/1/state"' "$own"
	as_user fusermount3 -u "$own"
	rmdir "$own"
	[ "$output" = $'4: ACTIVE\n65534\n1: DOWN' ]
}

@test "an idle daemon uses no processor time" {
	begin
	cat "$dir/m/rxe0/1/state" >/dev/null
	exec 5<"$dir/m/events"
	run_time() { cut -d' ' -f1 "/proc/$daemon/schedstat"; }
	sleep 0.5
	before=$(run_time)
	sleep 3
	# Other mounts on the machine wake it: a look at the mount table takes microseconds.
	[ $(($(run_time) - before)) -lt 10000000 ]
	exec 5<&-
	umount "$dir/m"
	ended
}
