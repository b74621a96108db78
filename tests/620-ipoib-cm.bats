# SPDX-License-Identifier: BSD-2-Clause
# IP over InfiniBand in connected mode: hosts 1 and 2; host 3, whose MTU is 9000;
# host 4, which has datagram mode only.
load helpers
load ipoib

setup_file()
{
	ipoib_tools opensm ping iperf3 ss || return 0
	start_leaves sm ibc
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm rxe0
	add_host 1
	add_host 2
	add_host 3 "mtu 9000"
	add_host 4 "linkmode ud"
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

connected()	# N ADDRESS: by a connection
{
	file_has "$(ipoib "$1")/neighbours" "^$2 .* mode=cm "
}

@test "connected mode is the default, with its MTU and address" {
	file_is "$(ipoib 1)/linkmode" cm
	file_is "$(ipoib 1)/mtu" 65520
	[ "$(host 1 cat /sys/class/net/ib0/mtu)" = 65520 ]
	file_has "$(ipoib 1)/address" '^80:'
	file_has "$(ipoib 4)/address" '^00:'
	file_has "$(ipoib 1)/info" '^max_sdu 65520$'
	file_is "$(ipoib 3)/mtu" 9000
}

@test "everybody reaches everybody, from the first packet on" {
	local from to
	for from in 1 2 3 4; do
		for to in 1 2 3 4; do
			wait_for reaches $from 10.71.0.$to
			wait_for reaches $from fd71::$to
		done
	done
}

@test "packets up to the MTU go in one piece" {
	local size
	wait_for connected 1 10.71.0.2
	wait_for connected 2 10.71.0.1
	run -0 grep '^10.71.0.2 ' "$(ipoib 1)/neighbours"
	assert_line 'address=80:.* mode=cm mtu=65520$'
	for size in 0 1 2016 2017 20000 65000; do
		wait_for reaches 1 10.71.0.2 -s $size -M "do"
		wait_for reaches 2 fd71::1 -s $size
	done
}

@test "a peer without connected mode: the sender learns the datagrams' MTU" {
	file_has "$(ipoib 1)/neighbours" '^10.71.0.4 .* address=00:.* mode=ud$'
	run ! host 1 ping -n -c 1 -W 5 -s 60000 -M "do" 10.71.0.4
	assert_line 'Frag needed.*mtu = 2044'
	wait_for pings 1 10.71.0.4 -s 60000
	run -0 host 1 ip route get 10.71.0.4
	assert_line 'mtu 2044'
	run ! host 1 ping -n -c 1 -W 5 -s 60000 fd71::4
	assert_line 'Packet too big: mtu=2044'
	wait_for pings 1 fd71::4 -s 60000
	run -0 host 1 ip route get fd71::4
	assert_line 'mtu 2044'
	wait_for pings 4 10.71.0.1 -s 60000
}

@test "a peer that receives less: the sender learns its MTU" {
	wait_for connected 1 10.71.0.3
	run ! host 1 ping -n -c 1 -W 5 -s 60000 -M "do" 10.71.0.3
	assert_line 'Frag needed.*mtu = 9000'
	wait_for reaches 1 10.71.0.3 -s 8972 -M "do"
	wait_for pings 1 10.71.0.3 -s 60000
	# Its MTU grows: connections are made anew.
	echo 'mtu 20000' >"$(ipoib 3)/ctl"
	host 1 ip route flush cache
	wait_for pings 1 10.71.0.3 -s 19972 -M "do"
	file_has "$(ipoib 1)/neighbours" '^10.71.0.3 .* mode=cm mtu=20000$'
}

@test "TCP in both ways, by connections and datagrams" {
	iperf 1 2
	iperf 1 2 -R
	iperf 1 4
	iperf 1 4 -R
	iperf 2 3 --bidir
}

@test "UDP without a loss, both ways, by connections and datagrams" {
	local to
	for to in 2 4; do
		run -0 iperf 1 $to -u -b 4M -l 1200
		assert_line ' 0/[0-9]+ \(0%\) +receiver'
		run -0 iperf 1 $to -u -b 4M -l 1200 -R
		assert_line ' 0/[0-9]+ \(0%\) +receiver'
	done
	run -0 iperf 1 2 -u -b 4M -l 60000
	assert_line ' 0/[0-9]+ \(0%\) +receiver'
}

@test "who changes its mode is reached in the other" {
	echo 'linkmode cm' >"$(ipoib 4)/ctl"
	file_is "$(ipoib 4)/mtu" 65520
	wait_for file_has "$(ipoib 1)/neighbours" '^10.71.0.4 .* address=80:'
	host 1 ip route flush cache
	wait_for pings 1 10.71.0.4 -s 60000 -M "do"
	connected 1 10.71.0.4
	echo 'linkmode ud' >"$(ipoib 4)/ctl"
	file_is "$(ipoib 4)/mtu" 2044
	wait_for not connected 1 10.71.0.4
	wait_for reaches 1 10.71.0.4
}

@test "a connection ends with its interface" {
	connected 1 10.71.0.2
	del_host 2
	wait_for not connected 1 10.71.0.2
	add_host 2
	wait_for pings 1 10.71.0.2 -s 60000
}
