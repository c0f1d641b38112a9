/* A static probe of a program, whatever its arguments are: they come typed, from the program's own notes.
 *
 * usage: example-usdt FILE PROVIDER:NAME [SESSION]
 * for example /usr/bin/python3.11 python:import__find__load__start, which stands where a distribution's python has its static
 * probes, as Debian's has. `readelf -n FILE` shows which a file has; a program's author puts them there by <sys/sdt.h>. */
#include <tracefan.h>

#include <stdio.h>

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-usdt: %s\n", tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

static void print(const struct tfan_event *event)
{
	const struct tfan_trace *trace = tfan_event_trace(event);
	struct tfan_field field;

	printf("%llu %d %s", (unsigned long long)tfan_event_time(event), tfan_event_pid(event), tfan_trace_name(trace));
	for (size_t i = 0; tfan_field_at(trace, i, &field) == 0; i++) {
		int64_t value;

		if (!field.is_common && tfan_event_i64(event, i, &value) == 0)
			printf(field.is_signed ? " %s=%lld" : " %s=%#llx", field.name, (long long)value);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	struct tfan_options options = TFAN_OPTIONS;
	const struct tfan_event *event;
	struct tfan_trace *trace;
	struct tfan *tfan;
	char probe[8192];
	int rc;

	if (argc < 3)
		return fprintf(stderr, "usage: example-usdt FILE PROVIDER:NAME [SESSION]\n"), 2;
	options.session = argc > 3 ? argv[3] : NULL;
	snprintf(probe, sizeof(probe), "usdt:%s:%s", argv[1], argv[2]);
	if (tfan_open(&options, &tfan) < 0)
		return fail(tfan);
	if (tfan_trace_create(tfan, probe, &trace) < 0 || tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan);
	fprintf(stderr, "example-usdt: tracing\n");
	setlinebuf(stdout);
	for (;;) {
		while ((rc = tfan_next(tfan, &event)) == 1)
			if (tfan_event_kind(event) == TFAN_EVENT)
				print(event);
		if (rc < 0 || tfan_wait(tfan, -1) < 0)
			return fail(tfan);
	}
}
