/* The record of an event's stacks, which follows it in the ring and is handed out together with it. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_STACK_H
#define TRACEFAN_CONSUMERS_CLIENT_STACK_H

#include "consumers/client/tracefan.h"
#include "shm/record_abi.h"

/* Takes in what follows an event that has RECORD_STACKED and was read last. *record is its record, and a copy from now on.
 * Returns 0 or what ring_reader_next fails with. */
int stack_take(struct tfan *tfan, const struct record_header **record);
void stack_release(struct tfan *tfan);

#endif
