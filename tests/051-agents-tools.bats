# SPDX-License-Identifier: BSD-2-Clause
# What the agents of a node are there for, with the tools that ask them: an M_Key
# that OpenSM sets and others must know, traps, routes with parts by LID,
# congestion control, and ports that an administrator changes.
load helpers

KEY=0x1122334455667788

setup_file()
{
	have_tools opensm smpquery ibccconfig || return 0
	cat >"$BATS_FILE_TMPDIR/opensm.conf" <<-END
	m_key $KEY
	m_key_protection_level 2
	m_key_lease_period 0
	END
	start_fat_tree -F "$BATS_FILE_TMPDIR/opensm.conf"
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }
osm_says() { file_has "$IBFS_DIR/sm.osm.log" "$1"; }

@test "who doesn't know the M_Key gets no answer, and the port counts it" {
	local lid
	lid=$(lid_of rxe1)
	run ! ib smpquery -t 200 nodeinfo "$lid"
	run ! ib smpquery -t 200 -y 0x55 nodeinfo "$lid"
	run -0 ib smpquery -y $KEY nodeinfo "$lid"
	assert_line '^Guid:.*0x0002c90300000050$'
	run -0 ib smpquery -y $KEY portinfo "$lid" 1
	assert_line '^ProtectBits:\.+2$'
	! grep -q '^MkeyViolations:\.*0$' <<<"$output" || fail "$output"
}

@test "OpenSM hears of a bad M_Key (trap 256)" {
	run ! ib smpquery -t 200 -y 0x66 nodeinfo "$(lid_of rxe1)"
	wait_for osm_says "num:256 .*LID:$(lid_of rxe1) "
}

@test "OpenSM hears of a link that goes down and up (trap 128)" {
	local link=$MNT/fabric/links/H-0002c90300000060:1-S-0008f10500000010:3
	local sw
	sw=$(ib smpquery -y $KEY -G portinfo 0x0008f10500000010 0 | sed -n 's/^Lid:\.*//p')
	[ -n "$sw" ]
	echo down >"$link/ctl"
	wait_for osm_says "num:128 .*LID:$sw TID:0x0*1\$"
	echo up >"$link/ctl"
	wait_for osm_says "num:128 .*LID:$sw TID:0x0*2\$"
	wait_for file_is "$MNT/fabric/nodes/H-0002c90300000060/ports/1/state" "4: ACTIVE"
}

@test "a route by LID and then by ports" {
	local sw
	sw=$(lid_of sw0)
	run -0 ib smpquery -y $KEY -c nodeinfo "$sw" 0,1
	assert_line '^Guid:.*0x0002c90300000000$'
	run -0 ib smpquery -y $KEY -c nodeinfo "$sw" 0,5,3,2
	assert_line '^Guid:.*0x0002c90300000050$'
	assert_line '^LocalPort:\.+1$'
}

@test "ibccconfig sets what ibccquery shows, under its key" {
	local sw ca
	sw=$(lid_of sw0)
	ca=$(lid_of rxe1)
	run -0 ib ibccconfig -y $KEY SP "$sw" 3 1 0 5 8 100
	run -0 ib ibccquery -y $KEY SP "$sw" 3
	assert_line '^Threshold:\.+0x05$'
	assert_line '^Cong_Parm_Marking_Rate:\.+100$'
	run -0 ib ibccconfig CS "$ca" 0 0x4 200 1 2 3
	run -0 ib ibccquery CS "$ca"
	assert_line '^CCTI_Timer:\.+200$'
	run -0 ib ibccconfig CT "$ca" 2 0 0:1 1:2 2:3
	run -0 ib ibccquery CT "$ca"
	assert_line '^CCTI_Limit:\.+2$'
	assert_line '^CCT_Multiplier:\.+3$'
	run -0 ib ibccconfig CK "$ca" 9 1 0 1
	run ! ib ibccquery -t 200 CK "$ca"
	run ! ib ibccconfig -t 200 -c 8 CS "$ca" 0 0x4 200 1 2 3
	run -0 ib ibccquery -c 9 CK "$ca"
	assert_line '^CC_Key:.*0x0000000000000009$'
	assert_line '^CC_KeyViolations:\.+[1-9]'
}

@test "ibportstate takes a port down, sets its width, and brings it back" {
	local sw port=$MNT/fabric/nodes/H-0002c90300000010/ports/1
	sw=$(lid_of sw0)
	run -0 ib ibportstate -y $KEY "$sw" 2 disable
	run -0 ib ibportstate -y $KEY "$sw" 2 query
	assert_line '^LinkState:\.+Down$'
	assert_line '^PhysLinkState:\.+Disabled$'
	run -0 ib ibportstate -y $KEY "$sw" 2 width 1
	run -0 ib ibportstate -y $KEY "$sw" 2 enable
	# OpenSM, told by trap 128, brings the link up as it now is.
	wait_for file_is "$port/state" "4: ACTIVE"
	run -0 ib ibportstate -y $KEY "$sw" 2 query
	assert_line '^LinkWidthActive:\.+1X$'
	run -0 ib ibportstate -y $KEY "$sw" 2 width 3
	wait_for file_is "$port/state" "4: ACTIVE"
	run ! ib ibportstate -y $KEY "$sw" 2 width 8
}

@test "OpenSM's log has no error of its own" {
	! grep -E 'ERR [0-9A-F]{4}' "$IBFS_DIR/sm.osm.log" || fail "see above"
}
