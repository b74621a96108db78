# SPDX-License-Identifier: BSD-2-Clause
# rdma_cm's datagram services and multicast groups: librdmacm's programs, and
# what stands on it, unmodified. Two hosts with IPoIB interfaces, and an SA.
load helpers
load ipoib
load pairs
load rdma_cm

setup_file()
{
	ipoib_tools opensm udaddy || return 0
	start_cm_hosts rud
}

teardown_file()
{
	del_hosts
	stop_ibfs
}

# The SA's groups of rdma_cm's: their MGIDs begin with ff12:4001.
groups() { ib timeout 20 saquery -g; }
has_group() { groups | grep -qi 'ff12:4001'; }
no_group() { ! has_group; }

@test "a device lists the names of its interfaces, and what they are" {
	local net=$MNT/sys/class/infiniband/rxe0/device/net
	[ "$(ls "$net")" = ib0 ]
	[ "$(cat "$net/ib0/address")" = "$(cat "$(ipoib 1)/address")" ]
	[ "$(cat "$net/ib0/mtu")" = "$(cat "$(ipoib 1)/mtu")" ]
	[ ! -e "$MNT/sys/class/infiniband/rxe1/device/net" ]
	[ -z "$(find "$MNT/sys/class/infiniband/rxe1/device/" -maxdepth 1 -name net)" ]
	[ ! -e "$net/ib7" ]
	mkdir "$(ipoib 1 late)"
	[ "$(ls "$net")" = ib0 ]
	rmdir "$(ipoib 1 late)"
	run ! mkdir "$net/ib1"
}

@test "udaddy, in both port spaces, and by IPv6" {
	local args
	for args in '' '-p 2'; do
		# shellcheck disable=SC2086
		cm_serve 3 udaddy $args
		# shellcheck disable=SC2086
		run -0 on 1 udaddy $args -s 10.71.0.3
		served
	done
	cm_serve 3 udaddy -b fd71::3
	run -0 on 1 udaddy -s fd71::3
	served
	wait_for no_ids
}

@test "udaddy by the loopback address" {
	cm_serve 0 udaddy
	run -0 ib timeout 30 udaddy -s 127.0.0.1
	served
}

@test "a datagram service that isn't there" {
	run on 1 udaddy -s 10.71.0.3
	[ "$status" != 0 ]
	assert_line 'RDMA_CM_EVENT_UNREACHABLE, error:? 1'
	wait_for no_ids
}

# groups_meet ARGUMENTS...: a member on host 3 gets what host 1 sends: all of it, which
# datagrams don't promise while the subnet manager still sets routes; then once more.
groups_meet()
{
	local patience
	for patience in 20 20 40; do
		wait_for no_ids
		run_on 3
		"${RUN[@]}" timeout "$patience" stdbuf -oL mckey "$@" -b "$b" \
			</dev/null >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
		SERVER=$!
		wait_for file_has "$BATS_TEST_TMPDIR/server" 'receiving data' || server_log
		run -0 on 1 mckey "$@" "${sender[@]}" -s -b "$a"
		! wait "$SERVER" || break
		patience=
	done
	[ -n "$patience" ] || server_log
	wait_for no_ids
}

@test "mckey: groups of IPv4 and IPv6, and a sender that is no member" {
	local a=10.71.0.1 b=10.71.0.3 sender=()
	groups_meet -m 239.1.2.3
	assert_line 'ff12:4001:ffff::f01:203'
	a=fd71::1 b=fd71::3 sender=(-o)
	groups_meet -m ff0e::1234
	wait_for no_group
}

@test "mckey: IPoIB's group, which an interface stays in when a program leaves" {
	local a=10.71.0.1 b=10.71.0.3 sender=()
	groups_meet -m 224.0.0.1 -p 2
	assert_line 'ff12:401b:ffff::1 '
	groups | grep -qi 'ff12:401b:ffff::1$' || fail "the group is gone:" "$(groups)"
	wait_for reaches 1 224.0.0.1 -I ib0
}

