#include "router/text.h"

#include "base/checked.h"
#include "tests/support/guarded.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define NS UINT64_C(1000000000)
#define US UINT64_C(1000)

static struct guarded guarded;

static int make_guarded(void **state)
{
	(void)state;
	guarded_create(&guarded, 4096);
	return 0;
}

static int release_guarded(void **state)
{
	(void)state;
	guarded_release(&guarded);
	return 0;
}

/* One line of each form, and what it says. Where `name` is NULL there is none, and `body` is all. */
static const struct row {
	const char *why, *line;
	const char *comm;
	int32_t pid, tgid;
	uint32_t cpu;
	const char *flags;
	uint64_t time;
	bool ns;
	const char *name, *body;
} rows[] = {
	{ "four flags, pid five wide", "            bash-1977  [000] .... 17284.993652: sys_close <-system_call_fastpath", "bash",
		1977, -1, 0, "....", 17284 * NS + 993652 * US, false, NULL, "sys_close <-system_call_fastpath" },
	{ "no flags", "           <...>-1447  [001] 1038282.286875: myprobe: (do_sys_open+0x0/0xd6) dfd=3", "<...>", 1447, -1, 1,
		"", 1038282 * NS + 286875 * US, false, "myprobe", "(do_sys_open+0x0/0xd6) dfd=3" },
	{ "no flags, of this kernel: two blanks more", "            bash-11161   [000]   1223.625085: x: y=1", "bash", 11161, -1,
		0, "", 1223 * NS + 625085 * US, false, "x", "y=1" },
	{ "five flags, pid seven wide", "          puppet-2904431 [015] ..s.. 850587.248080: ticker_tick: count=41", "puppet",
		2904431, -1, 15, "..s..", 850587 * NS + 248080 * US, false, "ticker_tick", "count=41" },
	{ "junk in the flags, as uprobes leave it", "               p-11163   [001] DBZff  1223.633956: pm: (0x401156)", "p", 11163,
		-1, 1, "DBZff", 1223 * NS + 633956 * US, false, "pm", "(0x401156)" },
	{ "seven flags of PREEMPT_RT", "             cc1-87882   [005] dNLh1..   548.771082: irq_noise: local_timer:236 start", "cc1",
		87882, -1, 5, "dNLh1..", 548 * NS + 771082 * US, false, "irq_noise", "local_timer:236 start" },
	{ "thread group, five wide", "             foo-269   (-----) [006] ....    20.258854: sched_switch: a", "foo", 269, -1, 6,
		"....", 20 * NS + 258854 * US, false, "sched_switch", "a" },
	{ "thread group, known", "  surfaceflinger-598   (  598) [004] .... 10852.771242: tracing_mark_write: B|598|x", "surfaceflinger",
		598, 598, 4, "....", 10852 * NS + 771242 * US, false, "tracing_mark_write", "B|598|x" },
	{ "thread group, seven wide", "            bash-11161   (-------) [000] .....  1223.625085: x: ", "bash", 11161, -1, 0,
		".....", 1223 * NS + 625085 * US, false, "x", "" },
	{ "thread group, no flags", "            bash-11161   (1234567) [000]   1223.625085: x: y", "bash", 11161, 1234567, 0, "",
		1223 * NS + 625085 * US, false, "x", "y" },
	{ "nine digits of time", " big_0-0-5733  [003]   471.412970020: print:                tracing", "big_0-0", 5733, -1, 3, "",
		471 * NS + 412970020, true, "print", "               tracing" },
	{ "a clock that counts", "            bash-1977  [000] .....      81234567: x: y", "bash", 1977, -1, 0, ".....", 81234567, true,
		"x", "y" },
	{ "idle", "          <idle>-0     [003] d.s2.    24.522407: x: y", "<idle>", 0, -1, 3, "d.s2.", 24 * NS + 522407 * US, false,
		"x", "y" },
	{ "pasted, left-aligned", "<idle>-0     [003] ..s1   106.421020: softirq_entry: vec=6 [action=TASKLET]", "<idle>", 0, -1, 3,
		"..s1", 106 * NS + 421020 * US, false, "softirq_entry", "vec=6 [action=TASKLET]" },
	{ "a process's whole name", "com.android.systemui-611   (  611) [001] d..5 514769.086090: sched_wakeup: comm=Binder_5",
		"com.android.systemui", 611, 611, 1, "d..5", 514769 * NS + 86090 * US, false, "sched_wakeup", "comm=Binder_5" },
	{ "two files", "trace-guest.dat:           <idle>-0     [000] 1196830.835997: napi_gro_receive_exit:  ret=3", "<idle>", 0, -1,
		0, "", 1196830 * NS + 835997 * US, false, "napi_gro_receive_exit", " ret=3" },

	{ "latency format: name cut to eight", "kworker/-59      3d..1    1us : add_preempt_count <-_raw_spin_lock_irq", "kworker/",
		59, -1, 3, "d..1", 1 * US, false, NULL, "add_preempt_count <-_raw_spin_lock_irq" },
	{ "latency format: a mark", "      ls-2269    3d..3   21us+: __local_bh_disable <-__do_softirq", "ls", 2269, -1, 3, "d..3",
		21 * US, false, NULL, "__local_bh_disable <-__do_softirq" },
	{ "latency format of this kernel", "    bash-11161     0..... 17112us+: sys_openat -> 0x3", "bash", 11161, -1, 0, ".....",
		17112 * US, false, "sys_openat", "sys_openat -> 0x3" },
	{ "latency format of 2.6.33: lock depth", " <idle>-0       1dN... 4285us!: trace_hardirqs_off_thunk <-x ", "<idle>", 0, -1, 1,
		"dN...", 4285 * US, false, NULL, "trace_hardirqs_off_thunk <-x " },
	{ "trace-cmd report -l", "irq/65-e-1287    0d..2    86.398612: function:             igb_rd32", "irq/65-e", 1287, -1, 0, "d..2",
		86 * NS + 398612 * US, false, "function", "            igb_rd32" },
	{ "two digits of CPU, glued", "  <idle>-0      12d.h4    0us : x: y", "<idle>", 0, -1, 12, "d.h4", 0, false, "x", "y" },

	{ "name: blanks and brackets", "       a b-1 [0]-14772   [001] d..2.  1443.405971: x: y", "a b-1 [0]", 14772, -1, 1, "d..2.",
		1443 * NS + 405971 * US, false, "x", "y" },
	{ "name: most of a prefix", "  a-1 [000] ....-14780   [000] d..2.  1443.406565: x: y", "a-1 [000] ....", 14780, -1, 0, "d..2.",
		1443 * NS + 406565 * US, false, "x", "y" },
	{ "name: prefix of the seven-wide form", " x-9     [000] .-14786   [001] d..2.  1443.407271: x: y", "x-9     [000] .", 14786,
		-1, 1, "d..2.", 1443 * NS + 407271 * US, false, "x", "y" },
	{ "name: a short prefix with a time", " -1 [000] 1.0: a-14786   [001] d..2.  1443.407271: x: y", "-1 [000] 1.0: a", 14786, -1,
		1, "d..2.", 1443 * NS + 407271 * US, false, "x", "y" },
	{ "name: a short prefix of a counting clock", "   -1 [000] 5: x-14786   [001] .....  1443.407271: x: y", "-1 [000] 5: x",
		14786, -1, 1, ".....", 1443 * NS + 407271 * US, false, "x", "y" },
	{ "name: a whole prefix of latency format", " -1 1.... 5us : -14786   [001] .....  1443.407271: x: y", "-1 1.... 5us : ",
		14786, -1, 1, ".....", 1443 * NS + 407271 * US, false, "x", "y" },
	{ "name: colon", "             a:b-14774   [000] .....  1443.406196: x: y", "a:b", 14774, -1, 0, ".....",
		1443 * NS + 406196 * US, false, "x", "y" },
	{ "name: brackets", "             (x)-14775   [001] .....  1443.406763: x: y", "(x)", 14775, -1, 1, ".....",
		1443 * NS + 406763 * US, false, "x", "y" },
	{ "name: a quote", "             q\"x-14779   [000] .....  1443.406478: x: y", "q\"x", 14779, -1, 0, ".....",
		1443 * NS + 406478 * US, false, "x", "y" },
	{ "name: UTF-8", "              \xc3\xbc-14776   [001] .....  1443.406849: x: y", "\xc3\xbc", 14776, -1, 1, ".....",
		1443 * NS + 406849 * US, false, "x", "y" },
	{ "name: a blank behind", "          trail -14782   [001] .....  1443.407013: x: y", "trail ", 14782, -1, 1, ".....",
		1443 * NS + 407013 * US, false, "x", "y" },
	{ "name: none", "                -14783   [001] .....  1443.407101: x: y", "", 14783, -1, 1, ".....", 1443 * NS + 407101 * US,
		false, "x", "y" },
	{ "name: a newline, joined", "             a\nb-14784   [000] .....  1443.406727: x: y", "a\nb", 14784, -1, 0, ".....",
		1443 * NS + 406727 * US, false, "x", "y" },
	{ "name: nothing but a newline, joined", "               \n-14777   [001] .....  1443.406931: x: y", "\n", 14777, -1, 1,
		".....", 1443 * NS + 406931 * US, false, "x", "y" },
	{ "name: like a comment", "              #1-14777   [001] .....  1443.406931: x: y", "#1", 14777, -1, 1, ".....",
		1443 * NS + 406931 * US, false, "x", "y" },
	{ "name: sixteen wide", " exactly15bytes!-14778   [000] .....  1443.406390: x: y", "exactly15bytes!", 14778, -1, 0, ".....",
		1443 * NS + 406390 * US, false, "x", "y" },

	{ "text that holds a prefix", "            bash-1977  [000] ..... 17284.993652: tracing_mark_write: x-5 [001] ..... 1.000000: a: b",
		"bash", 1977, -1, 0, ".....", 17284 * NS + 993652 * US, false, "tracing_mark_write",
		"x-5 [001] ..... 1.000000: a: b" },
	{ "text that begins with a bracket", "         thread0-23345 [003] 115591.560884: tracing_mark_write: [0] starts", "thread0",
		23345, -1, 3, "", 115591 * NS + 560884 * US, false, "tracing_mark_write", "[0] starts" },
	{ "event's name with dots", "  HwBinder:992_1-1009  [000] .... 105922.965294: tracing_mark_write.llvm.8232844412049014381: E|992|",
		"HwBinder:992_1", 1009, -1, 0, "....", 105922 * NS + 965294 * US, false, "tracing_mark_write.llvm.8232844412049014381",
		"E|992|" },
	{ "no event's name at all", "            bash-13364 [002] d... 24573433.052937: : Hello, World!", "bash", 13364, -1, 2, "d...",
		24573433 * NS + 52937 * US, false, NULL, "Hello, World!" },
	{ "hwlat", "           <...>-1729  [001] d...   678.473449: #1     inner/outer(us):   11/12    ts:1.3 count:6", "<...>", 1729,
		-1, 1, "d...", 678 * NS + 473449 * US, false, NULL, "#1     inner/outer(us):   11/12    ts:1.3 count:6" },
	{ "osnoise", "           <...>-859     [000] ....    81.637220: 1000000        190  99.98100       9", "<...>", 859, -1, 0,
		"....", 81 * NS + 637220 * US, false, NULL, "1000000        190  99.98100       9" },
	{ "the wakeup tracer", "  <idle>-0       2d.h4    0us :      0:120:R   + [002]  5882: 94:R sleep", "<idle>", 0, -1, 2, "d.h4", 0,
		false, NULL, "     0:120:R   + [002]  5882: 94:R sleep" },
	{ "the wakeup tracer, five-digit pid", "  <idle>-0       2d.h4    0us : 12345:120:R   + [002]  5882: 94:R x", "<idle>", 0, -1,
		2, "d.h4", 0, false, NULL, "12345:120:R   + [002]  5882: 94:R x" },
	{ "a stack's head", "            sshd-5121  [000] d... 6897275.911309: <stack trace>", "sshd", 5121, -1, 0, "d...",
		6897275 * NS + 911309 * US, false, NULL, "<stack trace>" },
	{ "a system call", "            bash-84700   [000] .... 24913.120041: sys_clone(clone_flags: 1200011, tls: 0)", "bash", 84700, -1,
		0, "....", 24913 * NS + 120041 * US, false, "sys_clone", "sys_clone(clone_flags: 1200011, tls: 0)" },
	{ "a system call's return", "            bash-84700   [000] .... 24913.120152: sys_clone -> 0x16841", "bash", 84700, -1, 0, "....",
		24913 * NS + 120152 * US, false, "sys_clone", "sys_clone -> 0x16841" },
	{ "a blank behind all", "              ip-26697 [000] ....  7489.198729: rdev_x: timeout: -1 ", "ip", 26697, -1, 0, "....",
		7489 * NS + 198729 * US, false, "rdev_x", "timeout: -1 " },
	{ "no text", "              ip-26697 [000] ....  7489.198729: x:", "ip", 26697, -1, 0, "....", 7489 * NS + 198729 * US, false,
		"x", "" },
	{ "no text and no name", "              ip-26697 [000] ....  7489.198729:", "ip", 26697, -1, 0, "....",
		7489 * NS + 198729 * US, false, NULL, "" },
};

