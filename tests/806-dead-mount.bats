# SPDX-License-Identifier: BSD-2-Clause
# What a daemon that was killed leaves, and the next one that is started on the same
# mount point takes over: its mount, its sockets, its interfaces.
load helpers

setup()
{
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	DIR=$BATS_TEST_TMPDIR
	MNT=$DIR/mnt
	: >"$DIR/pids"
	mkdir "$MNT"
}

teardown()
{
	local pid
	while read -r pid; do kill -KILL "$pid" 2>/dev/null || true; done <"$DIR/pids"
	for mount in "$MNT" "${own:-}"; do
		while [ -n "$mount" ] && grep -q " $mount " /proc/self/mounts; do umount -l "$mount"; done
	done
	[ -z "${own:-}" ] || rmdir "$own"
	[ -z "${NETNS:-}" ] || ip netns del "$NETNS"
}

mounts() { grep -c " $MNT " /proc/self/mounts || true; }
# The tree answers: one that was mounted over may hide it.
usable() { [ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]; }

# begin NUMBER [OPTIONS...]: a daemon in the foreground, until so many mounts are there.
begin()
{
	local number=$1
	shift
	"$BUILD/ibfs" -f "$@" "$MNT" >>"$DIR/log" 2>&1 3>&- &
	daemon=$!
	echo $daemon >>"$DIR/pids"
	wait_for mounted "$number"
}
mounted() { [ "$(mounts)" = "$1" ] && usable; }
killed() { kill -KILL "$1"; wait_for is_gone "$1"; }
ended() { umount "$MNT"; wait_for is_gone "$daemon"; wait "$daemon"; }

# start_says TEXT: in the background, with success, and one line.
start_says()
{
	# shellcheck disable=SC2030 # of each test
	run -0 "$BUILD/ibfs" "$MNT"
	[ "${#lines[@]}" = 1 ] || fail "not one line:" "$output"
	[[ $output == "ibfs: mount point "*": $1" ]] || fail "$output"
	usable
}
unmounted="unmounted what a daemon that died had left there"

@test "a start takes a dead mount away" {
	begin 1
	killed $daemon
	run ! ls "$MNT"
	start_says "$unmounted"
	[ "$(mounts)" = 1 ]
	umount "$MNT"
	[ "$(mounts)" = 0 ]
}

@test "a start takes dead mounts away that lie on one another" {
	local first second
	begin 1
	first=$daemon
	begin 2
	second=$daemon
	begin 3
	killed "$second"
	killed "$first"
	killed $daemon
	[ "$(mounts)" = 3 ]
	begin 1
	ended
	[ "$(mounts)" = 0 ]
}

@test "a dead mount is taken away by any of its names" {
	local name
	ln -s mnt "$DIR/link"
	cd "$DIR"
	for name in mnt mnt/ link link/ ./mnt// "$MNT/"; do
		begin 1
		killed $daemon
		run -0 "$BUILD/ibfs" "$name"
		[[ $output == "ibfs: mount point $name: $unmounted" ]] || fail "$output"
		[ "$(mounts)" = 1 ]
		umount "$MNT"
	done
}

@test "a start takes a dead mount away with mount(8), too" {
	need_root; need_unshare
	need_tool mount.fuse3
	begin 1
	killed $daemon
	# where mount(8) looks for programs
	run -0 unshare -m --propagation private bash -c "
		set -e
		mount -t tmpfs none /usr/local/sbin
		cp '$BUILD/ibfs' /usr/local/sbin/
		mount -t fuse.ibfs none '$MNT'
		cat '$MNT/rxe0/1/state'
		umount '$MNT'
		! grep ' $MNT ' /proc/self/mounts"
	[ "${lines[1]}" = "4: ACTIVE" ]
}

@test "a mount whose daemon lives stays: the new one lies over it" {
	local first
	begin 1
	first=$daemon
	begin 2
	killed $daemon
	begin 2
	ended
	[ "$(mounts)" = 1 ]
	usable
	daemon=$first
	ended
}

