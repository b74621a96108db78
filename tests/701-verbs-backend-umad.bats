# SPDX-License-Identifier: BSD-2-Clause
# The umad and issm files of the system's devices: the management of a whole fabric
# through them. The suites of umad: 705.
load helpers
load nested

setup_file()
{
	nested_can || return 0
	BATS_FILE_TMPDIR=${BATS_FILE_TMPDIR:-$(mktemp -d)}
	fat_tree "$BATS_FILE_TMPDIR" sm
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf"
	start_nested 'backend = "verbs";'
}
teardown_file() { stop_ibfs; }

# is_sm DEVICE: what the system says, and what the second daemon says.
is_sm() { [ $(($(cat "$MNT/$1/1/cap_mask") & 2)) -ne 0 ]; }
not_active() { grep -L ACTIVE "$MNT"/fabric/nodes/*/ports/1/state; }

@test "a switch has a umad, and no verbs" {
	[ -e "$NMNT/sw0/0/umad" ]
	[ ! -e "$NMNT/sw0/uverbs" ]
	[ "$(cat "$NMNT/sw0/node_type")" = "2: switch" ]
	run -0 nib smpquery -C sw0 -P 0 nodeinfo -D 0
	assert_line "NodeType:\.*Switch"
}

@test "OpenSM configures the system's fabric" {
	need_tool opensm ibnetdiscover saquery
	local guid
	[ "$(cat "$MNT/rxe0/1/state")" = "2: INIT" ]
	guid=0x$(cut -d: -f5- "$NMNT/rxe0/1/gids/0" | tr -d :)
	mkdir -p "$IBFS_DIR/osm"
	OSM_TMP_DIR=$IBFS_DIR/osm OSM_CACHE_DIR=$IBFS_DIR/osm \
		spawn osm nsenter -t "$NPID" -m -- "$BUILD/ibfs-run" -m "$IBFS_DIR/nested" \
		opensm -d 2 -g "$guid" -f "$IBFS_DIR/osm.osm.log"
	wait_for -t 60 file_has "$IBFS_DIR/osm.osm.log" "SUBNET UP"
	wait_for file_is "$MNT/rxe1/1/state" "4: ACTIVE"
	wait_for file_is "$NMNT/rxe1/1/state" "4: ACTIVE"
	run ! grep -E 'ERR|fatal' "$IBFS_DIR/osm.osm.log"
	# The second daemon's tools, and the first one's, see one fabric.
	diff <(nib ibnetdiscover | grep -v '^#') <(ib ibnetdiscover -C rxe0 | grep -v '^#')
	run -0 nib sminfo
	assert_line "sm lid $(($(cat "$MNT/rxe0/1/lid"))) .*SMINFO_MASTER"
	# A table of 16 hosts is an RMPP message.
	run -0 nib saquery NR
	[ "$(grep -c 'NodeRecord dump' <<<"$output")" = 22 ]
	reap osm
}

@test "issm: who has it open is the subnet manager, of the system's port too" {
	not is_sm rxe0
	spawn holder "$BUILD/tests/issm" hold "$NMNT/rxe0/1/issm"
	wait_for file_is "$IBFS_DIR/holder.log" held
	is_sm rxe0
	is_sm_nested=$(($(cat "$NMNT/rxe0/1/cap_mask") & 2))
	[ "$is_sm_nested" = 2 ]
	reap holder
	wait_for not is_sm rxe0
}

@test "issm: a port that has a subnet manager on the system is busy" {
	spawn holder "$BUILD/tests/issm" hold "$MNT/rxe0/1/issm"
	wait_for file_is "$IBFS_DIR/holder.log" held
	run -0 timeout 20 "$BUILD/tests/issm" try "$NMNT/rxe0/1/issm"
	[ "$output" = EAGAIN ]
	reap holder
	run -0 timeout 20 "$BUILD/tests/issm" try "$NMNT/rxe0/1/issm"
	[ "$output" = held ]
}

