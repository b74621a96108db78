# SPDX-License-Identifier: BSD-2-Clause
# A command that names objects takes those of one device, and of the kinds that its
# arguments are: lines made by tests/foreign.py.
load helpers

setup_file()
{
	cat >"$BATS_FILE_TMPDIR/conf" <<-END
	switches = ( { name = "s"; ports = 4; } );
	hcas = ( { name = "rxe0"; }, { name = "rxe1"; } );
	links = ( { a = "rxe0[1]"; b = "s[1]"; }, { a = "rxe1[1]"; b = "s[2]"; } );
	END
	start_ibfs "$BATS_FILE_TMPDIR/conf"
}
teardown_file() { stop_ibfs; }

@test "objects of another soft device, or of another kind, are refused in words" {
	need_tool python3
	run python3 "$TOP/tests/foreign.py" "$MNT" "$TOP" rxe0 rxe1
	assert_status 0
	assert_line "^[0-9]{3,} refused, 0 wrong\$"
}

@test "long names leave room for both devices" {
	local a b
	a=$(printf 'a%.0s' {1..200}) b=$(printf 'b%.0s' {1..200})
	cd "$MNT"
	mkdir "pd/$a" "cq/$b" qp/q
	echo create device=rxe0 >"pd/$a/ctl"
	echo create device=rxe1 cqe=8 >"cq/$b/ctl"
	run ! bash -c "echo create pd=$a cq=$b >qp/q/ctl"
	file_has qp/q/status "^refused create: cq=b{40} is of device rxe1, but pd=a{40} of rxe0\$"
	file_has errors "EINVAL: qp/q: create: cq=b{40} is of device rxe1, but pd=a{40} of rxe0\$"
	rmdir qp/q "cq/$b" "pd/$a"
}
