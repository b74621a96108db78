# SPDX-License-Identifier: BSD-2-Clause
# The tools that administrators use, unmodified, on a fat tree that OpenSM
# brought up: 16 hosts, 4 leaves, 2 spines.
load helpers

setup_file()
{
	have_tools ibstat opensm || return 0
	start_fat_tree
}

teardown_file() { stop_ibfs; }

lid_of() { printf '%d\n' "$(cat "$MNT/$1"/[0-9]/lid)"; }

@test "ibstat lists the devices" {
	run -0 ib ibstat -l
	[ "$output" = $'rxe0\nrxe1\nsw0' ]
}

@test "ibstat shows a CA's port" {
	run -0 ib ibstat rxe1
	assert_line "CA 'rxe1'"
	assert_line 'Number of ports: 1'
	assert_line 'Node GUID: 0x0002c90300000050'
	assert_line 'State: Active'
	assert_line 'Physical state: LinkUp'
	assert_line 'Rate: 100$'
	assert_line "Base lid: $(lid_of rxe1)"
	assert_line "SM lid: $(lid_of rxe0)"
	assert_line 'Port GUID: 0x0002c90300000051'
	assert_line 'Link layer: InfiniBand'
}

@test "ibstat shows a switch's port 0" {
	run -0 ib ibstat sw0 0
	assert_line 'State: Active'
	assert_line "Base lid: $(lid_of sw0)"
	assert_line 'Port GUID: 0x0008f10500000000'
}

@test "ibstat -p lists port GUIDs" {
	run -0 ib ibstat -p
	assert_line '0x0002c90300000001'
	assert_line '0x0002c90300000051'
}

@test "ibstatus" {
	run -0 ib ibstatus
	assert_line "Infiniband device 'rxe0' port 1 status:"
	assert_line 'default gid:.*fe80:0000:0000:0000:0002:c903:0000:0001'
	assert_line 'state:.*4: ACTIVE'
	assert_line 'phys state:.*5: LinkUp'
	assert_line 'rate:.*100 Gb/sec \(4X EDR\)'
	assert_line 'link_layer:.*InfiniBand'
}

@test "ibstatus of one port" {
	run -0 ib ibstatus rxe1:1
	assert_line "Infiniband device 'rxe1' port 1 status:"
	refute_line rxe0
}

@test "ibaddr of the local port, of a LID, of a GUID, of a directed route" {
	run -0 ib ibaddr
	assert_line "GID fe80::2:c903:0:1 LID start 0x$(printf %x "$(lid_of rxe0)") end"
	run -0 ib ibaddr "$(lid_of rxe1)"
	assert_line 'GID fe80::2:c903:0:51'
	run -0 ib ibaddr -G 0x0002c90300000051
	assert_line "LID start 0x$(printf %x "$(lid_of rxe1)")"
	run -0 ib ibaddr -D 0,1
	assert_line 'GID fe80::8:f105:0:0 LID start'
	run -0 ib ibaddr -L
	assert_line "^LID start $(lid_of rxe0) end $(lid_of rxe0)"
}

@test "ibhosts, ibswitches, ibnodes, ibrouters" {
	run -0 ib ibhosts
	[ "${#lines[@]}" = 16 ] || fail "$output"
	assert_line '^Ca	: 0x0002c90300000050 ports 1 "host00005"$'
	run -0 ib ibswitches
	[ "${#lines[@]}" = 6 ] || fail "$output"
	assert_line '^Switch	: 0x0008f10500000000 ports 8 "leaf0000" base port 0 lid'
	run -0 ib ibnodes
	[ "${#lines[@]}" = 22 ] || fail "$output"
	run -0 ib ibrouters
	[ -z "$output" ]
}

@test "ibnetdiscover finds every node and every link" {
	run -0 ib ibnetdiscover
	[ "$(grep -c '^Ca' <<<"$output")" = 16 ]
	[ "$(grep -c '^Switch' <<<"$output")" = 6 ]
	# 16 hosts, and 4 uplinks of each leaf, each from both ends
	[ "$(grep -cE '^\[[0-9]+\]' <<<"$output")" = 64 ] || fail "$output"
	assert_line '^\[1\]\(2c90300000051\).*"S-0008f10500000010"\[2\].*# lid [0-9]+ lmc 0 "leaf0001" lid [0-9]+ 4xEDR'
}

@test "ibnetdiscover's output is a topology that ibfs loads" {
	local again=$BATS_TEST_TMPDIR/again pid
	mkdir "$again"
	ib ibnetdiscover >"$BATS_TEST_TMPDIR/found.net"
	printf 'topology = "found.net";\n' >"$BATS_TEST_TMPDIR/found.conf"
	"$BUILD/ibfs" -c "$BATS_TEST_TMPDIR/found.conf" "$again"
	run "$BUILD/ibfs-run" -m "$again" ibnetdiscover
	umount "$again"
	diff <(grep -E '^(Ca|Switch)' "$BATS_TEST_TMPDIR/found.net" | cut -d'"' -f1-4 | sort) \
		<(grep -E '^(Ca|Switch)' <<<"$output" | cut -d'"' -f1-4 | sort)
}

@test "ibnetdiscover -l, -H, -S, -g, -p" {
	run -0 ib ibnetdiscover -l
	[ "${#lines[@]}" = 22 ] || fail "$output"
	run -0 ib ibnetdiscover -H
	[ "${#lines[@]}" = 16 ]
	run -0 ib ibnetdiscover -S
	[ "${#lines[@]}" = 6 ]
	run -0 ib ibnetdiscover -g
	assert_line '^Switch'
	run -0 ib ibnetdiscover -p
	assert_line '^CA +[0-9]+ +1 0x0002c90300000051 4x EDR - SW'
}

