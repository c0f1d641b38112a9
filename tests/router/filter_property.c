/* Random filters on random events: the reference, the compiled program, the program shown and read
 * again, the union of many, the index of many, and the text for the kernel must agree, each in its
 * way. */
#include "tests/router/filter_random.h"
#include "tests/router/filter_reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define BATCHES 250
#define FILTERS 40
#define EVENTS  100
#define UNITED  10 /* of the filters, in the union of many */

_Static_assert(BATCHES *FILTERS *EVENTS >= 1000000, "a million pairs");

struct subject {
	char text[2048];
	struct filter_ast *ast;
	struct filter_program *program, *shown, *kernel, *narrow;
	bool exact;
	char *kernel_text, *narrow_text;
};

struct batch {
	struct random random;
	struct samples samples;
	struct subject subjects[FILTERS];
	struct filter_index *index;
	bool listed[FILTERS]; /* which are in the index */
	struct filter_program *all;
	uint64_t matches, pairs, kernel_exact;
};

static struct filter_program *compile(const struct batch *batch, const char *text, const char *why)
{
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;

	if (filter_parse(text, strlen(text), &ast, &failure))
		fail_msg("%s '%s': %s at %d", why, text, failure.message, failure.position);
	if (filter_compile(ast, batch->samples.schema, NULL, &program, &failure))
		fail_msg("%s '%s': %s at %d", why, text, failure.message, failure.position);
	filter_ast_release(ast);
	return program;
}

static struct filter_program *compile_kernel(const struct batch *batch, const char *text)
{
	return compile(batch, strcmp(text, "0") != 0 ? text : "", "for the kernel");
}

static void make_subject(struct batch *batch, struct subject *subject)
{
	struct random_text text = { .size = 0 };
	struct filter_failure failure;
	char *shown;
	bool exact;

	random_filter(&batch->random, &text, random_below(&batch->random, 4));
	memcpy(subject->text, text.at, text.size + 1);
	assert_int_equal(filter_parse(text.at, text.size, &subject->ast, &failure), 0);
	subject->program = compile(batch, text.at, "filter");
	assert_int_equal(filter_program_show(subject->program, &shown), 0);
	subject->shown = compile(batch, shown, "shown");
	free(shown);
	assert_int_equal(filter_kernel_text(subject->program, FILTER_KERNEL_TEXT_MAX,
				 &subject->kernel_text, &subject->exact),
		0);
	subject->kernel = compile_kernel(batch, subject->kernel_text);
	/* In less room than most need. */
	assert_int_equal(filter_kernel_text(subject->program, 2 + random_below(&batch->random, 100),
				 &subject->narrow_text, &exact),
		0);
	subject->narrow = compile_kernel(batch, subject->narrow_text);
}

/* Puts about two thirds of the filters into the index, some by way of another one or out and in
 * again. */
static void fill_index(struct batch *batch)
{
	assert_int_equal(filter_index_create(random_next(&batch->random), &batch->index), 0);
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < FILTERS; i++) {
			size_t other = random_below(&batch->random, FILTERS);

			switch (random_below(&batch->random, 3)) {
			case 0:
				assert_int_equal(
					filter_index_remove(batch->index, &batch->subjects[i]),
					batch->listed[i] ? 0 : -2);
				batch->listed[i] = false;
				break;
			case 1:
				assert_int_equal(filter_index_set(batch->index, &batch->subjects[i],
							 batch->subjects[other].program),
					0);
				/* fall through */
			default:
				assert_int_equal(filter_index_set(batch->index, &batch->subjects[i],
							 batch->subjects[i].program),
					0);
				batch->listed[i] = true;
			}
		}
	}
}

static void make_batch(struct batch *batch)
{
	const struct filter_program *programs[FILTERS];

	for (size_t i = 0; i < FILTERS; i++) {
		make_subject(batch, &batch->subjects[i]);
		programs[i] = batch->subjects[i].program;
		batch->listed[i] = false;
		batch->kernel_exact += batch->subjects[i].exact;
	}
	fill_index(batch);
	/* One of them twice. */
	programs[UNITED] = programs[0];
	assert_int_equal(filter_union(programs, UNITED + 1, &batch->all), 0);
}

static void drop_batch(struct batch *batch)
{
	for (size_t i = 0; i < FILTERS; i++) {
		filter_ast_release(batch->subjects[i].ast);
		filter_program_release(batch->subjects[i].program);
		filter_program_release(batch->subjects[i].shown);
		filter_program_release(batch->subjects[i].kernel);
		filter_program_release(batch->subjects[i].narrow);
		free(batch->subjects[i].kernel_text);
		free(batch->subjects[i].narrow_text);
	}
	filter_index_release(batch->index);
	filter_program_release(batch->all);
}