static void expect_piece(const struct text_piece *piece, const char *text)
{
	assert_int_equal(piece->size, strlen(text));
	if (piece->size)
		assert_memory_equal(piece->at, text, piece->size);
}

static void parse(const char *text, size_t size, struct text_line *ret)
{
	text_line_parse((const char *)guarded_copy(&guarded, text, size), size, ret);
}

static void events(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		struct text_line line;

		print_message("           %s\n", row->why);
		parse(row->line, strlen(row->line), &line);
		assert_int_equal(line.kind, TEXT_EVENT);
		expect_piece(&line.whole, row->line);
		expect_piece(&line.comm, row->comm);
		assert_int_equal(line.pid, row->pid);
		assert_int_equal(line.tgid, row->tgid);
		assert_int_equal(line.cpu, row->cpu);
		expect_piece(&line.flags, row->flags);
		assert_int_equal(line.time, row->time);
		assert_int_equal(line.time_is_ns, row->ns);
		expect_piece(&line.name, row->name ? row->name : "");
		expect_piece(&line.body, row->body);
	}
}

/* What is no event, and what only looks like one. */
static void other_kinds(void **state)
{
	static const struct {
		const char *line;
		enum text_kind kind;
	} others[] = {
		{ "# tracer: nop", TEXT_COMMENT },
		{ "#", TEXT_COMMENT },
		{ "##### CPU 2 buffer started ####", TEXT_COMMENT },
		{ "#  => started at: schedule", TEXT_COMMENT },
		{ "#    | task: -0 (uid:0 nice:0 policy:0 rt_prio:0)", TEXT_COMMENT },
		{ "version = 6", TEXT_COMMENT },
		{ "CPU 0 is empty", TEXT_COMMENT },
		{ "cpus=8", TEXT_COMMENT },
		{ "      trace.dat: cpus=28", TEXT_COMMENT },
		{ " ------------------------------------------", TEXT_COMMENT },
		{ " => tcp_write_xmit", TEXT_STACK },
		{ "=> trace_hardirqs_on_thunk ", TEXT_STACK },
		{ "  => timerlat_irq", TEXT_STACK },
		{ " => /bin/bash[+0x5f354]", TEXT_STACK },
		{ " =>", TEXT_STACK },
		{ "[LINE TOO BIG]", TEXT_TOO_BIG },
		{ " [LINE TOO BIG]", TEXT_CONTINUATION },
		{ "", TEXT_EMPTY },
		{ " \t ", TEXT_EMPTY },
		{ "\r", TEXT_EMPTY },
		{ "some = 000, other = 0x4", TEXT_CONTINUATION },
		{ "-", TEXT_CONTINUATION },
		{ "-----", TEXT_CONTINUATION },
		{ "bash-", TEXT_CONTINUATION },
		{ "bash-12", TEXT_CONTINUATION },
		{ "bash-12 ", TEXT_CONTINUATION },
		{ "bash-12 [", TEXT_CONTINUATION },
		{ "bash-12 [000", TEXT_CONTINUATION },
		{ "bash-12 [000]", TEXT_CONTINUATION },
		{ "bash-12 [000] ....", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 1", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 1.", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 1.000000", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 1.00000: x: y", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 1.0000000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 1.000000:x: y", TEXT_CONTINUATION },
		{ "bash-12 [000] ... 1.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 [000] ......... 1.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 (12 [000] .... 1.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 () [000] .... 1.000000: x: y", TEXT_CONTINUATION },
		{ "bash-99999999999 [000] .... 1.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 [99999] .... 1.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 99999999999999999999.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 [000] .... 18446744073.000000: x: y", TEXT_CONTINUATION },
		{ "bash-12 0.... 99999999999999999999us : x: y", TEXT_CONTINUATION },
		{ "bash-12 0.... 12us", TEXT_CONTINUATION },
		{ "bash-12 0.... 12us :", TEXT_EVENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct text_line line;

		print_message("           '%s'\n", others[i].line);
		parse(others[i].line, strlen(others[i].line), &line);
		assert_int_equal(line.kind, others[i].kind);
		expect_piece(&line.whole, others[i].line);
	}
}

/* A reader of fields by position takes these for events; the count belongs to the CPU. */
static void lost(void **state)
{
	static const struct {
		const char *line;
		uint32_t cpu;
		uint64_t count;
	} losses[] = {
		{ "CPU:2 [LOST 1020 EVENTS]", 2, 1020 },
		{ "CPU:3 [LOST 1885 EVENTS]", 3, 1885 },
		{ "CPU:0 [LOST EVENTS]", 0, TEXT_COUNT_UNKNOWN },
		{ "  CPU:17 [LOST 1 EVENTS]  ", 17, 1 },
		{ "\tCPU:17\t[LOST\t12\tEVENTS]\t", 17, 12 },
		{ "CPU: 5  [ LOST  7  EVENTS ]", 5, 7 },
		{ "CPU:1 [LOST 18446744073709551614 EVENTS]", 1, UINT64_MAX - 1 },
		{ "CPU:1 [EVENTS DROPPED]", 1, TEXT_COUNT_UNKNOWN },
		{ "CPU:1 [2034 EVENTS DROPPED]", 1, 2034 },
	};
	static const char *const others[] = {
		"CPU:2 [LOST 1020 EVENTS] x",
		"CPU:2 [LOST 1020 EVENTS",
		"CPU:2 [LOST x EVENTS]",
		"CPU:2 [1020 EVENTS]",
		"CPU:x [LOST 1020 EVENTS]",
		"CPU:2 [LOST 99999999999999999999 EVENTS]",
		"CPU:99999 [LOST 1 EVENTS]",
		"xCPU:2 [LOST 1020 EVENTS]",
	};
	struct text_line line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		parse(losses[i].line, strlen(losses[i].line), &line);
		assert_int_equal(line.kind, TEXT_LOST);
		assert_int_equal(line.cpu, losses[i].cpu);
		assert_int_equal(line.lost, losses[i].count);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		parse(others[i], strlen(others[i]), &line);
		assert_int_equal(line.kind, TEXT_CONTINUATION);
	}
}

/* As the format file has it. */
static void event_names(void **state)
{
	static const struct {
		const char *body, *name;
	} cases[] = {
		{ "sched_switch: a", "sched_switch" },
		{ "sys_openat(dfd: 1)", "sys_enter_openat" },
		{ "sys_openat -> 0x3", "sys_exit_openat" },
		{ "sys_enter: NR 1", "sys_enter" },
		{ "sys_enter_openat: __syscall_nr=0x101", "sys_enter_openat" },
		{ "sys_close <-system_call_fastpath", "" },
		{ "sys_(", "" },
		{ ": text", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256], name[64];
		struct text_line line;

		(void)snprintf(text, sizeof(text), "            bash-1977  [000] ..... 17284.993652: %s", cases[i].body);
		parse(text, strlen(text), &line);
		assert_int_equal(text_event_name(&line, name, sizeof(name)), 0);
		assert_string_equal(name, cases[i].name);
		assert_int_equal(text_event_name(&line, name, strlen(name) + 1), 0);
		assert_int_equal(text_event_name(&line, name, strlen(name)), -ENAMETOOLONG);
	}
}

static void graph(void **state)
{
	static const struct {
		const char *line;
		uint32_t cpu;
		const char *body;
	} graphs[] = {
		{ " 3)   0.081 us    |  ktime_get();", 3, "   0.081 us    |  ktime_get();" },
		{ " 2) # 9504.656 us |        } /* schedule */", 2, " # 9504.656 us |        } /* schedule */" },
		{ " 3)  mystery-557   |               |  /* sys_enter: NR 0 (4) */", 3,
			"  mystery-557   |               |  /* sys_enter: NR 0 (4) */" },
		{ "12)    bash-431    =>    <idle>-0   ", 12, "    bash-431    =>    <idle>-0   " },
		{ "  388.102344 |   3)               |  vfs_read() {", 3, "               |  vfs_read() {" },
	};
	struct text_line line;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(graphs); i++) {
		parse(graphs[i].line, strlen(graphs[i].line), &line);
		assert_int_equal(line.kind, TEXT_GRAPH);
		assert_int_equal(line.cpu, graphs[i].cpu);
		expect_piece(&line.body, graphs[i].body);
	}
	parse("3)x", 3, &line);
	assert_int_equal(line.kind, TEXT_CONTINUATION);
}

