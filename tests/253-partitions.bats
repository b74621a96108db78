# SPDX-License-Identifier: BSD-2-Clause
# Partitions that OpenSM hands out, enforced by switches and adapters: a packet
# of another partition, or with a wrong Q_Key, is lost, counted, and OpenSM told.
load helpers
load ipoib

setup_file() { command -v opensm >/dev/null || skip_file "opensm is not installed"; }
teardown()
{
	cd "$TOP" || return
	stop_ibfs
}

guid() { echo "0x$(cut -d: -f5- "$MNT/rxe$(($1 - 1))/1/gids/0" | tr -d :)"; }
lid() { printf '%d\n' "$(cat "$MNT/$1/1/lid")"; }

# begin ENFORCEMENT: a fabric with OpenSM, and a datagram QP of host 1 in "red", which
# host 4 isn't in; all are in the default partition.
begin()
{
	two_leaves "$BATS_TEST_TMPDIR" sm
	start_ibfs "$BATS_TEST_TMPDIR/ip.conf"
	cat >"$IBFS_DIR/partitions" <<-END
	Default=0x7fff, defmember=full : ALL, ALL_SWITCHES, SELF=full;
	red=0x0001, defmember=full : $(guid 1), $(guid 2), $(guid 3);
	END
	start_opensm sm rxe0 -P "$IBFS_DIR/partitions" -Z "$1"
	wait_for file_is "$MNT/rxe3/1/state" "4: ACTIVE"
	wait_for file_is "$MNT/rxe0/1/pkeys/1" 0x8001
	cd "$MNT" || return
	datagram_qp u rxe0 1
	mkdir ah/h
	echo "create pd=u lid=$(lid rxe3) port=1" >ah/h/ctl
}

# datagram_qp NAME DEVICE PKEY-INDEX
datagram_qp()
{
	mkdir "pd/$1" "cq/$1" "qp/$1"
	echo "create device=$2" >"pd/$1/ctl"
	echo "create device=$2 cqe=8" >"cq/$1/ctl"
	echo "create type=ud pd=$1 cq=$1 sq=8 rq=8" >"qp/$1/ctl"
	printf 'init port=1 qkey=1 pkey=%s\nrtr\nrts\n' "$3" >"qp/$1/ctl"
}

@test "a switch lets out no packet of a partition that the far port isn't in" {
	begin both
	echo 'send text=x ah=h qpn=1 qkey=1' >qp/u/post
	wait_for file_is fabric/switches/S-2/ports/2/counters/port_xmit_constraint_errors 1
	wait_for file_has "$IBFS_DIR/sm.osm.log" \
		"Reporting Security Notice .* from switch LID .* port 2 : .*PKey 0x8001"
	run -0 grep '^bad_pkey_cntr' rxe3/1/attr
	assert_line '^bad_pkey_cntr 0$'
}

@test "an adapter refuses such a packet, and one with a wrong Q_Key" {
	begin off
	datagram_qp other rxe3 0
	datagram_qp all rxe0 0
	echo "send text=x ah=h qpn=$(cat qp/other/qpn) qkey=1" >qp/u/post
	wait_for file_has rxe3/1/attr '^bad_pkey_cntr 1$'
	wait_for file_has "$IBFS_DIR/sm.osm.log" 'Reporting Security Notice .* P_Key 0x8001, '
	mkdir ah/all
	echo "create pd=all lid=$(lid rxe3) port=1" >ah/all/ctl
	echo "send text=x ah=all qpn=$(cat qp/other/qpn) qkey=0x123" >qp/all/post
	wait_for file_has rxe3/1/attr '^qkey_viol_cntr 1$'
	wait_for file_has "$IBFS_DIR/sm.osm.log" 'Reporting Security Notice .* Q_Key 0x123, '
}
