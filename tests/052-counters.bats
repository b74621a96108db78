# SPDX-License-Identifier: BSD-2-Clause
# Counters that a topology file sets, as perfquery shows them, and what a port
# says of itself to tools: its widths and speeds.
load helpers

setup_file()
{
	have_tools perfquery || return 0
	cat >"$BATS_FILE_TMPDIR/small.net" <<-'END'
	Switch 4 "s"
	[1] "a"[1] w=2 s=7 e=15
	[2] "b"[1] w=16 s=7 e=3

	Ca 1 "a"
	[1] "s"[1] w=2 s=7 e=15

	Ca 1 "b"
	[1] "s"[2] w=16 s=7 e=3

	do PerformanceSet "s"[1] PortCounters.SymbolErrorCounter=65536
	do PerformanceSet "s"[1] PortRcvErrorDetails.PortLoopingErrors=7
	do PerformanceSet "s"[1] PortXmitDiscardDetails.PortSwHOQLifetimeLimitDiscards=8
	do PerformanceSet "s"[1] PortOpRcvCounters.PortOpRcvData=70000
	do PerformanceSet "s"[1] PortFlowCtlCounters.PortRcvFlowPkts=9
	do PerformanceSet "s"[1] PortVLOpPackets.PortVLOpPackets15=10
	do PerformanceSet "s"[1] PortVLOpData.PortVLOpData0=11
	do PerformanceSet "s"[1] PortVLXmitFlowCtlUpdateErrors.PortVLXmitFlowCtlUpdateErrors2=2
	do PerformanceSet "s"[1] PortVLXmitWaitCounters.PortVLXmitWait15=12
	END
	cat >"$BATS_FILE_TMPDIR/small.conf" <<-'END'
	topology = "small.net";
	devices = ( { name = "rxe0"; node = "a"; }, { name = "sw0"; node = "s"; } );
	END
	start_ibfs "$BATS_FILE_TMPDIR/small.conf"
}

teardown_file() { stop_ibfs; }

switch_lid() { printf '%d\n' "$(cat "$MNT/sw0/0/lid")"; }

# shows OPTION FIELD VALUE: perfquery of the switch's port 1
shows()
{
	run -0 ib perfquery "$1" "$(switch_lid)" 1
	assert_line "^$2:\\.+$3\$"
}

@test "what a topology file sets, each counter in its attribute" {
	run -0 ib perfquery "$(switch_lid)" 1
	assert_line '^SymbolErrorCounter:\.+65535$'
	shows --rcverr PortLoopingErrors 7
	shows --xmtdisc PortSwHOQLifetimeLimitDiscards 8
	shows --oprcvcounters PortOpRcvData 70000
	shows --flowctlcounters PortRcvFlowPkts 9
	shows --vloppackets PortVLOpPackets15 10
	shows --vlopdata PortVLOpData0 11
	shows --vlxmitflowctlerrors PortVLXmitFlowCtlUpdateErrors2 2
	shows --vlxmitcounters PortVLXmitWait15 12
}

@test "perfquery -R clears them" {
	run -0 ib perfquery --rcverr -R "$(switch_lid)" 1
	shows --rcverr PortLoopingErrors 0
	run -0 ib perfquery --vlxmitcounters -R "$(switch_lid)" 1
	shows --vlxmitcounters PortVLXmitWait15 0
}

@test "widths and speeds, and the capabilities that go with them" {
	run -0 ib smpquery portinfo "$(switch_lid)" 0
	assert_line 'IsLinkWidth2xSupported'
	assert_line 'IsLinkSpeedHDRSupported'
	run -0 ib smpquery portinfo "$(switch_lid)" 1
	assert_line '^LinkSpeedExtActive:\.+106.25 Gbps$'
	run -0 ib smpquery portinfo "$(switch_lid)" 2
	assert_line '^LinkWidthActive:\.+2X$'
	assert_line '^LinkSpeedExtActive:\.+25.78125 Gbps$'
}

@test "an attribute that the agent doesn't have is refused, not left unanswered" {
	run ! ib perfquery --swportvlcong "$(switch_lid)" 1
	run ! ib perfquery --xmtsl "$(switch_lid)" 1
	[[ $output != *timed* ]] || fail "$output"
}
