# SPDX-License-Identifier: BSD-2-Clause
# The systemd units, as systemd(1) runs them: started, killed, started again, stopped.
# Nothing here needs systemd itself but the check of their syntax.
load helpers

setup()
{
	[ -w /dev/fuse ] || skip "no /dev/fuse here"
	DIR=$BATS_TEST_TMPDIR
	mkdir -p "$DIR/run" "$DIR/etc/ibfs"
	cp "$TOP/conf/ibfs.conf" "$DIR/etc/ibfs.conf"
	cp "$TOP/conf/ibfs.conf" "$DIR/etc/ibfs/lab.conf"
}

teardown()
{
	local pid
	for pid in $(main_pids); do kill -KILL "$pid"; done
	while grep -q " $DIR/run/" /proc/self/mounts; do
		umount -l "$(awk -v d="$DIR/run/" 'index($2, d) == 1 { print $2; exit }' /proc/self/mounts)"
	done
}

# unit NAME: one of contrib/systemd, for this build, with directories of the test's.
unit()
{
	sed "s|@SBINDIR@|$BUILD|; s|@SYSCONFDIR@|$DIR/etc|; s|/run/|$DIR/run/|; s|%i|lab|g" \
		"$TOP/contrib/systemd/$1.in" >"$DIR/unit"
}
setting() { sed -n "s/^$1=//p" "$DIR/unit"; }

# What a unit's start does, systemd.exec(5), systemd.service(5): 0, or what failed.
start_unit()
{
	local line
	for line in $(setting RuntimeDirectory); do
		mkdir -p "$DIR/run/$line" && chmod 755 "$DIR/run/$line" || return 233
	done
	while read -r line; do
		case $line in
		-*) bash -c "${line#-}" || true ;;
		*) bash -c "$line" || return ;;
		esac
	done < <(setting ExecStartPre; setting ExecStart) 3>&-
}
# The daemons of the test, not their children.
main_pids()
{
	ps -eo pid=,ppid=,args= | awk -v exe="$BUILD/ibfs" -v dir="$DIR/" '
		$3 == exe && index($0, dir) { parent[$1] = $2 }
		END { for (pid in parent) if (!(parent[pid] in parent)) print pid }'
}

# The main process dies; the others are told to end, and do.
crash()
{
	local pid rest
	rest=$(pgrep -P "$1")
	kill -KILL "$1"
	wait_for is_gone "$1"
	for pid in $rest; do
		kill -TERM "$pid" 2>/dev/null || true
		wait_for is_gone "$pid"
	done
}

restarts()	# NAME MOUNTPOINT
{
	local n pid rest
	unit "$1"
	[ "$(setting Restart)" = on-failure ]
	[ "$(setting KillMode)" = control-group ]
	for n in 1 2 3; do
		start_unit || fail "start $n: status $?"
		[ "$(cat "$2/rxe0/1/state")" = "4: ACTIVE" ]
		pid=$(main_pids)
		[ "$(wc -w <<<"$pid")" = 1 ] || fail "main process: $pid"
		[ $n = 3 ] || crash "$pid"
	done
	rest=$(pgrep -P "$pid")
	# shellcheck disable=SC2086 # several
	kill -TERM "$pid" $rest
	for pid in $pid $rest; do wait_for is_gone "$pid"; done
	run ! grep " $2 " /proc/self/mounts
}

@test "ibfs.service restarts after a crash" { restarts ibfs.service "$DIR/run/ibfs"; }
@test "ibfs@.service restarts after a crash" { restarts ibfs@.service "$DIR/run/ibfs-lab"; }

@test "the units are right" {
	need_tool systemd-analyze
	local name
	for name in ibfs.service ibfs@.service; do
		sed "s|@SBINDIR@/ibfs|/bin/true|; s|@SYSCONFDIR@|/etc|" \
			"$TOP/contrib/systemd/$name.in" >"$DIR/$name"
		run systemd-analyze verify --man=no "$DIR/${name/@/@lab}"
		refute_line 'ibfs(@lab|@)?\.service:'
	done
}
