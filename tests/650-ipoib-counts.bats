# SPDX-License-Identifier: BSD-2-Clause
# What IP interfaces count, packet by packet, and raw frames: on interfaces that
# are down, so that nothing comes from the host but what the test sends.
load helpers
load ipoib

setup_file()
{
	ipoib_tools ping || return 0
	start_leaves static ibs
	[ -n "${IBFS_PID:-}" ] || return 0
	local n
	for n in 1 2 3; do
		mkdir "$(ipoib $n)"
		echo "create ifname=$NS$n" >"$(ipoib $n)/ctl"
		wait_for ipoib_up $n
	done
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

bytes() { printf '%b' "\\x${1//:/\\x}"; }

# frames COUNT FROM TO BYTES: COUNT frames of BYTES behind the header, of an
# EtherType that nobody knows. TO: a 20-byte address as the files show it.
frames()
{
	local i
	{ bytes "$3:88:b5:00:00"; printf "%0$4d" 0; } >"$IBFS_DIR/one"
	for ((i = 0; i < $1; i++)); do cat "$IBFS_DIR/one" >"$(ipoib "$2")/frame"; done
}

snapshot() { (cd "$(ipoib "$1")/stats" && grep -H . -- *) >"$IBFS_DIR/before$1"; }

# changed N NAME=DIFFERENCE...: these counters went up by that, all others stayed.
# Names of the same counter follow it.
changed()
{
	local n=$1 pair
	declare -A want=()
	shift
	for pair; do want[${pair%=*}]=${pair#*=}; done
	for pair in ipackets:rx_packets opackets:tx_packets rbytes:rx_bytes obytes:tx_bytes \
		ierrors:rx_errors oerrors:tx_errors multircv:multicast; do
		want[${pair#*:}]=${want[${pair%:*}]:-0}
	done
	while IFS=: read -r name value; do
		[ $(($(stat_of "$n" "$name") - value)) = "${want[$name]:-0}" ] ||
			fail "host $n: $name is $(stat_of "$n" "$name"), was $value"
	done <"$IBFS_DIR/before$n"
}
came() { [ "$(stat_of "$1" ipackets)" = $(($(sed -n 's/^ipackets://p' "$IBFS_DIR/before$1") + $2)) ]; }

@test "frames to one" {
	local n
	for n in 1 2 3; do snapshot $n; done
	frames 10 1 "$(cat "$(ipoib 2)/address")" 100
	wait_for came 2 10
	changed 1 opackets=10 obytes=1000
	changed 2 ipackets=10 rbytes=1000 unknowns=10
	changed 3
}

@test "frames to all" {
	local n
	for n in 1 2 3; do snapshot $n; done
	frames 5 2 "$(cat "$(ipoib 2)/broadcast")" 60
	for n in 1 3; do wait_for came $n 5; done
	# One's own that come back are nobody's.
	changed 2 opackets=5 obytes=300 brdcstxmt=5 unknowns=5
	for n in 1 3; do changed $n ipackets=5 rbytes=300 brdcstrcv=5 unknowns=5; done
}

@test "frames to a group" {
	local n group=00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:00:00:00:01
	for n in 1 2 3; do snapshot $n; done
	frames 3 3 $group 60
	for n in 1 2; do wait_for came $n 3; done
	changed 3 opackets=3 obytes=180 multixmt=3 unknowns=3
	for n in 1 2; do changed $n ipackets=3 rbytes=180 multircv=3 unknowns=3; done
}

@test "a frame is read as it was sent, from its header on" {
	local to
	to=$(cat "$(ipoib 2)/address")
	exec 4<"$(ipoib 2)/frame"
	{ bytes "$to:88:b5:00:00"; printf 'hello, fabric'; } >"$IBFS_DIR/f"
	cat "$IBFS_DIR/f" >"$(ipoib 1)/frame"
	timeout 10 dd bs=9000 count=1 <&4 >"$IBFS_DIR/g" 2>/dev/null
	exec 4<&-
	cmp "$IBFS_DIR/g" <(tail -c +21 "$IBFS_DIR/f")
}

@test "frames that can't be are refused and not counted" {
	snapshot 1
	run ! dd if=/dev/zero of="$(ipoib 1)/frame" bs=23 count=1
	assert_line 'Invalid argument'
	run ! dd if=/dev/zero of="$(ipoib 1)/frame" bs=5000 count=1
	assert_line 'Message too long'
	changed 1
}

@test "pings count as the host counts them" {
	local n sent got
	for n in 1 2; do
		ip netns add "$NS$n"
		ip link set "$NS$n" netns "$NS$n" name ib0
		host $n sysctl -qw net.ipv6.conf.ib0.disable_ipv6=1
		ip -n "$NS$n" addr add "10.71.0.$n/24" dev ib0
		ip -n "$NS$n" link set ib0 up
	done
	wait_for pings 1 10.71.0.2
	# Connections are there now: what follows is the pings and nothing else.
	wait_for file_has "$(ipoib 1)/neighbours" '^10.71.0.2 state=reachable .* mode=cm '
	wait_for file_has "$(ipoib 2)/neighbours" '^10.71.0.1 state=reachable .* mode=cm '
	for n in 1 2; do snapshot $n; done
	sent=$(host 1 cat /sys/class/net/ib0/statistics/tx_packets)
	got=$(host 2 cat /sys/class/net/ib0/statistics/rx_packets)
	run -0 host 1 ping -n -q -c 20 -i 0.01 -W 5 -s 1000 10.71.0.2
	assert_line ' 0% packet loss'
	for n in 1 2; do changed $n opackets=20 obytes=20560 ipackets=20 rbytes=20560; done
	[ $(($(host 1 cat /sys/class/net/ib0/statistics/tx_packets) - sent)) = 20 ]
	[ $(($(host 2 cat /sys/class/net/ib0/statistics/rx_packets) - got)) = 20 ]
}

@test "metrics has what stats has" {
	run -0 grep '^ibfs_ipoib_opackets_total{device="rxe0",port="1",interface="ib0"}' "$MNT/metrics"
	[ "${output##* }" = "$(stat_of 1 opackets)" ]
	run -0 grep '^ibfs_ipoib_brdcstrcv_total{device="rxe2",port="1",interface="ib0"}' "$MNT/metrics"
	[ "${output##* }" = "$(stat_of 3 brdcstrcv)" ]
}
