#include "router/text_fields.h"

#include "base/checked.h"
#include "router/catalog.h"
#include "tests/support/common_fields.h"
#include "tests/support/guarded.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/text_show.h"

#define EVENT(name, fields, print) "name: " name "\nID: 300\nformat:\n" COMMON fields "\nprint fmt: " print "\n"

#define FIELD(type, name, offset, size, sign) \
	"\tfield:" type " " name ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #sign ";\n"

/* Format files as kernels write them: 6.18 where nothing else is said. */

static const char sched_switch[] = EVENT("sched_switch",
	FIELD("char", "prev_comm[16]", 8, 16, 0) FIELD("pid_t", "prev_pid", 24, 4, 1) FIELD("int", "prev_prio", 28, 4, 1)
	FIELD("long", "prev_state", 32, 8, 1) FIELD("char", "next_comm[16]", 40, 16, 0)
	FIELD("pid_t", "next_pid", 56, 4, 1) FIELD("int", "next_prio", 60, 4, 1),
	"\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d\", "
	"REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ((((0x00000000 | 0x00000001) + 1) << 1) - 1)) ? "
	"__print_flags(REC->prev_state & ((((0x00000000 | 0x00000001) + 1) << 1) - 1), \"|\", { 0x00000001, \"S\" }, "
	"{ 0x00000002, \"D\" }) : \"R\", REC->prev_state & (((0x00000000 | 0x00000001) + 1) << 1) ? \"+\" : \"\", "
	"REC->next_comm, REC->next_pid, REC->next_prio");

static const char sched_process_fork[] = EVENT("sched_process_fork",
	FIELD("__data_loc char[]", "parent_comm", 8, 4, 0) FIELD("pid_t", "parent_pid", 12, 4, 1)
	FIELD("__data_loc char[]", "child_comm", 16, 4, 0) FIELD("pid_t", "child_pid", 20, 4, 1),
	"\"comm=%s pid=%d child_comm=%s child_pid=%d\", __get_str(parent_comm), REC->parent_pid, "
	"__get_str(child_comm), REC->child_pid");

static const char sched_process_exec[] = EVENT("sched_process_exec",
	FIELD("__data_loc char[]", "filename", 8, 4, 0) FIELD("pid_t", "pid", 12, 4, 1) FIELD("pid_t", "old_pid", 16, 4, 1),
	"\"filename=%s pid=%d old_pid=%d\", __get_str(filename), REC->pid, REC->old_pid");

static const char sched_process_exit[] = EVENT("sched_process_exit",
	FIELD("char", "comm[16]", 8, 16, 0) FIELD("pid_t", "pid", 24, 4, 1) FIELD("int", "prio", 28, 4, 1)
	FIELD("bool", "group_dead", 32, 1, 0),
	"\"comm=%s pid=%d prio=%d group_dead=%s\", REC->comm, REC->pid, REC->prio, REC->group_dead ? \"true\" : \"false\"");

static const char sys_enter_openat[] = EVENT("sys_enter_openat",
	FIELD("int", "__syscall_nr", 8, 4, 1) FIELD("int", "dfd", 16, 8, 0) FIELD("const char *", "filename", 24, 8, 0)
	FIELD("int", "flags", 32, 8, 0) FIELD("umode_t", "mode", 40, 8, 0),
	"\"dfd: 0x%08lx, filename: 0x%08lx, flags: 0x%08lx, mode: 0x%08lx\", ((unsigned long)(REC->dfd)), "
	"((unsigned long)(REC->filename)), ((unsigned long)(REC->flags)), ((unsigned long)(REC->mode))");

/* The form that reads the string, too. */
static const char sys_enter_openat_string[] = EVENT("sys_enter_openat",
	FIELD("int", "__syscall_nr", 8, 4, 1) FIELD("int", "dfd", 16, 8, 0) FIELD("const char *", "filename", 24, 8, 0)
	FIELD("int", "flags", 32, 8, 0) FIELD("umode_t", "mode", 40, 8, 0)
	FIELD("__data_loc char[]", "__filename_val", 48, 4, 0),
	"\"dfd: 0x%08lx, filename: 0x%08lx \\\"%s\\\", flags: 0x%08lx, mode: 0x%08lx\", ((unsigned long)(REC->dfd)), "
	"((unsigned long)(REC->filename)), __get_str(__filename_val), ((unsigned long)(REC->flags)), "
	"((unsigned long)(REC->mode))");

/* 7.x: names of flags; the text's numbers are decimal although the print format says otherwise, and without
 * O_CREAT there is no mode. */
