/* Filters before the language is there: only the empty one, which accepts everything. The file goes when
 * the modules that router/filter.h announces come. */
#include "router/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int filter_parse(const char *text, size_t size, struct filter_ast **ret, struct filter_failure *ret_failure)
{
	(void)text;
	(void)size;
	(void)ret;
	ret_failure->position = 0;
	(void)snprintf(ret_failure->message, sizeof(ret_failure->message), "this version has no filters");
	ret_failure->near[0] = '\0';
	return -EINVAL;
}

void filter_ast_release(struct filter_ast *ast)
{
	(void)ast;
}

int filter_compile(const struct filter_ast *ast, const struct schema *schema, const struct filter_environment *environment,
	struct filter_program **ret, struct filter_failure *ret_failure)
{
	(void)ast;
	(void)schema;
	(void)environment;
	(void)ret;
	(void)ret_failure;
	return -EINVAL;
}

void filter_program_release(struct filter_program *program)
{
	(void)program;
}

bool filter_match(const struct filter_program *program, const struct filter_event *event)
{
	(void)program;
	(void)event;
	return true;
}

int filter_union(const struct filter_program *const *programs, size_t count, struct filter_program **ret)
{
	(void)programs;
	(void)count;
	(void)ret;
	return -ENOMEM;
}

int filter_kernel_text(const struct filter_program *program, size_t room, char **ret_text, bool *ret_exact)
{
	(void)program;
	(void)room;
	*ret_exact = false;
	*ret_text = strdup("0");
	return *ret_text ? 0 : -ENOMEM;
}

int filter_index_create(struct filter_index **ret)
{
	(void)ret;
	return -ENOMEM;
}

void filter_index_release(struct filter_index *index)
{
	(void)index;
}

int filter_index_set(struct filter_index *index, void *user, const struct filter_program *program)
{
	(void)index;
	(void)user;
	(void)program;
	return -ENOMEM;
}

int filter_index_remove(struct filter_index *index, const void *user)
{
	(void)index;
	(void)user;
	return -ENOENT;
}

size_t filter_index_count(const struct filter_index *index)
{
	(void)index;
	return 0;
}

size_t filter_index_match(struct filter_index *index, const struct filter_event *event, void *const **ret_users)
{
	(void)index;
	(void)event;
	(void)ret_users;
	return 0;
}
