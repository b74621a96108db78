# SPDX-License-Identifier: BSD-2-Clause
# Programs that come as a server and a client: the server on rxe0, the client on
# rxe1, which find each other over TCP on the loopback. After `load helpers`.

# A TCP port of this test's own.
port() { echo $((20000 + BATS_TEST_NUMBER * 10 + RANDOM % 10000)); }
listens() { ss -ltn 2>/dev/null | grep -q ":$1 " || grep -qi ":$(printf %04X "$1") .* 0A " /proc/net/tcp /proc/net/tcp6; }

# serve PORT COMMAND...: in the background, until it listens; $SERVER is its pid.
serve()
{
	local port=$1
	shift
	"$BUILD/ibfs-run" -m "$MNT" timeout 60 "$@" \
		</dev/null >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	SERVER=$!
	wait_for listens "$port" || { server_log; return 1; }
}
server_log() { fail "server:" "$(cat "$BATS_TEST_TMPDIR/server")"; }
# The server ends by itself, and is content; or it is ended.
served() { wait "$SERVER" || server_log; }
# Some end by themselves: no matter.
end_server()
{
	kill "$SERVER" 2>/dev/null || true
	wait "$SERVER" || true
}

# pair COMMAND [OPTIONS...]: its server on rxe0, its client on rxe1, both successful.
pair()
{
	local port
	port=$(port)
	need_root; need_unshare; need_tool "$1"
	serve "$port" "$1" -d rxe0 -p "$port" "${@:2}"
	run ib timeout 60 "$1" -d rxe1 -p "$port" "${@:2}" localhost
	served || fail "client, status $status:" "$output"
	assert_status 0
}
