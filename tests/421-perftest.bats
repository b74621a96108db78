# SPDX-License-Identifier: BSD-2-Clause
# perftest, unmodified: every operation and transport that it has for the device,
# all sizes, many QPs, both directions at once, events, shared receive queues,
# multicast.
load helpers
load pairs

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

each_type()	# TYPES COMMAND...
{
	local type
	for type in $1; do
		pair "${@:2}" -c "$type"
	done
}

@test "latencies by RC, UC and UD" {
	each_type "RC UC UD" ib_send_lat -n 50
	each_type "RC UC" ib_write_lat -n 50
	pair ib_read_lat -n 50
	pair ib_atomic_lat -n 50 -A CMP_AND_SWAP
	pair ib_atomic_lat -n 50 -A FETCH_AND_ADD
}

@test "bandwidths by RC, UC and UD" {
	each_type "RC UC UD" ib_send_bw -n 50 -s 2048
	each_type "RC UC" ib_write_bw -n 50
	pair ib_read_bw -n 50
	pair ib_atomic_bw -n 50 -A CMP_AND_SWAP
	pair ib_atomic_bw -n 50 -A FETCH_AND_ADD
}

@test "all sizes" {
	pair ib_send_bw --all -n 5
	pair ib_write_bw --all -n 5
	pair ib_read_bw --all -n 5
	pair ib_write_lat --all -n 5
}

@test "both directions at once" {
	pair ib_send_bw -b -n 50
	pair ib_write_bw -b -n 50
	pair ib_read_bw -b -n 50
	pair ib_atomic_bw -b -n 50
	each_type "UC UD" ib_send_bw -b -n 50 -s 2048
}

@test "64 QPs" {
	pair ib_send_bw -q 64 -n 20 -s 4096
	pair ib_write_bw -q 64 -n 20 -s 4096
	pair ib_read_bw -q 64 -n 20 -s 4096
	pair ib_atomic_bw -q 64 -n 20
}

@test "events" {
	each_type "RC UC UD" ib_send_lat -e -n 50
	pair ib_send_bw -e -n 50
	pair ib_read_lat -e -n 50
	pair ib_atomic_lat -e -n 50
	each_type "UC UD" ib_send_bw -e -n 50 -s 2048
}

@test "inline data, lists of requests, few outstanding, the old calls, on demand" {
	pair ib_send_lat -n 50 -I 256 -s 256
	pair ib_write_bw -n 200 -I 64 -s 64 -l 10
	pair ib_read_bw -n 50 -o 1 -q 4
	pair ib_send_bw -n 50 -r 2 -t 1 --use_old_post_send
	pair ib_write_bw -n 50 --odp
}

@test "a shared receive queue" {
	pair ib_send_bw --use-srq -q 4 -n 50
	pair ib_send_lat --use-srq -n 50
}

# perftest joins the group by MADs to the subnet administrator.
@test "multicast, with a subnet manager" {
	need_root; need_unshare; need_tool opensm
	start_opensm sm rxe0
	pair ib_send_lat -c UD -g -n 50
	pair ib_send_bw -c UD -g -n 50 -s 2048
}
