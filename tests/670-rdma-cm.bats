# SPDX-License-Identifier: BSD-2-Clause
# dev/infiniband/rdma_cm: librdmacm's programs, unmodified. On one machine by the
# loopback address; between hosts by the addresses of IPoIB interfaces.
load helpers
load ipoib
load pairs
load rdma_cm

setup_file()
{
	ipoib_tools opensm rping || return 0
	start_cm_hosts rcm
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

@test "rping by the loopback address" {
	cm_serve 0 rping -s -a 0.0.0.0 -C 20 -S 4000 -V
	run -0 ib timeout 30 rping -c -a 127.0.0.1 -C 20 -S 4000 -V
	served
	cm_serve 0 rping -s -a :: -C 5
	run -0 ib timeout 30 rping -c -a ::1 -C 5
	served
	wait_for no_ids
}

@test "connections one after the other, and many at a time" {
	cm_serve 0 cmtime
	run -0 ib timeout 60 cmtime -s 127.0.0.1 -c 100
	end_server
	assert_line '^connect +:'
	wait_for no_ids
}

@test "rdma_client and rdma_server, by rdma_getaddrinfo and endpoints" {
	cm_serve 0 rdma_server
	run -0 ib timeout 30 rdma_client -s 127.0.0.1
	served
	assert_line 'end 0'
}

@test "the options of enhanced connection establishment reach the other end" {
	need_root; need_unshare; need_tool python3
	run -0 ib timeout 30 python3 "$BATS_TEST_DIRNAME/rdma_ece.py" "$(port)"
	[ -z "$output" ]
	wait_for no_ids
}

@test "perftest connects by rdma_cm" {
	local tool
	for tool in ib_send_lat ib_write_bw ib_read_bw ib_atomic_bw; do
		cm_serve 0 $tool -R -d rxe0 -n 50
		run -0 ib timeout 60 $tool -R -d rxe0 -n 50 127.0.0.1
		served
	done
}

@test "libfabric's connected endpoints, and its datagrams" {
	local port
	need_tool fi_pingpong
	port=$(port)
	serve "$port" fi_pingpong -B "$port" -p verbs -e msg -I 20 -c
	run -0 ib timeout 60 fi_pingpong -P "$port" -p verbs -e msg -I 20 -c 127.0.0.1
	served
	port=$((port + 1))
	serve "$port" fi_pingpong -B "$port" -p verbs -e dgram -d rxe0-dgram -I 20 -S 1024
	run -0 ib timeout 60 fi_pingpong -P "$port" -p verbs -e dgram -d rxe1-dgram -I 20 -S 1024 \
		127.0.0.1
	served
}

@test "qperf connects by rdma_cm" {
	local port
	need_tool qperf
	port=$(port)
	serve "$port" qperf -lp "$port"
	run ib timeout 60 qperf -lp "$port" -cm 1 -t 1 127.0.0.1 rc_lat rc_rdma_read_bw
	end_server
	assert_status 0
	assert_line 'latency +='
}

@test "hosts find one another by IPv4 and IPv6" {
	cm_serve 3 rping -s -a 10.71.0.3 -C 10 -S 4000 -V
	run -0 on 1 rping -c -a 10.71.0.3 -C 10 -S 4000 -V
	served
	cm_serve 1 rping -s -a 0.0.0.0 -C 10
	run -0 on 3 rping -c -a 10.71.0.1 -I 10.71.0.3 -C 10
	served
	cm_serve 3 rping -s -a fd71::3 -C 10
	run -0 on 1 rping -c -a fd71::3 -C 10
	served
	cm_serve 3 ib_send_bw -R -n 50
	run -0 on 1 ib_send_bw -R -n 50 10.71.0.3
	served
}

@test "what can't be reached is told" {
	run on 1 rping -c -a 10.71.0.3 -C 1
	[ "$status" != 0 ]
	assert_line 'RDMA_CM_EVENT_REJECTED|REJECTED, error 8|cma event'
	run on 1 rping -c -a 10.71.0.99 -C 1
	[ "$status" != 0 ]
	assert_line 'RDMA_CM_EVENT_ADDR_ERROR, error -110'
	# Nobody here has an interface that leads there.
	run ib timeout 30 rping -c -a 10.71.0.3 -C 1
	[ "$status" != 0 ]
	assert_line 'rdma_resolve_addr'
	wait_for no_ids
}

@test "an end that is killed is a disconnect to the other" {
	local client
	cm_serve 3 rping -s -a 10.71.0.3 -v -S 100
	run_on 1
	"${RUN[@]}" rping -c -a 10.71.0.3 -v -S 100 >"$BATS_TEST_TMPDIR/client" 2>&1 3>&- &
	client=$!
	wait_for file_has "$BATS_TEST_TMPDIR/client" 'rdma-ping-[0-9]{2}'
	kill -9 "$(pgrep -P "$client")" "$client"
	wait "$client" || true
	wait "$SERVER" || true
	# Which of both it hears of first: the disconnect, or that its peer's QP is gone.
	file_has "$BATS_TEST_TMPDIR/server" 'DISCONNECT EVENT|rping server failed' || server_log
	wait_for no_ids
}

@test "bad commands are refused, and nothing is left" {
	ctest rdma_cm_raw "$MNT/dev/infiniband/rdma_cm"
	wait_for no_ids
}
