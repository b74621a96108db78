# SPDX-License-Identifier: BSD-2-Clause
# saquery against OpenSM's SA: the device cuts and joins RMPP, so answers of many
# MADs come whole.
load helpers

setup_file()
{
	have_tools saquery opensm || return 0
	# 100 hosts: node records are 100 times 112 bytes
	mkdir -p "$BATS_FILE_TMPDIR"
	"$BUILD/tests/gentopo" fat2 10 10 5 20 >"$BATS_FILE_TMPDIR/fat.net"
	cat >"$BATS_FILE_TMPDIR/fat.conf" <<-END
	subnet = "sm";
	topology = "fat.net";
	devices = ( { name = "rxe0"; node = "H-0002c90300000000"; },
	            { name = "rxe1"; node = "H-0002c90300000050"; } );
	END
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm rxe0
	wait_for file_is "$MNT/rxe1/1/state" "4: ACTIVE"
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }

@test "node records: all 115, from the SM's own port and from another" {
	local dev
	for dev in rxe0 rxe1; do
		run -0 ib saquery -C "$dev" NR
		[ "$(grep -c '^NodeRecord dump' <<<"$output")" = 115 ] || fail "$output"
		assert_line 'NodeDescription\.+host00099'
	done
}

@test "a node record by LID" {
	run -0 ib saquery NR "$(lid_of rxe1)"
	[ "$(grep -c '^NodeRecord dump' <<<"$output")" = 1 ]
	assert_line 'node_guid\.+0x0002c90300000050'
}

@test "the node descriptions of all CAs" {
	run -0 ib saquery -D
	[ "$(grep -c host <<<"$output")" = 100 ] || fail "$output"
}

@test "LIDs and GUIDs by name" {
	run -0 ib saquery -l host00005
	[ "$output" = "$(lid_of rxe1)" ]
	run -0 ib saquery -G host00005
	assert_line '0x0002c90300000051'
	run -0 ib saquery -O "$(lid_of rxe1)"
	[ "$output" = host00005 ]
}

@test "a path record between two hosts" {
	run -0 ib saquery PR --slid "$(lid_of rxe0)" --dlid "$(lid_of rxe1)"
	assert_line "slid\.+$(lid_of rxe0)$"
	assert_line "dlid\.+$(lid_of rxe1)$"
	assert_line 'dgid\.+fe80::2:c903:0:51'
	assert_line 'mtu\.+0x85'
	run -0 ib saquery --src-to-dst host00000:host00005
	assert_line "dlid\.+$(lid_of rxe1)$"
}

@test "path records of all pairs: thousands, far more than one MAD" {
	run -0 ib saquery -C rxe1 PR
	[ "$(grep -c '^PathRecord dump' <<<"$output")" -ge 10000 ] ||
		fail "$(grep -c '^PathRecord dump' <<<"$output") records"
}

@test "port records" {
	run -0 ib saquery PIR
	[ "$(grep -c '^PortInfoRecord dump' <<<"$output")" = 415 ] ||
		fail "$(grep -c "^PortInfoRecord dump" <<<"$output")"
}

@test "link records: each link from both ends" {
	run -0 ib saquery LR
	[ "$(grep -c '^LinkRecord dump' <<<"$output")" = 400 ] ||
		fail "$(grep -c '^LinkRecord dump' <<<"$output")"
}

@test "forwarding tables, switch records, SM record, P_Keys, SL2VL, VL arbitration, GUIDs" {
	run -0 ib saquery LFTR
	assert_line '^LFT Record dump'
	run -0 ib saquery SWIR
	[ "$(grep -c '^SwitchInfoRecord dump' <<<"$output")" = 15 ] || fail "$output"
	run -0 ib saquery SMIR
	assert_line 'GUID\.+0x0002c90300000001'
	run -0 ib saquery --smkey 1 PKTR "$(lid_of rxe1)"
	assert_line '0xffff'
	run -0 ib saquery SL2VL "$(lid_of rxe1)"
	run -0 ib saquery VLAR "$(lid_of rxe1)"
	run -0 ib saquery GIR "$(lid_of rxe1)"
	assert_line '0x0002c90300000051'
}

@test "multicast groups" {
	run -0 ib saquery -g
	assert_line 'MGID\.+ff12:401b:ffff::ffff:ffff'
	assert_line 'Mlid\.+0xC000'
	run -0 ib saquery MCMR
}

@test "the SA's class port info" {
	run -0 ib saquery -c
	assert_line 'Base version\.+1'
	assert_line 'Class version\.+2'
}

@test "service and inform records: none yet" {
	run ib saquery SR
	refute_line 'ServiceRecord dump'
	run ib saquery IIR
	refute_line 'timed? ?out'
}

@test "smpquery, ibaddr and ibping by GUID resolve through the SA" {
	run -0 ib smpquery -G nodeinfo 0x0002c90300000051
	assert_line '^Guid:\.+0x0002c90300000050$'
	run -0 ib ibtracert -G 0x0002c90300000001 0x0002c90300000051
	assert_line 'host00005'
}

@test "two queries at a time from one port" {
	local one two
	ib saquery -C rxe1 PR >"$BATS_TEST_TMPDIR/one" 3>&- &
	one=$!
	ib saquery -C rxe1 PR >"$BATS_TEST_TMPDIR/two" 3>&- &
	two=$!
	wait $one
	wait $two
	[ "$(grep -c '^PathRecord' "$BATS_TEST_TMPDIR/one")" -ge 10000 ]
	cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two"
}

@test "OpenSM's log has no error" {
	run ! grep -E ' ERR | -E- ' "$IBFS_DIR/sm.osm.log"
}
