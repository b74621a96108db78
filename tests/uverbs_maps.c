/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program's mappings, /proc/self/maps, before, while and after it has memory
 * registered: all are as they were, page by page. What libibverbs and ibfs-run's
 * library map for themselves are files of the tree. Run by ibfs-run.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uverbs_private.h"

enum { MAPS_MAX = 4096, TEXT_MAX = 1 << 20, KINDS = 8 };

struct map {
	uint64_t from, to, off, ino;
	char perm[5], dev[16], name[256];
};

struct maps {
	unsigned int num;
	struct map map[MAPS_MAX];
};

/* No memory is mapped by looking. */
static void look(struct maps *maps)
{
	static char text[TEXT_MAX];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	text[len] = '\0';
	CHECK(!n && len < sizeof(text) - 1);
	maps->num = 0;
	for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		struct map *map = &maps->map[maps->num];

		*end = '\0';
		map->name[0] = '\0';
		CHECK(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %15s %" SCNu64 " %255[^\n]",
			     &map->from, &map->to, map->perm, &map->off, map->dev, &map->ino,
			     map->name) >= 6);
		CHECK(++maps->num < MAPS_MAX);
	}
}

static const struct map *map_at(const struct maps *maps, uint64_t addr)
{
	for (unsigned int i = 0; i < maps->num; i++)
		if (maps->map[i].from <= addr && addr < maps->map[i].to)
			return &maps->map[i];
	return NULL;
}

static void tell(const char *what, const struct map *map)
{
	printf("%s: %" PRIx64 "-%" PRIx64 " %s %" PRIx64 " %s %" PRIu64 " %s\n", what, map->from,
	       map->to, map->perm, map->off, map->dev, map->ino, map->name);
}

/* The same memory: neighbours that look alike may be told as one. */
static bool is_same(const struct map *a, const struct map *b, uint64_t addr)
{
	if (strcmp(a->perm, b->perm) || strcmp(a->dev, b->dev) || a->ino != b->ino ||
	    strcmp(a->name, b->name))
		return false;
	return !a->ino || a->off + (addr - a->from) == b->off + (addr - b->from);
}

/* Where the first difference is between what was there and what is; 0: there is none. */
static uint64_t differs(const struct map *before, const struct maps *now)
{
	uint64_t at = before->from;

	while (at < before->to) {
		const struct map *map = map_at(now, at);

		if (!map || !is_same(before, map, at))
			return at;
		at = map->to;
	}
	return 0;
}

/* Address space that an allocator keeps for later. */
static bool is_reserve(const struct map *map)
{
	return !strcmp(map->perm, "---p") && !map->ino;
}

/* All that was there still is. */
static void check_kept(const char *when, const struct maps *before, const struct maps *now)
{
	for (unsigned int i = 0; i < before->num; i++) {
		uint64_t at = differs(&before->map[i], now);

		if (!at || is_reserve(&before->map[i]))
			continue;
		failed = 1;
		printf("%s: not as before at %" PRIx64 ":\n", when, at);
		tell("  before", &before->map[i]);
		if (map_at(now, at))
			tell("  now   ", map_at(now, at));
	}
}

/* Of libibverbs, of ibfs-run's library, or what malloc() needed for them. */
static bool may_be_new(const struct map *map)
{
	const char *slash = strrchr(map->name, '/');

	return (slash && !strncmp(slash, "/uverbs", 7)) || !strcmp(map->name, "[heap]");
}

static void check_new(const char *when, const struct maps *before, const struct maps *now)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return;				/* their malloc() maps as it likes */
#endif
	for (unsigned int i = 0; i < now->num; i++) {
		if (!differs(&now->map[i], before) || may_be_new(&now->map[i]))
			continue;
		failed = 1;
		printf("%s: ", when);
		tell("new", &now->map[i]);
	}
}

/* --- memory of all kinds --- */

struct piece {
	const char *what;
	uint8_t *mem;
	size_t size;
	struct ibv_mr *mr;
};

static uint8_t data[3 * SIZE];

static uint8_t *map_file(int flags)
{
	char name[] = "/tmp/uverbs_maps.XXXXXX";
	int fd = mkstemp(name);
	uint8_t *mem;

	CHECK(fd >= 0 && !unlink(name) && !ftruncate(fd, SIZE));
	mem = must(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0), "mmap");
	close(fd);
	return mem;
}

static void make_pieces(struct piece *pieces, uint8_t *stack, size_t stack_size)
{
	const struct piece made[KINDS] = {
		{ "pages", map_private(SIZE), SIZE, NULL },
		{ "many pages", map_private(2 << 20), 2 << 20, NULL },
		{ "part of pages", map_private(SIZE) + 100, SIZE - 200, NULL },
		{ "a chunk of malloc()", must(malloc(1 << 20), "malloc"), 1 << 20, NULL },
		{ "a small one", must(malloc(1000), "malloc"), 1000, NULL },
		{ "the program's data", data, sizeof(data), NULL },
		{ "the stack", stack, stack_size, NULL },
		{ "a file's, private", map_file(MAP_PRIVATE), SIZE, NULL },
	};

	memcpy(pieces, made, sizeof(made));
	for (unsigned int i = 0; i < KINDS; i++)
		fill(pieces[i].mem, pieces[i].size, i);
}

static void register_all(const struct end *end, struct piece *pieces)
{
	for (unsigned int i = 0; i < KINDS; i++)
		pieces[i].mr = reg(end, pieces[i].mem, pieces[i].size);
}

/* What is in each goes round by one, half of it written and half of it read. */
static void move_all(struct end *end, struct piece *pieces)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		const struct piece *to = &pieces[i], *from = &pieces[(i + 1) % KINDS];
		uint32_t len = (uint32_t)(to->size < from->size ? to->size : from->size);

		CHECK(transfer(end, IBV_WR_RDMA_WRITE, from->mr, to->mr, 0, len / 2) ==
		      IBV_WC_SUCCESS);
		CHECK(transfer(end, IBV_WR_RDMA_READ, to->mr, from->mr, len / 2, len - len / 2) ==
		      IBV_WC_SUCCESS);
		CHECK(!memcmp(to->mem, from->mem, len));
	}
}

int main(void)
{
	static struct maps start, before, now;
	static struct piece pieces[KINDS];
	uint8_t stack[3 * PAGE];
	struct end end;
	int status;

	make_pieces(pieces, stack, sizeof(stack));
	look(&start);
	open_end(&end);
	/* Once: what is mapped at the first doorbell is there from now on. */
	register_all(&end, pieces);
	move_all(&end, pieces);
	look(&before);
	check_kept("while it is registered", &start, &before);
	for (unsigned int i = 0; i < KINDS; i++)
		CHECK(!ibv_dereg_mr(pieces[i].mr));
	look(&now);
	check_kept("after it was registered", &start, &now);
	check_new("after it was registered", &before, &now);

	register_all(&end, pieces);
	look(&now);
	check_kept("registered again", &before, &now);
	check_new("registered again", &before, &now);
	move_all(&end, pieces);
	if (!fork()) {
		look(&now);
		check_kept("in a child", &start, &now);
		fflush(stdout);
		_exit(failed);
	}
	CHECK(wait(&status) > 0 && !status);
	for (unsigned int i = 0; i < KINDS; i++)
		CHECK(!ibv_dereg_mr(pieces[i].mr));
	close_end(&end);
	look(&now);
	check_kept("in the end", &start, &now);
	return failed;
}
