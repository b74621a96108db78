#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# IP over InfiniBand: TCP by iperf3 and round trips by ping between two adapters
# on one switch, in connected and in datagram mode, against two TUN devices whose
# packets a process copies. Prints ratios and what they must be; exits 1 when one
# is missed.
#
# usage: bench/ipoib.sh [SECONDS]	of each transfer (2 unless given)
set -u
# shellcheck source=bench/bench.bash
. "$(dirname "$0")/bench.bash"
seconds=${1:-2}
rounds=3
ns=ibb$$
trap 'cleanup; for n in 1 2; do ip netns del "$ns$n" 2>/dev/null; done' EXIT

host() { local n=$1; shift; ip netns exec "$ns$n" "$@"; }

# give IFNAME N NAME ADDRESS MTU
give()
{
	ip link set "$1" netns "$ns$2" name "$3" || fail "no interface $1"
	ip -n "$ns$2" addr add "$4/24" dev "$3"
	ip -n "$ns$2" link set "$3" mtu "$5" up
}

start()
{
	local n
	for n in 1 2; do
		ip netns add "$ns$n" || fail "no network namespaces here"
		ip -n "$ns$n" link set lo up
	done
	begin tun_pair "$build/bench/tun_pair" "${ns}a" "${ns}b"
	until_true ip link show "${ns}b"
	give "${ns}a" 1 pair 10.72.0.1 65520
	give "${ns}b" 2 pair 10.72.0.2 65520
	: >"$work/ibfs.conf"
	start_ibfs
	for n in 1 2; do
		mkdir "$mnt/rxe$((n - 1))/1/ipoib/ib0"
		echo "create ifname=$ns$n" >"$mnt/rxe$((n - 1))/1/ipoib/ib0/ctl" || fail "no IPoIB"
		give "$ns$n" "$n" ib0 "10.71.0.$n" 65520
	done
	until_true host 1 ping -c 1 -W 1 -s 60000 10.71.0.2
	begin iperf ip netns exec "${ns}2" iperf3 -s
	until_true host 1 iperf3 -c 10.72.0.2 -n 1M
}

ctl()
{
	local n
	for n in 0 1; do echo "$1" >"$mnt/rxe$n/1/ipoib/ib0/ctl" || fail "$1"; done
}

# Mbit/s from host 1 to the address
tcp()
{
	host 1 iperf3 -c "$1" -t "$seconds" -f m |
		awk '/receiver/ { for (i = 1; i <= NF; i++) if ($i == "Mbits/sec") print $(i - 1) }'
}

# The mean of many, in microseconds.
rtt()
{
	host 1 ping -q -n -c 2000 -i 0.0005 "$1" | awk -F'[=/ ]+' '/^rtt/ { print $7 * 1000 }'
}

start
for _ in $(seq $rounds); do
	best pair most "$(tcp 10.72.0.2)"
	best cm most "$(tcp 10.71.0.2)"
	best rtt_pair least "$(rtt 10.72.0.2)"
	best rtt_cm least "$(rtt 10.71.0.2)"
	ctl "linkmode ud"
	ctl "offload off"
	best ud most "$(tcp 10.71.0.2)"
	ctl "offload on"
	ctl "linkmode cm"
	until_true host 1 ping -c 1 -W 1 -s 60000 -M "do" 10.71.0.2
done
heading "IPoIB" peer
ratio "TCP, Mbit/s: connected mode / plain TUN pair" "${best[cm]}" "${best[pair]}" min 0.5
ratio "TCP, Mbit/s: connected / datagrams, no offload" "${best[cm]}" "${best[ud]}" min 2
ratio "ping, us: connected mode / plain TUN pair" "${best[rtt_cm]}" "${best[rtt_pair]}" max 3
finish
