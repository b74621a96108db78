# SPDX-License-Identifier: BSD-2-Clause
# hw_counters/ of a port: what the engine sent, got, refused and did again.
load helpers
load native

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

setup()
{
	native_setup 2 local_write,remote_write,remote_read
	qp a 0
	qp b 1
	# Half a second and seven times again: what a test does meanwhile is in time.
	echo connect peer=b timeout=17 retry_cnt=7 rnr_retry=7 >qp/a/ctl
}
teardown() { cable ''; native_teardown; }

# count DEVICE NAME: of the counter now. grew BEFORE DEVICE NAME [BY]: by exactly, or at all.
count() { cat "$MNT/$1/1/hw_counters/$2"; }
grew()
{
	local by=$(($(count "$2" "$3") - $1))
	[ "$by" -gt 0 ] && [ "$by" = "${4:-$by}" ]
}
cable() { echo "drop=0 duplicate=0 $1" >"$(echo "$SYSTEM_MNT"/fabric/links/*rxe1*)/ctl"; }
send() { echo "send mr=m0 length=10" >qp/a/post; }
receive() { echo "recv mr=m1 length=10" >qp/b/post; }

@test "they have the names of Linux's software HCA, the same in sys/class" {
	run -0 ls rxe0/1/hw_counters
	[ "$output" = "$(printf '%s\n' ack_deferred completer_retry_err duplicate_request link_downed \
		out_of_seq_request rcvd_pkts rcvd_rnr_err rcvd_seq_err rdma_recvs rdma_sends \
		retry_exceeded_err retry_rnr_exceeded_err send_err send_rnr_err sent_pkts)" ]
	[ "$(ls sys/class/infiniband/rxe0/ports/1/hw_counters)" = "$output" ]
	run -0 ib cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
	[ "$output" = "$(count rxe0 sent_pkts)" ]
	refuses 0 rxe0/1/hw_counters/sent_pkts
}

@test "messages and packets, of each port" {
	local sent got sends recvs back
	sent=$(count rxe0 sent_pkts) got=$(count rxe1 rcvd_pkts) back=$(count rxe1 sent_pkts)
	sends=$(count rxe0 rdma_sends) recvs=$(count rxe1 rdma_recvs)
	receive
	send
	wc_is c0 '*status=success opcode=send *'
	echo "write mr=m0 length=10000 raddr=0 rkey=$(cat mr/m1/rkey)" >qp/a/post
	wc_is c0 '*status=success opcode=rdma_write *'
	grew "$sends" rxe0 rdma_sends 1
	grew "$recvs" rxe1 rdma_recvs 1
	# One, and three of at most 4096 bytes; an acknowledgement for each message.
	grew "$sent" rxe0 sent_pkts 4
	grew "$got" rxe1 rcvd_pkts 4
	grew "$back" rxe1 sent_pkts 2
}

@test "no receive request: RNR NAKs on both sides" {
	local said heard
	said=$(count rxe1 send_rnr_err) heard=$(count rxe0 rcvd_rnr_err)
	send
	wait_for grew "$said" rxe1 send_rnr_err
	wait_for grew "$heard" rxe0 rcvd_rnr_err
	receive
	wc_is c0 '*status=success opcode=send *'
}

@test "packets that are lost are sent again, those that come twice counted" {
	local again twice
	again=$(count rxe0 completer_retry_err) twice=$(count rxe1 duplicate_request)
	receive
	cable 'drop=1'
	send
	wait_for grew "$again" rxe0 completer_retry_err
	cable 'duplicate=1'
	wc_is c0 '*status=success opcode=send *'
	wait_for grew "$twice" rxe1 duplicate_request
}

@test "tries that come to their end, and a link that goes down" {
	local ended down
	ended=$(count rxe0 retry_exceeded_err) down=$(count rxe1 link_downed)
	for q in a b; do echo reset >qp/$q/ctl; done
	echo connect peer=b timeout=8 retry_cnt=1 >qp/a/ctl
	cable 'drop=1'
	send
	wc_is c0 '*status=retry_exc_err *'
	grew "$ended" rxe0 retry_exceeded_err 1
	echo down >"$(echo "$SYSTEM_MNT"/fabric/links/*rxe1*)/ctl"
	wait_for grew "$down" rxe1 link_downed 1
	echo up >"$(echo "$SYSTEM_MNT"/fabric/links/*rxe1*)/ctl"
	wait_for file_is "$MNT/rxe1/1/state" '4: ACTIVE'
}
