# SPDX-License-Identifier: BSD-2-Clause
# Programs that connect by rdma_cm, on this machine or on hosts of $NS. Loaded after
# helpers, ipoib and pairs.

# start_cm_hosts NAME: a subnet with an SA, hosts 1 and 3 of $NS, which begins with NAME.
start_cm_hosts()
{
	start_leaves sm "$1"
	[ -n "${IBFS_PID:-}" ] || return 0
	start_opensm sm rxe0
	for n in 1 3; do add_host $n; done
}

no_ids() { grep -qx 'ibfs_rdma_cm_ids 0' "$MNT/metrics"; }
listens_cm() { grep -qx 'ibfs_rdma_cm_listeners [1-9]' "$MNT/metrics"; }
listens_on() { host "$1" ss -Hln "${3:--t}" "sport = :$2" | grep -q .; }	# HOST PORT [-u]

# run_on N: into RUN, what runs a command on host N (0: this one), with its network.
run_on()
{
	RUN=("$BUILD/ibfs-run" -m "$MNT" timeout 60)
	[ "$1" = 0 ] || RUN=(ip netns exec "$NS$1" "${RUN[@]}")
}
on() { run_on "$1"; "${RUN[@]}" "${@:2}"; }

# cm_serve N COMMAND...: a server on host N, until it listens by rdma_cm.
cm_serve()
{
	need_root; need_unshare; need_tool "$2"
	wait_for no_ids
	run_on "$1"
	"${RUN[@]}" "${@:2}" </dev/null >"$BATS_TEST_TMPDIR/server" 2>&1 3>&- &
	SERVER=$!
	wait_for listens_cm || server_log
}
