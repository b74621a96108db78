/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's log, and the reasons of failed requests (the `errors` file). */
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include <ibfs/ibfs.h>

/* One write for the whole line: several daemons may share a log. */
static void log_stderr(const char *fmt, va_list ap)
{
	char line[1024];
	int len;

	len = vsnprintf(line, sizeof(line), fmt, ap);
	if (len < 0)
		return;
	fprintf(stderr, "ibfs: %s\n", line);
}

void ibfs_log(struct ibfs *ibfs, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (ibfs && ibfs->background)
		vsyslog(LOG_NOTICE, fmt, ap);
	else
		log_stderr(fmt, ap);
	va_end(ap);
}

int ibfs_fail(struct ibfs *ibfs, int err, const char *fmt, ...)
{
	const char *name = strerrorname_np(err);
	va_list ap;

	if (!ibfs)
		return -err;
	va_start(ap, fmt);
	vsnprintf(ibfs->failed.why, sizeof(ibfs->failed.why), fmt, ap);
	va_end(ap);
	ibfs->failed.count++;
	ibfs->failed.err = err;
	if (ibfs->errors)
		textring_add(ibfs->errors, "%s: %s", name ? name : "error", ibfs->failed.why);
	return -err;
}
