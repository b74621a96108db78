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
# The daemon has mapped what was private before it was registered, and the peer's.
maps_two() { [ "$(grep -c 'memfd:ibfs-run' "/proc/$(pgrep -P "$DAEMON")/maps")" -ge 2 ]; }

@test "a user's daemon: it maps what its programs register" {
	local port server client
	need_tool ib_write_bw
	port=$(port)
	mine ib_write_bw -d rxe0 -p "$port" -D 30 -F </dev/null >"$DIR/server" 2>&1 3>&- &
	server=$!
	wait_for listens "$port" || fail "$(cat "$DIR/server")"
	mine ib_write_bw -d rxe1 -p "$port" -D 30 -F localhost </dev/null >"$DIR/client" 2>&1 3>&- &
	client=$!
	wait_for -t 25 maps_two
	kill "$(pgrep -P "$client")" "$(pgrep -P "$server")"
	wait "$client" "$server" || true
}
@test "a user's daemon: private memory is what it was" {
	run mine "$BUILD/tests/uverbs_private" user
	assert_status 0
}
