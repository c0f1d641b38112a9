/* The kernel's stats files as the reader sends them. */
#include "router/ledger.h"

#include "base/checked.h"
#include "shm/control_abi.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t put_fact(uint8_t *blob, size_t at, uint32_t kind, uint32_t id, const char *text)
{
	struct control_fact_header fact = { .fact = kind, .id = id, .size = strlen(text) };

	memcpy(blob + at, &fact, sizeof(fact));
	memcpy(blob + at + sizeof(fact), text, fact.size);
	return at + sizeof(fact) + align_up(fact.size, 8);
}

static void test_adds_up_all_cpus(void **state)
{
	static const char cpu0[] = "entries: 1\noverrun: 20\ncommit overrun: 3\nbytes: 4\noldest event ts:  5.0\n"
				   "now ts:  6.0\ndropped events: 7\nread events: 800\n";
	/* Its counts are others than the first one's, and none is 0: so none can be left out or taken for another. */
	static const char cpu1[] = "entries: 100\noverrun: 2000\ncommit overrun: 30000\nbytes: 4\ndropped events: 700000\n"
				   "read events: 18446744073709550000\n";
	uint8_t blob[1024] = { 0 };
	struct ledger_kernel kernel;
	size_t size = put_fact(blob, 0, FACT_STATS, 0, cpu0);

	(void)state;
	size = put_fact(blob, size, FACT_HEADER_PAGE, 0, "read events: 5\n");
	assert_int_equal(ledger_kernel_parse(blob, size, &kernel), 0);
	assert_int_equal(kernel.read, 800);
	assert_int_equal(kernel.overrun, 20);
	assert_int_equal(kernel.entries, 1);
	assert_int_equal(kernel.dropped, 10);
	size = put_fact(blob, size, FACT_STATS, 1, cpu1);
	assert_int_equal(ledger_kernel_parse(blob, size, &kernel), 0);
	assert_true(kernel.read == 18446744073709550000U + 800);
	assert_int_equal(kernel.overrun, 2020);
	assert_int_equal(kernel.entries, 101);
	assert_int_equal(kernel.dropped, 730010);
}

static void test_refuses_a_cut_blob(void **state)
{
	uint8_t blob[256] = { 0 };
	struct ledger_kernel kernel = { .read = 1 };
	struct control_fact_header huge = { .fact = FACT_STATS, .size = UINT64_MAX };
	size_t size = put_fact(blob, 0, FACT_STATS, 0, "read events: 1234\n");

	(void)state;
	for (size_t cut = 1; cut < size - 8; cut++)
		assert_int_equal(ledger_kernel_parse(blob, cut, &kernel), -EBADMSG);
	memcpy(blob, &huge, sizeof(huge));
	assert_int_equal(ledger_kernel_parse(blob, size, &kernel), -EBADMSG);
	assert_int_equal(kernel.read, 1);
	assert_int_equal(ledger_kernel_parse(blob, 0, &kernel), 0);
	assert_int_equal(kernel.read, 0);
}

static void test_switched_off(void **state)
{
	uint8_t blob[256] = { 0 };
	struct ledger_kernel kernel;
	size_t size = put_fact(blob, 0, FACT_STATS, 0, "read events: 8\n"), on;

	(void)state;
	assert_int_equal(ledger_kernel_parse(blob, size, &kernel), 0);
	assert_false(kernel.off);
	on = put_fact(blob, size, FACT_TRACING_ON, 0, "1\n");
	assert_int_equal(ledger_kernel_parse(blob, on, &kernel), 0);
	assert_false(kernel.off);
	on = put_fact(blob, size, FACT_TRACING_ON, 0, "0\n");
	assert_int_equal(ledger_kernel_parse(blob, on, &kernel), 0);
	assert_true(kernel.off);
	assert_int_equal(kernel.read, 8);
}

static struct ledger_kernel taken(struct ledger_counts *counts, uint64_t known, struct ledger_kernel kernel, bool cleared)
{
	assert_int_equal(ledger_counts_take(counts, known, &kernel), cleared);
	return kernel;
}

/* What the kernel has forgotten is found by what came and by what it said before, told once, and kept. */
static void test_counts_that_go_back(void **state)
{
	struct ledger_counts counts = { 0 };
	struct ledger_kernel kernel;

	(void)state;
	kernel = taken(&counts, 100, (struct ledger_kernel){ .read = 100, .overrun = 7, .dropped = 2 }, false);
	assert_int_equal(kernel.read, 100);
	/* A reader that died took 5 with it. */
	(void)taken(&counts, 100, (struct ledger_kernel){ .read = 105, .overrun = 7, .dropped = 2 }, false);
	kernel = taken(&counts, 120, (struct ledger_kernel){ .read = 15 }, true);
	assert_int_equal(kernel.read, 120);
	assert_int_equal(kernel.overrun, 7);
	assert_int_equal(kernel.dropped, 2);
	kernel = taken(&counts, 130, (struct ledger_kernel){ .read = 25, .overrun = 1 }, false);
	assert_int_equal(kernel.read, 130);
	assert_int_equal(kernel.overrun, 8);
	/* Of the overrun alone it shows, too. */
	kernel = taken(&counts, 130, (struct ledger_kernel){ .read = 25 }, true);
	assert_int_equal(kernel.overrun, 8);
	assert_int_equal(counts.cleared, 2);
}

struct seen {
	unsigned int count;
	struct ledger_probe probes[8];
};

static void on_probe(void *context, const struct ledger_probe *probe)
{
	struct seen *seen = context;

	seen->probes[seen->count++] = *probe;
}

static void test_reads_profiles_from_the_end_of_the_line(void **state)
{
	static const char uprobes[] = "  /tmp/a file/x 12 myprobe_1                                               7\n"
				      "  /bin/y other                             18446744073709551615\nbroken line x\n\n";
	static const char kprobes[] = "  open_2                                              41               3\n"
				      "  short 1\n";
	uint8_t blob[1024] = { 0 };
	struct seen seen = { 0 };
	size_t size = put_fact(blob, 0, FACT_UPROBE_PROFILE, 0, uprobes);

	(void)state;
	size = put_fact(blob, size, FACT_KPROBE_PROFILE, 0, kprobes);
	assert_int_equal(ledger_probes_parse(blob, size, on_probe, &seen), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.probes[0].hits, 7);
	assert_int_equal(seen.probes[0].missed, 0);
	assert_int_equal(seen.probes[0].event_size, strlen("myprobe_1"));
	assert_memory_equal(seen.probes[0].event, "myprobe_1", 9);
	assert_true(seen.probes[1].hits == UINT64_MAX);
	assert_int_equal(seen.probes[2].hits, 41);
	assert_int_equal(seen.probes[2].missed, 3);
	assert_memory_equal(seen.probes[2].event, "open_2", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adds_up_all_cpus),
		cmocka_unit_test(test_refuses_a_cut_blob),
		cmocka_unit_test(test_counts_that_go_back),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_reads_profiles_from_the_end_of_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
