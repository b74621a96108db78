# SPDX-License-Identifier: BSD-2-Clause
# Every completion status and every asynchronous event that there is, from a shell.
load helpers
load native

setup_file()
{
	cat >"${BATS_FILE_TMPDIR}/conf" <<-END
	subnet = "static";
	switches = ( { name = "s1"; ports = 8; }, { name = "s2"; ports = 8; } );
	hcas = ( { name = "rxe0"; ports = 2; }, { name = "rxe1"; ports = 2; } );
	links = ( { a = "rxe0[1]"; b = "s1[1]"; }, { a = "rxe0[2]"; b = "s2[1]"; },
	    { a = "rxe1[1]"; b = "s1[2]"; }, { a = "rxe1[2]"; b = "s2[2]"; },
	    { a = "s1[8]"; b = "s2[8]"; } );
	END
	start_ibfs "${BATS_FILE_TMPDIR}/conf"
}
teardown_file() { stop_ibfs; }
setup() { native_setup 2 local_write,remote_write,remote_read,remote_atomic,mw_bind; }
teardown() { native_teardown; }

# pair [WORDS...]: qp/a on rxe0 and qp/b on rxe1, connected with these attributes
pair()
{
	qp a 0
	qp b 1
	echo "connect peer=b $*" >qp/a/ctl
}
# From an error back to where they were.
again()
{
	for q in a b; do echo reset >qp/$q/ctl; done
	echo "connect peer=b $*" >qp/a/ctl
}
far() { echo "raddr=${1:-0} rkey=$(cat mr/m1/rkey)"; }
state_is() { grep -qx "state $2" "qp/$1/status" || fail "$(cat "qp/$1/status")"; }

@test "local errors: loc_len_err, loc_qp_op_err, loc_prot_err, wr_flush_err, mw_bind_err" {
	pair
	echo "recv mr=m1 length=10" >qp/b/post
	echo "send mr=m0 length=11" >qp/a/post
	wc_is c1 "*status=loc_len_err opcode=recv *"
	event_is qp/b qp_req_err
	wc_is c0 "*status=rem_inv_req_err opcode=send *"
	state_is a err
	again max_rd_atomic=0
	echo "read mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=loc_qp_op_err opcode=rdma_read *"
	again
	# The region is made anew without the right to be written to: a read can't end there.
	mkdir mr/ro
	echo "create pd=p0 size=4K access=remote_read" >mr/ro/ctl
	printf '%s\n' "read mr=ro length=8 $(far)" "send text=x" "send text=y" >qp/a/post
	wc_is c0 "*status=loc_prot_err opcode=rdma_read *"
	wc_is c0 "*status=wr_flush_err opcode=send *"
	wc_is c0 "*status=wr_flush_err opcode=send *"
	again
	mkdir mw/w
	echo "create pd=p0 type=2" >mw/w/ctl
	echo "bind_mw mw=w mr=m0 offset=60K length=8K" >qp/a/post
	wc_is c0 "*status=mw_bind_err opcode=bind_mw *"
	again
	echo "local_inv key=$(cat mr/m0/lkey)" >qp/a/post
	wc_is c0 "*status=mw_bind_err opcode=local_inv *"
}

@test "remote errors: rem_inv_req_err, rem_access_err, rem_op_err, loc_access_err" {
	pair
	echo "modify access=remote_read" >qp/b/ctl
	echo "write mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=rem_inv_req_err opcode=rdma_write *"
	event_is qp/b qp_req_err
	again
	echo "write mr=m0 length=8 $(far 65530)" >qp/a/post
	wc_is c0 "*status=rem_access_err opcode=rdma_write *"
	event_is qp/b qp_access_err
	again
	echo "fetch_and_add mr=m0 add=1 raddr=0 rkey=0x12345" >qp/a/post
	wc_is c0 "*status=rem_access_err opcode=fetch_add *"
	event_is qp/b qp_access_err
	again
	# A receive request whose memory isn't to be written to
	mkdir mr/ro
	echo "create pd=p1 size=4K access=remote_read" >mr/ro/ctl
	echo "recv mr=ro" >qp/b/post
	echo "send text=x" >qp/a/post
	wc_is c1 "*status=loc_prot_err opcode=recv *"
	wc_is c0 "*status=rem_op_err opcode=send *"
	again
	echo "recv" >qp/b/post
	echo "write_with_imm mr=m0 length=8 raddr=0 rkey=0x12345" >qp/a/post
	wc_is c1 "*status=loc_access_err opcode=recv_rdma_with_imm *"
	wc_is c0 "*status=rem_access_err opcode=rdma_write *"
}

