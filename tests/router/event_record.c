/* The bytes of an event's record, by whatever stores they are written. */
#include "router/event_record.h"

#include "base/checked.h"
#include "shm/record_abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LARGEST 300
#define FILL    0xa5

struct place {
	_Alignas(64) uint8_t bytes[sizeof(struct record_header) + LARGEST + 64];
};

static struct event_view view_of(const uint8_t *payload, uint32_t size, const char *comm)
{
	return (struct event_view){
		.payload = payload,
		.comm = comm,
		.time = 0x1122334455667788,
		.payload_size = size,
		.size = (uint32_t)align_up(sizeof(struct record_header) + size, RECORD_ALIGN),
		/* Its upper bits must not run into the neighbour. */
		.pid = -2,
		.cpu = 0xfedc,
		.flags = RECORD_LATE | RECORD_PROCESS,
	};
}

static void check(const struct place *place, const struct event_view *view)
{
	struct record_header header;

	memcpy(&header, place->bytes, sizeof(header));
	assert_int_equal(header.size, view->size);
	assert_int_equal(header.kind, RECORD_EVENT);
	assert_int_equal(header.flags, view->flags);
	assert_int_equal(header.cpu, view->cpu);
	assert_true(header.time == view->time);
	assert_true(header.trace_id == 0x99aabbccddeeff01);
	assert_int_equal(header.pid, view->pid);
	assert_int_equal(header.payload_size, view->payload_size);
	assert_memory_equal(header.comm, view->comm, sizeof(header.comm));
	assert_memory_equal(place->bytes + sizeof(header), view->payload, view->payload_size);
	for (size_t i = view->size; i < sizeof(place->bytes); i++)
		assert_int_equal(place->bytes[i], FILL);
}

static void test_is_the_same_by_all_stores(void **state)
{
	char comm[RECORD_COMM_SIZE] = "0123456789abcde";
	uint8_t payload[LARGEST];

	(void)state;
	for (uint32_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + 1);
	for (uint32_t size = 0; size <= LARGEST; size++) {
		const struct event_view view = view_of(payload + (LARGEST - size), size, comm);

		for (int past = 0; past < 2; past++) {
			struct place place;

			memset(&place, FILL, sizeof(place));
			event_record_write((struct record_header *)(void *)place.bytes, &view, 0x99aabbccddeeff01, past);
			past_cache_fence();
			check(&place, &view);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_the_same_by_all_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
