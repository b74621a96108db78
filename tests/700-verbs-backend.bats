# SPDX-License-Identifier: BSD-2-Clause
# The verbs backend: the system's devices in the tree. The system is another
# ibfs, under which the daemon runs.
load helpers
load nested

setup_file()
{
	nested_can || return 0
	start_ibfs
	start_nested 'backend = "verbs";'
}
teardown_file() { stop_ibfs; }

# Files that say what A's say, by device and port.
files='node_type node_guid sys_image_guid node_desc fw_ver hw_rev hca_type board_id'
port_files='attr state phys_state rate lid lid_mask_count sm_lid sm_sl cap_mask link_layer'

@test "the tree has the system's devices, with the same files" {
	local dev
	for dev in rxe0 rxe1; do
		diff <(cd "$MNT/$dev" && find . ! -name uverbs | sort) <(cd "$NMNT/$dev" && find . | sort)
	done
	diff <(ls -I 'uverbs*' "$MNT/dev/infiniband") <(ls "$NMNT/dev/infiniband")
	[ ! -e "$NMNT/rxe2" ]
}

@test "attributes are the system's" {
	local dev file
	for dev in rxe0 rxe1; do
		for file in $files; do
			diff "$MNT/$dev/$file" "$NMNT/$dev/$file" || fail "$dev/$file"
		done
		for file in $port_files gids/0 gids/31 pkeys/0 pkeys/31; do
			diff "$MNT/$dev/1/$file" "$NMNT/$dev/1/$file" || fail "$dev/1/$file"
		done
	done
	run -0 grep -E '^(max_qp|max_cqe|max_mr|max_srq|max_sge) ' "$NMNT/rxe0/attr"
	[ "$output" = "$(grep -E '^(max_qp|max_cqe|max_mr|max_srq|max_sge) ' "$MNT/rxe0/attr")" ]
}

@test "counters are the system's, and can be cleared" {
	local name
	nib smpquery nodeinfo -D 0,1
	for name in port_xmit_data port_rcv_packets symbol_error VL15_dropped; do
		[ "$(cat "$MNT/rxe0/1/counters/$name")" = "$(cat "$NMNT/rxe0/1/counters/$name")" ]
	done
	echo 0 >"$NMNT/rxe0/1/counters/VL15_dropped"
	[ "$(cat "$NMNT/rxe0/1/counters/port_xmit_packets")" -gt 0 ]
	echo 0 >"$NMNT/rxe0/1/counters/port_xmit_packets"
	# The request to clear it went by the port, too.
	[ "$(cat "$MNT/rxe0/1/counters/port_xmit_packets")" -le 2 ]
}

# What there is in sysfs of a port's counters is hidden from the second daemon.
hide_counters()	# DEVICE
{
	mkdir -p "$IBFS_DIR/none"
	nsenter -t "$NPID" -m -- mount --bind "$IBFS_DIR/none" "/sys/class/infiniband/$1/ports/1/counters"
}
show_counters() { nsenter -t "$NPID" -m -- umount "/sys/class/infiniband/$1/ports/1/counters"; }

@test "counters that sysfs doesn't have come by MAD" {
	local name before link
	hide_counters rxe1
	link=$(echo "$MNT"/fabric/links/*rxe1*)
	before=$(cat "$MNT/rxe1/1/counters/link_downed")
	echo down >"$link/ctl"
	echo up >"$link/ctl"
	wait_for file_is "$NMNT/rxe1/1/state" "4: ACTIVE"
	[ "$(cat "$NMNT/rxe1/1/counters/link_downed")" = $((before + 1)) ]
	for name in "$MNT"/rxe1/1/counters/*; do
		name=${name##*/}
		before=$(cat "$MNT/rxe1/1/counters/$name")
		run -0 cat "$NMNT/rxe1/1/counters/$name"
		# Those that count the question itself may have grown.
		[ "$output" -ge "$before" ] && [ "$output" -le "$(cat "$MNT/rxe1/1/counters/$name")" ]
	done
	grep -q '^ibfs_port_link_downed.*device="rxe1"' "$NMNT/metrics"
	echo 0 >"$NMNT/rxe1/1/counters/link_downed"
	[ "$(cat "$MNT/rxe1/1/counters/link_downed")" = 0 ]
	# Without a LID there is no way to ask.
	echo down >"$link/ctl"
	show_counters rxe1
	echo up >"$link/ctl"
	wait_for file_is "$NMNT/rxe1/1/state" "4: ACTIVE"
}

@test "a node description that is written is the system's" {
	echo renamed >"$NMNT/rxe1/node_desc"
	[ "$(cat "$MNT/rxe1/node_desc")" = renamed ]
	[ "$(cat "$NMNT/rxe1/node_desc")" = renamed ]
	echo again >"$MNT/rxe1/node_desc"
	wait_for file_is "$NMNT/rxe1/node_desc" again
	run ! sh -c "echo 1 >'$NMNT/rxe1/sys_image_guid'"
	file_has "$NMNT/errors" "sys_image_guid"
}

@test "what a driver does not let a process do is refused in words" {
	run ! sh -c "echo shutdown >'$NMNT/rxe0/1/ctl'"
	file_has "$NMNT/errors" "no process modify a port"
	[ "$(cat "$MNT/rxe0/1/state")" = "4: ACTIVE" ]
}

@test "port events come" {
	local link
	link=$(echo "$MNT"/fabric/links/*rxe1*)
	exec 5<"$NMNT/rxe1/events"
	echo down >"$link/ctl"
	run -0 timeout 10 head -1 <&5
	exec 5<&-
	assert_line "device=rxe1 port=1 event=port_err"
	[ "$(cat "$NMNT/rxe1/1/state")" = "1: DOWN" ]
	echo up >"$link/ctl"
	wait_for file_is "$NMNT/rxe1/1/state" "4: ACTIVE"
}

@test "infiniband-diags on it say what they say on the system" {
	need_tool ibstat smpquery perfquery ibnetdiscover
	local command
	for command in "ibstat" "smpquery nodeinfo -D 0" "smpquery portinfo -D 0,1 1" "ibstat -p" \
		       "smpquery nodedesc 2"; do
		# shellcheck disable=SC2086
		diff <(nib $command) <(ib $command) || fail "$command"
	done
	diff <(nib ibnetdiscover | grep -v '^#') <(ib ibnetdiscover | grep -v '^#')
}

@test "an agent has the methods that it registered, to itself" {
	run ! sh -c "echo 'register class=0x07 version=2 methods=3 qpn=0' >'$NMNT/rxe0/1/mad/clone'"
}

@test "devices come and go while it is mounted" {
	echo "ca extra 1" >"$MNT/fabric/ctl"
	[ ! -e "$NMNT/rxe7" ]
	echo "device extra name=rxe7" >"$MNT/fabric/ctl"
	wait_for test -e "$NMNT/rxe7/1/state"
	[ "$(cat "$NMNT/rxe7/node_guid")" = "$(cat "$MNT/rxe7/node_guid")" ]
	exec 5<"$NMNT/events"
	echo "undevice rxe7" >"$MNT/fabric/ctl"
	wait_for not test -e "$NMNT/rxe7"
	run -0 timeout 10 grep -m 1 "device=rxe7 event=device_fatal" <&5
	exec 5<&-
	echo "device extra name=rxe7" >"$MNT/fabric/ctl"
	wait_for test -e "$NMNT/rxe7/1/state"
	echo "undevice rxe7" >"$MNT/fabric/ctl"
	wait_for not test -e "$NMNT/rxe7"
}
