/* Preloaded into trace-cmd, which sets up the function tracer before it records anything and gives
 * up where the kernel refuses that: whatever it opens of the function tracer's controls is
 * /dev/null. Events are not the worse for it. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

typedef int open_fn(const char *path, int flags, ...);

static bool is_control(const char *path)
{
	return strstr(path, "/ftrace_enabled") || strstr(path, "/set_ftrace_");
}

static int pass(const char *name, const char *path, int flags, int mode)
{
	void *symbol = dlsym(RTLD_NEXT, name);
	open_fn *real;

	/* ISO C has no conversion from an object's to a function's address. */
	memcpy(&real, &symbol, sizeof(real));
	if (is_control(path))
		return real("/dev/null", flags & ~(O_CREAT | O_EXCL), mode);
	return real(path, flags, mode);
}

#define REPLACE(name)                                                                              \
	int name(const char *path, int flags, ...);                                                \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		va_list more;                                                                      \
		int mode;                                                                          \
                                                                                                   \
		va_start(more, flags);                                                             \
		mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, int) : 0;                      \
		va_end(more);                                                                      \
		return pass(#name, path, flags, mode);                                             \
	}

REPLACE(open)
REPLACE(open64)
