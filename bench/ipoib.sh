#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# IP over InfiniBand: TCP by iperf3 and round trips by ping between two adapters
# on one switch, in connected and in datagram mode, against two TUN devices whose
# packets a process copies. Prints ratios and what they must be; exits 1 when one
# is missed.
#
# usage: bench/ipoib.sh [SECONDS]	of each transfer (2 unless given)
set -u
cd "$(dirname "$0")/.." || exit 1
build=$PWD/build
seconds=${1:-2}
rounds=3
work=$(mktemp -d)
mnt=$work/mnt
ns=ibb$$
mkdir "$mnt"
pids=()
missed=0

cleanup()
{
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	for n in 1 2; do ip netns del "$ns$n" 2>/dev/null; done
	rm -rf "$work"
}
trap cleanup EXIT

fail()
{
	echo "bench: $1" >&2
	exit 1
}

until_true()
{
	local end=$((SECONDS + 20))
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "not within 20 s: $*"
		sleep 0.05
	done
}

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
	"$build/bench/tun_pair" "${ns}a" "${ns}b" &
	pids+=($!)
	until_true ip link show "${ns}b"
	give "${ns}a" 1 pair 10.72.0.1 65520
	give "${ns}b" 2 pair 10.72.0.2 65520
	"$build/ibfs" -f "$mnt" 2>"$work/ibfs.log" &
	pids+=($!)
	until_true mountpoint -q "$mnt"
	for n in 1 2; do
		mkdir "$mnt/rxe$((n - 1))/1/ipoib/ib0"
		echo "create ifname=$ns$n" >"$mnt/rxe$((n - 1))/1/ipoib/ib0/ctl" || fail "no IPoIB"
		give "$ns$n" "$n" ib0 "10.71.0.$n" 65520
	done
	until_true host 1 ping -c 1 -W 1 -s 60000 10.71.0.2
	host 2 iperf3 -s >"$work/iperf.log" 2>&1 &
	pids+=($!)
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

best()	# NAME VALUE max|min
{
	local -n value=$1
	value=$(awk -v a="$value" -v b="$2" -v kind="$3" 'BEGIN {
		print !a || (kind == "max" ? b > a : b < a) ? b : a }')
}

ratio()	# NAME OURS THEIRS min|max BOUND
{
	awk -v name="$1" -v a="$2" -v b="$3" -v kind="$4" -v bound="$5" 'BEGIN {
		r = a / b
		ok = kind == "min" ? r >= bound : r <= bound
		printf "%-52s %9.1f %9.1f %7.2f  %s %-4s %s\n", name, a, b, r, kind, bound,
			ok ? "ok" : "MISSED"
		exit !ok
	}' || missed=$((missed + 1))
}

start
cm=0 ud=0 pair=0 rtt_cm=0 rtt_pair=0
for _ in $(seq $rounds); do
	best pair "$(tcp 10.72.0.2)" max
	best cm "$(tcp 10.71.0.2)" max
	best rtt_pair "$(rtt 10.72.0.2)" min
	best rtt_cm "$(rtt 10.71.0.2)" min
	ctl "linkmode ud"
	ctl "offload off"
	best ud "$(tcp 10.71.0.2)" max
	ctl "offload on"
	ctl "linkmode cm"
	until_true host 1 ping -c 1 -W 1 -s 60000 -M "do" 10.71.0.2
done
ratio "TCP, Mbit/s: connected mode / plain TUN pair" "$cm" "$pair" min 0.5
ratio "TCP, Mbit/s: connected / datagrams, no offload" "$cm" "$ud" min 2
ratio "ping, us: connected mode / plain TUN pair" "$rtt_cm" "$rtt_pair" max 3
[ "$missed" = 0 ] || fail "$missed ratios missed"
