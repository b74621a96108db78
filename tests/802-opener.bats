# SPDX-License-Identifier: BSD-2-Clause
# Commands have the rights of who opened the file, whoever writes them: set-user-ID
# programs that a user gives a file for standard error, with a command for their name,
# and descriptors that are handed on. tests/deputy.c is such a program.
# shellcheck disable=SC2016 # for other shells
load helpers
load native

setup_file()
{
	[ "$(id -u)" = 0 ] || { skip_file "needs root"; return 0; }
	have_tools setpriv || return 0
	echo 'files = { umad = "0666"; }; p9 = { memory = 1; };' >"$BATS_FILE_TMPDIR/conf"
	start_ibfs "$BATS_FILE_TMPDIR/conf"
	[ -n "${IBFS_DIR:-}" ] || return 0
	chmod 755 "$IBFS_DIR"
	export DEPUTY=$IBFS_DIR/deputy
	cp "$BUILD/tests/deputy" "$DEPUTY"
	chmod 4755 "$DEPUTY"
	[ "$(as_user "$DEPUTY" id)" = 0 ] || skip_file "set-user-ID has no effect in $IBFS_DIR"
}
teardown_file() { stop_ibfs; }

# The user's pd/u cq/u xrcd/u, and root's pd/p0 cq/c0 mr/m0 xrcd/x0 srq/s0 mw/w0 ah/a0
# qp/q0 (RC) qp/d0 (UD).
setup()
{
	native_setup 1
	as_user bash -c 'mkdir pd/u cq/u xrcd/u
		echo create device=rxe0 | tee pd/u/ctl xrcd/u/ctl
		echo create device=rxe0 cqe=64 >cq/u/ctl'
	mkdir xrcd/x0 srq/s0 mw/w0 ah/a0
	echo create device=rxe0 >xrcd/x0/ctl
	echo create pd=p0 | tee srq/s0/ctl mw/w0/ctl
	echo create pd=u lid=1 >ah/a0/ctl
	hex m0 24 "$(tr -d : <rxe0/1/gids/0)"	# as in a GRH
	qp q0 0 type=rc
	qp d0 0 type=ud
}
teardown()
{
	[ -n "${BATS_TEST_COMPLETED:-}${IBFS_SKIP:-}" ] || show_logs
	native_teardown
}

as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
in_group() { setpriv --reuid=65534 --regid=65534 --groups="$1" "${@:2}"; }

# deputy FILE COMMAND [WORD]: a user runs it with the file for standard error; its status is errno.
deputy() { as_user bash -c 'exec -a "$2" "$0" ${3:+"$3"} 2>"$1"' "$DEPUTY" "$@"; }
EPERM=1
EACCES=13

# What needs root, or names what is root's, where N stands for a new object of the user's:
# KIND FILE ERROR [COMMAND THAT COMES FIRST;]... | COMMAND
commands()
{
	cat <<-END
	mr	ctl	EACCES	| create pd=p0 size=4K
	mr	ctl	EACCES	create pd=u size=4K; | rereg pd=p0
	mw	ctl	EACCES	| create pd=p0
	srq	ctl	EACCES	| create pd=p0
	srq	ctl	EACCES	| create pd=u xrcd=x0 cq=u
	srq	ctl	EACCES	| create pd=u xrcd=u cq=c0
	srq	post	EACCES	create pd=u; | recv mr=m0 length=8
	ah	ctl	EACCES	| create pd=p0 lid=1
	ah	ctl	EACCES	| create pd=u slid=1 grh=m0 offset=0
	qp	ctl	EACCES	| create type=rc pd=p0 cq=u
	qp	ctl	EACCES	| create type=rc pd=u cq=c0
	qp	ctl	EACCES	| create type=rc pd=u cq=u recv_cq=c0
	qp	ctl	EACCES	| create type=rc pd=u cq=u srq=s0
	qp	ctl	EACCES	| create type=xrc_tgt xrcd=x0
	qp	ctl	EPERM	| create type=smi pd=u cq=u port=1
	qp	ctl	EPERM	| create type=gsi pd=u cq=u port=1
	qp	ctl	EPERM	| create type=raw_packet pd=u cq=u
	qp	ctl	EACCES	create type=rc pd=u cq=u; | connect peer=q0
	qp	ctl	EPERM	create type=ud pd=u cq=u; | init qkey=0x80010000
	qp	ctl	EPERM	create type=ud pd=u cq=u; init; rtr; rts; | modify qkey=0x80010000
	qp	post	EACCES	create type=ud pd=u cq=u; init; | recv mr=m0 length=8
	qp	post	EACCES	create type=ud pd=u cq=u; init; rtr; rts; | send text=x ah=a0 qpn=1 qkey=1
	qp	post	EACCES	create type=rc pd=u cq=u; init; rtr qpn=1 lid=1; rts; | send mr=m0 length=8
	qp	post	EACCES	create type=rc pd=u cq=u; init; rtr qpn=1 lid=1; rts; | bind_mw mw=w0 mr=m0
	mcast	ctl	EACCES	| create qp=d0 gid=ff12:401b:ffff::1
	END
}

