# SPDX-License-Identifier: BSD-2-Clause
# mad/: MAD agents by text, from a shell.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

mad() { echo "$MNT/rxe0/1/mad/$1"; }
# bytes HEX...: as they are.
bytes() { local b; for b; do printf '%b' "\\x$b"; done; }
zeros() { head -c "$1" /dev/zero; }
# A Get(NodeInfo), directed route, of as many hops as said: header and MAD.
get_node_info()
{
	bytes 00 00 00 00 00 00 00 00 e8 03 00 00	# id, status, timeout_ms 1000
	zeros 16					# retries, length, qpn, qkey
	bytes ff ff					# lid
	zeros 34
	bytes 01 81 01 01 00 00 00 "0$1" 00 00 00 00 00 00 00 "${2:-01}" 00 11
	zeros 14
	bytes ff ff ff ff
	zeros 93
	bytes 01 02					# initial path
	zeros 125
}

@test "an agent registers, sends, and receives the answer" {
	local n
	exec 5<>"$(mad clone)"
	read -r -u 5 n
	[[ $n =~ ^[1-9][0-9]*$ ]]
	[ "$(ls "$(mad "$n")")" = $'ctl\ndata\nstatus' ]
	grep -qx 'state unregistered' "$(mad "$n/status")"
	echo 'register class=0x81' >&5
	grep -qx 'state registered' "$(mad "$n/status")"
	grep -qx 'class 0x81' "$(mad "$n/status")"
	grep -qx 'qpn 0' "$(mad "$n/status")"
	exec 6<>"$(mad "$n/data")"
	get_node_info 1 | dd bs=320 iflag=fullblock status=none >&6
	dd bs=320 count=1 status=none <&6 >"$BATS_TEST_TMPDIR/answer"
	exec 6>&- 5>&-
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/answer")" = 320 ]
	# GetResp, status "directed, going back", and NodeType 2: the switch.
	[ "$(od -An -tx1 -j64 -N6 "$BATS_TEST_TMPDIR/answer")" = ' 01 81 01 81 80 00' ]
	[ "$(od -An -tx1 -j130 -N1 "$BATS_TEST_TMPDIR/answer")" = ' 02' ]
	[ ! -e "$(mad "$n")" ]
}

@test "agents have numbers of their own, and go with their last file" {
	local a b
	exec 5<>"$(mad clone)" 6<>"$(mad clone)"
	read -r -u 5 a
	read -r -u 6 b
	[ "$a" != "$b" ]
	[ -d "$(mad "$a")" ] && [ -d "$(mad "$b")" ]
	[ ! -e "$MNT/rxe1/1/mad/$a" ]
	exec 7<>"$(mad "$a/ctl")"
	exec 5>&-
	[ -d "$(mad "$a")" ]
	read -r -u 7 n
	[ "$n" = "$a" ]
	exec 6>&- 7>&-
	[ "$(ls "$(mad .)")" = clone ]
}

@test "what ctl refuses" {
	local n line
	exec 5<>"$(mad clone)"
	read -r -u 5 n
	for line in register\ class=256 'register qpn=2' 'register class=0x81 qpn=1' 'register what' \
		'register class=4 methods=128' 'register class=4 methods=' 'register class=4 methods=1,,2' \
		'register class=0x81 rmpp=1' unregister 'unregister now' fly; do
		run bash -c "echo '$line' >&5"
		[ "$status" -ne 0 ] || fail "$line"
		[[ $output == *'Invalid argument'* ]] || fail "$line: $output"
	done
	grep -qx 'refused fly: EINVAL' "$(mad "$n/status")"
	echo 'register class=4 methods=1,0x2 version=1' >&5
	grep -qx 'methods 0x01,0x02' "$(mad "$n/status")"
	run bash -c "echo 'register class=5' >&5"
	[[ $output == *'busy'* ]]
	exec 6<>"$(mad clone)"
	run bash -c "echo 'register class=4 methods=2' >&6"
	[[ $output == *'Invalid argument'* ]]
	echo unregister >&5
	echo 'register class=4 methods=2' >&6
	exec 5>&- 6>&-
}

@test "only its maker and root" {
	need_root
	need_tool setpriv
	chmod 755 "$IBFS_DIR"
	as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	run as_user dd if="$(mad clone)" count=0
	[[ $output == *'Permission denied'* ]]
	chmod 666 "$(mad clone)"
	# shellcheck disable=SC2016
	run -0 as_user bash -c 'exec 5<>"$0/clone"; read -r -u 5 n; stat -c "%u %a" "$0/$n/data"
		exec 6<>"$0/$n/data"; echo "register class=4" >&5 && grep state "$0/$n/status"' "$(mad .)"
	[ "$output" = $'65534 600\nstate registered' ]
	exec 5<>"$(mad clone)"
	read -r -u 5 n
	run as_user dd if="$(mad "$n/data")" count=0
	[[ $output == *'Permission denied'* ]]
	exec 5>&-
}

@test "the device goes" {
	local n
	exec 5<>"$MNT/rxe1/1/mad/clone"
	read -r -u 5 n
	echo 'register class=4' >&5
	exec 6<>"$MNT/rxe1/1/mad/$n/data"
	spawn reader sh -c 'cat <&6'
	echo remove >"$MNT/rxe1/ctl"
	wait_for is_gone "$(spawned reader)"
	run bash -c "echo 'register class=5' >&5"
	[ "$status" -ne 0 ]
	exec 5>&- 6>&-
	# One of the system's comes again by itself.
	! is_soft || echo 'device rxe1 name=rxe1' >"$MNT/fabric/ctl"
	wait_for test -e "$MNT/rxe1/1/state"
}
