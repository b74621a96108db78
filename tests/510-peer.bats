# SPDX-License-Identifier: BSD-2-Clause
# PORT/peer/: the fabric as directories, over FUSE and over 9P.
load helpers
load 9p

setup_file()
{
	fat_tree "$BATS_FILE_TMPDIR" static
	export SOCK=$BATS_FILE_TMPDIR/9p
	start_ibfs "$BATS_FILE_TMPDIR/fat.conf" --9p "unix:$SOCK"
}
teardown_file() { stop_ibfs; }

# The far end of rxe0's cable: leaf 0. Its ports 1..4 have hosts, 5..8 two spines.
leaf() { echo "$MNT/rxe0/1/peer"; }

# ibnetdiscover's links as tests/peer_topology prints them: a node's line
# 'Switch N "S-GUID"' or 'Ca N "H-GUID"', then '[PORT](..) "X-GUID"[PORT](..)'.
discovered()
{
	ib ibnetdiscover -C rxe0 -P 1 | tr '"[]' '   ' | awk '
		/^(Switch|Ca)/ { node = substr($3, 3) }
		/^ *[0-9]+/ {
			for (i = 2; $i !~ /^[SH]-/; i++) ;
			print node, $1, substr($i, 3), $(i + 1)
		}' | sort
}

@test "a script that walks it prints ibnetdiscover's topology" {
	timeout 60 tests/peer_topology "$(leaf)" >"$BATS_TEST_TMPDIR/walked"
	discovered >"$BATS_TEST_TMPDIR/discovered"
	diff "$BATS_TEST_TMPDIR/discovered" "$BATS_TEST_TMPDIR/walked"
	# 16 hosts, 4 leaves with two cables to each of 2 spines
	[ "$(wc -l <"$BATS_TEST_TMPDIR/walked")" = 64 ]
	# From a switch, whose port 0 leads to itself
	timeout 60 tests/peer_topology "$MNT/sw0/0/peer" | diff "$BATS_TEST_TMPDIR/walked" -
}

@test "a node's files are what smpquery says" {
	local port
	[ "$(cat "$(leaf)/node_guid")" = "$(cat "$MNT/sw0/node_guid")" ]
	[ "$(cat "$(leaf)/node_type")" = '2: switch' ]
	[ "$(cat "$(leaf)/node_desc")" = "$(cat "$MNT/sw0/node_desc")" ]
	ib smpquery -D NodeInfo 0,1,2 >"$BATS_TEST_TMPDIR/info"
	grep -q "^Guid:\.*0x$(tr -d : <"$(leaf)/ports/2/peer/node_guid")$" "$BATS_TEST_TMPDIR/info"
	grep -q "^LocalPort:\.*$(sed -n 's/^local_port //p' "$(leaf)/ports/2/peer/attr")$" \
		"$BATS_TEST_TMPDIR/info"
	[ "$(sed -n 's/^route //p' "$(leaf)/ports/2/peer/attr")" = 0,1,2 ]
	[ "$(ls "$(leaf)/ports")" = "$(seq 0 8)" ]
	port=$(leaf)/ports/1/peer/ports/1
	[ "$(cat "$port/state")" = "$(cat "$MNT/rxe0/1/state")" ]
	[ "$(cat "$port/lid")" = "$(cat "$MNT/rxe0/1/lid")" ]
	grep -qx "rate $(cat "$MNT/rxe0/1/rate")" "$port/attr"
	[ -z "$(ls "$(leaf)/ports/0/peer")" ]
}

@test "a far port's counters: perfquery's, each cleared alone by writing 0" {
	local dir lid
	dir=$(leaf)/ports/5/counters
	lid=$(cat "$(leaf)/ports/0/lid")
	run -0 ib perfquery "$lid" 5
	assert_line "^SymbolErrorCounter:\.*$(cat "$dir/symbol_error")$"
	# PMA's own packets to the spine go by this port.
	cat "$(leaf)/ports/5/peer/ports/1/counters/port_rcv_data" >/dev/null
	[ "$(cat "$dir/port_xmit_packets")" -gt 0 ]
	[ "$(cat "$dir/port_xmit_data")" -gt 0 ]
	echo 0 >"$dir/port_xmit_packets"
	[ "$(cat "$dir/port_xmit_packets")" = 0 ]
	[ "$(cat "$dir/port_xmit_data")" -gt 0 ]
	[ "$(cat "$SYSTEM_MNT/fabric/switches/S-0008f10500000000/ports/5/counters/port_xmit_packets")" = 0 ]
	run ! bash -c "echo 1 >'$dir/port_xmit_data'"
	[ "$(ls "$dir")" = "$(ls "$MNT/rxe0/1/counters")" ]
}

