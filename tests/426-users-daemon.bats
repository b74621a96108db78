# SPDX-License-Identifier: BSD-2-Clause
# A user's own daemon, without any privilege: verbs programs of the same user,
# who get the memory of their rings from it over a socket.
load helpers
load pairs

setup()
{
	need_root; need_tool fusermount3 setpriv
	[ -u "$(command -v fusermount3)" ] || skip "needs fusermount3"
	nobody unshare -Urm true 2>/dev/null || skip "users may make no user namespace here"
	nobody test -w /dev/fuse || skip "users may not mount here"
	nobody test -x "$BUILD/ibfs" || skip "other users can't reach the build"
	DIR=$(mktemp -d)
	chmod 777 "$DIR"
	nobody mkdir "$DIR/ib"
	nobody "$BUILD/ibfs" -f "$DIR/ib" </dev/null >"$DIR/log" 2>&1 3>&- &
	DAEMON=$!
	wait_for -t 60 nobody test -e "$DIR/ib/version" || fail "$(cat "$DIR/log")"
}

teardown()
{
	[ -n "${DAEMON:-}" ] || return 0
	nobody fusermount3 -u "$DIR/ib"
	wait "$DAEMON"
	rm -r "$DIR"
}

nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
mine() { nobody env ASAN_OPTIONS=verify_asan_link_order=0 "$BUILD/ibfs-run" -m "$DIR/ib" timeout 60 "$@"; }

# own_pair COMMAND [OPTIONS...]: its server on rxe0, its client on rxe1, both successful.
own_pair()
{
	local port server
	need_tool "$1"
	port=$(port)
	mine "$1" -d rxe0 -p "$port" "${@:2}" </dev/null >"$DIR/server" 2>&1 3>&- &
	server=$!
	wait_for listens "$port" || fail "$(cat "$DIR/server")"
	run mine "$1" -d rxe1 -p "$port" "${@:2}" localhost
	assert_status 0
	wait "$server" || fail "$(cat "$DIR/server")"
}

@test "a user's daemon: ibv_rc_pingpong" { own_pair ibv_rc_pingpong -c -n 50; }
@test "a user's daemon: ibv_rc_pingpong with events" { own_pair ibv_rc_pingpong -e -c -n 50; }
@test "a user's daemon: ib_write_bw" { own_pair ib_write_bw -F -n 200; }
@test "a user's daemon: it maps shared memory whose file a program has open" {
	local client
	mkfifo "$DIR/go"
	mine "$BUILD/tests/uverbs_memory" descriptor <"$DIR/go" >"$DIR/client" 2>&1 3>&- &
	client=$!
	exec 7>"$DIR/go"
	wait_for file_has "$DIR/client" registered || fail "$(cat "$DIR/client")"
	grep -q memfd:uverbs_memory "/proc/$(pgrep -P "$DAEMON")/maps"
	exec 7>&-
	wait "$client" || fail "$(cat "$DIR/client")"
}
@test "a user's daemon: private memory is what it was" {
	run mine "$BUILD/tests/uverbs_private" use
	assert_status 0
	run mine "$BUILD/tests/uverbs_maps"
	assert_status 0
}
