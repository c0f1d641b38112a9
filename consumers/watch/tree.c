#include "consumers/watch/tree.h"

#include "consumers/watch/path.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TREE_MOST  (1U << 19)
#define TREE_ROOT  1
#define TREE_DEPTH 128 /* of folders in folders that are looked at */

/* A name in its folder, found by both; to move it moves what is in it. Two that have one hash would be taken for one:
 * 64 bits of half a million names make that one in a hundred million runs. */
struct tree_node {
	struct table_entry entry;
	uint64_t number;
};

static void tree_release(struct table_entry *entry)
{
	free(entry);
}

int tree_init(struct tree *tree, const char *folder)
{
	tree->folder = strdup(folder);
	tree->next = TREE_ROOT + 1;
	if (!tree->folder)
		return -ENOMEM;
	return table_init(&tree->nodes, TREE_MOST, tree_release);
}

void tree_free(struct tree *tree)
{
	table_free(&tree->nodes);
	free(tree->folder);
}

static uint64_t tree_key(uint64_t parent, const char *name, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ (parent * 0x9e3779b97f4a7c15ULL);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ULL;
	hash ^= hash >> 29;
	hash *= 0xbf58476d1ce4e5b9ULL;
	return hash ^ hash >> 32;
}

static uint64_t tree_put(struct tree *tree, uint64_t key, uint64_t number)
{
	struct tree_node *node = tree->nodes.count < TREE_MOST ? calloc(1, sizeof(*node)) : NULL;

	if (!node) {
		tree->incomplete = true;
		return 0;
	}
	node->number = number ? number : tree->next++;
	table_put(&tree->nodes, key, &node->entry);
	return node->number;
}

/* The place of a path: *ret_key is its node's, whether it is there or not. False: the folder itself, or outside, or below
 * what isn't there. With `make`, folders on the way that aren't known are. */
static bool tree_place(struct tree *tree, const char *path, bool make, uint64_t *ret_key)
{
	uint64_t parent = TREE_ROOT;
	const char *at = path + (strcmp(tree->folder, "/") == 0 ? 0 : strlen(tree->folder));

	if (!path_inside(tree->folder, path) || at[0] == '\0' || at[1] == '\0')
		return false;
	for (at++;; at++) {
		size_t size = strcspn(at, "/");
		uint64_t key = tree_key(parent, at, size);
		const struct tree_node *node;

		if (!at[size]) {
			*ret_key = key;
			return true;
		}
		node = (const struct tree_node *)table_find(&tree->nodes, key);
		parent = node ? node->number : make ? tree_put(tree, key, 0) : 0;
		if (parent == 0)
			return false;
		at += size;
	}
}

enum tree_answer tree_has(const struct tree *tree, const char *path)
{
	uint64_t key;

	/* Nothing is made. */
	if (tree_place((struct tree *)tree, path, false, &key) && table_find(&tree->nodes, key))
		return TREE_YES;
	return tree->incomplete ? TREE_UNKNOWN : TREE_NO;
}

void tree_add(struct tree *tree, const char *path)
{
	uint64_t key;

	if (tree_place(tree, path, true, &key) && !table_find(&tree->nodes, key))
		(void)tree_put(tree, key, 0);
}

void tree_remove(struct tree *tree, const char *path)
{
	uint64_t key;

	if (tree_place(tree, path, false, &key))
		table_remove(&tree->nodes, key);
}

static void tree_look_at(struct tree *tree, const char *path, uint64_t number, unsigned int depth);

void tree_move(struct tree *tree, const char *from, const char *to)
{
	const struct tree_node *node;
	uint64_t old, new, number = 0;

	if (tree_place(tree, from, false, &old)) {
		node = (const struct tree_node *)table_find(&tree->nodes, old);
		number = node ? node->number : 0;
		table_remove(&tree->nodes, old);
	}
	if (!tree_place(tree, to, true, &new))
		return;
	table_remove(&tree->nodes, new);
	if (number) {
		(void)tree_put(tree, new, number);
		return;
	}
	/* From outside, with whatever is in it. */
	number = tree_put(tree, new, 0);
	if (number)
		tree_look_at(tree, to, number, 0);
}

static void tree_look_at(struct tree *tree, const char *path, uint64_t number, unsigned int depth)
{
	DIR *folder = depth < TREE_DEPTH ? opendir(path) : NULL;
	const struct dirent *one;

	while (folder && !tree->incomplete && (one = readdir(folder))) {
		uint64_t child;
		char *below;

		if (strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0)
			continue;
		child = tree_put(tree, tree_key(number, one->d_name, strlen(one->d_name)), 0);
		if (one->d_type != DT_DIR || !child || asprintf(&below, "%s/%s", path, one->d_name) < 0)
			continue;
		tree_look_at(tree, below, child, depth + 1);
		free(below);
	}
	if (folder)
		(void)closedir(folder);
}

void tree_forget(struct tree *tree)
{
	table_clear(&tree->nodes);
	tree->incomplete = true;
}

void tree_look(struct tree *tree)
{
	table_clear(&tree->nodes);
	tree->incomplete = false;
	tree_look_at(tree, tree->folder, TREE_ROOT, 0);
}
