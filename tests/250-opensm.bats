# SPDX-License-Identifier: BSD-2-Clause
# OpenSM, unmodified, as the subnet manager of fabrics of all sizes: it brings
# them up, reacts to what happens to them, hands over, and its routing engines
# give routes that arrive.
load helpers

setup_file()
{
	command -v opensm >/dev/null || skip_file "opensm is not installed"
	command -v ibtracert >/dev/null || skip_file "infiniband-diags is not installed"
	[ -w /dev/fuse ] || skip_file "no /dev/fuse here"
}

teardown() { stop_ibfs; }

# mount_fabric PEER GENTOPO-ARGUMENTS...: host 0 is rxe0, host PEER rxe1.
mount_fabric()
{
	local peer=$1
	shift
	"$BUILD/tests/gentopo" "$@" >"$BATS_TEST_TMPDIR/net"
	cat >"$BATS_TEST_TMPDIR/conf" <<-END
	subnet = "sm";
	topology = "net";
	devices = ( { name = "rxe0"; node = "H-$(printf %016x 0x0002c90300000000)"; },
	            { name = "rxe1"; node = "H-$(printf %016x $((0x0002c90300000000 + 16 * peer)))"; } );
	END
	start_ibfs "$BATS_TEST_TMPDIR/conf"
}

