/* SPDX-License-Identifier: BSD-2-Clause */
/* eat.h over 9P. usage: eat_9p ADDRESS RESOURCE [COUNT] */
#include "eat.h"
#include "p9_test.h"

enum {
	NOBODY = 65534,
	PER_CONNECTION = 4000,		/* fids; a connection may have more */
	FIRST_TAG = 0x8000,		/* of requests that wait; p9_test.h has others */
};

static const char *address;
static struct p9 *p9;

static bool failed(long err)
{
	errno = (int)-err;
	return false;
}

/* One more, that is `p9` then; false: it was hung up on. */
static bool connected(void)
{
	p9 = calloc(1, sizeof(*p9));
	p9->msize = 8192;
	p9->in = malloc(p9->msize + 512);
	p9->fd = p9_socket(address);
	if (p9->fd < 0)
		return false;
	return p9_version(p9, "9P2000.L", p9->msize) ? failed(-ECONNRESET) : true;
}

/* It says hello, and nothing else. */
static bool eat_connections(unsigned int n)
{
	(void)n;
	return connected();
}

/* It says nothing at all. */
static bool eat_silent(unsigned int n)
{
	(void)n;
	return p9_socket(address) >= 0;
}

static bool attached(void)
{
	long ret = connected() ? p9_attach(p9, 0, "", NONUNAME, "") : -errno;

	return ret < 0 ? failed(ret) : true;
}

static bool eat_fids(unsigned int n)
{
	long ret;

	if (n % PER_CONNECTION == 0 && !attached())
		return false;
	ret = p9_walk(p9, 1 + n % PER_CONNECTION, "rxe0/1/counters/port_xmit_data");
	return ret < 0 ? failed(ret) : true;
}

static bool wait_more(unsigned int n)
{
	if (!p9_send(p9, TREAD, FIRST_TAG + n, "dqd", 1, (uint64_t)0, 100))
		return failed(-EPIPE);
	/* The next message is answered at once: by then this one was looked at. */
	if (!p9_send(p9, TFLUSH, 0xfff0, "w", 0xfff1) || !p9_recv(p9))
		return failed(-EPIPE);
	if (p9->tag == 0xfff0)
		return true;
	return failed(p9_result(p9));
}

/* Reads of what never comes: a tag each, on one file. */
static bool eat_waits(unsigned int n)
{
	if (!n && (!attached() || p9_open(p9, 1, "events", 0)))
		return false;
	return wait_more(n);
}

/* The same of a user for whom root attached, as a mount does: then root goes on. */
static bool eat_shared_waits(unsigned int n)
{
	char text[20];
	int err;

	if (!n && (!connected() || p9_attach(p9, 0, "", NOBODY, "") < 0 ||
		   p9_open(p9, 1, "events", 0)))
		return false;
	if (wait_more(n))
		return true;
	err = errno;
	if (!p9_recv(p9) || p9_clunk(p9, 0) < 0 || p9_attach(p9, 0, "", 0, "") < 0 ||
	    p9_cat(p9, "version", text, sizeof(text)) < 0)
		err = EIO;
	errno = err;
	return false;
}

static const struct resource resources[] = {
	{ "connections", eat_connections },
	{ "silent", eat_silent },
	{ "fids", eat_fids },
	{ "waits", eat_waits },
	{ "shared_waits", eat_shared_waits },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	address = argc > 1 ? argv[1] : "";
	return eat(argc, argv, resources);
}
