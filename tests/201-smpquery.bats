# SPDX-License-Identifier: BSD-2-Clause
# smpquery and smpdump, by LID, by GUID, by directed and by combined route.
load helpers

setup_file()
{
	have_tools smpquery || return 0
	fat_tree "$BATS_FILE_TMPDIR" static
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }

@test "nodeinfo of a CA, by LID" {
	run -0 ib smpquery nodeinfo "$(lid_of rxe1)"
	assert_line '^BaseVers:\.+1$'
	assert_line '^ClassVers:\.+1$'
	assert_line '^NodeType:\.+Channel Adapter$'
	assert_line '^NumPorts:\.+1$'
	assert_line '^SystemGuid:\.+0x0002c90300000050$'
	assert_line '^Guid:\.+0x0002c90300000050$'
	assert_line '^PortGuid:\.+0x0002c90300000051$'
	assert_line '^PartCap:\.+[1-9]'
	assert_line '^LocalPort:\.+1$'
}

@test "nodeinfo of a switch, by directed route" {
	run -0 ib smpquery -D nodeinfo 0,1
	assert_line '^NodeType:\.+Switch$'
	assert_line '^NumPorts:\.+8$'
	assert_line '^Guid:\.+0x0008f10500000000$'
	assert_line '^LocalPort:\.+1$'
}

@test "nodeinfo of the node itself" {
	run -0 ib smpquery -D nodeinfo 0
	assert_line '^Guid:\.+0x0002c90300000000$'
	run -0 ib smpquery -C rxe1 -D nodeinfo 0
	assert_line '^Guid:\.+0x0002c90300000050$'
	run -0 ib smpquery nodeinfo "$(lid_of rxe0)"
	assert_line '^Guid:\.+0x0002c90300000000$'
}

@test "nodeinfo at the end of a route of four hops" {
	run -0 ib smpquery -D nodeinfo 0,1,5,3,2
	assert_line '^Guid:\.+0x0002c90300000050$'
}

@test "a directed route that leads nowhere is an error" {
	run ib smpquery -t 100 -D nodeinfo 0,2
	[ "$status" != 0 ]
	run ib smpquery -t 100 -D nodeinfo 0,1,99
	[ "$status" != 0 ]
}

@test "nodeinfo by combined route" {
	run -0 ib smpquery -c nodeinfo "$(lid_of sw0)" 0,3
	assert_line '^Guid:\.+0x0002c90300000020$'
}

@test "nodeinfo by GUID needs an SA, and says so" {
	run ib smpquery -t 100 -G nodeinfo 0x0002c90300000051
	[ "$status" != 0 ]
}

@test "nodedesc" {
	run -0 ib smpquery nodedesc "$(lid_of rxe1)"
	[[ $output =~ ^Node\ Description:\.+host00005$ ]] || fail "$output"
	run -0 ib smpquery -D nodedesc 0,1,5
	[[ $output =~ spine0000 ]] || fail "$output"
}

@test "nodedesc follows what is written to node_desc" {
	echo "my host" >"$MNT/rxe1/node_desc"
	run -0 ib smpquery nodedesc "$(lid_of rxe1)"
	[[ $output =~ my\ host ]] || fail "$output"
	echo "host00005" >"$MNT/rxe1/node_desc"
}

@test "portinfo of a CA" {
	run -0 ib smpquery portinfo "$(lid_of rxe1)"
	assert_line "^Lid:\.+$(lid_of rxe1)$"
	assert_line '^GidPrefix:\.+0xfe80000000000000$'
	assert_line '^LinkState:\.+Active$'
	assert_line '^PhysLinkState:\.+LinkUp$'
	assert_line '^LinkWidthActive:\.+4X$'
	assert_line '^LinkSpeedExtActive:\.+25.78125 Gbps$'
	assert_line '^LMC:\.+0$'
	assert_line '^NeighborMTU:\.+4096$'
	assert_line '^GuidCap:\.+[1-9]'
	assert_line '^LocalPort:\.+1$'
}

@test "portinfo of a switch's port 0 and of its external ports" {
	run -0 ib smpquery portinfo "$(lid_of sw0)" 0
	assert_line "^Lid:\.+$(lid_of sw0)$"
	assert_line '^LinkState:\.+Active$'
	run -0 ib smpquery portinfo "$(lid_of sw0)" 5
	assert_line '^LinkState:\.+Active$'
	assert_line '^LocalPort:\.+'
	run ib smpquery -t 100 portinfo "$(lid_of sw0)" 9
	[ "$status" != 0 ] || fail "$output"
}

@test "portinfoextended" {
	run ib smpquery portinfoextended "$(lid_of rxe1)" 1
	[ -n "$output" ]
}

@test "switchinfo" {
	run -0 ib smpquery switchinfo "$(lid_of sw0)"
	assert_line '^LinearFdbCap:\.+[1-9][0-9]+$'
	assert_line '^McastFdbCap:\.+[1-9][0-9]+$'
	assert_line '^LinearFdbTop:\.+[1-9]'
	assert_line '^StateChange:\.+[01]$'
}

@test "switchinfo of a CA is refused" {
	run ib smpquery switchinfo "$(lid_of rxe1)"
	[ "$status" != 0 ]
}

@test "pkeys" {
	run -0 ib smpquery pkeys "$(lid_of rxe1)"
	assert_line '^ +0: 0xffff 0x0000'
	assert_line 'pkeys capacity for this port'
	run -0 ib smpquery pkeys "$(lid_of sw0)" 0
	assert_line '0xffff'
}

@test "sl2vl of a CA and of a switch" {
	run -0 ib smpquery sl2vl "$(lid_of rxe1)"
	assert_line '^# +SL:'
	assert_line '^ports: in  0, out  0:'
	run -0 ib smpquery sl2vl "$(lid_of sw0)" 1
	[ "$(grep -c 'out  1:' <<<"$output")" -ge 8 ] || fail "$output"
}

@test "vlarbitration" {
	run -0 ib smpquery vlarb "$(lid_of rxe1)"
	assert_line '^# Low priority VL Arbitration Table:'
	assert_line '^# High priority VL Arbitration Table:'
	run -0 ib smpquery vlarb "$(lid_of sw0)" 1
	assert_line 'VL Arbitration'
}

@test "guidinfo" {
	run -0 ib smpquery guidinfo "$(lid_of rxe1)"
	assert_line '^ +0: 0x0002c90300000051'
	assert_line 'guids capacity for this port'
}

@test "mlnxextportinfo, which only Mellanox devices have" {
	run ib smpquery -t 100 mepi "$(lid_of rxe1)"
	[ "$status" != 0 ]
}

@test "smpdump by LID" {
	run -0 ib smpdump "$(lid_of rxe1)" 0x11
	assert_line '^0101 0101 0002 c903 0000 0050'
	run -0 ib smpdump -s "$(lid_of rxe1)" 0x10
	assert_line '^host00005'
}

@test "smpdump by directed route" {
	run -0 ib smpdump -D 0,1 0x11
	assert_line '^0101 0208 0008 f105 0000 0000'
	run -0 ib smpdump -D 0,1 0x12
	[ "${#lines[@]}" -ge 4 ]
	run -0 ib smpdump -D 0,1 0x15 1
	[ "${#lines[@]}" -ge 4 ]
}

@test "smpdump of an attribute that there is not" {
	run ib smpdump "$(lid_of rxe1)" 0xfe00
	[ "$status" != 0 ] || assert_line 'status|0000'
}
