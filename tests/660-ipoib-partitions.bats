# SPDX-License-Identifier: BSD-2-Clause
# Partitions, each with its own IP interface, as OpenSM hands them out; and what
# tshark makes of all that crosses a port.
load helpers
load ipoib

guid() { echo "0x$(cut -d: -f5- "$MNT/rxe$(($1 - 1))/1/gids/0" | tr -d :)"; }

setup_file()
{
	ipoib_tools opensm ping tshark || return 0
	start_leaves sm ibp
	[ -n "${IBFS_PID:-}" ] || return 0
	cat >"$IBFS_DIR/partitions" <<-END
	Default=0x7fff, ipoib, defmember=full : ALL, ALL_SWITCHES, SELF=full;
	red=0x0001, ipoib, defmember=full : $(guid 1), $(guid 2), $(guid 3);
	blue=0x0002, ipoib, defmember=full : $(guid 3), $(guid 4);
	END
	spawn pcap cat "$MNT/rxe0/1/pcap"
	wait_for test -s "$IBFS_DIR/pcap.log"
	start_opensm sm rxe0 -P "$IBFS_DIR/partitions"
	for n in 1 2 3 4; do add_host $n; done
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

has_pkey() { grep -qix "$2" "$MNT/rxe$(($1 - 1))"/1/pkeys/*; }

# add_child N NAME PKEY ADDRESS
add_child()
{
	wait_for has_pkey "$1" "$3"
	mkdir "$(ipoib "$1" "$2")"
	echo "create pkey=$3 ifname=$NS$1$2" >"$(ipoib "$1" "$2")/ctl"
	ip link set "$NS$1$2" netns "$NS$1" name "$2"
	ip -n "$NS$1" addr add "$4/24" dev "$2"
	ip -n "$NS$1" link set "$2" up
	wait_for ipoib_up "$1" "$2"
}

@test "interfaces of a partition reach each other" {
	add_child 1 red 0x8001 10.72.0.1
	add_child 2 red 0x8001 10.72.0.2
	file_has "$(ipoib 1 red)/broadcast" '^00:ff:ff:ff:ff:12:40:1b:80:01:'
	file_has "$(ipoib 1 red)/status" '^pkey 0x8001$'
	wait_for reaches 1 10.72.0.2
	wait_for pings 2 10.72.0.1 -s 60000
	wait_for file_has "$(ipoib 1 red)/neighbours" '^10.72.0.2 .* mode=cm '
	wait_for reaches 1 10.71.0.2
	wait_for reaches 1 fd71::2
}

@test "another partition hears nothing" {
	add_child 3 blue 0x8002 10.72.0.3
	add_child 4 blue 0x8002 10.72.0.4
	wait_for reaches 3 10.72.0.4
	local before
	before=$(cat "$(ipoib 3 blue)"/stats/{ipackets,unknowns,ierrors})
	run ! host 1 ping -n -c 2 -i 0.2 -W 2 10.72.0.3
	refute_line 'bytes from'
	host 1 ping -n -b -c 2 -i 0.2 -W 1 10.72.0.255 || true
	[ "$(cat "$(ipoib 3 blue)"/stats/{ipackets,unknowns,ierrors})" = "$before" ]
	# Not of the partition: no interface of it.
	mkdir "$(ipoib 4 red)"
	run ! bash -c "echo 'create pkey=0x8001 ifname=${NS}4red' >'$(ipoib 4 red)/ctl'"
	assert_line 'Invalid argument'
	rmdir "$(ipoib 4 red)"
}

@test "promiscuous mode hears the groups of its partition" {
	local heard
	add_child 3 red 0x8001 10.72.0.33
	host 2 ip addr add 239.7.7.7/32 dev red autojoin
	wait_for file_has "$(ipoib 2 red)/multicast" 'f07:707 state=joined'
	heard=$(cat "$(ipoib 3 red)/stats/multircv")
	wait_for pings 1 239.7.7.7 -I red
	[ "$(cat "$(ipoib 3 red)/stats/multircv")" = "$heard" ]
	echo 'promisc on' >"$(ipoib 3 red)/ctl"
	wait_for file_has "$(ipoib 3 red)/multicast" 'f07:707 state=joined .* promisc$'
	hears() { host 1 ping -n -c 1 -W 1 -I red 239.7.7.7 && [ "$(cat "$(ipoib 3 red)/stats/multircv")" -gt "$heard" ]; }
	wait_for hears
	echo 'promisc off' >"$(ipoib 3 red)/ctl"
}

@test "tshark reads all of it" {
	local word
	reap pcap
	cp "$IBFS_DIR/pcap.log" "$IBFS_DIR/all.pcap"
	tshark -n -r "$IBFS_DIR/all.pcap" >"$IBFS_DIR/dissected" 2>/dev/null
	[ -z "$(tshark -n -r "$IBFS_DIR/all.pcap" -Y _ws.malformed 2>/dev/null)" ]
	for word in 'CM: ConnectRequest' 'CM: ConnectReply' 'CM: ReadyToUse' \
		'SubnAdmGet(PathRecord)' 'SubnAdm.*(MCMemberRecord)' 'ARP .*Who has 10.71.0' \
		'ICMP .*Echo (ping) request' 'ICMPv6 .*Neighbor Solicitation'; do
		grep -q -- "$word" "$IBFS_DIR/dissected" || fail "not seen: $word" \
			"$(cut -c1-120 "$IBFS_DIR/dissected" | sed 's/.*→//' | sort | uniq -c | sort -rn | head -40)"
	done
}
