# SPDX-License-Identifier: BSD-2-Clause
# Counters through PerfMgt MADs: perfquery and ibqueryerrors, and that they agree
# with the files.
load helpers

setup_file()
{
	have_tools perfquery || return 0
	fat_tree "$BATS_FILE_TMPDIR" static
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }
value() { sed -n "s/^$1:\.*\([0-9]*\)\$/\1/p" <<<"$output"; }

# perfquery's own MADs count: the counters move by themselves.
traffic() { ib smpquery -C rxe0 nodedesc "$(lid_of rxe1)" >/dev/null; ib perfquery -C rxe0 "$(lid_of rxe1)" 1 >/dev/null; }

@test "perfquery of the local port" {
	run -0 ib perfquery
	assert_line "^# Port counters: Lid $(lid_of rxe0) port 1 \(CapMask: 0x[0-9A-F]+\)"
	assert_line '^PortSelect:\.+1$'
	assert_line '^SymbolErrorCounter:\.+0$'
	assert_line '^PortXmitData:\.+[0-9]+$'
	assert_line '^PortXmitWait:\.+[0-9]+$'
}

@test "perfquery of another port: packets are counted there" {
	local before
	run -0 ib perfquery "$(lid_of rxe1)" 1
	before=$(value PortRcvPkts)
	traffic
	run -0 ib perfquery "$(lid_of rxe1)" 1
	[ "$(value PortRcvPkts)" -gt "$before" ]
	[ "$(value PortRcvData)" -gt 0 ]
}

@test "perfquery -x: 64 bit counters, unicast and multicast" {
	traffic
	run -0 ib perfquery -x "$(lid_of rxe1)" 1
	assert_line '^# Port extended counters: Lid'
	[ "$(value PortRcvPkts)" -gt 0 ]
	[ "$(value PortUnicastRcvPkts)" = "$(value PortRcvPkts)" ] || fail "$output"
	[ "$(value PortMulticastRcvPkts)" = 0 ]
}

@test "perfquery -R resets, -r reads and resets" {
	traffic
	run -0 ib perfquery -R "$(lid_of rxe1)" 1
	run -0 ib perfquery "$(lid_of rxe1)" 1
	# The answer to -R and the question just asked.
	[ "$(value PortRcvPkts)" -le 2 ] || fail "$output"
	traffic
	run -0 ib perfquery -r "$(lid_of rxe1)" 1
	[ "$(value PortRcvPkts)" -gt 2 ]
	run -0 ib perfquery "$(lid_of rxe1)" 1
	[ "$(value PortRcvPkts)" -le 2 ] || fail "$output"
	run -0 ib perfquery -x -R "$(lid_of rxe1)" 1
	run -0 ib perfquery -x "$(lid_of rxe1)" 1
	[ "$(value PortRcvPkts)" -le 2 ] || fail "$output"
}

@test "perfquery -R with a mask resets only what it names" {
	traffic
	# 0x1000: data sent
	run -0 ib perfquery -R "$(lid_of rxe1)" 1 0x1000
	run -0 ib perfquery "$(lid_of rxe1)" 1
	[ "$(value PortXmitData)" -lt "$(value PortRcvData)" ] || fail "$output"
	[ "$(value PortRcvPkts)" -gt 2 ]
}

@test "perfquery -a: all ports of a switch in one" {
	traffic
	run -0 ib perfquery -a "$(lid_of sw0)"
	assert_line '^# Port counters: Lid [0-9]+ port 255'
	[ "$(value PortRcvPkts)" -gt 0 ] || fail "$output"
}

@test "perfquery -l -a: each port of a switch" {
	run -0 ib perfquery -l -a "$(lid_of sw0)"
	[ "$(grep -c '^# Port counters: Lid' <<<"$output")" = 8 ] || fail "$output"
}

@test "perfquery of a range of ports" {
	run -0 ib perfquery "$(lid_of sw0)" 1-3
	[ "$(grep -c '^# Port counters: Lid' <<<"$output")" = 3 ] || fail "$output"
}

@test "perfquery -c: the sampling mechanism" {
	run -0 ib perfquery -c "$(lid_of rxe1)" 1
	assert_line '^# PortSamplesControl: Lid'
	assert_line '^SampleMechanisms:'
}

@test "perfquery of a port that there is not" {
	run ib perfquery -t 100 "$(lid_of rxe1)" 9
	[ "$status" != 0 ] || fail "$output"
}

@test "the files count what perfquery counts" {
	local file
	run -0 ib perfquery -x "$(lid_of rxe1)" 1
	file=$(cat "$MNT/rxe1/1/counters/port_rcv_packets")
	# The answer itself isn't counted in itself, nothing else runs.
	[ $((file - $(value PortRcvPkts))) -le 1 ] || fail "file $file" "$output"
	[ "$(value PortRcvPkts)" -le "$file" ]
}

@test "0 written to a counter's file resets it" {
	echo 0 >"$MNT/rxe1/1/counters/port_rcv_packets"
	[ "$(cat "$MNT/rxe1/1/counters/port_rcv_packets")" = 0 ]
}

@test "ibqueryerrors: nothing to report on a sound fabric" {
	run -0 ib ibqueryerrors --skip-sl
	assert_line '^## Summary: 22 nodes checked, 0 bad nodes found'
	assert_line '^## +80 ports checked, 0 ports have errors beyond threshold|ports checked, 0 ports'
}

@test "ibqueryerrors --counters: data counters of every port" {
	run -0 ib ibqueryerrors --skip-sl --counters
	assert_line 'host00005'
	assert_line 'PortXmitData'
}

@test "ibqueryerrors -K clears the counters" {
	traffic
	run -0 ib ibqueryerrors --skip-sl -K
	[ "$(cat "$SYSTEM_MNT/fabric/nodes/H-0002c90300000020/ports/1/counters/port_xmit_packets")" -le 4 ]
}

@test "ibqueryerrors tells of a link that loses packets" {
	local link i
	# the cable between host00005 and its leaf
	link=$(grep -lE 'H-0002c90300000050' "$SYSTEM_MNT"/fabric/links/*/ends 2>/dev/null | head -n 1)
	link=${link%/*}
	[ -n "$link" ] || fail "no link of host00005 in fabric/links"
	echo "corrupt=1" >"$link/ctl"
	for i in 1 2 3 4 5; do
		ib perfquery -t 20 "$(lid_of rxe1)" 1 >/dev/null 2>&1 || true
	done
	echo "corrupt=0" >"$link/ctl"
	run ib ibqueryerrors --skip-sl
	assert_line 'PortRcvErrors|SymbolErrorCounter|PortRcvRemotePhysicalErrors'
}
