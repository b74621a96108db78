# SPDX-License-Identifier: BSD-2-Clause
# Congestion control, vendor MADs, and ibutils' ibdiagnet.
load helpers

setup_file()
{
	have_tools ibccquery || return 0
	start_fat_tree
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }

@test "ibccquery: class port info, congestion info, key info, log" {
	run -0 ib ibccquery ClassPortInfo "$(lid_of rxe1)"
	assert_line 'BaseVersion|ClassVersion|CapMask'
	run -0 ib ibccquery CongestionInfo "$(lid_of rxe1)"
	run -0 ib ibccquery CongestionKeyInfo "$(lid_of rxe1)"
	assert_line 'CC_Key:'
	run -0 ib ibccquery CongestionLog "$(lid_of rxe1)"
	assert_line 'LogType'
}

@test "ibccquery: a switch's settings, a CA's settings, the control table, the time" {
	run -0 ib ibccquery SwitchCongestionSetting "$(lid_of sw0)"
	run -0 ib ibccquery SwitchPortCongestionSetting "$(lid_of sw0)" 1
	run -0 ib ibccquery CACongestionSetting "$(lid_of rxe1)"
	run -0 ib ibccquery CongestionControlTable "$(lid_of rxe1)"
	assert_line 'CCTI_Limit'
	run -0 ib ibccquery Timestamp "$(lid_of rxe1)"
	assert_line 'Timestamp:'
}

@test "ibccconfig sets what ibccquery shows" {
	run -0 ib ibccconfig CACongestionSetting "$(lid_of rxe1)" 0 0x1 1 2 3 4
	run -0 ib ibccquery CACongestionSetting "$(lid_of rxe1)"
	assert_line 'CCTI_Timer:\.+1|CCTITimer:\.+1|Timer'
}

@test "vendstat: a neutral device says that it isn't one of Mellanox'" {
	run ib vendstat -t 200 -N "$(lid_of sw0)"
	[ "$status" != 0 ]
	[ -n "$output" ]
}

@test "ibdiagnet discovers the fabric and finds no fault" {
	need_tool ibdiagnet
	cd "$BATS_TEST_TMPDIR"
	run -0 ib timeout 120 ibdiagnet -o "$BATS_TEST_TMPDIR"
	assert_line '22 nodes|6 Switches|16 CA'
	refute_line '^-E-'
}

@test "ibdiagpath between two LIDs" {
	need_tool ibdiagpath
	run ib timeout 120 ibdiagpath -l "$(lid_of rxe0),$(lid_of rxe1)" -o "$BATS_TEST_TMPDIR"
	refute_line '^-E-'
}