# make KIND COMMANDS: the user's KIND/new, which these commands have been given
make()
{
	local command
	as_user mkdir "$1/new"
	while read -rd ';' command; do
		as_user bash -c "echo $command >$1/new/ctl"
	done <<<"$2"
}

@test "what needs root is refused to who makes root write it, and root does it" {
	local kind file error rest command status n=0
	while read -r kind file error rest; do
		command=${rest#*| }
		make "$kind" "${rest%|*}"
		status=0
		deputy "$kind/new/$file" "$command" || status=$?
		[ "$status" = "${!error}" ] || fail "$kind/new/$file: $command: error $status"
		# The line is right: it is who opened the file that matters.
		as_user bash -c 'printf %s "$1" >&3' - "$command" 3>"$kind/new/$file" ||
			fail "$kind/new/$file: $command, by root's descriptor"
		echo "reset" 2>/dev/null >"$kind/new/ctl" || true
		rmdir "$kind/new"
		n=$((n + 1))
	done < <(commands)
	[ $n -gt 20 ]
}

@test "whatever a user may write to, with root's hand comes no more than with the user's own" {
	local kind file line
	local -a commands
	mapfile -t commands < <(commands | sed 's/.*| //' | sort -u)
	cp "$DEPUTY" "$IBFS_DIR/plain"
	chmod 755 "$IBFS_DIR/plain"
	# A new one of each kind, and one that is made.
	as_user mkdir {pd,cq,mr,mw,srq,qp,ah,xrcd,mcast}/{new,made}
	as_user bash -e -c '
		for kind in pd xrcd; do echo create device=rxe0 >$kind/made/ctl; done
		echo create device=rxe0 cqe=64 >cq/made/ctl
		echo create pd=u size=4K >mr/made/ctl
		for kind in mw srq; do echo create pd=u >$kind/made/ctl; done
		echo create pd=u lid=1 >ah/made/ctl
		echo create type=ud pd=u cq=u >qp/made/ctl
		echo init >qp/made/ctl
		echo create qp=made gid=ff12:401b:ffff::1 >mcast/made/ctl'
	# shellcheck disable=SC2016 # for the other shell
	as_user bash -c '
		deputy=$1 plain=$2 pairs=0
		shift 2
		exec 7<>rxe0/1/mad/clone 8<>qp/clone
		while read -r file; do
			echo "FILE $file"
			for command; do
				pairs=$((pairs + 1))
				(exec -a "$command" "$deputy" 2>"$file") || continue
				(exec -a "$command" "$plain" 2>"$file") || echo "TAKEN $file: $command"
			done
		done < <(find * -type f -writable)
		echo "PAIRS $pairs"' - "$DEPUTY" "$IBFS_DIR/plain" "${commands[@]}" >"$IBFS_DIR/pairs"
	run cat "$IBFS_DIR/pairs"
	refute_line '^TAKEN'
	for file in rxe0/query rxe0/1/umad rxe0/1/mad/clone 'rxe0/1/mad/[0-9]*/(ctl|data)' \
		{pd,cq,mr,mw,srq,qp,ah,xrcd,mcast}/{clone,new/ctl,made/ctl} {srq,qp}/{new,made}/post \
		qp/made/{send,sq,rq} qp/[0-9]+/ctl dev/infiniband/{uverbs0,rdma_cm}; do
		assert_line "^FILE $file\$"
	done
	line=$(grep ^PAIRS "$IBFS_DIR/pairs")
	[ "${line#PAIRS }" -gt 1000 ] || fail "$line"
}

@test "Debian's own set-user-ID programs are no better" {
	local program n=0 command='create type=gsi pd=u cq=u port=1'
	for program in su mount umount passwd chfn chsh gpasswd fusermount3; do
		program=$(command -v $program) && [ -u "$program" ] || continue
		as_user mkdir "qp/${program##*/}"
		# It says its name, and that there is no such option.
		as_user bash -c 'exec -a "$1" "$0" --no-such-option 2>"$2"' "$program" "$command"$'\n' \
			"qp/${program##*/}/ctl" || true
		run cat "qp/${program##*/}/status"
		assert_line '^state new'
		grep -q "^EPERM: qp/${program##*/}: create: type=gsi is for root" errors ||
			{ echo "$program: no command came" >&3; continue; }
		n=$((n + 1))
	done
	[ $n -gt 0 ] || skip "no set-user-ID program that says its name"
}

@test "who has a descriptor has the rights of who opened it" {
	as_user mkdir qp/u
	as_user bash -c 'echo create type=gsi pd=u cq=u port=1 >&3' 3>qp/u/ctl
	grep -q '^type gsi' qp/u/status
	as_user bash -c 'echo init >&3; echo rtr >&3' 3>qp/u/ctl
	as_user bash -c 'echo recv mr=m0 length=8 >&3' 3>qp/u/post
	as_user bash -c 'echo create pd=p0 >&3' 3>mw/clone
}

# may_regroup SETPRIV-OPTION COMMAND: the user with these groups, who may change them
may_regroup()
{
	setpriv --reuid=65534 --regid=65534 "$1" --inh-caps=+setgid --ambient-caps=+setgid \
		bash -c "$2"
}

@test "groups count as they are when the file is opened" {
	chown :1234 pd/p0/ctl
	chmod 660 pd/p0/ctl
	as_user mkdir mw/{1x,2x,3x,4x,5x}
	# As ever: members may, others not.
	in_group 1234 bash -c 'echo create pd=p0 >mw/1x/ctl'
	in_group 1234 bash -c 'exec 3<>mw/clone && echo create pd=p0 >&3'
	run ! as_user bash -c 'echo create pd=p0 >mw/2x/ctl'
	assert_line 'Permission denied'
	run ! in_group 12345 bash -c 'echo create pd=p0 >mw/2x/ctl'
	assert_line 'Permission denied'
	# Another program, of the same user and no groups, writes; the opener is gone meanwhile.
	may_regroup --groups=1234 'exec 3>mw/2x/ctl
		exec setpriv --clear-groups bash -c "echo create pd=p0 >&3"'
	may_regroup --groups=1234 'exec 3>mw/3x/ctl
		(while kill -0 $$; do sleep 0.02; done 2>/dev/null
		exec setpriv --clear-groups bash -c "echo create pd=p0 >&3") 3>&3 &'
	wait_for file_has mw/3x/status '^device rxe0'
	# One that has the group writes what one without it opened.
	run ! may_regroup --clear-groups 'exec 3>mw/4x/ctl
		exec setpriv --groups=1234 bash -c "echo create pd=p0 >&3"'
	assert_line 'Permission denied'
	# Who is in the group may not what all others may.
	chmod 606 pd/p0/ctl
	run ! in_group 1234 bash -c 'echo create pd=p0 >mw/5x/ctl'
	as_user bash -c 'echo create pd=p0 >mw/5x/ctl'
}

@test "memory counts against the opener's limits" {
	as_user mkdir mr/1x mr/2x qp/a qp/b
	local errno=0
	as_user bash -c 'for q in a b; do echo create type=rc pd=u cq=u inline=0 >qp/$q/ctl; done
		echo connect peer=b >qp/a/ctl'
	(ulimit -l 10 && deputy mr/1x/ctl 'create pd=u size=1M') || errno=$?
	[ $errno = 12 ]
	errno=0
	(ulimit -l 10 && deputy qp/a/send "$(printf '%020000d' 0)") || errno=$?
	[ $errno = 12 ]
	# A set-user-ID program reads a message.
	errno=0
	(ulimit -l 10 && as_user bash -c 'exec timeout 10 "$0" read 100 <qp/b/recv' "$DEPUTY") || errno=$?
	[ $errno = 12 ]
	(ulimit -l 100 && as_user bash -c 'exec timeout 10 "$0" read 100 <qp/b/recv' "$DEPUTY" \
		>"$IBFS_DIR/message") &
	wait_for grep -q '^pid=[0-9]* uid=65534 bytes=65536 ' pinned
	as_user bash -c 'printf hello >qp/a/send'
	wait $!
	[ "$(<"$IBFS_DIR/message")" = hello ]
	# What the program allows itself is not the opener's, who has what 9P gives at most.
	[ "$(ulimit -H -l)" = unlimited ] || [ "$(ulimit -H -l)" -ge 4096 ] || skip "RLIMIT_MEMLOCK"
	errno=0
	(ulimit -S -l 10 && deputy mr/1x/ctl 'create pd=u size=4M' lift) || errno=$?
	[ $errno = 12 ]
	(ulimit -S -l 10 && deputy mr/1x/ctl 'create pd=u size=512K' lift)
	grep -q '^pid=[0-9]* uid=65534 .* limit=1048576' pinned
	# Root's descriptor has none.
	(ulimit -l 10 && as_user bash -c 'echo create pd=u size=16M >&3' 3>mr/2x/ctl)
}

@test "uverbs and rdma_cm take commands only from who opened them" {
	local file errno
	for file in dev/infiniband/{uverbs0,rdma_cm}; do
		errno=0
		deputy "$file" "$(printf '%064d' 0)" || errno=$?
		[ "$errno" = $EACCES ]
		run ! as_user bash -c 'printf %064d 0 >&3' 3>"$file"
		assert_line 'Permission denied'
	done
}
