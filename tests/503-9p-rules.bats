# SPDX-License-Identifier: BSD-2-Clause
# What every message is answered, as Linux's v9fs expects it; limits; and who a
# client is: by the kernel on a unix socket, by the configuration over TCP.
load helpers
load 9p

setup_file()
{
	cat >"$BATS_FILE_TMPDIR/conf" <<-END
	p9 = { msize = 65536; fids = 100; tags = 50; connections = 20;
	       tcp_uid = 1234; tcp_gid = 4321; };
	END
	start_9p "$BATS_FILE_TMPDIR/conf" --9p tcp:127.0.0.1:5641
	# where another user can run it
	install -m 755 "$BUILD/tests/p9" "$IBFS_DIR/p9"
	export CLIENT=$IBFS_DIR/p9
}
teardown_file() { stop_9p; }

need_users()
{
	need_root
	need_tool setpriv
}
as_user() { timeout 30 setpriv --reuid=65534 --regid=65534 --clear-groups "$CLIENT" -s "$SOCK" "$@"; }
in_group() { timeout 30 setpriv --reuid=65534 --regid=65534 --groups="$1" "$CLIENT" -s "$SOCK" "${@:2}"; }
by_tcp() { timeout 30 "$CLIENT" -s 127.0.0.1:5641 "$@"; }
denied() { [ "$status" -ne 0 ] && [[ $output == *'Permission denied'* ]]; }

@test "every message's answer, and limits" {
	timeout 60 "$BUILD/tests/p9_rules" "$SOCK" 65536 100 50
	wait_for settled
}

@test "more connections than the configuration allows are hung up on" {
	local i
	wait_for settled
	for i in {1..20}; do
		spawn "held$i" "$CLIENT" -s "$SOCK" hold events
		wait_for file_is "$IBFS_DIR/held$i.log" open
	done
	run ! p9 cat version
	for i in {1..20}; do reap "held$i"; done
	wait_for p9 cat version
}

@test "a user of a unix socket is who the kernel says" {
	need_users
	[ "$(as_user cat rxe0/1/state)" = '4: ACTIVE' ]
	run as_user cat rxe0/1/issm
	denied
	run as_user write rxe0/1/ctl <<<'shutdown'
	denied
	as_user mkdir pd/theirs
	[ "$(p9 stat pd/theirs/ctl | cut -d' ' -f1,3,4)" = '600 65534 65534' ]
	as_user write pd/theirs/ctl <<<'create device=rxe0'
	as_user rm pd/theirs
	p9 mkdir pd/ours
	run as_user write pd/ours/ctl <<<'create device=rxe0'
	denied
	run ! as_user rm pd/ours
	p9 rm pd/ours
}

@test "its groups count" {
	need_users
	run as_user -v 9P2000 cat rxe0/1/pcap
	denied
	p9 chmod rxe0/1/issm 640
	run in_group 0 line rxe0/1/issm
	refute_line 'Permission denied'
	run as_user line rxe0/1/issm
	denied
	p9 chmod rxe0/1/issm 600
}

@test "it may attach as nobody else, but root may" {
	need_users
	run as_user -u 0 cat version
	assert_line 'attach: Operation not permitted'
	run as_user -v 9P2000 -u root cat version
	assert_line 'attach: .*uid 65534 may not attach as uid 0'
	run -0 as_user -u 65534 cat version
	run p9 -u 65534 cat rxe0/1/issm
	denied
	run p9 -v 9P2000 -u nobody cat rxe0/1/issm
	denied
	run p9 -v 9P2000 -u no-such-user cat version
	assert_line 'there is no user "no-such-user"'
	p9 -u 77 mkdir pd/seventy
	[ "$(p9 stat pd/seventy/ctl | cut -d' ' -f3)" = 77 ]
	p9 rm pd/seventy
}

@test "TCP clients are the configuration's user, whoever they say they are" {
	local who
	for who in "" 0 65534; do
		by_tcp ${who:+-u "$who"} mkdir pd/tcp
		[ "$(by_tcp stat pd/tcp/ctl | cut -d' ' -f1,3,4)" = '600 1234 4321' ]
		by_tcp ${who:+-u "$who"} rm pd/tcp
		run by_tcp ${who:+-u "$who"} cat rxe0/1/issm
		denied
	done
}

@test "addresses of other machines need p9.remote" {
	run -1 timeout 20 "$BUILD/ibfs" -f --9p tcp:0.0.0.0:5642
	assert_line 'p9.remote'
}

@test "read_only: nothing is written, made or held" {
	local dir=$BATS_TEST_TMPDIR pid
	ro() { timeout 30 "$BUILD/tests/p9" -s "$dir/9p" "$@"; }
	printf 'p9 = { listen = "unix:%s/9p"; read_only = true; mode = "0600"; };\n' "$dir" >"$dir/conf"
	"$BUILD/ibfs" -f -c "$dir/conf" >"$dir/log" 2>&1 3>&- &
	pid=$!
	wait_for ro cat version
	[ "$(stat -c %a "$dir/9p")" = 600 ]
	[ "$(ro cat rxe0/1/state)" = '4: ACTIVE' ]
	for file in rxe0/1/ctl rxe0/node_desc rxe0/1/counters/port_xmit_data; do
		run ro write "$file" <<<0
		assert_line 'Read-only file system'
	done
	run ro mkdir pd/p
	assert_line 'Read-only file system'
	run ro chmod rxe0/1/umad 666
	assert_line 'Read-only file system'
	for file in pd/clone rxe0/1/issm rxe0/1/mad/clone; do
		run ro line "$file"
		assert_line 'Read-only file system'
	done
	run ro -v 9P2000 rm pd
	[ "$status" = 1 ]
	kill "$pid"
	wait "$pid"
	[ ! -e "$dir/9p" ]
}