static const char sys_enter_openat_flags[] = EVENT("sys_enter_openat",
	FIELD("int", "__syscall_nr", 8, 4, 1) FIELD("int", "dfd", 16, 8, 0) FIELD("const char *", "filename", 24, 8, 0)
	FIELD("int", "flags", 32, 8, 0) FIELD("umode_t", "mode", 40, 8, 0)
	FIELD("__data_loc char[]", "__filename_val", 48, 4, 0),
	"\"dfd: 0x%08lx, filename: 0x%08lx \\\"%s\\\", flags: %s%s, mode: 0%03o\", ((unsigned long)(REC->dfd)), "
	"((unsigned long)(REC->filename)), __get_str(__filename_val), (REC->flags & ~3) && !(REC->flags & 3) ? "
	"\"O_RDONLY|\" : \"\",  REC->flags ? __print_flags(REC->flags, \"|\", { 0x1, \"O_WRONLY\" }, { 0x2, \"O_RDWR\" }) : "
	"\"O_RDONLY\",  ((unsigned long)(REC->mode))");

static const char sys_enter_write[] = EVENT("sys_enter_write",
	FIELD("int", "__syscall_nr", 8, 4, 1) FIELD("unsigned int", "fd", 16, 8, 0) FIELD("const char *", "buf", 24, 8, 0)
	FIELD("size_t", "count", 32, 8, 0) FIELD("__data_loc char[]", "__buf_val", 40, 4, 0),
	"\"fd: 0x%08lx, buf: 0x%08lx (%s), count: 0x%08lx\", ((unsigned long)(REC->fd)), ((unsigned long)(REC->buf)), "
	"__print_dynamic_array(__buf_val, 1), ((unsigned long)(REC->count))");

static const char sys_exit_openat[] = EVENT("sys_exit_openat",
	FIELD("int", "__syscall_nr", 8, 4, 1) FIELD("long", "ret", 16, 8, 1), "\"0x%lx\", REC->ret");

static const char sys_enter_getpid[] = EVENT("sys_enter_getpid", FIELD("int", "__syscall_nr", 8, 4, 1), "\"\"");

static const char raw_sys_enter[] = EVENT("sys_enter",
	FIELD("long", "id", 8, 8, 1) FIELD("unsigned long", "args[6]", 16, 48, 0),
	"\"NR %ld (%lx, %lx, %lx, %lx, %lx, %lx)\", REC->id, REC->args[0], REC->args[1], REC->args[2], REC->args[3], "
	"REC->args[4], REC->args[5]");

static const char uprobe[] = EVENT("probe",
	FIELD("unsigned long", "__probe_ip", 8, 8, 0) FIELD("__data_loc char[]", "s", 16, 4, 1) FIELD("u64", "u", 20, 8, 0)
	FIELD("u64", "x", 28, 8, 0) FIELD("s32", "n", 36, 4, 1) FIELD("u32", "m", 40, 4, 0) FIELD("u8", "c", 44, 1, 0)
	FIELD("u64", "ua[]", 45, 16, 0) FIELD("__data_loc char[]", "sa[2]", 61, 8, 1) FIELD("s8", "sb[]", 69, 3, 1),
	"\"(%lx) s=\\\"%s\\\" u=%Lu x=0x%Lx n=%d m=0x%x c='%c' ua={0x%Lx,0x%Lx} sa={\\\"%s\\\",\\\"%s\\\"} sb={%d,%d,%d}\", "
	"REC->__probe_ip, __get_str(s), REC->u, REC->x, REC->n, REC->m, REC->c, REC->ua[0], REC->ua[1], __get_str(sa[0]), "
	"__get_str(sa[1]), REC->sb[0], REC->sb[1], REC->sb[2]");

/* Two strings without anything between them that the traced program couldn't write itself. */
static const char two_strings[] = EVENT("probe",
	FIELD("unsigned long", "__probe_ip", 8, 8, 0) FIELD("__data_loc char[]", "a", 16, 4, 1)
	FIELD("__data_loc char[]", "b", 20, 4, 1),
	"\"(%lx) a=\\\"%s\\\" b=\\\"%s\\\"\", REC->__probe_ip, __get_str(a), __get_str(b)");

static const char two_guarded_strings[] = EVENT("probe",
	FIELD("unsigned long", "__probe_ip", 8, 8, 0) FIELD("__data_loc char[]", "a", 16, 4, 1)
	FIELD("u8", TEXT_CANARY "0_k3y", 20, 1, 0) FIELD("__data_loc char[]", "b", 21, 4, 1)
	FIELD("u8", TEXT_CANARY "1_k3y", 25, 1, 0),
	"\"(%lx) a=\\\"%s\\\" " TEXT_CANARY "0_k3y=%u b=\\\"%s\\\" " TEXT_CANARY "1_k3y=%u\", REC->__probe_ip, __get_str(a), "
	"REC->" TEXT_CANARY "0_k3y, __get_str(b), REC->" TEXT_CANARY "1_k3y");

static const char uretprobe[] = EVENT("probe",
	FIELD("unsigned long", "__probe_func", 8, 8, 0) FIELD("unsigned long", "__probe_ret_ip", 16, 8, 0)
	FIELD("s32", "r", 24, 4, 1),
	"\"(%lx <- %lx) r=%d\", REC->__probe_func, REC->__probe_ret_ip, REC->r");

