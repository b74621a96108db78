# SPDX-License-Identifier: BSD-2-Clause
# Imperfect cables by their ctl files, felt by unmodified programs: what a
# cable does to them, what is counted, that a seed replays it, and that OpenSM
# brings up a fabric whose cables lose packets.
load helpers

setup_file()
{
	command -v ibping >/dev/null || skip_file "infiniband-diags is not installed"
	[ -w /dev/fuse ] || skip_file "no /dev/fuse here"
}

teardown() { stop_ibfs; }

# cable NODE COMMAND: to the ctl of the only cable that begins or ends there.
cable() { echo "$2" >"$(echo "$MNT"/fabric/links/*"$1"*)/ctl"; }
lid_of() { printf '%d\n' "$(cat "$MNT/$1/1/lid")"; }
answers() { ib ibping -C "$1" -c 1 -t 200 "$(lid_of "$2")" | grep -q '1 received'; }
symbol_errors() { sed -n 's/^symbol_error //p' "$(echo "$MNT"/fabric/links/*"$1"*)/counters"; }

start_pings()
{
	start_ibfs
	spawn server ib ibping -S -C rxe1
	wait_for answers rxe0 rxe1
}

# pings COUNT: how many of them were answered.
pings()
{
	ib ibping -C rxe0 -c "$1" -f -t 10 "$(lid_of rxe1)" |
		sed -n 's/.*transmitted, \([0-9]*\) received.*/\1/p'
}

@test "a cable that drops everything, until it is mended" {
	start_pings
	run -0 ib smpquery -C rxe0 -D nodeinfo 0,1,2
	assert_line "Guid"
	cable rxe1 'drop=1'
	run ! ib smpquery -C rxe0 -t 20 -D nodeinfo 0,1,2
	[ "$(pings 5)" = 0 ]
	cable rxe1 'faults off'
	[ "$(pings 5)" = 5 ]
}

# attempts COUNT: which of as many queries got an answer, a 0 or 1 each. The SMA
# answers at once or never, so that it depends on the cable alone.
attempts() { ctest dr_attempts "$MNT/rxe0/1/umad" "$1" 1 2; }

@test "the same seed loses the same packets" {
	local first second
	start_ibfs
	cable rxe1 'drop=0.5 seed=7'
	first=$(attempts 40)
	cable rxe1 'drop=0.5 seed=7'
	second=$(attempts 40)
	[[ $first == *0* && $first == *1* ]]
	[ "$first" = "$second" ]
}

@test "a cable that spoils packets: counted at each end that receives" {
	start_pings
	cable rxe1 'corrupt=1'
	[ "$(pings 6)" = 0 ]
	# The requests, some sent again, come to rxe1, whose end stands first; no answer leaves it.
	read -r near far < <(symbol_errors rxe1)
	[ "$near" -ge 6 ] && [ "$far" = 0 ]
	[ "$(cat "$MNT/rxe1/1/counters/symbol_error")" = "$near" ]
	[ "$(cat "$MNT/rxe1/1/counters/port_rcv_errors")" = "$near" ]
}

@test "doubled, reordered and late packets are survived" {
	start_pings
	cable rxe1 'duplicate=1'
	[ "$(pings 20)" = 20 ]
	cable rxe1 'duplicate=0.5 reorder=0.5 delay=1ms jitter=1ms seed=3'
	run -0 ib perfquery -C rxe0 -x "$(lid_of rxe1)" 1
	run -0 ib smpquery -C rxe0 nodedesc "$(lid_of rxe1)"
	assert_line 'rxe1'
}

@test "OpenSM brings up a fabric that loses packets" {
	command -v opensm >/dev/null || skip "opensm is not installed"
	local link i=0
	fat_tree "$BATS_TEST_TMPDIR" sm
	start_ibfs "$BATS_TEST_TMPDIR/fat.conf"
	for link in "$MNT"/fabric/links/*; do
		echo "drop=0.004 corrupt=0.002 duplicate=0.01 seed=$((i += 1))" >"$link/ctl"
	done
	start_opensm sm rxe0
	wait_for -t 60 file_is "$MNT/rxe0/1/state" '4: ACTIVE'
	all_up() { ! grep -L '4: ACTIVE' "$MNT"/fabric/nodes/*/ports/1/state | grep .; }
	wait_for -t 60 all_up
}

@test "a cable that spoils too much is reported to OpenSM" {
	command -v opensm >/dev/null || skip "opensm is not installed"
	start_pings
	start_opensm sm rxe0
	wait_for file_has "$IBFS_DIR/sm.osm.log" 'SUBNET UP'
	cable rxe1 'corrupt=1'
	# The switch's end sees too many of what rxe1 sends; rxe1's own trap can't get through.
	ib ibping -C rxe1 -c 30 -f -t 10 "$(lid_of rxe0)" || true
	wait_for -t 20 file_has "$IBFS_DIR/sm.osm.log" 'num:129'
}

@test "a port without buffers is reported to OpenSM, and flow control that stops" {
	command -v opensm >/dev/null || skip "opensm is not installed"
	start_pings
	start_opensm sm rxe0
	wait_for file_has "$IBFS_DIR/sm.osm.log" 'SUBNET UP'
	run ! file_has "$IBFS_DIR/sm.osm.log" 'num:13[01]'
	cable rxe1 'overrun=1'
	# As above: the switch's end has the manager on its other side.
	ib ibping -C rxe1 -c 30 -f -t 10 "$(lid_of rxe0)" || true
	wait_for -t 20 file_has "$IBFS_DIR/sm.osm.log" 'num:130'
	grep -Eq '^excessive_buffer_overrun_errors .*[1-9]' "$(echo "$MNT"/fabric/links/*rxe1*)/counters"
	cable rxe1 'faults off'
	cable rxe1 stall
	wait_for -t 20 file_has "$IBFS_DIR/sm.osm.log" "num:131 .*LID:$(lid_of rxe1) "
	cable rxe1 down
	run ! cable rxe1 stall
	assert_line 'write error: Link has been severed'
}
