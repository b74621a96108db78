# SPDX-License-Identifier: BSD-2-Clause
# The same where devices of the system are beside soft ones: a backend would look
# into what isn't its own, and the system's driver into another device's context.
load helpers
load nested

setup_file()
{
	nested_can || return 0
	start_ibfs
	start_nested '
		backend = "verbs";
		switches = ( { name = "s"; ports = 4; } );
		hcas = ( { name = "soft0"; }, { name = "soft1"; } );
		links = ( { a = "soft0[1]"; b = "s[1]"; }, { a = "soft1[1]"; b = "s[2]"; } );
		devices = ( { name = "soft0"; }, { name = "soft1"; } );'
}
teardown_file() { stop_ibfs; }

foreign()	# DEVICE...
{
	local before
	need_tool python3
	before=$(fd_count "$NPID")
	run timeout 300 python3 "$TOP/tests/foreign.py" "$NMNT" "$TOP" "$@"
	not is_gone "$NPID"
	assert_status 0
	assert_line "^[0-9]{3,} refused, 0 wrong\$"
	wait_for fds_of "$NPID" "$before"
	# Nothing stays in the system either.
	wait_for file_is "$MNT/pinned" ""
}
fds_of() { [ "$(fd_count "$1")" = "$2" ]; }

@test "objects of a soft device and of one of the system" { foreign soft0 rxe0; }
@test "objects of two devices of the system" { foreign rxe0 rxe1; }
@test "objects of two of each" { foreign soft0 soft1 rxe0 rxe1; }