/* Before 4.8 or so: hexadecimal without 0x. */
static const char old_kprobe[] = EVENT("myprobe",
	FIELD("unsigned long", "__probe_ip", 8, 8, 0) FIELD("s32", "dfd", 16, 4, 1) FIELD("u64", "filename", 20, 8, 0),
	"\"(%lx) dfd=%lx filename=%lx\", REC->__probe_ip, REC->dfd, REC->filename");

static const char block_rq_issue[] = EVENT("block_rq_issue",
	FIELD("dev_t", "dev", 8, 4, 0) FIELD("sector_t", "sector", 16, 8, 0) FIELD("unsigned int", "nr_sector", 24, 4, 0)
	FIELD("unsigned int", "bytes", 28, 4, 0) FIELD("char", "rwbs[10]", 32, 10, 0) FIELD("char", "comm[16]", 42, 16, 0)
	FIELD("__data_loc char[]", "cmd", 60, 4, 0),
	"\"%d,%d %s %u (%s) %llu + %u [%s]\", ((unsigned int) ((REC->dev) >> 20)), "
	"((unsigned int) ((REC->dev) & ((1U << 20) - 1))), REC->rwbs, REC->bytes, __get_str(cmd), "
	"(unsigned long long)REC->sector, REC->nr_sector, REC->comm");

static const char widths[] = EVENT("widths",
	FIELD("u8", "a", 8, 1, 0) FIELD("s16", "b", 10, 2, 1) FIELD("u32", "c", 12, 4, 0) FIELD("void *", "d", 16, 8, 0)
	FIELD("char", "e[8]", 24, 8, 0) FIELD("int", "f", 32, 4, 1),
	"\"a=%d b=%3hd c=%d%% d=%p e=%-8s f=%pS\", REC->a, REC->b, REC->c, REC->d, REC->e, (void *)REC->f");

static const char marker[] = EVENT("print", FIELD("unsigned long", "ip", 8, 8, 0) FIELD("char", "buf[]", 16, 0, 0),
	"\"%ps: %s\", (void *)REC->ip, REC->buf");

/* A print format that makes no sense, one that is missing: pairs are read by guess. */
static const char nonsense[] = EVENT("nonsense", FIELD("int", "a", 8, 4, 1) FIELD("char", "s[16]", 12, 16, 0)
	FIELD("char *", "p", 32, 8, 0), "\"%d %d %d\", REC->a");