@test "a mount whose daemon is only stopped stays" {
	local first
	begin 1
	first=$daemon
	kill -STOP "$first"
	"$BUILD/ibfs" -f "$MNT" >>"$DIR/log" 2>&1 3>&- &
	daemon=$!
	echo $daemon >>"$DIR/pids"
	wait_for grep -q "^State:[[:space:]]*[DS]" "/proc/$daemon/status"
	[ "$(mounts)" = 1 ]
	kill -CONT "$first"
	wait_for mounted 2
	ended
	[ "$(mounts)" = 1 ]
	usable
	daemon=$first
	ended
}

@test "a dead mount of another file system stays" {
	begin 1 -o subtype=other
	killed $daemon
	run -1 "$BUILD/ibfs" "$MNT"
	[ "$output" = "ibfs: mount point $MNT: Transport endpoint is not connected (a dead mount: umount it first)" ]
	[ "$(mounts)" = 1 ]
}

@test "a user's own dead mount" {
	need_root
	need_tool setpriv fusermount3
	[ -e /etc/mtab ] || skip "fusermount3 needs /etc/mtab"
	as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	as_user test -x "$BUILD/ibfs" || skip "nobody can't reach the build"
	as_user test -w /dev/fuse || skip "users may not mount here"
	own=$(mktemp -d)
	chown 65534:65534 "$own"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/ibfs" -f "$own" >"$DIR/log" 2>&1 3>&- &
	daemon=$!
	echo $daemon >>"$DIR/pids"
	wait_for as_user test -e "$own/version"
	killed $daemon
	run -0 as_user "$BUILD/ibfs" "$own" 3>&-
	[ "$output" = "ibfs: mount point $own: $unmounted" ] || fail "$output"
	[ "$(as_user cat "$own/rxe0/1/state")" = "4: ACTIVE" ]
	[ "$(grep -c " $own " /proc/self/mounts)" = 1 ]
	as_user fusermount3 -u "$own"
	run ! grep " $own " /proc/self/mounts
}

@test "a user's start leaves root's dead mount alone" {
	need_root
	need_tool setpriv
	own=$(mktemp -d)
	chmod 755 "$own"
	MNT=$own begin 1
	killed $daemon
	run -1 setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/ibfs" "$own"
	[ "$output" = "ibfs: mount point $own: Transport endpoint is not connected (a dead mount: umount it first)" ] ||
		fail "$output"
	grep -q " $own " /proc/self/mounts
}

# Interfaces go with the daemon; the path of a socket doesn't.
@test "sockets, the log and interfaces of a daemon that was killed" {
	need_root
	[ -w /dev/net/tun ] || skip "no /dev/net/tun here"
	need_tool ip
	unshare -n true 2>/dev/null || skip "no network namespaces here"
	local link=ibk$$ n
	NETNS=ibk$$
	ip netns add $NETNS
	printf 'log = "ibfs.log"; p9 = { listen = ( "unix:%s/conf.9p" ); };\n' "$DIR" >"$DIR/t.conf"
	for n in 1 2 3; do
		begin 1 -c "$DIR/t.conf" --9p "unix:$DIR/9p" --9p tcp:127.0.0.1:$((20000 + $$ % 10000))
		[ -S "$DIR/9p" ] && [ -S "$DIR/conf.9p" ]
		mkdir "$MNT/rxe0/1/ipoib/ib0"
		echo "create ifname=$link" >"$MNT/rxe0/1/ipoib/ib0/ctl"
		ip link set $link netns $NETNS
		[ $n = 3 ] || killed $daemon
	done
	[ "$(ip -n $NETNS -o link | grep -c " $link:")" = 1 ]
	ended
	[ ! -e "$DIR/9p" ] && [ ! -e "$DIR/conf.9p" ]
	run ! ip -n $NETNS link show $link
}
