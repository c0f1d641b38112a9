/* Texts that are kept once, however many have them: most processes of a host run one of a few programs in one of a few
 * cgroups, and those that come are like those that went. Pure but for memory. */
#ifndef TRACEFAN_ROUTER_TASK_TEXT_H
#define TRACEFAN_ROUTER_TASK_TEXT_H

#include <stddef.h>
#include <stdint.h>

#define TASK_TEXT_LISTS 256

/* Never changed. It may outlive the table that it is from. */
struct task_text {
	struct task_text *next, **link; /* of its list; `link` NULL: in none */
	uint32_t references;
	uint32_t size; /* without the NUL behind it */
	char bytes[];
};

struct task_texts {
	struct task_text *lists[TASK_TEXT_LISTS]; /* by hash */
};

/* Those that somebody still has stay good, and are found no more. */
void task_texts_release(struct task_texts *texts);

struct task_text *task_text_share(struct task_text *text);
void task_text_drop(struct task_text **text);
/* Puts the text of these bytes in place of another; without memory it isn't known. `texts` NULL: one of its own. */
void task_text_set(struct task_texts *texts, struct task_text **text, const char *bytes, size_t size);

#endif
