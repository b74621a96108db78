# SPDX-License-Identifier: BSD-2-Clause
# The suites of verbs from a shell, on the system's devices. Left out: what no process
# has on them (XRC of the rxe driver, fast registration, rings, masked atomics), and
# tests that turn to the fabric of their own tree (path migration, multicast LIDs).
load helpers
load nested

setup_file() { nested_can || return 0; }

# suite FILE TEST...: the tests of the file by their names
suite()
{
	local file=$1 count path
	shift
	count=$#
	# bats puts its own parts, of which one is called bats, in front.
	path=$(tr : '\n' <<<"$PATH" | grep -v libexec/bats | paste -sd :)
	run env -i PATH="$path" HOME="${HOME:-/}" TMPDIR="${TMPDIR:-/tmp}" IBFS_BUILD="$BUILD" \
		IBFS_NESTED=1 bats --tap -f "^($(IFS='|'; echo "$*"))\$" "$TOP/tests/$file" 3>&-
	assert_status 0
	[ "$(grep -c '^ok ' <<<"$output")" = "$count" ] || fail "$output"
	! grep '# skip' <<<"$output"
}

@test "310-native" {
	suite 310-native.bats "send and receive, immediate data, both atomics" \
		"send and recv files" "datagrams by an address handle, and back from the completion" \
		"an SRQ shared by two QPs, its limit event" "memory windows of both types" \
		"CQ events: notify, solicited, at N" "mr/N/data keeps its size" \
		"names, numbers, order" "a ctl write stops at the line that fails" \
		"another user's objects can't be used" "memory is counted against RLIMIT_MEMLOCK"
}

@test "311-native-special" {
	suite 311-native-special.bats "raw packets from a port to another's raw QPs"
}

@test "312-native-statuses" {
	suite 312-native-statuses.bats \
		"local errors: loc_len_err, loc_qp_op_err, loc_prot_err, wr_flush_err, mw_bind_err" \
		"remote errors: rem_inv_req_err, rem_access_err, rem_op_err, loc_access_err" \
		"bad_resp_err" "a send queue's error of UD: SQE, and back"
}

@test "315-names" {
	suite 315-names.bats "attr has the attributes" "the flags are those that the manual says are set"
}