@test "ibnetdiscover --cache, and --diff after a link went down" {
	run -0 ib ibnetdiscover --cache "$BATS_TEST_TMPDIR/net.cache"
	run -0 ib ibnetdiscover --diff "$BATS_TEST_TMPDIR/net.cache"
	refute_line '^[<>]'
}

@test "iblinkinfo shows each link's state, width, speed and both ends" {
	run -0 ib iblinkinfo
	[ "$(grep -c 'LinkUp' <<<"$output")" = 64 ] || fail "$output"
	assert_line 'CA: host00005:'
	assert_line '0x0002c90300000051 +[0-9]+ +1\[  \] ==\( 4X +25.78125 Gbps Active/  LinkUp\)==> +[0-9]+ +2\[  \] "leaf0001"'
	run -0 ib iblinkinfo -S 0x0008f10500000010
	[ "$(grep -c 'LinkUp' <<<"$output")" = 8 ]
	run -0 ib iblinkinfo --down
	refute_line 'LinkUp'
}

@test "ibroute: a leaf's forwarding table" {
	run -0 ib ibroute "$(lid_of sw0)"
	assert_line "^Unicast lids .* of switch Lid $(lid_of sw0) guid 0x0008f10500000000 \(leaf0000\)"
	assert_line "^0x$(printf %04x "$(lid_of rxe0)") 001 : \(Channel Adapter portguid 0x0002c90300000001: 'host00000'\)"
	assert_line "^0x$(printf %04x "$(lid_of sw0)") 000 : \(Switch portguid 0x0008f10500000000: 'leaf0000'\)"
	assert_line '^22 valid lids dumped'
}

@test "ibroute -M: multicast groups that OpenSM made" {
	run -0 ib ibroute -M "$(lid_of sw0)"
	assert_line '^Multicast mlids \[0xc000-0x'
	assert_line 'valid mlids dumped'
}

@test "ibtracert: the path is that of the forwarding tables" {
	local from to spine
	from=$(lid_of rxe0) to=$(lid_of rxe1)
	run -0 ib ibtracert "$from" "$to"
	[ "${#lines[@]}" = 6 ] || fail "$output"
	assert_line "^From ca \{0x0002c90300000000\} portnum 1 lid $from-$from \"host00000\""
	assert_line '^\[1\] -> switch port \{0x0008f10500000000\}\[1\] lid .* "leaf0000"'
	assert_line '^\[[5-8]\] -> switch port \{0x0008f105000000[45]0\}\[[1-8]\] lid .* "spine000[01]"'
	assert_line '^\[[34]\] -> switch port \{0x0008f10500000010\}\[[5-8]\] lid .* "leaf0001"'
	assert_line '^\[2\] -> ca port \{0x0002c90300000051\}\[1\] lid .* "host00005"'
	# What the leaf's own table says of the way up.
	local out
	out=$(sed -n 's/^\[\([5-8]\)\] -> switch.*spine.*/\1/p' <<<"$output")
	run -0 ib ibroute "$(lid_of sw0)" "$to" "$to"
	assert_line "^0x$(printf %04x "$to") 00$out :"
}

@test "ibtracert -m: a multicast path" {
	run ib ibtracert -m 0xc000 "$(lid_of rxe0)" "$(lid_of rxe1)"
	[ -n "$output" ]
}

@test "sminfo: the master is on rxe0" {
	run -0 ib sminfo
	assert_line "^sminfo: sm lid $(lid_of rxe0) sm guid 0x2c90300000001, activity count [0-9]+ priority 0 state 3 SMINFO_MASTER"
	run -0 ib sminfo -C rxe1 "$(lid_of rxe0)"
	assert_line 'SMINFO_MASTER'
}

@test "sminfo of a port without a subnet manager gets no answer" {
	run ib sminfo -t 100 "$(lid_of rxe1)"
	[ "$status" != 0 ]
}

@test "ibportstate query" {
	run -0 ib ibportstate "$(lid_of sw0)" 1
	assert_line 'LinkState:\.+Active'
	assert_line 'PhysLinkState:\.+LinkUp'
	assert_line 'LinkSpeedExtActive:\.+25.78125 Gbps'
}

@test "ibportstate disable and enable a port; the SM brings it back" {
	local leaf=$((0))
	leaf=$(lid_of sw0)
	run -0 ib ibportstate "$leaf" 4 disable
	run -0 ib ibportstate "$leaf" 4 query
	assert_line 'LinkState:\.+Down'
	assert_line 'PhysLinkState:\.+Disabled'
	run -0 ib ibportstate "$leaf" 4 enable
	active() { ib ibportstate "$leaf" 4 query | grep -q 'LinkState:.*Active'; }
	wait_for -t 30 active
}

@test "ibidsverify finds no id twice" {
	need_root	# it keeps its findings in /var/cache
	run -0 ib ibidsverify
	refute_line 'duplicate|invalid'
}

@test "dump_lfts and dump_mfts" {
	run -0 ib dump_lfts
	[ "$(grep -c '^Unicast lids' <<<"$output")" = 6 ] || fail "$output"
	run -0 ib dump_mfts
	[ "$(grep -c '^Multicast mlids' <<<"$output")" = 6 ] || fail "$output"
}
