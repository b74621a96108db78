# SPDX-License-Identifier: BSD-2-Clause
# What the tests of 9P share: a daemon with no mount, and clients of its socket.
# Loaded behind helpers.

# start_9p [CONF [OPTIONS...]]: as start_ibfs, with no FUSE, on the socket $SOCK.
start_9p()
{
	local conf=${1:-}
	[ $# -eq 0 ] || shift
	IBFS_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ibfs-test.XXXXXX")
	chmod 755 "$IBFS_DIR"
	SOCK=$IBFS_DIR/9p
	MNT=$IBFS_DIR/none
	export IBFS_DIR SOCK MNT
	: >"$IBFS_DIR/spawned"
	ASAN_OPTIONS=log_path=$IBFS_DIR/asan:detect_leaks=1 \
	UBSAN_OPTIONS=log_path=$IBFS_DIR/asan:print_stacktrace=1 \
	TSAN_OPTIONS=log_path=$IBFS_DIR/asan:history_size=4 \
		"$BUILD/ibfs" -f ${conf:+-c "$conf"} --9p "unix:$SOCK" "$@" \
		</dev/null >"$IBFS_DIR/log" 2>&1 3>&- &
	export IBFS_PID=$!
	wait_for -t 60 answers_9p || { show_logs; return 1; }
	! is_gone "$IBFS_PID" || { show_logs; fail "the daemon ended at its start"; }
	wait_for settled
	IBFS_FDS=$(fd_count "$IBFS_PID")
	export IBFS_FDS
}

p9() { timeout 30 "$BUILD/tests/p9" -s "$SOCK" "$@"; }
p9_2000() { timeout 30 "$BUILD/tests/p9" -s "$SOCK" -v 9P2000 "$@"; }
answers_9p() { is_gone "$IBFS_PID" || p9 cat version; }
# No client's end is open in the daemon: only the socket that listens has the name.
settled() { [ "$(grep -c -- " $SOCK\$" /proc/net/unix)" = 1 ]; }

# Clients gone, their sockets and files closed; it ends at SIGTERM with status 0.
stop_9p()
{
	local ok=0 status=0
	[ -n "${IBFS_PID:-}" ] || return 0
	reap_all || ok=1
	if is_gone "$IBFS_PID"; then
		fail "the daemon died during the tests" || ok=1
	else
		wait_for fds_are "$IBFS_FDS" || { ls -l "/proc/$IBFS_PID/fd" >&2; ok=1; }
		kill -TERM "$IBFS_PID"
		wait_for -t 30 is_gone "$IBFS_PID" || { kill -KILL "$IBFS_PID"; ok=1; }
	fi
	if jobs -p | grep -qx "$IBFS_PID"; then
		wait "$IBFS_PID" || status=$?
		[ $status = 0 ] || fail "the daemon's exit status was $status" || ok=1
	fi
	[ ! -e "$SOCK" ] || fail "the socket is still there" || ok=1
	! compgen -G "$IBFS_DIR/asan*" >/dev/null || fail "the sanitizer complained" || ok=1
	[ $ok = 0 ] || show_logs
	rm -rf --one-file-system "$IBFS_DIR"
	unset IBFS_PID
	return $ok
}
