# SPDX-License-Identifier: BSD-2-Clause
# A subnet as it is in use: adapters of two ports, the subnet manager on a switch,
# many clients at a time, and programs that end in the middle of what they do.
load helpers

setup_file()
{
	have_tools opensm ibnetdiscover || return 0
	cat >"$BATS_FILE_TMPDIR/two.net" <<-'END'
	Switch 8 "S-1" # "one" enhanced port 0
	[1] "H-1"[1] # "first" lid 0 4xNDR
	[2] "H-1"[2]
	[3] "H-2"[1]
	[8] "S-2"[8]

	Switch 8 "S-2" # "two"
	[1] "H-2"[2]
	[8] "S-1"[8]

	Ca 2 "H-1" # "first"
	[1] "S-1"[1] # lid 0 lmc 0 "one" lid 0 4xNDR
	[2] "S-1"[2]

	Ca 2 "H-2" # "second"
	[1] "S-1"[3]
	[2] "S-2"[1]
	END
	cat >"$BATS_FILE_TMPDIR/two.conf" <<-'END'
	subnet = "sm";
	topology = "two.net";
	devices = ( { name = "rxe0"; node = "H-1"; }, { name = "rxe1"; node = "H-2"; },
	            { name = "sw0"; node = "S-1"; } );
	END
	start_ibfs "$BATS_FILE_TMPDIR/two.conf"
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm sw0
	wait_for all_active
}

teardown_file() { stop_ibfs; }

all_active()
{
	local state
	for state in "$MNT"/rxe*/[12]/state; do file_is "$state" "4: ACTIVE" || return 1; done
}
lid_of() { printf '%d\n' "$(cat "$MNT/$1/lid")"; }

@test "each of two ports is an end port with its own LID and its own umad" {
	local dev port
	[ "$(cat "$MNT"/rxe[01]/[12]/lid | sort -u | wc -l)" = 4 ]
	for dev in rxe0 rxe1; do
		for port in 1 2; do
			run -0 ib sminfo -C $dev -P $port
			assert_line "sm lid $(lid_of sw0/0) .*SMINFO_MASTER"
			run -0 ib ibnetdiscover -C $dev -P $port
			[ "$(grep -c '^Ca' <<<"$output")" = 2 ]
		done
	done
	[ "$(cat "$MNT/rxe0/1/rate")" = '400 Gb/sec (4X NDR)' ]
	run -0 ib iblinkinfo -C rxe1 -P 2
	assert_line '4X +106.25 Gbps Active'
}

@test "ibping from second port to second port" {
	spawn server ib ibping -S -C rxe1 -P 2
	run -0 timeout 60 "$BUILD/ibfs-run" -m "$MNT" \
		ibping -C rxe0 -P 2 -c 2 "$(lid_of rxe1/2)"
	assert_line '2 packets transmitted, 2 received, 0% packet loss'
	reap server
}

@test "OpenSM hears of a new node description (trap 144)" {
	echo "renamed" >"$MNT/rxe1/node_desc"
	wait_for file_has "$IBFS_DIR/sm.osm.log" "num:144 .* LID:($(lid_of rxe1/1)|$(lid_of rxe1/2)) "
	wait_for renamed
}
renamed() { ib saquery NR | grep -q 'NodeDescription\.*renamed$'; }

@test "forty clients at a time" {
	local i
	for i in {1..40}; do
		if [ $((i % 2)) = 0 ]; then
			spawn "client$i" ib ibnetdiscover
		else
			spawn "client$i" ib smpquery -D nodeinfo 0,1
		fi
	done
	for i in {1..40}; do
		wait_for -t 60 is_gone "$(spawned "client$i")"
		sed -i "/^client$i /d" "$IBFS_DIR/spawned"
	done
	for i in {2..40..2}; do
		[ "$(grep -cE '^(Ca|Switch)' "$IBFS_DIR/client$i.log")" = 4 ]
		grep -q '^Guid:' "$IBFS_DIR/client$((i - 1)).log"
	done
}

@test "ibdiagnet writes all its files" {
	local file
	need_tool ibdiagnet
	run -0 ib timeout 120 ibdiagnet -p 1 -o "$BATS_TEST_TMPDIR"
	refute_line '^-E-'
	assert_line 'Bad GUIDs/LIDs Check +0 +0'
	assert_line 'Link State Active Check +0 +0'
	assert_line 'Performance Counters Report +0 +0'
	assert_line 'Partitions Check +0 +0'
	assert_line '^-I- Done\.'
	for file in db fdbs lst mcfdbs pkey sm log; do
		[ -s "$BATS_TEST_TMPDIR/ibdiagnet.$file" ] || fail "ibdiagnet.$file is empty"
	done
}

@test "OpenSM ended or killed at any time leaves neither IsSM nor a descriptor" {
	local before caps delay signal
	before=$(fd_count "$IBFS_PID")
	caps=$(cat "$MNT/rxe0/1/cap_mask")
	for signal in TERM KILL; do
		for delay in 0 0.05 0.1 0.2; do
			spawn short ib opensm -d 2 -g "0x$(cut -d: -f5- "$MNT/rxe0/1/gids/0" | tr -d :)" \
				-f "$IBFS_DIR/short.osm.log"
			wait_for not file_is "$MNT/rxe0/1/cap_mask" "$caps"
			sleep $delay
			reap short $signal
			wait_for file_is "$MNT/rxe0/1/cap_mask" "$caps"
			wait_for fds_are "$before"
		done
	done
}
