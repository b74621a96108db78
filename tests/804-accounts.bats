# SPDX-License-Identifier: BSD-2-Clause
# One user uses up everything, and is stopped: root and other users go on, and all
# is given back when it ends. tests/eat.c takes what there is.
load helpers

setup_file()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 0; }
	have_tools setpriv || return 0
	echo 'limits = { user_files = 500; };' >"$BATS_FILE_TMPDIR/conf"
	start_ibfs "$BATS_FILE_TMPDIR/conf"
	chmod 755 "$IBFS_DIR"
	install -m 755 "$BUILD/tests/eat" "$IBFS_DIR/eat"
}
teardown_file() { stop_ibfs; }
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
# eat UID RESOURCE [COUNT]: $ate and $refusal are what it says; it holds all until
# `let_go`.
eat()
{
	local fd name="eat$1$2${#EATERS[@]}"
	mkfifo "$BATS_TEST_TMPDIR/$name"
	as "$1" "$IBFS_DIR/eat" "${EAT_AT:-$MNT}" "${@:2}" <"$BATS_TEST_TMPDIR/$name" \
		>"$BATS_TEST_TMPDIR/$name.out" 2>&1 3>&- &
	exec {fd}>"$BATS_TEST_TMPDIR/$name"
	EATERS+=("$fd")
	wait_for -t 60 file_has "$BATS_TEST_TMPDIR/$name.out" " $2 "
	read -r ate _ refusal <"$BATS_TEST_TMPDIR/$name.out"
}
let_go()
{
	local fd
	for fd in "${EATERS[@]}"; do exec {fd}>&-; done
	EATERS=()
}
# item UID NAME: how much the account has. limit UID NAME: how much it may have.
account() { sed -n "s|^uid=$1 .* $2=\([0-9]*\)/\([a-z0-9]*\).*|\\$3|p" "$MNT/accounts"; }
item() { local n; n=$(account "$1" "$2" 1); echo "${n:-0}"; }
limit() { account "$1" "$2" 2; }
# All that the user had was given back.
is_empty() { ! grep -q "^uid=$1 " "$MNT/accounts"; }

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