/* Everything that the kernel knows is known: then what it lets pass can be compared. */
static bool is_complete(const struct filter_event *event, const struct sample *sample)
{
	return event->size == sample->used && (event->facts & FILTER_CPU) &&
	       (event->facts & FILTER_COMM);
}

static void check_pair(struct batch *batch, struct subject *subject, const struct sample *sample,
	bool wanted, bool found)
{
	const struct filter_event *event = &sample->event;
	size_t i = (size_t)(subject - batch->subjects);

	batch->pairs++;
	batch->matches += wanted;
	if (filter_match(subject->program, event) != wanted)
		fail_msg("'%s' does not do what it says (event %llu)", subject->text,
			(unsigned long long)batch->pairs);
	if (filter_match(subject->shown, event) != wanted)
		fail_msg("'%s' is not what is shown of it", subject->text);
	if (found != (wanted && batch->listed[i]))
		fail_msg("'%s' is another filter in the index", subject->text);
	if (wanted && !filter_match(subject->kernel, event))
		fail_msg("'%s' loses an event by '%s'", subject->text, subject->kernel_text);
	if (wanted && !filter_match(subject->narrow, event))
		fail_msg("'%s' loses an event by '%s'", subject->text, subject->narrow_text);
	if (subject->exact && !wanted && is_complete(event, sample) &&
		filter_match(subject->kernel, event))
		fail_msg("'%s' is more exact than '%s'", subject->text, subject->kernel_text);
}

static void check_event(struct batch *batch, const struct sample *sample)
{
	bool found[FILTERS] = { false }, any = false;
	void *const *users;
	size_t count = filter_index_match(batch->index, &sample->event, &users);
	void *one = NULL;
	enum filter_found known = filter_index_find(batch->index, sample->event.payload, sample->event.size, &one);

	assert_true(known != FILTER_NOBODY || count == 0);
	assert_true(known != FILTER_ONE || (count == 1 && users[0] == one));
	for (size_t i = 0; i < count; i++) {
		size_t which = (size_t)((struct subject *)users[i] - batch->subjects);

		assert_false(found[which]);
		found[which] = true;
	}
	for (size_t i = 0; i < FILTERS; i++) {
		bool wanted = reference_match(
			batch->subjects[i].ast, batch->samples.schema, &sample->event);

		check_pair(batch, &batch->subjects[i], sample, wanted, found[i]);
		any |= wanted && i < UNITED;
	}
	assert_int_equal(filter_match(batch->all, &sample->event), any);
}

/* The same of few, each time other ones. */
static void check_union(struct batch *batch, const struct sample *sample)
{
	const struct filter_program *programs[3];
	struct filter_program *all;
	bool any = false;

	for (size_t i = 0; i < 3; i++) {
		struct filter_program *program =
			batch->subjects[random_below(&batch->random, FILTERS)].program;

		programs[i] = program;
		any |= filter_match(program, &sample->event);
	}
	assert_int_equal(filter_union(programs, 3, &all), 0);
	assert_int_equal(filter_match(all, &sample->event), any);
	filter_program_release(all);
}

static void test_agreement(void **state)
{
	static struct batch batch;
	const char *seed = getenv("TRACEFAN_TEST_SEED");
	static struct sample sample;

	(void)state;
	batch.random.state = seed ? strtoull(seed, NULL, 0) : 1;
	assert_int_equal(samples_create(&batch.samples), 0);
	for (size_t i = 0; i < BATCHES; i++) {
		make_batch(&batch);
		for (size_t j = 0; j < EVENTS; j++) {
			random_event(&batch.random, &batch.samples, &sample);
			check_event(&batch, &sample);
			check_union(&batch, &sample);
		}
		drop_batch(&batch);
	}
	samples_release(&batch.samples);
	print_message("%llu pairs, %llu matches, %llu filters exact in the kernel\n",
		(unsigned long long)batch.pairs, (unsigned long long)batch.matches,
		(unsigned long long)batch.kernel_exact);
	/* Filters that never match, or always, would prove little. */
	assert_in_range(batch.matches, batch.pairs / 10, batch.pairs / 10 * 9);
	assert_in_range(batch.kernel_exact, BATCHES * FILTERS / 10, BATCHES * FILTERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agreement),
	};

	return cmocka_run_group_tests_name("filter_property", tests, NULL, NULL);
}