@test "nobody answers: retry_exc_err, rnr_retry_exc_err" {
	pair rnr_retry=2 retry_cnt=1 timeout=10 min_rnr_timer=1
	echo "send text=x" >qp/a/post
	wc_is c0 "*status=rnr_retry_exc_err opcode=send *"
	again retry_cnt=1 timeout=10
	echo drop=1 >"$SYSTEM_MNT"/fabric/links/rxe1:1*/ctl
	echo "write mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=retry_exc_err opcode=rdma_write *"
	echo faults off >"$SYSTEM_MNT"/fabric/links/rxe1:1*/ctl
}

# Two ends that disagree about the packets' size: the answer to a read fits nowhere.
@test "bad_resp_err" {
	qp a 0; qp b 1
	printf "init\nrtr lid=%d qpn=%s mtu=256\nrts\n" "$(lid rxe1)" "$(cat qp/b/qpn)" >qp/a/ctl
	printf "init\nrtr lid=%d qpn=%s mtu=1024\nrts\n" "$(lid rxe0)" "$(cat qp/a/qpn)" >qp/b/ctl
	echo "read mr=m0 length=700 $(far)" >qp/a/post
	wc_is c0 "*status=bad_resp_err opcode=rdma_read *"
}

@test "a send queue's error of UD: SQE, and back" {
	qp u 0 type=ud
	printf 'init qkey=1\nrtr\nrts\n' >qp/u/ctl
	mkdir ah/h
	echo "create pd=p0 lid=$(lid rxe1) port=1" >ah/h/ctl
	printf 'send mr=m0 length=5000 ah=h qpn=5 qkey=1\nsend text=x ah=h qpn=5 qkey=1\n' >qp/u/post
	wc_is c0 "*status=loc_len_err *"
	wc_is c0 "*status=wr_flush_err *"
	state_is u sqe
	echo rts >qp/u/ctl
	echo 'send text=x ah=h qpn=5 qkey=1' >qp/u/post
	wc_is c0 "*status=success *"
}

has_open() { [ -n "$(find "/proc/$1/fd" -lname "*/$2")" ]; }
# Its output began, and it sleeps: in the read of the next line.
sleeps_after() { [ -s "$2" ] && [ "$(awk '/^State:/ { print $2 }' "/proc/$1/status")" = S ]; }

@test "a device that goes: fatal_err, device_fatal, EIO" {
	soft_only "its driver completes nothing when it goes; 702 and 703 have the rest"
	local wc events
	mkdir pd/px cq/cx qp/x
	echo "ca gone 1" >"$SYSTEM_MNT/fabric/ctl"
	echo "link gone:1 s1:5" >"$SYSTEM_MNT/fabric/ctl"
	echo "device gone name=rxe7" >"$SYSTEM_MNT/fabric/ctl"
	echo "create device=rxe7" >pd/px/ctl
	echo "create device=rxe7 cqe=8" >cq/cx/ctl
	echo "create pd=px cq=cx" >qp/x/ctl
	echo init >qp/x/ctl
	echo "recv wr_id=3" >qp/x/post
	echo err >qp/x/ctl
	cat cq/cx/wc >"$BATS_TEST_TMPDIR/wc" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	wc=$!
	head -1 events >"$BATS_TEST_TMPDIR/events" 3>&- &
	events=$!
	wait_for sleeps_after $wc "$BATS_TEST_TMPDIR/wc"
	wait_for has_open $events ib/events
	printf 'reset\ninit\n' >qp/x/ctl
	echo "recv wr_id=4" >qp/x/post
	echo remove >rxe7/ctl
	run ! wait $wc
	wait $events
	[ "$(tail -1 "$BATS_TEST_TMPDIR/wc")" = "wr_id=4 status=fatal_err opcode=recv byte_len=0 qp=x" ]
	grep -q "Input/output error" "$BATS_TEST_TMPDIR/err"
	[ "$(cat "$BATS_TEST_TMPDIR/events")" = "device=rxe7 event=device_fatal" ]
	run cat cq/cx/wc
	[[ $output == *"Input/output error"* ]]
	rmdir qp/x cq/cx pd/px
}