static const struct row {
	const char *why, *format, *body;
	int result;
	const char *shown;
	bool suspect;
} rows[] = {
	{ "state is printed as a letter", sched_switch,
		"prev_comm=a b-1 [0] prev_pid=14772 prev_prio=120 prev_state=S ==> next_comm=c next_pid=14771 next_prio=120", 0,
		"prev_comm=\"a b-1 [0]\" prev_pid=14772 prev_prio=120 prev_state=- next_comm=\"c\" next_pid=14771 next_prio=120" },
	{ "names that look like fields", sched_switch,
		"prev_comm=a prev_pid=1 prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=x next_pid=9 next_pid=7 next_prio=-5", 0,
		"prev_comm=\"a prev_pid=1\" prev_pid=5 prev_prio=120 prev_state=- next_comm=\"x next_pid=9\" next_pid=7 next_prio=-5" },
	{ "names of blanks and nothing", sched_switch,
		"prev_comm=  prev_pid=5 prev_prio=120 prev_state=R ==> next_comm= next_pid=7 next_prio=0", 0,
		"prev_comm=\" \" prev_pid=5 prev_prio=120 prev_state=- next_comm=\"\" next_pid=7 next_prio=0" },
	{ "a newline in a name", sched_switch,
		"prev_comm=a\nb prev_pid=5 prev_prio=120 prev_state=R ==> next_comm=\n next_pid=7 next_prio=0", 0,
		"prev_comm=\"a\\x0ab\" prev_pid=5 prev_prio=120 prev_state=- next_comm=\"\\x0a\" next_pid=7 next_prio=0" },
	{ "cut in the first name", sched_switch, "prev_comm=a", -EAGAIN,
		"prev_comm=- prev_pid=- prev_prio=- prev_state=- next_comm=- next_pid=- next_prio=-" },
	{ "printed under other names", sched_process_fork, "comm=c pid=14771 child_comm=d child_pid=14787", 0,
		"parent_comm=\"c\" parent_pid=14771 child_comm=\"d\" child_pid=14787" },
	{ "two readings", sched_process_fork, "comm=c pid=1 child_comm=d pid=2 child_comm=e child_pid=3", 0,
		"parent_comm=\"c pid=1 child_comm=d\" parent_pid=2 child_comm=\"e\" child_pid=3", true },
	{ "a path of this", sched_process_exec, "filename=c:/Program Files/x \"y\" = \\ pid=1 old_pid=1 pid=7 old_pid=8", 0,
		"filename=\"c:/Program Files/x \"y\" = \\ pid=1 old_pid=1\" pid=7 old_pid=8" },
	{ "a path with a forged event", sched_process_exec,
		"filename=/tmp/a\n  evil-1 [000] ..... 1.000000: sched_process_exec: filename=/bin/x pid=7 old_pid=8", 0,
		"filename=\"/tmp/a\\x0a  evil-1 [000] ..... 1.000000: sched_process_exec: filename=/bin/x\" pid=7 old_pid=8" },
	{ "a truth", sched_process_exit, "comm=x-123 pid=14773 prio=120 group_dead=true", 0,
		"comm=\"x-123\" pid=14773 prio=120 group_dead=1" },
	{ "a falsehood", sched_process_exit, "comm=x pid=1 prio=0 group_dead=false", 0,
		"comm=\"x\" pid=1 prio=0 group_dead=0" },
	{ "a longer log's field", sched_process_exit, "comm=x pid=1 prio=0", -EAGAIN, "comm=- pid=- prio=- group_dead=-" },

	{ "a system call", sys_enter_openat, "sys_openat(dfd: 0xffffff9c, filename: 0x564aea74f07b, flags: 0x241, mode: 0)", 0,
		"__syscall_nr=- dfd=4294967196 filename=94879761100923 flags=577 mode=0" },
	{ "without 0x", sys_enter_openat, "sys_openat(dfd: ffffff9c, filename: 564aea74f07b, flags: 80000, mode: 1b6)", 0,
		"__syscall_nr=- dfd=4294967196 filename=94879761100923 flags=524288 mode=438" },
	{ "with types (option verbose)", sys_enter_openat,
		"sys_openat(int dfd: 0xffffff9c, const char * filename: 0x10, int flags: 0x241, umode_t mode: 0x1b6)", 0,
		"__syscall_nr=- dfd=4294967196 filename=16 flags=577 mode=438" },
	{ "option fields", sys_enter_openat, "__syscall_nr=0x101 (257) dfd=0xffffff9c (4294967196) filename=(0xffff8881) flags=0x0 (0)",
		0, "__syscall_nr=257 dfd=4294967196 filename=- flags=0 mode=-" },
	{ "with the string", sys_enter_openat_string,
		"sys_openat(dfd: 0xffffff9c, filename: 0x564a \"/etc/h\", flags: \"osts\", flags: 0x241, mode: 0)", 0,
		"__syscall_nr=- dfd=4294967196 filename=22090 flags=577 mode=0 __filename_val=\"/etc/h\", flags: \"osts\"" },
	{ "with names of flags", sys_enter_openat_flags,
		"sys_openat(dfd: 4294967196, filename: 140733205663569 \"/tmp/f\", flags: O_WRONLY|O_CREAT|O_TRUNC, mode: 0666)", 0,
		"__syscall_nr=- dfd=4294967196 filename=140733205663569 flags=- mode=438 __filename_val=\"/tmp/f\"" },
	{ "without a mode", sys_enter_openat_flags, "sys_openat(dfd: 5, filename: 10 \"x\", flags: O_RDONLY\", flags: O_RDONLY)", 0,
		"__syscall_nr=- dfd=5 filename=10 flags=- mode=- __filename_val=\"x\", flags: O_RDONLY\"", true },
	{ "in a form not known yet", sys_enter_openat_flags, "sys_openat(dfd: 10, filename: 0x10 'x', flags: 3)", 0,
		"__syscall_nr=- dfd=- filename=16 flags=3 mode=- __filename_val=-" },
	{ "with a buffer", sys_enter_write, "sys_write(fd: 1, buf: 0x390f83e0 (22:29) \"\")\", count: 2\", count: 0x10)", 0,
		"__syscall_nr=- fd=1 buf=957318112 count=16 __buf_val=-" },
	{ "a return", sys_exit_openat, "sys_openat -> 0x3", 0, "__syscall_nr=- ret=3" },
	{ "a negative return", sys_exit_openat, "sys_openat -> 0xfffffffffffffffe", 0, "__syscall_nr=- ret=-2" },
	{ "no arguments", sys_enter_getpid, "sys_getpid()", 0, "__syscall_nr=-" },
	{ "an array in hex", raw_sys_enter, "NR 257 (ffffff9c, 7f0, 80000, 0, 1, ffffffffffffffff)", 0,
		"id=257 args=ffffff9c,7f0,80000,0,1,ffffffffffffffff," },
	{ "an array too short", raw_sys_enter, "NR 257 (ffffff9c, 7f0)", -EBADMSG, "id=- args=-" },

	{ "a probe of all types", uprobe,
		"(0x401156) s=\"hello\" u=9223372036854775808 x=0x8000000000000000 n=-5 m=0xfffffffb c='A' ua={0x402051,0x402055} "
		"sa={\"one\",\"t\"wo\"} sb={-1,0,127}", 0,
		"__probe_ip=4198742 s=\"hello\" u=9223372036854775808 x=9223372036854775808 n=-5 m=4294967291 c=65 "
		"ua=402051,402055, sa[0]=\"one\" sa[1]=\"t\"wo\" sb=ffffffffffffffff,0,7f," },
	{ "hex without 0x, a symbol", uprobe,
		"(main+0x0/0x10 [m]) s=\"\" u=0 x=8000000000000000 n=0 m=fffffffb c='\n' ua={402051,402055} sa={\"\",\"\"} sb={0,0,0}", 0,
		"__probe_ip=- s=\"\" u=0 x=9223372036854775808 n=0 m=4294967291 c=10 ua=402051,402055, sa[0]=\"\" sa[1]=\"\" sb=0,0,0," },
	{ "strings that can't be read", uprobe,
		"(0x401156) s=(fault) u=1 x=0x1 n=1 m=0x1 c=' ' ua={0x0,0x0} sa={\"one\",(fault)} sb={0,0,0}", 0,
		"__probe_ip=4198742 s=- u=1 x=1 n=1 m=1 c=32 ua=0,0, sa[0]=\"one\" sa[1]=- sb=0,0,0," },
	{ "a string that says (fault)", uprobe,
		"(0x401156) s=\"(fault)\" u=1 x=0x1 n=1 m=0x1 c='\"' ua={0x0,0x0} sa={\"(fault)\",\"\"\"} sb={0,0,0}", 0,
		"__probe_ip=4198742 s=\"(fault)\" u=1 x=1 n=1 m=1 c=34 ua=0,0, sa[0]=\"(fault)\" sa[1]=\"\"\" sb=0,0,0," },
	{ "a string like fields", uprobe,
		"(0x401156) s=\"x\" u=1 x=0x2 n=3 s=\"y\" u=5 x=0x5 n=-1 m=0x1 c='a' ua={0x0,0x0} sa={\"\",\"\"} sb={0,0,0}", 0,
		"__probe_ip=4198742 s=\"x\" u=1 x=0x2 n=3 s=\"y\" u=5 x=5 n=-1 m=1 c=97 ua=0,0, sa[0]=\"\" sa[1]=\"\" sb=0,0,0," },
	{ "quotes that close nothing", uprobe,
		"(0x401156) s=\"\"\"\" u=5 x=0x5 n=-1 m=0x1 c='a' ua={0x0,0x0} sa={\"\",\"\",\"\"} sb={0,0,0} ", 0,
		"__probe_ip=4198742 s=\"\"\"\" u=5 x=5 n=-1 m=1 c=97 ua=0,0, sa[0]=\"\",\"\" sa[1]=\"\" sb=0,0,0,", true },
	{ "open in the first string", uprobe, "(0x401156) s=\"x\" u=1 x=0x2", -EAGAIN,
		"__probe_ip=- s=- u=- x=- n=- m=- c=- ua=- sa[0]=- sa[1]=- sb=-" },

	{ "plain strings", two_strings, "(0x401156) a=\"x\" b=\"y\"", 0, "__probe_ip=4198742 a=\"x\" b=\"y\"" },
	{ "a field's name in the string", two_strings, "(0x401156) a=\"x\" b=\"y\" b=\"z\"", 0,
		"__probe_ip=4198742 a=\"x\" b=\"y\" b=\"z\"", true },
	{ "a newline in the last", two_strings, "(0x401156) a=\"x\" b=\"y\n", -EAGAIN, "__probe_ip=- a=- b=-" },
	{ "unread among others", two_strings, "(0x401156) a=(fault) b=\"y\"", 0, "__probe_ip=4198742 a=- b=\"y\"" },
	{ "both unread", two_strings, "(0x401156) a=(fault) b=(fault)", 0, "__probe_ip=4198742 a=- b=-" },
	{ "blanks behind", two_strings, "(0x401156) a=\"x\" b=\"y\" ", 0, "__probe_ip=4198742 a=\"x\" b=\"y\"" },
	{ "canaries: one reading", two_guarded_strings,
		"(0x401156) a=\"x\" " TEXT_CANARY "0_guess=0 b=\"y\" " TEXT_CANARY "0_k3y=0 b=\"z\" " TEXT_CANARY "1_k3y=0", 0,
		"__probe_ip=4198742 a=\"x\" " TEXT_CANARY "0_guess=0 b=\"y\" " TEXT_CANARY "0_k3y=0 b=\"z\" " TEXT_CANARY "1_k3y=0" },
	{ "canaries: the end is missing", two_guarded_strings, "(0x401156) a=\"x\" " TEXT_CANARY "0_k3y=0 b=\"y\"", -EAGAIN,
		"__probe_ip=- a=- " TEXT_CANARY "0_k3y=- b=- " TEXT_CANARY "1_k3y=-" },
	{ "a return: the function stands last", uretprobe, "(0x4012d6 <- 0x401156) r=-6", 0,
		"__probe_func=4198742 __probe_ret_ip=4199126 r=-6" },
	{ "a return between symbols", uretprobe, "(sys_openat+0xc/0xe <- do_sys_open) r=3", 0,
		"__probe_func=- __probe_ret_ip=- r=3" },
	{ "an old kernel's hex", old_kprobe, "(do_sys_open+0x0/0xd6) dfd=ffffff9c filename=40413c", 0,
		"__probe_ip=- dfd=-100 filename=4211004" },
	{ "an old kernel's 64 bits of sign", old_kprobe, "(c0) dfd=ffffffffffffff9c filename=0", 0,
		"__probe_ip=192 dfd=-100 filename=0" },

	{ "brackets and blanks", block_rq_issue, "202,1 W 0 () 12862464 + 8 [super [x] + 1]", 0,
		"dev=- sector=12862464 nr_sector=8 bytes=0 rwbs=\"W\" comm=\"super [x] + 1\" cmd=\"\"" },
	{ "numbers of all widths", widths, "a=200 b= -5 c=-1% d=00000000deadbeef e=ab       f=f+0x1/0x2", 0,
		"a=200 b=-5 c=4294967295 d=- e=- f=-" },
	{ "a number too large", widths, "a=99999999999999999999 b=1 c=1% d=0 e=x f=0", 0, "a=- b=1 c=- d=0 e=\"x\" f=0" },
	{ "a marker", marker, "any text=5: at all", 0, "ip=- buf=\"any text=5: at all\"" },
	{ "an empty marker", marker, "", 0, "ip=- buf=\"\"" },

	{ "pairs: values with blanks", nonsense, "a=-3 s=Web Content p=ff", 0, "a=-3 s=\"Web Content\" p=255" },
	{ "pairs: commas and colons", nonsense, "nvme0: a: 0x10, s: x, p: 0xff", 0, "a=16 s=\"x\" p=255" },
	{ "pairs: quotes", nonsense, "(0x1) s=\"x, a=9 \" a=7", 0, "a=7 s=\"x, a=9 \" p=-" },
	{ "pairs: a name twice", nonsense, "a=1 s=x a=2", 0, "a=1 s=\"x\" p=-", true },
	{ "pairs: a symbol is no number", nonsense, "a=R+ s= p=f+0x1", 0, "a=- s=\"\" p=-" },
	{ "pairs: unread", nonsense, "a=(fault) s=(fault)", -EBADMSG, "a=- s=- p=-" },
	{ "no pairs", nonsense, "nothing = here ==> a==5", -EBADMSG, "a=- s=- p=-" },
	{ "nothing", nonsense, "", -EBADMSG, "a=- s=- p=-" },
};

