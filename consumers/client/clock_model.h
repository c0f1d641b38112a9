/* Wall time from monotonic time: readings of both clocks, kept so that a late event is told by the reading
 * that held when it happened. Pure.
 *
 * CLOCK_MONOTONIC stands still while the machine is suspended and knows nothing of a clock that is set, so
 * the distance between the two clocks jumps then; each jump comes as one more reading. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_CLOCK_MODEL_H
#define TRACEFAN_CONSUMERS_CLIENT_CLOCK_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define CLOCK_MODEL_READINGS 64 /* a late event is at most seconds late, and readings come once a second */

struct clock_model {
	size_t count, newest;
	struct {
		uint64_t mono;
		uint64_t distance; /* real - mono, modulo 2^64 */
		uint64_t error;
	} readings[CLOCK_MODEL_READINGS];
};

/* Adds a reading: `real` and `mono` lie at most `error` apart. A reading that is worse than the one that
 * holds and doesn't contradict it changes nothing; one that is older than the newest is passed over. */
void clock_model_add(struct clock_model *model, uint64_t mono, uint64_t real, uint64_t error);

/* ns since the epoch, or 0 when there was no reading yet. */
uint64_t clock_model_wall(const struct clock_model *model, uint64_t mono);

#endif