@test "events of QPs, CQs and SRQs" {
	# comm_est: the first packet in RTR
	qp a 0; qp b 1
	printf "init\nrtr lid=%d qpn=%s\nrts\n" "$(lid rxe1)" "$(cat qp/b/qpn)" >qp/a/ctl
	printf "init\nrtr lid=%d qpn=%s\n" "$(lid rxe0)" "$(cat qp/a/qpn)" >qp/b/ctl
	echo "write mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=success*"
	event_is qp/b comm_est
	# sq_drained: what was sent is answered only when there is a receive request.
	echo "send text=first" >qp/a/post
	echo "sqd sqd_event=1" >qp/a/ctl
	echo "send text=second" >qp/a/post
	grep -qx "sq_draining 1" qp/a/status
	echo "recv mr=m1" >qp/b/post
	event_is qp/a sq_drained
	grep -qx "sq_draining 0" qp/a/status
	wc_is c1 "*opcode=recv byte_len=5 *"
	wc_is c0 "*opcode=send *"
	[[ $(cat cq/c0/status) == *"waiting 0"* ]]
	echo "recv mr=m1" >qp/b/post
	echo rts >qp/a/ctl
	wc_is c1 "*opcode=recv byte_len=6 *"
	wc_is c0 "*opcode=send *"
	# cq_err and qp_fatal: the fourth completion finds no room for three.
	mkdir cq/small qp/s qp/t srq/r
	echo "create device=rxe0 cqe=3" >cq/small/ctl
	echo "create pd=p1 wr=8 sge=1" >srq/r/ctl
	echo "create pd=p0 cq=small" >qp/s/ctl
	echo "create pd=p1 cq=c1 srq=r" >qp/t/ctl
	echo "connect peer=t" >qp/s/ctl
	for _ in 1 2 3 4; do echo "write mr=m0 length=1 $(far)"; done >qp/s/post
	event_is cq/small cq_err
	event_is qp/s qp_fatal
	grep -qx "state error" cq/small/status
	# qp_last_wqe_reached: it takes no more from its SRQ.
	echo err >qp/t/ctl
	event_is qp/t qp_last_wqe_reached
	rmdir qp/s qp/t cq/small srq/r
}

@test "path_mig, path_mig_err" {
	pair
	echo "modify alt_port=2 alt_lid=$(lid rxe1 2) alt_timeout=12 path_mig=rearm" >qp/a/ctl
	echo "modify alt_port=2 alt_lid=$(lid rxe0 2) alt_timeout=12 path_mig=rearm" >qp/b/ctl
	echo "write mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=success*"
	grep -qx "path_mig armed" qp/a/status
	# By hand, while the other port is up, and when it isn't.
	echo "modify path_mig=migrated" >qp/a/ctl
	event_is qp/a path_mig
	grep -qx "port 2" qp/a/status
	echo "write mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=success*"
	event_is qp/b path_mig
	echo "modify alt_port=1 alt_lid=$(lid rxe1) alt_timeout=12 path_mig=rearm" >qp/a/ctl
	echo "modify alt_port=1 alt_lid=$(lid rxe0) alt_timeout=12 path_mig=rearm" >qp/b/ctl
	echo "write mr=m0 length=8 $(far)" >qp/a/post
	wc_is c0 "*status=success*"
	echo down >"$SYSTEM_MNT"/fabric/links/rxe0:1*/ctl
	echo "modify path_mig=migrated" >qp/a/ctl
	event_is qp/a path_mig_err
	echo up >"$SYSTEM_MNT"/fabric/links/rxe0:1*/ctl
	wait_for grep -q ACTIVE rxe0/1/state
}

@test "events of ports" {
	local guid
	need_tool smpquery
	spawn events stdbuf -oL cat "$MNT/rxe0/events"
	wait_for sh -c "ls -l /proc/$(spawned events)/fd | grep -q events"
	echo down >"$SYSTEM_MNT"/fabric/links/rxe0:1*/ctl
	wait_for file_has "$IBFS_DIR/events.log" 'port=1 event=port_err'
	echo up >"$SYSTEM_MNT"/fabric/links/rxe0:1*/ctl
	wait_for file_has "$IBFS_DIR/events.log" 'port=1 event=port_active'
	# The rest comes from a subnet manager: what it sets, set by hand.
	guid=$(lid rxe0)
	exec 5<>rxe1/1/mad/clone
	read -r n <&5
	# PkeyTable: another key in entry 1
	echo "smp set PKeyTable lid=$guid data=ffff8001$(printf '0%.0s' {1..120})" >&5
	timeout 5 cat "rxe1/1/mad/$n/data" >/dev/null
	wait_for file_has "$IBFS_DIR/events.log" 'event=pkey_change'
	# GUIDInfo: an alias in entry 1
	echo "smp set GUIDInfo lid=$guid data=$(printf '0%.0s' {1..16})0011223344556677$(printf '0%.0s' {1..96})" >&5
	timeout 5 cat "rxe1/1/mad/$n/data" >/dev/null
	wait_for file_has "$IBFS_DIR/events.log" 'event=gid_change'
	exec 5>&-
	reap events
}
