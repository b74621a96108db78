# SPDX-License-Identifier: BSD-2-Clause
# What the IPoIB tests share: hosts, which are network namespaces with one
# interface each, on the adapters rxe0, rxe1, ... of one subnet. Loaded after
# helpers.
#
# $NS is the beginning of the namespaces' names; host N has 10.71.0.N and
# fd71::N on the interface ib0 of $(ipoib N), the adapter rxe(N-1).

ipoib_tools()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 1; }
	[ -w /dev/net/tun ] || { skip_file "no /dev/net/tun here"; return 1; }
	have_tools ip "$@" || return 1
	unshare -n true 2>/dev/null || { skip_file "no network namespaces here"; return 1; }
}

# two_leaves SUBNET: two switches, two adapters on each, a configuration $1/ip.conf.
two_leaves()	# DIRECTORY SUBNET
{
	cat >"$1/ip.net" <<-'END'
	Switch 8 "S-1" # "one"
	[1] "H-1"[1] # "h1" lid 0 4xHDR
	[2] "H-2"[1] # "h2" lid 0 4xHDR
	[8] "S-2"[8]

	Switch 8 "S-2" # "two"
	[1] "H-3"[1] # "h3" lid 0 4xHDR
	[2] "H-4"[1] # "h4" lid 0 4xHDR
	[8] "S-1"[8]

	END
	printf 'Ca 1 "H-%s" # "h%s"\n[1] "S-%s"[%s] # lid 0 lmc 0 "s" lid 0 4xHDR\n\n' \
		1 1 1 1 2 2 1 2 3 3 2 1 4 4 2 2 >>"$1/ip.net"
	cat >"$1/ip.conf" <<-END
	subnet = "$2";
	topology = "ip.net";
	devices = ( { name = "rxe0"; node = "H-1"; }, { name = "rxe1"; node = "H-2"; },
	            { name = "rxe2"; node = "H-3"; }, { name = "rxe3"; node = "H-4"; } );
	END
}

# start_leaves SUBNET NAME: the daemon on it; its hosts' namespaces begin with NAME.
start_leaves()
{
	two_leaves "$BATS_FILE_TMPDIR" "$1"
	start_ibfs "$BATS_FILE_TMPDIR/ip.conf"
	export NS=$2$$h
}

ipoib() { echo "$MNT/rxe$(($1 - 1))/1/ipoib/${2:-ib0}"; }
host() { local n=$1; shift; ip netns exec "$NS$n" "$@"; }
ipoib_up() { grep -qx 'state up' "$(ipoib "$@")/status"; }
stat_of() { cat "$(ipoib "$1")/stats/$2"; }

# add_host N [COMMAND...]: namespace, interface, addresses; commands before create.
add_host()
{
	local n=$1 command
	shift
	ip netns add "$NS$n"
	ip -n "$NS$n" link set lo up
	mkdir "$(ipoib "$n")"
	for command; do echo "$command" >"$(ipoib "$n")/ctl"; done
	echo "create ifname=$NS$n" >"$(ipoib "$n")/ctl"
	ip link set "$NS$n" netns "$NS$n" name ib0
	ip -n "$NS$n" addr add "10.71.0.$n/24" dev ib0
	ip -n "$NS$n" addr add "fd71::$n/64" dev ib0
	ip -n "$NS$n" link set ib0 up
	wait_for ipoib_up "$n" || { cat "$(ipoib "$n")"/{status,multicast} >&2; return 1; }
	host "$n" sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=0
}

del_host()
{
	rmdir "$(ipoib "$1")"
	ip netns del "$NS$1"
}

# What a failed test may have left, too.
del_hosts()
{
	local n dir
	[ -n "${IBFS_PID:-}" ] || return 0
	for dir in "$MNT"/rxe*/1/ipoib/*/; do [ ! -d "$dir" ] || rmdir "$dir"; done
	for n in 1 2 3 4; do
		[ ! -e "/run/netns/$NS$n" ] || ip netns del "$NS$n"
	done
}

# iperf FROM TO [OPTIONS...]: a server of one test on host TO, the client on host FROM.
iperf()
{
	local from=$1 to=$2
	shift 2
	spawn "iperf$to" ip netns exec "$NS$to" iperf3 -s -1
	wait_for listens "$to" 5201
	host "$from" iperf3 -c "10.71.0.$to" -t 1 --connect-timeout 10000 "$@"
	wait_for is_gone "$(spawned "iperf$to")"
}
listens() { host "$1" ss -Hltn "sport = :$2" | grep -q .; }

pings()	# N ADDRESS [OPTIONS...]
{
	local n=$1 to=$2
	shift 2
	host "$n" ping -n -q -c 3 -i 0.05 -W 3 "$@" "$to"
}

# A run of pings without a loss. For wait_for: while a subnet manager still sweeps
# or an address is looked for the first time, a packet may go astray.
reaches() { pings "$@" | grep -q ' 0% packet loss'; }
