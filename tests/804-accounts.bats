# SPDX-License-Identifier: BSD-2-Clause
# One user uses up everything, and is stopped: root and other users go on, and all
# is given back when it ends. tests/eat.c takes what there is.
load helpers

setup_file()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 0; }
	have_tools setpriv prlimit || return 0
	echo 'limits = { user_files = 500; };' >"$BATS_FILE_TMPDIR/conf"
	SOCKS=$(mktemp -d "${TMPDIR:-/tmp}/ibfs-9p.XXXXXX")
	TCP=127.0.0.1:$(free_port)
	export SOCKS TCP
	chmod 755 "$SOCKS"
	# Of descriptors users have 9 tenths, but for the daemon's own: 1293, and each 323.
	IBFS_BY=(prlimit --nofile=1500)
	start_ibfs "$BATS_FILE_TMPDIR/conf" --9p "unix:$SOCKS/9p" --9p "tcp:$TCP"
	chmod 755 "$IBFS_DIR"
	install -m 755 "$BUILD"/tests/{eat,eat_9p,p9} "$IBFS_DIR"
}
teardown_file()
{
	stop_ibfs
	[ -z "${SOCKS:-}" ] || rmdir "$SOCKS"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
setup()
{
	[ -z "${IBFS_SKIP:-}" ] || skip "$IBFS_SKIP"
	EATERS=()
}
teardown()
{
	local fd
	for fd in "${EATERS[@]}"; do exec {fd}>&-; done
	[ -n "${BATS_TEST_COMPLETED:-}" ] || show_logs
}

# Those of whom the tests speak: who attacks, and another.
EVE=65534
BOB=4242

as() { setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"; }
# eat UID RESOURCE [COUNT], or eat_9p ADDRESS UID RESOURCE [COUNT]: $ate and $refusal
# are what it says; it holds all until `let_go`.
eat() { eat_by "$1" "$IBFS_DIR/eat" "$MNT" "${@:2}"; }
eat_9p() { eat_by "$2" "$IBFS_DIR/eat_9p" "$1" "${@:3}"; }
eat_by()
{
	local fd name="$1-$4-${#EATERS[@]}"
	mkfifo "$BATS_TEST_TMPDIR/$name"
	as "$1" "${@:2}" <"$BATS_TEST_TMPDIR/$name" >"$BATS_TEST_TMPDIR/$name.out" 2>&1 3>&- &
	exec {fd}>"$BATS_TEST_TMPDIR/$name"
	EATERS+=("$fd")
	wait_for -t 60 file_has "$BATS_TEST_TMPDIR/$name.out" " $4 "
	read -r ate _ refusal <"$BATS_TEST_TMPDIR/$name.out"
}
let_go()
{
	local fd
	for fd in "${EATERS[@]}"; do exec {fd}>&-; done
	EATERS=()
}
# item UID NAME: how much the account has. limit UID NAME: how much it may have.
account() { sed -n "s|^$1\( .*\)* $2=\([0-9]*\)/\([a-z0-9]*\).*|\\$3|p" "$MNT/accounts"; }
item() { local n; n=$(account "uid=$1" "$2" 2); echo "${n:-0}"; }
limit() { account "uid=$1" "$2" 3; }
# What all but root may have together.
users_limit() { account users "$1" 3; }
# All that the user had was given back.
is_empty() { ! grep -q "^uid=$1 " "$MNT/accounts"; }

# Another user, and root, make and use what there is of verbs.
others_go_on()
{
	local uid
	for uid in $BOB 0; do
		# shellcheck disable=SC2016 # for the other shell
		as "$uid" bash -e -c 'cd "$1"
			mkdir pd/go cq/go mr/go qp/{go,peer}
			echo create device=rxe0 >pd/go/ctl
			echo create device=rxe0 cqe=64 >cq/go/ctl
			echo create pd=go size=64K access=local_write >mr/go/ctl
			for q in go peer; do echo create type=rc pd=go cq=go sq=8 rq=8 >qp/$q/ctl; done
			exec 3<cq/go/ring 4<qp/go/sq
			echo connect peer=peer >qp/go/ctl
			echo hello >qp/go/send
			[ "$(timeout 10 head -1 qp/peer/recv)" = hello ]
			exec 3<&- 4<&-
			rmdir qp/{go,peer} mr/go cq/go pd/go
			exec 3<>rxe0/uverbs' go_on "$MNT" || fail "user $uid can't go on"
	done
}

@test "open files" {
	eat $EVE files
	[ "$ate $refusal" = "500 EDQUOT" ] || fail "$ate $refusal"
	[ "$(item $EVE files)/$(limit $EVE files)" = 500/500 ]
	grep -q "^EDQUOT: files: user $EVE has 500 of them, as many as limits.user_files" "$MNT/errors"
	grep -qx "ibfs_account_used{uid=\"$EVE\",peer=\"\",item=\"files\"} 500" "$MNT/metrics"
	grep -qx "ibfs_account_limit{uid=\"$EVE\",peer=\"\",item=\"files\"} 500" "$MNT/metrics"
	[ "$(as $BOB cat "$MNT/rxe0/1/state")" = '4: ACTIVE' ]
	eat 0 files 600
	[ "$ate" = 600 ]
	[ "$(limit 0 files)" = unlimited ]
	let_go
	wait_for is_empty $EVE
}

@test "queues and rings: memory" {
	local before after what
	for what in large_rings uverbs_cqs; do
		before=$(awk '/^VmRSS/ { print $2 }' "/proc/$IBFS_PID/status")
		eat $EVE $what 20
		[ "$ate" -lt 4 ] || fail "$what: $ate of them"
		[ "$(limit $EVE memory)" = $((256 << 20)) ]
		[ "$(item $EVE memory)" -gt $((128 << 20)) ]
		after=$(awk '/^VmRSS/ { print $2 }' "/proc/$IBFS_PID/status")
		[ $((after - before)) -lt $((300 << 10)) ] || fail "$((after - before)) KiB more"
		tail -1 "$MNT/errors" | grep -q "^EDQUOT: .*memory: user $EVE has .*limits.user_memory"
		others_go_on
		let_go
		wait_for is_empty $EVE
	done
}

@test "queues that nobody maps" {
	eat $EVE qps 100
	[ "$refusal" = EDQUOT ]
	[ "$ate" -lt 20 ] || fail "$ate QPs of 16384 requests"
	others_go_on
	let_go
	wait_for is_empty $EVE
}

@test "descriptors: one user has a quarter, and all users leave some to root" {
	local what uid
	[ "$(users_limit descriptors)" = 1293 ]
	for what in small_rings mrs contexts; do
		eat $EVE $what
		[ "$refusal" = EDQUOT ]
		[ "$(item $EVE descriptors)/$(limit $EVE descriptors)" = 323/323 ]
		grep -q "^EDQUOT: .*descriptors: user $EVE has 323 and wants 1 more" "$MNT/errors"
		others_go_on
		let_go
		wait_for is_empty $EVE
	done
	for uid in 1001 1002 1003 1004; do eat "$uid" small_rings; done
	eat $EVE small_rings
	[ "$ate" = 1 ] || fail "the fifth user got $ate"
	grep -q "^EDQUOT: .*descriptors: users have 1293 together: what is left is root's" "$MNT/errors"
	eat 0 small_rings 100
	[ "$ate" = 100 ]
	let_go
	for uid in 1001 1002 1003 1004 $EVE; do wait_for is_empty "$uid"; done
}

@test "memory is registered in whole pages" {
	# shellcheck disable=SC2016 # for the other shell
	as $EVE bash -c 'ulimit -l 100; exec "$0" "$1" mrs 100 </dev/null' "$IBFS_DIR/eat" "$MNT" >"$BATS_TEST_TMPDIR/out"
	[ "$(cat "$BATS_TEST_TMPDIR/out")" = "25 mrs ENOMEM" ]
	wait_for is_empty $EVE
}

@test "mappings: a share of vm.max_map_count" {
	local most users
	most=$(sysctl -n vm.max_map_count)
	users=$(users_limit mappings)
	[ $((users * 10 / 9)) -le "$most" ] && [ $((users * 100 / 80)) -gt "$most" ]
	eat $EVE contexts 10
	[ "$(item $EVE mappings)" = 10 ]
	[ "$(limit $EVE mappings)" = $((users / 4)) ]
	let_go
	wait_for is_empty $EVE
}

# Another user, and root, over 9P.
others_go_on_9p()
{
	local uid
	for uid in $BOB 0; do
		[ "$(as "$uid" timeout 20 "$IBFS_DIR/p9" -s "$SOCKS/9p" cat rxe0/1/state)" = '4: ACTIVE' ] ||
			fail "user $uid can't go on"
	done
}

@test "connections of 9P: a quarter of what users have" {
	local what users
	users=$(users_limit connections)
	[ "$users" = 922 ]
	# 16 times as many as it gets, and none of them says a word.
	eat_9p "$SOCKS/9p" $EVE silent 900
	wait_for file_has "$MNT/accounts" "^uid=$EVE .* connections=230/230 "
	wait_for file_has "$MNT/errors" "^EDQUOT: connections: user $EVE has 230 of them, as many as limits.user_connections"
	others_go_on_9p
	# TCP clients are the same user, and have an account for their address.
	eat_9p "$TCP" $BOB connections
	[ "$ate" = 230 ] || fail "$ate"
	[ "$(account "uid=$EVE peer=127.0.0.1" connections 2)" = 230 ]
	grep -q "^ibfs_account_used{uid=\"$EVE\",peer=\"127.0.0.1\",item=\"connections\"} 230" "$MNT/metrics"
	others_go_on_9p
	# With more users all have 922, and root has the rest.
	for uid in 1001 1002 1003; do eat_9p "$SOCKS/9p" "$uid" connections; done
	[ "$(account users connections 2)" = 922 ]
	[ "$(timeout 20 "$IBFS_DIR/p9" -s "$SOCKS/9p" cat rxe0/1/state)" = '4: ACTIVE' ]
	eat_9p "$SOCKS/9p" 0 connections 80
	[ "$ate" = 80 ]
	let_go
	wait_for is_empty $EVE
	wait_for is_empty "$EVE peer"
	wait_for file_has "$MNT/accounts" "^users .* connections=0/922 "
}

@test "fids and waiting requests of 9P" {
	eat_9p "$SOCKS/9p" $EVE fids
	[ "$ate $refusal" = "499 EDQUOT" ] || fail "$ate $refusal"
	[ "$(item $EVE fids)" = 500 ]
	[ "$(item $EVE memory)" -gt $((500 * 200)) ]
	others_go_on_9p
	let_go
	wait_for is_empty $EVE
	eat_9p "$SOCKS/9p" $EVE waits
	[ "$ate $refusal" = "1024 EAGAIN" ] || fail "$ate $refusal"
	[ "$(item $EVE memory)" -gt $((1024 * 200)) ]
	let_go
	wait_for is_empty $EVE
}

@test "a user for whom root attached has a share of root's connection" {
	eat_9p "$SOCKS/9p" 0 shared_waits
	[ "$ate $refusal" = "256 EAGAIN" ] || fail "$ate $refusal"
	let_go
	wait_for is_empty $EVE
}
