/* Which names there are in a folder, by a look at the beginning and by what happened since. */
#ifndef TRACEFAN_WATCH_TREE_H
#define TRACEFAN_WATCH_TREE_H

#include "consumers/watch/table.h"

#include <stdbool.h>

struct tree {
	char *folder;
	struct table nodes;
	uint64_t next;   /* number of the next node */
	bool incomplete; /* there are more names than are kept */
};

enum tree_answer { TREE_NO, TREE_YES, TREE_UNKNOWN };

/* `folder` is as path_resolve leaves it. Nothing is looked at yet. Returns 0 or -ENOMEM. */
int tree_init(struct tree *tree, const char *folder);
void tree_free(struct tree *tree);
/* Looks at the folder as it is now, and forgets what it knew. */
void tree_look(struct tree *tree);
/* From now on what isn't known may be there. */
void tree_forget(struct tree *tree);

/* Paths are in the folder, and as path_resolve leaves them; others are ignored. */
enum tree_answer tree_has(const struct tree *tree, const char *path);
void tree_add(struct tree *tree, const char *path);
void tree_remove(struct tree *tree, const char *path);
/* With all that is in it. From outside it appears, to outside it disappears. */
void tree_move(struct tree *tree, const char *from, const char *to);

#endif
