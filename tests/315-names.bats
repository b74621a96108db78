# SPDX-License-Identifier: BSD-2-Clause
# Every name of the kernel's verbs (tests/verbs-names) is in the manual, and what
# the manual says is there is there.
load helpers

setup_file() { start_ibfs; }
teardown_file() { stop_ibfs; }

@test "ibfs(5) says of every name where it is" {
	local name missing=()
	[ "$(wc -l <"$TOP/tests/verbs-names")" -gt 550 ]
	while read -r name; do
		grep -qw -- "$name" "$TOP/man/ibfs.5" || missing+=("$name")
	done <"$TOP/tests/verbs-names"
	[ ${#missing[@]} = 0 ] || fail "${missing[*]}"
}

@test "ibfs.verbs(5) says of every status and event when it comes" {
	local name
	while read -r name; do
		name=${name#IB_*_}
		grep -qw -- "${name,,}" "$TOP/man/ibfs.verbs.5" || fail "$name"
	done < <(grep -E '^IB_WC_.*_ERR$|^IB_WC_SUCCESS$|^IB_EVENT_' "$TOP/tests/verbs-names")
}

# group NAME: the names of the item of ibfs(5) that has it
group()
{
	awk -v name="$1" '
		/^\.It/ { names = ""; open = / Xo/ }
		/^\.It Li / || (open && /^\.Li /) { names = names " " $0 " " }
		/^\.Xc/ { open = 0 }
		!open && names != "" {
			gsub(/\.It|\.?Li |,/, "", names)
			if (index(names, " " name " ")) { print names; exit }
			names = ""
		}' "$TOP/man/ibfs.5"
}

@test "attr has the attributes" {
	local name
	for name in $(group max_mr_size) $(group max_sge_rd) $(group max_raw_ipv6_qp); do
		[[ $name == ib_* ]] || grep -q "^$name " "$MNT/rxe0/attr" || fail "$name"
	done
	for name in $(group gid_tbl_len); do
		[[ $name == ib_* ]] || grep -q "^$name " "$MNT/rxe0/1/attr" || fail "$name"
	done
	[ "$(group max_mr_size | wc -w)" -gt 25 ] && [ "$(group gid_tbl_len | wc -w)" -gt 15 ]
}

@test "the flags are those that the manual says are set" {
	local bits=0 name
	declare -A bit=([RESIZE_MAX_WR]=0 [BAD_PKEY_CNTR]=1 [BAD_QKEY_CNTR]=2 [RAW_MULTICAST]=3
		[AUTO_PATH_MIG]=4 [CHANGE_PHY_PORT]=5 [UD_AV_PORT_ENFORCE]=6 [CURR_QP_STATE_MOD]=7
		[SHUTDOWN_PORT]=8 [INIT_TYPE]=9 [PORT_ACTIVE_EVENT]=10 [SYS_IMAGE_GUID]=11
		[RC_RNR_NAK_GEN]=12 [SRQ_RESIZE]=13 [N_NOTIFY_CQ]=14 [LOCAL_DMA_LKEY]=15 [RESERVED]=16
		[MEM_WINDOW]=17 [UD_IP_CSUM]=18 [UD_TSO]=19 [XRC]=20 [MEM_MGT_EXTENSIONS]=21
		[BLOCK_MULTICAST_LOOPBACK]=22 [MEM_WINDOW_TYPE_2A]=23 [MEM_WINDOW_TYPE_2B]=24)
	for name in $(group IB_DEVICE_BAD_PKEY_CNTR); do
		bits=$((bits | 1 << ${bit[${name#IB_DEVICE_}]}))
	done
	grep -qx "device_cap_flags $(printf 0x%x $bits)" "$MNT/rxe0/attr" || fail "$bits"
	for name in $(group IB_DEVICE_RESIZE_MAX_WR); do
		[ $((bits >> ${bit[${name#IB_DEVICE_}]} & 1)) = 0 ] || fail "$name"
	done
}

@test "every opcode is a word of post" {
	local word
	mkdir "$MNT/pd/p" "$MNT/cq/c" "$MNT/qp/q"
	echo create device=rxe0 >"$MNT/pd/p/ctl"
	echo create device=rxe0 cqe=8 >"$MNT/cq/c/ctl"
	echo create type=rc pd=p cq=c >"$MNT/qp/q/ctl"
	for word in write write_with_imm send send_with_imm read cmp_and_swp fetch_and_add lso \
		send_with_inv read_with_inv local_inv fast_reg masked_cmp_and_swp masked_fetch_and_add bind_mw; do
		grep -qw -- "$word" "$TOP/man/ibfs.verbs.5" || fail "$word"
		run ! bash -c "echo $word nonsense >'$MNT/qp/q/post'"
		grep -q "refused $word: " "$MNT/qp/q/status" || fail "$word"
	done
	run ! bash -c "echo write_with_everything >'$MNT/qp/q/post'"
	grep -q "is no request that can be posted" "$MNT/qp/q/status"
	rmdir "$MNT/qp/q" "$MNT/cq/c" "$MNT/pd/p"
}