static struct guarded text_guard, payload_guard;

static int make_guarded(void **state)
{
	(void)state;
	guarded_create(&text_guard, 4096);
	guarded_create(&payload_guard, 1 << 17);
	return 0;
}

static int release_guarded(void **state)
{
	(void)state;
	guarded_release(&text_guard);
	guarded_release(&payload_guard);
	return 0;
}

/* An event's text schema. */
struct made {
	struct catalog *catalog;
	void *bytes;
	struct schema schema;
};

static void make(struct made *made, const char *format)
{
	struct catalog_event *event;
	const char *reason = "";
	size_t size;

	assert_int_equal(catalog_create(false, 8, &made->catalog), 0);
	assert_int_equal(catalog_add(made->catalog, "system", format, strlen(format), &event, &reason), 0);
	assert_int_equal(text_schema_make(&event->schema, "system", event->name, &made->bytes, &size), 0);
	assert_int_equal(schema_view(made->bytes, size, &made->schema), 0);
	assert_true(made->schema.header->flags & SCHEMA_TEXT);
	assert_string_equal(schema_string(&made->schema, made->schema.header->system), "system");
	assert_string_equal(schema_string(&made->schema, made->schema.header->event), event->name);
	assert_int_equal(made->schema.header->event_type, 300);
}

