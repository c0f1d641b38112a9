/* Golden bytes: what a process of another build finds in the segments. abi.py guards every offset; here are
 * whole examples, byte order included. */
#include "shm/control_abi.h"
#include "shm/pool_abi.h"
#include "shm/record_abi.h"
#include "shm/schema_abi.h"
#include "shm/segment_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static void check(const void *bytes, size_t size, const char *golden, size_t golden_size)
{
	/* The golden bytes are a little-endian host's; segments never leave the host. */
	if (!LITTLE)
		skip();
	assert_int_equal(size, golden_size - 1);
	assert_memory_equal(bytes, golden, size);
}
#define CHECK(object, golden) check(&(object), sizeof(object), golden, sizeof(golden))

static void segment(void **state)
{
	const struct segment_header header = {
		.magic = SEGMENT_MAGIC,
		.kind = SEGMENT_RING,
		.version = SEGMENT_VERSION,
		.compatible = 0x1122334455667788,
		.incompatible = 0x0102030405060708,
		.size = 0x11000,
	};

	(void)state;
	CHECK(header, "TRACEFAN\3\0\1\0\0\0\0\0"
		      "\x88\x77\x66\x55\x44\x33\x22\x11\x08\x07\x06\x05\x04\x03\x02\x01"
		      "\0\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

static void record(void **state)
{
	const struct record_header header = {
		.size = 0x48,
		.kind = RECORD_EVENT,
		.flags = RECORD_LATE | RECORD_COMM,
		.cpu = 0x0102,
		.time = 0x1122334455667788,
		.trace_id = 0x99,
		.pid = -2,
		.payload_size = 20,
		.comm = "cat",
	};

	(void)state;
	CHECK(header, "\x48\0\0\0\1\3\2\1\x88\x77\x66\x55\x44\x33\x22\x11"
		      "\x99\0\0\0\0\0\0\0\xfe\xff\xff\xff\x14\0\0\0"
		      "cat\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

static void lost(void **state)
{
	const struct record_lost lost = {
		.source = LOST_RING, .cpu = RECORD_CPU_NONE, .count = LOST_COUNT_UNKNOWN, .at_least = 3, .from = 4, .to = 5
	};

	(void)state;
	CHECK(lost, "\2\0\0\0\xff\xff\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
		    "\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0");
}

static void entry(void **state)
{
	const struct pool_entry entry = {
		.sequence = 1,
		.time = 2,
		.value = 3,
		.slot = 4,
		.cpu = POOL_CPU_ALL,
		.length = 0x1000,
		.kind = POOL_DATA,
		.flags = POOL_REPUBLISHED,
	};

	(void)state;
	CHECK(entry, "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"
		     "\4\0\0\0\xff\xff\xff\xff\0\x10\0\0\1\1\0\0\0\0\0\0\0\0\0\0");
}

static void field(void **state)
{
	const struct schema_field field = {
		.name = 1,
		.type = 2,
		.offset = 3,
		.size = 4,
		.element_size = 5,
		.count = 6,
		.kind = SCHEMA_BYTES,
		.place = SCHEMA_TAIL,
		.display = SCHEMA_BITMASK,
		.flags = SCHEMA_HIDDEN,
	};

	(void)state;
	CHECK(field, "\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5\0\0\0\6\0\0\0\3\3\5\x10\0\0\0\0");
}

static void message(void **state)
{
	const struct control_id id = {
		.header = {
			.type = CONTROL_SCHEMA | CONTROL_REPLY,
			.version = CONTROL_VERSION,
			.size = sizeof(id),
			.cookie = 0x1122334455667788,
		},
		.id = 7,
	};

	(void)state;
	CHECK(id, "\4\x80\1\0\x18\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11\7\0\0\0\0\0\0\0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segment),
		cmocka_unit_test(record),
		cmocka_unit_test(lost),
		cmocka_unit_test(entry),
		cmocka_unit_test(field),
		cmocka_unit_test(message),
	};

	return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}
