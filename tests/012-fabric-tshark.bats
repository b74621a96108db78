# SPDX-License-Identifier: BSD-2-Clause
# Bytes on the wire, judged by tshark.
load helpers

setup_file()
{
	ctest fabric-wire pcap >"$BATS_FILE_TMPDIR/wire.pcap"
}

# fields NAME...: of each packet, a line.
fields()
{
	local args=()
	for name; do args+=(-e "$name"); done
	tshark -r "$BATS_FILE_TMPDIR/wire.pcap" -T fields "${args[@]}" 2>/dev/null
}

@test "tshark finds no malformed packet" {
	need_tool tshark
	run tshark -r "$BATS_FILE_TMPDIR/wire.pcap" -V
	assert_status 0
	refute_line '[Mm]alformed|Expert Info'
	run tshark -r "$BATS_FILE_TMPDIR/wire.pcap"
	assert_line 'RC RDMA Write Only QP=0x87b1b3'
	assert_line 'SubnGet\(NodeInfo\)'
	assert_line 'PERF \(ClassPortInfo\)'
}

@test "tshark sees the segments of messages" {
	need_tool tshark
	run tshark -r "$BATS_FILE_TMPDIR/wire.pcap"
	[ "$(grep -c 'Send Middle' <<<"$output")" = 4 ]
	[ "$(grep -c 'RDMA Read Response Middle' <<<"$output")" = 2 ]
	assert_line 'RC Send Last Immediate'
	assert_line 'RC RDMA Write Last Immediate'
	assert_line 'RC Send Last Invalidate'
	run fields infiniband.bth.psn
	[ "$(sed -n 4,7p <<<"$output" | tr '\n' ' ')" = '16777214 16777215 0 1 ' ]
}

@test "tshark reads the example's ICRC and lengths" {
	need_tool tshark
	run fields infiniband.invariant.crc infiniband.lrh.pktlen infiniband.bth.padcnt
	[ "${lines[0]}" = $'0x9625b75a\t14\t2' ]
}
