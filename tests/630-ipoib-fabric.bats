# SPDX-License-Identifier: BSD-2-Clause
# IP over InfiniBand while the fabric changes: cables, subnet managers and LIDs.
# Transfers that began before go on after it, by connections and by datagrams.
load helpers
load ipoib

setup_file()
{
	ipoib_tools opensm ping python3 saquery || return 0
	start_leaves sm ibf
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm rxe0
	add_host 1
	add_host 2
	add_host 3 "linkmode ud"
	add_host 4 "linkmode ud"
	head -c 4000000 /dev/urandom >"$IBFS_DIR/half"
	cat "$IBFS_DIR/half" "$IBFS_DIR/half" >"$IBFS_DIR/whole"
	# Who listens at a port of host N takes one file, and says when it does.
	cat >"$IBFS_DIR/take" <<-'END'
	import socket, sys
	server = socket.create_server(("", 7000))
	print("ready", flush=True)
	data = server.accept()[0].makefile("rb")
	with open(sys.argv[1], "wb") as out:
	    while chunk := data.read1(65536):
	        out.write(chunk)
	        out.flush()
	END
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

# begin FROM TO: send half of a file, and wait until it has come. finish FROM TO:
# send the other half, which must come, too, all as it was sent.
begin()
{
	: >"$IBFS_DIR/take$2.log"
	rm -f "$IBFS_DIR/go$1" "$IBFS_DIR/got$2"
	spawn "take$2" ip netns exec "$NS$2" python3 "$IBFS_DIR/take" "$IBFS_DIR/got$2"
	wait_for file_has "$IBFS_DIR/take$2.log" ready
	# shellcheck disable=SC2016
	spawn "send$1" ip netns exec "$NS$1" bash -c 'cd "$0"; exec 3>"/dev/tcp/10.71.0.$2/7000"
		cat half >&3; until [ -e "go$1" ]; do sleep 0.05; done; cat half >&3' "$IBFS_DIR" "$1" "$2"
	wait_for -t 30 cmp -s "$IBFS_DIR/half" "$IBFS_DIR/got$2"
}
go() { touch "$IBFS_DIR/go$1"; }
finish()
{
	wait_for -t 60 is_gone "$(spawned "take$2")"
	cmp "$IBFS_DIR/whole" "$IBFS_DIR/got$2"
}

link() { echo "$SYSTEM_MNT"/fabric/links/*"H-$1:1"*; }
# All four are in the broadcast group again, in the eyes of the SA.
all_joined()
{
	[ "$(ib saquery -C "$1" --smkey 1 -m | awk '/MGID/ { ours = /ff12:401b:ffff::ffff:ffff/ }
		ours && /PortGid\.*fe80/' | wc -l)" = 4 ]
}
lid_is_not() { [ "$(cat "$MNT/rxe$(($1 - 1))/1/lid")" != "$2" ]; }

@test "a cable that is pulled and put back" {
	local n
	begin 1 2
	begin 3 4
	for n in 2 4; do echo down >"$(link $n)/ctl"; done
	for n in 2 4; do wait_for file_has "$(ipoib $n)/status" '^state down$'; done
	[ "$(host 2 cat /sys/class/net/ib0/carrier)" = 0 ]
	go 1
	go 3
	for n in 2 4; do echo up >"$(link $n)/ctl"; done
	for n in 2 4; do wait_for -t 60 ipoib_up $n; done
	[ "$(host 2 cat /sys/class/net/ib0/carrier)" = 1 ]
	finish 1 2
	finish 3 4
}

@test "a subnet manager that is killed, and one that starts" {
	local n
	begin 1 2
	begin 3 4
	reap sm KILL
	go 1
	go 3
	# What is known needs no SA.
	finish 1 2
	finish 3 4
	begin 2 1
	start_opensm sm rxe0
	go 2
	finish 2 1
	wait_for -t 30 all_joined rxe0
	for n in 1 2 3 4; do wait_for ipoib_up $n; done
	wait_for pings 1 10.71.0.3
}

@test "a subnet manager on another node" {
	local n
	begin 1 2
	reap sm KILL
	start_opensm sm2 rxe3
	wait_for -t 30 file_is "$MNT/rxe1/1/sm_lid" "$(cat "$MNT/rxe3/1/lid")"
	go 1
	finish 1 2
	wait_for -t 30 all_joined rxe3
	# A group that nobody asked for before is asked of the new one.
	host 2 ip addr add 239.1.2.4/32 dev ib0 autojoin
	wait_for file_has "$(ipoib 2)/multicast" '^ff12:401b:ffff::f01:204 state=joined'
	wait_for pings 3 239.1.2.4 -I ib0
}

@test "other LIDs" {
	local n lid guid first last
	begin 1 2
	begin 3 4
	reap sm2 TERM
	lid=$(cat "$MNT/rxe1/1/lid")
	# The file says which LIDs there were: each moves up by 32.
	while read -r guid first last; do
		[ -z "$guid" ] || printf '%s 0x%04x 0x%04x\n\n' "$guid" $((first + 32)) $((last + 32))
	done <"$IBFS_DIR/sm2/guid2lid" >"$IBFS_DIR/sm2/new"
	mv "$IBFS_DIR/sm2/new" "$IBFS_DIR/sm2/guid2lid"
	start_opensm sm2 rxe3 -x -r
	wait_for -t 30 lid_is_not 2 "$lid"
	go 1
	go 3
	finish 1 2
	finish 3 4
	for n in 1 2 3 4; do wait_for ipoib_up $n; done
	for n in 2 3 4; do
		wait_for pings 1 10.71.0.$n
		wait_for file_has "$(ipoib 1)/neighbours" "^10.71.0.$n .* lid=$(cat "$MNT/rxe$((n - 1))/1/lid") "
	done
}
