# SPDX-License-Identifier: BSD-2-Clause
# prometheus-node-exporter reads the tree's sys/class and exports its counters.
load helpers

setup_file()
{
	have_tools prometheus-node-exporter curl smpquery || return 0
	start_ibfs
	[ -n "${IBFS_PID:-}" ] || return 0
	spawn exporter prometheus-node-exporter --path.sysfs="$MNT/sys" \
		--collector.disable-defaults --collector.infiniband --web.listen-address=127.0.0.1:19117
	wait_for curl -sf http://127.0.0.1:19117/
}
teardown_file() { stop_ibfs; }

# The value of a metric of rxe0's port.
metric()
{
	curl -sf http://127.0.0.1:19117/metrics |
		awk -v m="node_infiniband_$1{device=\"rxe0\",port=\"1\"}" '$1 == m { printf "%.0f\n", $2 }'
}
counter() { cat "$MNT/rxe0/1/counters/$1"; }

@test "counters, data in bytes" {
	ib smpquery -D nodeinfo 0,1 >/dev/null
	[ "$(counter port_xmit_data)" -gt 0 ]
	[ "$(metric port_data_transmitted_bytes_total)" = $(($(counter port_xmit_data) * 4)) ]
	[ "$(metric port_data_received_bytes_total)" = $(($(counter port_rcv_data) * 4)) ]
	[ "$(metric port_packets_transmitted_total)" = "$(counter port_xmit_packets)" ]
	[ "$(metric port_packets_received_total)" = "$(counter port_rcv_packets)" ]
	[ "$(metric link_downed_total)" = "$(counter link_downed)" ]
}

@test "state and rate" {
	[ "$(metric state_id)" = 4 ]
	[ "$(metric physical_state_id)" = 5 ]
	[ "$(metric rate_bytes_per_second)" = 12500000000 ]
	echo down >"$SYSTEM_MNT/fabric/links/rxe0:1-switch:1/ctl"
	[ "$(metric state_id)" = 1 ]
	echo up >"$SYSTEM_MNT/fabric/links/rxe0:1-switch:1/ctl"
}

@test "the scrape itself is a success" {
	curl -sf http://127.0.0.1:19117/metrics |
		grep -qx 'node_scrape_collector_success{collector="infiniband"} 1'
}