/* Each row cut at each place reads nothing behind the cut. */
static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		for (size_t size = 0; size < strlen(rows[i].line); size++) {
			struct text_line line;

			parse(rows[i].line, size, &line);
			assert_int_equal(line.whole.size, size);
			if (line.kind == TEXT_EVENT)
				assert_true(line.body.at + line.body.size == line.whole.at + size);
		}
	}
}

/* ---- lines out of a stream ---- */

/* Writes each line in brackets, so that pieces can be told apart. */
struct collected {
	char *text;
	size_t size, room;
	unsigned int stop_at; /* 0: never */
	unsigned int count;
};

static int collect(void *context, const char *line, size_t size)
{
	struct collected *c = context;

	assert_true(c->size + size + 2 <= c->room);
	c->text[c->size++] = '[';
	memcpy(c->text + c->size, line, size);
	c->size += size;
	c->text[c->size++] = ']';
	return ++c->count == c->stop_at ? 7 : 0;
}

static void split_in_pieces(void **state)
{
	static const char stream[] = "one\n\ntwo words\nthree\n\n\nfour";
	static const char expected[] = "[one][][two words][three][][][four]";

	(void)state;
	for (size_t piece = 1; piece <= sizeof(stream); piece++) {
		char text[256];
		struct collected c = { .text = text, .room = sizeof(text) };
		struct text_split split;

		text_split_init(&split);
		for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
			size_t left = sizeof(stream) - 1 - at;
			size_t size = left < piece ? left : piece;
			const uint8_t *bytes = guarded_copy(&guarded, stream + at, size);

			assert_int_equal(text_split_feed(&split, (const char *)bytes, size, collect, &c), 0);
		}
		assert_int_equal(text_split_end(&split, collect, &c), 0);
		assert_int_equal(c.size, sizeof(expected) - 1);
		assert_memory_equal(text, expected, c.size);
		assert_int_equal(text_split_end(&split, collect, &c), 0);
		assert_int_equal(c.size, sizeof(expected) - 1);
		text_split_release(&split);
	}
}

