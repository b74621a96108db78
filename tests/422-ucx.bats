# SPDX-License-Identifier: BSD-2-Clause
# UCX, and what stands on it or beside it: libfabric, OpenMPI, qperf. Unmodified,
# the server on rxe0 and the client on rxe1.
load helpers
load pairs

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

# ucp TRANSPORTS TEST [OPTIONS...]: UCX chooses among these transports.
ucp()
{
	local port
	port=$(port)
	need_root; need_unshare; need_tool ucx_perftest
	serve "$port" env UCX_NET_DEVICES=rxe0:1 UCX_TLS="$1" ucx_perftest \
		-p "$port" -t "$2" -n 50 -w 5 "${@:3}"
	run ib timeout 60 env UCX_NET_DEVICES=rxe1:1 UCX_TLS="$1" ucx_perftest \
		-p "$port" 127.0.0.1 -t "$2" -n 50 -w 5 "${@:3}"
	end_server
	[ "$status" = 0 ] || server_log || true
	assert_status 0
	assert_line '^Final:'
}

# uct TRANSPORT TEST [OPTIONS...]: just this transport, with nothing emulated.
uct()
{
	local port
	port=$(port)
	need_root; need_unshare; need_tool ucx_perftest
	serve "$port" ucx_perftest -p "$port" -d rxe0:1 -x "$1" -t "$2" -n 50 -w 5 "${@:3}"
	run ib timeout 60 ucx_perftest -p "$port" 127.0.0.1 -d rxe1:1 -x "$1" -t "$2" \
		-n 50 -w 5 "${@:3}"
	end_server
	[ "$status" = 0 ] || server_log || true
	assert_status 0
	assert_line '^Final:'
}

@test "ucx_info lists RC and UD of both devices" {
	need_root; need_unshare; need_tool ucx_info
	run -0 ib env UCX_TLS=rc_v,ud_v ucx_info -d
	[ "$(grep -c 'Transport: rc_verbs' <<<"$output")" = 2 ]
	[ "$(grep -c 'Transport: ud_verbs' <<<"$output")" = 2 ]
	assert_line 'Device: rxe0:1'
	assert_line 'Device: rxe1:1'
}

@test "UCX sends tagged and active messages and streams, by RC and by UD" {
	local tls
	for tls in rc_v,ud_v ud_v; do
		ucp $tls tag_lat
		ucp $tls tag_bw -s 100000
		ucp $tls stream_lat
		ucp $tls ucp_am_lat
	done
	ucp rc_v,ud_v tag_bw -s 4194304 -n 5
}

# It asks for an event without a look at what came meanwhile, and sleeps. Not the
# one-sided tests: their server sleeps as often as it has rounds, whatever comes.
@test "UCX sleeps until something comes, by RC and by UD" {
	local tls
	for tls in rc_v,ud_v ud_v; do
		ucp $tls tag_lat -E sleep
		ucp $tls ucp_am_lat -E sleep
		ucp $tls tag_bw -E sleep -s 10000
	done
}

@test "UCX puts, gets and does atomics, by RC and by UD" {
	local tls test
	for tls in rc_v,ud_v ud_v; do
		for test in ucp_put_lat ucp_get ucp_add ucp_fadd ucp_swap ucp_cswap; do
			ucp $tls $test
		done
	done
}

@test "UCX's RC transport has the device's own reads, writes and atomics" {
	local test
	for test in am_lat put_lat add_lat fadd cswap; do
		uct rc_verbs $test
	done
	uct rc_verbs get -D bcopy
	uct rc_verbs put_bw -D zcopy -s 65536
	uct rc_verbs get -D zcopy -s 65536
}

@test "UCX's UD transport" {
	uct ud_verbs am_lat
	uct ud_verbs am_bw -D zcopy -s 1024
}

@test "OpenMPI moves data over RC between ranks on two devices" {
	need_root; need_unshare; need_tool mpirun NPopenmpi
	local np=("$BUILD/ibfs-run" -m "$MNT" NPopenmpi -i -n 2 -u 65536 -o "$BATS_TEST_TMPDIR/np")
	run -0 timeout 100 env UCX_TLS=rc_v,ud_v,self HWLOC_COMPONENTS=-gl \
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		mpirun --oversubscribe --mca pml ucx --mca btl '^openib' -x UCX_TLS \
		-np 1 -x UCX_NET_DEVICES=rxe0:1 "${np[@]}" : \
		-np 1 -x UCX_NET_DEVICES=rxe1:1 "${np[@]}"
	assert_line 'Integrity check passed'
	refute_line 'failed'
}

@test "fi_info lists the verbs provider; fi_pingpong by reliable datagrams over UD" {
	local port
	need_root; need_unshare; need_tool fi_info fi_pingpong
	run -0 ib fi_info -p verbs
	assert_line 'domain: rxe0-dgram'
	assert_line 'protocol: FI_PROTO_IB_UD'
	port=$(port)
	serve "$port" fi_pingpong -B "$port" -p 'verbs;ofi_rxd' -e rdm -d rxe0-dgram -I 20 -S 65536 -c
	run ib timeout 60 fi_pingpong -P "$port" -p 'verbs;ofi_rxd' -e rdm -d rxe1-dgram -I 20 -S 65536 -c 127.0.0.1
	served
	assert_status 0
}

# Both options are qperf's own: its tests that ask rdma_cm for nothing.
@test "qperf by RC, UC and UD" {
	local port
	need_root; need_unshare; need_tool qperf
	port=$(port)
	serve "$port" qperf -lp "$port"
	run -0 ib timeout 100 qperf -lp "$port" -t 1 127.0.0.1 rc_lat rc_bw rc_bi_bw \
		rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_bw \
		rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add \
		uc_lat uc_bw uc_rdma_write_lat uc_rdma_write_bw ud_lat ud_bw
	end_server
	[ "$(grep -cE '(latency|bw|msg_rate) +=' <<<"$output")" = 20 ]
	refute_line '= +0 '
}
