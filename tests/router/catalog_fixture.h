/* What the tests of the catalog share: formats as the kernel writes them, and a catalog that has taken them. */
#ifndef TRACEFAN_TESTS_ROUTER_CATALOG_FIXTURE_H
#define TRACEFAN_TESTS_ROUTER_CATALOG_FIXTURE_H

#include "router/catalog.h"

#include "tests/support/common_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define COMMON_FIELDS 4

#define ONE_FIELD(type) "\tfield:" type " a;\toffset:8;\tsize:4;\tsigned:0;\n"

#define EVENT(name, id, fields, print) \
	"name: " name "\nID: " #id "\nformat:\n" COMMON fields "\nprint fmt: " print "\n"

static inline struct catalog *catalog_of(bool big_endian, unsigned int long_size)
{
	struct catalog *catalog = NULL;

	assert_int_equal(catalog_create(big_endian, long_size, &catalog), 0);
	return catalog;
}

/* Adds a format that must be good. */
static inline struct catalog_event *add(struct catalog *catalog, const char *system, const char *text)
{
	struct catalog_event *event = NULL;
	const char *reason = "none";
	int r = catalog_add(catalog, system, text, strlen(text), &event, &reason);

	if (r)
		fail_msg("%s: %d: %s", text, r, reason);
	return event;
}

#endif