@test "a loop of cables traps neither find nor a shell" {
	# without -maxdepth: no way comes by the same node twice
	[ "$(timeout 100 find "$(leaf)" -name node_guid | wc -l)" -gt 50 ]
	[ "$(timeout 20 find "$(leaf)" -maxdepth 4 -name node_guid | wc -l)" = 9 ]
	# by name one may go round
	local round=ports/5/peer/ports/1/peer
	[ "$(cat "$(leaf)/$round/$round/$round/node_guid")" = "$(cat "$(leaf)/node_guid")" ]
	[ "$(cat "$(leaf)/ports/1/peer/ports/1/peer/ports/1/peer/node_guid")" = \
		"$(cat "$MNT/rxe0/node_guid")" ]
}

@test "a way ends after 63 cables" {
	local dir n
	dir=$(leaf)
	for n in {1..31}; do
		dir=$dir/ports/5/peer/ports/1/peer
	done
	cd "$MNT/rxe0"
	[ "$(cat "${dir#"$MNT/rxe0/"}/node_guid")" = "$(cat "$(leaf)/node_guid")" ]
	[ -z "$(ls "${dir#"$MNT/rxe0/"}/ports/5/peer")" ]
}

@test "it is never staler than a second" {
	local cable=H-0002c90300000010:1-S-0008f10500000000:2 host
	host=$(leaf)/ports/2/peer
	[ -e "$host/node_guid" ]
	echo down >"$SYSTEM_MNT/fabric/links/$cable/ctl"
	sleep 1	# which is what the manual says
	[ ! -e "$host/node_guid" ]
	[ -z "$(ls "$host")" ]
	[ "$(cat "$(leaf)/ports/2/state")" = '1: DOWN' ]
	echo up >"$SYSTEM_MNT/fabric/links/$cable/ctl"
	sleep 1	# which is what the manual says
	[ -e "$host/node_guid" ]
	echo renamed >"$MNT/sw0/node_desc"
	sleep 1	# which is what the manual says
	[ "$(cat "$(leaf)/node_desc")" = renamed ]
}

@test "over 9P it is the same" {
	local file
	for file in node_guid attr ports/1/state ports/5/peer/attr ports/5/peer/ports/2/peer/node_desc; do
		cmp "$(leaf)/$file" <(p9_2000 cat "rxe0/1/peer/$file") || fail "$file" || return 1
		cmp "$(leaf)/$file" <(p9 cat "rxe0/1/peer/$file") || fail "$file" || return 1
	done
	diff <(ls -U "$(leaf)") <(p9_2000 ls rxe0/1/peer)
	diff <(ls -U "$(leaf)/ports") <(p9 ls rxe0/1/peer/ports)
	echo 0 | p9 write rxe0/1/peer/ports/6/counters/port_xmit_data
	run ! p9_2000 cat rxe0/1/peer/ports/9/state
	assert_line 'No such file'
	run ! p9_2000 write rxe0/1/peer/ports/6/counters/port_xmit_data <<<7
	assert_line 'a counter can be set to 0 only'
}

@test "a node that doesn't answer is waited for by nobody else, nor when it is given up" {
	local cable
	for cable in "$SYSTEM_MNT"/fabric/links/*; do echo drop=1 >"$cable/ctl"; done
	sleep 1	# which is what the manual says
	spawn waits cat "$(leaf)/node_guid"
	spawn waits9 "$BUILD/tests/p9" -s "$SOCK" cat rxe0/1/peer/ports/1/state
	[ "$(cat "$MNT/rxe0/1/state")" = '4: ACTIVE' ]
	reap waits9 KILL
	# The file is open before anything is lost, the read ends with an error.
	wait_for is_gone "$(spawned waits)"
	[ -z "$(ls "$(leaf)")" ]
	for cable in "$SYSTEM_MNT"/fabric/links/*; do echo faults off >"$cable/ctl"; done
	sleep 1	# which is what the manual says
	[ -e "$(leaf)/node_guid" ]
}

@test "anybody may look, only root may clear" {
	need_root
	need_tool setpriv
	chmod 755 "$IBFS_DIR"
	as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	[ "$(as_user cat "$(leaf)/node_type")" = '2: switch' ]
	run ! as_user bash -c "echo 0 >'$(leaf)/ports/1/counters/symbol_error'"
	assert_line 'Permission denied'
}

@test "a device that goes takes its peers along" {
	exec 7<"$MNT/rxe1/1/peer/node_guid"
	ls "$MNT/rxe1/1/peer/ports" >/dev/null
	echo "undevice rxe1" >"$SYSTEM_MNT/fabric/ctl"
	run ! cat <&7
	exec 7<&-
	[ ! -e "$MNT/rxe1" ]
	[ -e "$(leaf)/node_guid" ]
}
