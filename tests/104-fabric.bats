# SPDX-License-Identifier: BSD-2-Clause
# fabric/: what it shows of switches, nodes and links, and what its ctl files do.
load helpers

setup_file()
{
	is_soft || { skip_file "the fabric is the system's"; return 0; }
	start_ibfs
}
teardown_file() { stop_ibfs; }

f() { echo "$MNT/fabric/$1"; }
refused() { [ "$status" -ne 0 ] && [[ $output == *"$1"* ]]; }
# ctl FILE WORDS...
ctl()
{
	local file=$1
	[[ $file == */ctl || $file == ctl ]] || file=$file/ctl
	echo "${*:2}" >"$(f "$file")"
}
try_ctl()
{
	local file=$1
	[[ $file == */ctl || $file == ctl ]] || file=$file/ctl
	run bash -c "echo '${*:2}' >'$(f "$file")'"
}
link=links/rxe0:1-switch:1

@test "nodes, switches and links are there by name" {
	[ "$(ls "$(f nodes)")" = $'rxe0\nrxe1' ]
	[ "$(ls "$(f switches)")" = switch ]
	[ "$(ls "$(f links)")" = $'rxe0:1-switch:1\nrxe1:1-switch:2' ]
	[ "$(ls -v "$(f switches/switch/ports)")" = "$(seq 0 8)" ]
	[ "$(ls "$(f nodes/rxe0/ports)")" = 1 ]
	[ "$(cat "$(f switches/switch/ports/2/peer)")" = rxe1:1 ]
	[ "$(cat "$(f switches/switch/ports/3/peer)")" = none ]
	[ "$(cat "$(f $link/ends)")" = 'rxe0:1 switch:1' ]
	grep -qx 'device rxe1' "$(f nodes/rxe1/attr)"
}

@test "a switch's forwarding table leads to the LIDs" {
	local port lid
	for port in 1 2; do
		lid=$(printf '0x%04x' "$(cat "$MNT/rxe$((port - 1))/1/lid")")
		grep -qx "$lid $port" "$(f switches/switch/lft)"
	done
	grep -qx "$(printf '0x%04x' "$(cat "$(f switches/switch/lid)")") 0" \
		"$(f switches/switch/lft)"
}

@test "topology is a file that a daemon starts from" {
	local dir=$BATS_TEST_TMPDIR
	cp "$(f topology)" "$dir/fabric.net"
	printf 'topology = "%s";\ndevices = ({ name = "rxe0"; node = "rxe0"; });\n' \
		"$dir/fabric.net" >"$dir/conf"
	mkdir "$dir/m"
	"$BUILD/ibfs" -c "$dir/conf" "$dir/m"
	run ls "$dir/m/fabric/links"
	umount "$dir/m"
	[ "$output" = $'switch:1-rxe0:1\nswitch:2-rxe1:1' ]
}

@test "a link goes down and up" {
	ctl $link down
	[ "$(cat "$(f $link/state)")" = down ]
	[ "$(cat "$MNT/rxe0/1/state")" = '1: DOWN' ]
	[ "$(cat "$MNT/rxe0/1/phys_state")" = '2: Polling' ]
	[ "$(cat "$(f switches/switch/ports/1/state)")" = '1: DOWN' ]
	grep -qx 'state down' "$(f $link/attr)"
	ctl $link up
	[ "$(cat "$(f $link/state)")" = up ]
	[ "$(cat "$MNT/rxe0/1/state")" = '4: ACTIVE' ]
	[ "$(cat "$MNT/rxe0/1/counters/link_downed")" -ge 1 ]
}

@test "faults are set, kept, changed one at a time, and taken away" {
	ctl $link 'drop=0.01 delay=5ms seed=42'
	grep -qx 'faults drop=0.01 corrupt=0 duplicate=0 reorder=0 overrun=0 delay=0.005s jitter=0s seed=42' \
		"$(f $link/attr)"
	ctl $link 'corrupt=2% jitter=10us drop=0'
	grep -qx 'faults drop=0 corrupt=0.02 duplicate=0 reorder=0 overrun=0 delay=0.005s jitter=1e-05s seed=42' \
		"$(f $link/attr)"
	ctl $link 'overrun=1'
	grep -q ' overrun=1 ' "$(f $link/attr)"
	ctl $link 'faults off'
	grep -qx 'faults off' "$(f $link/attr)"
}

@test "a link that drops everything loses a query, and one that is mended doesn't" {
	need_tool smpquery
	ctl $link drop=1
	run ib smpquery -t 100 -D nodeinfo 0,1
	[ "$status" -ne 0 ]
	ctl $link faults off
	run -0 ib smpquery -D nodeinfo 0,1
}

@test "width and speed" {
	ctl $link width 1X
	[ "$(cat "$MNT/rxe0/1/rate")" = '25 Gb/sec (1X EDR)' ]
	ctl $link speed QDR
	[ "$(cat "$MNT/rxe0/1/rate")" = '10 Gb/sec (1X QDR)' ]
	grep -qx 'speed QDR' "$(f $link/attr)"
	ctl $link width 4X
	ctl $link speed EDR
	[ "$(cat "$MNT/rxe0/1/rate")" = '100 Gb/sec (4X EDR)' ]
	[ "$(cat "$MNT/rxe0/1/state")" = '4: ACTIVE' ]
	try_ctl $link width 3X
	refused 'Invalid argument'
	try_ctl $link speed XDR
	refused 'Invalid argument'
	tail -1 "$MNT/errors" | grep -q 'do not both support XDR'
}

