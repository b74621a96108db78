# SPDX-License-Identifier: BSD-2-Clause
# Start and stop: in the background only when mounted, one line why not, and
# nothing left behind.
load helpers

setup()
{
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	DIR=$BATS_TEST_TMPDIR
	MNT=$DIR/mnt
	mkdir "$MNT"
}

teardown()
{
	local pid
	for pid in $(daemons); do kill -KILL "$pid"; done
	while findmnt -n "$MNT" >/dev/null; do umount -l "$MNT"; done
}

# The daemons of this test's mount point.
daemons() { pgrep -f "ibfs( .*)? $MNT\$|ibfs .*$MNT -o" || true; }
no_daemon() { [ -z "$(daemons)" ]; }

# one_line TEXT: a failure with status 1 and one line on stderr that has TEXT.
one_line()
{
	[ "${#lines[@]}" = 1 ] || fail "not one line:" "$output"
	[[ $output == *": "*"$1"* ]] || fail "expected $1" "got: $output"
	mountpoint -q "$MNT" && fail "mounted all the same"
	no_daemon || fail "a daemon is running"
}

@test "exit status 0 means that the tree can be used" {
	run -0 "$BUILD/ibfs" "$MNT"
	[ -z "$output" ] || fail "it said: $output"
	[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
	umount "$MNT"
	wait_for no_daemon
}

@test "the daemon keeps nothing of the terminal, nor the working directory" {
	local pid
	(cd "$DIR" && "$BUILD/ibfs" mnt)
	pid=$(pgrep -f "ibfs mnt\$" | head -n 1)
	[ "$(readlink "/proc/$pid/cwd")" = / ]
	for fd in 0 1 2; do [ "$(readlink "/proc/$pid/fd/$fd")" = /dev/null ]; done
	[ "$(ps -o tty= -p "$pid")" = "?" ]
	umount "$MNT"
	wait_for is_gone "$pid"
}

@test "SIGTERM and SIGINT unmount and end it with status 0" {
	local signal pid
	for signal in TERM INT; do
		# bash starts what it puts in the background with SIGINT ignored
		env --default-signal=INT "$BUILD/ibfs" -f "$MNT" 3>&- &
		pid=$!
		wait_for mountpoint -q "$MNT"
		[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
		kill -$signal $pid
		wait $pid
		run ! mountpoint -q "$MNT"
	done
}

@test "SIGHUP changes nothing" {
	local pid
	"$BUILD/ibfs" -f "$MNT" 3>&- &
	pid=$!
	wait_for mountpoint -q "$MNT"
	kill -HUP $pid
	[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
	umount "$MNT"
	wait $pid
}

@test "umount ends a daemon in the foreground with status 0" {
	local pid
	"$BUILD/ibfs" -f "$MNT" 3>&- &
	pid=$!
	wait_for mountpoint -q "$MNT"
	umount "$MNT"
	wait $pid
}

@test "SIGTERM ends it although a file is open" {
	local pid
	"$BUILD/ibfs" -f "$MNT" 3>&- &
	pid=$!
	wait_for mountpoint -q "$MNT"
	exec 7<"$MNT/events"
	kill $pid
	wait $pid
	exec 7<&-
	run ! mountpoint -q "$MNT"
}

@test "an idle daemon uses no processor time" {
	local pid before
	"$BUILD/ibfs" -f "$MNT" 3>&- &
	pid=$!
	wait_for test -e "$MNT/version"
	sleep 0.5
	before=$(awk '{ print $14 + $15 }' /proc/$pid/stat)
	sleep 2
	[ "$(awk '{ print $14 + $15 }' /proc/$pid/stat)" = "$before" ]
	umount "$MNT"
	wait $pid
}

@test "a mount point that is missing" {
	run -1 "$BUILD/ibfs" "$DIR/none"
	one_line "mount point $DIR/none: No such file or directory"
}

@test "a mount point that is a file" {
	touch "$DIR/file"
	run -1 "$BUILD/ibfs" "$DIR/file"
	one_line "mount point $DIR/file: Not a directory"
}

@test "/dev/fuse missing" {
	need_root
	need_unshare
	run -1 unshare -m sh -c "mount -t tmpfs none /dev && exec '$BUILD/ibfs' '$MNT'"
	one_line "/dev/fuse: No such file or directory (load the kernel module: modprobe fuse)"
}

@test "/dev/fuse not permitted" {
	need_root
	chmod 755 "$DIR" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
	chown 65534 "$MNT"
	run -1 unshare -m sh -c "mknod $DIR/fuse c 10 229 && chmod 600 $DIR/fuse &&
		mount --bind $DIR/fuse /dev/fuse &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups '$BUILD/ibfs' '$MNT'"
	one_line "/dev/fuse: Permission denied (ibfs needs read and write permission on it)"
}

@test "a mount that is not permitted" {
	need_root
	chmod 755 "$DIR" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test"
	chmod 755 "$MNT"
	run -1 setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/ibfs" "$MNT"
	no_daemon
	[[ $output == *"$MNT"* ]] || fail "$output"
}

@test "an unknown mount option" {
	run -1 "$BUILD/ibfs" -o nonsense=1 "$MNT"
	one_line "nonsense"
}

@test "as mount(8) calls it: source, mount point, options" {
	printf 'subnet = "sm";\n' >"$DIR/sm.conf"
	run -0 "$BUILD/ibfs" "$DIR/sm.conf" "$MNT" -o rw,dev,suid
	[ "$(cat "$MNT/rxe0/1/state")" = "2: INIT" ]
	umount "$MNT"
	wait_for no_daemon
	run -0 "$BUILD/ibfs" none "$MNT" -o rw
	[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
	umount "$MNT"
	wait_for no_daemon
}

@test "mount.fuse3, as type fuse.ibfs" {
	need_root
	need_tool mount.fuse3
	printf 'subnet = "sm";\n' >"$DIR/sm.conf"
	PATH=$BUILD:$PATH run -0 mount.fuse3 "$DIR/sm.conf" "$MNT" -t fuse.ibfs -o rw,noatime
	run -0 findmnt -n -o FSTYPE "$MNT"
	[ "$output" = fuse.ibfs ]
	umount "$MNT"
	wait_for no_daemon
}

@test "mount(8) and fstab, as type fuse.ibfs" {
	need_root
	need_unshare
	need_tool mount.fuse3
	printf 'subnet = "sm";\n' >"$DIR/sm.conf"
	printf '%s %s fuse.ibfs ro 0 0\n' "$DIR/sm.conf" "$MNT" >"$DIR/fstab"
	# where mount(8) looks for programs
	run -0 unshare -m --propagation private bash -c "
		set -e
		mount -t tmpfs none /usr/local/sbin
		cp '$BUILD/ibfs' /usr/local/sbin/
		mount -t fuse.ibfs none '$MNT'
		cat '$MNT/rxe0/1/state'
		umount '$MNT'
		mount --fstab '$DIR/fstab' '$MNT'
		cat '$MNT/rxe0/1/state'
		findmnt -n -o FSTYPE,OPTIONS '$MNT'
		umount '$MNT'
		! mount -t fuse.ibfs '$DIR/none.conf' '$MNT'"
	[ "${lines[0]}" = "4: ACTIVE" ]
	[ "${lines[1]}" = "2: INIT" ]
	[[ ${lines[2]} == "fuse.ibfs "*ro,* ]]
	[[ ${lines[3]} == "ibfs: $DIR/none.conf: cannot read"* ]]
	wait_for no_daemon
}

@test "-o ro: nothing can be written" {
	run -0 "$BUILD/ibfs" -o ro "$MNT"
	run ! sh -c "echo x > $MNT/rxe0/node_desc"
	[[ $output == *"Read-only file system"* ]] || fail "$output"
	umount "$MNT"
	wait_for no_daemon
}

@test "two daemons beside each other" {
	mkdir "$DIR/other"
	run -0 "$BUILD/ibfs" "$MNT"
	run -0 "$BUILD/ibfs" "$DIR/other"
	umount "$MNT"
	[ "$(cat "$DIR/other/rxe0/1/state")" = "4: ACTIVE" ]
	umount "$DIR/other"
	wait_for no_daemon
}

@test "the log of a daemon in the background goes to the file that conf names" {
	printf 'log = "ibfs.log";\n' >"$DIR/t.conf"
	run -0 "$BUILD/ibfs" -c "$DIR/t.conf" "$MNT"
	[ -e "$DIR/ibfs.log" ]
	umount "$MNT"
	wait_for no_daemon
}

@test "owner and modes of the device files are what the configuration says" {
	need_root
	printf 'files = { uid = "nobody"; gid = 7; umad = "0660"; issm = "0640"; uverbs = "0600"; clone = "0444"; };\n' \
		>"$DIR/t.conf"
	run -0 "$BUILD/ibfs" -c "$DIR/t.conf" "$MNT"
	run -0 stat -c '%a %U %g' "$MNT/rxe0/1/umad" "$MNT/dev/infiniband/issm1" "$MNT/rxe1/uverbs" \
		"$MNT/pd/clone"
	umount "$MNT"
	[ "$output" = $'660 nobody 7\n640 nobody 7\n600 nobody 7\n444 nobody 7' ] || fail "$output"
	wait_for no_daemon
}
