# SPDX-License-Identifier: BSD-2-Clause
# What an IP interface tells when the SA refuses: the notices, and promiscuous
# mode, with an SA that answers as the test says (tests/fake_sa.c).
load helpers
load ipoib

BROADCAST=ff12401bffff000000000000ffffffff

setup_file()
{
	ipoib_tools ibportstate || return 0
	start_leaves static ibn
	[ -n "${IBFS_PID:-}" ] || return 0
	rules ''
	# The preloaded library comes before the sanitizer's, when there is one.
	export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
	spawn sa ib "$BUILD/tests/fake_sa" rxe1 "$IBFS_DIR/rules"
	unset ASAN_OPTIONS
	wait_for file_has "$IBFS_DIR/sa.log" '^ready$'
	ib ibportstate -C rxe0 -D 0 1 smlid "$(($(cat "$MNT/rxe1/1/lid")))"
	file_is "$MNT/rxe0/1/sm_lid" "$(cat "$MNT/rxe1/1/lid")"
	spawn notices cat "$MNT/events"
	mkdir "$(ipoib 1)"
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

# The file changes at once: a reader sees the old or the new one.
rules() { printf '%s\n' "$@" >"$IBFS_DIR/rules.new"; mv "$IBFS_DIR/rules.new" "$IBFS_DIR/rules"; }
asked() { grep -c "^$1" "$IBFS_DIR/sa.log" || true; }
told() { file_has "$IBFS_DIR/notices.log" "device=rxe0 port=1 ipoib=ib0 event=$1\$"; }
logged() { file_has "$IBFS_DIR/log" "NOTICE: ${NS}1: $1"; }
flap()	# until the port is active again, which nobody does for it
{
	local link state
	link=$(echo "$SYSTEM_MNT"/fabric/links/*H-1:1*)
	echo down >"$link/ctl"
	wait_for file_has "$(ipoib 1)/status" '^state down$'
	echo up >"$link/ctl"
	wait_for file_is "$MNT/rxe0/1/phys_state" '5: LinkUp'
	for state in arm active; do
		ib ibportstate -C rxe0 -D 0 1 $state
		ib ibportstate -C rxe0 -D 0,1 1 $state
	done
	wait_for file_is "$MNT/rxe0/1/state" '4: ACTIVE'
}

@test "no broadcast group, and none can be made" {
	rules join=0x0200 get=0x0300 create=0x0200
	echo "create ifname=${NS}1" >"$(ipoib 1)/ctl"
	wait_for told broadcast_absent
	logged 'IPoIB broadcast group absent'
	grep -q "^join $BROADCAST state=1" "$IBFS_DIR/sa.log"
	grep -q "^create $BROADCAST state=1" "$IBFS_DIR/sa.log"
	run -0 cat "$(ipoib 1)/status"
	assert_line '^state joining$'
	assert_line '^notice IPoIB broadcast group absent$'
}

@test "it is made where the SA allows that" {
	rules join=0x0200 get=0x0300
	wait_for -t 30 ipoib_up 1
	told link_up
}

@test "a broadcast group with an MTU that the port hasn't" {
	rmdir "$(ipoib 1)"
	mkdir "$(ipoib 1)"
	rules join=0x0200 mtu=6
	echo "create ifname=${NS}1" >"$(ipoib 1)/ctl"
	wait_for told broadcast_mtu
	logged 'IPoIB broadcast group MTU 8192 greater than port.s maximum MTU 4096'
	# An SA that doesn't look is believed no more than that.
	rules mtu=6
	run ! ipoib_up 1
	rules mtu=5
	wait_for -t 30 ipoib_up 1
	file_has "$(ipoib 1)/status" '^mcast_mtu 4092$'
}

@test "the link comes back, and a group can't be joined again" {
	rules join=0x0200 create=0x0200
	flap
	wait_for told rejoin_failed
	logged "Failure on port up to rejoin multicast gid ff12:401b:ffff::ffff:ffff"
	rules mtu=4
	wait_for -t 30 ipoib_up 1
}

@test "promiscuous mode joins what others are in, without keeping it alive" {
	local group=ff12401bffff0000000000000f010203 other=ff12401b80010000000000000f010203
	rules "group=$group" "group=$other" "group=$BROADCAST" group=ff12601bffff000000000000000000fb
	echo 'promisc on' >"$(ipoib 1)/ctl"
	wait_for file_has "$(ipoib 1)/multicast" '^ff12:401b:ffff::f01:203 state=joined .* promisc$'
	wait_for file_has "$(ipoib 1)/multicast" '^ff12:601b:ffff::fb state=joined .* promisc$'
	grep -q "^join $group state=2" "$IBFS_DIR/sa.log"
	[ "$(asked "join $other")" = 0 ]
	# It goes when the others have left it, and with the mode.
	rules "group=$group"
	wait_for -t 30 not file_has "$(ipoib 1)/multicast" '601b:ffff::fb'
	echo 'promisc off' >"$(ipoib 1)/ctl"
	wait_for not file_has "$(ipoib 1)/multicast" 'f01:203'
	grep -q "^leave $group state=2" "$IBFS_DIR/sa.log"
}

@test "promiscuous mode tells what it misses" {
	local group=ff12401bffff0000000000000f010204 new=ff12401bffff0000000000000f010205
	rules list=0x0200
	echo 'promisc on' >"$(ipoib 1)/ctl"
	wait_for told promisc_no_list
	logged 'Could not get list of IBA multicast groups'
	rules join=0x0200 create=0x0200 "group=$group"
	wait_for told promisc_missed
	logged 'IBA promiscuous mode missed multicast group ff12:401b:ffff::f01:204'
	rules join=0x0200 create=0x0200 "group=$group" "group=$new"
	wait_for logged 'IBA promiscuous mode missed new multicast gid ff12:401b:ffff::f01:205'
	# What can be joined later is.
	rules "group=$group"
	wait_for -t 40 file_has "$(ipoib 1)/multicast" '^ff12:401b:ffff::f01:204 state=joined'
	echo 'promisc off' >"$(ipoib 1)/ctl"
}