@test "what a link's ctl refuses leaves it as it was" {
	local before words
	before=$(cat "$(f $link/attr)")
	for words in drop=2 drop=-1 drop= drop=x drop=nan delay=5 delay=5h delay=-1s 'drop=0.5 what' \
		'faults' 'faults on' 'down now' 'seed=-1' 'width' 'speed fast' 'width 4X 4X'; do
		[ "$words" != delay=5 ] || continue
		try_ctl $link "$words"
		refused 'Invalid argument' || fail "$words: $status $output"
	done
	[ "$(cat "$(f $link/attr)")" = "$before" ]
	tail -1 "$MNT/errors" | grep -q '^EINVAL: links/ctl: '
}

@test "nodes, links and devices can be added and removed" {
	ctl ctl 'switch spine 4'
	ctl ctl 'ca host 2'
	printf 'link switch:5 spine:1\nlink host:1 spine:2\n' >"$(f ctl)"
	[ -d "$(f links/host:1-spine:2)" ]
	[ "$(cat "$(f nodes/host/ports/1/state)")" = '4: ACTIVE' ]
	ctl ctl 'device host name=rxe9'
	[ -d "$MNT/rxe9/1" ]
	[ -d "$MNT/rxe9/2" ]
	[ "$(cat "$MNT/sys/class/infiniband_mad/umad2/ibdev")" = rxe9 ]
	ctl ctl 'device spine'
	[ "$(cat "$MNT/rxe2/node_type")" = '2: switch' ]
	[ "$(ls "$MNT/sys/class/infiniband/rxe2/ports")" = 0 ]
	ctl nodes/host/ctl undevice
	[ ! -e "$MNT/rxe9" ]
	[ ! -e "$MNT/dev/infiniband/umad2" ]
	ctl ctl 'unlink host:1'
	[ ! -e "$(f links/host:1-spine:2)" ]
	[ "$(cat "$(f nodes/host/ports/1/state)")" = '1: DOWN' ]
	ctl ctl 'unlink switch:5-spine:1'
	ctl switches/spine/ctl remove
	[ ! -e "$(f switches/spine)" ]
	[ ! -e "$MNT/rxe2" ]
	ctl ctl 'remove host'
	[ "$(ls "$(f nodes)")" = $'rxe0\nrxe1' ]
}

@test "what fabric/ctl refuses" {
	try_ctl ctl 'device nobody'
	refused 'No such file or directory'
	try_ctl ctl 'device rxe0 name=again'
	refused 'busy'
	try_ctl ctl 'device switch name=fabric'
	refused 'File exists'
	try_ctl ctl 'device switch name=a/b'
	refused 'Invalid argument'
	try_ctl ctl 'link rxe0:1 switch:5'
	refused 'busy'
	try_ctl ctl 'link rxe0:2 switch:5'
	refused 'No such file or directory'
	try_ctl ctl 'unlink switch:5'
	refused 'No such file or directory'
	try_ctl ctl 'switch switch 3'
	refused 'File exists'
	try_ctl ctl 'switch new 255'
	refused 'Invalid argument'
	try_ctl ctl 'remove'
	refused 'Invalid argument'
	tail -1 "$MNT/errors" | grep -q "expected .remove NODE."
	[ "$(find "$(f nodes)" "$(f switches)" -mindepth 1 -maxdepth 1 | wc -l)" = 3 ]
}

@test "a device removed by its own ctl leaves its node" {
	ctl ctl 'ca lone 1'
	ctl ctl 'device lone name=lone0'
	exec 5<"$MNT/lone0/1/lid"
	echo remove >"$MNT/lone0/ctl"
	[ ! -e "$MNT/lone0" ]
	[ -d "$(f nodes/lone)" ]
	run ! cat <&5
	exec 5<&-
	ctl ctl 'remove lone'
}

@test "ids with characters that no file name has" {
	ctl ctl 'ca a/b%c 1'
	[ -d "$(f nodes/a%2fb%25c)" ]
	[ "$(sed -n 's/^id //p' "$(f nodes/a%2fb%25c/attr)")" = 'a/b%c' ]
	ctl ctl 'ca .. 1'
	ctl ctl 'remove %2e.'
	ctl nodes/a%2fb%25c/ctl remove
}

@test "an XDR link has its rate" {
	local dir=$BATS_TEST_TMPDIR
	printf 'Switch 4 "s"\n[1] "a"[1] # lid 1 4xXDR\n\nCa 1 "a"\n[1] "s"[1] # lid 1 lmc 0 "s" lid 2 4xXDR\n' \
		>"$dir/net"
	printf 'topology = "%s";\ndevices = ({ name = "rxe0"; node = "a"; });\n' "$dir/net" >"$dir/conf"
	mkdir "$dir/m"
	"$BUILD/ibfs" -c "$dir/conf" "$dir/m"
	run cat "$dir/m/rxe0/1/rate"
	umount "$dir/m"
	[ "$output" = '800 Gb/sec (4X XDR)' ]
}