static void release(struct made *made)
{
	free(made->bytes);
	catalog_release(made->catalog);
}

/* Encodes into exactly `room` bytes before untouchable memory. Returns the payload. */
static const uint8_t *encode(const struct made *made, const char *body, size_t size, size_t room, int *ret,
	size_t *ret_size, bool *ret_suspect)
{
	const struct text_piece piece = { (const char *)guarded_copy(&text_guard, body, size), size };
	uint8_t *payload = payload_guard.map + GUARDED_PAGE + payload_guard.room - room;

	memset(payload, 0xa5, room);
	*ret = text_fields_encode(&made->schema, &piece, payload, room, ret_size, ret_suspect);
	return payload;
}

static void expect_text(const struct made *made, const uint8_t *payload, size_t size, const char *body)
{
	const struct schema_field *text = &made->schema.fields[made->schema.header->field_count - 1];
	const uint8_t *bytes;
	size_t length;

	assert_string_equal(schema_string(&made->schema, text->name), "text");
	assert_int_equal(schema_read_bytes(&made->schema, text, payload, size, &bytes, &length), 0);
	assert_int_equal(length, strlen(body));
	assert_memory_equal(bytes, body, length);
}

static void bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		const uint8_t *payload;
		struct text_show show;
		struct made made;
		size_t size = 0;
		bool suspect = true;
		int r;

		print_message("           %s\n", row->why);
		make(&made, row->format);
		payload = encode(&made, row->body, strlen(row->body), 2048, &r, &size, &suspect);
		assert_int_equal(r, row->result);
		assert_string_equal(text_show(&show, &made.schema, payload, size), row->shown);
		assert_int_equal(suspect, row->suspect);
		expect_text(&made, payload, size, row->body);
		release(&made);
	}
}

