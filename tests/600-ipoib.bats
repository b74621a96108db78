# SPDX-License-Identifier: BSD-2-Clause
# IP over InfiniBand in datagram mode: four hosts on two switches, OpenSM.
load helpers
load ipoib

setup_file()
{
	ipoib_tools opensm ping || return 0
	start_leaves sm ibt
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm rxe0
	for n in 1 2 3 4; do add_host $n "linkmode ud"; done
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

@test "the broadcast group's parameters are the interface's" {
	run -0 cat "$(ipoib 1)/status"
	assert_line '^subnet sm$'
	assert_line '^mcast_mtu 2044$'
	assert_line '^qkey 0x00000b1b$'
	[ "$(cat "$(ipoib 1)/mtu")" = 2044 ]
	[ "$(host 1 cat /sys/class/net/ib0/mtu)" = 2044 ]
	file_is "$(ipoib 1)/broadcast" 00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff
	run -0 cat "$(ipoib 1)/address"
	assert_line "^00:..:..:..:$(tr -d : <"$MNT/rxe0/1/gids/0" | sed 's/../&:/g; s/:$//')\$"
	run -0 cat "$(ipoib 1)/info"
	assert_line '^max_sdu 2044$'
	assert_line '^min_sdu 0$'
	assert_line '^addr_length 22$'
	assert_line '^mac_type DL_IB$'
	assert_line '^sap_length -2$'
	assert_line '^brdcst_addr 00:ff:ff:ff:ff:12:'
}

@test "everybody reaches everybody, in all sizes" {
	local from to size
	for from in 1 2 3 4; do
		for to in 1 2 3 4; do
			wait_for reaches $from 10.71.0.$to
			wait_for reaches $from fd71::$to
		done
	done
	for size in 0 1 2016 2017 4000 20000 65000; do
		wait_for reaches 1 10.71.0.4 -s $size
		wait_for reaches 4 fd71::1 -s $size
	done
}

@test "neighbours have the addresses that the others show" {
	local n
	run -0 cat "$(ipoib 1)/neighbours"
	for n in 2 3 4; do
		assert_line "^10.71.0.$n state=reachable address=$(cat "$(ipoib $n)/address") lid=$(cat "$MNT/rxe$((n - 1))/1/lid") "
		assert_line "^fd71::$n state=reachable address=$(cat "$(ipoib $n)/address") "
	done
}

# Those of 10.72.0.0/16 that are asked for, each once.
asked() { grep -c '^10\.72\.' "$1"; }
all_asked()	# NUMBER
{
	host 1 python3 - "$1" <<-'END'
	import socket, sys
	s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	for n in range(int(sys.argv[1])):
	    s.sendto(b"", (f"10.72.{n >> 8}.{n & 255}", 9))
	END
	cat "$(ipoib 1)/neighbours" >"$BATS_TEST_TMPDIR/list"
	[ "$(asked "$BATS_TEST_TMPDIR/list")" = "$1" ]
}

@test "a thousand neighbours that don't answer are listed, each once" {
	need_tool python3
	host 1 ip route add 10.72.0.0/16 dev ib0
	wait_for -t 30 all_asked 1000
	[ "$(grep -oE '^10\.72\.[0-9.]+' "$BATS_TEST_TMPDIR/list" | sort -u | wc -l)" = 1000 ]
	host 1 ip route del 10.72.0.0/16 dev ib0
	wait_for -t 30 not grep -q '^10\.72\.' "$(ipoib 1)/neighbours"
	reaches 1 10.71.0.4
}

@test "broadcast and multicast ping reach all" {
	local n
	run -0 host 1 ping -n -b -c 2 -i 0.3 -W 3 10.71.0.255
	for n in 2 3 4; do assert_line "from 10.71.0.$n:"; done
	run -0 host 2 ping -n -c 2 -i 0.3 -W 3 -I ib0 224.0.0.1
	for n in 1 3 4; do assert_line "from 10.71.0.$n:"; done
	run -0 host 3 ping -n -c 2 -i 0.3 -W 3 ff02::1%ib0
	[ "$(grep -oE 'from fe80::[^%]*' <<<"$output" | sort -u | wc -l)" = 4 ]
}

@test "a group that one host is in reaches that one only" {
	local before
	host 2 ip addr add 239.1.2.3/32 dev ib0 autojoin
	wait_for file_has "$(ipoib 2)/multicast" '^ff12:401b:ffff::f01:203 state=joined .* host'
	# The SA answers a sender before the switches know of it.
	wait_for pings 1 239.1.2.3 -I ib0
	before=$(stat_of 3 multircv)
	wait_for reaches 1 239.1.2.3 -I ib0
	file_has "$(ipoib 1)/multicast" '^ff12:401b:ffff::f01:203 state=send_only '
	[ "$(stat_of 3 multircv)" = "$before" ]
	host 2 ip addr del 239.1.2.3/32 dev ib0
	wait_for not file_has "$(ipoib 2)/multicast" 'f01:203'
}

@test "nobody at an address is told to who asks" {
	run host 1 ping -n -c 1 -W 5 10.71.0.77
	assert_line 'Destination Host Unreachable'
	refute_line 'bytes from'
}

@test "own broadcasts that come back count as unknowns" {
	local before
	before=$(stat_of 1 unknowns)
	run host 1 ping -n -b -c 1 -W 1 10.71.0.255
	[ "$(stat_of 1 unknowns)" = $((before + 1)) ]
}

@test "an interface goes with its directory, its clone, and never by half" {
	local num
	[ -d "$(ipoib 2)" ]
	mkdir "$(ipoib 2 x)"
	run ! cat "$(ipoib 2 x)/address"
	echo "create ifname=${NS}x" >"$(ipoib 2 x)/ctl"
	ip link show "${NS}x"
	rmdir "$(ipoib 2 x)"
	run ! ip link show "${NS}x"
	exec 5<>"$MNT/rxe1/1/ipoib/clone"
	read -r num <&5
	echo "create ifname=${NS}y" >&5
	wait_for ipoib_up 2 "$num"
	ip link show "${NS}y"
	exec 5>&-
	wait_for not ip link show "${NS}y"
	[ ! -e "$(ipoib 2 "$num")" ]
}

@test "a command that can't be is refused, with the reason" {
	mkdir "$(ipoib 2 x)"
	run ! bash -c "echo 'create pkey=0x8123' >'$(ipoib 2 x)/ctl'"
	assert_line 'Invalid argument'
	run -0 tail -1 "$MNT/errors"
	assert_line "pkey=0x8123 is not in rxe1's table"
	run ! bash -c "echo 'linkmode fast' >'$(ipoib 2 x)/ctl'"
	run ! bash -c "echo 'mtu 9000' >'$(ipoib 1)/ctl'"
	run ! mkdir "$MNT/rxe1/1/ipoib/7"
	rmdir "$(ipoib 2 x)"
}
