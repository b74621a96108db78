#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-2-Clause
# Topologies in a mounted fabric: what the diagnostic tools find is what the
# file says, and fabric/topology says it too.

load helpers

# A fat tree under ibnetdiscover's own names, with all rates, a host with two
# ports, a router, an enhanced port 0.
setup_file()
{
	export NET=$BATS_FILE_TMPDIR/t.net
	{
		ctest gentopo fat2 3 4 2 8
		cat <<-'EOF'

		vendid=0x8f1
		devid=0x5a5a
		sysimgguid=0x8f10700000010
		switchguid=0x8f10700000010(8f10700000010)
		Switch	36 "S-0008f10700000010"		# "edge" enhanced port 0 lid 777 lmc 0
		[1]	"H-0008f10700000020"[1](8f10700000abc) 		# "two ports" lid 900 4xNDR
		[2]	"H-0008f10700000020"[2](8f10700000abd) 		# "two ports" lid 901 4xHDR
		[3]	"R-0008f10700000030"[1](8f10700000031) 		# "router" lid 902 1xSDR
		[4]	"H-0008f10700000040"[1](8f10700000041) 		# "slow" lid 903 4xQDR
		[5]	"H-0008f10700000050"[1](8f10700000051) 		# "wide" lid 904 12xDDR
		[6]	"H-0008f10700000060"[1](8f10700000061) 		# "half" lid 905 2xHDR

		caguid=0x8f10700000020
		Ca	2 "H-0008f10700000020"		# "two ports"
		[1](8f10700000abc) 	"S-0008f10700000010"[1]		# lid 900 lmc 0 "edge" lid 777 4xNDR
		[2](8f10700000abd) 	"S-0008f10700000010"[2]		# lid 901 lmc 0 "edge" lid 777 4xHDR

		rtguid=0x8f10700000030
		Rt	1 "R-0008f10700000030"		# "router"
		[1](8f10700000031) 	"S-0008f10700000010"[3]		# lid 902 lmc 0 "edge" lid 777 1xSDR

		caguid=0x8f10700000040
		Ca	1 "H-0008f10700000040"		# "slow"
		[1](8f10700000041) 	"S-0008f10700000010"[4]		# lid 903 lmc 0 "edge" lid 777 4xQDR

		caguid=0x8f10700000050
		Ca	1 "H-0008f10700000050"		# "wide"
		[1](8f10700000051) 	"S-0008f10700000010"[5]		# lid 904 lmc 0 "edge" lid 777 12xDDR

		caguid=0x8f10700000060
		Ca	1 "H-0008f10700000060"		# "half"
		[1](8f10700000061) 	"S-0008f10700000010"[6]		# lid 905 lmc 0 "edge" lid 777 2xHDR

		do Link "S-0008f10700000010"[36] "S-0008f10500000030"[8]
		EOF
	} >"$NET"
	cat >"$BATS_FILE_TMPDIR/ibfs.conf" <<-EOF
	topology = "$NET";
	devices = ( { name = "rxe0"; node = "H-0008f10700000020"; },
		    { name = "rxe1"; node = "H-0002c90300000010"; } );
	EOF
	start_ibfs "$BATS_FILE_TMPDIR/ibfs.conf"
}

teardown_file() { stop_ibfs; }

# Records in an order of their own, without remarks.
records() { grep -v -e '^#' -e '^$' "$1" | sort; }

# ibnetdiscover finds what fabric/topology says.
same_as_discovered()
{
	cat "$MNT/fabric/topology" >"$BATS_TEST_TMPDIR/mine"
	ib ibnetdiscover >"$BATS_TEST_TMPDIR/found"
	diff <(records "$BATS_TEST_TMPDIR/mine") <(records "$BATS_TEST_TMPDIR/found")
}

@test "ibnetdiscover prints what fabric/topology holds" {
	need_tool ibnetdiscover
	same_as_discovered
}

@test "what fabric/topology holds loads again and is the same" {
	cat "$MNT/fabric/topology" >"$BATS_TEST_TMPDIR/1"
	ctest topology dump "$BATS_TEST_TMPDIR/1" >"$BATS_TEST_TMPDIR/2"
	cmp "$BATS_TEST_TMPDIR/1" "$BATS_TEST_TMPDIR/2"
}

@test "the LIDs, port GUIDs and rates of the file" {
	[ "$(cat "$MNT/rxe0/1/lid")" = 0x384 ]
	[ "$(cat "$MNT/rxe0/2/lid")" = 0x385 ]
	[ "$(cat "$MNT/rxe0/1/gids/0")" = fe80:0000:0000:0000:0008:f107:0000:0abc ]
	[ "$(cat "$MNT/rxe0/1/rate")" = '400 Gb/sec (4X NDR)' ]
	[ "$(cat "$MNT/rxe0/2/rate")" = '200 Gb/sec (4X HDR)' ]
}

@test "a route that ibtracert finds is the static subnet's" {
	need_tool ibtracert
	local lid
	for lid in 777 902 903 "$(($(cat "$MNT/rxe1/1/lid")))"; do
		run ib ibtracert -C rxe0 -P 1 900 "$lid"
		assert_status 0
		assert_line "lid $lid"
	done
}

@test "a pulled cable is gone from the topology, and the routes go round it" {
	need_tool ibnetdiscover
	local link lid
	lid=$(($(cat "$MNT/rxe1/1/lid")))
	link=$(printf '%s\n' "$MNT"/fabric/links/* | grep S-0008f10500000000:5)
	echo down >"$link/ctl"
	same_as_discovered
	run ! grep -q '"S-0008f10500000000"\[5\]' "$BATS_TEST_TMPDIR/mine"
	run ib ibtracert -C rxe0 -P 1 900 "$lid"
	assert_status 0
	echo up >"$link/ctl"
	same_as_discovered
	grep -q '"S-0008f10500000000"\[5\]' "$BATS_TEST_TMPDIR/mine"
	wait_for file_is "$MNT/fabric/switches/S-0008f10500000000/ports/5/state" '4: ACTIVE'
}

@test "a broken topology is told with file and line, and nothing is mounted" {
	local dir=$BATS_TEST_TMPDIR
	mkdir "$dir/ib"
	printf 'topology = "%s/broken.net";\n' "$dir" >"$dir/ibfs.conf"
	printf '\nCa 1 "a"\n[1] "b"[1]\n' >"$dir/broken.net"
	run "$BUILD/ibfs" -f -c "$dir/ibfs.conf" "$dir/ib"
	assert_status 1
	[ "${#lines[@]}" = 1 ] || fail "more than one line:" "$output"
	assert_line "$dir/broken.net:3: expected a record of node \"b\", found none"
	run ! mountpoint -q "$dir/ib"
}
