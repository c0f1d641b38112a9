#include "router/task_text.h"

#include <stdlib.h>
#include <string.h>

/* Who chooses the texts can make a list long, of as many texts as there may be processes: that costs time at an exec
 * and nothing else. */
static struct task_text **list_of(struct task_texts *texts, const char *bytes, size_t size)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 16777619U;
	return &texts->lists[(hash ^ hash >> 16) % TASK_TEXT_LISTS];
}

static void unlink_text(struct task_text *text)
{
	if (!text->link)
		return;
	*text->link = text->next;
	if (text->next)
		text->next->link = text->link;
	text->next = NULL;
	text->link = NULL;
}

static void link_text(struct task_text **list, struct task_text *text)
{
	text->next = *list;
	text->link = list;
	if (*list)
		(*list)->link = &text->next;
	*list = text;
}

void task_texts_release(struct task_texts *texts)
{
	for (size_t i = 0; i < TASK_TEXT_LISTS; i++) {
		while (texts->lists[i])
			unlink_text(texts->lists[i]);
	}
}

static struct task_text *text_make(const char *bytes, size_t size)
{
	struct task_text *text = malloc(sizeof(*text) + size + 1);

	if (!text)
		return NULL;
	*text = (struct task_text){ .references = 1, .size = (uint32_t)size };
	memcpy(text->bytes, bytes, size);
	text->bytes[size] = '\0';
	return text;
}

struct task_text *task_text_share(struct task_text *text)
{
	if (text)
		text->references++;
	return text;
}

void task_text_drop(struct task_text **text)
{
	if (*text && --(*text)->references == 0) {
		unlink_text(*text);
		free(*text);
	}
	*text = NULL;
}

static int is(const struct task_text *text, const char *bytes, size_t size)
{
	return text->size == size && memcmp(text->bytes, bytes, size) == 0;
}

void task_text_set(struct task_texts *texts, struct task_text **text, const char *bytes, size_t size)
{
	struct task_text **list, *known;

	if (*text && is(*text, bytes, size))
		return;
	task_text_drop(text);
	if (!texts) {
		*text = text_make(bytes, size);
		return;
	}
	list = list_of(texts, bytes, size);
	for (known = *list; known && !is(known, bytes, size);)
		known = known->next;
	*text = known ? task_text_share(known) : text_make(bytes, size);
	if (*text && !known)
		link_text(list, *text);
}
