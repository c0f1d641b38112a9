/* bench_producer CALLS PROCESSES [--period NS] [--pin] [--numbers N] [--active N --turn CALLS]: the
 * work that is traced.
 *
 * Makes PROCESSES processes and prints their ids in a line; when a line comes on standard input,
 * each makes CALLS calls of getppid, one per period or one after the other. With --numbers they are
 * calls of getpgid, of the numbers from BENCH_NUMBER on in turn, N of them: processes that don't
 * exist. With --active only so many processes work at a time, each for --turn calls until it is the
 * turn of whoever has waited longest. At the end a line for each with the nanoseconds that a call
 * took on the clock, turns of others not counted, and of its processor time.
 *
 * Its function bench_sled, which nobody calls, is a place for many probes: one at every fourth
 * byte. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Instructions that do nothing, of one or of four bytes each. */
__asm__(".text\n.globl bench_sled\n.type bench_sled, %function\nbench_sled:\n.rept "
	"4096\nnop\n.endr\n"
	".size bench_sled, . - bench_sled\n");

/* Nobody else asks for such. */
#define BENCH_NUMBER 0x60000000UL

struct plan {
	unsigned long calls, processes;
	unsigned long numbers; /* 0: getppid */
	uint64_t period; /* ns; 0: as fast as it goes */
	int pin;         /* the i-th process on the i-th of the processors that we may use */
	unsigned long active, turn; /* so many at a time, for so many calls; 0: all, for all */
};

struct result {
	double wall, cpu; /* ns per call */
};

static uint64_t now(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void pin_to(unsigned long number)
{
	cpu_set_t allowed, one;
	unsigned long seen = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	number %= (unsigned long)CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || seen++ != number)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		(void)sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void wait_until(uint64_t time)
{
	const struct timespec ts = { .tv_sec = (time_t)(time / 1000000000),
		.tv_nsec = (long)(time % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static void work(const struct plan *plan, unsigned long from, unsigned long to)
{
	uint64_t next = now(CLOCK_MONOTONIC);

	for (unsigned long i = from; i < to; i++) {
		if (plan->period)
			wait_until(next += plan->period);
		/* By number: a library may remember the answer. */
		if (plan->numbers)
			(void)syscall(SYS_getpgid, BENCH_NUMBER + i % plan->numbers);
		else
			(void)syscall(SYS_getppid);
	}
}

/* A byte of the gate lets one process through; the kernel lets those that wait for one have it in
 * the order in which they came. */
__attribute__((noreturn)) static void child(
	const struct plan *plan, unsigned long number, const int gate[2], int results)
{
	struct result result = { 0 };
	unsigned long done = 0;
	char byte;

	/* Whoever waits for a turn must not outlive the one who counts them. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (plan->pin)
		pin_to(number);
	while (done < plan->calls) {
		unsigned long end = plan->calls - done > plan->turn ? done + plan->turn : plan->calls;
		uint64_t wall, cpu;

		if (read(gate[0], &byte, 1) != 1)
			_exit(1);
		wall = now(CLOCK_MONOTONIC);
		cpu = now(CLOCK_PROCESS_CPUTIME_ID);
		work(plan, done, end);
		result.wall += (double)(now(CLOCK_MONOTONIC) - wall);
		result.cpu += (double)(now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
		if (write(gate[1], &byte, 1) != 1)
			_exit(1);
		done = end;
	}
	result.wall /= (double)plan->calls;
	result.cpu /= (double)plan->calls;
	_exit(write(results, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

static int parse(int argc, char **argv, struct plan *plan)
{
	if (argc < 3)
		return -1;
	plan->calls = strtoul(argv[1], NULL, 10);
	plan->processes = strtoul(argv[2], NULL, 10);
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "--pin") == 0)
			plan->pin = 1;
		else if (strcmp(argv[i], "--period") == 0 && i + 1 < argc)
			plan->period = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--numbers") == 0 && i + 1 < argc)
			plan->numbers = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--active") == 0 && i + 1 < argc)
			plan->active = strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--turn") == 0 && i + 1 < argc)
			plan->turn = strtoul(argv[++i], NULL, 10);
		else
			return -1;
	}
	if (!plan->turn)
		plan->turn = plan->calls;
	if (!plan->active || plan->active > plan->processes)
		plan->active = plan->processes;
	return plan->calls && plan->processes ? 0 : -1;
}

/* Returns how many children failed. */
static int run(const struct plan *plan, const int gate[2], const int results[2])
{
	struct result result;
	int failed = 0, status;

	for (unsigned long i = 0; i < plan->processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0)
			child(plan, i, gate, results[1]);
		(void)printf("%d ", (int)pid);
	}
	(void)close(results[1]);
	(void)puts("");
	(void)fflush(stdout);
	(void)getchar();
	for (unsigned long i = 0; i < plan->active; i++)
		failed += write(gate[1], "", 1) != 1;
	while (wait(&status) > 0)
		failed += status != 0;
	while (read(results[0], &result, sizeof(result)) == sizeof(result))
		(void)printf("%.2f %.2f\n", result.wall, result.cpu);
	return failed;
}

int main(int argc, char **argv)
{
	struct plan plan = { 0 };
	int gate[2], results[2];

	if (parse(argc, argv, &plan) < 0) {
		(void)fprintf(stderr, "usage: bench_producer CALLS PROCESSES [--period NS] [--pin] "
				      "[--numbers N] [--active N --turn CALLS]\n");
		return 2;
	}
	if (pipe(gate) < 0 || pipe(results) < 0)
		return 1;
	return run(&plan, gate, results) ? 1 : 0;
}