@test "a member that is killed is one no more" {
	local pid
	wait_for no_group
	run_on 3
	"${RUN[@]}" stdbuf -oL mckey -m 239.9.9.9 -b 10.71.0.3 </dev/null \
		>"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	pid=$!
	wait_for file_has "$BATS_TEST_TMPDIR/server" 'receiving data' || server_log
	wait_for has_group
	kill -9 "$(pgrep -P "$pid")" "$pid"
	wait "$pid" || true
	wait_for no_ids
	wait_for no_group
}

@test "perftest: datagrams between hosts" {
	local tool
	for tool in ib_send_lat ib_send_bw; do
		cm_serve 3 $tool -c UD -R -n 50
		run -0 on 1 $tool -c UD -R -n 50 10.71.0.3
		served
	done
}

@test "rsockets: streams, datagrams, files" {
	cm_serve 3 rstream -S 1000 -C 10
	run -0 on 1 rstream -s 10.71.0.3 -S 1000 -C 10
	served
	cm_serve 3 riostream -S 1000 -C 10
	run -0 on 1 riostream -s 10.71.0.3 -S 1000 -C 10
	served
	head -c 300000 /dev/urandom >"$BATS_TEST_TMPDIR/from"
	cm_serve 3 rcopy
	run -0 on 1 rcopy "$BATS_TEST_TMPDIR/from" "10.71.0.3:$BATS_TEST_TMPDIR/to"
	end_server
	cmp "$BATS_TEST_TMPDIR/from" "$BATS_TEST_TMPDIR/to"
	run_on 3
	"${RUN[@]}" udpong -b 10.71.0.3 </dev/null >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	SERVER=$!
	wait_for listens_on 3 7174 -u
	run -0 on 1 udpong -b 10.71.0.1 -s 10.71.0.3 -S 100 -C 10
	end_server
}

@test "qperf: datagrams between hosts" {
	need_tool qperf
	run_on 3
	"${RUN[@]}" qperf </dev/null >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	SERVER=$!
	wait_for listens_on 3 19765
	run on 1 qperf -cm 1 -t 1 10.71.0.3 ud_lat ud_bw
	end_server
	assert_status 0
	assert_line 'latency +='
	assert_line 'recv_bw +='
}

@test "libfabric's reliable datagrams over connections" {
	need_tool fi_pingpong
	run_on 3
	"${RUN[@]}" fi_pingpong -p 'verbs;ofi_rxm' -d rxe2 -e rdm -I 20 </dev/null \
		>"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	SERVER=$!
	wait_for listens_on 3 47592
	run -0 on 1 fi_pingpong -p 'verbs;ofi_rxm' -d rxe0 -e rdm -I 20 10.71.0.3
	served
}

@test "UCX finds its peer by rdma_cm" {
	local tls=UCX_TLS=rc_verbs,ud_verbs by=UCX_SOCKADDR_TLS_PRIORITY=rdmacm
	need_tool io_demo
	cm_serve 3 env UCX_NET_DEVICES=rxe2:1 $tls $by io_demo -p 13337
	run on 1 env UCX_NET_DEVICES=rxe0:1 $tls $by UCX_LOG_LEVEL=info io_demo -i 20 -w 4 -p 13337 \
		10.71.0.3
	end_server
	assert_status 0
	assert_line 'rc_verbs/rxe0:1'
	assert_line "Client exit with status 'OK'"
	wait_for no_ids
}

@test "joins by the ABI itself, and nothing is left" {
	wait_for no_group
	host 1 "$BUILD/tests/rdma_cm_raw" "$MNT/dev/infiniband/rdma_cm" 10.71.0.1
	wait_for no_ids
	wait_for no_group
}

@test "a new subnet manager: members are told that they are none, and can join again" {
	host 3 timeout 60 "$BUILD/tests/rdma_cm_raw" "$MNT/dev/infiniband/rdma_cm" 10.71.0.3 new-sm \
		</dev/null >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	SERVER=$!
	wait_for file_has "$BATS_TEST_TMPDIR/server" '^joined' || server_log
	reap sm
	start_opensm sm rxe0
	served
	wait_for no_ids
}