/* Every body cut at every place, in every room: nothing is read or written outside, and the text is whole
 * wherever it was said to be. */
static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made made;

		make(&made, rows[i].format);
		for (size_t cut = 0; cut <= strlen(rows[i].body); cut++) {
			size_t size = 0;
			bool suspect;
			int r;

			(void)encode(&made, rows[i].body, cut, 2048, &r, &size, &suspect);
			assert_true(r == 0 || r == -EBADMSG || r == -EAGAIN);
		}
		for (size_t room = 0; room < 512; room++) {
			const uint8_t *payload;
			size_t size = 0;
			bool suspect;
			int r;

			payload = encode(&made, rows[i].body, strlen(rows[i].body), room, &r, &size, &suspect);
			if (r == -ENOSPC) {
				assert_int_equal(size, 0);
				continue;
			}
			assert_int_equal(r, rows[i].result);
			assert_true(size <= room);
			expect_text(&made, payload, size, rows[i].body);
		}
		release(&made);
	}
}

/* Offsets have 16 bits: a text that they can't reach is refused, not cut. */
static void longest_text(void **state)
{
	static char body[70000];
	struct text_piece piece = { body, 0 };
	struct made made;
	uint8_t *payload = malloc(1 << 17);
	size_t size = 0, most;
	bool suspect;

	(void)state;
	assert_non_null(payload);
	make(&made, marker);
	memset(body, 'x', sizeof(body));
	most = 65535 - made.schema.header->fixed_size;
	piece.size = most;
	assert_int_equal(text_fields_encode(&made.schema, &piece, payload, 1 << 17, &size, &suspect), 0);
	assert_int_equal(size, 65535);
	piece.size = most + 1;
	assert_int_equal(text_fields_encode(&made.schema, &piece, payload, 1 << 17, &size, &suspect), -ENOSPC);
	free(payload);
	release(&made);
}

static void no_format_file(void **state)
{
	static const struct text_piece body = { "n=1", 3 };
	struct schema schema;
	struct text_show show;
	uint8_t payload[256] = { 0 };
	void *bytes;
	size_t size;
	bool suspect;

	(void)state;
	assert_int_equal(text_schema_make(NULL, "a", "b", &bytes, &size), 0);
	assert_int_equal(schema_view(bytes, size, &schema), 0);
	assert_int_equal(schema.header->field_count, 1);
	assert_int_equal(text_fields_encode(&schema, &body, payload, sizeof(payload), &size, &suspect), 0);
	assert_string_equal(text_show(&show, &schema, payload, size), "");
	assert_false(text_schema_is_guarded(&schema));
	free(bytes);
}

