#include "consumers/watch/watch.h"

#include "consumers/watch/observer.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct observer *const observers[] = {
	&observer_exec,
	&observer_connect,
	&observer_listen,
	&observer_files,
};

#define OBSERVERS (sizeof(observers) / sizeof(observers[0]))

const char *watch_kind_at(size_t i)
{
	return i < OBSERVERS ? observers[i]->name : NULL;
}

static const struct observer *watch_observer(const char *what)
{
	for (size_t i = 0; i < OBSERVERS; i++) {
		if (strcmp(observers[i]->name, what) == 0)
			return observers[i];
	}
	return NULL;
}

/* The file of the C library that this program itself was loaded with, which is most others' here, too. */
static char *watch_library(void)
{
	void *inside = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
	Dl_info info;

	if (!inside || !dladdr(inside, &info) || !info.dli_fname || info.dli_fname[0] != '/')
		return NULL;
	return strdup(info.dli_fname);
}

bool watch_need(const char *what, size_t i, char *place, size_t size)
{
	const struct observer *observer = watch_observer(what);
	const char *need = observer ? observer->needs[i] : NULL;
	char *library, *real;

	if (!need)
		return false;
	if (strcmp(need, "library") != 0) {
		(void)snprintf(place, size, "%s", need);
		return true;
	}
	library = watch_library();
	real = library ? realpath(library, NULL) : NULL;
	(void)snprintf(place, size, "uprobe:%s", real ? real : "*/libc.so.6");
	free(real);
	free(library);
	return true;
}

int watch_open(struct tfan *tfan, const char *what, const char *folder, const struct watch_sink *sink, struct watch **ret,
	int *ret_folder_error)
{
	const struct observer *observer = watch_observer(what);
	struct watch *watch;
	int r;

	if (!observer || observer->of_folder != (folder != NULL))
		return -EINVAL;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	*watch = (struct watch){ .observer = observer, .tfan = tfan, .sink = *sink, .library = watch_library() };
	r = observer->open(watch, folder, ret_folder_error);
	if (r < 0) {
		watch_close(watch);
		return r;
	}
	*ret = watch;
	return 0;
}

void watch_start(struct watch *watch)
{
	if (watch->observer->start)
		watch->observer->start(watch->state);
}

void watch_close(struct watch *watch)
{
	if (!watch)
		return;
	watch->observer->close(watch->state);
	free(watch->library);
	free(watch);
}

void watch_lost(struct watch *watch)
{
	watch->observer->lost(watch->state);
}