no_errors() { ! grep -E 'ERR|fatal' "$IBFS_DIR/$1.osm.log" >&2 || fail "OpenSM's log has errors"; }
sweeps() { grep -c 'SUBNET UP' "$IBFS_DIR/$1.osm.log"; }
swept_more_than() { [ "$(sweeps "$1")" -gt "$2" ]; }
all_active()
{
	local state
	for state in "$MNT"/rxe*/1/state; do file_is "$state" "4: ACTIVE" || return 1; done
}
lid_of() { printf '%d\n' "$(cat "$MNT/$1/1/lid")"; }
link_of() { echo "$SYSTEM_MNT"/fabric/links/*"$1"*; }
routes_complete() { "$TOP/tests/routes" "$SYSTEM_MNT"; }

@test "two nodes come up without an error" {
	printf 'subnet = "sm";\n' >"$BATS_TEST_TMPDIR/conf"
	start_ibfs "$BATS_TEST_TMPDIR/conf"
	[ "$(cat "$MNT/rxe0/1/state")" = "2: INIT" ]
	start_opensm sm rxe0
	wait_for all_active
	[ "$(lid_of rxe0)" != "$(lid_of rxe1)" ]
	no_errors sm
}

@test "a subnet manager takes a static subnet over" {
	start_ibfs
	all_active
	start_opensm sm rxe1
	wait_for file_is "$MNT/rxe0/1/sm_lid" "$(cat "$MNT/rxe1/1/lid")"
	no_errors sm
	run -0 ib sminfo
	assert_line "sm lid $(lid_of rxe1) .*SMINFO_MASTER"
}

@test "113 nodes come up without an error, and every pair has a route" {
	mount_fabric 50 fat2 5 18 18
	start_opensm sm rxe0
	wait_for all_active
	no_errors sm
	run -0 routes_complete
	[ "$output" = $((113 * 113 - 23 * 23)) ]
}

@test "1,116 nodes come up without an error" {
	mount_fabric 900 fat3 3
	start_opensm sm rxe0
	wait_for all_active
	no_errors sm
	run -0 ib ibnetdiscover
	[ "$(grep -c '^Ca' <<<"$output")" = 972 ]
	[ "$(grep -c '^Switch' <<<"$output")" = 144 ]
}

@test "the way that a MAD takes is the one in the forwarding tables" {
	mount_fabric 90 torus 4 4 3 2
	start_opensm sm rxe0
	wait_for all_active
	run -0 "$TOP/tests/routes" "$SYSTEM_MNT" "$(lid_of rxe0)" "$(lid_of rxe1)"
	# NODE:IN NODE:OUT pairs -> what ibtracert says: "[OUT] -> switch port {GUID}[IN]"
	expected=$(tr ' ' '\n' <<<"$output" | sed 's/.*://' | tr -d '\n')
	run -0 ib ibtracert "$(lid_of rxe0)" "$(lid_of rxe1)"
	traced=$(awk '/->/ { match($0, /^\[[0-9]+\]/); out = substr($0, 2, RLENGTH - 2)
			match($0, /\}\[[0-9]+\]/); printf "%s%s", out, substr($0, RSTART + 2, RLENGTH - 3) }' <<<"$output")
	[ "$expected" = "$traced" ] || fail "tables: $expected" "ibtracert: $traced" "$output"
}

@test "a link goes down and up: routes go round it and come back" {
	mount_fabric 50 fat2 5 18 18
	start_opensm sm rxe0
	wait_for all_active
	before=$(sweeps sm)
	links=("$SYSTEM_MNT"/fabric/links/S-*-S-*)
	[ "${#links[@]}" = 90 ]
	echo down >"${links[3]}/ctl"
	wait_for -t 30 swept_more_than sm "$before"
	run -0 routes_complete
	[ "$output" = $((113 * 113 - 23 * 23)) ]
	before=$(sweeps sm)
	echo up >"${links[3]}/ctl"
	wait_for -t 30 swept_more_than sm "$before"
	wait_for file_is "${links[3]}/state" up
	run -0 routes_complete
}

@test "a node that disappears is forgotten" {
	mount_fabric 50 fat2 5 18 18
	start_opensm sm rxe0
	wait_for all_active
	gone=H-$(printf %016x $((0x0002c90300000000 + 16 * 20)))
	run -0 ib saquery NR
	[ "$(grep -c NodeRecord <<<"$output")" = 113 ]
	before=$(sweeps sm)
	echo "remove $gone" >"$SYSTEM_MNT/fabric/ctl"
	[ ! -e "$SYSTEM_MNT/fabric/nodes/$gone" ]
	wait_for -t 30 swept_more_than sm "$before"
	run -0 ib saquery NR
	[ "$(grep -c NodeRecord <<<"$output")" = 112 ]
}

@test "a second OpenSM takes over when the first is killed" {
	mount_fabric 50 fat2 5 18 18
	start_opensm first rxe0 -p 10
	mkdir "$IBFS_DIR/second"
	printf 'sminfo_polling_timeout 500\npolling_retry_number 2\n' >"$IBFS_DIR/second.conf"
	OSM_TMP_DIR=$IBFS_DIR/second OSM_CACHE_DIR=$IBFS_DIR/second spawn second ib opensm -d 2 -p 1 \
		-F "$IBFS_DIR/second.conf" -f "$IBFS_DIR/second.osm.log" \
		-g "0x$(cut -d: -f5- "$MNT/rxe1/1/gids/0" | tr -d :)"
	wait_for -t 30 file_has "$IBFS_DIR/second.osm.log" 'Entering STANDBY'
	reap first KILL
	wait_for -t 60 file_has "$IBFS_DIR/second.osm.log" 'Entering MASTER'
	wait_for -t 30 file_is "$MNT/rxe0/1/sm_lid" "$(cat "$MNT/rxe1/1/lid")"
	# The killed one's issm is free: IsSM (bit 1) is off there, on here.
	[ $(($(cat "$MNT/rxe0/1/cap_mask") & 2)) = 0 ]
	[ $(($(cat "$MNT/rxe1/1/cap_mask") & 2)) = 2 ]
	run -0 ib sminfo
	assert_line "sm lid $(lid_of rxe1) .*SMINFO_MASTER"
}

@test "an OpenSM of higher priority becomes master by handover" {
	mount_fabric 50 fat2 5 18 18
	start_opensm low rxe0 -p 1
	start_opensm high rxe1 -p 10
	wait_for -t 60 file_has "$IBFS_DIR/low.osm.log" 'Entering STANDBY'
	wait_for -t 30 file_is "$MNT/rxe0/1/sm_lid" "$(cat "$MNT/rxe1/1/lid")"
}

# engine TOPOLOGY HOSTS SWITCHES ENGINE [OPTIONS]: all routes arrive, and OpenSM did not fall back.
engine()
{
	local topo=$1 nodes=$(($2 + $3)) switches=$3 name=$4
	shift 4
	# shellcheck disable=SC2086 # several words
	mount_fabric 50 $topo
	start_opensm sm rxe0 -R "$name" "$@"
	wait_for all_active
	run -0 routes_complete
	[ "$output" = $((nodes * nodes - switches * switches)) ] || fail "$output routes"
	run -0 grep -E 'Routing|routing|configured' "$IBFS_DIR/sm.osm.log"
	assert_line "$name"
	refute_line 'fall.*back|[Ff]ailed|minhop.*default'
}

@test "routes of minhop" { engine "fat2 5 18 18" 90 23 minhop; }
@test "routes of updn" { engine "fat2 5 18 18" 90 23 updn; }
@test "routes of ftree" { engine "fat2 5 18 18" 90 23 ftree; }
@test "routes of sssp" { engine "fat2 5 18 18" 90 23 sssp; }
@test "routes of dfsssp" { engine "torus 3 3 3 2" 54 27 dfsssp; }
@test "routes of lash" { engine "torus 3 3 3 2" 54 27 lash; }
@test "routes of torus-2QoS" {
	# A torus of 4x4x3 whose dateline goes through switch 0: seeds are its neighbours.
	cat >"$BATS_TEST_TMPDIR/torus.conf" <<-END
	torus 4 4 3
	xp_link 0x0008f10500000000 0x0008f105000000c0
	xm_link 0x0008f10500000000 0x0008f10500000240
	yp_link 0x0008f10500000000 0x0008f10500000030
	ym_link 0x0008f10500000000 0x0008f10500000090
	zp_link 0x0008f10500000000 0x0008f10500000010
	END
	engine "torus 4 4 3 2" 96 48 torus-2QoS --torus_config "$BATS_TEST_TMPDIR/torus.conf" --qos
}