static void split_stops(void **state)
{
	char text[256];
	struct collected c = { .text = text, .room = sizeof(text), .stop_at = 2 };
	struct text_split split;

	(void)state;
	text_split_init(&split);
	assert_int_equal(text_split_feed(&split, "a\nb\nc\n", 6, collect, &c), 7);
	assert_int_equal(c.count, 2);
	text_split_release(&split);
}

/* Lines around the limit, fed whole and in pieces: no byte is lost, and no empty line appears. */
static void split_long_lines(void **state)
{
	static const size_t sizes[] = { TEXT_LINE_MAX - 1, TEXT_LINE_MAX, TEXT_LINE_MAX + 1, 2 * (size_t)TEXT_LINE_MAX,
		2 * (size_t)TEXT_LINE_MAX + 5 };
	static const size_t pieces[] = { 4096, 4095, TEXT_LINE_MAX, 4 * (size_t)TEXT_LINE_MAX };
	const size_t room = 4 * (size_t)TEXT_LINE_MAX;
	char *stream = malloc(room), *text = malloc(room);

	(void)state;
	assert_non_null(stream);
	assert_non_null(text);
	for (size_t i = 0; i < ARRAY_SIZE(sizes) * ARRAY_SIZE(pieces); i++) {
		size_t size = sizes[i / ARRAY_SIZE(pieces)], piece = pieces[i % ARRAY_SIZE(pieces)];
		size_t lines = (size + TEXT_LINE_MAX - 1) / TEXT_LINE_MAX;
		struct collected c = { .text = text, .room = room };
		struct text_split split;

		memset(stream, 'x', size);
		memcpy(stream + size, "\ny\n", 3);
		text_split_init(&split);
		for (size_t at = 0; at < size + 3; at += piece)
			assert_int_equal(text_split_feed(&split, stream + at,
				size + 3 - at < piece ? size + 3 - at : piece, collect, &c), 0);
		assert_int_equal(c.count, lines + 1);
		assert_int_equal(c.size, size + 1 + 2 * (lines + 1));
		assert_memory_equal(text + c.size - 5, "x][y]", 5);
		text_split_release(&split);
	}
	free(stream);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events),
		cmocka_unit_test(other_kinds),
		cmocka_unit_test(lost),
		cmocka_unit_test(event_names),
		cmocka_unit_test(graph),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(split_in_pieces),
		cmocka_unit_test(split_stops),
		cmocka_unit_test(split_long_lines),
	};

	return cmocka_run_group_tests(tests, make_guarded, release_guarded);
}
