/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of COUNT directed-route Get(NodeInfo), each sent once, get an answer:
 * a 1 or 0 each. What libibmad's tools print depends on whether their own
 * timeout or the device's comes first; this waits for the device's alone.
 *
 *	dr_attempts UMAD COUNT PORT...		the path, port by port
 */
#include "umad_test.h"

enum { ATTR_NODE_INFO = 0x11, TIMEOUT_MS = 10, MAX_HOPS = 62 };

static int attempt(int fd, uint32_t agent, uint32_t tid, int hops, const uint8_t *path)
{
	struct mad mad = { .hdr = { .id = agent, .timeout_ms = TIMEOUT_MS } };

	dr_smp(mad.data, tid, ATTR_NODE_INFO, hops, path);
	if (write(fd, &mad, sizeof(mad)) != sizeof(mad) || read(fd, &mad, sizeof(mad)) < 0) {
		perror("umad");
		exit(1);
	}
	return mad.hdr.status == 0;
}

int main(int argc, char **argv)
{
	uint8_t path[MAX_HOPS];
	int fd, agent, hops = argc - 3, count, i;

	if (hops < 0 || hops > MAX_HOPS)
		return 2;
	count = atoi(argv[2]);
	for (i = 0; i < hops; i++)
		path[i] = (uint8_t)atoi(argv[3 + i]);
	fd = must_open(argv[1], O_RDWR);
	agent = add_sender(fd, 0);
	if (!CHECK(agent >= 0))
		return 1;
	for (i = 1; i <= count; i++)
		putchar('0' + attempt(fd, (uint32_t)agent, (uint32_t)i, hops, path));
	putchar('\n');
	close(fd);
	return 0;
}