/* An event of a log, of which there is no format file. */
static void inferred(void **state)
{
	static const struct {
		const char *first, *line, *shown;
	} cases[] = {
		{ "comm=Web Content pid=5 prio=-1 flags=0x10", "comm=x pid=-7 prio=2 flags=0xffffffffffffffff",
			"comm=\"x\" pid=-7 prio=2 flags=18446744073709551615" },
		{ "prev_comm=a prev_pid=1 prev_state=R+ ==> next_comm=b next_pid=2",
			"prev_comm=b prev_pid=2 prev_state=S ==> next_comm=c d next_pid=3",
			"prev_comm=\"b\" prev_pid=2 prev_state=\"S\" next_comm=\"c d\" next_pid=3" },
		{ "nvme0: disk=nvme0n1, qid=2, res=0x0", "nvme0: disk=nvme1n1, qid=x, res=0x1", "nvme0=\"\" disk=\"nvme1n1\" qid=- res=1" },
		{ "(0x1) s=\"a b\" n=1", "(0x1) s=\"c=1 d\" n=2", "s=\"c=1 d\" n=2" },
		{ "n=18446744073709551615 m=-9223372036854775808", "n=1 m=1", "n=\"1\" m=1" },
		{ "text=1 a=1 a=2", "a=3", "a=3" },
		{ "no pairs", "at all", "" },
		{ "", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct text_piece first = { cases[i].first, strlen(cases[i].first) };
		const struct text_piece line = { cases[i].line, strlen(cases[i].line) };
		struct text_show show;
		struct schema schema;
		uint8_t payload[1024];
		size_t size;
		void *bytes;
		bool suspect;
		int r;

		assert_int_equal(text_schema_infer(&first, "", "event", &bytes, &size), 0);
		assert_int_equal(schema_view(bytes, size, &schema), 0);
		r = text_fields_encode(&schema, &line, payload, sizeof(payload), &size, &suspect);
		assert_true(r == 0 || (r == -EBADMSG && schema.header->field_count == 1));
		assert_string_equal(text_show(&show, &schema, payload, size), cases[i].shown);
		assert_false(text_schema_is_guarded(&schema));
		free(bytes);
	}
}

/* A schema that is none of these, or whose template somebody else wrote. */
static void foreign_schemas(void **state)
{
	static const struct text_piece body = { "filename=x pid=1 old_pid=2", 26 };
	static const char *const prints[] = { "", "s44", "s44t", "s44t ", "s44t %", "s44t %%", "s44t %s", "s44t %s9/9;",
		"s44t %d0/0;", "s44t filename=%s0/0;%s1/0;", "s44t filename=%s0/0; pid=%x3/4.9;", "s44t %d1/4;%d2/4;",
		"s44t %z0/0;", "s44t filename=%s4294967296/0; ", "nnnt %d0/4.0;", "tttt filename=%s0/0; " };
	struct made made;

	(void)state;
	make(&made, sched_process_exec);
	for (size_t i = 0; i < ARRAY_SIZE(prints); i++) {
		struct schema_builder builder;
		struct schema schema;
		uint8_t payload[512];
		size_t size;
		void *bytes;
		bool suspect;
		int r;

		schema_builder_init(&builder);
		builder.header.flags = SCHEMA_TEXT;
		for (uint32_t f = 0; f < made.schema.header->field_count; f++)
			assert_int_equal(schema_builder_field(&builder, &(struct schema_field){
				.offset = 8 + 8 * f, .size = 4, .kind = SCHEMA_BYTES, .element_size = 1,
				.place = SCHEMA_DATA_LOC }), f);
		builder.header.fixed_size = 8 + 8 * made.schema.header->field_count;
		builder.header.print_format = (uint32_t)schema_builder_string(&builder, prints[i]);
		assert_int_equal(schema_builder_finish(&builder, &bytes, &size), 0);
		assert_int_equal(schema_view(bytes, size, &schema), 0);
		r = text_fields_encode(&schema, &body, payload, sizeof(payload), &size, &suspect);
		assert_true(r <= 0);
		assert_int_equal(r == -EINVAL, strlen(prints[i]) < 4);
		(void)text_schema_is_guarded(&schema);
		free(bytes);
		schema_builder_release(&builder);
	}
	release(&made);
}

static void guarded_kinds(void **state)
{
	static const struct {
		const char *format;
		bool guarded;
	} kinds[] = {
		{ sched_switch, true },     { sched_process_exit, true }, { sys_enter_openat, true },
		{ sys_exit_openat, true },  { uretprobe, true },          { two_guarded_strings, true },
		{ sched_process_exec, false }, { sched_process_fork, false }, { two_strings, false },
		{ uprobe, false },          { marker, false },            { nonsense, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct made made;

		make(&made, kinds[i].format);
		assert_int_equal(text_schema_is_guarded(&made.schema), kinds[i].guarded);
		release(&made);
	}
}

static void canaries_are_hidden(void **state)
{
	struct made made;

	(void)state;
	make(&made, two_guarded_strings);
	for (uint32_t i = 0; i < made.schema.header->field_count; i++) {
		const struct schema_field *field = &made.schema.fields[i];
		bool canary = strncmp(schema_string(&made.schema, field->name), TEXT_CANARY, strlen(TEXT_CANARY)) == 0;

		assert_int_equal(!!(field->flags & SCHEMA_HIDDEN), canary);
	}
	release(&made);
}

/* Time must not grow with the square of what a program puts into its strings. */
static void hostile_strings(void **state)
{
	static const char unit[] = "\" b=\"";
	const size_t units = 60000 / (sizeof(unit) - 1);
	char *body = malloc(66000), *at = body;
	uint8_t *payload = malloc(1 << 17);
	struct text_piece piece;
	struct made made;
	size_t size;
	bool suspect;

	(void)state;
	assert_non_null(body);
	assert_non_null(payload);
	make(&made, two_strings);
	at += sprintf(at, "(0x1) a=\"");
	for (size_t i = 0; i < units; i++) {
		memcpy(at, unit, sizeof(unit) - 1);
		at += sizeof(unit) - 1;
	}
	*at++ = '"';
	piece = (struct text_piece){ body, (size_t)(at - body) };
	for (int i = 0; i < 100; i++) {
		assert_int_equal(text_fields_encode(&made.schema, &piece, payload, 1 << 17, &size, &suspect), 0);
		assert_true(suspect);
	}
	free(body);
	free(payload);
	release(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(longest_text),
		cmocka_unit_test(no_format_file),
		cmocka_unit_test(inferred),
		cmocka_unit_test(foreign_schemas),
		cmocka_unit_test(guarded_kinds),
		cmocka_unit_test(canaries_are_hidden),
		cmocka_unit_test(hostile_strings),
	};

	return cmocka_run_group_tests(tests, make_guarded, release_guarded);
}
