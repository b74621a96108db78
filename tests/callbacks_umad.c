/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages of umad, read and written by another user than opened the file, for
 * whom the daemon looks into no memory: callbacks_umad NAME SENDER RECEIVER LID, by root.
 */
#include <grp.h>

#include "umad_message.h"

#define LONG	(100 << 10)		/* the daemon looks how long the write is */
#define MESSAGE	3000

/* What another user gets: the errno, or 0. */
static int as_other(int fd, void *buf, size_t size, bool write_it)
{
	pid_t pid = fork();
	ssize_t n;
	int status;

	if (!pid) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			_exit(255);
		n = write_it ? write(fd, buf, size) : read(fd, buf, size);
		_exit(n < 0 ? errno : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_read(void)
{
	struct pair pair = pair_new(0x42, 0);
	uint8_t small[HDR + MAD_LEN];

	send_message(&pair, 1, MESSAGE);
	CHECK(as_other(pair.to, small, sizeof(small), false) == EACCES);
	/* It is there still, for whom it is for. */
	read_message(pair.to, 1, MESSAGE);
}

static void test_write(void)
{
	struct pair pair = pair_new(0x43, 0);
	uint8_t *buf = make_message(&pair, 2, LONG);

	CHECK(as_other(pair.from, buf, HDR + LONG, true) == EACCES);
	send_message(&pair, 1, LONG);
	read_message(pair.to, 1, LONG);
	free(buf);
}

static const struct test tests[] = {
	{ "read", test_read }, { "write", test_write }, { NULL, NULL }
};

int main(int argc, char **argv)
{
	return run_message_tests(tests, argc, argv);
}
