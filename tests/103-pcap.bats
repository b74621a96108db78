# SPDX-License-Identifier: BSD-2-Clause
# Captures: a port's pcap is a stream that tshark reads live and from a file.
load helpers

setup_file()
{
	is_soft || { skip_file "packets are seen in a fabric of the daemon's own only"; return 0; }
	have_tools tshark smpquery || return 0
	start_ibfs
}
teardown_file() { stop_ibfs; }

query() { ib smpquery -D nodeinfo "$1" >/dev/null; }
dissect() { tshark -r "$@" 2>/dev/null; }

@test "tshark reads it live" {
	# spawn takes standard input away, so a shell of its own opens it.
	# shellcheck disable=SC2016
	spawn live sh -c 'exec tshark -l -n -i - -c 4 <"$0"' "$MNT/rxe0/1/pcap"
	wait_for file_has "$IBFS_DIR/live.log" 'Capturing|Capture started'
	query 0,1
	query 0,1
	wait_for -t 20 is_gone "$(spawned live)"
	[ "$(grep -c 'SubnGet(NodeInfo)' "$IBFS_DIR/live.log")" = 2 ]
	[ "$(grep -c 'SubnGetResp(NodeInfo)' "$IBFS_DIR/live.log")" = 2 ]
}

@test "what crosses a port, both ways, with the right checksums" {
	spawn cap cat "$MNT/rxe0/1/pcap"
	wait_for test -s "$IBFS_DIR/cap.log"
	query 0,1,2
	reap cap
	cp "$IBFS_DIR/cap.log" "$IBFS_DIR/cap.pcap"
	run -0 dissect "$IBFS_DIR/cap.pcap" -T fields -e erf.flags.cap -e infiniband.mad.attributeid
	[ "$output" = $'1\t0x0011\n0\t0x0011' ]
	[ -z "$(dissect "$IBFS_DIR/cap.pcap" -Y _ws.malformed)" ]
	run -0 dissect "$IBFS_DIR/cap.pcap" -V
	[[ $output != *incorrect* ]]
}

@test "the same packets at both ends of a link, and inside the fabric" {
	spawn a cat "$MNT/rxe0/1/pcap"
	spawn b cat "$MNT/fabric/switches/switch/ports/1/pcap"
	spawn c cat "$MNT/rxe1/1/pcap"
	for f in a b c; do wait_for test -s "$IBFS_DIR/$f.log"; done
	query 0,1
	query 0,1,2
	for f in a b c; do reap $f; cp "$IBFS_DIR/$f.log" "$IBFS_DIR/$f.pcap"; done
	[ "$(dissect "$IBFS_DIR/a.pcap" | wc -l)" = 4 ]
	[ "$(dissect "$IBFS_DIR/b.pcap" | wc -l)" = 4 ]
	[ "$(dissect "$IBFS_DIR/c.pcap" | wc -l)" = 2 ]
	# What one end sends the other receives.
	[ "$(dissect "$IBFS_DIR/a.pcap" -Y 'erf.flags.cap == 1' -T fields -e infiniband.mad.transactionid)" = \
		"$(dissect "$IBFS_DIR/b.pcap" -Y 'erf.flags.cap == 0' -T fields -e infiniband.mad.transactionid)" ]
}

@test "a reader that is too slow loses whole packets, counted" {
	local lost
	grep -qx 'ibfs_capture_dropped_packets_total 0' "$MNT/metrics"
	exec 5<"$MNT/rxe0/1/pcap"
	"$BUILD/tests/fs_client" flood "$MNT/rxe0/1/umad" 8000
	lost=$(awk '$1 == "ibfs_capture_dropped_packets_total" { print $2 }' "$MNT/metrics")
	[ "$lost" -gt 0 ]
	# What is kept is whole, and the first packet after it says how many are missing.
	head -c 4000000 <&5 >"$IBFS_DIR/slow.pcap"
	"$BUILD/tests/fs_client" flood "$MNT/rxe0/1/umad" 1
	timeout 1 cat <&5 >>"$IBFS_DIR/slow.pcap" || true
	exec 5<&-
	[ "$(dissect "$IBFS_DIR/slow.pcap" | wc -l)" = $((16002 - lost)) ]
	[ "$(dissect "$IBFS_DIR/slow.pcap" -Y 'erf.lctr > 0' -T fields -e erf.lctr)" = "$lost" ]
}

@test "a capture ends when its device or node goes" {
	echo 'ca extra 1' >"$MNT/fabric/ctl"
	echo 'device extra name=gone0' >"$MNT/fabric/ctl"
	spawn dev cat "$MNT/gone0/1/pcap"
	spawn node cat "$MNT/fabric/nodes/extra/ports/1/pcap"
	wait_for test -s "$IBFS_DIR/dev.log"
	wait_for test -s "$IBFS_DIR/node.log"
	echo 'undevice gone0' >"$MNT/fabric/ctl"
	wait_for is_gone "$(spawned dev)"
	kill -0 "$(spawned node)"
	echo 'remove extra' >"$MNT/fabric/ctl"
	wait_for is_gone "$(spawned node)"
}

@test "OpenSM's sweep has no malformed packet" {
	need_tool opensm
	spawn sweep cat "$MNT/rxe0/1/pcap"
	wait_for test -s "$IBFS_DIR/sweep.log"
	spawn sm ib opensm -f "$IBFS_DIR/osm.log" -o
	wait_for -t 30 is_gone "$(spawned sm)"
	reap sweep
	cp "$IBFS_DIR/sweep.log" "$IBFS_DIR/sweep.pcap"
	[ "$(dissect "$IBFS_DIR/sweep.pcap" | wc -l)" -gt 20 ]
	[ -z "$(dissect "$IBFS_DIR/sweep.pcap" -Y _ws.malformed)" ]
}
