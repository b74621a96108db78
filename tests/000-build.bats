# SPDX-License-Identifier: BSD-2-Clause
# The build and what it installs; the manual pages.
load helpers

@test "-h prints how it is called" {
	run -0 "$BUILD/ibfs" -h
	assert_line '^usage: ibfs \[-f\] \[-c CONF\] \[-o OPTIONS\] \[--9p ADDRESS\]\.\.\. \[MOUNTPOINT\]$'
	run -0 "$BUILD/ibfs" --help
}

@test "-V prints the version" {
	run -0 "$BUILD/ibfs" -V
	assert_line '^ibfs [0-9]+\.[0-9]+$'
}

@test "a wrong command line is told on stderr, exit status 2" {
	local args
	for args in "" "-x /" "-c" "-o" "--nothing /" "a b c" "-c conf source /mnt"; do
		# shellcheck disable=SC2086 # several arguments
		run --separate-stderr -2 "$BUILD/ibfs" $args
		[ -z "$output" ]
		output=$stderr
		assert_line '^usage: ibfs'
	done
}

@test "the manual pages are well formed" {
	need_tool mandoc
	run -0 mandoc -T lint -W warning "$TOP"/man/*.[158]
	[ -z "$output" ]
}

@test "the manual pages tell of every option" {
	local option
	for option in $("$BUILD/ibfs" -h | grep -oE -- '--[a-z0-9]+'); do
		grep -q -- "Fl \\\\-${option#--}" "$TOP/man/ibfs.8" || fail "ibfs.8 lacks $option"
	done
}

@test "ibfs.conf and its manual page tell of every setting" {
	local name
	# shellcheck disable=SC2013 # they are words
	for name in $(sed -n 's/^\t{ "\([a-z_]*\)", parse_.*/\1/p' "$TOP/src/conf.c" | sort -u); do
		grep -qw "$name" "$TOP/conf/ibfs.conf" || fail "conf/ibfs.conf lacks $name"
		grep -qE "^\.It Ic (.*Ic |[a-z]+ , )?$name\>" "$TOP/man/ibfs.conf.5" ||
			fail "ibfs.conf.5 lacks $name"
	done
}

@test "make install and uninstall, with DESTDIR and PREFIX" {
	local dest=$BATS_TEST_TMPDIR/dest left
	[ "$(basename "$BUILD")" = build ] || skip "installs the plain build only"
	run -0 make -C "$TOP" -s install DESTDIR="$dest" PREFIX=/usr
	for file in usr/sbin/ibfs usr/bin/ibfs-run usr/lib/ibfs/libibfs-run.so etc/ibfs.conf \
		usr/share/man/man1/ibfs-run.1 usr/share/man/man5/ibfs.5 \
		usr/share/man/man5/ibfs.conf.5 usr/share/man/man8/ibfs.8 \
		usr/lib/udev/rules.d/90-ibfs.rules usr/lib/systemd/system/ibfs.service; do
		[ -s "$dest/$file" ] || fail "not installed: $file"
	done
	run -0 "$dest/usr/sbin/ibfs" -V
	run -1 grep -r @SBINDIR@ "$dest/usr/lib"
	# A configuration that is there already stays as it is.
	echo '# mine' >"$dest/etc/ibfs.conf"
	run -0 make -C "$TOP" -s install DESTDIR="$dest" PREFIX=/usr
	run -0 grep -x '# mine' "$dest/etc/ibfs.conf"
	run -0 make -C "$TOP" -s uninstall DESTDIR="$dest" PREFIX=/usr
	left=$(find "$dest" -type f -printf '%P\n')
	[ "$left" = etc/ibfs.conf ] || fail "left: $left"
}

@test "make deb makes a package of the same files" {
	local deb
	[ "$(basename "$BUILD")" = build ] || skip "installs the plain build only"
	need_tool dpkg-deb
	run -0 "$TOP/contrib/debian/build" "$BATS_TEST_TMPDIR"
	deb=$output
	run -0 dpkg-deb --field "$deb" Depends
	assert_line 'fuse3, .*libfuse3'
	run -0 dpkg-deb --contents "$deb"
	assert_line '^drwxr-xr-x root/root .* \./$'
	assert_line '^-rwxr-xr-x root/root .* \./usr/sbin/ibfs$'
	assert_line '^-rw-r--r-- root/root .* \./usr/share/man/man5/ibfs\.5\.gz$'
	run -0 dpkg-deb --extract "$deb" "$BATS_TEST_TMPDIR/x"
	run -0 "$BATS_TEST_TMPDIR/x/usr/sbin/ibfs" -V
}

@test "make help tells of every target" {
	local target
	run -0 make -s -C "$TOP" help
	for target in setup demo check bench lint install deb uninstall clean; do
		assert_line "^make $target"
	done
}
